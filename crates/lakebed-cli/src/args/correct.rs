//! `correct`, `switch`, `rollback`: revisions of a date.

use clap::Args;

use crate::args::{FormatArgs, KeepAs, LoadArg, MismatchArg, ProvenanceArg, schema::ReadArgs};

/// `lakebed correct`
#[derive(Debug, Args)]
pub(crate) struct CorrectArgs {
    /// The dataset, for example clean/wechat
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// Files or globs that hold the whole date anew (JSONL, JSON, CSV, TSV, Parquet; plain, gz, zst or zip); `-` = standard input
    #[arg(value_name = "FILES", required = true)]
    pub(crate) files: Vec<String>,
    /// Business date to replace, YYYY-MM-DD
    #[arg(long, value_name = "D")]
    pub(crate) date: String,
    /// Build the revision, but leave the date as it is until `lakebed switch`
    #[arg(long)]
    pub(crate) keep: bool,
    /// Why, for the commit log
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// The run that fetched them, for example 0900
    #[arg(long, value_name = "R")]
    pub(crate) run: Option<String>,
    /// Seal the date with this commit; a sealed date stays sealed without it
    #[arg(long, conflicts_with = "keep")]
    pub(crate) complete: bool,
    /// `full`: these rows are all there is, what earlier loads had and they lack is gone from DATASET__latest; `incremental`: they add to it
    #[arg(long, value_enum, default_value_t = LoadArg::Incremental)]
    pub(crate) load: LoadArg,
    /// How the rows came to be [default: live today, backfill for an earlier date]
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
    /// Label of this delivery
    #[arg(long, value_name = "ID")]
    pub(crate) batch: Option<String>,
    /// Reading.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Take a file without any record as 0 rows
    #[arg(long)]
    pub(crate) allow_empty: bool,
    /// Store inputs again whose rows were retired
    #[arg(long)]
    pub(crate) restore: bool,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed switch`
#[derive(Debug, Args)]
pub(crate) struct SwitchArgs {
    /// The dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// Business date, YYYY-MM-DD
    #[arg(long, value_name = "D")]
    pub(crate) date: String,
    /// The revision that readers shall see, as `partitions --all` names it
    #[arg(long, value_name = "N")]
    pub(crate) revision: u32,
    /// What is common to both ways.
    #[command(flatten)]
    pub(crate) how: SwitchHowArgs,
}

/// `lakebed rollback`
#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// The dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// Business date, YYYY-MM-DD
    #[arg(long, value_name = "D")]
    pub(crate) date: String,
    /// What is common to both ways.
    #[command(flatten)]
    pub(crate) how: SwitchHowArgs,
}

/// How a date is switched.
#[derive(Debug, Args)]
pub(crate) struct SwitchHowArgs {
    /// Hide inputs that were added since, too
    #[arg(long)]
    pub(crate) drop_late: bool,
    /// Why, for the commit log
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
