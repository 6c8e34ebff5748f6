//! Which page is made, for which day and in which look.

use lakebed::time::BusinessDate;

use crate::demo_site::address::{Address, Page};
use crate::demo_site::charset;
use crate::demo_site::fault::{Look, PageKind};
use crate::demo_site::http_date::HttpTime;
use crate::demo_site::market::{Listing, Market};
use crate::demo_site::page::paging::PagingFaults;
use crate::demo_site::page::{detail, entrance, interface, list, machine};
use crate::demo_site::words::Lang;

/// What the bytes of a page are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    /// A page for people.
    Html,
    /// The interface.
    Json,
    /// Plain text.
    Text,
    /// A sitemap.
    Xml,
    /// A picture.
    Svg,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// HTTP status.
    pub(crate) status: u16,
    /// What the bytes are.
    pub(crate) media: Media,
    /// The body.
    pub(crate) bytes: Vec<u8>,
    /// When it changed last; absent where nobody can tell.
    pub(crate) modified: Option<HttpTime>,
}

impl Rendered {
    /// A page of bytes.
    pub(crate) fn new(status: u16, media: Media, bytes: Vec<u8>) -> Self {
        Self {
            status,
            media,
            bytes,
            modified: None,
        }
    }

    /// A page of HTML, in the charset of the scene.
    pub(crate) fn html(scene: &Scene<'_>, status: u16, text: &str) -> Self {
        Self::new(
            status,
            Media::Html,
            charset::encode(scene.look.charset, text),
        )
    }

    /// An answer of the interface.
    pub(crate) fn json(status: u16, value: &serde_json::Value) -> Self {
        Self::new(status, Media::Json, format!("{value}\n").into_bytes())
    }

    /// Says when it changed last.
    pub(crate) fn changed_at(mut self, at: HttpTime) -> Self {
        self.modified = Some(at);
        self
    }
}

/// For whom and how pages are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene<'a> {
    /// The market.
    pub(crate) market: &'a Market,
    /// The day.
    pub(crate) date: BusinessDate,
    /// What stands before every link, ready for an attribute.
    pub(crate) prefix: &'a str,
    /// The header `Host`, ready for an attribute.
    pub(crate) host: &'a str,
    /// Rows of a list page.
    pub(crate) per_page: u32,
    /// What faults make of the page.
    pub(crate) look: Look,
}

impl Scene<'_> {
    /// The beginning of every whole address.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}{}", self.host, self.prefix)
    }

    /// When the pages of the day came to be.
    pub(crate) fn start_of_day(&self) -> HttpTime {
        HttpTime::new(self.date, 0)
    }

    /// When the page of a listing changed last.
    pub(crate) fn changed(listing: &Listing) -> HttpTime {
        HttpTime::new(listing.changed, listing.changed_second())
    }
}

impl Look {
    /// What of it concerns lists.
    pub(crate) fn paging(&self) -> PagingFaults {
        PagingFaults {
            endless: self.endless,
            beyond: self.beyond,
            totals: self.totals,
        }
    }
}

/// Makes the page of an address; `body` is that of a search.
pub(crate) fn render(scene: &Scene<'_>, address: &Address, body: &[u8]) -> Rendered {
    if scene.look.login && shows_login(address.page.kind()) {
        return entrance::login(scene, lang_of(&address.page));
    }
    match &address.page {
        Page::Index(lang) => entrance::index(scene, *lang),
        Page::List(lang) => list::list(scene, address, *lang),
        Page::Detail(lang, id) => detail::detail(scene, *lang, *id),
        Page::Picture(id, n) => machine::picture(scene, *id, *n),
        Page::ApiList => interface::list(scene, address),
        Page::ApiDetail(id) => interface::detail(scene, address, *id),
        Page::ApiSearch => interface::search(scene, body),
        Page::Robots => machine::robots(scene),
        Page::SitemapIndex => machine::sitemap_index(scene),
        Page::Sitemap(n) => machine::sitemap(scene, *n),
        Page::Private => entrance::private(scene, Lang::Zh),
        Page::Control(_) | Page::Missing => entrance::missing(scene, Lang::Zh),
    }
}

/// The page of an error; the interface tells it as JSON.
pub(crate) fn refused(address_kind: PageKind, status: u16) -> Rendered {
    if address_kind == PageKind::Api {
        return interface::error(status, "refused");
    }
    let html = format!(
        "<!DOCTYPE html>\n<html><head><title>{status}</title></head>\n<body><h1>{status}</h1></body></html>\n"
    );
    Rendered::new(status, Media::Html, html.into_bytes())
}

fn shows_login(kind: PageKind) -> bool {
    match kind {
        PageKind::Other | PageKind::List | PageKind::Detail | PageKind::Api => true,
        PageKind::Private | PageKind::Robots | PageKind::Sitemap | PageKind::Control => false,
    }
}

fn lang_of(page: &Page) -> Lang {
    match page {
        Page::Index(lang) | Page::List(lang) | Page::Detail(lang, _) => *lang,
        Page::Picture(..)
        | Page::ApiList
        | Page::ApiDetail(_)
        | Page::ApiSearch
        | Page::Robots
        | Page::SitemapIndex
        | Page::Sitemap(_)
        | Page::Private
        | Page::Control(_)
        | Page::Missing => Lang::Zh,
    }
}
