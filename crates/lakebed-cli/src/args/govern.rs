//! `audit`.

use clap::Args;

use crate::args::FormatArgs;

/// `lakebed audit`
#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Read every file and compare its checksum
    #[arg(long)]
    pub(crate) deep: bool,
    /// Mend what the log decides: finish moves, abandon dead attempts, follow the log in the catalog
    #[arg(long)]
    pub(crate) repair: bool,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
