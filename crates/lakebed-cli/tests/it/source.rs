//! A source from its skeleton to the day on which it is ready.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::lake::TestLake;
use crate::site::Site;

/// Changes a file of the source `homes`.
fn change(lake: &TestLake, file: &str, from: &str, to: &str) -> PathBuf {
    let path = lake.project().join("sources/homes").join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from} in {text}");
    fs::write(&path, text.replace(from, to)).unwrap();
    path
}

/// The checks of `source test homes` with their verdicts; the whole answer beside.
fn verdicts(lake: &TestLake, code: i32) -> (Vec<(String, String)>, Value) {
    let run = lake.run(&["source", "test", "homes", "--format", "json"]);
    let answer = run.code(code).json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let checks = answer["checks"].as_array().unwrap();
    let checks = checks
        .iter()
        .map(|c| (text(&c["check"]), text(&c["verdict"])));
    (checks.collect(), answer)
}

fn failed(lake: &TestLake) -> Vec<String> {
    let (checks, _) = verdicts(lake, 1);
    let failed = checks.into_iter().filter(|(_, v)| v == "fail");
    failed.map(|(check, _)| check).collect()
}

fn skeleton(args: &[&str]) -> TestLake {
    let lake = TestLake::new();
    lake.run(&[&["source", "new", "homes"][..], args].concat())
        .ok();
    lake
}

#[test]
fn a_skeleton_is_ready_once_its_schema_is_published() {
    let lake = skeleton(&["--contact", "dev@acme.example", "--title", "租屋"]);
    assert_eq!(failed(&lake), ["schema"]);
    lake.run(&["schema", "publish", "clean/homes", "1"]).ok();
    let (checks, answer) = verdicts(&lake, 0);
    let names: Vec<&str> = checks.iter().map(|(check, _)| check.as_str()).collect();
    assert_eq!(
        names,
        ["rules", "fixtures", "schema", "seeds", "contact", "private"]
    );
    assert!(
        checks.iter().all(|(_, verdict)| verdict == "pass"),
        "{answer}"
    );
    // What the rules give for its page, as a person reads it.
    let path = lake.path_text("project/sources/homes/fixtures/detail.html");
    let args = [
        "parse",
        "homes",
        "--try",
        &path,
        "--stage",
        "detail",
        "--url",
        "https://homes.invalid/item/1001",
    ];
    let given = lake
        .run(&[&args[..], &["--format", "json"]].concat())
        .ok()
        .json();
    let record = &given["records"][0]["record"];
    assert_eq!(
        json!([
            record["id"],
            record["title"],
            record["price"],
            record["updated"],
            record["tags"]
        ]),
        json!([
            "1001",
            "湖畔公寓 三房",
            "12800.50",
            "2026-11-30",
            ["近捷運", "可寵物"]
        ])
    );
    // Words that TOML would misread.
    let odd = [
        "source",
        "new",
        "odd",
        "--url",
        "http://a.example/\"quo\\te",
        "--contact",
        "https://a.example/\"x",
    ];
    lake.run(&odd).ok();
    let shown = lake
        .run(&["source", "show", "odd", "--format", "json"])
        .ok()
        .json();
    assert_eq!(
        json!([shown["crawl"]["user_agent"], shown["url"]]),
        json!([
            "odd-crawler/1.0 (+https://a.example/\"x)",
            "http://a.example/%22quo/te"
        ])
    );
    lake.run(&["source", "new", "odd2", "--contact", "a\nb"])
        .code(2)
        .says(&["--contact"]);
    // A second one changes nothing.
    let before = fs::read(lake.project().join("sources/homes/source.toml")).unwrap();
    lake.run(&["source", "new", "homes"])
        .code(1)
        .says(&["is there already"]);
    assert_eq!(
        before,
        fs::read(lake.project().join("sources/homes/source.toml")).unwrap()
    );
}

#[test]
fn what_is_not_ready_is_named() {
    let lake = skeleton(&[]);
    lake.run(&["schema", "publish", "clean/homes", "1"]).ok();
    assert_eq!(failed(&lake), ["contact"]);
    change(
        &lake,
        "source.toml",
        "+mailto:nobody@example.invalid",
        "+https://acme.example/bot",
    );
    verdicts(&lake, 0);

    // A page that gives something else, a kind without a page.
    let page = change(&lake, "fixtures/detail.html", "12,800.50", "13,000");
    assert_eq!(failed(&lake), ["fixtures"]);
    let run = lake.run(&["source", "test", "homes"]);
    run.code(1)
        .prints(&["$.records[0].record.price", "detail.html"]);
    fs::remove_file(&page).unwrap();
    lake.run(&["source", "test", "homes"])
        .code(1)
        .prints(&["no fixture is a page of the kind `detail`"]);
    fs::write(
        &page,
        include_str!("../../src/commands/source/skeleton/detail.html"),
    )
    .unwrap();
    verdicts(&lake, 0);

    // Records that do not fit the schema: a field it does not know.
    change(&lake, "source.toml", "tags    =", "tages   =");
    lake.run(&["parse", "homes", "--test", "--write"]).ok();
    assert_eq!(failed(&lake), ["schema"]);
    lake.run(&["source", "test", "homes"])
        .code(1)
        .prints(&["tages"]);
    change(&lake, "source.toml", "tages   =", "tags    =");
    lake.run(&["parse", "homes", "--test", "--write"]).ok();
    verdicts(&lake, 0);

    // Seeds: none, one that leads away, one that is none.
    let seeds = lake.project().join("sources/homes/seeds.txt");
    let good = fs::read_to_string(&seeds).unwrap();
    for (text, says) in [
        ("# none\n".to_owned(), "nothing to ask for"),
        (
            format!("{good}https://elsewhere.example/\n"),
            "1 that lead out",
        ),
        (format!("{good}{{\"url\": 1}}\n"), "line `3`"),
    ] {
        fs::write(&seeds, text).unwrap();
        assert_eq!(failed(&lake), ["seeds"]);
        lake.run(&["source", "test", "homes"])
            .code(1)
            .prints(&[says]);
    }
    fs::write(&seeds, good).unwrap();

    // Rules that cannot be read, and a file that cannot.
    change(&lake, "source.toml", "h1::text", "h1..::text");
    assert_eq!(failed(&lake), ["rules", "seeds"]);
    change(&lake, "source.toml", "class = \"log\"", "klass = \"log\"");
    assert_eq!(failed(&lake), ["rules"]);
    lake.run(&["source", "test", "nobody"])
        .code(2)
        .says(&["there is no source"]);
}

#[test]
fn what_is_private_is_found_in_what_git_keeps() {
    let lake = skeleton(&["--contact", "dev@acme.example"]);
    lake.run(&["schema", "publish", "clean/homes", "1"]).ok();
    let local = "queue = \"postgres://bot:ge%21heim-1@db.example/q\"\n[secrets]\ntoken = \"密鑰-4711-abc\"\n[crawl.usual]\nproxy = \"http://proxy.acme.internal:3128\"\n";
    fs::write(lake.project().join("lakebed.local.toml"), local).unwrap();
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.args(args).current_dir(lake.project());
        assert!(command.output().unwrap().status.success(), "git {args:?}");
    };
    // Before there is git, what a team writes is looked at.
    let note = lake.project().join("sources/homes/note.md");
    fs::write(&note, "use\n密鑰-4711-abc\n").unwrap();
    let run = lake.run(&["source", "test", "homes"]);
    let run = run.code(1).prints(&["note.md, line 2", "`secrets.token`"]);
    assert!(!run.stdout.contains("密鑰"), "{}", run.stdout);
    // What git does not keep may hold it.
    git(&["init", "-q"]);
    fs::write(lake.project().join(".git/info/exclude"), "note.md\n").unwrap();
    git(&["add", "-A"]);
    verdicts(&lake, 0);
    for (text, key) in [
        ("ge!heim-1", "`queue`"),
        ("http://proxy.acme.internal:3128", "`crawl.usual.proxy`"),
    ] {
        let file = lake.project().join("README.md");
        fs::write(&file, format!("see {text}\n")).unwrap();
        git(&["add", "-A"]);
        lake.run(&["source", "test", "homes"])
            .code(1)
            .prints(&["README.md, line 1", key]);
        fs::remove_file(file).unwrap();
        git(&["add", "-A"]);
    }
    git(&["add", "-f", "lakebed.local.toml"]);
    lake.run(&["source", "test", "homes"])
        .code(1)
        .prints(&["lakebed.local.toml itself is kept in git"]);
}

#[test]
fn a_sample_is_fetched_and_is_no_day() {
    let lake = TestLake::new();
    let site = Site::start(&lake, &["--listings", "40"]);
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
    change(
        &lake,
        "source.toml",
        "[[parse.page]]\nstage = \"list\"\n",
        "[[parse.page]]\nname = \"清單\"\nstage = \"list\"\n",
    );
    let seeds: String = (1..=9)
        .map(|n| format!("{}/zh/list?page={n}\n", site.url))
        .collect();
    lake.file("many.txt", seeds);
    let args = [
        "source",
        "sample",
        "homes",
        "--limit",
        "1",
        "--date",
        "2026-11-30",
    ];
    let answer = lake
        .run(&[&args[..], &["--seeds", "many.txt", "--format", "json"]].concat())
        .ok()
        .json();
    // Thirty homes and the next list are known then.
    assert_eq!(
        json!([answer["run"]["run"], answer["left"]]),
        json!(["sample-1", 31])
    );
    let page = &answer["pages"][0];
    assert_eq!(
        json!([
            page["status"],
            page["stage"],
            page["parsed"]["page"],
            page["parsed"]["follow_ups"]
        ]),
        json!([200, "list", "清單", 31])
    );
    // A page that the market does not have dies, and the sample says so; what it made is kept beside the first.
    lake.file("one.txt", format!("{}/zh/list?page=99\n", site.url));
    let answer = lake
        .run(&[&args[..], &["--seeds", "one.txt", "--format", "json"]].concat())
        .code(1)
        .json();
    assert_eq!(
        json!([
            answer["run"]["run"],
            answer["dead_classes"],
            answer["pages"]
        ]),
        json!(["sample-2", ["http_404"], []])
    );
    // Nothing of it is in the lake or in the queue, and it is found where rules are tried.
    let status = lake
        .run(&["queue", "status", "--format", "json"])
        .ok()
        .json();
    assert_eq!(status["runs"], json!([]));
    assert!(
        !lake.files().keys().any(|f| f.starts_with("raw/")),
        "{:?}",
        lake.files()
    );
    let tried = format!("{}/zh/list?page=1", site.url);
    lake.run(&["parse", "homes", "--try", &tried])
        .ok()
        .prints(&["page `清單`"]);
    // Its pages become fixtures, one of each kind that has none.
    change(&lake, "source.toml", "name = \"清單\"", "name = \"lists\"");
    fs::remove_file(lake.project().join("sources/homes/fixtures/list.html")).unwrap();
    lake.run(&[&args[..], &["--seeds", "many.txt", "--save"]].concat())
        .ok();
    assert!(
        lake.project()
            .join("sources/homes/fixtures/lists.html")
            .exists()
    );
    lake.run(&["parse", "homes", "--test"]).ok();
}
