//! The crawl follows the parse rules of its source: HTML, JSON and JSON-LD, payloads and priorities, totals that the
//! closing judges, pages that the rules reject.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;

use serde_json::Value;

use crate::lake::{Run, TestLake};
use crate::parse::Site;

const CRAWL: &str = r#"class = "log"
[crawl]
user_agent = "lakebed-test/1 (+https://lakebed.example/bot)"
hosts = ["127.0.0.1"]
allow_private = ["127.0.0.0/8"]
seeds = "seeds.txt"
seed_stage = "list"
stage.list = { priority = 5 }
stage.detail = {}
"#;

const HTML: &str = r#"
[[parse.page]]
stage = "list"
[[parse.page.item]]
each = "li.card"
min = 1
field.title = "h2 a::text"
[[parse.page.follow]]
stage = "detail"
each = { json_ld = "ItemList" }
url = "$.itemListElement[*].url"
priority = -2
payload.items = "$.numberOfItems"
total = { css = "[data-total]::attr(data-total)", clean = ["int"], required = true }
[[parse.page.follow]]
stage = "list"
url = "a[rel=next]::attr(href)"
"#;

const JSON: &str = r#"
[[parse.page]]
stage = "list"
[[parse.page.follow]]
stage = "detail"
each = "$.items[*]"
url = { json = "$.id", clean = [{ format = "/api/detail/{}" }] }
payload.shown = "$.price"
total = "$.total"
group = "flats"
[[parse.page.follow]]
stage = "list"
url = { json = "$.next", clean = [{ format = "?page={}" }] }
"#;

/// A lake, and a crawl of the site by these rules from this seed.
fn crawl(lake: &TestLake, source: &str, rules: &str, seed: &str) -> Run {
    lake.run(&["source", "add", source]).ok();
    let folder = lake.project().join("sources").join(source);
    fs::write(folder.join("source.toml"), format!("{CRAWL}{rules}")).unwrap();
    fs::write(folder.join("seeds.txt"), format!("{seed}\n")).unwrap();
    lake.run(&["crawl", source, "--date", "2026-11-30"])
}

fn new_lake() -> TestLake {
    let lake = TestLake::new();
    let local = "[crawl.usual]\npause_ms = 0\nplaces = 4\nworkers = 4\nbreaker_window = 10\n";
    fs::write(lake.project().join("lakebed.local.toml"), local).unwrap();
    lake
}

fn statistics(lake: &TestLake, source: &str) -> Value {
    let file = lake
        .project()
        .join(format!("crawl/{source}/2026-11-30.day/run.json"));
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[test]
fn rules_lead_a_crawl_through_html_json_and_json_ld() {
    let lake = new_lake();
    let site = Site::start(&lake);
    crawl(&lake, "html", HTML, &format!("{}/zh/list", site.url)).ok();
    crawl(&lake, "json", JSON, &format!("{}/api/list", site.url)).ok();
    let (html, json) = (statistics(&lake, "html"), statistics(&lake, "json"));
    let done = |told: &Value, stage: &str| {
        let stages = told["stages"].as_array().unwrap();
        let of = stages.iter().find(|s| s["stage"] == stage).unwrap();
        of["done"].as_u64().unwrap()
    };
    // All listings on two pages, each found once.
    for told in [&html, &json] {
        assert_eq!(
            (done(told, "list"), done(told, "detail")),
            (2, 45),
            "{told}"
        );
        assert_eq!(told["short_groups"], serde_json::json!([]));
    }
    // A claim brings back what the page said beside the link.
    let list = [
        "queue",
        "list",
        "json",
        "--date",
        "2026-11-30",
        "--format",
        "json",
    ];
    assert!(lake.run(&list).ok().stdout.contains("/api/detail/"));
}

#[test]
fn announced_and_never_found_is_red_unless_the_rules_say_how_much_may_lack() {
    let lake = new_lake();
    let site = Site::start(&lake);
    let seed = format!("{}/fault/totals:150/zh/list", site.url);
    crawl(&lake, "strict", HTML, &seed).code(18).prints(&[
        "a page announced 67 requests in the group `detail",
        "45 are there",
    ]);
    let wide = HTML.replace(
        "required = true }\n",
        "required = true }\nmin_share = 0.6\n",
    );
    crawl(&lake, "wide", &wide, &seed).ok();
}

#[test]
fn a_list_that_the_rules_reject_cannot_close_green() {
    let lake = new_lake();
    let site = Site::start(&lake);
    // An empty page with status 200: `min` and `total` are not there.
    let seed = format!("{}/fault/empty/zh/list", site.url);
    crawl(&lake, "empty", HTML, &seed)
        .code(18)
        .prints(&["links that the rules reject on", "/fault/empty/zh/list"]);
    let told = statistics(&lake, "empty");
    assert_eq!(told["done_statuses"]["200"], 1, "{told}");
    // The response is kept: better rules find in it what there is.
    assert_eq!(told["pack"]["captures"], 1);
    // One after the other: the breaker stops the run.
    let many: Vec<String> = (1..=30)
        .map(|n| format!("{}/fault/login/zh/list?page={n}", site.url))
        .collect();
    crawl(&lake, "login", HTML, &many.join("\n"))
        .code(10)
        .says(&["circuit breaker"]);
}

#[test]
fn a_stage_is_followed_by_rules_or_by_its_own_key() {
    let lake = new_lake();
    let both = HTML.replacen(
        "\n[[parse.page]]",
        "\n[[crawl.stage.list.follow]]\nstage = \"detail\"\ncss = \"a\"\n[[parse.page]]",
        1,
    );
    let crawl_with = CRAWL.replace("stage.list = { priority = 5 }", "stage.list.priority = 5");
    lake.run(&["source", "add", "both"]).ok();
    let file = lake.project().join("sources/both/source.toml");
    fs::write(&file, format!("{crawl_with}{both}")).unwrap();
    lake.run(&["crawl", "both", "--date", "2026-11-30"])
        .code(2)
        .says(&[
            "both say which links of stage `list` are followed",
            "crawl.stage.list.follow",
            "leave `follow` out of [crawl.stage.list]",
        ]);
}
