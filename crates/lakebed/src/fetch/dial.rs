//! Opens connections: names become addresses, addresses are checked, proxies are spoken to.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine;
use http::{HeaderValue, Uri};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tower_service::Service;

use super::address::literal;
use super::class::FailureClass;
use super::options::{FetchOptions, ProxyKind, ProxySpec};

/// How long one of several addresses is tried before the next one.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(4);

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct DialError {
    pub(super) class: FailureClass,
    pub(super) message: String,
}

impl DialError {
    pub(super) fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
        }
    }

    /// What the operating system said to a connection to `peer`.
    fn io(peer: &str, error: &io::Error) -> Self {
        let class = match error.kind() {
            io::ErrorKind::ConnectionRefused => FailureClass::Refused,
            io::ErrorKind::TimedOut => FailureClass::TimeoutConnect,
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => {
                FailureClass::Disconnect
            }
            _ => FailureClass::Unreachable,
        };
        Self::new(class, format!("no connection to `{peer}`: {error}"))
    }
}

/// The peer of a connection, known where no proxy stands between.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// A TCP connection, to the host itself or to the proxy.
#[derive(Debug)]
pub(super) struct Dialed {
    tcp: TcpStream,
    peer: Option<Peer>,
    is_forwarding: bool,
}

impl Connection for Dialed {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.is_forwarding);
        match self.peer {
            Some(peer) => connected.extra(peer),
            None => connected,
        }
    }
}

impl AsyncRead for Dialed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for Dialed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

/// Opens TCP connections to what a URI names, the way the options say.
#[derive(Debug, Clone)]
pub(super) struct Dialer(Arc<FetchOptions>);

impl Dialer {
    pub(super) fn new(options: Arc<FetchOptions>) -> Self {
        Self(options)
    }

    async fn dial(self, to: Uri) -> Result<TokioIo<Dialed>, DialError> {
        let host = host_of(&to)?;
        match &self.0.proxy {
            None => self.direct(&host, port_of(&to)).await,
            Some(proxy) => {
                (self.0.addresses.check_name(&host)).map_err(|kind| private(&host, kind))?;
                self.through(proxy, to).await
            }
        }
    }

    async fn direct(&self, host: &str, port: u16) -> Result<TokioIo<Dialed>, DialError> {
        let mut refused = None;
        let mut allowed = Vec::new();
        for address in self.addresses_of(host, port).await? {
            match self.0.addresses.check(host, address.ip()) {
                Ok(()) => allowed.push(address),
                Err(kind) => refused = Some(private(&format!("{host} ({})", address.ip()), kind)),
            }
        }
        if allowed.is_empty() {
            let nothing = || DialError::new(FailureClass::Dns, format!("`{host}` has no address"));
            return Err(refused.unwrap_or_else(nothing));
        }
        let tcp = connect_any(host, &allowed).await?;
        let peer = tcp.peer_addr().ok().map(|a| Peer(a.ip().to_canonical()));
        Ok(TokioIo::new(Dialed {
            tcp,
            peer,
            is_forwarding: false,
        }))
    }

    async fn addresses_of(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, DialError> {
        if let Some(address) = literal(host) {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        if let Some(fixed) = self.0.fixed_hosts.get(host) {
            return Ok(fixed.iter().map(|a| SocketAddr::new(*a, port)).collect());
        }
        let resolved = tokio::net::lookup_host((host, port)).await;
        let addresses = resolved.map_err(|e| {
            DialError::new(
                FailureClass::Dns,
                format!("`{host}` could not be resolved: {e}"),
            )
        })?;
        Ok(interleave(addresses.collect()))
    }

    async fn through(&self, proxy: &ProxySpec, to: Uri) -> Result<TokioIo<Dialed>, DialError> {
        let is_https = to.scheme() == Some(&http::uri::Scheme::HTTPS);
        let plain = ProxyDialer {
            is_forwarding: proxy.kind == ProxyKind::Http && !is_https,
        };
        match proxy.kind {
            ProxyKind::Http if !is_https => plain.dial(proxy.uri.clone()).await,
            ProxyKind::Http => {
                let mut tunnel = Tunnel::new(proxy.uri.clone(), plain);
                if let Some(value) = proxy_authorization(proxy) {
                    tunnel = tunnel.with_auth(value);
                }
                tunnel.call(to).await.map_err(|e| proxy_failure(&e))
            }
            ProxyKind::Socks5 => {
                let mut socks = SocksV5::new(proxy.uri.clone(), plain);
                if let Some((user, password)) = proxy.credentials.clone() {
                    socks = socks.with_auth(user, password);
                }
                let to = with_port(&to)?;
                socks.call(to).await.map_err(|e| proxy_failure(&e))
            }
        }
    }
}

/// The header that a proxy is told its user by.
pub(super) fn proxy_authorization(proxy: &ProxySpec) -> Option<HeaderValue> {
    let (user, password) = proxy.credentials.as_ref()?;
    let text = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    let mut value = HeaderValue::from_str(&format!("Basic {text}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn private(host: &str, kind: &str) -> DialError {
    DialError::new(
        FailureClass::PrivateAddress,
        format!("`{host}` is {kind}, which the source does not allow"),
    )
}

/// A failure of a proxy; that of the connection to it is named, too.
fn proxy_failure(error: &(dyn std::error::Error + 'static)) -> DialError {
    let mut message = format!("the proxy failed: {error}");
    let mut source = error.source();
    while let Some(inner) = source {
        message.push_str(&format!(": {inner}"));
        source = inner.source();
    }
    DialError::new(FailureClass::Proxy, message)
}

fn host_of(to: &Uri) -> Result<String, DialError> {
    let host = to.host().filter(|h| !h.is_empty());
    host.map(str::to_owned)
        .ok_or_else(|| DialError::new(FailureClass::BadUrl, format!("`{to}` names no host")))
}

fn port_of(to: &Uri) -> u16 {
    let is_https = to.scheme() == Some(&http::uri::Scheme::HTTPS);
    to.port_u16().unwrap_or(if is_https { 443 } else { 80 })
}

/// A SOCKS proxy is told the port in any case.
fn with_port(to: &Uri) -> Result<Uri, DialError> {
    let text = format!(
        "{}://{}:{}",
        to.scheme_str().unwrap_or("http"),
        host_of(to)?,
        port_of(to)
    );
    text.parse()
        .map_err(|e| DialError::new(FailureClass::BadUrl, format!("`{text}`: {e}")))
}

/// Addresses of both families in turn, so that a broken one costs one timeout.
fn interleave(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (one, two): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|a| a.is_ipv6() == first_is_v6);
    let (mut one, mut two) = (one.into_iter(), two.into_iter());
    let mut out = Vec::new();
    loop {
        let pair = [one.next(), two.next()];
        if pair == [None, None] {
            return out;
        }
        out.extend(pair.into_iter().flatten());
    }
}

/// A connection to the first address that answers; the error of the last one.
async fn connect_any(host: &str, addresses: &[SocketAddr]) -> Result<TcpStream, DialError> {
    let mut last = DialError::new(
        FailureClass::Unreachable,
        format!("`{host}` has no address"),
    );
    for (i, address) in addresses.iter().enumerate() {
        let peer = format!("{host} ({address})");
        let is_last = i + 1 == addresses.len();
        let connecting = TcpStream::connect(address);
        let connected = if is_last {
            connecting.await
        } else {
            match tokio::time::timeout(ADDRESS_TIMEOUT, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(io::ErrorKind::TimedOut.into()),
            }
        };
        match connected {
            Ok(tcp) => {
                // Small requests go out at once; that it cannot be set is no reason not to fetch.
                drop(tcp.set_nodelay(true));
                return Ok(tcp);
            }
            Err(e) => last = DialError::io(&peer, &e),
        }
    }
    Err(last)
}

/// Connections to the proxy itself. Whoever wrote its address down allows it.
#[derive(Debug, Clone)]
struct ProxyDialer {
    is_forwarding: bool,
}

impl ProxyDialer {
    async fn dial(self, to: Uri) -> Result<TokioIo<Dialed>, DialError> {
        let host = host_of(&to)?;
        let bare = host.trim_matches(['[', ']']).to_owned();
        let resolved = tokio::net::lookup_host((bare.as_str(), port_of(&to))).await;
        let addresses: Vec<SocketAddr> = resolved
            .map_err(|e| {
                DialError::new(
                    FailureClass::Proxy,
                    format!("the proxy `{host}` could not be resolved: {e}"),
                )
            })?
            .collect();
        let tcp = connect_any(&host, &addresses)
            .await
            .map_err(|e| DialError::new(FailureClass::Proxy, format!("the proxy failed: {e}")))?;
        Ok(TokioIo::new(Dialed {
            tcp,
            peer: None,
            is_forwarding: self.is_forwarding,
        }))
    }
}

type Dialing = Pin<Box<dyn Future<Output = Result<TokioIo<Dialed>, DialError>> + Send>>;

impl Service<Uri> for Dialer {
    type Response = TokioIo<Dialed>;
    type Error = DialError;
    type Future = Dialing;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Dialing {
        Box::pin(self.clone().dial(to))
    }
}

impl Service<Uri> for ProxyDialer {
    type Response = TokioIo<Dialed>;
    type Error = DialError;
    type Future = Dialing;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), DialError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, to: Uri) -> Dialing {
        Box::pin(self.clone().dial(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let addresses: Vec<SocketAddr> = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"]
            .iter()
            .map(|t| t.parse().unwrap())
            .collect();
        let order: Vec<String> = interleave(addresses)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(order, ["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"]);
        assert!(interleave(Vec::new()).is_empty());
    }
}
