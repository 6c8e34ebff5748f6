//! `parse`: what the rules of a source give.

use clap::Args;

use crate::args::{FormatArgs, MismatchArg};

/// `lakebed parse`
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["page", "test", "schema", "date", "draft"])))]
#[command(group(clap::ArgGroup::new("writable").args(["test", "draft"])))]
#[command(group(clap::ArgGroup::new("forcible").args(["schema", "draft"])))]
pub(crate) struct ParseArgs {
    /// The source
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// Show what the rules give for one page: a URL, a capture id, a request key or the `_raw` of a row, out of the
    /// newest pack that has it, or a file
    #[arg(long = "try", value_name = "PAGE")]
    pub(crate) page: Option<String>,
    /// By the rules of this file, which is like source.toml, instead of the source's: a page is tried by them, and days
    /// are stored by both, in datasets of their own, until one takes the place of the other
    #[arg(long, value_name = "FILE", conflicts_with = "test")]
    pub(crate) rules: Option<std::path::PathBuf>,
    /// Of a file: where it was found [default: what its fixture says, else the source's `url`, or one that was made up]
    #[arg(long, value_name = "URL", conflicts_with = "test")]
    pub(crate) url: Option<String>,
    /// Of a file: the stage of its request [default: what its fixture says, else that of the first rule]
    #[arg(long, value_name = "STAGE", conflicts_with = "test")]
    pub(crate) stage: Option<String>,
    /// Keep the page and what it gave as a fixture of this name
    #[arg(long, value_name = "NAME", conflicts_with = "test")]
    pub(crate) save: Option<String>,
    /// Compare what the rules give for the pages in the folder `fixtures` with what is expected
    #[arg(long)]
    pub(crate) test: bool,
    /// Write what they give as what is expected from now on; a draft into source.toml
    #[arg(long, requires = "writable")]
    pub(crate) write: bool,
    /// Draft rules from the pages that `source sample` kept and the fixtures: links of the stage that the crawl begins
    /// with, fields of the others
    #[arg(long, value_name = "STAGE", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["rules", "url", "stage", "save"])]
    pub(crate) draft: Option<String>,
    /// Write the schema version of each dataset that follows from the rules and the fixtures, for people to review; a
    /// file that was edited is shown with its differences, and kept
    #[arg(long, conflicts_with = "rules")]
    pub(crate) schema: bool,
    /// Write it in the place of one that was edited, too; what is published is never touched
    #[arg(long, requires = "forcible")]
    pub(crate) force: bool,
    /// Parse the packs of these business dates, D or A..B, both included, and store what is not there yet: packs that
    /// came since are added, changed rules or packs make a new revision of the date
    #[arg(long, value_name = "DATES")]
    pub(crate) date: Option<String>,
    /// What happens to records that do not fit their schema [default: the setting `on_mismatch`]
    #[arg(long, value_enum, requires = "date")]
    pub(crate) on_mismatch: Option<MismatchArg>,
    /// Let the records take the place of rows that no replay made, or of more than twice as many
    #[arg(long, requires = "date")]
    pub(crate) replace: bool,
    /// Add to sealed dates what packs give that came after the seal; they stay sealed
    #[arg(long, requires = "date", conflicts_with = "rules")]
    pub(crate) late: bool,
    /// Why, for the commit log
    #[arg(long, value_name = "TEXT", requires = "date")]
    pub(crate) note: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
