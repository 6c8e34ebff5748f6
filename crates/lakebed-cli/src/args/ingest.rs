//! `ingest`.

use clap::{Args, ValueEnum};

use crate::args::{FormatArgs, schema::ReadArgs};

/// `lakebed ingest`
#[derive(Debug, Args)]
pub(crate) struct IngestArgs {
    /// The dataset, for example clean/wechat
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// Files or globs (JSONL, JSON, CSV, TSV, Parquet; plain, gz, zst or zip); `-` = standard input
    #[arg(value_name = "FILES", required_unless_present = "rejects_of")]
    pub(crate) files: Vec<String>,
    /// Business date of the rows, YYYY-MM-DD
    #[arg(long, value_name = "D")]
    pub(crate) date: String,
    /// The run that fetched them, for example 0900
    #[arg(long, value_name = "R")]
    pub(crate) run: Option<String>,
    /// Seal the date with this commit
    #[arg(long)]
    pub(crate) complete: bool,
    /// Add to a sealed date: opens it first
    #[arg(long)]
    pub(crate) late: bool,
    /// `full`: these rows are all there is, what earlier loads had and they lack is gone from DATASET__latest; `incremental`: they add to it
    #[arg(long, value_enum, default_value_t = LoadArg::Incremental)]
    pub(crate) load: LoadArg,
    /// How the rows came to be [default: live]
    #[arg(long, value_enum)]
    pub(crate) provenance: Option<ProvenanceArg>,
    /// As what the records are kept: `parquet` = tables with a schema, `jsonl` = whole JSON values, one a line
    /// [default: as the dataset's files are, else parquet]
    #[arg(long = "as", value_enum, value_name = "FORMAT")]
    pub(crate) keep_as: Option<KeepAs>,
    /// Schema version of the rows [default: the newest published]
    #[arg(long, value_name = "N")]
    pub(crate) schema_version: Option<u32>,
    /// What to do with records that do not fit [default: as configured, else fail]
    #[arg(long, value_enum)]
    pub(crate) on_mismatch: Option<MismatchArg>,
    /// Label of this delivery: equal content under a new label is another observation
    #[arg(long, value_name = "ID")]
    pub(crate) batch: Option<String>,
    /// Reading.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Take a file without any record as 0 rows
    #[arg(long)]
    pub(crate) allow_empty: bool,
    /// Try the records that this commit put into quarantine again
    #[arg(long, value_name = "COMMIT", conflicts_with = "files")]
    pub(crate) rejects_of: Option<String>,
    /// Store inputs again whose rows were retired
    #[arg(long)]
    pub(crate) restore: bool,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// Format of the files that a call writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeepAs {
    /// Tables.
    Parquet,
    /// What is no table.
    Jsonl,
}

/// What an input means for the versions of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoadArg {
    /// It replaces everything known before it.
    Full,
    /// It adds to what is known.
    Incremental,
}

/// How rows came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProvenanceArg {
    /// Crawled on their day.
    Live,
    /// Filled in later.
    Backfill,
}

/// What happens to records that do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MismatchArg {
    /// Nothing is written; every drifted field is named.
    Fail,
    /// Good records are stored, the others are kept apart with reasons.
    Quarantine,
    /// As quarantine, but unknown fields alone go into the column `_extra`.
    Extra,
}
