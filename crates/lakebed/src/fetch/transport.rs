//! One request to one host: the client, its pool of connections, and what its errors mean.
//!
//! ```text
//! hyper client (HTTP/1.1, HTTP/2 by ALPN, pool of idle connections)
//!   -> Connector: one time limit over everything below
//!        -> Tapped: keeps the bytes of HTTP/1 heads
//!             -> TLS (rustls with ring), for https
//!                  -> Dialer: name, address check, TCP, proxy
//! ```

use std::error::Error as StdError;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::time::Instant as Deadline;
use tower_service::Service;

use super::class::FailureClass;
use super::dial::{DialError, Dialed, Dialer};
use super::options::FetchOptions;
use super::tap::{MAX_HEAD_BYTES, Tap, Tapped};
use crate::error::{Error, Result};

/// Most headers of a response.
const MAX_HEADERS: usize = 400;

type BoxError = Box<dyn StdError + Send + Sync>;

/// Sends requests of one source; clones share the pool.
#[derive(Debug, Clone)]
pub(super) struct Transport {
    client: Client<Connector, Full<Bytes>>,
    first_byte: Duration,
    idle_per_host: usize,
}

/// Why no head of a response came.
#[derive(Debug)]
pub(super) struct SendFailure {
    pub(super) class: FailureClass,
    pub(super) message: String,
    pub(super) sent: Sent,
    /// Whether a kept connection turned out to be closed: the same request is new to the peer.
    is_stale: bool,
}

/// What went out before a failure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// There was no connection, or nothing was written to it.
    Nothing,
    /// This head, over HTTP/1.
    Head(Vec<u8>),
    /// The request, over HTTP/2.
    Http2,
}

impl Transport {
    pub(super) fn new(options: &Arc<FetchOptions>) -> Result<Self> {
        let limits = options.limits;
        let connector = Connector {
            https: HttpsConnector::from((Dialer::new(options.clone()), tls_config(options)?)),
            timeout: limits.connect,
        };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(limits.idle_time)
            .pool_max_idle_per_host(limits.idle_per_host)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .http1_max_headers(MAX_HEADERS)
            .http1_title_case_headers(true)
            .http1_allow_obsolete_multiline_headers_in_responses(true)
            .http1_allow_spaces_after_header_name_in_responses(true)
            .http1_ignore_invalid_headers_in_responses(true)
            .http2_max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX))
            .build(connector);
        Ok(Self {
            client,
            first_byte: limits.first_byte,
            idle_per_host: limits.idle_per_host,
        })
    }

    /// The head of the response to `request`, its body still to be read.
    ///
    /// A peer may close a kept connection while a request is on its way. One that may be repeated is sent
    /// over another connection then, as RFC 9112, 9.3.1 has it: that is no failure of the host.
    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        deadline: Deadline,
    ) -> std::result::Result<Response<Incoming>, SendFailure> {
        let mut kept = self.idle_per_host;
        loop {
            match self.send_once(request.clone(), deadline).await {
                Err(failure)
                    if failure.is_stale && kept > 0 && request.method().is_idempotent() =>
                {
                    kept -= 1;
                }
                other => return other,
            }
        }
    }

    async fn send_once(
        &self,
        mut request: Request<Full<Bytes>>,
        deadline: Deadline,
    ) -> std::result::Result<Response<Incoming>, SendFailure> {
        let connection = capture_connection(&mut request);
        let mut connected = connection.clone();
        let first_byte = async {
            connected.wait_for_connection_metadata().await;
            tokio::time::sleep(self.first_byte).await;
        };
        let (class, message) = tokio::select! {
            biased;
            sent = self.client.request(request) => match sent {
                Ok(response) => return Ok(response),
                Err(error) => class_of(&error),
            },
            () = first_byte => {
                let text = format!("no response within {:?} of the connection", self.first_byte);
                (FailureClass::TimeoutFirstByte, text)
            }
            () = tokio::time::sleep_until(deadline) => {
                (FailureClass::TimeoutTotal, "the time of the fetch was over before a response came".to_owned())
            }
        };
        let (sent, is_stale) = sent_over(&connection);
        Err(SendFailure {
            class,
            message,
            sent,
            is_stale: is_stale && class == FailureClass::Disconnect,
        })
    }
}

/// What went out, and whether it went to a connection that the peer had given up.
fn sent_over(connection: &CaptureConnection) -> (Sent, bool) {
    let metadata = connection.connection_metadata();
    let Some(connected) = metadata.as_ref() else {
        return (Sent::Nothing, false);
    };
    let mut extras = http::Extensions::new();
    connected.get_extras(&mut extras);
    let Some(tap) = extras.get::<Tap>() else {
        return (Sent::Http2, false);
    };
    match tap.request_head() {
        head if head.is_empty() => (Sent::Nothing, false),
        head => (Sent::Head(head), tap.is_stale()),
    }
}

/// What an error of the client, or of a body, means; and in one line what happened.
pub(super) fn class_of(error: &(dyn StdError + 'static)) -> (FailureClass, String) {
    let mut chain: Vec<&(dyn StdError + 'static)> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        chain.push(error);
        next = error.source();
    }
    if let Some(dial) = chain.iter().find_map(|e| e.downcast_ref::<DialError>()) {
        return (dial.class, dial.message.clone());
    }
    let mut texts: Vec<String> = chain.iter().map(ToString::to_string).collect();
    texts.dedup();
    let message = texts.join(": ");
    let hyper = chain.iter().find_map(|e| e.downcast_ref::<hyper::Error>());
    let class = match hyper {
        Some(e) if e.is_parse() => FailureClass::BadResponse,
        _ if chain.iter().any(|e| tls_error(*e).is_some()) => FailureClass::Tls,
        _ => FailureClass::Disconnect,
    };
    (class, message)
}

/// The TLS error in or behind an error of I/O.
fn tls_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    let inner = error
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref);
    match inner {
        Some(inner) => tls_error(inner),
        None => error.downcast_ref::<rustls::Error>(),
    }
}

fn tls_config(options: &FetchOptions) -> Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let bad = |e: String| {
        Error::invalid(format!("the extra root certificates cannot be used: {e}"))
            .hint("give certificates in PEM, with their BEGIN and END lines")
    };
    let mut extra = 0_usize;
    for certificate in CertificateDer::pem_slice_iter(options.extra_roots_pem.as_bytes()) {
        let certificate = certificate.map_err(|e| bad(e.to_string()))?;
        roots.add(certificate).map_err(|e| bad(e.to_string()))?;
        extra += 1;
    }
    if extra == 0 && !options.extra_roots_pem.trim().is_empty() {
        return Err(bad("there is no certificate in them".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::internal("TLS cannot be set up").caused_by(e))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    if options.offer_http2 {
        config.alpn_protocols.push(b"h2".to_vec());
    }
    config.alpn_protocols.push(b"http/1.1".to_vec());
    Ok(config)
}

/// Connects within the time limit and taps the connection.
#[derive(Debug, Clone)]
struct Connector {
    https: HttpsConnector<Dialer>,
    timeout: Duration,
}

type TappedIo = TokioIo<Tapped<TokioIo<MaybeHttpsStream<TokioIo<Dialed>>>>>;

impl Service<Uri> for Connector {
    type Response = TappedIo;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<TappedIo, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<std::result::Result<(), BoxError>> {
        self.https.poll_ready(cx)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let timeout = self.timeout;
        let connecting = self.https.call(to.clone());
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(Ok(io)) => Ok(TokioIo::new(Tapped::new(TokioIo::new(io)))),
                Ok(Err(error)) => Err(error),
                Err(_) => {
                    let text = format!("no connection to `{to}` within {timeout:?}");
                    Err(DialError::new(FailureClass::TimeoutConnect, text).into())
                }
            }
        })
    }
}
