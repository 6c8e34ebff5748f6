//! A client that shows every byte: no library stands between the test and the wire.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::demo_site::fault::FaultSpec;
use crate::demo_site::server::{Server, SiteOptions};

/// How long a test waits for bytes that must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A site of 400 listings with these faults.
pub(super) async fn site(faults: &[&str]) -> Server {
    site_with(|options| {
        options.faults = faults
            .iter()
            .map(|f| FaultSpec::parse(f).unwrap())
            .collect();
    })
    .await
}

/// A site of 400 listings, changed as the test needs it.
pub(super) async fn site_with(change: impl FnOnce(&mut SiteOptions)) -> Server {
    let mut options = SiteOptions {
        bind: "127.0.0.1:0".parse().unwrap(),
        seed: 1,
        date: "2026-11-30".parse().unwrap(),
        listings: 400,
        per_page: 30,
        faults: Vec::new(),
        log: None,
    };
    change(&mut options);
    Server::start(options).await.unwrap()
}

/// An answer, byte for byte.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Reply {
    /// Splits what came over the wire; `None` for no answer.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n")?;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Self {
            status,
            head,
            body: bytes[end + 4..].to_vec(),
        })
    }

    /// A header's value.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(super) fn length(&self) -> usize {
        self.header("content-length").unwrap().parse().unwrap()
    }
}

/// Sends bytes and reads until the server ends the connection.
pub(super) async fn raw(to: SocketAddr, request: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    // A connection that is reset ends the answer, too.
    match tokio::time::timeout(PATIENCE, read).await.unwrap() {
        Ok(_) | Err(_) => bytes,
    }
}

/// A request with these further header lines, on a connection of its own.
pub(super) async fn ask(server: &Server, method: &str, path: &str, headers: &str) -> Option<Reply> {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: demo.localhost\r\nConnection: close\r\n{headers}\r\n"
    );
    Reply::parse(&raw(server.address(), &request).await)
}

pub(super) async fn get(server: &Server, path: &str) -> Reply {
    ask(server, "GET", path, "").await.unwrap()
}

pub(super) async fn post(server: &Server, path: &str, body: &str) -> Reply {
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: demo.localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    Reply::parse(&raw(server.address(), &request).await).unwrap()
}

/// The ids that the interface lists, newest first.
pub(super) async fn ids(server: &Server) -> Vec<u64> {
    let items = get(server, "/api/list").await.json()["items"].clone();
    let items = items.as_array().unwrap().clone();
    items.iter().map(|i| i["id"].as_u64().unwrap()).collect()
}
