//! How a fetch fails: one closed set of classes, the words the queue and the closing count by.

use std::fmt;

use crate::name::ErrorClass;

/// Why a fetch gave no answer. Each class is a word of its own in counts, terminals and manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailureClass {
    /// `http_<status>`: the server answered with a status that is no answer for this source.
    Http(u16),
    /// The name could not be resolved.
    Dns,
    /// The peer refused the connection.
    Refused,
    /// No way to the peer, or the machine has no more sockets.
    Unreachable,
    /// No connection within its time: name, TCP, proxy and TLS together.
    TimeoutConnect,
    /// Connected, and no head of a response within its time.
    TimeoutFirstByte,
    /// The whole fetch took longer than it may.
    TimeoutTotal,
    /// The TLS handshake failed: a certificate, a version.
    Tls,
    /// The peer went away before the response was whole.
    Disconnect,
    /// What came is no HTTP, or its head is too long.
    BadResponse,
    /// The body is longer than it may be, on the wire or without its encodings.
    BodyTooLarge,
    /// The content encoding of a whole body could not be undone.
    Decode,
    /// A redirect leads to where it came from.
    RedirectLoop,
    /// More redirects than are followed.
    TooManyRedirects,
    /// A redirect from https to http.
    InsecureRedirect,
    /// `robots.txt` forbids it.
    Robots,
    /// `robots.txt` could not be read: everything is forbidden until it can be.
    RobotsUnreachable,
    /// The host has an address that the source does not allow: this machine, a private network.
    PrivateAddress,
    /// The URL, or one that a redirect leads to, is none to fetch.
    BadUrl,
    /// The request itself cannot be sent: a method or header that is not allowed.
    BadRequest,
    /// The proxy refused or failed.
    Proxy,
    /// The host asked for patience until the run was over.
    RateLimited,
}

impl FailureClass {
    /// Every class but `http_<status>`.
    pub const NAMED: [(Self, &'static str); 21] = [
        (Self::Dns, "dns"),
        (Self::Refused, "refused"),
        (Self::Unreachable, "unreachable"),
        (Self::TimeoutConnect, "timeout_connect"),
        (Self::TimeoutFirstByte, "timeout_first_byte"),
        (Self::TimeoutTotal, "timeout_total"),
        (Self::Tls, "tls"),
        (Self::Disconnect, "disconnect"),
        (Self::BadResponse, "bad_response"),
        (Self::BodyTooLarge, "body_too_large"),
        (Self::Decode, "decode"),
        (Self::RedirectLoop, "redirect_loop"),
        (Self::TooManyRedirects, "too_many_redirects"),
        (Self::InsecureRedirect, "insecure_redirect"),
        (Self::Robots, "robots"),
        (Self::RobotsUnreachable, "robots_unreachable"),
        (Self::PrivateAddress, "private_address"),
        (Self::BadUrl, "bad_url"),
        (Self::BadRequest, "bad_request"),
        (Self::Proxy, "proxy"),
        (Self::RateLimited, "rate_limited"),
    ];

    /// Whether the same request may be answered later without any change of it.
    ///
    /// A 403 is not tried again by itself: it says no. A source that knows better lists the status
    /// in [`FetchOptions::retried_statuses`](super::FetchOptions).
    #[must_use]
    pub fn is_retryable(self) -> bool {
        match self {
            Self::Http(status) => matches!(status, 408 | 425 | 429 | 500..=599),
            Self::Dns
            | Self::Refused
            | Self::Unreachable
            | Self::TimeoutConnect
            | Self::TimeoutFirstByte
            | Self::TimeoutTotal
            | Self::Disconnect
            | Self::BadResponse
            | Self::Decode
            | Self::RobotsUnreachable
            | Self::Proxy
            | Self::RateLimited => true,
            Self::Tls
            | Self::BodyTooLarge
            | Self::RedirectLoop
            | Self::TooManyRedirects
            | Self::InsecureRedirect
            | Self::Robots
            | Self::PrivateAddress
            | Self::BadUrl
            | Self::BadRequest => false,
        }
    }

    /// Whether it speaks of a site or a network in trouble, rather than of one page.
    ///
    /// This is what the circuit breaker counts: refusals (401, 403, 407, 451), 5xx and whatever the
    /// network does. A 404, a 429, a body that is too large or a loop of redirects does not count.
    #[must_use]
    pub fn is_trouble(self) -> bool {
        match self {
            Self::Http(status) => matches!(status, 401 | 403 | 407 | 451 | 500..=599),
            Self::Dns
            | Self::Refused
            | Self::Unreachable
            | Self::TimeoutConnect
            | Self::TimeoutFirstByte
            | Self::TimeoutTotal
            | Self::Tls
            | Self::Disconnect
            | Self::BadResponse
            | Self::Proxy => true,
            Self::BodyTooLarge
            | Self::Decode
            | Self::RedirectLoop
            | Self::TooManyRedirects
            | Self::InsecureRedirect
            | Self::Robots
            | Self::RobotsUnreachable
            | Self::PrivateAddress
            | Self::BadUrl
            | Self::BadRequest
            | Self::RateLimited => false,
        }
    }

    /// Whether a whole response came and only the page is at fault: its site works.
    #[must_use]
    pub fn is_answer(self) -> bool {
        match self {
            Self::Http(status) => !self.is_trouble() && status != 429,
            Self::BodyTooLarge
            | Self::Decode
            | Self::RedirectLoop
            | Self::TooManyRedirects
            | Self::InsecureRedirect => true,
            Self::Dns
            | Self::Refused
            | Self::Unreachable
            | Self::TimeoutConnect
            | Self::TimeoutFirstByte
            | Self::TimeoutTotal
            | Self::Tls
            | Self::Disconnect
            | Self::BadResponse
            | Self::Robots
            | Self::RobotsUnreachable
            | Self::PrivateAddress
            | Self::BadUrl
            | Self::BadRequest
            | Self::Proxy
            | Self::RateLimited => false,
        }
    }

    /// The class of this name; `None` for a word of somebody else.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        if let Some(status) = name.strip_prefix("http_") {
            return status.parse().ok().map(Self::Http);
        }
        let named = Self::NAMED.iter().find(|(_, known)| *known == name);
        named.map(|(class, _)| *class)
    }

    /// The checked name that requests are counted by.
    ///
    /// # Errors
    /// None in practice: every name of the set is a valid one (a test walks over all).
    pub fn error_class(self) -> crate::Result<ErrorClass> {
        self.to_string().parse()
    }
}

impl fmt::Display for FailureClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Http(status) = self {
            return write!(f, "http_{status}");
        }
        let named = Self::NAMED.iter().find(|(class, _)| class == self);
        f.write_str(named.map_or("unknown", |(_, name)| name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_a_name_of_its_own_that_the_queue_takes() {
        let mut names: Vec<String> = FailureClass::NAMED
            .iter()
            .map(|(class, name)| {
                assert_eq!(class.to_string(), *name);
                assert_eq!(FailureClass::find(name), Some(*class));
                class.error_class().unwrap().to_string()
            })
            .collect();
        names.push(FailureClass::Http(403).error_class().unwrap().to_string());
        assert_eq!(
            FailureClass::find("http_403"),
            Some(FailureClass::Http(403))
        );
        assert_eq!(FailureClass::find("captcha"), None);
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(names.contains(&"http_403".to_owned()) && !names.contains(&"unknown".to_owned()));
    }
}
