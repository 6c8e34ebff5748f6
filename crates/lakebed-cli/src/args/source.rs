//! `source add | list | show`.

use clap::{Args, Subcommand, ValueEnum};

use crate::args::FormatArgs;

/// `lakebed source ...`
#[derive(Debug, Subcommand)]
pub(crate) enum SourceCommand {
    /// Add a source: writes sources/NAME/source.toml
    Add(SourceAddArgs),
    /// Every source of the project
    List(SourceListArgs),
    /// One source, with its datasets and schema versions
    Show(SourceShowArgs),
}

/// `lakebed source add`
#[derive(Debug, Args)]
pub(crate) struct SourceAddArgs {
    /// Code name: a small letter, then small letters, digits and `_`
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// What its data means from day to day
    #[arg(long, value_enum, default_value_t = ClassArg::Log)]
    pub(crate) class: ClassArg,
    /// Title for people, in any script
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed source list`
#[derive(Debug, Args)]
pub(crate) struct SourceListArgs {
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed source show`
#[derive(Debug, Args)]
pub(crate) struct SourceShowArgs {
    /// The source
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// Class of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClassArg {
    /// Each day adds observations.
    Log,
    /// Each day holds the whole.
    Snapshot,
    /// Slowly changing look-up data.
    Reference,
}
