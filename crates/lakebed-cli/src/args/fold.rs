//! `fold` and `seed`.

use clap::Args;

use crate::args::FormatArgs;

/// `lakebed fold`
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["date", "schema"])))]
pub(crate) struct FoldArgs {
    /// The source
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// The fold [default: the only one]
    #[arg(long, value_name = "N")]
    pub(crate) name: Option<String>,
    /// Business date, YYYY-MM-DD: make its final snapshot and its events; days before it that were not folded come
    /// first
    #[arg(long, value_name = "D")]
    pub(crate) date: Option<String>,
    /// Write the schema files of snapshot and events that follow from the rules and the inputs' schemas
    #[arg(long)]
    pub(crate) schema: bool,
    /// Work the chain from this date on out anew, as revisions
    #[arg(long, value_name = "D0", requires = "date")]
    pub(crate) from: Option<String>,
    /// From what is there by now, into a file outside of the lake: no parent of anything, and without events
    #[arg(long, requires = "date", conflicts_with = "from")]
    pub(crate) provisional: bool,
    /// Begin from nothing although there is earlier data
    #[arg(long, requires = "date")]
    pub(crate) cold_start: bool,
    /// The list of the date is not complete, and stays so: nothing vanishes, and no day of absence is counted
    #[arg(long, requires = "date")]
    pub(crate) partial: bool,
    /// The list of the date is complete after all, although the date was folded with `--partial`
    #[arg(long, requires = "from", conflicts_with = "partial")]
    pub(crate) complete: bool,
    /// Let as much vanish as it may be: the list of the date was looked at
    #[arg(long, requires = "date")]
    pub(crate) allow_vanished: bool,
    /// Megabytes of an input's rows that are held in memory; more goes to the disk while it is sorted
    #[arg(long, value_name = "MIB", default_value_t = 1024, requires = "date")]
    pub(crate) memory: u32,
    /// Threads [default: the machine's cores]
    #[arg(long, value_name = "N", requires = "date")]
    pub(crate) threads: Option<usize>,
    /// Why, for the commit log
    #[arg(long, value_name = "TEXT", requires = "date")]
    pub(crate) note: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed seed`
#[derive(Debug, Args)]
pub(crate) struct SeedArgs {
    /// The source
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// Business date, YYYY-MM-DD
    #[arg(long, value_name = "D")]
    pub(crate) date: String,
    /// The run of the list
    #[arg(long, value_name = "R", default_value = "day")]
    pub(crate) run: String,
    /// Tell why an object is, or is not, asked for, and write nothing: its key, or a JSON list where it has several
    /// columns
    #[arg(long, value_name = "KEY", conflicts_with = "replace")]
    pub(crate) explain: Option<String>,
    /// Put the plan in the place of another one
    #[arg(long)]
    pub(crate) replace: bool,
    /// Megabytes of the list's rows that are held in memory
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    pub(crate) memory: u32,
    /// Threads [default: the machine's cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
