//! The cookies of a source: one jar, shared by its workers in a process, that can be saved and loaded.
//!
//! A cookie for a whole public suffix (`Domain=com.tw`, `Domain=github.io`) is not taken: the list of
//! public suffixes is built in. Expiry goes by the machine's clock, inside the library.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cookie_store::{Cookie, CookieStore, RawCookie};
use url::Url;

use crate::error::{Error, Result};

/// Most cookies that one jar holds: a hostile site cannot fill the memory.
const MAX_COOKIES: usize = 3_000;
/// Longest `Set-Cookie` that is taken, in bytes, as in browsers.
const MAX_COOKIE_BYTES: usize = 4_096;

/// Cookies of one source; clones share them.
#[derive(Debug, Clone, Default)]
pub struct CookieJar {
    store: Arc<Mutex<CookieStore>>,
}

impl CookieJar {
    /// A jar with what [`to_json`](Self::to_json) gave; what is expired meanwhile is left out.
    ///
    /// # Errors
    /// `CorruptData` for any other text.
    pub fn from_json(text: &str) -> Result<Self> {
        let bad =
            |e: serde_json::Error| Error::corrupt("the saved cookies cannot be read").caused_by(e);
        let cookies: Vec<Cookie<'static>> = serde_json::from_str(text).map_err(bad)?;
        let store =
            CookieStore::from_cookies(cookies.into_iter().map(Ok::<_, serde_json::Error>), false)
                .map_err(bad)?;
        Ok(Self {
            store: Arc::new(Mutex::new(store)),
        })
    }

    /// Every cookie that is not expired, those of a session included, as a JSON array sorted by its texts.
    ///
    /// # Errors
    /// `Internal` if a cookie cannot be written.
    pub fn to_json(&self) -> Result<String> {
        let store = self.lock();
        let mut texts = Vec::new();
        for cookie in store.iter_unexpired() {
            let text = serde_json::to_string(cookie)
                .map_err(|e| Error::internal("a cookie cannot be written").caused_by(e))?;
            texts.push(text);
        }
        texts.sort_unstable();
        Ok(format!("[{}]", texts.join(",")))
    }

    /// How many cookies there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().iter_unexpired().count()
    }

    /// The value of the header `Cookie` for a request; `None` for no cookie.
    pub(super) fn header(&self, url: &Url) -> Option<String> {
        let store = self.lock();
        let mut matching = store.matches(url);
        // Longer paths first (RFC 6265, 5.4); then by name, so that a request is the same each time.
        matching
            .sort_by(|a, b| (b.path.len().cmp(&a.path.len())).then_with(|| a.name().cmp(b.name())));
        let pairs: Vec<String> = (matching.iter())
            .map(|c| format!("{}={}", c.name(), c.value()))
            .collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// Takes the values of the headers `Set-Cookie`; what is not acceptable is passed over, as browsers do.
    pub(super) fn take<'a>(&self, values: impl Iterator<Item = &'a [u8]>, url: &Url) {
        let mut store = self.lock();
        for value in values.filter(|v| v.len() <= MAX_COOKIE_BYTES) {
            let text = String::from_utf8_lossy(value);
            let Ok(raw) = RawCookie::parse(text.as_ref()) else {
                continue;
            };
            let mut raw = raw.into_owned();
            if let Some(domain) = raw.domain().map(str::to_owned)
                && is_public_suffix(&domain)
            {
                let own = url
                    .host_str()
                    .is_some_and(|host| host.eq_ignore_ascii_case(domain.trim_start_matches('.')));
                if !own {
                    continue;
                }
                raw.unset_domain();
            }
            let Ok(cookie) = Cookie::try_from_raw_cookie(&raw, url) else {
                continue;
            };
            let (domain, path) = (String::from(&cookie.domain), String::from(&cookie.path));
            // Another value for a known cookie, or its end, needs no room.
            if store.contains_any(&domain, &path, cookie.name()) || has_room(&mut store) {
                // What the store does not accept (another site's domain, an expired cookie) is not kept.
                drop(store.insert(cookie.into_owned(), url));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, CookieStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether one more cookie may come in; those that are expired make room.
fn has_room(store: &mut CookieStore) -> bool {
    if store.iter_any().count() < MAX_COOKIES {
        return true;
    }
    let alive: Vec<_> = store.iter_unexpired().cloned().map(Ok::<_, ()>).collect();
    let has_room = alive.len() < MAX_COOKIES;
    if has_room && let Ok(smaller) = CookieStore::from_cookies(alive, false) {
        *store = smaller;
    }
    has_room
}

/// Whether nobody owns a domain as a whole. Names that the list does not know count by their last label.
fn is_public_suffix(domain: &str) -> bool {
    let domain = domain.trim_start_matches('.').to_ascii_lowercase();
    psl::suffix(domain.as_bytes()).is_some_and(|suffix| suffix.as_bytes() == domain.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn jar_with(cookies: &[&str], at: &str) -> CookieJar {
        let jar = CookieJar::default();
        jar.take(cookies.iter().map(|c| c.as_bytes()), &url(at));
        jar
    }

    #[test]
    fn cookies_go_where_they_belong() {
        let jar = jar_with(
            &[
                "b=2; Path=/",
                "a=1; Path=/",
                "deep=3; Path=/x",
                "s=4; Secure",
                "d=5; Domain=example.com.tw; Path=/",
            ],
            "https://www.example.com.tw/x/y",
        );
        let header = |t: &str| jar.header(&url(t));
        assert_eq!(
            header("https://www.example.com.tw/"),
            Some("a=1; b=2; d=5".to_owned())
        );
        assert_eq!(
            header("https://www.example.com.tw/x/"),
            Some("deep=3; s=4; a=1; b=2; d=5".to_owned())
        );
        assert_eq!(
            header("http://www.example.com.tw/x/"),
            Some("deep=3; a=1; b=2; d=5".to_owned())
        );
        assert_eq!(header("http://example.com.tw/"), Some("d=5".to_owned()));
        assert_eq!(header("http://other.com.tw/"), None);
    }

    #[test]
    fn nobody_sets_a_cookie_for_a_public_suffix() {
        for (domain, at) in [
            ("com.tw", "http://a.com.tw/"),
            (".com.tw", "http://a.com.tw/"),
            ("COM", "http://a.com/"),
            ("github.io", "http://a.github.io/"),
            ("example.com", "http://other.com/"),
        ] {
            let jar = jar_with(&[&format!("x=1; Domain={domain}; Path=/")], at);
            assert_eq!(jar.count(), 0, "{domain} at {at}");
        }
        let own = jar_with(&["x=1; Domain=github.io; Path=/"], "http://github.io/");
        assert_eq!(
            own.header(&url("http://github.io/")),
            Some("x=1".to_owned())
        );
        assert_eq!(own.header(&url("http://a.github.io/")), None);
    }

    #[test]
    fn a_jar_is_saved_and_loaded() {
        let jar = jar_with(
            &[
                "session=1; Path=/",
                "kept=2; Path=/; Max-Age=3600; Secure; HttpOnly",
                "gone=3; Max-Age=0",
                "\"odd=;,\u{e9}\"=4",
            ],
            "https://a.com/",
        );
        let text = jar.to_json().unwrap();
        let back = CookieJar::from_json(&text).unwrap();
        assert_eq!(back.to_json().unwrap(), text);
        assert_eq!(
            back.header(&url("https://a.com/")),
            jar.header(&url("https://a.com/"))
        );
        assert!(
            back.header(&url("https://a.com/"))
                .unwrap()
                .contains("kept=2; session=1")
        );
        for bad in ["", "{}", "[1]", "[{}]"] {
            assert!(CookieJar::from_json(bad).is_err(), "{bad}");
        }
        assert_eq!(CookieJar::from_json("[]").unwrap().count(), 0);
    }

    #[test]
    fn a_hostile_site_cannot_fill_the_memory() {
        let jar = CookieJar::default();
        let many: Vec<String> = (0..MAX_COOKIES + 10)
            .map(|n| format!("c{n}=1; Path=/"))
            .collect();
        jar.take(many.iter().map(|c| c.as_bytes()), &url("http://a.com/"));
        assert_eq!(jar.count(), MAX_COOKIES);
        let gone: Vec<String> = (0..20)
            .map(|n| format!("c{n}=; Path=/; Max-Age=0"))
            .collect();
        jar.take(gone.iter().map(|c| c.as_bytes()), &url("http://a.com/"));
        jar.take([&b"new=1; Path=/"[..]].into_iter(), &url("http://a.com/"));
        assert!(
            jar.header(&url("http://a.com/"))
                .unwrap()
                .ends_with("; new=1")
        );
        let long = format!("x={}", "y".repeat(MAX_COOKIE_BYTES));
        assert_eq!(jar_with(&[&long], "http://a.com/").count(), 0);
    }
}
