//! A stamp: that a stage of a flow is done, for which inputs, by which rules, and what came of it.
//!
//! `flow/<source>/<date>/<run>/<stage>.done` in the lake: canonical JSON (keys in the order of these types, no blanks), a
//! line feed at its end. It holds no time, no machine and no id of a commit, so that a flow which was interrupted leaves
//! the same bytes as one which was not.
//!
//! A scope is judged by `content`, which names what readers see of the dates: it does not change when a date is
//! sealed or files are compacted into others of the same inputs. `position` is for people and for lineage.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::name::{ContentHash, DatasetRef, FlowStageName, RunName, SourceName};
use crate::time::BusinessDate;

/// Version of the stamps that this program writes, and the newest that it reads.
pub const STAMP_FORMAT: u32 = 1;

/// A stamp.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StampSpec {
    /// [`STAMP_FORMAT`] of the writer.
    pub format: u32,
    /// The source.
    pub source: SourceName,
    /// The business date that the stage worked on; of a stage of a month, the month's first.
    pub date: BusinessDate,
    /// The run; `_day` and `_month` for stages that belong to a day or a month.
    pub run: RunName,
    /// The stage.
    pub stage: FlowStageName,
    /// Its kind.
    pub kind: String,
    /// Names the part of the configuration that decides what the stage makes.
    pub rules: ContentHash,
    /// What it read.
    pub inputs: Vec<StampScope>,
    /// Files of the project that it read.
    pub input_files: Vec<StampFile>,
    /// What it wrote.
    pub outputs: Vec<StampScope>,
    /// Files of the project that it wrote.
    pub output_files: Vec<StampFile>,
}

/// Some dates of a dataset, as readers saw them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StampScope {
    /// The dataset.
    pub dataset: DatasetRef,
    /// Of several dates the first that has rows; absent = `dt` alone, or none has.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<BusinessDate>,
    /// The business date, or the last of several.
    pub dt: BusinessDate,
    /// Of packs: these runs alone; empty = all.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub runs: Vec<RunName>,
    /// Number of the last record that added something of it; 0 = there is nothing.
    pub position: u64,
    /// The revision of `dt`.
    pub revision: u32,
    /// Of outputs: whether every date with rows was sealed.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub sealed: bool,
    /// Names what readers saw: the inputs of the visible partitions, in order; absent = nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content: Option<ContentHash>,
}

/// A file of the project.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StampFile {
    /// Its path from the project folder on, with `/`.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// BLAKE3 of its bytes.
    pub blake3: ContentHash,
}

impl StampSpec {
    /// The bytes of the file.
    ///
    /// # Errors
    /// `Internal`, which cannot happen.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec(self)
            .map_err(|e| Error::internal("write a stamp as JSON").caused_by(e))?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads the bytes of the file `name`.
    ///
    /// # Errors
    /// `Unavailable` for a newer format; `CorruptData` for what is no stamp.
    pub fn read(bytes: &[u8], name: &str) -> Result<Self> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let corrupt = |e: serde_json::Error| {
            Error::corrupt(format!("read a stamp: {e}"))
                .with("file", name)
                .hint("delete it: the stage then runs again, which stores nothing twice")
        };
        let head: Head = serde_json::from_slice(bytes).map_err(corrupt)?;
        if head.format > STAMP_FORMAT {
            return Err(Error::unavailable(format!(
                "the stamp has format {}, this program knows {STAMP_FORMAT}",
                head.format
            ))
            .with("file", name)
            .hint("install the newer program on this machine"));
        }
        serde_json::from_slice(bytes).map_err(corrupt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_what_was_written_and_newer_ones_are_refused() {
        let stamp = StampSpec {
            format: STAMP_FORMAT,
            source: "rent".parse().unwrap(),
            date: "2026-11-30".parse().unwrap(),
            run: "day".parse().unwrap(),
            stage: "fold.rents".parse().unwrap(),
            kind: "fold".to_owned(),
            rules: ContentHash::of(b"rules"),
            inputs: vec![StampScope {
                dataset: "clean/rent".parse().unwrap(),
                from: Some("2026-11-01".parse().unwrap()),
                dt: "2026-11-30".parse().unwrap(),
                runs: vec!["0900".parse().unwrap()],
                position: 7,
                revision: 1,
                sealed: true,
                content: None,
            }],
            input_files: Vec::new(),
            outputs: Vec::new(),
            output_files: vec![StampFile {
                path: "輸出/表.csv".to_owned(),
                bytes: 3,
                blake3: ContentHash::of(b"abc"),
            }],
        };
        let bytes = stamp.to_bytes().unwrap();
        assert_eq!(StampSpec::read(&bytes, "x").unwrap(), stamp);
        let newer = String::from_utf8(bytes)
            .unwrap()
            .replacen("\"format\":1", "\"format\":2", 1);
        let error = StampSpec::read(newer.as_bytes(), "x").unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Unavailable);
        let error = StampSpec::read(b"{\"format\":1}", "x").unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::CorruptData);
    }
}
