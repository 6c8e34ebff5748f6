//! List pages: cards, the announced totals in markup and JSON-LD, and links to the other pages.

use serde_json::{Value, json};

use crate::demo_site::address::Address;
use crate::demo_site::market::Listing;
use crate::demo_site::page::entrance;
use crate::demo_site::page::layout::{Content, frame, json_script, put};
use crate::demo_site::page::paging::{Paging, paging};
use crate::demo_site::page::scene::{Rendered, Scene};
use crate::demo_site::page::wording;
use crate::demo_site::words::{CITIES, Lang, find_city};

/// A list page; 404 for a city or a page that is not there.
pub(crate) fn list(scene: &Scene<'_>, address: &Address, lang: Lang) -> Rendered {
    let page = address.param("page").map_or(Some(1), |p| p.parse().ok());
    let city = match address.param("city") {
        Some(slug) => find_city(slug).map(Some),
        None => Some(None),
    };
    let (Some(page), Some(city)) = (page, city) else {
        return entrance::missing(scene, lang);
    };
    let index = scene.market.day(scene.date);
    let flats = if scene.look.empty {
        &[]
    } else {
        index.flats(city)
    };
    let Some(paging) = paging(flats.len(), scene.per_page, page, scene.look.paging()) else {
        return entrance::missing(scene, lang);
    };
    let rows = flats.get(paging.rows.clone()).unwrap_or(&[]);
    let listings: Vec<Listing> = rows
        .iter()
        .map(|flat| scene.market.listing_of(*flat, scene.date))
        .collect();
    let view = View {
        scene,
        lang,
        city,
        paging: &paging,
    };
    Rendered::html(scene, 200, &view.page(&listings)).changed_at(scene.start_of_day())
}

struct View<'a> {
    scene: &'a Scene<'a>,
    lang: Lang,
    city: Option<usize>,
    paging: &'a Paging,
}

impl View<'_> {
    fn page(&self, listings: &[Listing]) -> String {
        let lang = self.lang;
        let city = self
            .city
            .and_then(|c| CITIES.get(c))
            .map_or(lang.of(("全部城市", "All cities")), |c| lang.of(c.name));
        let (date, total) = (self.scene.date, self.paging.total);
        let (title, summary) = match lang {
            Lang::Zh => (
                format!("{city}租屋，第{}頁", self.paging.page),
                format!("{date} {city}共有{total}筆出租房源"),
            ),
            Lang::En => (
                format!("Homes to let in {city}, page {}", self.paging.page),
                format!("{total} homes to let in {city} on {date}"),
            ),
        };
        let mut main = format!(
            "<p class=\"crumbs\"><a href=\"{}/{}/\">{}</a>{city}</p>\n<main>\n<h1>{title}</h1>\n",
            self.scene.prefix,
            lang.code(),
            lang.of(("首頁", "Home"))
        );
        self.totals(&mut main);
        self.cards(&mut main, listings);
        self.pager(&mut main);
        main.push_str("</main>\n");
        let content = Content {
            title,
            summary,
            head: self.head(listings),
            main,
            path: self.path(self.paging.page),
        };
        frame(self.scene, lang, &content)
    }

    /// Path below the language; the first page has no number.
    fn path(&self, page: u32) -> String {
        let city = self.city.and_then(|c| CITIES.get(c)).map(|c| c.slug);
        match (city, page) {
            (None, 1) => "/list".to_owned(),
            (None, page) => format!("/list?page={page}"),
            (Some(city), 1) => format!("/list?city={city}"),
            (Some(city), page) => format!("/list?city={city}&amp;page={page}"),
        }
    }

    fn link(&self, page: u32) -> String {
        let (prefix, code) = (self.scene.prefix, self.lang.code());
        format!("{prefix}/{code}{}", self.path(page))
    }

    fn head(&self, listings: &[Listing]) -> String {
        let mut head = String::new();
        let p = self.paging;
        if p.page > 1 {
            let link = self.link(p.page - 1);
            put(
                &mut head,
                format_args!("<link rel=\"prev\" href=\"{link}\">\n"),
            );
        }
        if p.has_next {
            let link = self.link(p.page + 1);
            put(
                &mut head,
                format_args!("<link rel=\"next\" href=\"{link}\">\n"),
            );
        }
        if !self.scene.look.second_markup {
            head.push_str(&json_script(
                " type=\"application/ld+json\"",
                &self.ld(listings),
            ));
        }
        head
    }

    fn ld(&self, listings: &[Listing]) -> Value {
        let items: Vec<Value> = listings
            .iter()
            .zip(self.paging.rows.clone())
            .map(|(l, at)| {
                let url = format!("{}/{}/rent/{}", self.scene.prefix, self.lang.code(), l.id);
                json!({"@type": "ListItem", "position": at + 1, "url": url})
            })
            .collect();
        json!({
            "@context": "https://schema.org",
            "@type": "ItemList",
            "numberOfItems": self.paging.total,
            "itemListElement": items,
        })
    }

    fn totals(&self, main: &mut String) {
        let p = self.paging;
        let (total, pages, page) = (p.total, p.pages, p.page);
        if self.scene.look.second_markup {
            put(
                main,
                format_args!(
                    "<div class=\"sum\" data-n=\"{total}\" data-p=\"{pages}\">{page} / {pages}</div>\n"
                ),
            );
            return;
        }
        let words = match self.lang {
            Lang::Zh => format!(
                "共 <b class=\"total\">{total}</b> 筆，第 {page} 頁，共 <b class=\"pages\">{pages}</b> 頁"
            ),
            Lang::En => format!(
                "<b class=\"total\">{total}</b> listings, page {page} of <b class=\"pages\">{pages}</b>"
            ),
        };
        put(
            main,
            format_args!(
                "<p class=\"result\" data-total=\"{total}\" data-pages=\"{pages}\" data-page=\"{page}\">{words}</p>\n"
            ),
        );
    }

    fn cards(&self, main: &mut String, listings: &[Listing]) {
        if listings.is_empty() {
            let none = self
                .lang
                .of(("目前沒有符合的房源", "Nothing to let here at present"));
            put(main, format_args!("<p class=\"none\">{none}</p>\n"));
            return;
        }
        if self.scene.look.second_markup {
            main.push_str("<div class=\"grid2\">\n");
            listings.iter().for_each(|l| self.second_card(main, l));
            main.push_str("</div>\n");
        } else {
            main.push_str("<ul class=\"cards\">\n");
            listings.iter().for_each(|l| self.card(main, l));
            main.push_str("</ul>\n");
        }
    }

    fn card(&self, main: &mut String, listing: &Listing) {
        let (lang, flat, id) = (self.lang, &listing.flat, listing.id);
        let (prefix, code) = (self.scene.prefix, lang.code());
        put(
            main,
            format_args!(
                "<li class=\"card\" data-id=\"{id}\">\n\
                 <a class=\"card__picture\" href=\"{prefix}/img/{id}/1.svg\" data-lazy>{}</a>\n\
                 <div>\n<h2 class=\"card__title\"><a href=\"{prefix}/{code}/rent/{id}\">{}</a></h2>\n\
                 <p class=\"card__meta\"><span class=\"kind\">{}</span> <span class=\"area\">{} {}</span> \
                 <span class=\"floor\">{}</span></p>\n\
                 <p class=\"card__meta\"><span class=\"place\">{} {}</span> <time datetime=\"{}\">{}</time></p>\n\
                 </div>\n<p class=\"card__price\">{}</p>\n</li>\n",
                lang.of(("照片", "Picture")),
                listing.title(lang),
                lang.of(flat.kind.name()),
                wording::area(flat),
                lang.of(("坪", "ping")),
                wording::floor(flat, lang),
                lang.of(flat.city().name),
                lang.of(flat.district()),
                listing.posted,
                listing.posted,
                wording::price(listing, lang),
            ),
        );
    }

    fn second_card(&self, main: &mut String, listing: &Listing) {
        let (lang, flat, id) = (self.lang, &listing.flat, listing.id);
        let (prefix, code) = (self.scene.prefix, lang.code());
        put(
            main,
            format_args!(
                "<article class=\"tile\" data-key=\"r{id}\">\n<strong>{}</strong>\n\
                 <a class=\"tile-link\" href=\"{prefix}/{code}/rent/{id}\">{}</a>\n\
                 <ul><li>{}</li><li>{}</li><li>{} {}</li><li>{}</li></ul>\n</article>\n",
                wording::price(listing, lang),
                listing.title(lang),
                lang.of(flat.kind.name()),
                lang.of(flat.district()),
                wording::area(flat),
                lang.of(("坪", "ping")),
                wording::floor(flat, lang),
            ),
        );
    }

    fn pager(&self, main: &mut String) {
        let p = self.paging;
        main.push_str("<div class=\"pager\">\n");
        if p.page > 1 {
            let (link, word) = (self.link(p.page - 1), self.lang.of(("上一頁", "Previous")));
            put(
                main,
                format_args!("<a class=\"prev\" href=\"{link}\">{word}</a>\n"),
            );
        }
        let first = p.page.saturating_sub(3).max(1);
        for page in first..=p.page.saturating_add(3).min(p.pages) {
            if page == p.page {
                put(main, format_args!("<span class=\"here\">{page}</span>\n"));
            } else {
                let link = self.link(page);
                put(main, format_args!("<a href=\"{link}\">{page}</a>\n"));
            }
        }
        if p.has_next {
            let (link, word) = (self.link(p.page + 1), self.lang.of(("下一頁", "Next")));
            put(
                main,
                format_args!("<a class=\"next\" rel=\"next\" href=\"{link}\">{word}</a>\n"),
            );
        }
        main.push_str("</div>\n");
    }
}
