//! Pages without listings: the entrance, the login page, what is forbidden, missing or gone.

use crate::demo_site::page::layout::{Content, frame, put};
use crate::demo_site::page::scene::{Rendered, Scene};
use crate::demo_site::words::{CITIES, Lang};

/// The entrance: cities with their numbers of listings.
pub(crate) fn index(scene: &Scene<'_>, lang: Lang) -> Rendered {
    let day = scene.market.day(scene.date);
    let title = lang.of(("找房子，從這裡開始", "Find a home here"));
    let mut main = format!(
        "<main>\n<h1>{title}</h1>\n<p class=\"day\"><time datetime=\"{date}\">{date}</time></p>\n<ul class=\"cities\">\n",
        date = scene.date
    );
    for (i, city) in CITIES.iter().enumerate() {
        let count = if scene.look.empty {
            0
        } else {
            day.flats(Some(i)).len()
        };
        put(
            &mut main,
            format_args!(
                "<li><a href=\"{}/{}/list?city={}\">{}</a> <span class=\"count\">{count}</span></li>\n",
                scene.prefix,
                lang.code(),
                city.slug,
                lang.of(city.name)
            ),
        );
    }
    main.push_str("</ul>\n</main>\n");
    let content = Content {
        title: title.to_owned(),
        summary: title.to_owned(),
        main,
        path: "/".to_owned(),
        ..Content::default()
    };
    Rendered::html(scene, 200, &frame(scene, lang, &content)).changed_at(scene.start_of_day())
}

/// A login page under the address of another one.
pub(crate) fn login(scene: &Scene<'_>, lang: Lang) -> Rendered {
    let title = lang.of(("會員登入", "Sign in"));
    let main = format!(
        "<main>\n<h1>{title}</h1>\n<form class=\"login\" method=\"post\" action=\"{}/private/login\">\n\
         <label>{}<input type=\"text\" name=\"account\"></label>\n\
         <label>{}<input type=\"password\" name=\"password\"></label>\n\
         <button type=\"submit\">{title}</button>\n</form>\n</main>\n",
        scene.prefix,
        lang.of(("帳號", "Account")),
        lang.of(("密碼", "Password"))
    );
    simple(scene, lang, 200, title, main)
}

/// There is no such page.
pub(crate) fn missing(scene: &Scene<'_>, lang: Lang) -> Rendered {
    let title = lang.of(("找不到網頁", "Page not found"));
    notice(scene, lang, 404, title)
}

/// The listing is not on the site any more.
pub(crate) fn gone(scene: &Scene<'_>, lang: Lang) -> Rendered {
    let title = lang.of(("此物件已下架", "This listing is not available any more"));
    notice(scene, lang, 410, title)
}

/// A page that robots.txt forbids.
pub(crate) fn private(scene: &Scene<'_>, lang: Lang) -> Rendered {
    let title = lang.of(("會員專區", "Members only"));
    notice(scene, lang, 200, title)
}

fn notice(scene: &Scene<'_>, lang: Lang, status: u16, title: &str) -> Rendered {
    let main = format!("<main>\n<h1 class=\"notice\">{title}</h1>\n</main>\n");
    simple(scene, lang, status, title, main)
}

fn simple(scene: &Scene<'_>, lang: Lang, status: u16, title: &str, main: String) -> Rendered {
    let content = Content {
        title: title.to_owned(),
        summary: title.to_owned(),
        main,
        path: "/".to_owned(),
        ..Content::default()
    };
    Rendered::html(scene, status, &frame(scene, lang, &content))
}
