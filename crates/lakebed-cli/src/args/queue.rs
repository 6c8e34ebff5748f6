//! `queue status | list | retry | watch | prune`.

use clap::{Args, Subcommand, ValueEnum};

use crate::args::FormatArgs;

/// `lakebed queue`
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Requests by source, date, run, stage and state
    Status(QueueStatusArgs),
    /// Requests of a run, one a line
    List(QueueListArgs),
    /// Try the dead requests of a closed run again, in a run of their own
    Retry(QueueRetryArgs),
    /// Follow what happens: runs, workers, hosts, and the counts
    Watch(QueueWatchArgs),
    /// Delete closed runs with all their requests, and their parts where the pack holds them; packs keep how each ended
    Prune(QueuePruneArgs),
}

/// Which run.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// The source
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// Business date, YYYY-MM-DD
    #[arg(long, value_name = "D")]
    pub(crate) date: String,
    /// The run, where a date has several
    #[arg(long, value_name = "R", default_value = "day")]
    pub(crate) run: String,
}

/// `lakebed queue status`
#[derive(Debug, Args)]
pub(crate) struct QueueStatusArgs {
    /// Of this source alone
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// The newest so many runs
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: u32,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// A state of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum StateArg {
    /// Waits for a worker.
    Pending,
    /// Claimed.
    InFlight,
    /// Answered.
    Done,
    /// Waits for another attempt.
    Failed,
    /// Given up.
    Dead,
}

/// `lakebed queue list`
#[derive(Debug, Args)]
pub(crate) struct QueueListArgs {
    /// Which run.
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// In this state alone
    #[arg(long, value_enum)]
    pub(crate) state: Option<StateArg>,
    /// Of this stage alone
    #[arg(long, value_name = "S")]
    pub(crate) stage: Option<String>,
    /// Of this error class alone, such as http_403
    #[arg(long, value_name = "C")]
    pub(crate) class: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) limit: u32,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed queue retry`
#[derive(Debug, Args)]
pub(crate) struct QueueRetryArgs {
    /// Which run.
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Name of the new run
    #[arg(long = "as", value_name = "R")]
    pub(crate) new_run: String,
    /// Of this error class alone
    #[arg(long, value_name = "C")]
    pub(crate) class: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed queue watch`
#[derive(Debug, Args)]
pub(crate) struct QueueWatchArgs {
    /// Begin with the newest so many events
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) last: u32,
    /// End after so many seconds [default: never]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<u64>,
    /// Output: `json` is one object a line.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed queue prune`
#[derive(Debug, Args)]
pub(crate) struct QueuePruneArgs {
    /// Runs of business dates before this one
    #[arg(long, value_name = "D")]
    pub(crate) before: String,
    /// Of this source alone
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<String>,
    /// Runs that are red and that nobody accepted, too: what died in them is tried again no more
    #[arg(long)]
    pub(crate) red: bool,
    /// Say what would go, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
