//! Where a redirect leads, and what of the request goes along. Pure: it sees a status and a `Location`.
//!
//! FET-4: credentials of a request never reach another origin than the one they were given for, and no
//! redirect leads from https to http unless the source allows it.

use http::Method;

use super::class::FailureClass;
use super::outcome::{Continuation, Failure};
use crate::spec::{CanonicalUrl, QueryOrder};

/// How redirects are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedirectOptions {
    /// Hops beyond the request itself; 0 follows none.
    pub max: u32,
    /// Whether one may lead from https to http.
    pub allow_downgrade: bool,
}

impl Default for RedirectOptions {
    /// Ten, none of them to http.
    fn default() -> Self {
        Self {
            max: 10,
            allow_downgrade: false,
        }
    }
}

/// Whether a status asks to go elsewhere. 300 and 304 do not, 305 and 306 are of the past.
pub(super) fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// The hop after `from`, which answered `status` with `location`; `state` is what else was sent to it that
/// may change the answer (its cookies), for a page may set a cookie and lead to itself.
///
/// # Errors
/// The failure that the fetch ends with.
pub(super) fn next_hop(
    from: &Continuation,
    status: u16,
    location: &str,
    state: &str,
    options: RedirectOptions,
) -> Result<Continuation, Failure> {
    let fail = |class, message: String| Failure::new(class, message);
    if from.hop >= options.max {
        let text = format!(
            "more than {} redirects, the last one to `{location}`",
            options.max
        );
        return Err(fail(FailureClass::TooManyRedirects, text));
    }
    let url = (from.url.join(location, QueryOrder::Kept)).map_err(|e| {
        fail(
            FailureClass::BadUrl,
            format!("a redirect leads nowhere: {e}"),
        )
    })?;
    if from.url.is_https() && !url.is_https() && !options.allow_downgrade {
        let text = format!("a redirect leads from https to `{url}`");
        return Err(fail(FailureClass::InsecureRedirect, text));
    }
    let method = method_after(&from.method, status);
    let with_body = from.with_body && method == from.method;
    let mut seen = from.seen.clone();
    seen.push(step(&from.method, &from.url, state));
    // The state that the next hop is sent with is known only when it is sent: see `is_loop`.
    Ok(Continuation {
        hop: from.hop + 1,
        left_origin: from.left_origin || url.origin() != from.url.origin(),
        method,
        url,
        with_body,
        seen,
    })
}

/// Whether this very hop, with this state, was made before.
pub(super) fn is_loop(hop: &Continuation, state: &str) -> bool {
    let step = step(&hop.method, &hop.url, state);
    hop.seen.contains(&step)
}

/// A hash, so that what is kept of a hop holds no cookie.
fn step(method: &Method, url: &CanonicalUrl, state: &str) -> String {
    let text = format!("{method}\n{url}\n{state}");
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

/// RFC 9110, 15.4: 303 asks with GET; 301 and 302 turn a POST into a GET, as everybody does; 307 and 308
/// keep the method.
fn method_after(method: &Method, status: u16) -> Method {
    match status {
        303 if *method != Method::HEAD => Method::GET,
        301 | 302 if *method == Method::POST => Method::GET,
        _ => method.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(method: Method, url: &str) -> Continuation {
        Continuation {
            hop: 0,
            with_body: method == Method::POST || method == Method::PUT,
            method,
            url: url.parse().unwrap(),
            left_origin: false,
            seen: Vec::new(),
        }
    }

    fn next(
        from: &Continuation,
        status: u16,
        location: &str,
    ) -> Result<Continuation, FailureClass> {
        next_hop(from, status, location, "", RedirectOptions::default()).map_err(|f| f.class)
    }

    #[test]
    fn methods_and_bodies_follow_the_rules() {
        for (method, status, expected, body) in [
            (Method::POST, 301, Method::GET, false),
            (Method::POST, 302, Method::GET, false),
            (Method::POST, 303, Method::GET, false),
            (Method::POST, 307, Method::POST, true),
            (Method::POST, 308, Method::POST, true),
            (Method::PUT, 301, Method::PUT, true),
            (Method::PUT, 303, Method::GET, false),
            (Method::HEAD, 303, Method::HEAD, false),
            (Method::HEAD, 301, Method::HEAD, false),
            (Method::GET, 308, Method::GET, false),
        ] {
            let after = next(&hop(method.clone(), "http://a.com/"), status, "/b").unwrap();
            assert_eq!(
                (after.method, after.with_body),
                (expected, body),
                "{method} {status}"
            );
        }
        for status in [200, 300, 304, 305, 306] {
            assert!(!is_redirect(status));
        }
    }

    #[test]
    fn an_origin_once_left_stays_left() {
        let start = hop(Method::GET, "https://a.com/");
        let same = next(&start, 302, "/b#c").unwrap();
        assert!(!same.left_origin);
        assert_eq!(same.url.as_str(), "https://a.com/b");
        for other in ["https://b.com/", "https://a.com:8443/", "//www.a.com/"] {
            let away = next(&same, 302, other).unwrap();
            assert!(away.left_origin, "{other}");
            assert!(next(&away, 302, "/more").unwrap().left_origin, "{other}");
            assert!(next(&away, 302, "https://a.com/").unwrap().left_origin);
        }
        assert!(
            next(&hop(Method::GET, "http://a.com/"), 302, "https://a.com/")
                .unwrap()
                .left_origin
        );
    }

    #[test]
    fn where_no_redirect_may_lead() {
        let start = hop(Method::GET, "https://a.com/");
        assert_eq!(
            next(&start, 302, "http://a.com/"),
            Err(FailureClass::InsecureRedirect)
        );
        for nowhere in [
            "javascript:0",
            "http://",
            "ftp://a.com/",
            "https://u:p@a.com/",
            "file:///etc/passwd",
        ] {
            assert_eq!(
                next(&start, 302, nowhere),
                Err(FailureClass::BadUrl),
                "{nowhere}"
            );
        }
        let allowed = RedirectOptions {
            allow_downgrade: true,
            ..RedirectOptions::default()
        };
        assert!(next_hop(&start, 302, "http://a.com/", "", allowed).is_ok());
        let none = RedirectOptions {
            max: 0,
            ..RedirectOptions::default()
        };
        let failure = next_hop(&start, 302, "/b", "", none).unwrap_err();
        assert_eq!(failure.class, FailureClass::TooManyRedirects);
    }

    #[test]
    fn a_loop_is_the_same_request_in_the_same_state() {
        let a = hop(Method::GET, "http://a.com/a");
        let b = next(&a, 302, "/b").unwrap();
        assert!(!is_loop(&b, ""));
        let again = next(&b, 302, "/a").unwrap();
        assert!(is_loop(&again, ""));
        assert!(!is_loop(&again, "s=1"), "a cookie was set meanwhile");
        let to_itself = next(&a, 302, "/a").unwrap();
        assert!(is_loop(&to_itself, ""));
        let after_post = next(&hop(Method::POST, "http://a.com/a"), 303, "/a").unwrap();
        assert!(
            !is_loop(&after_post, ""),
            "a form that leads to its own page"
        );
    }
}
