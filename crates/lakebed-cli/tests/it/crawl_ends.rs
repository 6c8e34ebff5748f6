//! Runs that do not end by themselves: a pack that was refused, parts that are elsewhere, workers that were killed, seeds
//! that never come. Each says what it waits for, and the command that it names goes on.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::flow_red::{DAY, SOURCE, Site, new_lake, write};
use crate::lake::{Run, TestLake};

const CRAWL: [&str; 4] = ["crawl", "books", "--date", DAY];
const CLOSE: [&str; 5] = ["crawl", "close", "books", "--date", DAY];
const PRUNE: [&str; 4] = ["queue", "prune", "--before", "2026-12-01"];
const PARTS: &str = "crawl/books/2026-11-30.day";

fn with<'a>(words: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [words, more].concat()
}

/// Moves the parts from one folder into another.
fn move_parts(from: &Path, to: &Path) -> usize {
    fs::create_dir_all(to).unwrap();
    let mut moved = 0;
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "zst") {
            fs::rename(&path, to.join(path.file_name().unwrap())).unwrap();
            moved += 1;
        }
    }
    moved
}

fn told(lake: &TestLake) -> Value {
    told_in(lake, PARTS)
}

fn told_in(lake: &TestLake, parts: &str) -> Value {
    let file = lake.project().join(parts).join("run.json");
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

fn fetched(pages: &str) -> TestLake {
    let lake = new_lake();
    let site = Site::start(0);
    let urls: Vec<String> = pages
        .split(' ')
        .map(|page| format!("{}/{page}\n", site.url))
        .collect();
    write(&lake, "seeds.txt", &urls.concat());
    lake.run(&with(&CRAWL, &["--no-close"])).ok();
    lake
}

#[test]
fn a_refused_pack_is_tried_again_and_says_what_lacks_each_time() {
    let lake = fetched("a b");
    let (here, away) = (lake.project().join(PARTS), lake.root().join("elsewhere"));
    assert!(move_parts(&here, &away) > 0);
    let red = |run: Run| {
        run.code(17)
            .prints(&[
                "its pack was refused: 2 requests of the run do not agree with its captures",
                "is done, and its capture is in no part: http://127.0.0.1",
            ])
            .says(&[
                "crawl/books/2026-11-30.day",
                "must share `crawl/`",
                "`lakebed crawl close books --date 2026-11-30 --run day` then tries again",
                "the same command tries to seal the pack again",
            ])
    };
    red(lake.run(&CRAWL));
    red(lake.run(&CLOSE));
    let answer = lake
        .run(&with(&CLOSE, &["--format", "json"]))
        .code(17)
        .json();
    let refused = &answer["refused"];
    assert_eq!(refused["details"].as_array().unwrap().len(), 2, "{answer}");
    let hints = refused["hints"].to_string();
    assert!(hints.contains("must share `crawl/`"), "{answer}");
    let folder = refused["context"]["folder"].as_str().unwrap();
    assert!(folder.ends_with(PARTS), "{answer}");
    assert_eq!(answer["breaches"][0]["kind"], "missing_capture");
    assert_eq!(told(&lake)["pack"], Value::Null);
    // No machine stands in what is kept.
    assert!(!told(&lake).to_string().contains(folder));
    // The parts are back: the run ends as it would have.
    move_parts(&away, &here);
    lake.run(&CRAWL).ok();
    let green = told(&lake);
    assert_eq!(
        (&green["pass"], &green["stopped"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(green["pack"]["captures"], 2, "{green}");
    let status = lake.run(&["queue", "status"]).ok();
    assert!(status.stdout.contains("pass"), "{status}");
    lake.run(&CLOSE).ok();
    lake.assert_clean();
}

#[test]
fn a_pack_of_a_sealed_date_goes_in_once_the_date_is_open() {
    let lake = fetched("a");
    lake.run(&CRAWL).ok();
    lake.run(&["seal", "raw/books", "--date", DAY]).ok();
    let second = with(&CRAWL, &["--run", "second"]);
    lake.run(&second)
        .code(17)
        .prints(&["its pack was refused: 2026-11-30 of `raw/books` is sealed"])
        .says(&["`lakebed reopen raw/books --date 2026-11-30`"]);
    lake.run(&["reopen", "raw/books", "--date", DAY, "--note", "one more"])
        .ok();
    lake.run(&second).ok();
    lake.assert_clean();
}

#[test]
fn a_run_that_was_given_up_keeps_its_reason_beside_a_refused_pack() {
    let lake = fetched("a");
    let (here, away) = (lake.project().join(PARTS), lake.root().join("elsewhere"));
    move_parts(&here, &away);
    lake.run(&[
        "crawl", "stop", "books", "--date", DAY, "--reason", "enough",
    ])
    .ok();
    let give_up = with(&CLOSE, &["--give-up"]);
    for _ in 0..2 {
        lake.run(&give_up[..5])
            .code(17)
            .prints(&["the run was stopped: enough", "its pack was refused"]);
    }
    // What tries again what died is judged by that pack, too, and says whose it is.
    move_parts(&away, &here);
    lake.run(&CLOSE).code(10);
    assert_eq!(told(&lake)["pack"]["captures"], 1);
    assert_eq!(told(&lake)["stopped"], "enough");
}

#[test]
fn rows_stay_until_their_pack_is_in_the_lake() {
    let lake = fetched("a b");
    let (here, away) = (lake.project().join("crawl"), lake.root().join("moved"));
    fs::rename(&here, &away).unwrap();
    lake.run(&CRAWL).code(17);
    let kept = lake.run(&with(&PRUNE, &["--format", "json"])).ok();
    let kept = kept.says(&["stays: its pack is not in the lake, and none of its parts is in"]);
    let answer = kept.json();
    assert_eq!(
        (&answer["runs"], &answer["requests"]),
        (&json!([]), &json!(0))
    );
    assert_eq!(answer["kept"][0]["run"], "day", "{answer}");
    let list = ["queue", "list", "books", "--date", DAY, "--format", "json"];
    let rows = lake.run(&list).ok().json();
    assert_eq!(rows["requests"].as_array().unwrap().len(), 2);
    // With the parts it is sealed; without them the rows go then.
    move_parts(
        &away.join("books/2026-11-30.day"),
        &lake.project().join(PARTS),
    );
    lake.run(&CRAWL).ok();
    fs::remove_dir_all(&here).unwrap();
    let gone = lake.run(&with(&PRUNE, &["--format", "json"])).ok().json();
    assert_eq!((&gone["requests"], &gone["kept"]), (&json!(2), &json!([])));
}

/// Attacks PAK-5 and PAK-9: a part that a power failure tore is no reason to leave the rest out of the lake, and what it
/// held is fetched again, whatever the date knows already.
#[test]
fn lost_responses_are_dead_and_fetched_again() {
    let lake = new_lake();
    write(
        &lake,
        "source.toml",
        &SOURCE.replace("stage.page = {}", "stage.page = { key_scope = \"date\" }"),
    );
    let site = Site::start(0);
    let urls = ["a", "b", "c"].map(|page| format!("{}/{page}\n", site.url));
    write(&lake, "seeds.txt", &urls.concat());
    lake.run(&with(&CRAWL, &["--no-close", "--workers", "1"]))
        .ok();
    lake.run(&with(&CLOSE, &["--lost"]))
        .code(1)
        .says(&["is open, not closed"]);
    let folder = lake.project().join(PARTS);
    let parts = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path());
    let part = parts.filter(|p| p.extension().is_some_and(|e| e == "zst"));
    let file = fs::File::options().write(true).open(part.last().unwrap());
    let file = file.unwrap();
    file.set_len(file.metadata().unwrap().len() - 10).unwrap();
    let lost = "`lakebed crawl close books --date 2026-11-30 --run day --lost` ends as dead";
    let red = lake.run(&CRAWL).code(17).says(&[lost]);
    assert!(!red.stderr.contains("--accept"), "{red}");
    let accept = with(&CLOSE, &["--accept", "--note", "x"]);
    lake.run(&accept).code(1).says(&[
        "is not accepted",
        "is in no part: http://127.0.0.1",
        "--lost`",
    ]);
    assert_eq!(told(&lake)["accepted"], Value::Null);
    lake.run(&PRUNE)
        .ok()
        .says(&["stays: its pack is not in", "--lost`"]);
    lake.run(&with(&CLOSE, &["--lost"]))
        .code(16)
        .prints(&["2 done, 1 dead", "1 response_lost"])
        .says(&["1 request died of a lost response", "queue retry"]);
    let sealed = told(&lake);
    assert_eq!(
        (&sealed["pack"]["captures"], &sealed["dead_classes"]),
        (&json!(2), &json!({ "response_lost": 1 }))
    );
    // It is said once.
    lake.run(&with(&CLOSE, &["--lost"]))
        .code(1)
        .says(&["was not refused: no response of it is lost"]);
    lake.run(&["queue", "retry", "books", "--date", DAY, "--as", "day-2"])
        .ok();
    lake.run(&CRAWL)
        .ok()
        .prints(&["day-2: closed, green: 1 done"]);
    let rows = "SELECT count(*) AS n FROM lake.requests WHERE state = 'done'";
    let rows = lake.run(&["sql", rows, "--format", "json"]).ok().stdout;
    assert!(rows.contains('3'), "{rows}");
    assert_eq!(
        told_in(&lake, "crawl/books/2026-11-30.day-2")["pack"]["captures"],
        1
    );
    let gone = lake.run(&with(&PRUNE, &["--format", "json"])).ok().json();
    assert_eq!(gone["kept"], json!([]), "{gone}");
    lake.assert_clean();
}

/// A lake with the pack of a run whose closing died behind the commit, and whose parts are in `away` since.
fn died_behind_its_commit(site: &Site) -> TestLake {
    let lake = new_lake();
    let urls = ["a", "b"].map(|page| format!("{}/{page}\n", site.url));
    write(&lake, "seeds.txt", &urls.concat());
    lake.run(&with(&CRAWL, &["--no-close"])).ok();
    lake.call(&CLOSE)
        .env("LAKEBED_KILL_POINT", "log.committed")
        .run()
        .killed();
    fs::rename(lake.project().join(PARTS), lake.project().join("away")).unwrap();
    let red = lake.run(&CLOSE).code(17);
    assert!(!red.stderr.contains("--lost"), "{red}");
    lake
}

/// What the parts lack is in the lake: what is fetched anew would come twice.
#[test]
fn nothing_is_lost_of_a_run_whose_pack_is_in_the_lake() {
    let site = Site::start(0);
    let lake = died_behind_its_commit(&site);
    lake.run(&with(&CLOSE, &["--lost"]))
        .code(17)
        .says(&["every response is there: none is lost"]);
    let dead = "SELECT count(*) AS n FROM lake.requests WHERE state = 'dead'";
    let dead = lake.run(&["sql", dead, "--format", "json"]).ok().json();
    assert_eq!(dead, json!([{ "n": 0 }]));
    let accept = lake.run(&with(&CLOSE, &["--accept", "--note", "x"]));
    accept.ok().prints(&["accepted"]);
    // With its parts back it is green by itself.
    let lake = died_behind_its_commit(&site);
    let folder = lake.project().join(PARTS);
    fs::remove_dir_all(&folder).unwrap_or_default();
    fs::rename(lake.project().join("away"), &folder).unwrap();
    lake.run(&CLOSE).ok().prints(&["green"]);
    lake.assert_clean();
}

/// A queue that came back from a backup may call done what the pack of the run does not hold.
#[test]
fn nobody_accepts_over_what_the_pack_in_the_lake_lacks() {
    let site = Site::start(0);
    let lake = new_lake();
    let urls = ["a", "b"].map(|page| format!("{}/{page}\n", site.url));
    write(&lake, "seeds.txt", &urls.concat());
    lake.run(&with(&CRAWL, &["--no-close"])).ok();
    let (parts, away) = (lake.project().join(PARTS), lake.project().join("away"));
    let files = ["queue.db", "queue.db-wal", "queue.db-shm"].map(|f| lake.project().join(f));
    let backup = files.each_ref().map(|file| fs::read(file).ok());
    fs::rename(&parts, &away).unwrap();
    lake.run(&CLOSE).code(17);
    // A folder without a part may be the wrong one.
    let lost = with(&CLOSE, &["--lost"]);
    lake.run(&lost).code(1).says(&[
        "has not a single part of `books 2026-11-30 day`",
        "--lost --no-parts` says so",
    ]);
    let lost_all = with(&CLOSE, &["--lost", "--no-parts"]);
    lake.run(&lost_all).code(14);
    for (file, before) in files.iter().zip(backup) {
        fs::remove_file(file).unwrap_or_default();
        before
            .into_iter()
            .for_each(|bytes| fs::write(file, bytes).unwrap());
    }
    fs::remove_dir_all(&parts).unwrap_or_default();
    fs::rename(&away, &parts).unwrap();
    lake.run(&CLOSE).code(17).says(&["with other captures"]);
    let accept = with(&CLOSE, &["--accept", "--note", "x"]);
    lake.run(&accept).code(1).says(&[
        "lacks what its books call done, 2 in all",
        &format!("GET {}/a", site.url),
        "`lakebed crawl close books --date 2026-11-30 --run day --lost` ends these as dead",
    ]);
    lake.run(&lost)
        .code(17)
        .says(&["2 requests died of a lost response"]);
    let retry = ["queue", "retry", "books", "--date", DAY, "--as", "day-2"];
    lake.run(&retry).ok();
    let refused = "of the run `day`: its pack was refused";
    lake.run(&CRAWL).code(17).prints(&[refused]);
    lake.run(&accept).ok().prints(&["red, accepted"]);
    let done = "SELECT run, state, count(*) AS n FROM lake.requests GROUP BY 1, 2 ORDER BY 1";
    let done = lake.run(&["sql", done, "--format", "json"]).ok().json();
    let row = |run: &str, state: &str| json!({ "run": run, "state": state, "n": 2 });
    assert_eq!(done, json!([row("day", "dead"), row("day-2", "done")]));
    lake.assert_clean();
}

/// What is fetched under a name that the lake knows could never be sealed: nothing is fetched.
#[test]
fn a_run_that_was_pruned_is_not_fetched_under_its_name() {
    let site = Site::start(0);
    let lake = new_lake();
    write(&lake, "seeds.txt", &format!("{}/a\n", site.url));
    lake.run(&CRAWL).ok();
    lake.run(&PRUNE).ok();
    let said = [
        "the lake has the pack of a run `books 2026-11-30 day` already",
        "the queue does not know the run any more",
        "`day-2` is a free name",
    ];
    lake.run(&CRAWL).code(1).says(&said);
    let runs = lake.run(&["queue", "status", "--format", "json"]).ok();
    assert_eq!(runs.json()["runs"], json!([]), "{runs}");
    lake.run(&with(&CRAWL, &["--run", "day-2"])).ok();
    lake.run(&PRUNE).ok();
    lake.run(&with(&CRAWL, &["--run", "other"])).ok();
    let retry = ["queue", "retry", "books", "--date", DAY, "--run", "other"];
    lake.run(&with(&retry, &["--as", "day"]))
        .code(1)
        .says(&["`day-3` is a free name"]);
    lake.assert_clean();
}

/// A red day that nobody took as it is stays, with all its runs, until a person says that it goes.
#[test]
fn a_red_run_is_pruned_when_a_person_says_so() {
    let site = Site::start(0);
    let lake = new_lake();
    let urls = ["a", "gone"].map(|page| format!("{}/{page}\n", site.url));
    write(&lake, "seeds.txt", &urls.concat());
    lake.run(&CRAWL).code(16);
    let kept = "the run `books 2026-11-30 day` stays: it is red, and nobody accepted it";
    lake.run(&PRUNE).ok().says(&[kept, "`--red` prunes it"]);
    let retry = ["queue", "retry", "books", "--date", DAY, "--as", "day-2"];
    lake.run(&retry).ok();
    lake.run(&CRAWL).code(16);
    lake.run(&PRUNE).ok().says(&[
        "the run `books 2026-11-30 day-2` stays: it is red",
        "the run `books 2026-11-30 day` stays: it belongs to `day-2`, which stays",
    ]);
    let gone = with(&PRUNE, &["--red", "--format", "json"]);
    let gone = lake.run(&gone).ok().json();
    let names: Vec<_> = gone["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["run"])
        .collect();
    assert_eq!(names, ["day", "day-2"], "{gone}");
    assert_eq!((&gone["requests"], &gone["kept"]), (&json!(3), &json!([])));
    lake.assert_clean();
}

#[test]
fn a_run_that_cannot_be_seeded_can_be_ended() {
    let lake = new_lake();
    let source = SOURCE.replace("seeds = \"seeds.txt\"", "seed_command = [\"false\"]");
    write(&lake, "source.toml", &source);
    lake.run(&CRAWL)
        .code(1)
        .says(&["the seed command `false` failed"]);
    let way = "`lakebed crawl close books --date 2026-11-30 --run day --give-up` ends";
    lake.run(&CLOSE).code(1).says(&["is seeding", way]);
    lake.run(&PRUNE).ok().says(&["stays: it is seeding", way]);
    lake.run(&with(&CLOSE, &["--give-up"]))
        .code(13)
        .prints(&["no request at all"])
        .says(&["queue prune"]);
    let gone = lake.run(&with(&PRUNE, &["--format", "json"])).ok().json();
    assert_eq!(gone["runs"][0]["run"], "day", "{gone}");
    let site = Site::start(0);
    write(&lake, "source.toml", SOURCE);
    write(&lake, "seeds.txt", &format!("{}/a\n", site.url));
    lake.run(&CRAWL).ok();
}

/// A site whose `/slow` never answers its first question; its address, and whether it was asked.
fn slow_site() -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let was_asked = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&was_asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let asked = Arc::clone(&asked);
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                let n = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..n]).into_owned();
                if head.starts_with("GET /slow") && !asked.swap(true, Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_secs(300));
                }
                let answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 3\r\nConnection: close\r\n\r\n<p>";
                drop(stream.write_all(answer.as_bytes()));
            });
        }
    });
    (url, was_asked)
}

/// Starts the command and kills it while the site keeps it waiting.
fn kill_at_work(lake: &TestLake, args: &[&str], was_asked: &AtomicBool) {
    let mut child = lake.call(args).command().spawn().unwrap();
    while !was_asked.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn slow_lake(lease_s: u32) -> (TestLake, Arc<AtomicBool>) {
    let lake = new_lake();
    let local =
        format!("[crawl.usual]\npause_ms = 0\nplaces = 1\nbackoff_ms = 1\nlease_s = {lease_s}\n");
    fs::write(lake.project().join("lakebed.local.toml"), local).unwrap();
    let (url, was_asked) = slow_site();
    write(&lake, "seeds.txt", &format!("{url}/slow\n"));
    (lake, was_asked)
}

#[test]
fn giving_up_says_whose_lease_it_waits_for() {
    let (lake, was_asked) = slow_lake(6);
    kill_at_work(&lake, &CRAWL, &was_asked);
    lake.run(&[
        "crawl", "stop", "books", "--date", DAY, "--reason", "enough",
    ])
    .ok();
    let give_up = with(&CLOSE, &["--give-up"]);
    let red = lake.run(&give_up).code(10).says(&[
        "1 request is held at `127.0.0.1:",
        "where that is gone, its lease ends in ",
        "at most, the same command ends the run",
    ]);
    assert!(!red.stderr.contains("--give-up"), "{red}");
    lake.run(&CLOSE)
        .code(10)
        .says(&["--run day --give-up` ends the run as it is"]);
    std::thread::sleep(Duration::from_secs(7));
    lake.run(&give_up).code(10).prints(&["closed, red"]);
}

#[test]
fn a_sample_says_whom_it_waits_for() {
    let (lake, was_asked) = slow_lake(8);
    let sample = ["source", "sample", "books", "--date", DAY];
    kill_at_work(&lake, &sample, &was_asked);
    lake.run(&sample).ok().says(&[
        "waits for `127.0.0.1:",
        "1 of the run `books 2026-11-30 sample-1` there are held by",
        "its lease ends in ",
    ]);
}
