//! `shadow`: two implementations of a stage over the same inputs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::args::FormatArgs;

/// `lakebed shadow`
#[derive(Debug, Args)]
pub(crate) struct ShadowArgs {
    /// The source
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// The stage
    #[arg(value_enum, value_name = "STAGE", default_value_t = ShadowStage::Parse)]
    pub(crate) stage: ShadowStage,
    /// Which fold, query or shell stage, where the source has several
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// What is tried beside what there is: a file like source.toml, with other rules, queries or programs
    #[arg(long = "with", value_name = "FILE")]
    pub(crate) with: PathBuf,
    /// Business dates, D or A..B, both included
    #[arg(long, value_name = "DATES")]
    pub(crate) date: String,
    /// A field that is not compared, `field` or `dataset.field`; may be given several times
    #[arg(long, value_name = "FIELD")]
    pub(crate) ignore: Vec<String>,
    /// A switch is called safe after so many equal days in a row
    #[arg(long, value_name = "DAYS", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=366))]
    pub(crate) safe_after: u32,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// A stage that has a shadow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShadowStage {
    /// What the rules give for the pages of a date
    Parse,
    /// What a fold makes of the rows of a date: snapshot and events
    Fold,
    /// What a query gives for its parents
    Derive,
    /// What the command of a shell stage leaves: its files
    Shell,
}
