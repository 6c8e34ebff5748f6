//! `serve`.

use std::net::SocketAddr;

use clap::Args;

use crate::args::FormatArgs;

/// `lakebed serve`
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Serve the HTTP interface for other crawlers (docs/api.md)
    #[arg(long)]
    pub(crate) api: bool,
    /// Address and port; port 0 = any free one, which is told on stdout. Other addresses than those of this machine are open to the network, without TLS
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8790")]
    pub(crate) listen: SocketAddr,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
