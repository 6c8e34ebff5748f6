//! Heads of requests and responses as bytes: what of them is recorded, and how they are read again.
//!
//! FET-3: no secret of a request is recorded: the values of `Authorization`, `Cookie`,
//! `Proxy-Authorization` and of the headers that the source names are replaced before anything is kept. Of a
//! response it is the cookies it sets, unless the source asks to record them.

use http::{HeaderMap, HeaderName, Method, StatusCode, Version};

/// What stands for a secret in a recorded head.
pub const REMOVED: &str = "[removed]";

/// Headers whose values are never recorded, beside those a source names.
const SECRET: [HeaderName; 3] = [
    http::header::AUTHORIZATION,
    http::header::COOKIE,
    http::header::PROXY_AUTHORIZATION,
];

/// Headers of a response that set cookies.
const SET_COOKIES: [&str; 2] = ["set-cookie", "set-cookie2"];

/// Whether the value of a header is a secret: it is neither recorded nor sent to another origin.
pub(super) fn is_secret(name: &HeaderName, more: &[HeaderName]) -> bool {
    SECRET.contains(name) || more.contains(name)
}

/// The head of a request, byte for byte as it went out, its secrets replaced.
#[must_use]
pub fn mask_secrets(head: &[u8], more: &[HeaderName]) -> Vec<u8> {
    mask(head, |name| is_secret(name, more))
}

/// The head of a response, byte for byte as it came, the cookies it sets replaced: who has them is logged in.
#[must_use]
pub fn mask_cookies(head: &[u8]) -> Vec<u8> {
    mask(head, |name| SET_COOKIES.contains(&name.as_str()))
}

/// Replaces the values of these headers, with lines that go on in the next one (they begin with a blank).
fn mask(head: &[u8], is_hidden: impl Fn(&HeaderName) -> bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(head.len());
    let mut is_within = false;
    for line in head.split_inclusive(|b| *b == b'\n') {
        let goes_on = line.starts_with(b" ") || line.starts_with(b"\t");
        if goes_on && is_within {
            continue;
        }
        let colon = line.iter().position(|b| *b == b':');
        let hidden = colon.filter(|colon| {
            HeaderName::from_bytes(line[..*colon].trim_ascii()).is_ok_and(|name| is_hidden(&name))
        });
        is_within = hidden.is_some();
        match hidden {
            Some(colon) => {
                out.extend_from_slice(&line[..=colon]);
                out.extend_from_slice(format!(" {REMOVED}").as_bytes());
                let content = line.strip_suffix(b"\n").unwrap_or(line);
                let content = content.strip_suffix(b"\r").unwrap_or(content);
                out.extend_from_slice(&line[content.len()..]);
            }
            None => out.extend_from_slice(line),
        }
    }
    out
}

/// The head of an HTTP/2 request, one line a header: it has no bytes of its own on the wire.
pub(super) fn request_head(method: &Method, target: &str, headers: &HeaderMap) -> Vec<u8> {
    let mut out = format!("{method} {target} HTTP/2\r\n").into_bytes();
    write_headers(headers, &mut out);
    out
}

/// The head of an HTTP/2 response, one line a header.
pub(super) fn response_head(status: StatusCode, headers: &HeaderMap) -> Vec<u8> {
    let mut out = format!("HTTP/2 {}\r\n", status.as_u16()).into_bytes();
    write_headers(headers, &mut out);
    out
}

fn write_headers(headers: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in headers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Values of a header in a recorded head, in order, blanks around them gone; bytes that are no UTF-8 are
/// replaced.
#[must_use]
pub fn header_values(head: &[u8], name: &str) -> Vec<String> {
    let lines = head.split(|b| *b == b'\n').skip(1);
    lines
        .filter_map(|line| {
            let colon = line.iter().position(|b| *b == b':')?;
            let matches = line[..colon]
                .trim_ascii()
                .eq_ignore_ascii_case(name.as_bytes());
            matches.then(|| String::from_utf8_lossy(line[colon + 1..].trim_ascii()).into_owned())
        })
        .collect()
}

/// How a version is written in a capture.
pub(super) fn version_text(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_3 => "HTTP/3",
        _ => "HTTP/1.1",
    }
}

/// The first value of a header as text; bytes that are no UTF-8 are replaced.
pub(super) fn text_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_whatever_their_case() {
        let head =
            b"GET / HTTP/1.1\r\nHost: a.com\r\nCOOKIE: s=1; t=\xff\r\nauthorization:Basic x\r\n\
            X-Key: k\r\nX-Keys: k\r\nProxy-Authorization: p\r\nReferer: Cookie: no\r\n\r\n";
        let masked = mask_secrets(head, &[HeaderName::from_static("x-key")]);
        let expected = "GET / HTTP/1.1\r\nHost: a.com\r\nCOOKIE: [removed]\r\nauthorization: [removed]\r\n\
            X-Key: [removed]\r\nX-Keys: k\r\nProxy-Authorization: [removed]\r\nReferer: Cookie: no\r\n\r\n";
        assert_eq!(String::from_utf8(masked).unwrap(), expected);
    }

    #[test]
    fn cookies_that_are_set_are_replaced_however_the_head_is_written() {
        let head = b"HTTP/1.1 200 OK\nset-cookie: sid=s3cret; Path=/\nSet-Cookie : a=b\r\n  ; go on\r\n\ton\r\n\
            X-Set-Cookie: c\r\n folded\r\nSet-Cookie:\xff\r\nCookie: d\r\n\r\nSet-Cookie: no end";
        let masked = mask_cookies(head);
        let expected = "HTTP/1.1 200 OK\nset-cookie: [removed]\nSet-Cookie : [removed]\r\n\
            X-Set-Cookie: c\r\n folded\r\nSet-Cookie: [removed]\r\nCookie: d\r\n\r\nSet-Cookie: [removed]";
        assert_eq!(String::from_utf8(masked).unwrap(), expected);
        let plain = b"HTTP/2 200\r\nx: 1\r\n\r\n";
        assert_eq!(mask_cookies(plain), plain);
    }

    #[test]
    fn headers_are_found_in_a_recorded_head() {
        let head = b"HTTP/1.1 200 OK\r\nETag:  \"a\" \r\nX: 1\nx:2\r\nBroken\r\n\r\n";
        assert_eq!(header_values(head, "etag"), ["\"a\""]);
        assert_eq!(header_values(head, "X"), ["1", "2"]);
        assert!(header_values(head, "http/1.1 200 ok").is_empty());
        assert!(header_values(b"", "x").is_empty());
    }
}
