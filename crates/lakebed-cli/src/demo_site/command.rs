//! `lakebed demo-site`: starts the site, tells its address, ends on a signal.

use std::net::SocketAddr;

use lakebed::{Error, Result};
use serde_json::json;

use crate::args::{DemoSiteArgs, TextFormat};
use crate::context::Globals;
use crate::demo_site::fault::FaultSpec;
use crate::demo_site::server::{Server, SiteOptions};
use crate::exit::Exit;

/// Most rows of a list page.
const MAX_PER_PAGE: u32 = 1000;

/// `lakebed demo-site`
pub(crate) async fn run(args: DemoSiteArgs, globals: &Globals<'_>) -> Result<Exit> {
    let printer = globals.printer;
    if !(1..=MAX_PER_PAGE).contains(&args.per_page) {
        return Err(
            Error::invalid(format!("`{}` rows cannot stand on a page", args.per_page))
                .hint(format!("give 1 to {MAX_PER_PAGE}")),
        );
    }
    let faults = args.fault.iter().map(|text| FaultSpec::parse(text));
    let options = SiteOptions {
        bind: SocketAddr::new(args.bind, args.port),
        seed: args.seed,
        date: args.date.parse()?,
        listings: args.listings,
        per_page: args.per_page,
        faults: faults.collect::<Result<_>>()?,
        log: args.log,
    };
    let date = options.date;
    // Waiting begins before the address is told: who reads it may send the signal at once.
    let mut signals = Signals::listen()?;
    let server = Server::start(options).await?;
    let url = format!("http://{}/", server.address());
    match args.output.format {
        TextFormat::Text => printer.line(&url)?,
        TextFormat::Json => {
            let told = json!({
                "format": 1,
                "url": url,
                "port": server.address().port(),
                "date": date.to_string(),
                "seed": args.seed,
                "listings": args.listings,
            });
            printer.line(told)?;
        }
    }
    printer.info(format!("the test site shows {date}; Ctrl-C ends it"));
    signals.wait().await;
    server.stop().await?;
    Ok(Exit::Done)
}

/// Ctrl-C, and on Unix the request to end.
struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn listen() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let failed = |e| Error::io("wait for", "signals", e);
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }

    #[cfg(unix)]
    async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    #[allow(clippy::unnecessary_wraps, reason = "signals of Unix can fail")]
    fn listen() -> Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn wait(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
