//! `run`, `status`, `watch`, `flow`.

use clap::Args;

use crate::args::FormatArgs;

/// Of which dates.
#[derive(Debug, Clone, Args)]
pub(crate) struct DatesArgs {
    /// Business date, YYYY-MM-DD
    #[arg(long, value_name = "D", conflicts_with_all = ["from", "to"])]
    pub(crate) date: Option<String>,
    /// The first of several dates
    #[arg(long, value_name = "A", requires = "to")]
    pub(crate) from: Option<String>,
    /// The last of them
    #[arg(long, value_name = "B", requires = "from")]
    pub(crate) to: Option<String>,
}

/// `lakebed run`
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("when").required(true).multiple(true).args(["date", "from", "to"])))]
pub(crate) struct RunFlowArgs {
    /// The sources [default: every one that has a flow]
    #[arg(value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// Which dates.
    #[command(flatten)]
    pub(crate) dates: DatesArgs,
    /// The run, where a date has several; any but `day` is a sweep
    #[arg(long, value_name = "R", default_value = "day")]
    pub(crate) run: String,
    /// Run this stage and all behind it again, whatever their stamps say: changed rules make new revisions
    #[arg(long, value_name = "S")]
    pub(crate) from_stage: Option<String>,
    /// Run nothing but this stage and all before it
    #[arg(long, value_name = "S")]
    pub(crate) to_stage: Option<String>,
    /// Say what would run, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Sources at once [default: the machine's cores]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed status`
#[derive(Debug, Args)]
pub(crate) struct FlowStatusArgs {
    /// The sources [default: every one that has a flow]
    #[arg(value_name = "SOURCE")]
    pub(crate) sources: Vec<String>,
    /// Which dates; none = the last seven days, from the first one of which there is anything, and days to come that have something.
    #[command(flatten)]
    pub(crate) dates: DatesArgs,
    /// A run that is shown beside `day` and those that have left something
    #[arg(long, value_name = "R")]
    pub(crate) run: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed watch`
#[derive(Debug, Args)]
pub(crate) struct FlowWatchArgs {
    /// The source
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// Business date, YYYY-MM-DD
    #[arg(long, value_name = "D")]
    pub(crate) date: String,
    /// The run
    #[arg(long, value_name = "R", default_value = "day")]
    pub(crate) run: String,
    /// End after so many seconds [default: never]
    #[arg(long, value_name = "N")]
    pub(crate) seconds: Option<u32>,
    /// Output: text, or one JSON object a line.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed flow`
#[derive(Debug, Args)]
pub(crate) struct FlowArgs {
    /// The source
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// Business date, YYYY-MM-DD
    #[arg(long, value_name = "D")]
    pub(crate) date: String,
    /// The run
    #[arg(long, value_name = "R", default_value = "day")]
    pub(crate) run: String,
    /// Print a Makefile that runs the same command lines in the same order
    #[arg(long)]
    pub(crate) print_make: bool,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
