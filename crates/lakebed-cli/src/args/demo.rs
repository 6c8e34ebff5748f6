//! `demo`.

use std::path::PathBuf;

use clap::Args;

/// `lakebed demo`
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The folder of the demo project [default: ./lakebed-demo]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
