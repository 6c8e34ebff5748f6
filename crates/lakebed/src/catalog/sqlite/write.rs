//! A folded batch on its way into the rows: every row once, by statements of many rows.
//!
//! Each statement is a hop to SQLite's own thread, so few large ones are cheap; they come in few sizes,
//! so that each is prepared once a connection.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use sqlx::sqlite::SqliteArguments;
use sqlx::{Arguments, AssertSqlSafe, Encode, Sqlite, SqliteConnection, Type};

use crate::catalog::key::{file_id, partition_checksum};
use crate::catalog::sqlite::apply::APPLY;
use crate::catalog::sqlite::batch::{Batch, Held, HeldFile, Place};
use crate::catalog::sqlite::row::{Database, sql_int};
use crate::catalog::{CommitRow, PackedStats, PartitionRow};
use crate::error::{Error, Result};
use crate::spec::PartitionKey;

/// Most variables of one statement that SQLite takes.
const MAX_VARIABLES: usize = 32_766;
/// Rows of one insert: while SQLite puts some, the next ones are bound.
const SIZES: [usize; 6] = [512, 128, 32, 8, 2, 1];

/// An insert of many rows: the columns, how many they are, and what follows the values.
struct Insert {
    head: &'static str,
    width: usize,
    tail: &'static str,
    /// The whole statement for each of the sizes, once it was needed.
    texts: [OnceLock<Arc<str>>; SIZES.len()],
}

/// The values of rows on their way into a statement.
#[derive(Default)]
struct Row {
    values: SqliteArguments,
    error: Option<sqlx::error::BoxDynError>,
}

impl Row {
    fn put<'t>(&mut self, value: impl Encode<'t, Sqlite> + Type<Sqlite>) -> &mut Self {
        if let Err(e) = self.values.add(value) {
            self.error.get_or_insert(e);
        }
        self
    }
}

impl Insert {
    const fn new(head: &'static str, width: usize, tail: &'static str) -> Self {
        Self {
            head,
            width,
            tail,
            texts: [const { OnceLock::new() }; SIZES.len()],
        }
    }

    /// The statement for the first of the rows, which are taken, and its values; `None` where there are none.
    fn statement<T>(
        &self,
        rows: &mut &[T],
        bind: &impl Fn(&mut Row, &T),
    ) -> Option<(Arc<str>, Row)> {
        let fits = |n: usize| n <= rows.len() && n * self.width <= MAX_VARIABLES;
        let mut sizes = SIZES.into_iter().zip(&self.texts);
        let (count, text) = sizes.find(|(n, _)| fits(*n))?;
        let (now, later) = rows.split_at(count);
        *rows = later;
        let mut values = Row::default();
        values.values.reserve(count * self.width, 0);
        now.iter().for_each(|row| bind(&mut values, row));
        let text = text.get_or_init(|| self.text(count).into());
        Some((Arc::clone(text), values))
    }

    fn text(&self, count: usize) -> String {
        let row = format!("({})", vec!["?"; self.width].join(", "));
        let rows = vec![row.as_str(); count].join(", ");
        format!("{}VALUES {rows}{}", self.head, self.tail)
    }
}

static DATES: Insert = Insert::new(
    "INSERT INTO date_completeness (layer, dataset, dt, source, is_complete, log_position) ",
    6,
    " ON CONFLICT (layer, dataset, dt) DO UPDATE SET is_complete = excluded.is_complete, \
           log_position = excluded.log_position",
);
static PARTITIONS: Insert = Insert::new(
    "INSERT INTO dataset_partition_info (seq, id, layer, source, dataset, dt, schema_version, \
           revision, base_path, file_count, row_count, byte_size, file_format, created_at, \
           updated_at, is_active, state, is_complete, checksum, provenance, \
           parent_partition_id, log_position) ",
    22,
    " ON CONFLICT (id) DO UPDATE SET base_path = excluded.base_path, \
           file_count = excluded.file_count, row_count = excluded.row_count, \
           byte_size = excluded.byte_size, file_format = excluded.file_format, \
           updated_at = excluded.updated_at, is_active = excluded.is_active, \
           state = excluded.state, is_complete = excluded.is_complete, \
           checksum = excluded.checksum, provenance = excluded.provenance, \
           parent_partition_id = excluded.parent_partition_id, \
           log_position = excluded.log_position",
);
static FILES: Insert = Insert::new(
    "INSERT INTO partition_file (seq, id, partition_seq, name, format, row_count, \
           byte_size, blake3, provenance, bounds, attempt, \"commit\", log_position) ",
    13,
    "",
);
static STATS: Insert = Insert::new(
    "INSERT OR REPLACE INTO file_stats (file_seq, shape_seq, bounds) ",
    3,
    "",
);
static PARENTS: Insert = Insert::new(
    "INSERT INTO partition_parent (partition_id, parent_partition_id, parent, log_position) ",
    4,
    " ON CONFLICT DO NOTHING",
);
static COMMITS: Insert = Insert::new(
    "INSERT INTO commit_info (layer, dataset, number, hash, \"commit\", operation, at, \
           program, user, run, note, files_added, rows_added, rejected, dt_min, dt_max) ",
    16,
    "",
);

/// The rows of the database while a batch is written.
pub(super) struct Writer<'c> {
    pub(super) connection: &'c mut SqliteConnection,
    pub(super) database: &'c Database,
}

impl Writer<'_> {
    /// Writes what the batch changed. The position moves with its last commit.
    pub(super) async fn write(&mut self, batch: &Batch<'_>) -> Result<()> {
        self.put_dates(batch).await?;
        let partitions = self.put_partitions(batch).await?;
        for held in batch.partitions.values() {
            self.change_files(held).await?;
        }
        let seqs = self.put_files(batch, &partitions).await?;
        self.put_stats(batch, &seqs).await?;
        self.put_parents(batch).await?;
        self.put_commits(batch).await
    }

    async fn insert<T: Sync>(
        &mut self,
        what: &Insert,
        rows: &[T],
        bind: impl Fn(&mut Row, &T) + Send + Sync,
    ) -> Result<()> {
        let mut rest = rows;
        let mut next = what.statement(&mut rest, &bind);
        while let Some((text, row)) = next {
            if let Some(e) = row.error {
                return Err(self.database.error(APPLY, sqlx::Error::Encode(e)));
            }
            let query = sqlx::query_with(AssertSqlSafe(text), row.values);
            let put = self.execute(query);
            let bound = async { what.statement(&mut rest, &bind) };
            let done;
            (done, next) = tokio::join!(biased; put, bound);
            done?;
        }
        Ok(())
    }

    async fn execute(
        &mut self,
        query: sqlx::query::Query<'_, Sqlite, <Sqlite as sqlx::Database>::Arguments>,
    ) -> Result<()> {
        let done = query.execute(&mut *self.connection).await;
        done.map(drop).map_err(|e| self.database.error(APPLY, e))
    }

    async fn put_dates(&mut self, batch: &Batch<'_>) -> Result<()> {
        let mut rows = Vec::new();
        for (dt, day) in batch.dates.iter().filter(|(_, day)| day.is_changed) {
            rows.push((dt.to_string(), day.is_complete, sql_int(day.number)?));
        }
        let place = Texts::of(batch);
        self.insert(&DATES, &rows, |row, (dt, is_complete, number)| {
            row.put(Arc::clone(&place.layer))
                .put(Arc::clone(&place.dataset))
                .put(dt.clone())
                .put(Arc::clone(&place.source))
                .put(i64::from(*is_complete))
                .put(*number);
        })
        .await
    }

    /// Puts the partitions that changed; answers the `seq` of each.
    async fn put_partitions(&mut self, batch: &Batch<'_>) -> Result<BTreeMap<PartitionKey, i64>> {
        let last = "SELECT COALESCE(max(seq), 0) FROM dataset_partition_info";
        let mut last_seq = self.number(last).await?;
        let mut seqs = BTreeMap::new();
        let mut rows: Vec<(i64, &PartitionRow, Counts)> = Vec::new();
        for (key, held) in batch.partitions.iter().filter(|(_, h)| h.is_changed) {
            let seq = held.seq.unwrap_or_else(|| {
                last_seq += 1;
                last_seq
            });
            seqs.insert(*key, seq);
            rows.push((seq, &held.row, Counts::of(held)?));
        }
        let place = Texts::of(batch);
        let put = self.insert(&PARTITIONS, &rows, |row, (seq, p, counts)| {
            row.put(*seq)
                .put(p.id.clone())
                .put(Arc::clone(&place.layer))
                .put(Arc::clone(&place.source))
                .put(Arc::clone(&place.dataset))
                .put(p.key.dt.to_string())
                .put(i64::from(p.key.schema_version))
                .put(i64::from(p.key.revision))
                .put(p.base_path.clone())
                .put(counts.files)
                .put(counts.rows)
                .put(counts.bytes)
                .put(p.file_format.as_str())
                .put(p.created_at.to_string())
                .put(p.updated_at.to_string())
                .put(i64::from(p.is_active))
                .put(p.state.as_str())
                .put(i64::from(p.is_complete))
                .put(counts.checksum.clone())
                .put(p.provenance.clone())
                .put(p.parent_partition_id.clone())
                .put(counts.number);
        });
        put.await.map(|()| seqs)
    }

    async fn number(&mut self, query: &'static str) -> Result<i64> {
        sqlx::query_scalar(query)
            .fetch_one(&mut *self.connection)
            .await
            .map_err(|e| self.database.error(APPLY, e))
    }

    /// Rows of files that were there before the batch: those that left, and statistics that nobody sees.
    async fn change_files(&mut self, held: &Held<'_>) -> Result<()> {
        if !held.removed.is_empty() {
            let list = serde_json::to_string(&held.removed)
                .map_err(|e| Error::internal("write numbers as JSON").caused_by(e))?;
            for statement in [
                "DELETE FROM file_stats WHERE file_seq IN (SELECT value FROM json_each(?))",
                "DELETE FROM partition_file WHERE seq IN (SELECT value FROM json_each(?))",
            ] {
                self.execute(sqlx::query(statement).bind(&list)).await?;
            }
        }
        if held.was_hidden && held.files.values().any(HeldFile::is_known) {
            let query = sqlx::query(
                "DELETE FROM file_stats WHERE file_seq IN \
                 (SELECT seq FROM partition_file WHERE partition_seq = ?)",
            );
            self.execute(query.bind(held.seq)).await?;
        }
        Ok(())
    }

    /// Puts the added files in the order in which the records add them; answers the `seq` of each.
    async fn put_files(
        &mut self,
        batch: &Batch<'_>,
        partitions: &BTreeMap<PartitionKey, i64>,
    ) -> Result<BTreeMap<usize, i64>> {
        let mut added = Vec::new();
        for (key, held) in &batch.partitions {
            for file in held.files.values() {
                if let (Place::New { order, .. }, Some(seq)) = (&file.place, partitions.get(key)) {
                    added.push((*order, (*seq, &*held.row.id), file));
                }
            }
        }
        added.sort_unstable_by_key(|(order, _, _)| *order);
        let last = "SELECT COALESCE(max(seq), 0) FROM partition_file";
        let last_seq = self.number(last).await?;
        let mut seqs = BTreeMap::new();
        let mut words = Words::default();
        let mut rows = Vec::with_capacity(added.len());
        for ((order, partition, file), seq) in added.into_iter().zip(last_seq + 1..) {
            seqs.insert(order, seq);
            rows.extend(NewFile::of(seq, partition, file, &mut words)?);
        }
        self.insert(&FILES, &rows, |row, file| file.bind(row))
            .await?;
        Ok(seqs)
    }

    async fn put_stats(&mut self, batch: &Batch<'_>, seqs: &BTreeMap<usize, i64>) -> Result<()> {
        let mut shapes: BTreeMap<&str, i64> = BTreeMap::new();
        let mut rows: Vec<(i64, i64, &PackedStats)> = Vec::new();
        for file in batch.partitions.values().flat_map(|h| h.files.values()) {
            let seq = match &file.place {
                Place::Known(seq) => Some(*seq),
                Place::New { order, .. } => seqs.get(order).copied(),
            };
            let (Some(seq), Some(stats)) = (seq, file.stats.filter(|s| !s.is_empty())) else {
                continue;
            };
            let shape = match shapes.get(&**stats.shape()) {
                Some(shape) => *shape,
                None => {
                    let shape = self.put_shape(stats.shape()).await?;
                    shapes.insert(stats.shape(), shape);
                    shape
                }
            };
            rows.push((seq, shape, stats));
        }
        // By key, so that the tree grows at its end.
        rows.sort_unstable_by_key(|(seq, ..)| *seq);
        self.insert(&STATS, &rows, |row, (seq, shape, stats)| {
            row.put(*seq).put(*shape).put(Arc::clone(stats.values()));
        })
        .await
    }

    /// The `seq` of a shape, which gets its row where it has none.
    async fn put_shape(&mut self, shape: &Arc<str>) -> Result<i64> {
        let known = sqlx::query_scalar("SELECT seq FROM stats_shape WHERE columns = ?")
            .bind(Arc::clone(shape))
            .fetch_optional(&mut *self.connection)
            .await
            .map_err(|e| self.database.error(APPLY, e))?;
        if let Some(seq) = known {
            return Ok(seq);
        }
        sqlx::query_scalar("INSERT INTO stats_shape (columns) VALUES (?) RETURNING seq")
            .bind(Arc::clone(shape))
            .fetch_one(&mut *self.connection)
            .await
            .map_err(|e| self.database.error(APPLY, e))
    }

    async fn put_parents(&mut self, batch: &Batch<'_>) -> Result<()> {
        let mut rows = Vec::new();
        for parent in &batch.parents {
            rows.push((parent, sql_int(parent.number)?));
        }
        self.insert(&PARENTS, &rows, |row, (parent, number)| {
            row.put(parent.partition.clone())
                .put(parent.parent_partition.clone())
                .put(parent.parent)
                .put(*number);
        })
        .await
    }

    async fn put_commits(&mut self, batch: &Batch<'_>) -> Result<()> {
        let mut rows = Vec::new();
        for commit in &batch.commits {
            let numbers = [
                commit.number,
                commit.files_added,
                commit.rows_added,
                commit.rejected,
            ];
            rows.push((commit, ints(numbers)?));
        }
        let place = Texts::of(batch);
        self.insert(&COMMITS, &rows, |row, (commit, ints)| {
            put_commit(row, &place, commit, *ints);
        })
        .await?;
        let Some((last, [number, ..])) = rows.last() else {
            return Ok(());
        };
        let query = sqlx::query(
            "INSERT INTO dataset_position (layer, dataset, number, hash) VALUES (?, ?, ?, ?) \
             ON CONFLICT (layer, dataset) DO UPDATE SET number = excluded.number, hash = excluded.hash",
        )
        .bind(Arc::clone(&place.layer))
        .bind(Arc::clone(&place.dataset))
        .bind(*number)
        .bind(last.hash.as_str());
        self.execute(query).await
    }
}

fn put_commit(row: &mut Row, place: &Texts, commit: &CommitRow, ints: [i64; 4]) {
    let [number, files_added, rows_added, rejected] = ints;
    row.put(Arc::clone(&place.layer))
        .put(Arc::clone(&place.dataset))
        .put(number)
        .put(commit.hash.as_str())
        .put(commit.commit.as_str())
        .put(commit.operation.as_str())
        .put(commit.at.to_string())
        .put(commit.program.as_str())
        .put(commit.user.clone())
        .put(commit.run.clone())
        .put(commit.note.clone())
        .put(files_added)
        .put(rows_added)
        .put(rejected)
        .put(commit.dt_min.map(|d| d.to_string()))
        .put(commit.dt_max.map(|d| d.to_string()));
}

fn ints<const N: usize>(values: [u64; N]) -> Result<[i64; N]> {
    let mut ints = [0; N];
    for (int, value) in ints.iter_mut().zip(values) {
        *int = sql_int(value)?;
    }
    Ok(ints)
}

/// Texts of every row of a dataset.
struct Texts {
    layer: Arc<str>,
    dataset: Arc<str>,
    source: Arc<str>,
}

impl Texts {
    fn of(batch: &Batch<'_>) -> Self {
        Self {
            layer: batch.dataset.layer.as_str().into(),
            dataset: batch.dataset.dataset.as_str().into(),
            source: batch.dataset.source().as_str().into(),
        }
    }
}

/// Counts and digest of a partition, as SQLite stores them.
struct Counts {
    files: i64,
    rows: i64,
    bytes: i64,
    checksum: String,
    number: i64,
}

impl Counts {
    /// From the files where the batch touched the partition, else as they were.
    fn of(held: &Held<'_>) -> Result<Self> {
        let row = &held.row;
        let number = sql_int(row.log_position)?;
        if !held.is_touched {
            let [files, rows, bytes] = ints([row.file_count, row.row_count, row.byte_size])?;
            let checksum = row.checksum.clone();
            return Ok(Self {
                files,
                rows,
                bytes,
                checksum,
                number,
            });
        }
        let sum = |of: fn(&HeldFile<'_>) -> u64| {
            let values = held.files.values().map(of);
            values.fold(0, u64::saturating_add)
        };
        Ok(Self {
            files: sql_int(held.files.len() as u64)?,
            rows: sql_int(sum(|f| f.rows))?,
            bytes: sql_int(sum(|f| f.bytes))?,
            checksum: partition_checksum(held.files.values().map(|f| &*f.blake3)),
            number,
        })
    }
}

/// A row of `data_file` that is new.
struct NewFile {
    ints: [i64; 4],
    id: Arc<str>,
    partition: i64,
    name: Arc<str>,
    format: Arc<str>,
    blake3: Arc<str>,
    provenance: Arc<str>,
    bounds: Arc<str>,
    attempt: Option<Arc<str>>,
    commit: Arc<str>,
}

impl NewFile {
    fn of<'a>(
        seq: i64,
        (partition, partition_id): (i64, &str),
        file: &HeldFile<'a>,
        words: &mut Words<'a>,
    ) -> Result<Option<Self>> {
        let Place::New {
            spec,
            attempt,
            commit,
            number,
            ..
        } = &file.place
        else {
            return Ok(None);
        };
        let bounds = serde_json::to_string(&spec.bounds)
            .map_err(|e| Error::internal("write bounds as JSON").caused_by(e))?;
        let [rows, bytes, number] = ints([spec.rows, spec.bytes, *number])?;
        Ok(Some(Self {
            ints: [seq, rows, bytes, number],
            id: file_id(partition_id, &spec.name).into(),
            partition,
            name: spec.name.as_str().into(),
            format: words.get(spec.format.as_str()),
            blake3: spec.blake3.as_str().into(),
            provenance: words.get(spec.provenance.as_str()),
            bounds: bounds.into(),
            attempt: attempt.map(|a| words.get(a.as_str())),
            commit: words.get(commit.as_str()),
        }))
    }

    fn bind(&self, row: &mut Row) {
        let [seq, rows, bytes, number] = self.ints;
        row.put(seq)
            .put(Arc::clone(&self.id))
            .put(self.partition)
            .put(Arc::clone(&self.name))
            .put(Arc::clone(&self.format))
            .put(rows)
            .put(bytes)
            .put(Arc::clone(&self.blake3))
            .put(Arc::clone(&self.provenance))
            .put(Arc::clone(&self.bounds))
            .put(self.attempt.clone())
            .put(Arc::clone(&self.commit))
            .put(number);
    }
}

/// Texts that many rows share.
#[derive(Default)]
struct Words<'a>(BTreeMap<&'a str, Arc<str>>);

impl<'a> Words<'a> {
    fn get(&mut self, word: &'a str) -> Arc<str> {
        let shared = self.0.entry(word).or_insert_with(|| Arc::from(word));
        Arc::clone(shared)
    }
}
