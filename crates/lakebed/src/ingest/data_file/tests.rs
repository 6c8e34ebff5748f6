//! Calls that keep records whole: what lies in the file, by how many threads, and what is refused.

use std::io::Read;

use crate::error::ErrorKind;
use crate::ingest::decode::Mismatch;
use crate::ingest::tests::{Fixture, by};
use crate::ingest::{IngestOutcome, IngestReport, IngestRequest, RevisionTarget};
use crate::registry::{self, Evolution, PublishOptions};
use crate::spec::FileFormat;
use crate::store::StorePath;

const DATASET: &str = "clean/forum.threads";

fn whole(f: &Fixture, files: &[String]) -> IngestRequest {
    IngestRequest {
        dataset: DATASET.parse().unwrap(),
        format: Some(FileFormat::Jsonl),
        ..f.request(files)
    }
}

/// The text of a file that a call wrote.
async fn text(f: &Fixture, report: &IngestReport) -> String {
    let path = StorePath::new(report.files[0].path.clone()).unwrap();
    let bytes = f.lake.store().get(&path).await.unwrap();
    let mut text = String::new();
    // One frame: a reader that stops after the first one has all of it.
    let mut frame = zstd::Decoder::new(&*bytes).unwrap().single_frame();
    frame.read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn records_are_kept_as_they_are_written() {
    let f = Fixture::new().await;
    let lines = concat!(
        "{ \"id\" : 12345678901234567890.50, \"a\\/b\":\"\\u6e56\\ud800\" , \"z\":1e400,\"deep\":[ [ { } ] ] }\n",
        "\n",
        "[{\"n\":1},{\"n\":2.0}] {\"n\":3}\r\n",
        "{\"k\":1,\"\\u006b\":2}\n",
        "{\"x\":[NaN]}\n",
        "{\"cut\":\n",
        "\"text\"\n",
        "{\"tab\":\"a\tb\"}\n",
    );
    let array = "[\n  {\"of\": \"an array\"},\n  {\"next\":\n    null}\n]\n";
    let mut request = whole(&f, &[f.file("a.jsonl", lines), f.file("b.json", array)]);
    request.mismatch = Mismatch::Quarantine;
    let report = f.ingest(&request).await.unwrap();
    assert_eq!(
        (report.rows, report.rejected, report.schema_version),
        (6, 5, 0)
    );
    assert_eq!(
        text(&f, &report).await,
        concat!(
            "{\"id\":12345678901234567890.50,\"a\\/b\":\"\\u6e56\\ufffd\",\"z\":1e400,\"deep\":[[{}]]}\n",
            "{\"n\":1}\n{\"n\":2.0}\n{\"n\":3}\n",
            "{\"of\":\"an array\"}\n{\"next\":null}\n",
        )
    );
    assert_eq!(report.lone_surrogates, 1);
    assert!(report.files[0].path.ends_with(".jsonl.zst"));
    let codes: Vec<String> = report.drift.items().map(|i| i.code.to_string()).collect();
    assert_eq!(codes, ["nan", "syntax", "not_a_record", "duplicate_key"]);
    assert_eq!(report.drift.items().map(|i| i.count).sum::<u64>(), 5);
    let again = f.ingest(&request).await.unwrap();
    assert_eq!(again.outcome, IngestOutcome::AlreadyThere);
}

#[tokio::test]
async fn threads_do_not_change_a_byte_of_lines() {
    let lines = |from: usize, to: usize| -> String {
        (from..to)
            .map(|k| {
                format!(
                    "{{\"k\": {k}, \"body\": \"第 {k} 樓 {}\"}}\n",
                    "x".repeat(k % 91)
                )
            })
            .collect()
    };
    let mut seen = std::collections::BTreeSet::new();
    for threads in [1, 2, 5] {
        let f = Fixture::new().await;
        let mut request = whole(
            &f,
            &[
                f.file("a.jsonl", &lines(0, 5000)),
                f.file("b.jsonl", &lines(5000, 9000)),
            ],
        );
        request.threads = Some(threads);
        request.group_bytes = Some(20_000);
        let report = f.ingest(&request).await.unwrap();
        assert_eq!((report.rows, report.files.len()), (9000, 1));
        assert_eq!(
            text(&f, &report).await,
            lines(0, 9000).replace(": ", ":").replace(", \"", ",\"")
        );
        seen.insert(format!("{:?}", report.files[0]));
    }
    assert_eq!(seen.len(), 1, "{seen:#?}");
}

/// Attacks LOG-12.
#[tokio::test]
async fn a_dataset_takes_files_of_one_format() {
    let f = Fixture::new().await;
    let file = f.file("a.jsonl", "{\"k\":1}\n");
    // Tables are published for this one.
    let mut tables = whole(&f, std::slice::from_ref(&file));
    tables.dataset = "clean/site".parse().unwrap();
    let refused = f.ingest(&tables).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PreconditionFailed);
    tables.format = None;
    assert_eq!(f.ingest(&tables).await.unwrap().rows, 1);
    tables.format = Some(FileFormat::Jsonl);
    let refused = f.ingest(&tables).await.unwrap_err();
    assert!(
        refused.message().contains("holds `parquet` files"),
        "{refused}"
    );
    // Lines beget lines, said or not, and no schema.
    let mut lines = whole(&f, std::slice::from_ref(&file));
    assert_eq!(f.ingest(&lines).await.unwrap().rows, 1);
    lines.format = None;
    lines.revision = RevisionTarget::Replace;
    lines.inputs = f.request(&[f.file("b.jsonl", "{\"k\":2}\n")]).inputs;
    let corrected = f.ingest(&lines).await.unwrap();
    assert_eq!((corrected.schema_version, corrected.revision), (0, 1));
    assert_eq!(text(&f, &corrected).await, "{\"k\":2}\n");
    lines.format = Some(FileFormat::Parquet);
    assert!(f.ingest(&lines).await.is_err());
    lines.format = None;
    lines.schema_version = Some(3);
    assert_eq!(
        f.ingest(&lines).await.unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    let schema = "dataset = \"clean/forum.threads\"\nversion = 1\n[[field]]\nid = 1\nname = \"k\"\ntype = \"int\"\n";
    let spec = registry::parse(schema, "v1.toml").unwrap();
    let options = PublishOptions {
        by: by(),
        git_commit: None,
        evolution: Evolution::Free,
    };
    let refused = registry::publish(&f.lake, &spec, &options)
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PreconditionFailed);
}

#[tokio::test]
async fn what_is_no_json_is_refused_and_nothing_is_a_file_of_no_lines() {
    let f = Fixture::new().await;
    let csv = whole(&f, &[f.file("a.csv", "k\n1\n")]);
    let refused = f.ingest(&csv).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert_eq!(f.staged().await, 0);
    let bytes = f.file("bad.jsonl", "");
    std::fs::write(&bytes, b"{\"k\":\"\xff\"}\n").unwrap();
    assert_eq!(
        f.ingest(&whole(&f, &[bytes])).await.unwrap_err().kind(),
        ErrorKind::CorruptData
    );
    let empty = f
        .ingest(&whole(&f, &[f.file("e.json", "[]")]))
        .await
        .unwrap();
    assert_eq!((empty.rows, empty.files.len()), (0, 1));
    assert_eq!(text(&f, &empty).await, "");
}
