//! A fold from the rows of a checkpoint; a row that does not fit the others ends it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as WordError, StrDeserializer};

use crate::error::{Error, Result};
use crate::log::checkpoint::row::{More, Row};
use crate::log::state::{
    DatasetState, DateState, FileState, InputState, Partition, RejectsState, RevisionState,
};
use crate::name::{AttemptId, CommitId, ContentHash};
use crate::spec::{DataFileSpec, InputSpec, PartitionKey, RejectsFileSpec};

/// Builds a fold from its rows.
#[derive(Debug)]
pub(super) struct Assembly {
    state: DatasetState,
    records: BTreeMap<u64, (Option<CommitId>, Option<AttemptId>)>,
}

impl Assembly {
    /// Begins with a fold that holds nothing but its position.
    pub(super) fn new(state: DatasetState) -> Self {
        Self {
            state,
            records: BTreeMap::new(),
        }
    }

    /// The fold.
    pub(super) fn finish(self) -> DatasetState {
        self.state
    }

    /// Takes the next row.
    pub(super) fn add(&mut self, row: &Row<'_>) -> Result<()> {
        match row.kind {
            "record" => self.add_record(row),
            "date" => self.add_date(row),
            "revision" => self.add_revision(row),
            "rejects" => self.add_rejects(row),
            "partition" => self.add_partition(row),
            "file" => self.add_file(row),
            "input" => self.add_input(row),
            "joined" => {
                let attempt = need(row.attempt, "attempt")?.parse()?;
                let number = need(row.number, "number")?;
                self.state.joined.insert(attempt, number);
                Ok(())
            }
            "abandoned" => {
                let attempt = need(row.attempt, "attempt")?.parse()?;
                let number = need(row.number, "number")?;
                self.state.abandoned.insert(attempt, number);
                Ok(())
            }
            "erased" => {
                let content = ContentHash::from_bytes(need(row.hash, "hash")?);
                self.state.erased.insert(content);
                Ok(())
            }
            other => Err(Error::corrupt(format!("a row of the kind `{other}`"))),
        }
    }

    fn add_record(&mut self, row: &Row<'_>) -> Result<()> {
        let number = need(row.number, "number")?;
        let commit: Option<CommitId> = row.commit.map(str::parse).transpose()?;
        let attempt: Option<AttemptId> = row.attempt.map(str::parse).transpose()?;
        if let Some(commit) = &commit {
            self.state.commits.insert(commit.clone(), number);
        }
        if let Some(attempt) = &attempt {
            self.state.attempts.insert(attempt.clone(), number);
        }
        self.records.insert(number, (commit, attempt));
        Ok(())
    }

    fn add_date(&mut self, row: &Row<'_>) -> Result<()> {
        let date = DateState {
            sealed: row.sealed.zip(row.at),
            rejects: Vec::new(),
            active: small(row.revision, "revision")?,
            revisions: BTreeMap::new(),
            changed: need(row.number, "number")?,
        };
        self.state.dates.insert(need(row.dt, "dt")?, date);
        Ok(())
    }

    fn date(&mut self, row: &Row<'_>) -> Result<&mut DateState> {
        let dt = need(row.dt, "dt")?;
        let date = self.state.dates.get_mut(&dt);
        date.ok_or_else(|| Error::corrupt(format!("a {} row of the unknown date {dt}", row.kind)))
    }

    fn add_revision(&mut self, row: &Row<'_>) -> Result<()> {
        let began = RevisionState {
            number: need(row.number, "number")?,
            base: small(row.base, "base")?,
        };
        let revision = small(row.revision, "revision")?;
        self.date(row)?.revisions.insert(revision, began);
        Ok(())
    }

    fn add_rejects(&mut self, row: &Row<'_>) -> Result<()> {
        let number = need(row.number, "number")?;
        let rejects = RejectsState {
            spec: RejectsFileSpec {
                name: need(row.name, "name")?.to_owned(),
                records: need(row.rows, "rows")?,
                bytes: need(row.bytes, "bytes")?,
                blake3: ContentHash::from_bytes(need(row.hash, "hash")?),
            },
            attempt: self.attempt(row, number)?,
            number,
            commit: self.commit(row, number)?,
            retried_by: more(row)?.retried_by,
        };
        self.date(row)?.rejects.push(rejects);
        Ok(())
    }

    fn add_partition(&mut self, row: &Row<'_>) -> Result<()> {
        let partition = Partition {
            state: word(need(row.state, "state")?)?,
            since: need(row.number, "number")?,
            superseded_by: more(row)?.superseded_by,
            files: BTreeMap::new(),
            inputs: Vec::new(),
        };
        self.state.partitions.insert(key(row)?, partition);
        Ok(())
    }

    fn partition(&mut self, key: &PartitionKey) -> Result<&mut Partition> {
        let partition = self.state.partitions.get_mut(key);
        partition.ok_or_else(|| Error::corrupt(format!("a row of the unknown partition {key}")))
    }

    fn add_file(&mut self, row: &Row<'_>) -> Result<()> {
        let number = need(row.number, "number")?;
        let more = more(row)?;
        let file = FileState {
            spec: DataFileSpec {
                name: need(row.name, "name")?.to_owned(),
                format: word(need(row.format, "format")?)?,
                rows: need(row.rows, "rows")?,
                bytes: need(row.bytes, "bytes")?,
                blake3: ContentHash::from_bytes(need(row.hash, "hash")?),
                provenance: word(need(row.provenance, "provenance")?)?,
                bounds: more.bounds,
                parents: more.parents,
            },
            attempt: self.attempt(row, number)?,
            number,
        };
        let name = file.spec.name.clone();
        self.partition(&key(row)?)?.files.insert(name, file);
        Ok(())
    }

    fn add_input(&mut self, row: &Row<'_>) -> Result<()> {
        let number = need(row.number, "number")?;
        let key = key(row)?;
        let input = InputState {
            spec: InputSpec {
                content: ContentHash::from_bytes(need(row.hash, "hash")?),
                name: need(row.name, "name")?.to_owned(),
                bytes: need(row.bytes, "bytes")?,
                rows: need(row.rows, "rows")?,
                rejected: need(row.rejected, "rejected")?,
                rules: need(row.rules, "rules")?.to_owned(),
                batch: row.batch.map(str::parse).transpose()?,
                load: word(need(row.load, "load")?)?,
                parents: more(row)?.derived_from,
            },
            number,
            commit: self.commit(row, number)?,
        };
        let at = self.partition(&key)?.inputs.len();
        self.state.inputs.insert(key, at, &input.spec);
        self.partition(&key)?.inputs.push(input);
        Ok(())
    }

    fn commit(&self, row: &Row<'_>, number: u64) -> Result<CommitId> {
        if let Some(odd) = row.commit {
            return odd.parse();
        }
        let known = self.records.get(&number).and_then(|(c, _)| c.clone());
        known.ok_or_else(|| Error::corrupt(format!("no commit of record {number}")))
    }

    fn attempt(&self, row: &Row<'_>, number: u64) -> Result<Option<AttemptId>> {
        if let Some(odd) = row.attempt {
            return odd.parse().map(Some);
        }
        Ok(self.records.get(&number).and_then(|(_, a)| a.clone()))
    }
}

fn need<T>(value: Option<T>, what: &str) -> Result<T> {
    value.ok_or_else(|| Error::corrupt(format!("a row without its `{what}`")))
}

fn small(value: Option<u64>, what: &str) -> Result<u32> {
    u32::try_from(need(value, what)?)
        .map_err(|e| Error::corrupt(format!("a row with a `{what}` out of range")).caused_by(e))
}

fn key(row: &Row<'_>) -> Result<PartitionKey> {
    Ok(PartitionKey {
        dt: need(row.dt, "dt")?,
        schema_version: small(row.schema_version, "schema_version")?,
        revision: small(row.revision, "revision")?,
    })
}

fn more(row: &Row<'_>) -> Result<More> {
    match row.more {
        None => Ok(More::default()),
        Some(text) => serde_json::from_str(text).map_err(|e| {
            Error::corrupt("a row whose `more` is not what it should be").caused_by(e)
        }),
    }
}

/// A word of a closed set, as serde reads it.
fn word<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T> {
    let from: StrDeserializer<'a, WordError> = text.into_deserializer();
    T::deserialize(from).map_err(|e| Error::corrupt(format!("a row with `{text}`: {e}")))
}
