//! What lies on the disk, read without the code under test: the records of a log as plain JSON, the
//! files of the data folders by their names, the rows of a Parquet file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use arrow_array::{Array, Int64Array};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

/// A record of a log.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) operation: String,
    pub(crate) user: Option<String>,
    pub(crate) attempt: Option<String>,
    pub(crate) actions: Vec<Value>,
}

impl Entry {
    /// Its actions of one kind.
    pub(crate) fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.actions.iter().filter(move |a| a["action"] == kind)
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Records of the log after `last`.
pub(crate) fn read_log(root: &Path, dataset: &str, last: u64) -> Vec<Entry> {
    let mut entries = Vec::new();
    for at in last + 1.. {
        let path = root.join(format!("_lake/log/{dataset}/{at:020}.json"));
        let Ok(bytes) = fs::read(path) else { break };
        let record: Value = serde_json::from_slice(&bytes).unwrap();
        entries.push(Entry {
            number: number(&record["number"]),
            operation: text(&record["operation"]),
            user: record["by"]["user"].as_str().map(str::to_owned),
            attempt: record["attempt"].as_str().map(str::to_owned),
            actions: record["actions"].as_array().unwrap().clone(),
        });
    }
    entries
}

/// How many versions of the dataset are published.
pub(crate) fn published(root: &Path, dataset: &str) -> u32 {
    let path = |n: u32| root.join(format!("_lake/schema/{dataset}/v{n}.json"));
    (1..).take_while(|n| path(*n).exists()).last().unwrap_or(0)
}

/// A file in a data folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    pub(crate) dt: String,
    pub(crate) version: u32,
    pub(crate) name: String,
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(listed) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = listed.map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Every file below the dataset's data folder, as a reader by glob sees it.
pub(crate) fn list_folder(root: &Path, dataset: &str) -> Vec<Seen> {
    let mut seen = Vec::new();
    for day in entries(&root.join(dataset)) {
        for version in entries(&day) {
            for file in entries(&version) {
                let value = |path: &Path| name_of(path).split_once('=').unwrap().1.to_owned();
                seen.push(Seen {
                    dt: value(&day),
                    version: value(&version).parse().unwrap(),
                    name: name_of(&file),
                });
            }
        }
    }
    seen
}

impl Seen {
    pub(crate) fn path(&self, root: &Path, dataset: &str) -> PathBuf {
        let Self { dt, version, name } = self;
        root.join(format!("{dataset}/dt={dt}/schema_version={version}/{name}"))
    }
}

/// Names of what lies in the stage; the temporary files of puts are not among them.
pub(crate) fn list_stage(root: &Path) -> Vec<String> {
    let names = entries(&root.join("_lake/stage"));
    let names = names.iter().map(|p| name_of(p));
    names.filter(|n| n != ".puts").collect()
}

/// Rows of Parquet files by their column `k`; a name stands for the same bytes for ever.
#[derive(Debug, Default)]
pub(crate) struct Rows(BTreeMap<String, Vec<i64>>);

impl Rows {
    pub(crate) fn of(&mut self, path: &Path) -> Vec<i64> {
        let name = name_of(path);
        if let Some(rows) = self.0.get(&name) {
            return rows.clone();
        }
        let file = fs::File::open(path).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let mut rows = Vec::new();
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            let column = batch.column_by_name("k").unwrap();
            let column = column.as_any().downcast_ref::<Int64Array>().unwrap();
            assert_eq!(column.null_count(), 0);
            rows.extend(column.values().iter().copied());
        }
        self.0.insert(name, rows.clone());
        rows
    }
}
