//! Rules that are drafted from pages: a source of one's own without a selector written.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;

use serde_json::{Value, json};

use crate::lake::TestLake;
use crate::site::Site;

/// A source over a site whose markup is not that of the skeleton.
fn new_source(lake: &TestLake, site: &Site) {
    let local = "[crawl.usual]\npause_ms = 0\nplaces = 2\nworkers = 2\n";
    fs::write(lake.project().join("lakebed.local.toml"), local).unwrap();
    let url = format!("{}/zh/list", site.url);
    lake.run(&[
        "source",
        "new",
        "homes",
        "--url",
        &url,
        "--contact",
        "dev@acme.example",
    ])
    .ok();
}

fn source_toml(lake: &TestLake) -> String {
    fs::read_to_string(lake.project().join("sources/homes/source.toml")).unwrap()
}

#[test]
fn a_sample_drafts_the_rules_of_a_whole_source() {
    let lake = TestLake::new();
    let site = Site::start(&lake, &["--listings", "70", "--fault", "markup"]);
    new_source(&lake, &site);
    let drafted = lake.run(&["source", "sample", "homes", "--draft"]).ok();
    drafted.says(&[
        "wrote the rules of stage `list`",
        "sampled again",
        "wrote the rules of stage `detail`",
    ]);
    let text = source_toml(&lake);
    assert!(
        !text.contains("li.card") && !text.contains("These rules fit"),
        "{text}"
    );
    // What was drafted is what the fixtures say; the schema follows from it, and a day becomes rows.
    lake.run(&["parse", "homes", "--test"]).ok();
    lake.run(&["parse", "homes", "--schema"]).ok();
    lake.run(&["source", "test", "homes"]);
    lake.run(&["schema", "publish", "clean/homes", "1"]).ok();
    lake.run(&["run", "homes", "--date", "2026-11-30"]).ok();
    let sql = "SELECT count(*) AS n, count(DISTINCT id) AS ids, count(rent) AS rents, count(title) AS titles, min(rent) > 100 AS good FROM clean.homes";
    let rows = lake.run(&["sql", sql, "--format", "json"]).ok().json();
    let row = rows.as_array().map_or(&rows, |rows| &rows[0]);
    let all = &row["n"];
    assert!(all.as_u64().unwrap() >= 60, "{rows}");
    assert_eq!(
        json!([row["ids"], row["rents"], row["titles"], row["good"]]),
        json!([all, all, all, true])
    );
    // What an edit takes away or adds is told by name, once a page, without the values.
    let rent = text.lines().find(|l| l.starts_with("rent ")).unwrap();
    let edited = text.replace(rent, &rent.replacen("rent", "monthly", 1));
    let file = lake.project().join("sources/homes/source.toml");
    fs::write(&file, edited).unwrap();
    let told = lake.run(&["parse", "homes", "--test", "--write"]).ok();
    let told = told.prints(&["  no longer: rent\n", "  new: monthly\n"]);
    assert!(!told.stdout.contains("    expected "), "{}", told.stdout);
    lake.run(&["parse", "homes", "--test"])
        .ok()
        .prints(&["equal"]);
    fs::write(&file, &text).unwrap();
    // Without `--write` the values stand there, too.
    let told = lake.run(&["parse", "homes", "--test"]);
    told.prints(&[".record.rent\n    expected nothing\n"]);
    // A second call leaves what somebody may have edited.
    let again = lake.run(&["source", "sample", "homes", "--draft"]).ok();
    again.says(&["the rules of stage `detail` are not those of the skeleton any more"]);
    assert_eq!(source_toml(&lake), text);
}

#[test]
fn a_draft_is_shown_and_written_where_nobody_wrote() {
    let lake = TestLake::new();
    let site = Site::start(&lake, &["--listings", "40"]);
    new_source(&lake, &site);
    let draft = ["parse", "homes", "--draft"];
    lake.run(&draft)
        .code(2)
        .says(&["no page of `homes` is kept", "lakebed source sample homes"]);
    lake.run(&["source", "sample", "homes", "--limit", "4", "--save"])
        .ok();
    let before = source_toml(&lake);
    let shown = lake.run(&draft).ok();
    shown.prints(
        &[
            "[[parse.page]]\nstage = \"list\"\n",
            "url = \"h2.card__title > a::attr(href)\"",
            "[parse.page.item.field]\nid ",
            "# NT$",
        ][..3],
    );
    assert_eq!(source_toml(&lake), before);
    // One stage alone; a name that is none; what does not go together.
    let one = lake
        .run(&[&draft[..], &["detail", "--format", "json"]].concat())
        .ok()
        .json();
    let drafts = one["drafts"].as_array().unwrap();
    assert_eq!(drafts.len(), 1);
    assert_eq!(
        json!([drafts[0]["stage"], drafts[0]["is_written"]]),
        json!(["detail", false])
    );
    let names: Vec<&Value> = drafts[0]["lines"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| &l["name"])
        .collect();
    assert!(
        names.contains(&&json!("id")) && names.contains(&&json!("price")),
        "{names:?}"
    );
    lake.run(&[&draft[..], &["dettail"]].concat())
        .code(2)
        .says(&["there are pages of stage detail, list"]);
    lake.run(&[&draft[..], &["--test"]].concat()).code(2);
    // Written where the rules are the skeleton's, not where somebody edited them.
    let edited = before.replace("h1::text", "h2::text");
    fs::write(lake.project().join("sources/homes/source.toml"), &edited).unwrap();
    let written = lake.run(&[&draft[..], &["--write"]].concat()).ok();
    written.says(&[
        "the rules of stage `detail` are not those of the skeleton any more, and stay",
        "--write --force",
    ]);
    let text = source_toml(&lake);
    assert!(
        text.contains("h2.card__title > a") && text.contains("h2::text"),
        "{text}"
    );
    lake.run(&[&draft[..], &["detail", "--write"]].concat())
        .code(1);
    assert_eq!(source_toml(&lake), text);
    lake.run(&[&draft[..], &["detail", "--write", "--force"]].concat())
        .ok();
    let text = source_toml(&lake);
    assert!(
        text.contains("[parse.page.item.field]\nid ") && !text.contains("h2::text"),
        "{text}"
    );
    lake.run(&["parse", "homes", "--test", "--write"]).ok();
}
