//! Detail pages, in the markup of today and in the changed one of a fault.

use serde_json::{Value, json};

use crate::demo_site::market::{Listing, Lookup, Status};
use crate::demo_site::page::entrance;
use crate::demo_site::page::interface;
use crate::demo_site::page::layout::{Content, frame, json_script, put};
use crate::demo_site::page::scene::{Rendered, Scene};
use crate::demo_site::page::wording;
use crate::demo_site::words::{FEATURES, Lang};

/// The page of a listing; 410 for one that is not on the site any more, 404 for an unknown one.
pub(crate) fn detail(scene: &Scene<'_>, lang: Lang, id: u64) -> Rendered {
    match scene.market.find(id, scene.date) {
        Lookup::Found(_) if scene.look.empty => Rendered::html(scene, 200, &shell(scene, lang, id)),
        Lookup::Found(listing) => {
            let view = View {
                scene,
                lang,
                listing: &listing,
            };
            Rendered::html(scene, 200, &view.page()).changed_at(Scene::changed(&listing))
        }
        Lookup::Gone => entrance::gone(scene, lang),
        Lookup::Unknown => entrance::missing(scene, lang),
    }
}

/// The frame without anything in it.
fn shell(scene: &Scene<'_>, lang: Lang, id: u64) -> String {
    let content = Content {
        title: lang.of(("房源", "Listing")).to_owned(),
        main: "<main><article class=\"listing\"></article></main>\n".to_owned(),
        path: format!("/rent/{id}"),
        ..Content::default()
    };
    frame(scene, lang, &content)
}

struct View<'a> {
    scene: &'a Scene<'a>,
    lang: Lang,
    listing: &'a Listing,
}

impl View<'_> {
    fn page(&self) -> String {
        let (lang, listing) = (self.lang, self.listing);
        let title = listing.title(lang);
        let description = listing.description(lang);
        let mut main = String::with_capacity(8 << 10);
        self.crumbs(&mut main);
        let state = interface::full(listing, lang);
        let mut head = String::new();
        if self.scene.look.second_markup {
            self.second_body(&mut main, &title, &description);
        } else {
            head = json_script(
                " type=\"application/ld+json\"",
                &self.ld(&title, &description),
            );
            self.body(&mut main, &title, &description);
            let json = state.to_string().replace("</", "<\\/");
            put(
                &mut main,
                format_args!("<script>window.__LISTING__ = {json};</script>\n"),
            );
        }
        let content = Content {
            summary: description.first().cloned().unwrap_or_default(),
            title,
            head,
            main,
            path: format!("/rent/{}", listing.id),
        };
        frame(self.scene, lang, &content)
    }

    fn crumbs(&self, main: &mut String) {
        let (lang, flat) = (self.lang, &self.listing.flat);
        let (prefix, code) = (self.scene.prefix, lang.code());
        put(
            main,
            format_args!(
                "<p class=\"crumbs\"><a href=\"{prefix}/{code}/\">{}</a><a href=\"{prefix}/{code}/list?city={}\">{}</a>{}</p>\n",
                lang.of(("首頁", "Home")),
                flat.city().slug,
                lang.of(flat.city().name),
                lang.of(flat.district())
            ),
        );
    }

    fn ld(&self, title: &str, description: &[String]) -> Value {
        let flat = &self.listing.flat;
        let price = (!self.listing.offer.negotiable).then_some(self.listing.offer.price);
        json!({
            "@context": "https://schema.org",
            "@type": "Apartment",
            "@id": self.listing.id.to_string(),
            "name": title,
            "description": description.join("\n"),
            "address": {
                "@type": "PostalAddress",
                "addressRegion": self.lang.of(flat.city().name),
                "addressLocality": self.lang.of(flat.district()),
                "streetAddress": self.lang.of(flat.street),
            },
            "floorSize": {"@type": "QuantitativeValue", "value": wording::area(flat), "unitText": "ping"},
            "numberOfBedrooms": flat.rooms[0],
            "datePosted": self.listing.posted.to_string(),
            "offers": {
                "@type": "Offer",
                "price": price,
                "priceCurrency": "TWD",
                "availability": match self.listing.status {
                    Status::Listed => "https://schema.org/InStock",
                    Status::Rented => "https://schema.org/SoldOut",
                },
            },
        })
    }

    fn facts(&self) -> Vec<(&'static str, &'static str, String)> {
        let (lang, listing) = (self.lang, self.listing);
        let (flat, offer) = (&listing.flat, &listing.offer);
        let ping = lang.of(("坪", "ping"));
        let fact = |code, pair, value| (code, lang.of(pair), value);
        vec![
            fact("id", ("物件編號", "Number"), listing.id.to_string()),
            fact(
                "kind",
                ("類型", "Kind"),
                lang.of(flat.kind.name()).to_owned(),
            ),
            fact(
                "building",
                ("建物型態", "Building"),
                lang.of(flat.building.name()).to_owned(),
            ),
            fact(
                "area",
                ("坪數", "Area"),
                format!("{} {ping}", wording::area(flat)),
            ),
            fact("floor", ("樓層", "Floor"), wording::floor(flat, lang)),
            fact("rooms", ("格局", "Layout"), wording::rooms(flat, lang)),
            fact("address", ("地址", "Address"), wording::address(flat, lang)),
            fact(
                "deposit",
                ("押金", "Deposit"),
                wording::months(offer.deposit, lang),
            ),
            fact(
                "lease",
                ("最短租期", "Shortest lease"),
                wording::months(offer.lease, lang),
            ),
            fact("fee", ("管理費", "Fee"), wording::fee(listing, lang)),
            fact(
                "tenants",
                ("身分要求", "Tenants"),
                wording::tenants(listing, lang).to_owned(),
            ),
            fact("posted", ("刊登日期", "Posted"), listing.posted.to_string()),
            fact(
                "updated",
                ("更新日期", "Updated"),
                listing.changed.to_string(),
            ),
        ]
    }

    fn mark(&self) -> &'static str {
        match self.listing.status {
            Status::Listed => "",
            Status::Rented => self.lang.of((
                "<strong class=\"rented\">已出租</strong>\n",
                "<strong class=\"rented\">Let</strong>\n",
            )),
        }
    }

    fn body(&self, main: &mut String, title: &str, description: &[String]) {
        let (lang, listing) = (self.lang, self.listing);
        put(
            main,
            format_args!(
                "<main>\n<article class=\"listing\" data-id=\"{}\">\n{}<h1 class=\"listing__title\">{title}</h1>\n\
                 <p class=\"listing__price\" data-price=\"{}\">{}{}</p>\n\
                 <button type=\"button\" data-favourite data-id=\"{}\">{}</button>\n",
                listing.id,
                self.mark(),
                if listing.offer.negotiable {
                    0
                } else {
                    listing.offer.price
                },
                wording::price(listing, lang),
                self.price_note(),
                listing.id,
                lang.of(("加入收藏", "Remember"))
            ),
        );
        self.gallery(main, "listing__gallery");
        main.push_str("<table class=\"listing__facts\">\n");
        for (code, name, value) in self.facts() {
            put(
                main,
                format_args!(
                    "<tr class=\"fact fact--{code}\"><th scope=\"row\">{name}</th><td>{value}</td></tr>\n"
                ),
            );
        }
        main.push_str("</table>\n<ul class=\"listing__features\">\n");
        for ((code, name, _), has) in FEATURES.iter().zip(listing.flat.features) {
            let class = if has { "on" } else { "off" };
            put(
                main,
                format_args!(
                    "<li class=\"{class}\" data-feature=\"{code}\">{}</li>\n",
                    lang.of(*name)
                ),
            );
        }
        main.push_str("</ul>\n<section class=\"listing__text\">\n");
        for paragraph in description {
            put(main, format_args!("<p>{paragraph}</p>\n"));
        }
        main.push_str("</section>\n<p id=\"calculator\"></p>\n");
        self.contact(main);
        main.push_str("</article>\n</main>\n");
    }

    fn price_note(&self) -> String {
        let offer = &self.listing.offer;
        if offer.price_changes == 0 || offer.negotiable {
            return String::new();
        }
        let first = wording::grouped(offer.first_price);
        match self.lang {
            Lang::Zh => format!(" <small>原價 {first} 元</small>"),
            Lang::En => format!(" <small>was NT$ {first}</small>"),
        }
    }

    fn gallery(&self, main: &mut String, class: &str) {
        let (id, prefix) = (self.listing.id, self.scene.prefix);
        put(main, format_args!("<ul class=\"{class}\">\n"));
        for n in 1..=self.listing.offer.pictures {
            let word = self.lang.of(("照片", "Picture"));
            put(
                main,
                format_args!(
                    "<li><a href=\"{prefix}/img/{id}/{n}.svg\" data-lazy>{word} {n}</a></li>\n"
                ),
            );
        }
        main.push_str("</ul>\n");
    }

    fn contact(&self, main: &mut String) {
        let (lang, contact) = (self.lang, &self.listing.offer.contact);
        put(
            main,
            format_args!(
                "<section class=\"contact\">\n<h2>{}</h2>\n<p><span class=\"contact__role\">{}</span> \
                 <span class=\"contact__name\">{}</span></p>\n<p class=\"contact__phone\">{}</p>\n\
                 <p class=\"contact__mail\">{}</p>\n\
                 <a rel=\"nofollow\" href=\"{}/private/contact/{}\">{}</a>\n</section>\n",
                lang.of(("聯絡方式", "Contact")),
                lang.of(contact.role.name()),
                contact.name(lang),
                contact.phone(),
                contact.mail(),
                self.scene.prefix,
                self.listing.id,
                lang.of(("線上留言", "Write a message")),
            ),
        );
    }

    /// The same in other elements, under other names, in another order; price and contact moved.
    fn second_body(&self, main: &mut String, title: &str, description: &[String]) {
        let (lang, listing) = (self.lang, self.listing);
        put(
            main,
            format_args!(
                "<main>\n<div class=\"offer-page\" data-key=\"r{}\">\n",
                listing.id
            ),
        );
        for paragraph in description {
            put(
                main,
                format_args!("<div class=\"story\">{paragraph}</div>\n"),
            );
        }
        put(
            main,
            format_args!(
                "<h2 class=\"offer-name\">{title}</h2>\n{}<dl class=\"facts2\">\n",
                self.mark()
            ),
        );
        for (_, name, value) in self.facts().into_iter().rev() {
            put(main, format_args!("<dt>{name}</dt><dd>{value}</dd>\n"));
        }
        put(
            main,
            format_args!(
                "<dt>{}</dt><dd class=\"cost\">{}</dd>\n</dl>\n<div class=\"has\">\n",
                lang.of(("租金", "Rent")),
                wording::price(listing, lang)
            ),
        );
        for ((_, name, _), has) in FEATURES.iter().zip(listing.flat.features) {
            let class = if has { "yes" } else { "no" };
            put(
                main,
                format_args!("<span class=\"{class}\">{}</span>\n", lang.of(*name)),
            );
        }
        main.push_str("</div>\n");
        self.gallery(main, "photos");
        put(
            main,
            format_args!(
                "<div class=\"ask\">{}: {}, {}</div>\n</div>\n</main>\n",
                lang.of(listing.offer.contact.role.name()),
                listing.offer.contact.name(lang),
                listing.offer.contact.phone()
            ),
        );
    }
}
