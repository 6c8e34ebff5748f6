//! `demo-site`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

use crate::args::FormatArgs;

/// `lakebed demo-site`
#[derive(Debug, Args)]
pub(crate) struct DemoSiteArgs {
    /// The address to listen on; only the machine itself can steer the site, whatever it is
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) bind: IpAddr,
    /// The port; 0 = any free one, which is told on stdout
    #[arg(long, value_name = "N", default_value_t = 8787)]
    pub(crate) port: u16,
    /// Another number, another market
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The day that is shown where a request names none
    #[arg(long, value_name = "D", default_value = "2026-11-30")]
    pub(crate) date: String,
    /// About so many listings on every day, 20 to 1000000
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub(crate) listings: u32,
    /// Listings on a list page
    #[arg(long, value_name = "N", default_value_t = 30)]
    pub(crate) per_page: u32,
    /// Something that goes wrong, such as `flaky:30:2` or `slow:200@detail`; may be given several times
    #[arg(long, value_name = "NAME[:PARAM][@SCOPE]")]
    pub(crate) fault: Vec<String>,
    /// Adds a JSON line for every request to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
