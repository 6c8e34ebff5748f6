//! Addresses of the site: which page is asked for, on which day and with which faults.
//!
//! ```text
//! [/fault/<order>[+<order>...]] [/on/<date>] <page> [?city=..&page=..]
//! ```
//! Both prefixes may stand in any order and stay in the links of the page, so that a crawl which
//! begins below one stays below it.

use lakebed::time::BusinessDate;
use lakebed::{Error, Result};
use percent_encoding::percent_decode_str;

use crate::demo_site::fault::{FaultSpec, PageKind};
use crate::demo_site::words::Lang;

/// Name of the query parameter that counts the redirects of a fault.
pub(crate) const HOP: &str = "_hop";

/// A page of the site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Page {
    /// The entrance; in Chinese at `/`.
    Index(Lang),
    /// A list of listings.
    List(Lang),
    /// One listing.
    Detail(Lang, u64),
    /// A picture of a listing.
    Picture(u64, u32),
    /// `/api/list`
    ApiList,
    /// `/api/detail/<id>`
    ApiDetail(u64),
    /// `/api/search`
    ApiSearch,
    /// `/robots.txt`
    Robots,
    /// The list of sitemaps.
    SitemapIndex,
    /// A sitemap, from 1.
    Sitemap(u32),
    /// A page that robots.txt forbids.
    Private,
    /// Steers the site; the rest of the path.
    Control(String),
    /// No page.
    Missing,
}

impl Page {
    /// What faults and statistics know it as.
    pub(crate) fn kind(&self) -> PageKind {
        match self {
            Self::Index(_) | Self::Picture(..) | Self::Missing => PageKind::Other,
            Self::List(_) => PageKind::List,
            Self::Detail(..) => PageKind::Detail,
            Self::ApiList | Self::ApiDetail(_) | Self::ApiSearch => PageKind::Api,
            Self::Robots => PageKind::Robots,
            Self::SitemapIndex | Self::Sitemap(_) => PageKind::Sitemap,
            Self::Private => PageKind::Private,
            Self::Control(_) => PageKind::Control,
        }
    }

    fn parse(path: &str) -> Self {
        let mut parts = path.split('/').skip(1);
        let first = parts.next().unwrap_or_default();
        let rest: Vec<&str> = parts.collect();
        let lang = Lang::parse(first);
        match (first, lang, rest.as_slice()) {
            ("", _, []) => Self::Index(Lang::Zh),
            (_, Some(lang), [] | [""]) => Self::Index(lang),
            (_, Some(lang), ["list"]) => Self::List(lang),
            (_, Some(lang), ["rent", id]) => {
                number(id).map_or(Self::Missing, |id| Self::Detail(lang, id))
            }
            ("img", _, [id, file]) => picture(id, file).unwrap_or(Self::Missing),
            ("api", _, ["list"]) => Self::ApiList,
            ("api", _, ["search"]) => Self::ApiSearch,
            ("api", _, ["detail", id]) => number(id).map_or(Self::Missing, Self::ApiDetail),
            ("robots.txt", _, []) => Self::Robots,
            ("sitemap.xml", _, []) => Self::SitemapIndex,
            ("sitemap", _, [file]) => file
                .strip_suffix(".xml")
                .and_then(number)
                .and_then(|n| u32::try_from(n).ok())
                .map_or(Self::Missing, Self::Sitemap),
            ("private", _, _) => Self::Private,
            ("_control", _, rest) => Self::Control(rest.join("/")),
            _ => Self::Missing,
        }
    }
}

fn picture(id: &str, file: &str) -> Option<Page> {
    let n = number(file.strip_suffix(".svg")?)?;
    Some(Page::Picture(number(id)?, u32::try_from(n).ok()?))
}

/// Digits alone, without a sign or zeros before them: an address has one spelling.
fn number(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    (plain && !text.starts_with('0'))
        .then(|| text.parse().ok())
        .flatten()
}

/// What an address asks for.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    /// What stands before the page, as it was written and ready for an attribute; links keep it.
    pub(crate) prefix: String,
    /// Faults that the address orders.
    pub(crate) faults: Vec<FaultSpec>,
    /// The day that the address names.
    pub(crate) date: Option<BusinessDate>,
    /// The page.
    pub(crate) page: Page,
    /// Parameters in order.
    pub(crate) query: Vec<(String, String)>,
    path: String,
}

impl Address {
    /// Reads path and query; an order of a fault or a date that cannot be read is an error.
    pub(crate) fn parse(path: &str, query: Option<&str>) -> Result<Self> {
        let (mut faults, mut date) = (Vec::new(), None);
        let mut rest = path;
        loop {
            if let Some((orders, after)) = segment(rest, "/fault/") {
                for order in decoded(orders)?.split('+') {
                    faults.push(FaultSpec::parse(order)?);
                }
                rest = after;
            } else if let Some((day, after)) = segment(rest, "/on/") {
                date = Some(decoded(day)?.parse()?);
                rest = after;
            } else {
                break;
            }
        }
        let prefix = &path[..path.len() - rest.len()];
        Ok(Self {
            prefix: attribute(prefix),
            faults,
            date,
            page: Page::parse(if rest.is_empty() { "/" } else { rest }),
            query: parse_query(query.unwrap_or_default()),
            path: path.to_owned(),
        })
    }

    /// A parameter of the query; the first one counts.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// How many redirects of a fault the client has followed.
    pub(crate) fn hop(&self) -> u32 {
        self.param(HOP).and_then(|n| n.parse().ok()).unwrap_or(0)
    }

    /// The same page with another number of hops.
    pub(crate) fn with_hop(&self, hop: u32) -> String {
        let mut address = format!("{}?", self.path);
        for (name, value) in self.query.iter().filter(|(n, _)| n != HOP) {
            let name =
                percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
            let value =
                percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
            address.push_str(&format!("{name}={value}&"));
        }
        format!("{address}{HOP}={hop}")
    }
}

/// The segment behind `head`, and what follows it.
fn segment<'a>(path: &'a str, head: &str) -> Option<(&'a str, &'a str)> {
    let rest = path.strip_prefix(head)?;
    Some(rest.split_at(rest.find('/').unwrap_or(rest.len())))
}

fn decoded(text: &str) -> Result<String> {
    let bytes = percent_decode_str(text).decode_utf8();
    bytes
        .map(std::borrow::Cow::into_owned)
        .map_err(|e| Error::invalid(format!("`{text}` is no UTF-8")).caused_by(e))
}

fn parse_query(query: &str) -> Vec<(String, String)> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    query
        .split('&')
        .filter(|part| !part.is_empty())
        .map(|part| match part.split_once('=') {
            Some((name, value)) => (decode(name), decode(value)),
            None => (decode(part), String::new()),
        })
        .collect()
}

/// A text within an attribute or between tags.
pub(crate) fn attribute(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str) -> Address {
        Address::parse(path, None).unwrap()
    }

    #[test]
    fn pages_have_one_address() {
        let pages = [
            ("/", Page::Index(Lang::Zh)),
            ("/en", Page::Index(Lang::En)),
            ("/zh/list", Page::List(Lang::Zh)),
            ("/en/rent/12", Page::Detail(Lang::En, 12)),
            ("/img/12/3.svg", Page::Picture(12, 3)),
            ("/api/list", Page::ApiList),
            ("/api/detail/7", Page::ApiDetail(7)),
            ("/robots.txt", Page::Robots),
            ("/sitemap/2.xml", Page::Sitemap(2)),
            ("/private/contact/1", Page::Private),
            ("/_control/stats", Page::Control("stats".to_owned())),
        ];
        for (path, page) in pages {
            assert_eq!(parse(path).page, page, "{path}");
        }
        for path in [
            "/zh/rent/012",
            "/zh/rent/-1",
            "/zh/rent/",
            "/zh/rent/99999999999999999999",
            "/fr/list",
            "/zh/list/",
            "/robots.txt/",
            "/img/1/1.png",
        ] {
            assert_eq!(parse(path).page, Page::Missing, "{path}");
        }
    }

    #[test]
    fn prefixes_stay_in_links() {
        let address = parse("/fault/slow:5+share:3:500@list/on/2026-01-02/zh/list");
        assert_eq!(
            address.prefix,
            "/fault/slow:5+share:3:500@list/on/2026-01-02"
        );
        assert_eq!(address.faults.len(), 2);
        assert_eq!(address.date.unwrap().to_string(), "2026-01-02");
        assert_eq!(address.page, Page::List(Lang::Zh));
        assert_eq!(parse("/on/2026-01-02").page, Page::Index(Lang::Zh));
        assert_eq!(parse("/fault/rate_limit:1%2F5/").faults.len(), 1);
        let hostile = parse("/fault/hang@host=a\"><script>/zh/list");
        assert!(!hostile.prefix.contains(['"', '<', '>']));
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        for path in [
            "/fault/x/",
            "/fault//zh/list",
            "/on/2026-13-01/",
            "/on/%ff/",
        ] {
            assert!(Address::parse(path, None).is_err(), "{path}");
        }
    }

    #[test]
    fn hops_are_counted_in_the_query() {
        let address = Address::parse("/zh/list", Some("city=a%20b&_hop=2&page=3")).unwrap();
        assert_eq!(address.hop(), 2);
        assert_eq!(address.param("city"), Some("a b"));
        assert_eq!(address.with_hop(3), "/zh/list?city=a%20b&page=3&_hop=3");
        assert_eq!(parse("/").with_hop(1), "/?_hop=1");
    }
}
