//! `demo`.

use std::path::PathBuf;

use clap::Args;

/// `lakebed demo`
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The folder of the demo project [default: ./lakebed-demo]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Tell another story: files of 60 days that crawlers of somebody else deliver, with drift, retries and a broken day
    #[arg(long)]
    pub(crate) files: bool,
}
