//! TLS and HTTP/2.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::server::{Act, fetch, fetcher, get, options, redirect, serve};
use crate::fetch::{FailureClass, FetchOptions, FetchOutcome, Fetched, Fetcher, NoHopCheck};
use crate::time::Clock;

const CA: &str = include_str!("../../../../../testdata/tls/ca.pem");
const SERVER: &str = include_str!("../../../../../testdata/tls/server.pem");
const EXPIRED: &str = include_str!("../../../../../testdata/tls/expired.pem");
/// A body that ends with its connection.
const HALF: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nhalf";
const KEY: &str = include_str!("../../../../../testdata/tls/server.key");

fn class(fetched: &Fetched) -> Option<FailureClass> {
    match &fetched.outcome {
        FetchOutcome::Failed(failure) => Some(failure.class),
        _ => None,
    }
}

fn acceptor(certificate: &str, alpn: &[&[u8]]) -> TlsAcceptor {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|p| p.to_vec()).collect();
    Arc::new(config).into()
}

/// What an HTTP/2 request was answered with: its own pseudo headers and body.
async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let text = format!(
        "{} {} {:?} {}",
        parts.method,
        parts.uri,
        parts.version,
        String::from_utf8_lossy(&body)
    );
    let answer = Response::builder()
        .header("content-type", "text/plain")
        .header("x-two", "a")
        .header("x-two", "b");
    Ok(answer.body(Full::from(text)).unwrap())
}

/// A server with the good certificate: over HTTP/2 an echo, over HTTP/1 a redirect to http for `/down` and a
/// page for everything else.
pub(super) async fn secure_server(speaks_http2: bool) -> SocketAddr {
    start(SERVER, speaks_http2).await
}

async fn start(certificate: &'static str, speaks_http2: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let alpn: &[&[u8]] = if speaks_http2 {
        &[b"h2"]
    } else {
        &[b"http/1.1"]
    };
    let acceptor = acceptor(certificate, alpn);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(tls) = acceptor.accept(tcp).await else {
                    return;
                };
                if speaks_http2 {
                    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    drop(
                        server
                            .serve_connection(TokioIo::new(tls), service_fn(echo))
                            .await,
                    );
                } else {
                    let answer = |request: &super::server::Received| {
                        let bytes = match request.target() {
                            "/down" => redirect(302, "http://secure.test/"),
                            "/bye" => return vec![Act::Send(HALF.to_vec()), Act::Close],
                            "/cut" => return vec![Act::Send(HALF.to_vec()), Act::Drop],
                            _ => b"HTTP/1.1 200 Secure\r\nContent-Length: 3\r\n\r\ntls".to_vec(),
                        };
                        vec![Act::Send(bytes)]
                    };
                    serve(tls, Arc::new(answer), Arc::default()).await;
                }
            });
        }
    });
    address
}

/// Options that trust the authority of the tests and know where its hosts are.
pub(super) fn trusting() -> FetchOptions {
    let mut options = options();
    options.extra_roots_pem = CA.to_owned();
    for host in ["secure.test", "wrong.test"] {
        options
            .fixed_hosts
            .insert(host.to_owned(), vec!["127.0.0.1".parse().unwrap()]);
    }
    options
}

#[tokio::test]
async fn http1_over_tls_is_recorded_as_on_the_wire() {
    let address = secure_server(false).await;
    let fetched = fetch(
        trusting(),
        &format!("https://secure.test:{}/x", address.port()),
    )
    .await;
    assert_eq!(fetched.outcome, FetchOutcome::Answered);
    let record = &fetched.captures[0].record;
    assert_eq!(
        record.response_head.0,
        b"HTTP/1.1 200 Secure\r\nContent-Length: 3\r\n\r\n"
    );
    assert_eq!(record.http_version.as_deref(), Some("HTTP/1.1"));
    assert_eq!(record.remote_ip.as_deref(), Some("127.0.0.1"));
    let down = fetch(
        trusting(),
        &format!("https://secure.test:{}/down", address.port()),
    )
    .await;
    assert_eq!(class(&down), Some(FailureClass::InsecureRedirect));
}

#[tokio::test]
async fn http2_is_agreed_on_and_shares_one_connection() {
    let address = secure_server(true).await;
    let url = format!("https://secure.test:{}/x?y", address.port());
    let fetcher = fetcher(trusting());
    let mut request = get(&url);
    request.method = http::Method::POST;
    request.body = Some("a=1".into());
    request.headers = vec![("Authorization".to_owned(), "Bearer t".to_owned())];
    let fetched = fetcher.fetch(&request, &NoHopCheck).await;
    assert_eq!(
        fetched.outcome,
        FetchOutcome::Answered,
        "{:?}",
        fetched.captures
    );
    let capture = &fetched.captures[0];
    assert_eq!(capture.body, format!("POST {url} HTTP/2.0 a=1"));
    let record = &capture.record;
    assert_eq!(record.http_version.as_deref(), Some("HTTP/2"));
    assert_eq!(record.remote_ip.as_deref(), Some("127.0.0.1"));
    let head = String::from_utf8(record.response_head.0.clone()).unwrap();
    assert!(
        head.starts_with("HTTP/2 200\r\ncontent-type: text/plain\r\nx-two: a\r\nx-two: b\r\n"),
        "{head}"
    );
    let sent = String::from_utf8(record.request_head.0.clone()).unwrap();
    assert!(sent.starts_with("POST /x?y HTTP/2\r\n"), "{sent}");
    assert!(sent.contains("authorization: [removed]\r\n"), "{sent}");
    let many = (0..20).map(|_| {
        let (fetcher, request) = (fetcher.clone(), get(&url));
        tokio::spawn(async move { fetcher.fetch(&request, &NoHopCheck).await.outcome })
    });
    for fetch in many.collect::<Vec<_>>() {
        assert_eq!(fetch.await.unwrap(), FetchOutcome::Answered);
    }
    let mut old = trusting();
    old.offer_http2 = false;
    assert_eq!(
        class(&fetch(old, &url).await),
        Some(FailureClass::Tls),
        "nothing in common"
    );
}

#[tokio::test]
async fn certificates_are_checked() {
    let (good, expired) = (secure_server(false).await, start(EXPIRED, false).await);
    for (options, host, address) in [
        (options(), "127.0.0.1", good),
        (trusting(), "wrong.test", good),
        (trusting(), "secure.test", expired),
    ] {
        let fetched = fetch(options, &format!("https://{host}:{}/", address.port())).await;
        assert_eq!(
            class(&fetched),
            Some(FailureClass::Tls),
            "{host}: {:?}",
            fetched.outcome
        );
        assert!(matches!(&fetched.outcome, FetchOutcome::Failed(f) if !f.is_retryable));
    }
    let by_address = fetch(trusting(), &format!("https://{good}/")).await;
    assert_eq!(
        by_address.outcome,
        FetchOutcome::Answered,
        "a certificate may name an address"
    );
}

#[tokio::test]
async fn a_server_without_tls_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            drop(socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await);
            // It stays until the peer goes: to close on unread bytes would be a reset.
            drop(tokio::io::copy(&mut socket, &mut tokio::io::sink()).await);
        }
    });
    let fetched = fetch(trusting(), &format!("https://{address}/")).await;
    assert_eq!(
        class(&fetched),
        Some(FailureClass::Tls),
        "{:?}",
        fetched.outcome
    );
}

#[tokio::test]
async fn a_body_without_length_is_whole_only_after_a_goodbye() {
    let address = secure_server(false).await;
    for (path, expected) in [("/bye", None), ("/cut", Some(FailureClass::Disconnect))] {
        let url = format!("https://secure.test:{}{path}", address.port());
        let fetched = fetch(trusting(), &url).await;
        assert_eq!(class(&fetched), expected, "{path}: {:?}", fetched.outcome);
        assert_eq!(fetched.captures[0].body, "half");
    }
}

#[tokio::test]
async fn rubbish_for_certificates_is_refused_at_once() {
    for pem in [
        "rubbish",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let mut options = options();
        options.extra_roots_pem = pem.to_owned();
        let error = Fetcher::new(options, Arc::new(Clock::System)).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::InvalidInput, "{pem}");
    }
}
