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
    // To accept them is no reason to be silent about them.
    for write in [&["--write"][..], &[]] {
        let run = lake.run(&[&["parse", "homes", "--test"][..], write].concat());
        let run = run.code(1).says(&doubts).says(&[
            "css = \".prize::text\", line 51 of source.toml",
            "say so in its rule: `may_be_empty = true`",
        ]);
        assert!(!run.stderr.contains("if that is right"), "{}", run.stderr);
    }
    let told = lake.run(&["parse", "homes", "--test", "--format", "json"]);
    let told = told.code(1).json();
    assert_eq!(told["pass"], false);
    assert_eq!(told["doubts"].as_array().unwrap().len(), 2, "{told}");
    lake.run(&["source", "test", "homes"]).code(1).prints(&[
        "FAILED  fixtures  price: null in",
        "tags: empty",
        "hint    where a field need not be there",
    ]);
    // What may be without a value is no doubt.
    let rule = "{ css = \".prize::text\", clean";
    change(
        &lake,
        rule,
        &rule.replace("clean", "may_be_empty = true, clean"),
    );
    change(&lake, "all = true }", "all = true, may_be_empty = true }");
    lake.run(&["parse", "homes", "--test"]).ok();
    let told = lake.run(&["source", "test", "homes"]).code(1);
    told.prints(&["ok      fixtures  2 pages as expected"]);
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
