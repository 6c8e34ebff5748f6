//! What the pages say.

use std::collections::BTreeSet;
use std::io::Read;

use encoding_rs::{BIG5, Encoding, GBK, UTF_8};
use flate2::read::GzDecoder;

use super::client::{Reply, ask, get, ids, post, site, site_with};
use crate::demo_site::server::Server;

/// The text between two marks.
fn between<'a>(text: &'a str, head: &str, tail: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(head)?;
    rest.split_once(tail).map(|(found, _)| found)
}

fn number(text: &str, head: &str) -> usize {
    between(text, head, "\"").unwrap().parse().unwrap()
}

/// Every id that a list page links to.
fn links(page: &str) -> Vec<u64> {
    let cards = page.split("card__title\"><a href=\"").skip(1);
    cards
        .map(|c| {
            let (address, _) = c.split_once('"').unwrap();
            address.rsplit_once('/').unwrap().1.parse().unwrap()
        })
        .collect()
}

/// Attacks SITE-1. Pinned bytes. Who changes the site on purpose writes the new hash.
#[tokio::test]
async fn the_same_seed_and_date_give_the_same_bytes() {
    let server = site(&[]).await;
    let id = ids(&server).await[3];
    let paths = [
        "/".to_owned(),
        "/en/".to_owned(),
        "/zh/list?city=jinhe&page=1".to_owned(),
        "/en/list?page=3".to_owned(),
        format!("/zh/rent/{id}"),
        format!("/en/rent/{id}"),
        format!("/fault/markup:2/zh/rent/{id}"),
        format!("/fault/charset:big5/zh/rent/{id}"),
        format!("/api/detail/{id}"),
        format!("/img/{id}/1.svg"),
        "/robots.txt".to_owned(),
        "/sitemap/1.xml".to_owned(),
        "/on/2020-02-29/zh/list".to_owned(),
    ];
    let mut hashes = Vec::new();
    for path in &paths {
        let reply = get(&server, path).await;
        assert_eq!(reply.status, 200, "{path}");
        hashes.push(blake3::hash(&reply.body).to_hex()[..12].to_owned());
    }
    let other = site_with(|o| o.date = "2020-02-29".parse().unwrap()).await;
    let elsewhere = get(&other, "/zh/list").await;
    let there = get(&server, "/on/2020-02-29/zh/list").await;
    let without_prefix = there.text().replace("/on/2020-02-29", "");
    assert_eq!(elsewhere.text(), without_prefix, "any day can be asked for");
    assert_eq!(hashes, GOLDEN);
}

/// The beginnings of the BLAKE3 hashes of those pages.
const GOLDEN: [&str; 13] = [
    "70aa21d9bda2",
    "3e78ecc538f2",
    "9d5e7895731f",
    "25dc6f962884",
    "42b743def443",
    "0b092d8d6faf",
    "9367669641b9",
    "d69183f852a0",
    "c34f253e0af5",
    "2532168c1632",
    "2c98d1d0009a",
    "735cfa72fdd1",
    "dbd3dd918937",
];

/// Attacks SITE-2.
#[tokio::test]
async fn announced_totals_are_the_sum_over_all_pages() {
    let server = site(&[]).await;
    for city in ["", "city=chenghu&", "city=songpu&"] {
        for lang in ["zh", "en"] {
            let first = get(&server, &format!("/{lang}/list?{city}page=1"))
                .await
                .text();
            let total = number(&first, "data-total=\"");
            let pages = number(&first, "data-pages=\"");
            let mut found = BTreeSet::new();
            let mut rows = 0;
            for page in 1..=pages {
                let text = get(&server, &format!("/{lang}/list?{city}page={page}"))
                    .await
                    .text();
                assert_eq!(number(&text, "data-total=\""), total);
                let announced = format!("\"numberOfItems\":{total},");
                assert!(text.contains(&announced), "JSON-LD says the same");
                assert_eq!(text.contains("rel=\"next\""), page < pages);
                let links = links(&text);
                rows += links.len();
                found.extend(links);
            }
            assert_eq!((rows, found.len()), (total, total), "{city} {lang}");
            let past = get(&server, &format!("/{lang}/list?{city}page={}", pages + 1)).await;
            assert_eq!(past.status, 404);
        }
    }
    let api = get(&server, "/api/list?city=chenghu&page=2").await.json();
    let page = get(&server, "/zh/list?city=chenghu&page=2").await.text();
    let items = api["items"].as_array().unwrap();
    let api_ids: Vec<u64> = items.iter().map(|i| i["id"].as_u64().unwrap()).collect();
    assert_eq!(
        api_ids,
        links(&page),
        "the interface shows what the pages show"
    );
}

#[tokio::test]
async fn searches_find_what_lists_have() {
    let server = site(&[]).await;
    let all = get(&server, "/api/list").await.json()["total"]
        .as_u64()
        .unwrap();
    let mut sum = 0;
    for kind in ["whole", "studio", "suite", "room", "parking"] {
        let body = format!("{{\"kind\": \"{kind}\", \"per_page\": 200}}");
        let found = post(&server, "/api/search", &body).await.json();
        let items = found["items"].as_array().unwrap();
        assert!(items.iter().all(|i| i["kind"] == kind));
        sum += found["total"].as_u64().unwrap();
    }
    assert_eq!(sum, all);
    let cheap = post(
        &server,
        "/api/search",
        "{\"max_price\": 9999, \"city\": \"chenghu\"}",
    )
    .await;
    let cheap = cheap.json();
    assert!(cheap["total"].as_u64().unwrap() > 0);
    for item in cheap["items"].as_array().unwrap() {
        let price = item["price"].as_u64();
        assert!(
            price.is_none_or(|p| p < 10_000) && item["city"] == "chenghu",
            "{item}"
        );
    }
    for bad in [
        "",
        "[]",
        "{\"town\": 1}",
        "{\"city\": \"nowhere\"}",
        "{\"kind\": \"castle\"}",
    ] {
        assert_eq!(post(&server, "/api/search", bad).await.status, 400, "{bad}");
    }
    assert_eq!(get(&server, "/api/search").await.status, 405);
    assert_eq!(post(&server, "/zh/list", "").await.status, 405);
}

#[tokio::test]
async fn a_detail_page_says_what_the_interface_says() {
    let server = site(&[]).await;
    for id in ids(&server).await.into_iter().take(12) {
        let zh = get(&server, &format!("/zh/rent/{id}")).await.text();
        let data = get(&server, &format!("/api/detail/{id}")).await.json();
        assert!((14_000..26_000).contains(&zh.len()), "{}", zh.len());
        let ld = between(&zh, "<script type=\"application/ld+json\">", "</script>").unwrap();
        let ld: serde_json::Value = serde_json::from_str(ld).unwrap();
        assert_eq!(ld["offers"]["price"], data["price"]);
        assert_eq!(ld["name"], data["title"]);
        let state = between(&zh, "window.__LISTING__ = ", ";</script>").unwrap();
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(state).unwrap(),
            data
        );
        let posted = data["posted"].as_str().unwrap();
        assert!(zh.contains(&format!("<td>{posted}</td>")));
        let en = get(&server, &format!("/en/rent/{id}")).await.text();
        let body = between(&en, "<main>", "</main>").unwrap();
        assert!(body.is_ascii(), "the English page has no Chinese");
    }
}

#[tokio::test]
async fn unknown_pages_are_404_and_ended_listings_410() {
    let server = site(&[]).await;
    for path in [
        "/zh/rent/5",
        "/zh/list?city=nowhere",
        "/zh/list?page=0",
        "/zh/list?page=x",
        "/nothing",
        "/sitemap/9.xml",
        "/api/detail/5",
        "/api/list?lang=fr",
    ] {
        assert_eq!(get(&server, path).await.status, 404, "{path}");
    }
    let mut seen = BTreeSet::new();
    for id in ids(&server).await {
        for day in ["2026-12-10", "2026-12-20", "2027-01-10", "2027-06-01"] {
            let reply = get(&server, &format!("/on/{day}/en/rent/{id}")).await;
            seen.insert(reply.status);
            if reply.text().contains("class=\"rented\"") {
                seen.insert(1);
            }
        }
    }
    assert_eq!(Vec::from_iter(seen), [1, 200, 404, 410]);
}

#[tokio::test]
async fn what_has_not_changed_is_304() {
    let server = site(&[]).await;
    let id = ids(&server).await[20];
    for path in [
        format!("/zh/rent/{id}"),
        "/en/list?page=2".to_owned(),
        format!("/api/detail/{id}"),
        "/robots.txt".to_owned(),
    ] {
        let first = get(&server, &path).await;
        let tag = first.header("etag").unwrap().to_owned();
        let modified = first.header("last-modified").unwrap().to_owned();
        for condition in [
            format!("If-None-Match: {tag}\r\n"),
            format!("If-None-Match: \"x\", W/{tag}\r\n"),
            format!("If-Modified-Since: {modified}\r\n"),
        ] {
            let again = ask(&server, "GET", &path, &condition).await.unwrap();
            assert_eq!(
                (again.status, again.body.len()),
                (304, 0),
                "{path} {condition}"
            );
            assert_eq!(again.header("etag"), Some(tag.as_str()));
        }
        let other = ask(&server, "GET", &path, "If-None-Match: \"x\"\r\n")
            .await
            .unwrap();
        assert_eq!(other.body, first.body);
    }
    // A listing keeps its page over days until something changes; a list does not.
    let mut kept = 0;
    for id in ids(&server).await {
        let tag = |reply: &Reply| reply.header("etag").unwrap().to_owned();
        let today = tag(&get(&server, &format!("/api/detail/{id}")).await);
        let condition = format!("If-None-Match: {today}\r\nX-Site-Date: 2026-12-01\r\n");
        let path = format!("/api/detail/{id}");
        let tomorrow = ask(&server, "GET", &path, &condition).await.unwrap();
        kept += usize::from(tomorrow.status == 304);
    }
    assert!(kept >= 20, "{kept} of 30");
    let list = get(&server, "/zh/list").await;
    let condition = format!(
        "If-Modified-Since: {}\r\nX-Site-Date: 2026-12-01\r\n",
        list.header("last-modified").unwrap()
    );
    let tomorrow = ask(&server, "GET", "/zh/list", &condition).await.unwrap();
    assert_eq!(tomorrow.status, 200);
}

#[tokio::test]
async fn gzip_and_head_give_the_same_page() {
    let server = site(&[]).await;
    let plain = get(&server, "/zh/list").await;
    let packed = ask(&server, "GET", "/zh/list", "Accept-Encoding: gzip\r\n")
        .await
        .unwrap();
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert_ne!(
        packed.header("etag"),
        plain.header("etag"),
        "two representations"
    );
    assert_eq!(packed.length(), packed.body.len());
    let mut unpacked = Vec::new();
    GzDecoder::new(&packed.body[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    assert_eq!(unpacked, plain.body);
    let head = ask(&server, "HEAD", "/zh/list", "").await.unwrap();
    assert_eq!((head.body.len(), head.length()), (0, plain.body.len()));
    assert_eq!(head.header("etag"), plain.header("etag"));
}

async fn decoded(server: &Server, path: &str, charset: &'static Encoding) -> String {
    let reply = get(server, path).await;
    let (text, _, damaged) = charset.decode(&reply.body);
    assert!(!damaged, "{path} is not {}", charset.name());
    text.into_owned()
}

#[tokio::test]
async fn charsets_hold_the_same_page() {
    let server = site(&[]).await;
    let id = ids(&server).await[0];
    let page = format!("/zh/rent/{id}");
    let plain = get(&server, &page).await.text();
    let title = between(&plain, "<title>", "</title>").unwrap().to_owned();
    let cases = [
        ("gbk", GBK, Some("gbk"), Some("gbk")),
        ("big5", BIG5, Some("big5"), Some("big5")),
        ("lie", BIG5, Some("utf-8"), Some("utf-8")),
        ("meta", BIG5, None, Some("big5")),
        ("none", GBK, None, None),
    ];
    for (name, charset, header, meta) in cases {
        let path = format!("/fault/charset:{name}{page}");
        let text = decoded(&server, &path, charset).await;
        assert!(text.contains(&format!("<title>{title}</title>")), "{name}");
        assert!(
            !text.contains("&#"),
            "{name}: every character is in the charset"
        );
        assert_eq!(between(&text, "<meta charset=\"", "\""), meta, "{name}");
        let reply = get(&server, &path).await;
        let sent = reply.header("content-type").unwrap();
        assert_eq!(sent.split_once("charset=").map(|s| s.1), header, "{name}");
        let (_, _, damaged) = UTF_8.decode(&reply.body);
        assert!(damaged, "{name} is not UTF-8, whatever it says");
    }
}

#[tokio::test]
async fn links_stay_below_their_prefix() {
    let server = site(&[]).await;
    let prefix = "/fault/slow:1/on/2026-05-05";
    for page in ["/", "/zh/list?page=2", "/en/list?city=jinhe"] {
        let text = get(&server, &format!("{prefix}{page}")).await.text();
        let mut hrefs = text
            .split("href=\"")
            .skip(1)
            .map(|h| h.split_once('"').unwrap().0);
        let stray = hrefs.find(|h| !h.starts_with(prefix) && !h.starts_with('#'));
        assert_eq!(stray, None, "{page}");
    }
    let robots = get(&server, &format!("{prefix}/robots.txt")).await.text();
    assert!(robots.contains(&format!(
        "Sitemap: http://demo.localhost{prefix}/sitemap.xml"
    )));
    let sitemap = get(&server, &format!("{prefix}/sitemap/1.xml"))
        .await
        .text();
    assert!(sitemap.contains(&format!("<loc>http://demo.localhost{prefix}/zh/rent/")));
}

#[tokio::test]
async fn sitemaps_name_every_listing() {
    let server = site(&[]).await;
    let index = get(&server, "/sitemap.xml").await.text();
    assert_eq!(index.matches("<loc>").count(), 1);
    let sitemap = get(&server, "/sitemap/1.xml").await.text();
    let total = get(&server, "/api/list").await.json()["total"]
        .as_u64()
        .unwrap();
    let urls = u64::try_from(sitemap.matches("<loc>").count()).unwrap();
    assert_eq!(urls, 2 * total);
}
