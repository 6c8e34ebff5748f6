//! The first hour with a site of one's own: what is told where the skeleton's rules, or its pages, do not fit it.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;

use crate::lake::TestLake;

/// A source as `source new` makes it.
fn skeleton() -> TestLake {
    let lake = TestLake::new();
    let site = ["--url", "https://homes.example/list"];
    let contact = ["--contact", "dev@acme.example"];
    let run = lake.run(&[&["source", "new", "homes"][..], &site, &contact].concat());
    let run = run.ok();
    assert!(!run.stderr.contains("example.invalid"), "{}", run.stderr);
    lake
}

fn change(lake: &TestLake, from: &str, to: &str) {
    let path = lake.project().join("sources/homes/source.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from} in {text}");
    fs::write(&path, text.replace(from, to)).unwrap();
}

#[test]
fn a_source_without_a_contact_is_told_so() {
    let lake = TestLake::new();
    lake.run(&["source", "new", "homes"]).ok().says(&[
        "call themselves `nobody@example.invalid`",
        "before `lakebed run homes`",
    ]);
}

#[test]
fn a_fixture_is_tried_as_what_it_is() {
    let lake = skeleton();
    // As the comment of the skeleton says it.
    let page = &lake.path_text("project/sources/homes/fixtures/detail.html");
    for more in [&[][..], &["--stage", "detail"]] {
        lake.run(&[&["parse", "homes", "--try", page][..], more].concat())
            .ok()
            .prints(&["page `detail`", "1 record,", "\"1001\""])
            .says(&[
                "found at https://homes.example/item/1001 (`--url`)",
                ", as `detail.html.expected.json` beside it says",
            ]);
    }
    // What is given counts.
    let url = ["--url", "https://homes.example/item/7"];
    let run = lake.run(&[&["parse", "homes", "--try", page][..], &url].concat());
    run.ok()
        .prints(&["page `detail`", "\"7\""])
        .says(&["taken as of stage `detail` (`--stage`)"]);
    let other = lake.file("other.html", "<h1>x</h1>");
    let other = ["parse", "homes", "--try", other.to_str().unwrap()];
    let run = lake.run(&other).code(0);
    assert!(!run.stderr.contains("beside it"), "{}", run.stderr);
}

#[test]
fn a_page_of_rejects_alone_is_doubted() {
    let lake = skeleton();
    change(&lake, "h1::text", "h9::text");
    let doubt = "detail.html: 1 reject and no record: is it a page of this site?";
    for write in [&["--write"][..], &[]] {
        lake.run(&[&["parse", "homes", "--test"][..], write].concat())
            .ok()
            .says(&[doubt]);
    }
    lake.run(&["source", "test", "homes"])
        .code(1)
        .prints(&["FAILED  fixtures", doubt]);
}

#[test]
fn a_field_that_is_never_there_is_doubted() {
    let lake = skeleton();
    change(&lake, ".listing__price::text", ".prize::text");
    change(&lake, ".listing__features .on", ".features");
    let doubts = [
        "price: null in the one record of the fixtures: does its selector fit?",
        "tags: empty in the one record of the fixtures",
    ];
    lake.run(&["parse", "homes", "--test"])
        .code(1)
        .says(&doubts);
    let run = lake.run(&["parse", "homes", "--test", "--write"]).ok();
    run.says(&doubts);
    lake.run(&["source", "test", "homes"]).code(1).prints(&[
        "ok      fixtures",
        "warning: price: null in",
        "tags: empty",
    ]);
    change(&lake, ".prize::text", ".listing__price::text");
    let run = lake.run(&["parse", "homes", "--test", "--write"]).ok();
    assert!(!run.stderr.contains("price"), "{}", run.stderr);
}

#[test]
fn a_schema_is_written_from_rules_where_there_are_some() {
    let lake = skeleton();
    let file = lake.project().join("sources/homes/schemas/homes/v1.toml");
    fs::remove_file(&file).unwrap();
    lake.run(&["schema", "publish", "clean/homes", "1"])
        .code(2)
        .says(&["`lakebed parse homes --schema` writes one"]);
    lake.run(&["schema", "publish", "clean/others", "1"])
        .code(2)
        .says(&["`lakebed schema infer`"]);
    lake.run(&["parse", "homes", "--schema"])
        .ok()
        .prints(&["version 1, wrote: ", "\n  title string, required\n"]);
}
