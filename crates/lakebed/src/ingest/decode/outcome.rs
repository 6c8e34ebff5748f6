//! What decoding a chunk gives: columns, rejects, drift, presence; all of it mergeable in order.

use arrow_array::RecordBatch;
use serde::Serialize;

use crate::ingest::convert::{Drift, PresenceCounts, RejectDraft};

/// What to do with records that do not fit the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mismatch {
    /// Nothing is written.
    #[default]
    Fail,
    /// Good records are stored, the others kept with their reasons.
    Quarantine,
    /// As quarantine, but unknown fields go to the column `_extra`.
    Extra,
}

impl Mismatch {
    /// The name on the command line and in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Quarantine => "quarantine",
            Self::Extra => "extra",
        }
    }
}

impl std::str::FromStr for Mismatch {
    type Err = crate::Error;
    fn from_str(text: &str) -> crate::Result<Self> {
        match text {
            "fail" => Ok(Self::Fail),
            "quarantine" => Ok(Self::Quarantine),
            "extra" => Ok(Self::Extra),
            _ => Err(
                crate::Error::invalid(format!("`{text}` is not a mismatch policy"))
                    .hint("use `fail`, `quarantine` or `extra`"),
            ),
        }
    }
}

/// Counts, presence and drift of a chunk, or of several in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DecodeStats {
    /// Records that were read as records: `rows` + those of the rejected that are records.
    pub records: u64,
    /// Rows stored.
    pub rows: u64,
    /// Rejects, whether their text was kept or not.
    pub rejected: u64,
    /// Of the rejects: what was no record at all (bad syntax, scalars, ragged rows, repeated headers).
    pub not_records: u64,
    /// Records with something in `_extra`.
    pub extra_rows: u64,
    /// Lone surrogates replaced by U+FFFD.
    pub lone_surrogates: u64,
    /// NUL characters kept.
    pub nul_characters: u64,
    /// Presence per top-level field.
    pub presence: PresenceCounts,
    /// How records differ from the schema.
    pub drift: Drift,
}

impl DecodeStats {
    /// Adds the stats of the chunk that follows.
    pub fn merge(&mut self, later: Self) {
        self.records += later.records;
        self.rows += later.rows;
        self.rejected += later.rejected;
        self.not_records += later.not_records;
        self.extra_rows += later.extra_rows;
        self.lone_surrogates += later.lone_surrogates;
        self.nul_characters += later.nul_characters;
        self.presence.merge(&later.presence);
        self.drift.merge(later.drift);
    }
}

/// A decoded chunk.
#[derive(Debug)]
pub struct Decoded {
    /// Finished columns in the order of the input, matching `spec::arrow_schema`; no empty batches.
    /// Nearly always one; a chunk that would overflow the 32-bit offsets of a column gives more.
    pub batches: Vec<RecordBatch>,
    /// Rejected records in order; under [`Mismatch::Fail`] only the first of them
    /// (`stats.rejected` has the whole number).
    pub rejects: Vec<RejectDraft>,
    /// Everything that is only counted.
    pub stats: DecodeStats,
}
