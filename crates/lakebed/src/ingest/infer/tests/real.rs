//! Real crawls, where they are present: every record is read, every drift is seen.

use std::path::{Path, PathBuf};

use super::*;
use crate::error::Result;
use crate::ingest::read::InputSource;

/// A folder of shared test data.
fn data(name: &str) -> PathBuf {
    let shared = std::env::var_os("LAKEBED_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let folder = shared.join("data").join(name);
    assert!(
        folder.is_dir(),
        "the shared data is missing: LAKEBED_SHARED names its folder"
    );
    folder
}

fn sources(folder: &Path, pattern: &str) -> Vec<InputSource> {
    resolve_inputs(&[folder.join(pattern).display().to_string()]).unwrap()
}

fn options(change: impl FnOnce(&mut ReadSpec)) -> ReadOptions {
    let mut spec = ReadSpec::default();
    change(&mut spec);
    ReadOptions::new(&spec).unwrap().with_chunk_bytes(4096)
}

fn read(sources: &[InputSource]) -> Result<Evidence> {
    gather(sources, &options(|_| {}), None)
}

#[test]
fn hot_lists_are_read_whole() {
    let folder = data("weibo-hot-zh");
    assert_eq!(read(&sources(&folder, "*.json")).unwrap().records, 11_310);
    let hours = read(&sources(&folder, "hourly/*.json")).unwrap();
    assert_eq!((hours.records, hours.unreadable), (1420, 0));
    let count = hours.root.find("readCount").unwrap();
    assert_eq!(count.kinds.float, 3);
    assert!(count.distinct.contains("1910000000.0000002") || count.has_more_distinct);
    assert!(hours.files[count.first_file].ends_with("2024-05-21T15.json"));
    let folder = data("website-hot-hub-zh");
    assert_eq!(read(&sources(&folder, "*/*.json")).unwrap().records, 93_998);
}

#[test]
fn documents_give_their_repositories() {
    let folder = data("github-trending-zh");
    let repos = options(|s| s.records = Some("/repos".into()));
    let evidence = gather(&sources(&folder, "*.json"), &repos, None).unwrap();
    assert_eq!((evidence.records, evidence.unreadable), (3021, 0));
    let inferred = propose_fields(&evidence, &[], 1);
    let summary = inferred
        .fields
        .iter()
        .find(|f| f.name == "aiSummary")
        .unwrap();
    assert_eq!(summary.field_type, FieldType::Struct);
    let stack = summary
        .fields
        .iter()
        .find(|f| f.name == "techStack")
        .unwrap();
    assert_eq!(stack.field_type.to_string(), "list<string>");
    assert_eq!(
        evidence.root.find("errorMessage").unwrap().kinds.total(),
        65
    );
}

#[test]
fn daily_tables_are_read_whole_and_oddities_are_told() {
    let folder = data("italy-covid19");
    let regions = read(&sources(&folder, "regioni/*.csv")).unwrap();
    assert_eq!(regions.records, 37_422);
    assert_eq!(regions.unreadable, 0);
    assert_eq!(regions.warnings.len(), 1, "{:?}", regions.warnings);
    assert!(regions.warnings[0].contains("--delimiter ';'"));
    assert!(regions.root.find("").is_some());
    let inferred = propose_fields(&regions, &[], 1);
    let code = inferred
        .fields
        .iter()
        .find(|f| f.name == "codice_regione")
        .unwrap();
    assert_eq!(code.field_type, FieldType::String);

    let (mut latin, mut rows) = (0, 0);
    for source in sources(&folder, "province/*.csv") {
        rows += match read(std::slice::from_ref(&source)) {
            Ok(evidence) => evidence.records,
            Err(e) => {
                assert!(e.context().iter().any(|(key, _)| *key == "offset"), "{e}");
                latin += 1;
                let latin1 = options(|s| s.encoding = Some("iso-8859-1".into()));
                gather(&[source], &latin1, None).unwrap().records
            }
        };
    }
    assert_eq!((latin, rows), (23, 22_151));
}
