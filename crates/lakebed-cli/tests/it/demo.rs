//! The demo: runs whole, tells the truth, leaves foreign folders alone.

use std::fs;

use crate::lake::TestLake;

#[test]
fn sixty_days_end_clean_and_may_be_made_anew() {
    let lake = TestLake::without_project();
    let dir = lake.path_text("demo");
    let first = lake.run(&["demo", &dir]).ok();
    for text in [
        "the site has changed, and the day is refused",
        "Already there, nothing written",
        "a transfer broke off",
        "arrives after the date was sealed",
        "the interface answered, but without data",
        "into quarantine",
        "clean: 3 datasets",
        "Summary",
    ] {
        assert!(first.stdout.contains(text), "`{text}` is missing: {first}");
    }
    assert!(first.stderr.is_empty(), "{first}");
    let on_demo = |args: &[&str]| {
        let mut all = args.to_vec();
        all.extend(["--project", &dir]);
        lake.call(&all).bare().run().ok()
    };
    let rows = on_demo(&[
        "sql",
        "SELECT count(*) AS n FROM clean.hot_topics",
        "--format",
        "csv",
    ]);
    let rows: u64 = rows.stdout.lines().nth(1).unwrap().parse().unwrap();
    assert!(rows > 8000, "{rows}");
    on_demo(&["audit", "--deep"]);

    let again = lake.run(&["demo", &dir]).ok();
    let story = |text: &str| {
        text.lines()
            .filter(|l| !l.starts_with("Done in"))
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(
        story(&first.stdout),
        story(&again.stdout),
        "the story is the same every time"
    );
}

#[test]
fn a_foreign_folder_is_left_alone() {
    let lake = TestLake::without_project();
    let dir = lake.root().join("mine");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("lake"), "precious").unwrap();
    lake.run(&["demo", dir.to_str().unwrap()])
        .code(1)
        .says(&["no demo made"]);
    assert_eq!(fs::read_to_string(dir.join("lake")).unwrap(), "precious");
    let elsewhere = lake.path_text("elsewhere");
    let other = lake
        .call(&["demo", &lake.path_text("demo")])
        .env("LAKEBED_LAKE", &elsewhere);
    other.run().code(2).says(&["LAKEBED_LAKE"]);
    assert!(!lake.root().join("elsewhere").exists());
}
