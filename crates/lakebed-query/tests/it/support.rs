//! A lake with published schemas, data files and a synced catalog.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::json::ReaderBuilder;
use lakebed::Result;
use lakebed::catalog::{Catalog, SqliteCatalog, sync_all};
use lakebed::config::SourceConfig;
use lakebed::name::{AttemptId, ContentHash, DatasetRef};
use lakebed::spec::{
    Action, By, DataFileSpec, FieldSpec, FileFormat, InputSpec, LoadKind, Operation,
    PUBLISHED_FORMAT, PartitionKey, Provenance, PublishedSchema, RECORD_FORMAT, RECORD_MIN_READER,
    ReadSpec, Record, SchemaSpec, arrow_schema,
};
use lakebed::store::{
    Lake, LocalStore, PutOutcome, StorePath, data_file_path, log_record_path, schema_path,
    staged_path,
};
use lakebed::time::{Clock, Instant};
use lakebed_query::{QueryEngine, QueryOptions, QueryResult, write_json};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

pub(crate) const START: i64 = 1_716_163_200_000_000;

/// A field by id, name and type.
pub(crate) fn field(id: u32, name: &str, kind: &str) -> FieldSpec {
    FieldSpec::new(id, name, kind.parse().unwrap())
}

pub(crate) fn with_members(mut field: FieldSpec, members: Vec<FieldSpec>) -> FieldSpec {
    field.fields = members;
    field
}

/// Where a data file is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Final,
    Staged,
}

pub(crate) struct TestLake {
    _dir: tempfile::TempDir,
    pub(crate) lake: Lake,
    pub(crate) catalog: Arc<SqliteCatalog>,
    engine: OnceLock<QueryEngine>,
    schemas: BTreeMap<(DatasetRef, u32), Vec<FieldSpec>>,
    logs: BTreeMap<DatasetRef, (u64, Option<ContentHash>)>,
    load: LoadKind,
    /// What `source.toml` says, by source.
    pub(crate) declared: BTreeMap<&'static str, &'static str>,
}

impl TestLake {
    pub(crate) async fn new() -> Self {
        Self::at(START).await
    }

    /// A lake whose clock stands at so many microseconds.
    pub(crate) async fn at(micros: i64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(LocalStore::new(dir.path().join("湖 lake%41")));
        let clock = Arc::new(Clock::manual(Instant::from_micros(micros)));
        let lake = Lake::open_or_create(store, clock, "Asia/Taipei")
            .await
            .unwrap();
        let catalog = SqliteCatalog::open(dir.path().join("catalog.db"))
            .await
            .unwrap();
        catalog.bind(lake.spec()).await.unwrap();
        Self {
            _dir: dir,
            lake,
            catalog: Arc::new(catalog),
            engine: OnceLock::new(),
            schemas: BTreeMap::new(),
            logs: BTreeMap::new(),
            load: LoadKind::Incremental,
            declared: BTreeMap::new(),
        }
    }

    async fn put(&self, path: &StorePath, bytes: &[u8]) {
        let put = self.lake.store().put_once(path, bytes).await.unwrap();
        assert_eq!(put, PutOutcome::Created);
    }

    fn by(&self) -> By {
        By {
            program: "lakebed 0.1.0".to_owned(),
            user: None,
            run: None,
            note: None,
        }
    }

    pub(crate) async fn publish(&mut self, dataset: &str, version: u32, fields: Vec<FieldSpec>) {
        let dataset: DatasetRef = dataset.parse().unwrap();
        let published = PublishedSchema {
            format: PUBLISHED_FORMAT,
            lake: self.lake.id().clone(),
            published_at: Instant::from_micros(START),
            by: self.by(),
            base_hash: None,
            git_commit: None,
            schema: SchemaSpec {
                dataset: dataset.clone(),
                version,
                note: None,
                base: (version > 1).then(|| version - 1),
                removed: Vec::new(),
                input: ReadSpec::default(),
                fields: fields.clone(),
            },
        };
        let bytes = serde_json::to_vec(&published).unwrap();
        self.put(&schema_path(&dataset, version), &bytes).await;
        self.schemas.insert((dataset, version), fields);
    }

    fn batch(&self, dataset: &DatasetRef, version: u32, rows: &[Value]) -> RecordBatch {
        let fields = &self.schemas[&(dataset.clone(), version)];
        let schema = Arc::new(arrow_schema(fields));
        let mut text = String::new();
        for row in rows {
            let mut row = row.clone();
            row["source"] = json!(dataset.source().as_str());
            text.push_str(&row.to_string());
            text.push('\n');
        }
        let mut reader = ReaderBuilder::new(schema.clone())
            .build(Cursor::new(text))
            .unwrap();
        reader
            .next()
            .map_or_else(|| RecordBatch::new_empty(schema), |b| b.unwrap())
    }

    /// Commits a file of JSON rows; the catalog is synced.
    pub(crate) async fn add(&mut self, dataset: &str, dt: &str, version: u32, rows: &[Value]) {
        let batch = self.batch(&dataset.parse().unwrap(), version, rows);
        self.add_batch(dataset, (dt, version), &batch, Place::Final)
            .await;
    }

    /// Commits a file whose move has not happened.
    pub(crate) async fn add_staged(
        &mut self,
        dataset: &str,
        dt: &str,
        version: u32,
        rows: &[Value],
    ) -> StorePath {
        let batch = self.batch(&dataset.parse().unwrap(), version, rows);
        self.add_batch(dataset, (dt, version), &batch, Place::Staged)
            .await
    }

    pub(crate) async fn add_batch(
        &mut self,
        dataset: &str,
        (dt, version): (&str, u32),
        batch: &RecordBatch,
        place: Place,
    ) -> StorePath {
        let dataset: DatasetRef = dataset.parse().unwrap();
        let key = PartitionKey {
            dt: dt.parse().unwrap(),
            schema_version: version,
            revision: 0,
        };
        let mut bytes = Vec::new();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(100))
            .set_data_page_row_count_limit(20)
            .set_write_batch_size(20)
            .build();
        let mut writer =
            ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        let number = self.logs.get(&dataset).map_or(1, |l| l.0 + 1);
        let attempt: AttemptId = format!("attempt-{number}").parse().unwrap();
        let hash = ContentHash::of(&bytes);
        let name = format!("part-{number:05}-{}.parquet", hash.short());
        let path = data_file_path(&dataset, &key, &name);
        let at = match place {
            Place::Final => path.clone(),
            Place::Staged => staged_path(&attempt, &path),
        };
        self.put(&at, &bytes).await;
        let file = DataFileSpec {
            name,
            format: FileFormat::Parquet,
            rows: u64::try_from(batch.num_rows()).unwrap(),
            bytes: u64::try_from(bytes.len()).unwrap(),
            blake3: hash,
            provenance: Provenance::Live,
            bounds: BTreeMap::new(),
            parents: Vec::new(),
        };
        let input = self.input(
            key,
            file.rows,
            &ContentHash::of(format!("{number}").as_bytes()),
        );
        self.commit(
            &dataset,
            vec![
                input,
                Action::AddFile {
                    partition: key,
                    file,
                },
            ],
        )
        .await;
        sync_all(&self.lake, &*self.catalog).await.unwrap();
        path
    }

    /// The record after those so far, not committed.
    pub(crate) fn next_record(&self, dataset: &DatasetRef, actions: Vec<Action>) -> Record {
        let (number, previous) = self.logs.get(dataset).cloned().unwrap_or((0, None));
        let number = number + 1;
        Record {
            format: RECORD_FORMAT,
            min_reader: RECORD_MIN_READER,
            lake: self.lake.id().clone(),
            dataset: dataset.clone(),
            number,
            previous,
            commit: format!("commit-{number}").parse().unwrap(),
            at: Instant::from_micros(START + i64::try_from(number).unwrap()),
            operation: Operation::Append,
            by: self.by(),
            attempt: Some(format!("attempt-{number}").parse().unwrap()),
            requires: Vec::new(),
            actions,
            joined: Vec::new(),
        }
    }

    /// Commits that an input of `rows` rows was loaded in full, as the record of the next file; the
    /// file itself is added by [`Self::add`] right after.
    pub(crate) async fn add_full(&mut self, dataset: &str, dt: &str, version: u32, rows: &[Value]) {
        self.load = LoadKind::Full;
        self.add(dataset, dt, version, rows).await;
        self.load = LoadKind::Incremental;
    }

    fn input(&self, key: PartitionKey, rows: u64, content: &ContentHash) -> Action {
        Action::AddInput {
            partition: key,
            input: InputSpec {
                content: content.clone(),
                name: "in.jsonl".to_owned(),
                bytes: 1,
                rows,
                rejected: 0,
                rules: "0123456789abcdef".to_owned(),
                batch: None,
                load: self.load,
                parents: Vec::new(),
            },
        }
    }

    async fn commit(&mut self, dataset: &DatasetRef, actions: Vec<Action>) {
        let record = self.next_record(dataset, actions);
        let bytes = serde_json::to_vec(&record).unwrap();
        self.put(&log_record_path(dataset, record.number), &bytes)
            .await;
        self.logs.insert(
            dataset.clone(),
            (record.number, Some(ContentHash::of(&bytes))),
        );
    }

    pub(crate) fn path(&self, path: &StorePath) -> PathBuf {
        self.lake.store().local_path(path).unwrap()
    }

    /// Every data file on disk.
    pub(crate) async fn data_files(&self) -> Vec<PathBuf> {
        let root = StorePath::new("").unwrap();
        let listed = self.lake.store().list(&root).await.unwrap();
        listed
            .iter()
            .filter(|f| f.path.as_str().ends_with(".parquet"))
            .map(|f| self.path(&f.path))
            .collect()
    }

    pub(crate) fn engine(&self) -> QueryEngine {
        let declared = self.declared.iter();
        let sources = declared.map(|(name, text)| {
            SourceConfig::parse(&name.parse().unwrap(), text, "source.toml").unwrap()
        });
        self.engine_with(QueryOptions {
            workers: NonZeroUsize::new(2),
            sources: sources.collect(),
            ..QueryOptions::default()
        })
    }

    pub(crate) fn engine_with(&self, options: QueryOptions) -> QueryEngine {
        let catalog: Arc<dyn Catalog> = self.catalog.clone();
        QueryEngine::new(self.lake.clone(), catalog, options).unwrap()
    }

    pub(crate) async fn query(&self, text: &str) -> Result<QueryResult> {
        self.engine.get_or_init(|| self.engine()).sql(text).await
    }

    pub(crate) async fn try_rows(&self, text: &str) -> Result<Value> {
        let result = self.query(text).await?;
        let mut out = Vec::new();
        write_json(result, &mut out).await?;
        Ok(serde_json::from_slice(&out).unwrap())
    }

    /// The rows as JSON.
    pub(crate) async fn rows(&self, text: &str) -> Value {
        self.try_rows(text)
            .await
            .unwrap_or_else(|e| panic!("{text}: {e} {:?}", e.hints()))
    }

    /// The one value of the one row.
    pub(crate) async fn value(&self, text: &str) -> Value {
        let rows = self.rows(text).await;
        let [row] = rows.as_array().unwrap().as_slice() else {
            panic!("{text}: {rows}")
        };
        let row = row.as_object().unwrap();
        assert_eq!(row.len(), 1, "{text}: {row:?}");
        row.values().next().unwrap().clone()
    }

    /// Files considered and read.
    pub(crate) async fn files(&self, text: &str) -> (u64, u64) {
        let result = self.query(text).await.unwrap();
        let stats = result.stats();
        (stats.files_considered(), stats.files_read())
    }
}
