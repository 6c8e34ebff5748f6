//! The sort form of a URL (SURT) that CDXJ and the indexes of public web archives use as their key.
//!
//! `http://www.Example.com:8080/A/b/?y=2&x=1` becomes `com,example:8080)/a/b?x=1&y=2`: the labels of the
//! host in reverse, so that pages of one domain lie together. It is a key to search by, not an identity:
//! scheme, `www.`, letter case, the order of parameters and a final slash are lost.
//!
//! It agrees with the SURT of the Internet Archive's tools, which replay programs compute for what they
//! look up, with one exception: session ids in path and query stay. A text that is no URL with a host
//! (`dns:`, `urn:`, `warcinfo:`) is its own key, in small letters.

use url::{Host, Url};

use super::canonical_url::escaped_byte;

/// The sort form of `url`; total, since archives hold every kind of text. Without blanks and control
/// characters, in ASCII.
#[must_use]
pub fn surt(url: &str) -> String {
    let parsed = Url::parse(url).ok();
    let with_host = parsed.as_ref().and_then(|u| Some((u, u.host()?)));
    let Some((parsed, host)) = with_host else {
        return escape(url.trim().bytes().collect()).to_ascii_lowercase();
    };
    let mut out = reversed(&host);
    if let Some(port) = parsed.port() {
        out.push_str(&format!(":{port}"));
    }
    out.push(')');
    out.push_str(&path(parsed.path()));
    if let Some(query) = parsed.query().map(query).filter(|q| !q.is_empty()) {
        out.push('?');
        out.push_str(&query);
    }
    out
}

/// Labels in reverse, without a leading `www` or `www<digits>`.
fn reversed(host: &Host<&str>) -> String {
    let name = match host {
        Host::Domain(name) => name.trim_matches('.').to_ascii_lowercase(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => return address.to_string(),
    };
    let bare = name
        .split_once('.')
        .filter(|(first, _)| {
            (first.strip_prefix("www")).is_some_and(|d| d.bytes().all(|b| b.is_ascii_digit()))
        })
        .map_or(name.as_str(), |(_, rest)| rest);
    bare.rsplit('.').collect::<Vec<_>>().join(",")
}

/// Unescaped, without empty segments and without the final slash.
fn path(path: &str) -> String {
    let mut segments: Vec<Vec<u8>> = Vec::new();
    for segment in unescape(path).split(|b| *b == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => {
                segments.pop();
            }
            _ => segments.push(segment.to_vec()),
        }
    }
    format!("/{}", escape(segments.join(&b'/'))).to_ascii_lowercase()
}

/// Parameters in small letters, sorted.
fn query(query: &str) -> String {
    let text = escape(unescape(query)).to_ascii_lowercase();
    let mut parameters: Vec<&str> = text.split('&').collect();
    // A name without `=` stands before the same name with an empty value, as a shorter list does.
    parameters.sort_by_key(|p| match p.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (*p, None),
    });
    parameters.join("&")
}

/// Undoes escapes until none is left, in one pass: a byte that completes an escape with those before it
/// is taken together with them at once.
fn unescape(text: &str) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        out.push(byte);
        while let Some(at) = out.len().checked_sub(3)
            && let Some(value) = escaped_byte(&out, at)
        {
            out.truncate(at);
            out.push(value);
        }
    }
    out
}

/// Escapes what is no visible ASCII, `#` and `%`.
fn escape(bytes: Vec<u8>) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_graphic() && !matches!(byte, b'#' | b'%') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What `surt.surt` of the Python package `surt` 0.3.1 gives.
    const PEER: [(&str, &str); 30] = [
        ("http://192.168.1.254/info/", "254,1,168,192)/info"),
        (
            "http://www2.Example.com:80/A/b//c/../d/?B=2&a=1&A",
            "com,example)/a/b/d?a&a=1&b=2",
        ),
        ("http://example.com:8080/?", "com,example:8080)/"),
        ("https://example.com:443", "com,example)/"),
        ("https://example.com:80/x", "com,example:80)/x"),
        ("http://[::1]:81/x", "::1:81)/x"),
        (
            "http://bücher.ch/ü?q=中文",
            "ch,xn--bcher-kva)/%c3%bc?q=%e4%b8%ad%e6%96%87",
        ),
        ("http://a.com/%2525?x=%2B+1&y=%26", "com,a)/%25?&x=++1&y="),
        ("http://user:pw@a.com/", "com,a)/"),
        ("http://a.com/a%2Fb%3Fc", "com,a)/a/b?c"),
        ("http://a.com/x?a=1&", "com,a)/x?&a=1"),
        ("http://a.com/x?", "com,a)/x"),
        ("http://www.com/", "com)/"),
        ("http://a.com/a b?c d", "com,a)/a%20b?c%20d"),
        ("http://a.com/p;x=1?b&a=&a", "com,a)/p;x=1?a&a=&b"),
        ("ftp://f.com/x", "com,f)/x"),
        ("http://a.com./x", "com,a)/x"),
        ("http://a.com/?a=%zz", "com,a)/?a=%25zz"),
        ("http://a.com/%7Euser/%E4%B8%AD", "com,a)/~user/%e4%b8%ad"),
        ("http://a.com/%41%", "com,a)/a%25"),
        ("http://a.com/x#frag", "com,a)/x"),
        ("http://a.com///", "com,a)/"),
        ("http://3279880203/blah", "11,0,127,195)/blah"),
        ("http://a.com/?%41=%42&b=#", "com,a)/?a=b&b="),
        ("urn:x:Y", "urn:x:y"),
        ("dns:www.a.com", "dns:www.a.com"),
        ("http://a.com/'\"<>^`{}[]", "com,a)/'\"<>^`{}[]"),
        ("http://a_b.com/a/./b/", "com,a_b)/a/b"),
        (
            "http://www.a.com.tw/x?z=3&y=2;x=1",
            "tw,com,a)/x?y=2;x=1&z=3",
        ),
        ("http://www2foo.com/", "com,www2foo)/"),
    ];

    #[test]
    fn the_archives_tools_agree() {
        for (url, expected) in PEER {
            assert_eq!(surt(url), expected, "{url}");
        }
    }

    #[test]
    fn session_ids_stay() {
        let url = "http://a.com/?sid=0123456789abcdef0123456789abcdef";
        assert_eq!(surt(url), "com,a)/?sid=0123456789abcdef0123456789abcdef");
    }

    #[test]
    fn nested_escapes_cost_one_pass() {
        let nested = format!("http://a.com/%{}41", "25".repeat(500_000));
        assert_eq!(surt(&nested), "com,a)/a");
    }

    proptest! {
        #[test]
        fn a_key_has_no_blanks(url in ".{0,60}") {
            let key = surt(&url);
            prop_assert!(key.bytes().all(|b| b.is_ascii_graphic()), "{key}");
        }

        #[test]
        fn pages_of_a_domain_lie_together(page in "[a-z]{1,8}", sub in "[a-z]{1,8}") {
            prop_assume!(sub != "www");
            let (own, below) = (surt(&format!("http://example.com/{page}")), surt(&format!("https://{sub}.example.com/")));
            prop_assert!(own.starts_with("com,example)/"), "{own}");
            let prefix = format!("com,example,{sub})/");
            prop_assert!(below.starts_with(&prefix), "{below}");
        }
    }
}
