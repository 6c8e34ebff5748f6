//! Lakes and logs for tests: records that follow one another, and small data files.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use crate::name::{ContentHash, DatasetRef};
use crate::spec::{
    Action, By, DataFileSpec, FieldSpec, FieldType, FileFormat, LakeSpec, Operation, PartitionKey,
    Provenance, RECORD_FORMAT, RECORD_MIN_READER, Record, arrow_schema,
};
use crate::store::{Lake, LocalStore, PutOutcome, StorePath, log_record_path};
use crate::time::{Clock, Instant};

pub(super) fn dataset() -> DatasetRef {
    "clean/weibo.comments".parse().unwrap()
}

pub(super) fn key(dt: &str, schema_version: u32, revision: u32) -> PartitionKey {
    PartitionKey {
        dt: dt.parse().unwrap(),
        schema_version,
        revision,
    }
}

pub(super) fn lake_spec(id: &str) -> LakeSpec {
    LakeSpec {
        format: 1,
        lake: id.parse().unwrap(),
        time_zone: "Asia/Taipei".to_owned(),
        created_at: Instant::from_micros(1),
    }
}

/// A file of which only the record knows.
pub(super) fn file(name: &str, rows: u64) -> DataFileSpec {
    DataFileSpec {
        name: name.to_owned(),
        format: FileFormat::Parquet,
        rows,
        bytes: rows * 10,
        blake3: ContentHash::of(name.as_bytes()),
        provenance: Provenance::Live,
        bounds: BTreeMap::new(),
        parents: Vec::new(),
    }
}

pub(super) fn add(partition: PartitionKey, file: DataFileSpec) -> Action {
    Action::AddFile { partition, file }
}

/// A log that grows record by record.
pub(super) struct TestLog {
    lake: LakeSpec,
    dataset: DatasetRef,
    number: u64,
    previous: Option<ContentHash>,
}

impl TestLog {
    pub(super) fn new(lake: &LakeSpec, dataset: &DatasetRef) -> Self {
        Self {
            lake: lake.clone(),
            dataset: dataset.clone(),
            number: 0,
            previous: None,
        }
    }

    /// The next record, with the bytes of its file and their hash.
    pub(super) fn next(
        &mut self,
        operation: Operation,
        actions: Vec<Action>,
    ) -> (Record, Vec<u8>, ContentHash) {
        self.number += 1;
        let record = Record {
            format: RECORD_FORMAT,
            min_reader: RECORD_MIN_READER,
            lake: self.lake.lake.clone(),
            dataset: self.dataset.clone(),
            number: self.number,
            previous: self.previous.clone(),
            commit: format!("commit-{}", self.number).parse().unwrap(),
            at: Instant::from_micros(1_716_163_200_000_000 + i64::try_from(self.number).unwrap()),
            operation,
            by: By {
                program: "lakebed 0.1.0".to_owned(),
                user: Some("小明".to_owned()),
                run: Some("day".parse().unwrap()),
                note: None,
            },
            attempt: Some("attempt-1".parse().unwrap()),
            requires: Vec::new(),
            actions,
            joined: Vec::new(),
        };
        let bytes = serde_json::to_vec(&record).unwrap();
        let hash = ContentHash::of(&bytes);
        self.previous = Some(hash.clone());
        (record, bytes, hash)
    }

    /// Puts the next record into the lake.
    pub(super) async fn commit(&mut self, lake: &Lake, operation: Operation, actions: Vec<Action>) {
        let (record, bytes, _) = self.next(operation, actions);
        put(lake, &log_record_path(&self.dataset, record.number), &bytes).await;
    }
}

pub(super) async fn new_lake(dir: &tempfile::TempDir) -> Lake {
    let store = Arc::new(LocalStore::new(dir.path().join("lake")));
    let clock = Arc::new(Clock::manual(Instant::from_micros(1_716_163_200_000_000)));
    Lake::open_or_create(store, clock, "Asia/Taipei")
        .await
        .unwrap()
}

pub(super) async fn put(lake: &Lake, path: &StorePath, bytes: &[u8]) {
    assert_eq!(
        lake.store().put_once(path, bytes).await.unwrap(),
        PutOutcome::Created
    );
}

/// A data file with the columns `n` (id 1) and `文` (id 2), its bytes and its entry in a record.
pub(super) fn small_parquet(name: &str, numbers: &[i64]) -> (Vec<u8>, DataFileSpec) {
    let schema = Arc::new(arrow_schema(&[
        FieldSpec::new(1, "n", FieldType::Int),
        FieldSpec::new(2, "文", FieldType::String),
    ]));
    let texts = numbers.iter().map(|n| format!("第{n}条"));
    let source = StringArray::from(vec!["weibo"; numbers.len()]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(numbers.to_vec())),
        Arc::new(StringArray::from_iter_values(texts)),
        Arc::new(source),
        Arc::new(StringArray::new_null(numbers.len())),
    ];
    let batch = RecordBatch::try_new(schema, columns).unwrap();
    let bytes = write_parquet(&[batch], WriterProperties::new());
    let mut spec = file(name, numbers.len() as u64);
    spec.bytes = bytes.len() as u64;
    spec.blake3 = ContentHash::of(&bytes);
    (bytes, spec)
}

/// One row group a batch.
pub(super) fn write_parquet(batches: &[RecordBatch], properties: WriterProperties) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut bytes, batches[0].schema(), Some(properties)).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    bytes
}
