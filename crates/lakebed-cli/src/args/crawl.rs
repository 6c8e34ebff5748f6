//! `crawl SOURCE` and `crawl close SOURCE`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::{FormatArgs, RunArgs};

/// `lakebed crawl`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct CrawlArgs {
    /// Seed a run, crawl it and close it.
    #[command(flatten)]
    pub(crate) run: Option<CrawlRunArgs>,
    /// What else.
    #[command(subcommand)]
    pub(crate) command: Option<CrawlCommand>,
}

/// `lakebed crawl close | stop | resume`
#[derive(Debug, Subcommand)]
pub(crate) enum CrawlCommand {
    /// Close a run: its books must balance
    Close(CrawlCloseArgs),
    /// Stop a run: nothing is claimed any more, and it closes red
    Stop(CrawlStopArgs),
    /// Take a stop back
    Resume(CrawlResumeArgs),
}

/// `lakebed crawl SOURCE`
#[derive(Debug, Args)]
pub(crate) struct CrawlRunArgs {
    /// Which run.
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Work on this stage alone
    #[arg(long, value_name = "S")]
    pub(crate) stage: Vec<String>,
    /// Fetches of this process at once [default: workers in lakebed.local.toml, else 8]
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<u32>,
    /// File of seeds, `-` for standard input [default: as source.toml says]
    #[arg(long, value_name = "FILE")]
    pub(crate) seeds: Option<PathBuf>,
    /// Leave the run open when it is drained: something else closes it
    #[arg(long)]
    pub(crate) no_close: bool,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed crawl close`
#[derive(Debug, Args)]
pub(crate) struct CrawlCloseArgs {
    /// Which run.
    #[command(flatten)]
    pub(crate) run: RunArgs,
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
