//! `crawl SOURCE` and `crawl close SOURCE`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::{FormatArgs, RunArgs};

/// `lakebed crawl SOURCE`, or one of its verbs. Source and date are there without a verb.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct CrawlArgs {
    /// The source
    #[arg(value_name = "SOURCE", required = true)]
    pub(crate) source: Option<String>,
    /// Business date, YYYY-MM-DD
    #[arg(long, value_name = "D", required = true)]
    pub(crate) date: Option<String>,
    /// The run, where a date has several [default: day]
    #[arg(long, value_name = "R")]
    pub(crate) run: Option<String>,
    /// Work on this stage alone
    #[arg(long, value_name = "S")]
    pub(crate) stage: Vec<String>,
    /// Fetches of this process at once [default: workers in lakebed.local.toml, else 8]
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<u32>,
    /// File of seeds, `-` for standard input [default: as source.toml says]
    #[arg(long, value_name = "FILE")]
    pub(crate) seeds: Option<PathBuf>,
    /// A plan that `lakebed seed` made: its requests are the seeds, and their number is what the run must have
    #[arg(long, value_name = "FILE", conflicts_with = "seeds")]
    pub(crate) plan: Option<PathBuf>,
    /// Leave the run open when it is drained: something else closes it
    #[arg(long)]
    pub(crate) no_close: bool,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    /// What else.
    #[command(subcommand)]
    pub(crate) command: Option<CrawlCommand>,
}

/// `lakebed crawl close | stop | resume`
#[derive(Debug, Subcommand)]
pub(crate) enum CrawlCommand {
    /// Close a run: its books must balance. Or accept one that closed red
    Close(CrawlCloseArgs),
    /// Stop a run: nothing is claimed any more, and it closes red
    Stop(CrawlStopArgs),
    /// Take a stop back
    Resume(CrawlResumeArgs),
}

/// `lakebed crawl close`
#[derive(Debug, Args)]
pub(crate) struct CrawlCloseArgs {
    /// Which run.
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// End what is left of a run that was stopped, as `given_up`: nobody will go on with it
    #[arg(long)]
    pub(crate) give_up: bool,
    /// Take a run that closed red as it is: it counts as done from now on, and what it lacks stays told
    #[arg(long, requires = "note", conflicts_with = "give_up")]
    pub(crate) accept: bool,
    /// Of a refused pack: what is done and whose response is in no part is gone for good. It dies as `response_lost`, the rest
    /// is sealed, and `queue retry` fetches it anew. Where the lake has a pack of the run, what that one lacks dies
    #[arg(long, conflicts_with_all = ["give_up", "accept"])]
    pub(crate) lost: bool,
    /// With `--lost`: the folder has not a single part of the run, and that is right
    #[arg(long, requires = "lost")]
    pub(crate) no_parts: bool,
    /// Why it is good as it is
    #[arg(long, value_name = "TEXT", requires = "accept")]
    pub(crate) note: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed crawl stop`
#[derive(Debug, Args)]
pub(crate) struct CrawlStopArgs {
    /// Which run.
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: String,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed crawl resume`
#[derive(Debug, Args)]
pub(crate) struct CrawlResumeArgs {
    /// Which run.
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
