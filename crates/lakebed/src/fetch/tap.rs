//! Listens to an HTTP/1 connection and keeps the exact bytes of the heads that pass by.
//!
//! A client hands out parsed headers: their order, case and odd spellings are gone. A raw archive keeps
//! the bytes, so they are copied where they pass, between the HTTP and the TLS layer.
//!
//! ```text
//! written:  HEAD ..... CRLF CRLF | body of Content-Length | HEAD of the next request
//! read:     HTTP/1.1 103 ... CRLF CRLF | HTTP/1.1 200 ... CRLF CRLF | body, not looked at
//! ```
//! The first byte of a request begins a new exchange. That a connection carries one exchange at a time is
//! what HTTP/1 without pipelining is; on an HTTP/2 connection the tap is deaf.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::head::header_values;

/// Longest head that is taken, in bytes; the client is told the same limit.
pub(super) const MAX_HEAD_BYTES: usize = 256 * 1024;

/// The heads of the exchange that a connection carries at present; clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Tap(Arc<Mutex<Exchange>>);

#[derive(Debug, Default)]
struct Exchange {
    /// How many exchanges went before on this connection.
    before: u32,
    request: Half,
    /// Bytes of the request's body that are still to be written.
    body_left: u64,
    response: Half,
}

/// One direction: the head so far, and whether it is whole.
#[derive(Debug, Default)]
struct Half {
    head: Vec<u8>,
    is_whole: bool,
}

impl Half {
    /// Takes bytes up to the end of the head; how many of them belong to it.
    fn take(&mut self, bytes: &[u8]) -> usize {
        let before = self.head.len();
        let room = MAX_HEAD_BYTES.saturating_sub(before);
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        // The end may begin in what came before.
        let from = before.saturating_sub(3);
        let end = (from..self.head.len()).find(|at| ends_head(&self.head[..=*at]));
        match end {
            Some(end) => {
                self.head.truncate(end + 1);
                self.is_whole = true;
                end + 1 - before.min(end + 1)
            }
            None => bytes.len(),
        }
    }
}

/// Whether these bytes end with an empty line: CR LF CR LF, or bare line feeds of sloppy servers.
fn ends_head(bytes: &[u8]) -> bool {
    bytes.ends_with(b"\n\r\n") || bytes.ends_with(b"\n\n")
}

impl Tap {
    /// The request head as it went out; empty if none is known.
    pub(super) fn request_head(&self) -> Vec<u8> {
        self.lock().request.head.clone()
    }

    /// The response head as it came, its empty line included; `None` while it is not whole.
    pub(super) fn response_head(&self) -> Option<Vec<u8>> {
        let exchange = self.lock();
        (exchange.response.is_whole).then(|| exchange.response.head.clone())
    }

    /// Whether the peer may have given the connection up before it saw the present request: it answered
    /// others before, and not a byte to this one.
    pub(super) fn is_stale(&self) -> bool {
        let exchange = self.lock();
        exchange.before > 0 && exchange.response.head.is_empty()
    }

    fn written(&self, mut bytes: &[u8]) {
        let mut exchange = self.lock();
        while !bytes.is_empty() {
            if exchange.request.is_whole && exchange.body_left > 0 {
                let part = bytes
                    .len()
                    .min(usize::try_from(exchange.body_left).unwrap_or(usize::MAX));
                exchange.body_left -= u64::try_from(part).unwrap_or(0);
                bytes = &bytes[part..];
                continue;
            }
            if exchange.request.is_whole {
                *exchange = Exchange {
                    before: exchange.before.saturating_add(1),
                    ..Exchange::default()
                };
            }
            let part = exchange.request.take(bytes);
            bytes = &bytes[part..];
            if exchange.request.is_whole {
                exchange.body_left = (header_values(&exchange.request.head, "content-length")
                    .first())
                .and_then(|v| v.parse().ok())
                .unwrap_or(0);
            }
        }
    }

    fn read(&self, mut bytes: &[u8]) {
        let mut exchange = self.lock();
        let response = &mut exchange.response;
        while !bytes.is_empty() && !response.is_whole {
            let part = response.take(bytes);
            bytes = &bytes[part..];
            // 100 and 103 go before the response; 101 is one, though we never ask for it.
            let is_interim = response.is_whole
                && matches!(
                    response.head.get(9..12),
                    Some([b'1', _, b'0' | b'2'..=b'9'])
                );
            if is_interim {
                *response = Half::default();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Exchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection with a tap.
#[derive(Debug)]
pub(super) struct Tapped<T> {
    io: T,
    tap: Option<Tap>,
}

impl<T: Connection> Tapped<T> {
    /// Listens to `io`, unless it speaks HTTP/2.
    pub(super) fn new(io: T) -> Self {
        let tap = (!io.connected().is_negotiated_h2()).then(Tap::default);
        Self { io, tap }
    }
}

impl<T: Connection> Connection for Tapped<T> {
    fn connected(&self) -> Connected {
        match &self.tap {
            Some(tap) => self.io.connected().extra(tap.clone()),
            None => self.io.connected(),
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Tapped<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.io).poll_read(cx, buf);
        if let (Poll::Ready(Ok(())), Some(tap)) = (&polled, &self.tap) {
            tap.read(&buf.filled()[before..]);
        }
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Tapped<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.io).poll_write(cx, bytes);
        if let (Poll::Ready(Ok(n)), Some(tap)) = (&polled, &self.tap) {
            tap.written(&bytes[..*n]);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIRST: &[u8] = b"POST /a HTTP/1.1\r\ncontent-length: 4\r\n\r\n\r\n\r\n";
    const SECOND: &[u8] = b"GET /b HTTP/1.1\r\nhost: a\r\n\r\n";
    const ANSWER: &[u8] =
        b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\nX-Odd:  \xff \r\n\r\nbody\r\n\r\nbody";

    fn feed(tap: &Tap, bytes: &[u8], sizes: &[usize], written: bool) {
        let mut rest = bytes;
        for size in sizes.iter().copied().cycle() {
            let (part, more) = rest.split_at(size.clamp(1, rest.len()));
            if written {
                tap.written(part)
            } else {
                tap.read(part)
            }
            rest = more;
            if rest.is_empty() {
                break;
            }
        }
    }

    proptest! {
        #[test]
        fn heads_are_whole_however_they_are_cut(sizes in proptest::collection::vec(1_usize..60, 1..8)) {
            let tap = Tap::default();
            feed(&tap, FIRST, &sizes, true);
            prop_assert_eq!(tap.response_head(), None);
            feed(&tap, ANSWER, &sizes, false);
            let expected: &[u8] = b"HTTP/1.1 200 OK\r\nX-Odd:  \xff \r\n\r\n";
            prop_assert_eq!(tap.response_head().unwrap(), expected);
            prop_assert_eq!(tap.request_head(), &FIRST[..FIRST.len() - 4]);
            feed(&tap, SECOND, &sizes, true);
            prop_assert_eq!(tap.request_head(), SECOND);
            prop_assert_eq!(tap.response_head(), None);
        }
    }

    #[test]
    fn a_head_without_end_is_cut_at_the_limit() {
        let tap = Tap::default();
        for _ in 0..MAX_HEAD_BYTES / 1000 + 10 {
            tap.read(&[b'x'; 1000]);
        }
        assert_eq!(tap.response_head(), None);
        assert_eq!(tap.lock().response.head.len(), MAX_HEAD_BYTES);
    }

    #[test]
    fn bare_line_feeds_end_a_head() {
        let tap = Tap::default();
        tap.read(b"HTTP/1.0 200 OK\nA: b\n\nbody");
        assert_eq!(tap.response_head().unwrap(), b"HTTP/1.0 200 OK\nA: b\n\n");
    }
}
