//! The sorted form of a URL: host labels reversed, so that a site's pages lie together
//! (`https://www.example.com/B?b=1&a=2` is `com,example)/b?a=2&b=1`).
//!
//! It follows what CDXJ readers compute: no scheme, user, `www.` or fragment, small letters, query
//! parameters in order. It is a sort key, not an address: two URLs may share it.

use url::{Host, Url};

/// The sorted form; a text that is no URL with a host stays as it is.
#[must_use]
pub fn surt(url: &str) -> String {
    let Some((parsed, host)) = Url::parse(url).ok().and_then(|parsed| {
        let host = parsed.host()?.to_owned();
        Some((parsed, host))
    }) else {
        return url.to_owned();
    };
    let mut key = match host {
        Host::Domain(domain) => reversed(&domain),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => format!("[{address}]"),
    };
    if let Some(port) = parsed.port() {
        key.push_str(&format!(":{port}"));
    }
    key.push(')');
    let path = parsed.path();
    let path = path
        .strip_suffix('/')
        .filter(|p| !p.is_empty())
        .unwrap_or(path);
    key.push_str(path);
    if let Some(query) = parsed.query().filter(|q| !q.is_empty()) {
        let mut parameters: Vec<&str> = query.split('&').collect();
        parameters.sort_unstable();
        key.push('?');
        key.push_str(&parameters.join("&"));
    }
    key.to_lowercase()
}

fn reversed(domain: &str) -> String {
    let domain = domain.trim_end_matches('.');
    let (first, rest) = domain.split_once('.').unwrap_or((domain, ""));
    let digits = first.strip_prefix("www");
    let is_www = digits.is_some_and(|d| d.bytes().all(|b| b.is_ascii_digit()));
    let domain = if is_www && !rest.is_empty() {
        rest
    } else {
        domain
    };
    let mut labels: Vec<&str> = domain.split('.').collect();
    labels.reverse();
    labels.join(",")
}

#[cfg(test)]
mod tests {
    use super::surt;

    #[test]
    fn keys_are_those_of_cdxj() {
        for (url, key) in [
            (
                "https://www.example.com/B?b=1&a=2#x",
                "com,example)/b?a=2&b=1",
            ),
            ("http://example.com", "com,example)/"),
            ("http://example.com/a/", "com,example)/a"),
            ("http://EXAMPLE.com:8080/?", "com,example:8080)/"),
            ("https://user:pw@www2.a.co.uk/x", "uk,co,a)/x"),
            ("http://127.0.0.1:81/x", "127.0.0.1:81)/x"),
            ("http://[::1]/x", "[::1])/x"),
            ("no url", "no url"),
            ("mailto:a@b", "mailto:a@b"),
        ] {
            assert_eq!(surt(url), key, "{url}");
        }
    }
}
