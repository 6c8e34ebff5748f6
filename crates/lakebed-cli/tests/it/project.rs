//! Project and configuration: `init`, `config`, `source`.

use crate::lake::TestLake;

#[test]
fn init_is_idempotent_and_keeps_what_people_wrote() {
    let lake = TestLake::without_project();
    let project = lake.path_text("project");
    let first = lake
        .run(&["init", &project, "--time-zone", "Asia/Taipei"])
        .ok();
    insta::assert_snapshot!("init", first.snapshot());
    let before = std::fs::read(lake.project().join("lakebed.toml")).unwrap();
    let id = std::fs::read(lake.lake().join("lake.json")).unwrap();
    let again = lake.run(&["init", &project]).ok();
    assert!(again.stdout.contains("Asia/Taipei"), "{again}");
    assert_eq!(
        before,
        std::fs::read(lake.project().join("lakebed.toml")).unwrap()
    );
    assert_eq!(id, std::fs::read(lake.lake().join("lake.json")).unwrap());
    lake.run(&["init", &project, "--time-zone", "UTC"])
        .code(1)
        .says(&["Asia/Taipei"]);
}

#[test]
fn init_without_a_zone_says_what_it_took() {
    let lake = TestLake::without_project();
    lake.run(&["init", &lake.path_text("project")])
        .ok()
        .says(&["UTC", "--time-zone"]);
    lake.run(&[
        "init",
        &lake.path_text("other"),
        "--time-zone",
        "Asia/Atlantis",
    ])
    .code(2)
    .says(&["Asia/Atlantis", "IANA"]);
    assert!(!lake.root().join("other/lake").exists());
}

#[test]
fn unknown_keys_name_the_nearest() {
    let lake = TestLake::new();
    let file = lake.project().join("lakebed.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n[ingest]\non_mismach = \"fail\"\n")).unwrap();
    let run = lake.run(&["config", "show"]).code(2);
    run.says(&["unknown key", "on_mismatch", "lakebed.toml", "line:"]);
}

#[test]
fn every_setting_names_its_origin() {
    let lake = TestLake::new();
    std::fs::write(
        lake.project().join("lakebed.local.toml"),
        "user = \"lin\"\n",
    )
    .unwrap();
    let run = lake
        .call(&["config", "show", "--origin", "--format", "json"])
        .env("LAKEBED_INGEST_ON_MISMATCH", "quarantine")
        .run()
        .ok()
        .json();
    let origin = |key: &str| {
        let all = run["settings"].as_array().unwrap();
        let setting = all.iter().find(|s| s["key"] == key).unwrap();
        setting["origin"].as_str().unwrap().to_owned()
    };
    assert!(origin("user").ends_with("lakebed.local.toml:1"), "{run}");
    assert_eq!(origin("ingest.on_mismatch"), "LAKEBED_INGEST_ON_MISMATCH");
    assert_eq!(origin("lake"), "default");
    let flag = lake
        .run(&["config", "show", "--origin", "--user", "chen"])
        .ok();
    assert!(flag.stdout.contains("--user"), "{flag}");
}

#[test]
fn a_lake_of_another_zone_is_refused() {
    let lake = TestLake::new();
    let file = lake.project().join("lakebed.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("Asia/Taipei", "Asia/Tokyo")).unwrap();
    lake.run(&["schema", "list"])
        .code(1)
        .says(&["Asia/Tokyo", "Asia/Taipei"]);
}

#[test]
fn sources_are_added_once_listed_and_shown() {
    let lake = TestLake::new();
    lake.run(&[
        "source",
        "add",
        "weibo",
        "--class",
        "snapshot",
        "--title",
        "微博热搜",
    ])
    .ok();
    lake.run(&["source", "add", "weibo"])
        .code(1)
        .says(&["there already"]);
    lake.run(&["source", "add", "Weibo"])
        .code(2)
        .says(&["source name"]);
    let list = lake.run(&["source", "list"]).ok();
    assert_eq!(
        list.stdout,
        "source  class     title     url\nweibo   snapshot  微博热搜\n"
    );
    let shown = lake
        .run(&["source", "show", "weibo", "--format", "json"])
        .ok()
        .json();
    assert_eq!(shown["title"], "微博热搜");
    lake.run(&["source", "show", "wiebo"])
        .code(2)
        .says(&["weibo"]);
}

#[test]
fn an_empty_lake_answers_everything() {
    let lake = TestLake::new();
    for args in [
        vec!["source", "list"],
        vec!["schema", "list"],
        vec!["schema", "check"],
        vec!["partitions"],
        vec!["catalog", "status"],
        vec!["catalog", "sync"],
        vec!["catalog", "rebuild", "--full"],
        vec!["audit", "--deep"],
        vec!["sql", "SELECT * FROM lake.partitions"],
    ] {
        lake.run(&args).ok();
    }
}

#[test]
fn a_misspelt_variable_is_refused_by_every_command() {
    let lake = TestLake::new();
    let name = concat!("LAKEBED_", "INGEST_ON_MISSMATCH");
    for args in [
        &["config", "show"][..],
        &["audit"],
        &["schema", "check"],
        &["init", "other"],
    ] {
        let run = lake.call(args).env(name, "quarantine").run().code(2);
        run.says(&[name, "did you mean `LAKEBED_INGEST_ON_MISMATCH`?"]);
    }
    assert!(!lake.root().join("inbox/other").exists());
    lake.call(&["config", "show"]).env(name, "").run().ok();
}

#[test]
fn of_many_that_init_one_folder_all_are_told_that_it_is_there() {
    let lake = TestLake::without_project();
    let project = lake.path_text("project");
    let children: Vec<_> = (0..6)
        .map(|_| {
            let args = [
                "init",
                &project,
                "--time-zone",
                "Asia/Taipei",
                "--format",
                "json",
            ];
            lake.call(&args).command().spawn().unwrap()
        })
        .collect();
    let mut ids = std::collections::BTreeSet::new();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{told}");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        ids.insert(answer["lake_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids.len(), 1, "one lake");
    lake.assert_clean();
}
