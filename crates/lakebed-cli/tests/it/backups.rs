//! Catalog and log brought back from backups of different moments: the right answer, or a refusal
//! that names what is wrong. Nothing is ever mended by guessing.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;
use std::path::{Path, PathBuf};

use crate::lake::{Run, TestLake};

const FIELDS: &str = "\n[[field]]\nid = 1\nname = \"k\"\ntype = \"int\"\nrequired = true\n";
/// Commits that were made, and so the number of backups after the first.
const COMMITS: usize = 4;

/// Where a backup stands: 0 = before the first commit.
struct Backups {
    lake: TestLake,
    copies: PathBuf,
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

fn is_catalog(name: &str) -> bool {
    name.starts_with("catalog.db")
}

impl Backups {
    fn new() -> Self {
        let lake = TestLake::new()
            .env("LAKEBED_CHECKPOINT_EVERY", "2")
            .dataset("clean/a", FIELDS);
        let copies = lake.root().join("backups");
        let backups = Self { lake, copies };
        backups.keep(0);
        for n in 1..=COMMITS {
            let rows: String = (0..n)
                .map(|k| format!("{{\"k\": {}}}\n", 10 * n + k))
                .collect();
            backups.lake.file(&format!("{n}.jsonl"), rows);
            backups
                .lake
                .ingest("clean/a", &[&format!("{n}.jsonl"), "--date", "2026-11-29"])
                .ok();
            backups.keep(n);
        }
        backups
    }

    fn keep(&self, n: usize) {
        copy_folder(&self.lake.lake(), &self.copies.join(format!("{n}/lake")));
        for entry in fs::read_dir(self.lake.project()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if is_catalog(&name) {
                fs::copy(entry.path(), self.copies.join(format!("{n}/{name}"))).unwrap();
            }
        }
    }

    /// The catalog of one moment beside the lake of another.
    fn bring_back(&self, catalog: usize, lake: usize) {
        fs::remove_dir_all(self.lake.lake()).unwrap();
        copy_folder(&self.copies.join(format!("{lake}/lake")), &self.lake.lake());
        for entry in fs::read_dir(self.lake.project()).unwrap() {
            let entry = entry.unwrap();
            if is_catalog(&entry.file_name().into_string().unwrap()) {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        for entry in fs::read_dir(self.copies.join(catalog.to_string())).unwrap() {
            let entry = entry.unwrap();
            if is_catalog(&entry.file_name().into_string().unwrap()) {
                fs::copy(entry.path(), self.lake.project().join(entry.file_name())).unwrap();
            }
        }
    }

    fn count(&self) -> Run {
        self.lake.run(&[
            "sql",
            "SELECT count(*) AS n FROM clean.a",
            "--format",
            "csv",
        ])
    }

    fn ingest(&self) -> Run {
        self.lake.file("more.jsonl", "{\"k\": 1000}\n");
        self.lake
            .ingest("clean/a", &["more.jsonl", "--date", "2026-11-30"])
    }

    fn audit(&self) -> Run {
        self.lake.run(&["audit", "--deep"])
    }
}

/// Rows after so many commits.
fn rows(commits: usize) -> usize {
    commits * (commits + 1) / 2
}

fn counted(run: Run) -> usize {
    let text = run.ok().stdout;
    text.lines().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_catalog_at_or_behind_its_log_follows_it() {
    let b = Backups::new();
    for catalog in 0..=COMMITS {
        for lake in catalog..=COMMITS {
            b.bring_back(catalog, lake);
            assert_eq!(
                counted(b.count()),
                rows(lake),
                "catalog {catalog}, lake {lake}"
            );
            b.bring_back(catalog, lake);
            b.ingest().ok();
            assert_eq!(
                counted(b.count()),
                rows(lake) + 1,
                "catalog {catalog}, lake {lake}"
            );
            b.audit().ok();
        }
    }
}

#[test]
fn a_catalog_ahead_of_its_log_is_refused_until_it_is_rebuilt() {
    let b = Backups::new();
    for catalog in 1..=COMMITS {
        for lake in 0..catalog {
            b.bring_back(catalog, lake);
            // Nobody reads rows that the lake no longer has, and nobody writes over what it lost.
            b.count().code(4).says(&["CAT-3"]);
            b.ingest().code(4).says(&["CAT-3"]);
            b.audit().code(1);
            b.lake.run(&["catalog", "rebuild"]).ok();
            assert_eq!(
                counted(b.count()),
                rows(lake),
                "catalog {catalog}, lake {lake}"
            );
            b.ingest().ok();
            b.audit().ok();
        }
    }
}

#[test]
fn a_log_that_went_on_otherwise_is_refused() {
    let b = Backups::new();
    for lake in 1..COMMITS {
        // A backup came back, and somebody committed to it: the same number, another record.
        b.bring_back(lake, lake);
        b.ingest().ok();
        let forked = b.copies.join("forked");
        drop(fs::remove_dir_all(&forked));
        copy_folder(&b.lake.lake(), &forked);
        for catalog in lake + 1..=COMMITS {
            b.bring_back(catalog, lake);
            fs::remove_dir_all(b.lake.lake()).unwrap();
            copy_folder(&forked, &b.lake.lake());
            b.count().code(4).says(&["CAT-3"]);
            b.ingest().code(4).says(&["CAT-3"]);
            b.lake.run(&["catalog", "rebuild"]).ok();
            assert_eq!(counted(b.count()), rows(lake) + 1);
        }
    }
}

#[test]
fn a_log_with_a_hole_is_refused_whatever_the_catalog_knows() {
    let b = Backups::new();
    for catalog in 0..=COMMITS {
        for hole in 1..COMMITS {
            b.bring_back(catalog, COMMITS);
            let record = format!("_lake/log/clean/a/{hole:020}.json");
            fs::remove_file(b.lake.lake().join(record)).unwrap();
            b.ingest().code(4).says(&["LOG-1"]);
            b.lake.run(&["catalog", "rebuild"]).code(4).says(&["LOG-1"]);
            b.audit().code(1);
            // A reader whose catalog is behind the hole does not guess what came after it.
            if catalog < COMMITS {
                b.count().code(4).says(&["LOG-1"]);
            }
        }
    }
}

#[test]
fn a_catalog_or_a_log_of_another_lake_is_refused() {
    let b = Backups::new();
    let other = Backups::new();
    for (catalog, lake) in [(0, COMMITS), (COMMITS, COMMITS), (2, 1)] {
        b.bring_back(catalog, lake);
        fs::remove_dir_all(b.lake.lake()).unwrap();
        copy_folder(&other.copies.join(format!("{lake}/lake")), &b.lake.lake());
        for command in [
            &["sql", "SELECT count(*) FROM clean.a"][..],
            &["catalog", "status"],
            &["catalog", "sync"],
            &["catalog", "rebuild"],
            &["partitions"],
        ] {
            b.lake.run(command).code(4).says(&["CAT-3", "another lake"]);
        }
        b.ingest().code(4).says(&["CAT-3", "another lake"]);
        // One record of a foreign log among ours.
        b.bring_back(catalog, lake);
        let record = format!("_lake/log/clean/a/{lake:020}.json");
        let foreign = other.copies.join(format!("{lake}/lake")).join(&record);
        fs::copy(foreign, b.lake.lake().join(record)).unwrap();
        b.ingest().code(4).says(&["clean/a"]);
        b.lake.run(&["catalog", "rebuild"]).code(4);
    }
}
