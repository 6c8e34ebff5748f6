//! The server: a listening socket, its connections, and their end.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::demo_site::fault::FaultSpec;
use crate::demo_site::journal::Journal;
use crate::demo_site::market::Market;
use crate::demo_site::serve::serve;
use crate::demo_site::site::{Orders, Site};

/// What connections get to finish their answers when the server stops.
const GRACE: Duration = Duration::from_millis(500);

/// How a site is set up.
#[derive(Debug, Clone)]
pub(crate) struct SiteOptions {
    /// Where it listens; port 0 = any free one.
    pub(crate) bind: SocketAddr,
    /// Seed of everything.
    pub(crate) seed: u64,
    /// The day of requests that name none.
    pub(crate) date: BusinessDate,
    /// About so many listings on every day.
    pub(crate) listings: u32,
    /// Rows of a list page.
    pub(crate) per_page: u32,
    /// Faults of every request.
    pub(crate) faults: Vec<FaultSpec>,
    /// Where the log goes; `None` = no log.
    pub(crate) log: Option<PathBuf>,
}

/// A running site; it stops when the value is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    site: Arc<Site>,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts a site within the present runtime.
    pub(crate) async fn start(options: SiteOptions) -> Result<Self> {
        let listener = TcpListener::bind(options.bind)
            .await
            .map_err(|e| Error::io("listen on", options.bind, e))?;
        let address = listener
            .local_addr()
            .map_err(|e| Error::io("listen on", options.bind, e))?;
        let orders = Orders {
            date: options.date,
            faults: options.faults,
        };
        let site = Arc::new(Site::new(
            Market::new(options.seed, options.listings)?,
            options.per_page,
            Journal::open(options.log.as_deref())?,
            orders,
        ));
        let (stop, stopped) = watch::channel(false);
        let accepting = tokio::spawn(accept(listener, site.clone(), stopped));
        Ok(Self {
            address,
            site,
            stop,
            accepting,
        })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it: no new connections, a moment for answers that have begun, then the rest is cut.
    pub(crate) async fn stop(mut self) -> Result<()> {
        // Without connections nobody listens to the word, which is fine.
        self.stop.send_replace(true);
        if let Err(error) = (&mut self.accepting).await {
            return Err(Error::internal("end the site").caused_by(error));
        }
        match self.site.journal.take_log_error() {
            Some(error) => Err(Error::io("write the log of", "the site", error)),
            None => Ok(()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, site: Arc<Site>, stopped: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let mut stopping = stopped.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn(connection(stream, peer.ip(), site.clone(), stopped.clone()));
                }
                // Out of file handles, or a peer that left at once: neither ends the site.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
            // An error is a server that was dropped.
            _ = stopping.changed() => break,
        }
    }
    drop(listener);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, drained).await.is_err() {
        connections.shutdown().await;
    }
}

async fn connection(
    stream: TcpStream,
    peer: IpAddr,
    site: Arc<Site>,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let number = site.journal.connect();
    let service = service_fn(|request| serve(site.clone(), number, peer, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .title_case_headers(true)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // A connection that ends by a fault is what was ordered.
        ended = connection.as_mut() => return ended.map_err(io::Error::other),
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    connection.await.map_err(io::Error::other)
}
