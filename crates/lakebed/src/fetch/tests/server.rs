//! A server of raw sockets: what it answers is what goes over the wire, byte for byte.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::fetch::{FetchOptions, FetchRequest, Fetched, Fetcher, NoHopCheck};
use crate::spec::RunKey;
use crate::time::Clock;

/// One step of an answer.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Send(Vec<u8>),
    Wait(Duration),
    /// Ends the connection as the protocol says.
    Close,
    /// Goes away without a word.
    Drop,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Received {
    /// The target of the request line.
    pub(super) fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// The value of a header; empty for none.
    pub(super) fn header(&self, name: &str) -> String {
        crate::fetch::header_values(self.head.as_bytes(), name).join(", ")
    }
}

type Answer = dyn Fn(&Received) -> Vec<Act> + Send + Sync;

/// A server that lives as long as the runtime of its test.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    pub(super) async fn start(
        answer: impl Fn(&Received) -> Vec<Act> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            received: Arc::default(),
            connections: Arc::default(),
        };
        let answer: Arc<Answer> = Arc::new(answer);
        let running = server.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                running.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(serve(socket, answer.clone(), running.received.clone()));
            }
        });
        server
    }

    /// A server that answers every target with the bytes beside it; 404 for others.
    pub(super) async fn pages(pages: &[(&str, &[u8])]) -> Self {
        let pages: BTreeMap<String, Vec<u8>> = (pages.iter())
            .map(|(target, bytes)| ((*target).to_owned(), bytes.to_vec()))
            .collect();
        Self::start(move |request| match pages.get(request.target()) {
            Some(bytes) => vec![Act::Send(bytes.clone())],
            None => vec![Act::Send(response(404, "", b"gone"))],
        })
        .await
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    pub(super) fn targets(&self) -> Vec<String> {
        self.received()
            .iter()
            .map(|r| r.target().to_owned())
            .collect()
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Reads requests and plays their answers until one closes.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut socket: S,
    answer: Arc<Answer>,
    log: Arc<Mutex<Vec<Received>>>,
) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut socket, &mut buffer).await {
        log.lock().unwrap().push(request.clone());
        for act in answer(&request) {
            match act {
                Act::Send(bytes) => {
                    if socket.write_all(&bytes).await.is_err() || socket.flush().await.is_err() {
                        return;
                    }
                }
                Act::Wait(time) => tokio::time::sleep(time).await,
                Act::Drop => return,
                Act::Close => {
                    drop(socket.shutdown().await);
                    return;
                }
            }
        }
    }
}

/// The next request of a connection; `None` at its end.
pub(super) async fn read_request(
    socket: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> Option<Received> {
    let end = loop {
        if let Some(at) = memchr::memmem::find(buffer, b"\r\n\r\n") {
            break at + 4;
        }
        more(socket, buffer).await?;
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let length = crate::fetch::header_values(head.as_bytes(), "content-length");
    let length: usize = length.first().map_or(0, |v| v.parse().unwrap());
    while buffer.len() < end + length {
        more(socket, buffer).await?;
    }
    let body = buffer[end..end + length].to_vec();
    buffer.drain(..end + length);
    Some(Received { head, body })
}

async fn more(socket: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Option<()> {
    let mut chunk = [0; 4096];
    let n = socket.read(&mut chunk).await.ok()?;
    buffer.extend_from_slice(&chunk[..n]);
    (n > 0).then_some(())
}

/// A response with a length; `headers` are whole lines that end with CR LF.
pub(super) fn response(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A page of HTML.
pub(super) fn page(text: &str) -> Vec<u8> {
    response(200, "Content-Type: text/html\r\n", text.as_bytes())
}

/// A redirect.
pub(super) fn redirect(status: u16, to: &str) -> Vec<u8> {
    response(status, &format!("Location: {to}\r\n"), b"moved")
}

/// Options that allow servers of this machine and give up soon.
pub(super) fn options() -> FetchOptions {
    let mut options = FetchOptions::new("lakebed-test/1 (+https://example.com/bot)").unwrap();
    options.addresses.allowed_networks = vec!["127.0.0.0/8".parse().unwrap()];
    options.limits.connect = Duration::from_secs(5);
    options.limits.total = Duration::from_secs(20);
    options
}

pub(super) fn fetcher(options: FetchOptions) -> Fetcher {
    Fetcher::new(options, Arc::new(Clock::System)).unwrap()
}

/// A GET request.
pub(super) fn get(url: &str) -> FetchRequest {
    FetchRequest {
        run: RunKey {
            source: "site".parse().unwrap(),
            date: "2026-11-30".parse().unwrap(),
            run: "day".parse().unwrap(),
        },
        key: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        attempt: 1,
        kind: "page".parse().unwrap(),
        method: Method::GET,
        url: url.parse().unwrap(),
        headers: Vec::new(),
        body: None,
        validators: None,
        resume: None,
    }
}

/// Fetches a URL with these options.
pub(super) async fn fetch(options: FetchOptions, url: &str) -> Fetched {
    fetcher(options).fetch(&get(url), &NoHopCheck).await
}
