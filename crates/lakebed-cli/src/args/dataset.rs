//! Commands on one dataset: `rejects`, `seal`, `reopen`, `abandon`, `log`.

use clap::Args;

use crate::args::FormatArgs;

/// `lakebed rejects`
#[derive(Debug, Args)]
pub(crate) struct RejectsArgs {
    /// The dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// Business date, YYYY-MM-DD
    #[arg(long, value_name = "D")]
    pub(crate) date: String,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed seal`
#[derive(Debug, Args)]
pub(crate) struct SealArgs {
    /// The dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// Business date, YYYY-MM-DD
    #[arg(long, value_name = "D")]
    pub(crate) date: String,
    /// Why, for the commit log
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed reopen`
#[derive(Debug, Args)]
pub(crate) struct ReopenArgs {
    /// The dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// Business date, YYYY-MM-DD
    #[arg(long, value_name = "D")]
    pub(crate) date: String,
    /// Why, for the commit log
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed abandon`
#[derive(Debug, Args)]
pub(crate) struct AbandonArgs {
    /// The dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// The attempt, as `audit` names it
    #[arg(value_name = "ATTEMPT")]
    pub(crate) attempt: String,
    /// Abandon it although neither log nor stage knows it: a call that sleeps may hold it
    #[arg(long)]
    pub(crate) unseen: bool,
    /// Why, for the commit log
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed log`
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// The dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// What readers see differently between two points: record numbers or instants, `7..9`, or `7..` up to now
    #[arg(long, value_name = "A..B")]
    pub(crate) diff: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
