//! The records of one transaction, folded in memory: what the rows they touch are after them.
//!
//! ```text
//! load (rows of the dates that the records name) -> fold (record by record) -> write (each row once)
//! ```
//!
//! The fold does what a transaction a record would have left (CAT-1): times and positions are those
//! of the last record that changed a row, whatever number of records came between. Nothing here
//! knows SQL.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::key::{is_visible, parent_id, partition_id};
use crate::catalog::{CommitRow, FileStats, NextRecord, PackedStats, PartitionRow};
use crate::error::{Error, Result};
use crate::name::{AttemptId, CommitId, DatasetRef};
use crate::spec::{
    Action, DataFileSpec, FileFormat, PartitionKey, PartitionState, Provenance, Record,
};
use crate::store::{partition_dir, superseded_dir};
use crate::time::BusinessDate;

/// A row of `date_completeness`.
pub(super) struct Day {
    pub(super) is_complete: bool,
    pub(super) number: u64,
    pub(super) is_changed: bool,
}

/// Where the row of a file is.
pub(super) enum Place<'a> {
    /// In the database, under this `seq`.
    Known(i64),
    /// Nowhere yet.
    New {
        /// The how many-th file that the batch adds.
        order: usize,
        spec: &'a DataFileSpec,
        attempt: Option<&'a AttemptId>,
        commit: &'a CommitId,
        number: u64,
    },
}

/// A file of a partition that the batch touches.
pub(super) struct HeldFile<'a> {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) blake3: Cow<'a, str>,
    pub(super) provenance: Provenance,
    pub(super) format: FileFormat,
    pub(super) place: Place<'a>,
    /// Statistics to be put.
    pub(super) stats: Option<&'a PackedStats>,
}

impl HeldFile<'_> {
    /// Whether the database has its row.
    pub(super) fn is_known(&self) -> bool {
        matches!(self.place, Place::Known(_))
    }
}

/// A partition of a date that the batch names.
pub(super) struct Held<'a> {
    pub(super) row: PartitionRow,
    /// Its number in the database; `None` = it has no row yet.
    pub(super) seq: Option<i64>,
    /// All its files by name, where the batch touches it.
    pub(super) files: BTreeMap<Cow<'a, str>, HeldFile<'a>>,
    /// Files of each provenance.
    provenances: BTreeMap<&'static str, usize>,
    pub(super) is_changed: bool,
    /// Whether counts and checksum follow from `files`.
    pub(super) is_touched: bool,
    /// Rows in the database whose files left, by `seq`.
    pub(super) removed: Vec<i64>,
    /// Whether it was out of sight after one of the records: its old statistics go.
    pub(super) was_hidden: bool,
}

impl<'a> Held<'a> {
    pub(super) fn new(row: PartitionRow, seq: Option<i64>) -> Self {
        Self {
            row,
            seq,
            files: BTreeMap::new(),
            provenances: BTreeMap::new(),
            is_changed: false,
            is_touched: false,
            removed: Vec::new(),
            was_hidden: false,
        }
    }

    pub(super) fn put_file(&mut self, name: Cow<'a, str>, file: HeldFile<'a>) {
        *self
            .provenances
            .entry(file.provenance.as_str())
            .or_default() += 1;
        self.files.insert(name, file);
    }

    fn take_file(&mut self, name: &str) -> Option<HeldFile<'a>> {
        let file = self.files.remove(name)?;
        let word = file.provenance.as_str();
        let left = self.provenances.get(word).copied().unwrap_or(0);
        match left {
            0 | 1 => drop(self.provenances.remove(word)),
            _ => drop(self.provenances.insert(word, left - 1)),
        }
        Some(file)
    }

    /// The words that follow from the files. A partition without files keeps those it had.
    fn refresh(&mut self) {
        let mut words = self.provenances.keys();
        match (words.next(), words.next()) {
            (None, _) => {}
            (Some(word), None) => (*word).clone_into(&mut self.row.provenance),
            (Some(_), Some(_)) => "merged".clone_into(&mut self.row.provenance),
        }
        // Not that of its first file: the index of a pack comes before it.
        if let Some(first) = self.files.values().next() {
            self.row.file_format = match first.format {
                FileFormat::RawpackIndex => FileFormat::Rawpack,
                format => format,
            };
        }
    }
}

/// A row of `partition_parent`.
pub(super) struct Parent<'a> {
    pub(super) partition: String,
    pub(super) parent_partition: String,
    pub(super) parent: &'a str,
    pub(super) number: u64,
}

/// What the batch touches, as it stands after the records folded so far.
pub(super) struct Batch<'a> {
    pub(super) dataset: &'a DatasetRef,
    pub(super) dates: BTreeMap<BusinessDate, Day>,
    pub(super) partitions: BTreeMap<PartitionKey, Held<'a>>,
    pub(super) parents: Vec<Parent<'a>>,
    pub(super) commits: Vec<CommitRow>,
    /// Files added so far.
    added: usize,
}

/// The dates that the records name, and the partitions whose files they look at: what is to be loaded.
pub(super) fn named(
    records: &[NextRecord<'_>],
) -> (BTreeSet<BusinessDate>, BTreeSet<PartitionKey>) {
    let (mut dates, mut partitions) = (BTreeSet::new(), BTreeSet::new());
    for next in records {
        dates.extend(next.record.actions.iter().filter_map(Action::date));
        for action in &next.record.actions {
            match action {
                Action::AddFile { partition, .. }
                | Action::AddPartition { partition, .. }
                | Action::RemoveFile { partition, .. }
                | Action::SetState { partition, .. } => drop(partitions.insert(*partition)),
                Action::AddInput { .. }
                | Action::AddRejects { .. }
                | Action::RetryRejects { .. }
                | Action::Complete { .. }
                | Action::Open { .. }
                | Action::Abandon { .. }
                | Action::EraseInput { .. } => {}
            }
        }
        for file in next.stats {
            dates.insert(file.partition.dt);
            partitions.insert(file.partition);
        }
    }
    (dates, partitions)
}

impl<'a> Batch<'a> {
    pub(super) fn new(dataset: &'a DatasetRef) -> Self {
        Self {
            dataset,
            dates: BTreeMap::new(),
            partitions: BTreeMap::new(),
            parents: Vec::new(),
            commits: Vec::new(),
            added: 0,
        }
    }

    /// Folds the next record.
    pub(super) fn fold(&mut self, next: &NextRecord<'a>) -> Result<()> {
        let mut step = Step {
            batch: self,
            record: next.record,
            touched: BTreeSet::new(),
        };
        for (index, action) in next.record.actions.iter().enumerate() {
            step.apply(index, action)?;
        }
        let touched = step.touched;
        for key in touched {
            if let Some(held) = self.partitions.get_mut(&key) {
                held.refresh();
                held.row.updated_at = next.record.at;
                held.row.log_position = next.record.number;
                (held.is_changed, held.is_touched) = (true, true);
            }
        }
        self.put_stats(next.stats);
        self.commits.push(CommitRow::of(next.record, next.hash));
        Ok(())
    }

    /// Statistics of files that readers see after the record.
    fn put_stats(&mut self, stats: &'a [FileStats]) {
        for file in stats {
            let held = self.partitions.get_mut(&file.partition);
            let seen = held.filter(|held| is_visible(held.row.state));
            if let Some(known) = seen.and_then(|h| h.files.get_mut(file.name.as_str())) {
                known.stats = Some(&file.columns);
            }
        }
    }
}

/// One record on its way into the batch.
struct Step<'b, 'a> {
    batch: &'b mut Batch<'a>,
    record: &'a Record,
    touched: BTreeSet<PartitionKey>,
}

impl<'a> Step<'_, 'a> {
    fn apply(&mut self, index: usize, action: &'a Action) -> Result<()> {
        match action {
            Action::AddFile { partition, file } => self.add_file(index, partition, file),
            Action::AddPartition { partition, state } => self.begin_partition(partition, *state),
            Action::RemoveFile { partition, name } => self.remove_file(partition, name),
            Action::AddInput { partition, .. } => {
                self.name_date(partition.dt);
                Ok(())
            }
            Action::AddRejects { dt, .. } | Action::RetryRejects { dt, .. } => {
                self.name_date(*dt);
                Ok(())
            }
            Action::SetState {
                partition,
                from,
                to,
            } => self.set_state(partition, *from, *to),
            Action::Complete { dt } => {
                self.set_complete(*dt, true);
                Ok(())
            }
            Action::Open { dt } => {
                self.set_complete(*dt, false);
                Ok(())
            }
            // Abandoned attempts and erased inputs bar later commits; they are the fold's business.
            Action::Abandon { .. } | Action::EraseInput { .. } => Ok(()),
        }
    }

    /// The date gets its row, open, where it has none.
    fn name_date(&mut self, dt: BusinessDate) -> &mut Day {
        let number = self.record.number;
        self.batch.dates.entry(dt).or_insert(Day {
            is_complete: false,
            number,
            is_changed: true,
        })
    }

    /// The partition as it stands; it must exist.
    fn get_partition(&mut self, key: &PartitionKey) -> Result<&mut Held<'a>> {
        self.touched.insert(*key);
        self.batch
            .partitions
            .get_mut(key)
            .ok_or_else(|| wrong_fold(format!("the record changes `{key}`, which does not exist")))
    }

    /// The folder of a partition that gets its state by this record.
    fn folder(&self, key: &PartitionKey, state: PartitionState) -> String {
        let dataset = self.batch.dataset;
        match state {
            PartitionState::Superseded => superseded_dir(dataset, self.record.number, key),
            PartitionState::Active
            | PartitionState::Switching
            | PartitionState::Retired
            | PartitionState::Purged => partition_dir(dataset, key),
        }
        .to_string()
    }

    /// A partition of a new revision; what it holds follows in the same record.
    fn begin_partition(&mut self, key: &PartitionKey, state: PartitionState) -> Result<()> {
        if self.batch.partitions.contains_key(key) {
            return Err(wrong_fold(format!(
                "the record begins `{key}`, which exists"
            )));
        }
        let (format, provenance) = (
            FileFormat::of_version(self.batch.dataset.layer, key.schema_version),
            Provenance::Live,
        );
        self.create_partition(key, state, (format, provenance));
        Ok(())
    }

    fn create_partition(
        &mut self,
        key: &PartitionKey,
        state: PartitionState,
        (format, provenance): (FileFormat, Provenance),
    ) {
        let is_complete = self.name_date(key.dt).is_complete;
        let (dataset, record) = (self.batch.dataset, self.record);
        let row = PartitionRow {
            id: partition_id(dataset, key),
            dataset: dataset.clone(),
            source: dataset.source(),
            key: *key,
            base_path: self.folder(key, state),
            file_count: 0,
            row_count: 0,
            byte_size: 0,
            file_format: format,
            created_at: record.at,
            updated_at: record.at,
            is_active: is_visible(state),
            state,
            is_complete,
            checksum: String::new(),
            provenance: provenance.as_str().to_owned(),
            parent_partition_id: None,
            log_position: record.number,
        };
        self.touched.insert(*key);
        self.batch.partitions.insert(*key, Held::new(row, None));
    }

    fn add_file(&mut self, index: usize, key: &PartitionKey, file: &'a DataFileSpec) -> Result<()> {
        if !self.batch.partitions.contains_key(key) {
            let of = (file.format, file.provenance);
            self.create_partition(key, PartitionState::Active, of);
        }
        self.name_date(key.dt);
        let record = self.record;
        let place = Place::New {
            order: self.batch.added,
            spec: file,
            attempt: record.attempt_of(index),
            commit: &record.commit,
            number: record.number,
        };
        self.batch.added += 1;
        let held = self.get_partition(key)?;
        if held.files.contains_key(file.name.as_str()) {
            return Err(wrong_fold(format!(
                "the record adds the file `{}`, which `{key}` holds already",
                file.name
            )));
        }
        let added = HeldFile {
            rows: file.rows,
            bytes: file.bytes,
            blake3: Cow::Borrowed(file.blake3.as_str()),
            provenance: file.provenance,
            format: file.format,
            place,
            stats: None,
        };
        held.put_file(Cow::Borrowed(&file.name), added);
        for parent in &file.parents {
            self.add_parent(key, parent)?;
        }
        Ok(())
    }

    /// The first parent of a partition stands in its row; a later one changes it no more.
    fn add_parent(&mut self, key: &PartitionKey, parent: &'a str) -> Result<()> {
        let parent_partition = parent_id(parent)?;
        let number = self.record.number;
        let held = self.get_partition(key)?;
        let first = &mut held.row.parent_partition_id;
        first.get_or_insert_with(|| parent_partition.clone());
        let partition = held.row.id.clone();
        self.batch.parents.push(Parent {
            partition,
            parent_partition,
            parent,
            number,
        });
        Ok(())
    }

    fn remove_file(&mut self, key: &PartitionKey, name: &str) -> Result<()> {
        let held = self.get_partition(key)?;
        let Some(file) = held.take_file(name) else {
            return Err(wrong_fold(format!(
                "the record removes the file `{name}`, which `{key}` does not hold"
            )));
        };
        if let Place::Known(seq) = file.place {
            held.removed.push(seq);
        }
        Ok(())
    }

    fn set_state(
        &mut self,
        key: &PartitionKey,
        from: PartitionState,
        to: PartitionState,
    ) -> Result<()> {
        let folder = self.folder(key, to);
        let held = self.get_partition(key)?;
        let state = held.row.state;
        if state != from || !from.may_become(to) {
            return Err(wrong_fold(format!(
                "the record moves `{key}` from `{from}` to `{to}`, but it is `{state}`"
            )));
        }
        held.row.state = to;
        held.row.is_active = is_visible(to);
        held.row.base_path = folder;
        if !is_visible(to) {
            held.was_hidden = true;
            held.files.values_mut().for_each(|file| file.stats = None);
        }
        Ok(())
    }

    /// Completeness belongs to the date: every partition of it follows.
    fn set_complete(&mut self, dt: BusinessDate, complete: bool) {
        let (number, at) = (self.record.number, self.record.at);
        let day = self.name_date(dt);
        (day.is_complete, day.number, day.is_changed) = (complete, number, true);
        let first = PartitionKey {
            dt,
            schema_version: 0,
            revision: 0,
        };
        for (key, held) in self.batch.partitions.range_mut(first..) {
            if key.dt != dt {
                return;
            }
            if held.row.is_complete != complete {
                held.row.is_complete = complete;
                held.row.updated_at = at;
                held.row.log_position = number;
                held.is_changed = true;
            }
        }
    }
}

/// A record that contradicts the ones before it.
fn wrong_fold(what: String) -> Error {
    Error::corrupt(what)
        .with("invariant", "CAT-1")
        .hint("the log contradicts itself: run `lakebed audit`; the catalog was not changed")
}
