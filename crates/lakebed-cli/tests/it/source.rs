//! A source from its skeleton to the day on which it is ready.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::lake::TestLake;
use crate::parse::warc;
use crate::site::Site;

#[test]
fn hints_name_what_to_do() {
    let lake = skeleton(&["--contact", "dev@acme.example"]);
    for (from, to, says) in [
        (
            "css = \"h1::text\"",
            "xpath = \"//h1\"",
            "there is no XPath; use `css`",
        ),
        (
            "\"collapse\"",
            "\"float\"",
            "decimal, replace, regex, format",
        ),
        ("\"collapse\"", "\"regex\"", "{ regex = ... }"),
        ("\"h1::text\"", "\"h1:text\"", "did you mean `::text`?"),
    ] {
        change(&lake, "source.toml", from, to);
        let run = lake.run(&["parse", "homes", "--test"]);
        run.code(2).says(&[says]);
        change(&lake, "source.toml", to, from);
    }
    let run = lake.run(&["parse", "home", "--test"]);
    let run = run.code(2).says(&["did you mean `homes`?"]);
    assert!(!run.stderr.contains("source add"), "{}", run.stderr);
    lake.run(&["parse", "offices", "--test"])
        .code(2)
        .says(&["lakebed source new offices --url URL --contact MAIL"]);
    // Of a file, what was assumed.
    let page = lake.path_text("project/sources/homes/fixtures/list.html");
    lake.run(&["parse", "homes", "--try", &page])
        .ok()
        .says(&["https://homes.example/list (`--url`)", "`list` (`--stage`)"]);
    // Words for dates, in the zone of the source.
    change(
        &lake,
        "source.toml",
        "# time_zone = \"Asia/Taipei\"",
        "time_zone = \"Pacific/Kiritimati\"",
    );
    lake.run(&["source", "new", "west"]).ok();
    let west = lake.project().join("sources/west/source.toml");
    let text = fs::read_to_string(&west).unwrap();
    let text = text.replace(
        "# time_zone = \"Asia/Taipei\"",
        "time_zone = \"Pacific/Pago_Pago\"",
    );
    fs::write(&west, text).unwrap();
    // They are a day and an hour apart.
    lake.run(&["status", "--date", "today"])
        .code(2)
        .says(&["today is", "`homes`", "`west`"]);
    let day = |source: &str, word: &str| {
        let args = ["parse", source, "--date", word, "--format", "json"];
        let answer = lake.run(&args).code(1).json();
        answer["missing"][0].as_str().unwrap().to_owned()
    };
    for (source, class) in [("homes", "clean/homes"), ("west", "clean/west")] {
        lake.run(&["schema", "publish", class, "1"]).ok();
        assert!(day(source, "yesterday") < day(source, "today"));
    }
    assert!(day("west", "today") < day("homes", "today"));
}

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
    let url = ["--url", "https://homes.example/list"];
    lake.run(&[&["source", "new", "homes"][..], &url, args].concat())
        .ok();
    lake
}

#[test]
fn rules_become_a_schema() {
    let lake = skeleton(&["--contact", "dev@acme.example"]);
    change(&lake, "source.toml", "tags    =", "marks   =");
    change(
        &lake,
        "source.toml",
        "{ path = -1, required = true }",
        "{ path = -1, clean = [\"int\"], required = true }",
    );
    lake.run(&["parse", "homes", "--test", "--write"]).ok();
    // The schema of the skeleton does not fit them any more.
    lake.run(&["source", "test", "homes"]).code(1).prints(&[
        "sources/homes/schemas/homes/v1.toml does not fit",
        "$.id: 1 x",
        "first in detail.html, record 1",
        "$.marks",
        "`lakebed parse homes --schema`",
    ]);
    lake.run(&["parse", "homes", "--schema"]).ok().prints(&[
        "version 1, wrote anew",
        "\n  id int, required\n",
        "\n  price decimal(12,2)\n",
        "\n  marks list<string>\n",
    ]);
    let file = lake.project().join("sources/homes/schemas/homes/v1.toml");
    let text = fs::read_to_string(&file).unwrap();
    let spec: toml::Table = text.parse().unwrap();
    let fields: Vec<Value> = spec["field"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| {
            json!([
                f["name"].as_str(),
                f["type"].as_str(),
                f.get("required").is_some()
            ])
        })
        .collect();
    assert_eq!(
        json!(fields),
        json!([
            ["id", "int", true],
            ["title", "string", true],
            ["price", "decimal(12,2)", false],
            ["updated", "date", false],
            ["marks", "list<string>", false],
            ["_raw", "string", false],
            ["_key", "string", false],
            ["_fetched_at", "timestamp", false]
        ])
    );
    lake.run(&["source", "test", "homes"])
        .code(1)
        .prints(&["v1.toml fits 1 record"]);
    // What was edited is kept, unless one says otherwise.
    fs::write(&file, text.replace("decimal(12,2)", "decimal(20,4)")).unwrap();
    lake.run(&["parse", "homes", "--schema"])
        .code(1)
        .prints(&[
            "was edited",
            "~ price decimal(20,4): the rules give price decimal(12,2)",
        ])
        .says(&["--force"]);
    assert!(fs::read_to_string(&file).unwrap().contains("decimal(20,4)"));
    lake.run(&["parse", "homes", "--schema", "--force"]).ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
    lake.run(&["parse", "homes", "--schema"])
        .ok()
        .prints(&["there already"]);
    // Published it stays, and rules that change lead to the next version.
    lake.run(&["schema", "publish", "clean/homes", "1"]).ok();
    lake.run(&["parse", "homes", "--schema"])
        .ok()
        .prints(&["version 1 is published"]);
    change(&lake, "source.toml", "marks   =", "tags    =");
    lake.run(&["parse", "homes", "--test", "--write"]).ok();
    assert_eq!(failed(&lake), ["schema"]);
    let answer = lake
        .run(&["parse", "homes", "--schema", "--format", "json"])
        .ok()
        .json();
    assert_eq!(
        json!([
            answer["schemas"][0]["version"],
            answer["schemas"][0]["state"]
        ]),
        json!([2, "written"])
    );
    lake.run(&["schema", "publish", "clean/homes", "2"]).ok();
    verdicts(&lake, 0);
    // A type that is published is not that of the rules any more.
    change(
        &lake,
        "source.toml",
        "{ path = -1, clean = [\"int\"], required = true }",
        "{ css = \"h1\", exists = true }",
    );
    lake.run(&["parse", "homes", "--schema"])
        .code(1)
        .says(&["`id` of `clean/homes` is published as int, and the rules give bool"]);
}

#[test]
fn what_follows_a_day_is_looked_at() {
    let lake = skeleton(&["--contact", "dev@acme.example"]);
    lake.run(&["schema", "publish", "clean/homes", "1"]).ok();
    let file = lake.project().join("sources/homes/source.toml");
    let text = fs::read_to_string(&file).unwrap();
    let derive = |sql: &str| {
        format!(
            "{text}\n[derive.dear]\nsql = \"{sql}\"\nparents = [\"clean/homes\"]\n[dataset.\"homes.dear\"]\nkey = [\"id\"]\n"
        )
    };
    fs::write(&file, derive("SELECT id, prise FROM clean.homes")).unwrap();
    assert_eq!(failed(&lake), ["derives"]);
    lake.run(&["source", "test", "homes"])
        .code(1)
        .prints(&["derive.dear", "prise"]);
    fs::write(&file, derive("SELECT id, price FROM clean.homes")).unwrap();
    lake.run(&["source", "test", "homes"]).code(1).prints(&[
        "has no published schema",
        "lakebed derive homes dear --schema",
    ]);
    lake.run(&["derive", "homes", "dear", "--schema"]).ok();
    lake.run(&["schema", "publish", "feature/homes.dear", "1"])
        .ok();
    verdicts(&lake, 0);
}

#[test]
fn a_skeleton_is_ready_once_its_schema_is_published() {
    let lake = skeleton(&["--contact", "dev@acme.example", "--title", "租屋"]);
    assert_eq!(failed(&lake), ["schema"]);
    lake.run(&["source", "test", "homes"]).code(1).prints(&[
        "sources/homes/schemas/homes/v1.toml fits 1 record",
        "once published it stays",
    ]);
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
    for contact in ["a\nb", "me"] {
        lake.run(&["source", "new", "odd2", "--contact", contact])
            .code(2)
            .says(&["--contact"]);
    }
    // An address that was made up is nowhere to begin.
    lake.run(&["source", "new", "nowhere"]).ok();
    lake.run(&["source", "test", "nowhere"])
        .code(1)
        .prints(&["the address https://nowhere.invalid/list is made up"]);
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
    // An older copy in the lake does not stand before it.
    let old = (tried.clone(), "; charset=utf-8", b"<h1>old</h1>".to_vec());
    lake.file("old.warc", warc(&[old]));
    let files = ["--parts", "parts", "--terminals", "terminals.jsonl"];
    let day = ["--source", "homes", "--date", "2026-11-29", "--run", "day"];
    lake.run(&[&["pack", "import", "old.warc"][..], &day, &files].concat())
        .ok();
    lake.run(&[&["pack", "seal"][..], &day, &files].concat())
        .ok();
    lake.run(&["parse", "homes", "--try", &tried])
        .ok()
        .prints(&["page `清單`", "/sample/"]);
    // Its pages become fixtures, one of each kind, in the place of those that were made up.
    change(&lake, "source.toml", "name = \"清單\"", "name = \"lists\"");
    let fixture = |name: &str| lake.project().join("sources/homes/fixtures").join(name);
    lake.run(&[&args[..], &["--seeds", "many.txt", "--save"]].concat())
        .ok()
        .says(&[
            "`detail.html` is still the page that the skeleton invented",
            "\"stage\": \"detail\"}' | lakebed source sample homes --seeds - --save` fetches one",
        ]);
    assert!(fixture("lists.html").exists());
    assert!(!fixture("list.html").exists());
    assert!(!fixture("list.html.expected.json").exists());
    lake.run(&["parse", "homes", "--test"]).ok();
    // Three pages are of every stage, whatever the queue would take first.
    let three = ["source", "sample", "homes", "--limit", "3", "--save"];
    let run = lake
        .run(&three)
        .ok()
        .says(&["`lists` has a fixture already"]);
    assert!(run.stdout.contains("detail"), "{}", run.stdout);
    let detail = fs::read_to_string(fixture("detail.html")).unwrap();
    assert!(!detail.contains("湖畔公寓　三房"), "{detail}");
    // A rule that finds nothing is told, and why records are rejected.
    change(&lake, "source.toml", "li.card", "li.kard");
    change(&lake, "source.toml", "a[rel=next]", "a[rel=nekst]");
    lake.run(&[&args[..], &["--seeds", "many.txt"]].concat())
        .ok()
        .says(&["no rule found a link on any page"]);
    change(&lake, "source.toml", "li.kard", "li.card");
    change(&lake, "source.toml", "h1::text", "h9::text");
    lake.run(&three)
        .ok()
        .says(&["`detail` rejects $.title (required)"]);
    // Of a page that was never fetched, how to fetch it.
    lake.run(&["parse", "homes", "--try", "http://x.example/1"])
        .code(2)
        .says(&["lakebed source sample homes --seeds -"]);
    lake.run(&["parse", "homes", "--try", "book/1030.html"])
        .code(2)
        .says(&["there is no file `book/1030.html`"]);
}
