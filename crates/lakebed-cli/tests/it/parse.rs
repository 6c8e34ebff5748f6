//! Rules over packs: one page tried, fixtures kept and compared, days replayed into revisions.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Child;

use serde_json::Value;

use crate::lake::TestLake;

pub(crate) const SOURCE: &str = r##"class = "log"
[dataset.books]
key = ["id"]

[[parse.page]]
name = "book"
url_regex = '/book/\d+$'
[[parse.page.item]]
key = ["id"]
[parse.page.item.field]
id    = { path = 2, clean = ["int"], required = true }
title = "h1::text"
price = { css = "b::text", clean = [{ replace = ["£", ""] }, "decimal"], required = true }
[[parse.page.follow]]
stage = "page"
url = "a::attr(href)"
"##;

pub(crate) const SCHEMA: &str = r#"field = [
    { id = 1, name = "id", type = "int", required = true },
    { id = 2, name = "title", type = "string" },
    { id = 3, name = "price", type = "decimal(10,2)" },
    { id = 4, name = "_raw", type = "string" },
    { id = 5, name = "_key", type = "string" },
    { id = 6, name = "_fetched_at", type = "timestamp" },
]
"#;

/// A WARC of pages, each with its address, the header's charset and its bytes.
pub(crate) fn warc(pages: &[(String, &str, Vec<u8>)]) -> Vec<u8> {
    let mut warc = Vec::new();
    for (n, (url, charset, body)) in pages.iter().enumerate() {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html{charset}\r\n\r\n");
        warc.extend_from_slice(
            format!(
                "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{n}>\r\n\
                 WARC-Date: 2026-11-29T01:02:{:02}Z\r\nWARC-Target-URI: {url}\r\n\
                 Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{head}",
                n % 60,
                head.len() + body.len()
            )
            .as_bytes(),
        );
        warc.extend_from_slice(body);
        warc.extend_from_slice(b"\r\n\r\n");
    }
    warc
}

pub(crate) fn seal(lake: &TestLake, day: &str, pages: &[(String, &str, Vec<u8>)]) {
    seal_run(lake, (day, "day"), pages);
}

pub(crate) fn seal_run(
    lake: &TestLake,
    (day, run): (&str, &str),
    pages: &[(String, &str, Vec<u8>)],
) {
    lake.file("pages.warc", warc(pages));
    let (parts, terminals) = (
        format!("parts-{day}-{run}"),
        format!("terminals-{day}-{run}.jsonl"),
    );
    let files = ["--parts", &parts, "--terminals", &terminals];
    let run = ["--source", "books", "--date", day, "--run", run];
    lake.run(&[&["pack", "import", "pages.warc"][..], &run, &files].concat())
        .ok();
    lake.run(&[&["pack", "seal"][..], &run, &files].concat())
        .ok();
}

pub(crate) fn book(n: u32, title: &str, price: &str) -> (String, &'static str, Vec<u8>) {
    let html = format!(
        "<h1>{title}</h1><b>£{price}</b><a href=/book/{}>next</a>",
        n + 1
    );
    (
        format!("http://books.example/book/{n}"),
        "; charset=utf-8",
        html.into_bytes(),
    )
}

#[test]
fn a_row_that_does_not_fit_names_its_page() {
    let lake = TestLake::new();
    lake.run(&["source", "add", "books"]).ok();
    fs::write(lake.project().join("sources/books/source.toml"), SOURCE).unwrap();
    let schema = SCHEMA.replace("\"title\", type = \"string\"", "\"title\", type = \"int\"");
    lake.schema("clean/books", 1, &schema);
    lake.run(&["schema", "publish", "clean/books", "1"]).ok();
    seal(
        &lake,
        "2026-11-29",
        &[book(7, "8", "1.50"), book(9, "Nine", "2.00")],
    );
    lake.run(&["parse", "books", "--date", "2026-11-29"])
        .code(1)
        .says(&["first on http://books.example/book/9 (`_raw` books/2026-11-29/day/"]);
}

/// A lake with books of two days, of which one page is broken and one fits no rule.
pub(crate) fn lake() -> TestLake {
    let lake = TestLake::new();
    lake.run(&["source", "add", "books"]).ok();
    fs::write(lake.project().join("sources/books/source.toml"), SOURCE).unwrap();
    lake.schema("clean/books", 1, SCHEMA);
    lake.run(&["schema", "publish", "clean/books", "1"]).ok();
    let mut pages: Vec<_> = (1..=30).map(|n| book(n, "T", "1.50")).collect();
    let gbk = b"<h1>\xbc\xf2\xcc\xe5</h1><b>\xa3\xb1</b>".to_vec();
    pages.push(("http://books.example/book/31".into(), "; charset=gbk", gbk));
    let big5 = b"<meta charset=big5><h1>\xc1c\xc5\xe9</h1><b>2.00</b>".to_vec();
    pages.push(("http://books.example/book/32".into(), "", big5));
    let sjis = b"<h1>\x93\xfa\x96{</h1><b>3.00</b>".to_vec();
    pages.push((
        "http://books.example/book/33".into(),
        "; charset=shift_jis",
        sjis,
    ));
    pages.push(book(34, "broken", "?"));
    pages.push((
        "http://books.example/about".into(),
        "",
        b"<h1>about".to_vec(),
    ));
    seal(&lake, "2026-11-28", &pages);
    seal(&lake, "2026-11-29", &[book(1, "T", "1.60")]);
    lake
}

#[test]
fn a_page_is_tried_kept_and_compared() {
    let lake = lake();
    let url = "http://books.example/book/1";
    let tried = lake.run(&["parse", "books", "--try", url]).ok();
    tried.prints(&[
        "page `book`",
        "price        \"1.60\"",
        "-> page http://books.example/book/2",
    ]);
    let json = lake
        .run(&["parse", "books", "--try", url, "--format", "json"])
        .ok()
        .json();
    assert_eq!(json["records"][0]["record"]["id"], 1);
    let capture = json["capture_id"].as_str().unwrap();
    lake.run(&["parse", "books", "--try", capture, "--save", "one"])
        .ok();
    lake.run(&["parse", "books", "--test"])
        .ok()
        .prints(&["one.html: equal"]);
    let broken = lake.run(&["parse", "books", "--try", "http://books.example/book/34"]);
    broken
        .code(1)
        .prints(&["rejected: record 0 of books", "$.price (no_number)"]);
    lake.run(&["parse", "books", "--try", "http://books.example/none"])
        .code(2)
        .says(&["no pack of `books` has"]);
    let file = lake.file("local.html", "<h1>x</h1><b>4</b>");
    let address = ["--url", "http://books.example/book/9"];
    let args = [
        &["parse", "books", "--try", file.to_str().unwrap()][..],
        &address,
    ]
    .concat();
    lake.run(&args).ok().prints(&["price        \"4\""]);
    // The site, or the rules, have changed.
    let page = lake.project().join("sources/books/fixtures/one.html");
    fs::write(&page, "<h1>U</h1><b>1.60</b>").unwrap();
    lake.run(&["parse", "books", "--test"]).code(1).prints(&[
        "one.html: different",
        "$.records[0].record.title",
        "expected \"T\"",
        "found    \"U\"",
        "$.follow_ups[0]",
    ]);
    lake.run(&["parse", "books", "--test", "--write"]).ok();
    lake.run(&["parse", "books", "--test"]).ok();
    // A page that is gone is no page that is equal.
    let kept = lake.project().join("sources/books/fixtures/other.html");
    fs::copy(&page, &kept).unwrap();
    lake.run(&["parse", "books", "--test", "--write"]).ok();
    fs::remove_file(&page).unwrap();
    for write in [&[][..], &["--write"]] {
        lake.run(&[&["parse", "books", "--test"][..], write].concat())
            .code(1)
            .prints(&["one.html: the page is gone", "other.html: "])
            .says(&["delete `one.html.expected.json`"]);
    }
}

#[test]
fn days_are_replayed_into_rows_and_changed_rules_into_revisions() {
    let lake = lake();
    let days = "2026-11-27..2026-11-29";
    let answer = lake
        .run(&["parse", "books", "--date", days, "--format", "json"])
        .code(1)
        .json();
    assert_eq!(answer["missing"], serde_json::json!(["2026-11-27"]));
    let day = &answer["dates"][0];
    for (name, expected) in [
        ("pages", 35),
        ("parsed", 34),
        ("unmatched", 1),
        ("rejected", 0),
        ("rejects", 1),
    ] {
        assert_eq!(day[name], expected, "{name}: {day}");
    }
    assert_eq!(day["datasets"][0]["stored"], "new");
    // What the rules rejected lies in the lake, beside what does not fit a schema.
    let list = [
        "rejects",
        "clean/books",
        "--date",
        "2026-11-28",
        "--format",
        "json",
    ];
    let rejects = lake.run(&list).ok().json();
    let reject = &rejects["rejects"][0];
    assert_eq!(reject["form"], "page", "{rejects}");
    assert_eq!(reject["url"], "http://books.example/book/34");
    assert_eq!(reject["reasons"][0]["code"], "no_number");
    assert_eq!(
        (&reject["path"], &reject["line"]),
        (&"$.price".into(), &1.into())
    );
    let place = reject["file"].as_str().unwrap();
    lake.run(&["parse", "books", "--try", place])
        .code(1)
        .prints(&["$.price (no_number)"]);
    let titles = "SELECT string_agg(title, ',' ORDER BY id) AS t FROM clean.books WHERE id > 30";
    assert_eq!(lake.sql_one(titles), "简体,繁體,日本");
    let sum = "SELECT CAST(sum(price) AS VARCHAR) AS s FROM clean.books";
    assert_eq!(lake.sql_one(sum), "52.60");
    let raw = lake.sql_one("SELECT _raw AS r FROM clean.books WHERE dt = '2026-11-29'");
    let capture = raw.strip_prefix("books/2026-11-29/day/").unwrap();
    lake.run(&["parse", "books", "--try", capture])
        .ok()
        .prints(&["\"1.60\""]);
    // Again: nothing is read, nothing is written.
    let files = lake.files();
    let again = lake
        .run(&["parse", "books", "--date", "2026-11-28..2026-11-29"])
        .ok();
    let again = again.prints(&[
        "2026-11-28: up to date: 35 pages in 1 pack: 34 parsed, 0 rejected, 1 fit no rule",
        "33 records, 1 reject: there already",
        "2026-11-29: up to date",
    ]);
    again.says(&["1 reject of the rules on 2026-11-28"]);
    assert_eq!(lake.files(), files);
    // A parser fix: a new revision of the date, and the old one can be had back.
    let source = lake.project().join("sources/books/source.toml");
    let fixed = SOURCE.replace(
        "\"h1::text\"",
        "{ css = \"h1::text\", clean = [{ replace = [\"T\", \"Title\"] }] }",
    );
    fs::write(&source, fixed).unwrap();
    let answer = lake
        .run(&["parse", "books", "--date", "2026-11-28", "--format", "json"])
        .ok()
        .json();
    assert_eq!(answer["dates"][0]["datasets"][0]["stored"], "revision");
    assert_eq!(
        answer["dates"][0]["datasets"][0]["commits"][0]["revision"],
        1
    );
    let count = "SELECT count(*) AS c FROM clean.books WHERE title = 'Title' AND dt = '2026-11-28'";
    assert_eq!(lake.sql_one(count), "30");
    assert_eq!(lake.sql_one("SELECT count(*) AS c FROM clean.books"), "34");
    lake.run(&["rollback", "clean/books", "--date", "2026-11-28"])
        .ok();
    assert_eq!(lake.sql_one(count), "0");
    lake.assert_clean();
    // Rows that do not fit: nothing is stored, and it says why.
    fs::write(&source, SOURCE.replace("title =", "name =")).unwrap();
    lake.run(&["parse", "books", "--date", "2026-11-29"])
        .code(1)
        .says(&["do not fit", "name"]);
}

#[test]
fn a_replay_takes_no_rows_out_of_sight_that_it_did_not_make() {
    let lake = lake();
    let parse = ["parse", "books", "--date", "2026-11-28"];
    lake.run(&parse).ok();
    let count = "SELECT count(*) AS c FROM clean.books WHERE dt = '2026-11-28'";
    assert_eq!(lake.sql_one(count), "33");
    // A rule that no longer finds most of its records: what is there stays.
    let source = lake.project().join("sources/books/source.toml");
    let few = SOURCE.replace("url_regex = '/book/", "url_regex = '/book/1");
    fs::write(&source, few).unwrap();
    lake.run(&parse)
        .code(1)
        .says(&["less than half", "33 rows", "--replace"]);
    assert_eq!(lake.sql_one(count), "33");
    // Rows that came by hand: neither does a replay hide them.
    let hand = "{\"id\": 900, \"title\": \"by hand\", \"price\": \"9.00\"}\n";
    lake.file("hand.jsonl", hand);
    let ingest = [
        "ingest",
        "clean/books",
        "hand.jsonl",
        "--date",
        "2026-11-28",
    ];
    lake.run(&ingest).ok();
    fs::write(&source, SOURCE.replace("h1::text", "b::text")).unwrap();
    lake.run(&parse)
        .code(1)
        .says(&["no replay made", "hand.jsonl", "rollback"]);
    assert_eq!(lake.sql_one(count), "34");
    lake.run(&[&parse[..], &["--replace"]].concat()).ok();
    assert_eq!(lake.sql_one(count), "33");
    lake.run(&["rollback", "clean/books", "--date", "2026-11-28"])
        .ok();
    assert_eq!(lake.sql_one(count), "34");
    lake.assert_clean();
}

#[test]
fn a_replay_is_alone_knows_its_index_and_asks_for_schemas_first() {
    let lake = lake();
    let parse = ["parse", "books", "--date", "2026-11-28"];
    let folder = lake.project().join("parse/books/2026-11-28");
    fs::create_dir_all(&folder).unwrap();
    let other = fs::File::create(folder.join("lock")).unwrap();
    other.lock().unwrap();
    lake.run(&parse).says(&["another call is at it"]).code(4);
    drop(other);
    // One bit of the index: a capture would be passed over.
    let raw = lake.project().join("lake/raw/books/dt=2026-11-28");
    let index = find(&raw, ".idx");
    let whole = fs::read(&index).unwrap();
    let mut flipped = whole.clone();
    flipped[100] ^= 0x10;
    fs::write(&index, &flipped).unwrap();
    lake.run(&parse)
        .says(&["index is not the one that was committed", "audit --deep"])
        .code(4);
    fs::write(&index, &whole).unwrap();
    // A dataset without a schema stops the call before anything is stored.
    let source = lake.project().join("sources/books/source.toml");
    let item = "\n[[parse.page.item]]\ndataset = \"books.links\"\n[parse.page.item.field]\nurl = \"a::attr(href)\"\n[[parse.page.follow]]";
    fs::write(&source, SOURCE.replace("[[parse.page.follow]]", item)).unwrap();
    lake.run(&parse)
        .says(&[
            "clean/books.links has no published schema",
            "`lakebed parse books --schema`",
            "`lakebed schema publish clean/books.links 1`",
        ])
        .code(1);
    assert_eq!(lake.sql_one("SELECT count(*) AS c FROM clean.books"), "0");
    fs::write(&source, SOURCE).unwrap();
    lake.run(&parse).ok();
    assert_eq!(lake.sql_one("SELECT count(*) AS c FROM clean.books"), "33");
}

/// The only file below the folder whose name ends so.
pub(crate) fn find(folder: &std::path::Path, suffix: &str) -> std::path::PathBuf {
    let mut folders = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(suffix) {
                found.push(path);
            }
        }
    }
    assert_eq!(found.len(), 1, "files that end with {suffix}: {found:?}");
    found.remove(0)
}

#[test]
fn rules_that_cannot_be_read_stop_every_call() {
    let lake = lake();
    let source = lake.project().join("sources/books/source.toml");
    fs::write(&source, SOURCE.replace("h1::text", "h1..x::text")).unwrap();
    lake.run(&["parse", "books", "--date", "2026-11-29"])
        .code(2)
        .says(&[
            "`h1..x::text` is no CSS selector",
            "parse.page[1].item[1].field.title",
            "source.toml",
        ]);
}

/// A running test site; it ends with the test.
pub(crate) struct Site {
    child: Child,
    pub(crate) url: String,
}

impl Site {
    pub(crate) fn start(lake: &TestLake) -> Self {
        let args = [
            "demo-site",
            "--port",
            "0",
            "--listings",
            "40",
            "--format",
            "json",
        ];
        let mut child = lake.call(&args).command().spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let url = told["url"]
            .as_str()
            .unwrap()
            .trim_end_matches('/')
            .to_owned();
        Self { child, url }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

const RENTALS: &str = r##"class = "log"

[crawl]
user_agent = "lakebed-test/1 (+https://lakebed.example/bot)"
hosts = ["127.0.0.1"]
allow_private = ["127.0.0.0/8"]
seeds = "seeds.txt"
seed_stage = "list"
stage.list = {}
stage.detail = {}

[[parse.page]]
stage = "detail"
[[parse.page.item]]
each = "article.listing"
key = ["id"]
[parse.page.item.field]
id      = { css = "::attr(data-id)", clean = ["int"], required = true }
title   = { css = "h1::text", required = true }
price   = { css = ".listing__price::attr(data-price)", clean = ["int"] }
facts   = { css = ".listing__facts td::text", join = "|" }
text    = { css = ".listing__text p::text", join = "|" }
linked  = { page = "body", clean = [{ regex = 'window\.__LISTING__ = (\{.*\});' }, { json = "$.title" }], required = true }
[[parse.page.item]]
dataset = "SOURCE.linked"
each = { json_ld = "Apartment" }
field.id    = "$['@id']"
field.title = "$.name"

[[parse.page]]
stage = "list"
[[parse.page.follow]]
stage = "detail"
each = "li.card"
url = "h2 a::attr(href)"
payload.title = "h2 a::text"
total = { css = "[data-total]::attr(data-total)", clean = ["int"], required = true }
[[parse.page.follow]]
stage = "list"
url = "a[rel=next]::attr(href)"
"##;

#[test]
fn the_test_site_arrives_right_in_every_charset() {
    let lake = TestLake::new();
    let site = Site::start(&lake);
    let local = "[crawl.usual]\npause_ms = 0\nplaces = 4\nworkers = 4\n";
    fs::write(lake.project().join("lakebed.local.toml"), local).unwrap();
    let sources = [
        ("plain", ""),
        ("gbk", "/fault/charset:gbk"),
        ("big5", "/fault/charset:big5"),
        ("by_meta", "/fault/charset:meta"),
        ("by_nothing", "/fault/charset:none"),
    ];
    for (source, prefix) in sources {
        lake.run(&["source", "add", source]).ok();
        let folder = lake.project().join("sources").join(source);
        fs::write(
            folder.join("source.toml"),
            RENTALS.replace("SOURCE", source),
        )
        .unwrap();
        let seed = format!("{}{prefix}/zh/list?city=jinhe\n", site.url);
        fs::write(folder.join("seeds.txt"), seed).unwrap();
        for (dataset, fields) in [
            (
                source.to_owned(),
                "{ id = 1, name = \"id\", type = \"int\" }, { id = 2, name = \"title\", type = \"string\" }, \
                 { id = 3, name = \"price\", type = \"int\" }, { id = 4, name = \"facts\", type = \"string\" }, \
                 { id = 5, name = \"text\", type = \"string\" }, { id = 9, name = \"linked\", type = \"string\" },",
            ),
            (
                format!("{source}.linked"),
                "{ id = 1, name = \"id\", type = \"int\" }, { id = 2, name = \"title\", type = \"string\" },",
            ),
        ] {
            let schema = format!(
                "field = [{fields} {{ id = 6, name = \"_raw\", type = \"string\" }}, \
                 {{ id = 7, name = \"_key\", type = \"string\" }}, {{ id = 8, name = \"_fetched_at\", type = \"timestamp\" }}]\n"
            );
            lake.schema(&format!("clean/{dataset}"), 1, &schema);
            lake.run(&["schema", "publish", &format!("clean/{dataset}"), "1"])
                .ok();
        }
        lake.run(&["crawl", source, "--date", "2026-11-30"]).ok();
        let answer = lake
            .run(&["parse", source, "--date", "2026-11-30", "--format", "json"])
            .ok()
            .json();
        let day = &answer["dates"][0];
        assert_eq!(
            (&day["rejects"], &day["unmatched"]),
            (&0.into(), &0.into()),
            "{day}"
        );
        assert!(day["expectations"].as_u64().unwrap() > 0, "{day}");
    }
    let all = |table: &str| {
        lake.sql(&format!(
            "SELECT id, title, price, facts, text FROM clean.{table} ORDER BY id"
        ))
    };
    let plain = all("plain");
    assert!(plain.len() > 3, "{}", plain.len());
    for (source, _) in sources {
        assert_eq!(all(source), plain, "{source}");
        let other = format!("SELECT count(*) AS c FROM clean.{source} WHERE linked <> title");
        assert_eq!(lake.sql_one(&other), "0", "{source}");
        let linked = format!(
            "SELECT count(*) AS c FROM clean.{source} a JOIN clean.\"{source}.linked\" b ON a.id = b.id AND a.title = b.title"
        );
        assert_eq!(lake.sql_one(&linked), plain.len().to_string(), "{source}");
    }
}
