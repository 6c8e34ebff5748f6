//! `init` and `config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::args::FormatArgs;

/// `lakebed init`
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The project folder [default: --project, else the current folder]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// IANA time zone of business dates, for example Asia/Taipei; fixed for the lake's life [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub(crate) time_zone: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed config ...`
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Every setting with its value
    Show(ConfigShowArgs),
}

/// `lakebed config show`
#[derive(Debug, Args)]
pub(crate) struct ConfigShowArgs {
    /// Say which file, variable or default each value comes from
    #[arg(long)]
    pub(crate) origin: bool,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
