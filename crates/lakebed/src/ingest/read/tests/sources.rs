//! Files, globs, folders and standard input; the hash of the rules.

use std::io::Cursor;

use super::*;
use crate::ingest::read::{Form, hash_input, resolve_inputs_with, rules_hash};
use crate::spec::InputFormat;

fn names(args: &[String]) -> Vec<String> {
    let sources = resolve_inputs(args).unwrap();
    sources.iter().map(|s| s.base_name().to_owned()).collect()
}

#[test]
fn arguments_keep_their_order_and_globs_are_sorted() {
    let input = input("b.csv", b"k\n1\n");
    let folder = input.folder.path();
    for name in [
        "c.csv",
        "a.csv",
        "[x].csv",
        "x.csv",
        ".hidden.csv",
        "d.jsonl",
    ] {
        std::fs::write(folder.join(name), b"k\n").unwrap();
    }
    std::fs::create_dir(folder.join("e.csv")).unwrap();
    let arg = |name: &str| folder.join(name).display().to_string();
    assert_eq!(
        names(&[arg("d.jsonl"), arg("?.csv")]),
        ["d.jsonl", "a.csv", "b.csv", "c.csv", "x.csv"]
    );
    // a path that exists is no glob
    assert_eq!(names(&[arg("[x].csv")]), ["[x].csv"]);
    std::fs::remove_file(folder.join("[x].csv")).unwrap();
    assert_eq!(names(&[arg("[x].csv")]), ["x.csv"]);
    assert_eq!(
        resolve_inputs(&[arg("b.csv")]).unwrap()[0].display_name(),
        arg("b.csv")
    );

    let error = resolve_inputs(&[arg("b.csv"), arg("*.parquet")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("*.parquet"));
    let error = resolve_inputs(&[arg("e*")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = resolve_inputs(&[arg("e.csv")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(!error.hints().is_empty());
    let error = resolve_inputs(&[arg("none.csv")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("none.csv"));
    assert_eq!(
        resolve_inputs(&[arg("[")]).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}

fn from_stdin(bytes: &[u8]) -> Vec<InputSource> {
    let bytes = bytes.to_vec();
    resolve_inputs_with(&["-".to_owned()], || Box::new(Cursor::new(bytes))).unwrap()
}

#[test]
fn standard_input_is_read_once() {
    let sources = from_stdin(b"{\"k\":1}\n");
    assert_eq!(sources[0].base_name(), "-");
    assert!(!sources[0].is_rereadable());
    let (chunks, facts) = read(&sources[0], &options(3)).unwrap();
    assert_eq!(text_of(&chunks), "{\"k\":1}\n");
    assert!(facts.warnings.is_empty());
    assert_eq!(
        read(&sources[0], &options(3)).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    hash_input(&sources[0]).unwrap_err();
    let twice = ["-".to_owned(), "-".to_owned()];
    resolve_inputs_with(&twice, || Box::new(Cursor::new(b"1".to_vec()))).unwrap_err();
}

#[test]
fn a_zip_on_standard_input_gives_its_members() {
    use std::io::Write;
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    writer
        .start_file("m.csv", zip::write::SimpleFileOptions::default())
        .unwrap();
    writer.write_all(b"k\n1\n").unwrap();
    let sources = from_stdin(&writer.finish().unwrap().into_inner());
    assert_eq!(sources[0].display_name(), "-!m.csv");
    assert_eq!(text_of(&read(&sources[0], &options(3)).unwrap().0), "1\n");
}

fn hash(form: Form, change: impl FnOnce(&mut ReadSpec)) -> String {
    let mut spec = ReadSpec::default();
    change(&mut spec);
    rules_hash(&spec, form).unwrap()
}

#[test]
fn equal_rules_have_equal_hashes() {
    let plain = hash(Form::Csv, |_| {});
    assert_eq!(plain.len(), 16);
    let spelled_out = hash(Form::Csv, |s| {
        s.format = Some(InputFormat::Csv);
        s.encoding = Some("UTF8".into());
        s.delimiter = Some(",".into());
        s.quote = Some("\"".into());
        s.allow_nan = Some(false);
        s.nan_as_null = Some(false);
    });
    assert_eq!(plain, spelled_out);
    assert_ne!(plain, hash(Form::Csv, |s| s.delimiter = Some(";".into())));
    assert_ne!(plain, hash(Form::Csv, |s| s.quote = Some("'".into())));
    assert_ne!(plain, hash(Form::Csv, |s| s.encoding = Some("gbk".into())));
    assert_ne!(
        plain,
        hash(Form::Csv, |s| s.header = Some(vec!["a".into()]))
    );
    assert_ne!(plain, hash(Form::Csv, |s| s.allow_nan = Some(true)));
    assert_ne!(plain, hash(Form::Tsv, |_| {}));
    assert_eq!(plain, hash(Form::Tsv, |s| s.delimiter = Some(",".into())));
    // what the form does not know changes nothing
    let lines = hash(Form::JsonLines, |_| {});
    assert_eq!(
        lines,
        hash(Form::JsonLines, |s| s.delimiter = Some(";".into()))
    );
    assert_eq!(
        lines,
        hash(Form::JsonLines, |s| s.format = Some(InputFormat::Jsonl))
    );
    let parquet = hash(Form::Parquet, |_| {});
    assert_eq!(parquet, hash(Form::Parquet, |s| s.nan_as_null = Some(true)));
    assert_ne!(
        parquet,
        hash(Form::Parquet, |s| s.nan_as_null = Some(false))
    );
    assert_ne!(
        hash(Form::JsonDocument, |s| s.records = Some("/a".into())),
        hash(Form::JsonDocument, |s| s.records = Some("/b".into()))
    );
}

#[test]
fn contradicting_rules_are_refused() {
    let refused = |change: fn(&mut ReadSpec)| {
        let mut spec = ReadSpec::default();
        change(&mut spec);
        let error = ReadOptions::new(&spec).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    };
    refused(|s| s.delimiter = Some("::".into()));
    refused(|s| s.delimiter = Some("；".into()));
    refused(|s| s.delimiter = Some(String::new()));
    refused(|s| s.delimiter = Some("\n".into()));
    refused(|s| s.delimiter = Some("\"".into()));
    refused(|s| s.quote = Some(",".into()));
    refused(|s| s.header = Some(vec!["a".into(), "a".into()]));
    refused(|s| s.header = Some(Vec::new()));
    refused(|s| s.records = Some("a/b".into()));
    refused(|s| s.records = Some("/a~2".into()));
    refused(|s| {
        s.records = Some("/a".into());
        s.format = Some(InputFormat::Csv);
    });
}
