//! `catalog status | sync | rebuild` and `partitions`.

use clap::{Args, Subcommand};

use crate::args::FormatArgs;

/// `lakebed catalog ...`
#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// How far the catalog follows each log, by its numbers and by what waits (`audit` reads the rest); exits 1 when it is behind, 3 when a log cannot be read
    Status(CatalogStatusArgs),
    /// Apply what the logs hold beyond the catalog
    Sync(CatalogSyncArgs),
    /// Make the catalog anew from the lake alone; a damaged file is kept as `catalog.db.damaged-N`
    Rebuild(CatalogRebuildArgs),
}

/// `lakebed catalog status`
#[derive(Debug, Args)]
pub(crate) struct CatalogStatusArgs {
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed catalog sync`
#[derive(Debug, Args)]
pub(crate) struct CatalogSyncArgs {
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed catalog rebuild`
#[derive(Debug, Args)]
pub(crate) struct CatalogRebuildArgs {
    /// Read every record from the first one, trusting no checkpoint
    #[arg(long)]
    pub(crate) full: bool,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed partitions`
#[derive(Debug, Args)]
pub(crate) struct PartitionsArgs {
    /// The dataset [default: all]
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: Option<String>,
    /// Show revisions that readers do not see, too, with the state of each
    #[arg(long)]
    pub(crate) all: bool,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
