//! `source new | add | list | show | test | sample`.

use clap::{Args, Subcommand, ValueEnum};

use crate::args::FormatArgs;

/// `lakebed source ...`
#[derive(Debug, Subcommand)]
pub(crate) enum SourceCommand {
    /// Begin a source that is crawled: a working skeleton with rules, a schema, seeds and two pages to try them on
    New(SourceNewArgs),
    /// Add a source: writes sources/NAME/source.toml
    Add(SourceAddArgs),
    /// Every source of the project
    List(SourceListArgs),
    /// One source, with its datasets and schema versions
    Show(SourceShowArgs),
    /// Whether a source is ready: rules, fixtures, schemas, seeds, contact, and nothing private in git
    Test(SourceTestArgs),
    /// Fetch a few pages to write rules by: never part of a day
    Sample(SourceSampleArgs),
}

/// `lakebed source new`
#[derive(Debug, Args)]
pub(crate) struct SourceNewArgs {
    /// Code name: a small letter, then small letters, digits and `_`
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Where the crawl begins [default: an address that does not exist]
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// How those who run the site can reach you: a mail address or a URL, sent with every request
    #[arg(long, value_name = "CONTACT")]
    pub(crate) contact: Option<String>,
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

/// `lakebed source test`
#[derive(Debug, Args)]
pub(crate) struct SourceTestArgs {
    /// The source
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The day for which a command of seeds is asked [default: today in the source's time zone]
    #[arg(long, value_name = "D")]
    pub(crate) date: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed source sample`
#[derive(Debug, Args)]
pub(crate) struct SourceSampleArgs {
    /// The source
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Pages, at most 1,000 [default: 10; 40 with --draft, to see what some items have and others do not]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) limit: Option<u64>,
    /// Seeds instead of those of the source: a file, or - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) seeds: Option<std::path::PathBuf>,
    /// The day under whose name the sample is kept [default: today in the source's time zone]
    #[arg(long, value_name = "D")]
    pub(crate) date: Option<String>,
    /// Keep the first page of each kind that has no fixture yet as one
    #[arg(long)]
    pub(crate) save: bool,
    /// Where the rules are still those of the skeleton, draft others from the pages: first the links of the list, with
    /// which it is sampled again, then the fields; keeps up to five pages of each kind as fixtures
    #[arg(long)]
    pub(crate) draft: bool,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
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
