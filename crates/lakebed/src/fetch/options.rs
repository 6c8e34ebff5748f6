//! Everything a fetcher is told about its source, checked once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use http::Uri;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::address::AddressPolicy;
use super::cookies::CookieJar;
use super::head::is_secret;
use super::redirect::RedirectOptions;
use super::retry_after::RetryAfterLimits;
use crate::error::{Error, Result};
use crate::spec::CanonicalUrl;

/// Longest time that a `robots.txt` is relied on (RFC 9309, 2.4).
pub(super) const MAX_ROBOTS_TTL: Duration = Duration::from_secs(24 * 3600);

/// What a fetcher of one source keeps to. [`FetchOptions::new`] gives the defaults.
#[derive(Debug, Clone)]
pub struct FetchOptions {
    /// Who asks: sent with every request. There is no default, so that nobody poses as a browser unawares.
    pub user_agent: String,
    /// The product token that `robots.txt` is searched for, letters, `-` and `_`.
    pub robots_token: String,
    /// Headers of every request, such as `Accept-Language`; no secret ones.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Headers for one origin alone (`https://api.example`), such as `Authorization`. A link or redirect
    /// to elsewhere does not take them along.
    pub origin_headers: BTreeMap<String, Vec<(HeaderName, HeaderValue)>>,
    /// Headers whose values are secret, beside `Authorization`, `Cookie` and `Proxy-Authorization`.
    pub secret_headers: Vec<HeaderName>,
    /// Whether the recorded head of a response keeps the values of `Set-Cookie`.
    pub record_set_cookie: bool,
    /// Sizes and times.
    pub limits: FetchLimits,
    /// How redirects are followed.
    pub redirects: RedirectOptions,
    /// What may be reached beyond the public internet.
    pub addresses: AddressPolicy,
    /// Hosts with fixed addresses, in small letters; they are not asked of DNS. What they say is checked
    /// like what DNS says.
    pub fixed_hosts: BTreeMap<String, Vec<IpAddr>>,
    /// Certificates (PEM) that are trusted beside those of the web.
    pub extra_roots_pem: String,
    /// The proxy that everything goes through; absent to connect directly. The environment is not asked.
    pub proxy: Option<ProxySpec>,
    /// Whether HTTP/2 is offered to hosts with TLS.
    pub offer_http2: bool,
    /// The jar of the source; absent to neither send nor take cookies.
    pub cookies: Option<CookieJar>,
    /// Statuses beside 2xx that are an answer: 404 or 410 where "gone" is data.
    pub accepted_statuses: BTreeSet<u16>,
    /// Statuses that are worth another attempt beside those that are so anyway.
    pub retried_statuses: BTreeSet<u16>,
    /// Bounds of `Retry-After`.
    pub retry_after: RetryAfterLimits,
    /// How long `robots.txt` is relied on; at most a day.
    pub robots_ttl: Duration,
    /// How long after it could not be read it is tried again; a crawl doubles that with each failure in a row.
    pub robots_retry: Duration,
}

impl FetchOptions {
    /// Defaults for a user agent such as `acme-research/1.2 (+https://acme.example/bot)`. The robots token
    /// is its first word.
    ///
    /// # Errors
    /// `InvalidInput` for an empty text, one that is no header value, and one whose first word is no
    /// token or poses as a browser (`Mozilla/5.0 (compatible; ...)`: use
    /// [`with_robots_token`](Self::with_robots_token) then).
    pub fn new(user_agent: &str) -> Result<Self> {
        let token: String = (user_agent.chars())
            .take_while(|c| is_token_char(*c))
            .collect();
        if token.eq_ignore_ascii_case("mozilla") {
            return Err(Error::invalid(format!(
                "the user agent `{user_agent}` does not begin with a name of its own"
            ))
            .hint(
                "begin it with the crawler's name, or say which token `robots.txt` is searched for",
            ));
        }
        Self::with_robots_token(user_agent, &token)
    }

    /// Defaults for a user agent and a robots token.
    ///
    /// # Errors
    /// `InvalidInput` for an empty or impossible text of either.
    pub fn with_robots_token(user_agent: &str, token: &str) -> Result<Self> {
        let is_sendable = HeaderValue::from_str(user_agent).is_ok_and(|v| v.to_str().is_ok());
        if user_agent.trim().is_empty() || !is_sendable {
            return Err(Error::invalid(format!("`{user_agent}` is no user agent"))
                .hint("name the crawler and a page or address to reach its people, in ASCII"));
        }
        if token.is_empty() || !token.chars().all(is_token_char) {
            return Err(
                Error::invalid(format!("`{token}` is no token for `robots.txt`"))
                    .hint("letters, `-` and `_` (RFC 9309)"),
            );
        }
        Ok(Self {
            user_agent: user_agent.trim().to_owned(),
            robots_token: token.to_owned(),
            headers: Vec::new(),
            origin_headers: BTreeMap::new(),
            secret_headers: Vec::new(),
            record_set_cookie: false,
            limits: FetchLimits::default(),
            redirects: RedirectOptions::default(),
            addresses: AddressPolicy::default(),
            fixed_hosts: BTreeMap::new(),
            extra_roots_pem: String::new(),
            proxy: None,
            offer_http2: true,
            cookies: None,
            accepted_statuses: BTreeSet::new(),
            retried_statuses: BTreeSet::new(),
            retry_after: RetryAfterLimits::default(),
            robots_ttl: MAX_ROBOTS_TTL,
            robots_retry: Duration::from_secs(60),
        })
    }

    /// Checks what cannot be checked field by field.
    ///
    /// # Errors
    /// `InvalidInput` for a secret header among those of every request, one that the fetcher writes itself,
    /// and an origin that is none.
    pub(super) fn check(&self) -> Result<()> {
        for (name, _) in &self.headers {
            if is_secret(name, &self.secret_headers) {
                return Err(Error::invalid(format!(
                    "the header `{name}` is a secret and would go to every host"
                ))
                .hint("give it to one origin"));
            }
        }
        for origin in self.origin_headers.keys() {
            let is_origin =
                (origin.parse::<CanonicalUrl>()).is_ok_and(|url| url.origin() == *origin);
            if !is_origin {
                return Err(Error::invalid(format!("`{origin}` is no origin"))
                    .hint("write scheme and host, and a port that is not the scheme's own: `https://api.example`"));
            }
        }
        let all = self
            .headers
            .iter()
            .chain(self.origin_headers.values().flatten());
        match all.map(|(name, _)| name).find(|name| is_own_header(name)) {
            Some(name) => Err(Error::invalid(format!(
                "the header `{name}` is written by the fetcher itself"
            ))),
            None => Ok(()),
        }
    }
}

/// Headers that the fetcher writes itself, for they frame the message or name its way.
pub(super) fn is_own_header(name: &HeaderName) -> bool {
    use http::header as h;
    [
        h::HOST,
        h::CONTENT_LENGTH,
        h::TRANSFER_ENCODING,
        h::CONNECTION,
        h::TE,
        h::TRAILER,
        h::UPGRADE,
        h::EXPECT,
        h::PROXY_AUTHORIZATION,
    ]
    .contains(name)
        || ["keep-alive", "proxy-connection"].contains(&name.as_str())
}

/// What every request says, unless the source says otherwise.
pub(super) fn standard_headers(user_agent: &str) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    headers.insert(header::USER_AGENT, HeaderValue::from_str(user_agent).ok()?);
    headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    let encodings = HeaderValue::from_static("gzip, deflate, br, zstd");
    headers.insert(header::ACCEPT_ENCODING, encodings);
    Some(headers)
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '-' | '_')
}

/// Sizes and times of one fetch. A fetch holds at most `max_wire_bytes` and twice `max_body_bytes` in memory
/// (one encoding over another), beside 64 KiB for each redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimits {
    /// Name, TCP, proxy and TLS of one connection.
    pub connect: Duration,
    /// From a connection to the head of the response.
    pub first_byte: Duration,
    /// The whole fetch, with all redirects.
    pub total: Duration,
    /// Bytes of a body on the wire.
    pub max_wire_bytes: u64,
    /// Bytes of a body without its encodings.
    pub max_body_bytes: u64,
    /// Connections that are kept open for a host between requests.
    pub idle_per_host: usize,
    /// How long they are kept.
    pub idle_time: Duration,
}

impl Default for FetchLimits {
    /// 10 s to connect, 30 s to the first byte, 120 s in all; 32 MiB on the wire, 64 MiB without
    /// encodings; 2 idle connections a host for 60 s.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(30),
            total: Duration::from_secs(120),
            max_wire_bytes: 32 << 20,
            max_body_bytes: 64 << 20,
            idle_per_host: 2,
            idle_time: Duration::from_secs(60),
        }
    }
}

/// A proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxySpec {
    pub(super) kind: ProxyKind,
    /// `http://host:port`, without credentials.
    pub(super) uri: Uri,
    pub(super) credentials: Option<(String, String)>,
}

/// How a proxy is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProxyKind {
    /// `CONNECT` for https, forwarding for http.
    Http,
    /// SOCKS 5; the proxy resolves names.
    Socks5,
}

impl ProxySpec {
    /// Reads `http://user:password@host:port`, `socks5://host:port` or `socks5h://host:port`.
    ///
    /// # Errors
    /// `InvalidInput` for any other text; it does not repeat credentials.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = |why: &str| {
            Error::invalid(format!("the proxy's URL cannot be used: {why}"))
                .hint("write `http://host:port` or `socks5://host:port`, with `user:password@` if it asks for one")
        };
        let url = url::Url::parse(text).map_err(|e| bad(&e.to_string()))?;
        let (kind, default_port) = match url.scheme() {
            "http" => (ProxyKind::Http, 80),
            "socks5" | "socks5h" => (ProxyKind::Socks5, 1080),
            other => return Err(bad(&format!("unknown scheme `{other}`"))),
        };
        let host = url
            .host_str()
            .filter(|h| !h.is_empty())
            .ok_or_else(|| bad("it names no host"))?;
        let port = url.port().unwrap_or(default_port);
        let uri = format!("http://{host}:{port}")
            .parse()
            .map_err(|_| bad("its host is no host"))?;
        let decoded = |t: &str| {
            percent_encoding::percent_decode_str(t)
                .decode_utf8_lossy()
                .into_owned()
        };
        let credentials = (!url.username().is_empty() || url.password().is_some()).then(|| {
            (
                decoded(url.username()),
                decoded(url.password().unwrap_or_default()),
            )
        });
        Ok(Self {
            kind,
            uri,
            credentials,
        })
    }
}

impl std::fmt::Debug for ProxySpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ProxySpec({:?} {})", self.kind, self.uri)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_agent_is_asked_for() {
        let options = FetchOptions::new("acme-research/1.2 (+https://acme.example/bot)").unwrap();
        assert_eq!(options.robots_token, "acme-research");
        for bad in [
            "",
            " ",
            "Mozilla/5.0 (compatible; acme)",
            "1.2",
            "a\nb",
            "ä",
        ] {
            assert!(FetchOptions::new(bad).is_err(), "{bad}");
        }
        let posing =
            FetchOptions::with_robots_token("Mozilla/5.0 (compatible; acme/1)", "acme").unwrap();
        assert_eq!(posing.robots_token, "acme");
        assert!(FetchOptions::with_robots_token("acme", "").is_err());
        assert!(FetchOptions::with_robots_token("acme", "*").is_err());
    }

    #[test]
    fn a_secret_belongs_to_an_origin() {
        let options = FetchOptions::new("acme").unwrap();
        let header = |name: &str| {
            (
                name.parse::<HeaderName>().unwrap(),
                HeaderValue::from_static("x"),
            )
        };
        let with = |name: &str, origin: Option<&str>| {
            let mut options = options.clone();
            options.secret_headers = vec!["x-api-key".parse().unwrap()];
            match origin {
                None => options.headers.push(header(name)),
                Some(o) => drop(
                    options
                        .origin_headers
                        .insert(o.to_owned(), vec![header(name)]),
                ),
            }
            options.check()
        };
        assert!(with("accept-language", None).is_ok());
        for secret in ["authorization", "cookie", "x-api-key"] {
            assert!(with(secret, None).is_err(), "{secret}");
            assert!(
                with(secret, Some("https://api.example")).is_ok(),
                "{secret}"
            );
        }
        for own in [
            "host",
            "content-length",
            "proxy-authorization",
            "keep-alive",
        ] {
            assert!(with(own, Some("https://api.example")).is_err(), "{own}");
        }
        for bad in [
            "api.example",
            "https://api.example/",
            "https://api.example:443",
            "ftp://a",
        ] {
            assert!(with("authorization", Some(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_proxy_keeps_its_password_to_itself() {
        let proxy = ProxySpec::parse("http://me:s%65cret@proxy.example:8080").unwrap();
        assert_eq!(
            proxy.credentials,
            Some(("me".to_owned(), "secret".to_owned()))
        );
        assert_eq!(
            format!("{proxy:?}"),
            "ProxySpec(Http http://proxy.example:8080/)"
        );
        assert_eq!(
            ProxySpec::parse("socks5://[::1]").unwrap().uri,
            "http://[::1]:1080/"
        );
        for bad in [
            "",
            "proxy:8080",
            "https://proxy",
            "socks4://proxy",
            "http://",
            "ftp://u:secret@proxy",
        ] {
            let error = ProxySpec::parse(bad).expect_err(bad);
            assert!(!error.to_string().contains("secret"));
        }
    }
}
