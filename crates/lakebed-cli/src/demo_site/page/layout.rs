//! The frame of every HTML page: head, navigation, footer, and the inline style and script that
//! real sites carry on each page, so that sizes and compression mean something.

use std::fmt::Write as _;

use crate::demo_site::charset;
use crate::demo_site::page::scene::Scene;
use crate::demo_site::words::{CITIES, Lang, Pair};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
const ICONS: &str = include_str!("icons.svg");

/// What visitors ask, on every page as real sites have it.
const QUESTIONS: [(Pair, Pair); 5] = [
    (
        ("看屋前要準備什麼？", "What should I bring to a viewing?"),
        (
            "建議先列出通勤時間、預算與家具需求，看屋時逐項確認，並拍照記錄屋況。",
            "Note your way to work, your budget and the furniture you need, check each point on the spot and take pictures.",
        ),
    ),
    (
        ("押金最多可以收多少？", "How high may the deposit be?"),
        (
            "一般住宅的押金不超過兩個月租金，退租點交後應全數退還。",
            "For homes it is two months of rent at most, to be given back in full when the flat is returned in order.",
        ),
    ),
    (
        ("如何申請租金補貼？", "How do I ask for a rent subsidy?"),
        (
            "準備租約影本與身分證明，向所在城市的住宅服務窗口提出申請。",
            "Take a copy of the lease and your papers to the housing desk of the city.",
        ),
    ),
    (
        (
            "刊登內容與現況不符怎麼辦？",
            "What if a listing does not match the flat?",
        ),
        (
            "請按下頁面上的回報按鈕，客服會在兩個工作天內處理。",
            "Use the report button of the page; somebody will look into it within two working days.",
        ),
    ),
    (
        ("可以提前終止租約嗎？", "Can a lease be ended early?"),
        (
            "請依租約條款辦理，通常需要提前一個月通知，並可能支付違約金。",
            "As the lease says; as a rule with a month's notice and perhaps a fee.",
        ),
    ),
];

/// What a page puts into the frame.
#[derive(Debug, Default)]
pub(crate) struct Content {
    /// The title, without the site's name.
    pub(crate) title: String,
    /// One sentence for search engines.
    pub(crate) summary: String,
    /// Further elements of the head: links, JSON-LD.
    pub(crate) head: String,
    /// What stands between navigation and footer.
    pub(crate) main: String,
    /// Path of the page below the language, for the link to the other one.
    pub(crate) path: String,
}

/// The whole page.
pub(crate) fn frame(scene: &Scene<'_>, lang: Lang, content: &Content) -> String {
    let mut html = String::with_capacity(24 << 10);
    head(&mut html, scene, lang, content);
    navigation(&mut html, scene, lang, content);
    html.push_str(&content.main);
    footer(&mut html, scene, lang);
    html
}

fn head(html: &mut String, scene: &Scene<'_>, lang: Lang, content: &Content) {
    let site = lang.of(("湖畔租屋網（示範站）", "Lakeside Rentals (demo site)"));
    html.push_str("<!DOCTYPE html>\n<html lang=\"");
    html.push_str(lang.tag());
    html.push_str("\">\n<head>\n");
    if let Some(name) = charset::declared_in_page(scene.look.charset) {
        put(html, format_args!("<meta charset=\"{name}\">\n"));
    }
    put(
        html,
        format_args!(
            "<title>{} - {site}</title>\n<meta name=\"description\" content=\"{}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta property=\"og:site_name\" content=\"{site}\">\n\
             <meta property=\"og:title\" content=\"{}\">\n",
            content.title, content.summary, content.title
        ),
    );
    for other in Lang::ALL {
        put(
            html,
            format_args!(
                "<link rel=\"alternate\" hreflang=\"{}\" href=\"{}/{}{}\">\n",
                other.tag(),
                scene.prefix,
                other.code(),
                content.path
            ),
        );
    }
    html.push_str(&content.head);
    put(
        html,
        format_args!("<style>\n{STYLE}</style>\n</head>\n<body>\n{ICONS}"),
    );
}

fn navigation(html: &mut String, scene: &Scene<'_>, lang: Lang, content: &Content) {
    let (class, prefix, code) = (nav_class(scene), scene.prefix, lang.code());
    let home = lang.of(("首頁", "Home"));
    put(
        html,
        format_args!(
            "<header class=\"{class}\" id=\"top\">\n<a class=\"{class}__logo\" href=\"{prefix}/{code}/\">{home}</a>\n<nav>\n<ul class=\"{class}__cities\">\n"
        ),
    );
    for city in &CITIES {
        put(
            html,
            format_args!(
                "<li class=\"{class}__city\"><a href=\"{prefix}/{code}/list?city={}\">{}</a>\n<ul class=\"{class}__districts\">",
                city.slug,
                lang.of(city.name)
            ),
        );
        for (name, _) in city.districts {
            put(
                html,
                format_args!("<li class=\"{class}__district\">{}</li>", lang.of(*name)),
            );
        }
        html.push_str("</ul></li>\n");
    }
    let other = match lang {
        Lang::Zh => Lang::En,
        Lang::En => Lang::Zh,
    };
    put(
        html,
        format_args!(
            "</ul>\n</nav>\n<a class=\"{class}__lang\" rel=\"alternate\" href=\"{prefix}/{}{}\">{}</a>\n</header>\n",
            other.code(),
            content.path,
            other.of(("中文", "English"))
        ),
    );
}

fn nav_class(scene: &Scene<'_>) -> &'static str {
    if scene.look.second_markup {
        "hd2"
    } else {
        "site-head"
    }
}

fn footer(html: &mut String, scene: &Scene<'_>, lang: Lang) {
    let (prefix, code) = (scene.prefix, lang.code());
    let note = lang.of((
        "本站所有房源、人名與電話均為程式產生的虛構資料，僅供測試爬蟲使用。",
        "Every listing, name and number on this site is invented by a program, for testing crawlers.",
    ));
    put(
        html,
        format_args!(
            "<aside class=\"questions\">\n<h2>{}</h2>\n",
            lang.of(("租屋問答", "Good to know"))
        ),
    );
    for (question, answer) in QUESTIONS {
        let (question, answer) = (lang.of(question), lang.of(answer));
        put(
            html,
            format_args!("<details><summary>{question}</summary><p>{answer}</p></details>\n"),
        );
    }
    html.push_str("</aside>\n");
    put(
        html,
        format_args!(
            "<footer class=\"site-foot\">\n<p class=\"site-foot__note\">{note}</p>\n<ul>\n"
        ),
    );
    let links = [
        ("about", ("關於我們", "About us")),
        ("terms", ("服務條款", "Terms of service")),
        ("privacy", ("隱私權政策", "Privacy")),
        ("help", ("常見問題", "Questions and answers")),
        ("login", ("會員登入", "Sign in")),
        ("publish", ("刊登房屋", "Post a listing")),
        ("favourites", ("我的收藏", "My favourites")),
        ("contact", ("聯絡客服", "Contact")),
    ];
    for (path, name) in links {
        put(
            html,
            format_args!(
                "<li><a rel=\"nofollow\" href=\"{prefix}/private/{path}\">{}</a></li>\n",
                lang.of(name)
            ),
        );
    }
    put(
        html,
        format_args!(
            "</ul>\n<a href=\"{prefix}/{code}/list\">{}</a> <a href=\"#top\">{}</a>\n</footer>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            lang.of(("全部房源", "All listings")),
            lang.of(("回到頂端", "Back to top"))
        ),
    );
}

/// Adds formatted text; writing to a text cannot fail.
pub(crate) fn put(html: &mut String, text: std::fmt::Arguments<'_>) {
    match html.write_fmt(text) {
        Ok(()) | Err(_) => {}
    }
}

/// A value as a JSON script that cannot end its element early.
pub(crate) fn json_script(open: &str, value: &serde_json::Value) -> String {
    let json = value.to_string().replace("</", "<\\/");
    format!("<script{open}>{json}</script>\n")
}
