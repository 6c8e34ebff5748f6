//! `derive` and `lineage`.

use clap::Args;

use crate::args::FormatArgs;

/// `lakebed derive`
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["date", "schema"])))]
pub(crate) struct DeriveArgs {
    /// The source
    #[arg(value_name = "SOURCE")]
    pub(crate) source: String,
    /// Which of its queries, as in [derive.<name>] [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Business date, YYYY-MM-DD
    #[arg(long, value_name = "D")]
    pub(crate) date: Option<String>,
    /// Write the schema version that follows from the types of the query's result, for people to review
    #[arg(long)]
    pub(crate) schema: bool,
    /// Let the rows take the place of rows that another query made, or that came from elsewhere
    #[arg(long, requires = "date")]
    pub(crate) replace: bool,
    /// Why, for the commit log
    #[arg(long, value_name = "TEXT", requires = "date")]
    pub(crate) note: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed lineage`
#[derive(Debug, Args)]
pub(crate) struct LineageArgs {
    /// The dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// Business date [default: the newest with rows]
    #[arg(long, value_name = "D")]
    pub(crate) date: Option<String>,
    /// What it was made from [default]
    #[arg(long, conflicts_with = "down")]
    pub(crate) up: bool,
    /// What was made from it
    #[arg(long)]
    pub(crate) down: bool,
    /// From the rows of this key down to the raw pages: values of the key's columns, `,` between them
    #[arg(long, value_name = "KEY", conflicts_with_all = ["up", "down"])]
    pub(crate) row: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
