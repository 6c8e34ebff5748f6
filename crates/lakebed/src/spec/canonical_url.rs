//! One spelling for each URL: what the queue keys on, what the fetcher asks for, what a capture names.
//!
//! Two texts that RFC 3986 calls equal for `http` and `https` become one text; texts that a server may
//! answer differently stay different. So the order, the case and the emptiness of query parameters stay
//! as they are, nothing is ever dropped from a query, and double slashes stay.
//!
//! | part | rule |
//! | --- | --- |
//! | scheme | `http` or `https`, small letters |
//! | user, password | refused: a secret does not belong into a queue |
//! | host | IDNA to ASCII, small letters; one final dot goes; IPv4 in four decimal numbers; letters, digits, `-` and `_` alone |
//! | port | goes where it is the scheme's own |
//! | path | dot segments are resolved; an empty path is `/` |
//! | escapes | capitals; unreserved characters stand unescaped; a `%` that begins no escape stays |
//! | query | as it is; [`QueryOrder::Sorted`] sorts parameters by name and keeps repeated ones in order |
//! | fragment | goes: it never reaches a server |
//!
//! What does not belong here: whether an address may be reached (`fetch`), and the sort form of
//! indexes ([`surt`](super::surt)).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::error::{Error, Result};

/// Longest URL that is taken, in bytes of its canonical form.
pub const MAX_URL_BYTES: usize = 32_768;

/// Whether the order of query parameters carries meaning for a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryOrder {
    /// It may: the query stays as it is.
    #[default]
    Kept,
    /// It does not: parameters are sorted by name; those of one name keep their order.
    Sorted,
}

/// An `http` or `https` URL in its one spelling. Equal URLs have equal texts, and parsing the text of
/// one gives the same again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CanonicalUrl(Url);

impl CanonicalUrl {
    /// The canonical form of an absolute URL.
    ///
    /// # Errors
    /// `InvalidInput` for what is no URL, for other schemes than `http` and `https`, for a user or a
    /// password, for a host with empty labels or odd characters, and beyond [`MAX_URL_BYTES`].
    pub fn parse(text: &str, order: QueryOrder) -> Result<Self> {
        let url = Url::parse(text).map_err(|e| bad(text, &e.to_string()))?;
        Self::of(url, text, order)
    }

    /// The canonical form of a reference (a link, a `Location`) found at this URL.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn join(&self, reference: &str, order: QueryOrder) -> Result<Self> {
        let url = (self.0.join(reference)).map_err(|e| bad(reference, &e.to_string()))?;
        Self::of(url, reference, order)
    }

    fn of(mut url: Url, text: &str, order: QueryOrder) -> Result<Self> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(text, "its scheme is neither http nor https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                Error::invalid("the URL has a user or a password in it").hint(
                    "take it out and give the source a header or a cookie: a URL is written to many places",
                ),
            );
        }
        url.set_fragment(None);
        normalize_host(&mut url, text)?;
        let path = normalize_escapes(url.path());
        url.set_path(&path);
        if let Some(query) = url.query().map(normalize_escapes) {
            url.set_query(Some(&match order {
                QueryOrder::Kept => query,
                QueryOrder::Sorted => sort_query(&query),
            }));
        }
        if url.as_str().len() > MAX_URL_BYTES {
            return Err(bad(
                &text[..text.floor_char_boundary(200)],
                "it is too long",
            ));
        }
        Ok(Self(url))
    }

    /// The whole text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The parsed form.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.0
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Name or address; IPv6 addresses in brackets. Never empty.
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The port that is connected to.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or_default()
    }

    /// Host, and the port where it is not the scheme's own: what a politeness limit applies to.
    #[must_use]
    pub fn host_key(&self) -> String {
        match self.0.port() {
            Some(port) => format!("{}:{port}", self.host()),
            None => self.host().to_owned(),
        }
    }

    /// Scheme, host and port: what a `robots.txt` applies to, and what credentials must not leave.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}://{}", self.0.scheme(), self.host_key())
    }

    /// Path, and `?` with the query where there is one: what stands in a request line.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        &self.0[url::Position::BeforePath..url::Position::AfterQuery]
    }
}

impl FromStr for CanonicalUrl {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text, QueryOrder::Kept)
    }
}

impl TryFrom<String> for CanonicalUrl {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<CanonicalUrl> for String {
    fn from(url: CanonicalUrl) -> Self {
        url.0.into()
    }
}

impl fmt::Display for CanonicalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn bad(text: &str, why: &str) -> Error {
    Error::invalid(format!("`{text}` is not a URL to fetch: {why}"))
}

/// Drops one final dot of a name; refuses empty labels and characters that no name has.
fn normalize_host(url: &mut Url, text: &str) -> Result<()> {
    let Some(url::Host::Domain(name)) = url.host() else {
        return Ok(());
    };
    let bare = name.strip_suffix('.').unwrap_or(name).to_owned();
    if bare.split('.').any(str::is_empty) {
        return Err(bad(text, "its host has an empty label"));
    }
    // The standard lets through what no name server knows and no request can carry, such as a backtick.
    if !(bare.bytes()).all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')) {
        return Err(bad(text, "its host has characters that no name has"));
    }
    if bare.len() != name.len() {
        (url.set_host(Some(&bare))).map_err(|e| bad(text, &e.to_string()))?;
        // Without its dot a name may turn out to be an address, which the parser writes its own way.
        if url.host_str().is_none_or(|host| host.ends_with('.')) {
            return Err(bad(text, "its host is no name"));
        }
    }
    Ok(())
}

/// Escapes in capitals, unreserved characters unescaped.
///
/// A `%` that begins no escape stays alone (`%u4E2D` of old scripts means something to its server), and
/// nothing is unescaped into the two places behind it, where it would become an escape.
fn normalize_escapes(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut after_stray = usize::MAX;
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let Some(c) = rest.chars().next() else {
            break;
        };
        if c != '%' {
            out.push(c);
            at += c.len_utf8();
            continue;
        }
        let Some(value) = escaped_byte(bytes, at) else {
            out.push('%');
            after_stray = out.len();
            at += 1;
            continue;
        };
        let would_join = value.is_ascii_hexdigit() && out.len().wrapping_sub(after_stray) < 2;
        if is_unreserved(value) && !would_join {
            out.push(char::from(value));
        } else {
            out.push('%');
            out.push_str(&rest[1..3].to_ascii_uppercase());
        }
        at += 3;
    }
    out
}

/// The byte that the escape at `at` stands for; `None` where no escape begins.
pub(super) fn escaped_byte(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |i: usize| {
        let digit = char::from(*bytes.get(i)?).to_digit(16)?;
        u8::try_from(digit).ok()
    };
    (bytes.get(at) == Some(&b'%')).then_some(())?;
    Some(digit(at + 1)? << 4 | digit(at + 2)?)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn sort_query(query: &str) -> String {
    let mut parameters: Vec<&str> = query.split('&').collect();
    parameters.sort_by_key(|p| p.split_once('=').map_or(*p, |(name, _)| name));
    parameters.join("&")
}

#[cfg(test)]
mod tests;
