//! Days that closed red: shown as they are, gone on with by retry, by wider rules or by a person's word; hosts whose
//! `robots.txt` has a bad moment; dates that are not here yet.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::lake::TestLake;
use crate::newcomer::requests;

pub(crate) const DAY: &str = "2026-11-30";
pub(crate) const SOURCE: &str = r#"class = "log"
[crawl]
user_agent = "lakebed-test/1 (+https://lakebed.example/bot)"
hosts = ["127.0.0.1", "no-such-name.invalid"]
allow_private = ["127.0.0.0/8"]
seeds = "seeds.txt"
seed_stage = "page"
max_failures = 1
stage.page = {}
"#;

/// A site that answers `/robots.txt` by the number of its question, `/gone` with 404, `/late` so at the first question, and
/// everything else with a page; `/list` and `/late-list` have links.
pub(crate) struct Site {
    pub(crate) url: String,
    robots: Arc<AtomicUsize>,
}

impl Site {
    /// The first so many questions for `robots.txt` are answered with 503.
    pub(crate) fn start(bad_moments: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let robots = Arc::new(AtomicUsize::new(0));
        let asked = Arc::clone(&robots);
        let late = AtomicUsize::new(0);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = [0; 4096];
                let n = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..n]).into_owned();
                let status = match head.split(' ').nth(1) {
                    Some("/robots.txt") if asked.fetch_add(1, Ordering::SeqCst) < bad_moments => {
                        "503 Service Unavailable"
                    }
                    Some("/robots.txt" | "/gone") => "404 Not Found",
                    Some("/late" | "/late-list") if late.fetch_add(1, Ordering::SeqCst) == 0 => {
                        "404 Not Found"
                    }
                    _ => "200 OK",
                };
                let body = match head.split(' ').nth(1) {
                    Some("/list") => "<a href=/d1>1</a><a href=/d2>2</a>",
                    Some("/late-list") => "<a href=/d2>2</a><a href=/d3>3</a>",
                    _ => "<p>頁</p>",
                };
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                drop(stream.write_all(answer.as_bytes()));
            }
        });
        Self { url, robots }
    }
}

pub(crate) fn new_lake() -> TestLake {
    let lake = TestLake::new();
    let local = "[crawl.usual]\npause_ms = 0\nplaces = 4\nbackoff_ms = 1\nrobots_retry_s = 1\n";
    fs::write(lake.project().join("lakebed.local.toml"), local).unwrap();
    lake.run(&["source", "add", "books"]).ok();
    write(&lake, "source.toml", SOURCE);
    lake
}

pub(crate) fn write(lake: &TestLake, name: &str, text: &str) {
    fs::write(lake.project().join("sources/books").join(name), text).unwrap();
}

/// One page that is there and one that is gone.
fn half_gone(site: &Site) -> String {
    format!("{}/a\n{}/gone\n", site.url, site.url)
}

/// Run, standing and reason of each crawl that `status` shows.
fn crawls(answer: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let dates = answer["dates"].as_array().unwrap().iter();
    dates
        .map(|date| {
            let stage = &date["stages"][0];
            (
                text(&date["run"]),
                text(&stage["standing"]),
                text(&stage["why"]),
            )
        })
        .collect()
}

#[test]
fn a_red_run_is_seen_beside_those_that_went_well() {
    let lake = new_lake();
    let site = Site::start(0);
    let status = ["status", "books", "--date", DAY, "--format", "json"];
    // Nothing is there yet, and looking makes nothing.
    let all = lake
        .run(&["status", "books", "--format", "json"])
        .ok()
        .json();
    assert_eq!(all["dates"].as_array().unwrap().len(), 1, "{all}");
    assert!(!lake.project().join("queue.db").exists());
    write(&lake, "seeds.txt", &half_gone(&site));
    let red = lake.run(&["run", "books", "--date", DAY]).code(30);
    red.prints(&["books 2026-11-30 has:\n  1 request done, 1 dead\n"])
        .says(&[
            "`lakebed queue retry books --date 2026-11-30 --as day-2`",
            "`lakebed crawl close books --date 2026-11-30 --accept --note TEXT`",
        ]);
    lake.run(&["run", "books", "--date", DAY])
        .code(30)
        .says(&["`books 2026-11-30 day` closed red before; nothing was fetched"]);
    write(&lake, "seeds.txt", &format!("{}/a\n", site.url));
    // A sweep that is green leaves the day red, and says how that ends.
    let accept = "`lakebed crawl close books --date 2026-11-30 --accept --note TEXT` takes it as it is, then `lakebed run books --date 2026-11-30` once more";
    let sweep = lake.run(&["run", "books", "--date", DAY, "--run", "again"]);
    sweep
        .ok()
        .says(&["the run `day` of books 2026-11-30 is still red", accept])
        .prints(&["books 2026-11-30 again has:\n  1 request done, 0 dead\n"]);
    lake.run(&["crawl", "books", "--date", DAY, "--run", "again"])
        .ok()
        .says(&["is still red", accept]);
    let status_of_day = lake.run(&["status", "books", "--date", DAY]).code(1);
    status_of_day.says(&[
        "red crawl: `lakebed queue retry books --date 2026-11-30 --as day-2` tries the 1 dead again; `lakebed run books --date 2026-11-30` then goes on",
        "red crawl: `lakebed crawl close books --date 2026-11-30 --accept --note TEXT`",
    ]);
    let shown = crawls(&lake.run(&status).code(1).json());
    let why = "closed red: 1 of 2 requests are dead, 50.0 % of at most 5.0 %: 1 http_404";
    let of = |run: &str, is: &str, why: &str| (run.to_owned(), is.to_owned(), why.to_owned());
    let expected = [of("again", "done", ""), of("day", "red", why)];
    assert_eq!(shown, expected);
    // A sweep that failed is seen where no flow ran the day, and so is a crawl without a flow.
    write(&lake, "seeds.txt", &half_gone(&site));
    for (day, command) in [("2026-11-29", "run"), ("2026-11-28", "crawl")] {
        lake.run(&[command, "books", "--date", day, "--run", "s1"]);
        let answer = lake.run(&["status", "--date", day, "--format", "json"]);
        let shown = crawls(&answer.code(1).json());
        let expected = [of("day", "missing", "never done"), of("s1", "red", why)];
        assert_eq!(shown, expected, "{command}");
    }
}

#[test]
fn a_retry_that_finds_nothing_makes_nothing_and_one_is_judged_with_its_first_run() {
    let lake = new_lake();
    let site = Site::start(0);
    write(&lake, "seeds.txt", &half_gone(&site));
    lake.run(&["run", "books", "--date", DAY]).code(30);
    let retry = ["queue", "retry", "books", "--date", DAY, "--as", "day-2"];
    let of_nobody = [&retry[..], &["--class", "timeout_total"]].concat();
    lake.run(&of_nobody).code(1).says(&[
        "no request of `books` on 2026-11-30, run `day` is dead of class `timeout_total`",
        "dead are: 1 http_404",
    ]);
    assert!(!lake.run(&["queue", "status"]).ok().stdout.contains("day-2"));
    // The page is gone for good, and somebody says that this much may be.
    let wide = SOURCE.replace("max_failures = 1", "max_failures = 1\nmax_dead_share = 0.5");
    write(&lake, "source.toml", &wide);
    lake.run(&retry).ok().says(&[
        "`lakebed run books --date 2026-11-30` does so, too, and goes on with what comes after it",
    ]);
    // By hand it is said what comes next; nothing else is red.
    let crawled = lake.run(&["crawl", "books", "--date", DAY, "--run", "day-2"]);
    let crawled = crawled.ok().says(&[
        "`day-2` answers for `day`: `lakebed run books --date 2026-11-30` goes on with both",
    ]);
    assert!(!crawled.stderr.contains("still red"), "{}", crawled.stderr);
    let answer = lake.run(&["run", "books", "--date", DAY, "--format", "json"]);
    assert_eq!(requests(&answer.ok().json()), (1, 1, false));
    lake.run(&["status", "books", "--date", DAY]).ok();
    let closed = lake.run(&[
        "crawl", "close", "books", "--date", DAY, "--run", "day-2", "--format", "json",
    ]);
    let family = &closed.ok().json()["books"]["family"];
    assert_eq!(
        (&family["requests"], &family["done"]),
        (&2.into(), &1.into())
    );
    lake.run(&[
        "queue",
        "retry",
        "books",
        "--date",
        "2026-11-29",
        "--as",
        "x",
    ])
    .code(2);
    lake.assert_clean();
}

#[test]
fn what_one_retry_has_done_or_is_at_no_other_asks_for() {
    let lake = new_lake();
    let site = Site::start(0);
    write(&lake, "seeds.txt", &format!("{0}/a\n{0}/late\n", site.url));
    lake.run(&["crawl", "books", "--date", DAY]).code(16);
    let retry = |name: &'static str| ["queue", "retry", "books", "--date", DAY, "--as", name];
    lake.run(&retry("day-2")).ok();
    let told = "1 that were dead are done, or tried again";
    lake.run(&retry("day-3")).code(1).says(&[
        "`day-2` of `books` on 2026-11-30 tries again what died, and has not ended",
        "`lakebed crawl books --date 2026-11-30 --run day-2` goes on with it",
    ]);
    // Nor does a prune take away what it goes back to.
    let prune = ["queue", "prune", "--before", "2026-12-01"];
    lake.run(&prune).ok().says(&[
        "the run `books 2026-11-30 day-2` stays: it is open",
        "the run `books 2026-11-30 day` stays: it belongs to `day-2`, which stays",
    ]);
    lake.run(&["crawl", "books", "--date", DAY]).ok();
    lake.run(&retry("day-3")).code(1).says(&[told]);
    lake.assert_clean();
}

#[test]
fn a_first_green_day_says_what_would_notice_a_list_that_shrank() {
    let lake = new_lake();
    let site = Site::start(0);
    let pages = |n: usize| -> String { (0..n).map(|n| format!("{}/p{n}\n", site.url)).collect() };
    write(&lake, "seeds.txt", &pages(12));
    let hint = "books had 12 requests on 2026-11-30: `min_requests = 6` in [crawl]";
    lake.run(&["run", "books", "--date", DAY])
        .ok()
        .says(&[hint]);
    // It is said of what came, not of what was there; and not where somebody said it.
    let again = lake.run(&["run", "books", "--date", DAY]).ok();
    assert!(!again.stderr.contains("min_requests"), "{}", again.stderr);
    let said = SOURCE.replace("max_failures", "min_requests = 2\nmax_failures");
    write(&lake, "source.toml", &said);
    let next = lake.run(&["run", "books", "--date", "2026-11-29"]).ok();
    assert!(!next.stderr.contains("min_requests"), "{}", next.stderr);
}

/// Attacks CRL-2: a list whose links nobody finds any more is no green day.
#[test]
fn pages_that_lead_nowhere_are_red() {
    let lake = new_lake();
    let site = Site::start(0);
    write(&lake, "seeds.txt", &format!("{}/a\n", site.url));
    let rules = "stage.detail = {}\n[[parse.page]]\nstage = \"page\"\n[[parse.page.follow]]\nstage = \"detail\"\nurl = \"a::attr(href)\"\n";
    write(&lake, "source.toml", &format!("{SOURCE}{rules}"));
    let crawl = |run: &'static str| ["crawl", "books", "--date", DAY, "--run", run];
    lake.run(&crawl("one"))
        .code(19)
        .prints(&[
            "1 pages were read and none has a link to the stage `detail`",
            "may_be_empty = true",
        ])
        .says(&["mend `follow` first", "--run one-2` is a sweep"]);
    write(
        &lake,
        "source.toml",
        &format!("{SOURCE}{rules}may_be_empty = true\n"),
    );
    lake.run(&crawl("two")).ok();
}

/// Attacks CRL-2: dead requests that are tried again do not make a list good that leads nowhere, and no day either whose
/// responses are lost.
#[test]
fn a_retry_does_not_end_what_it_does_not_mend() {
    let lake = new_lake();
    let site = Site::start(0);
    write(&lake, "seeds.txt", &format!("{0}/a\n{0}/late\n", site.url));
    let rules = "stage.detail = {}\n[[parse.page]]\nstage = \"page\"\n[[parse.page.follow]]\nstage = \"detail\"\nurl = \"a::attr(href)\"\n";
    let wide = SOURCE.replace("max_failures = 1", "max_failures = 1\nmax_dead_share = 0.9");
    write(&lake, "source.toml", &format!("{wide}{rules}"));
    let crawl = ["crawl", "books", "--date", DAY];
    let red = lake.run(&crawl).code(19);
    assert!(!red.stderr.contains("queue retry"), "{}", red.stderr);
    let retry = ["queue", "retry", "books", "--date", DAY, "--as", "day-2"];
    lake.run(&retry).ok();
    lake.run(&crawl).code(19);
    // A response that no part holds.
    let lake = new_lake();
    let site = Site::start(0);
    write(
        &lake,
        "seeds.txt",
        &format!("{0}/a\n{0}/late\n{0}/gone\n", site.url),
    );
    write(&lake, "source.toml", &wide);
    lake.run(&[&crawl[..], &["--no-close"]].concat()).ok();
    let parts = lake.project().join("crawl/books/2026-11-30.day");
    for entry in fs::read_dir(parts).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "zst") {
            fs::remove_file(path).unwrap();
        }
    }
    let close = ["crawl", "close", "books", "--date", DAY];
    lake.run(&close).code(17);
    let red = lake.run(&close).code(17);
    assert!(!red.stderr.contains("dead again"), "{}", red.stderr);
    lake.run(&retry).ok();
    lake.run(&crawl)
        .code(17)
        .prints(&["of the run `day`: its pack was refused"]);
    // Nobody accepts it while nothing says which responses are gone: then they are tried again like any other dead ones.
    let lost = "`lakebed crawl close books --date 2026-11-30 --run day --lost` ends their requests as dead";
    let accept = ["--accept", "--note", "丟了就丟了"];
    lake.run(&[&close[..], &accept].concat()).code(1).says(&[
        "is not accepted: what it fetched would stay out of the lake",
        lost,
    ]);
    lake.run(&[&close[..], &["--lost", "--no-parts"]].concat())
        .code(14)
        .says(&["1 request died of a lost response"]);
    lake.run(&crawl).ok();
    let retry = ["queue", "retry", "books", "--date", DAY, "--as", "day-3"];
    lake.run(&retry).ok();
    lake.run(&crawl).ok();
}

/// A list that is tried again brings what its run lacks, and nothing twice.
#[test]
fn what_a_retried_list_leads_to_is_new_or_a_duplicate() {
    let lake = new_lake();
    let site = Site::start(0);
    let rules = "stage.detail = {}\n[[parse.page]]\nstage = \"page\"\n[[parse.page.follow]]\nstage = \"detail\"\nurl = \"a::attr(href)\"\n";
    write(&lake, "source.toml", &format!("{SOURCE}{rules}"));
    write(
        &lake,
        "seeds.txt",
        &format!("{0}/list\n{0}/late-list\n", site.url),
    );
    let crawl = ["crawl", "books", "--date", DAY];
    lake.run(&crawl).code(16);
    let retry = ["queue", "retry", "books", "--date", DAY, "--as", "day-2"];
    lake.run(&retry).ok();
    lake.run(&crawl).ok();
    let sql =
        "SELECT count(*) AS n, count(DISTINCT url) AS urls FROM lake.requests WHERE state = 'done'";
    let answer = lake.run(&["sql", sql, "--format", "csv"]).ok();
    answer.prints(&["5,5"]);
}

/// A call for some stages ends where nothing of these is left.
#[test]
fn a_crawl_of_one_stage_does_not_wait_for_the_others() {
    let lake = new_lake();
    let site = Site::start(0);
    let rules = "stage.detail = {}\n[[parse.page]]\nstage = \"page\"\n[[parse.page.follow]]\nstage = \"detail\"\nurl = \"a::attr(href)\"\n";
    write(&lake, "source.toml", &format!("{SOURCE}{rules}"));
    write(&lake, "seeds.txt", &format!("{}/list\n", site.url));
    let crawl = ["crawl", "books", "--date", DAY, "--stage", "page"];
    lake.run(&crawl).ok();
    lake.run(&crawl[..4]).ok();
}

#[test]
fn a_person_takes_a_red_day_as_it_is() {
    let lake = new_lake();
    let site = Site::start(0);
    write(&lake, "seeds.txt", &half_gone(&site));
    lake.run(&["run", "books", "--date", DAY]).code(30);
    let accept = ["crawl", "close", "books", "--date", DAY, "--accept"];
    lake.run(&accept).code(2);
    let with = |note: &'static str| [&accept[..], &["--note", note]].concat();
    lake.run(&with(" "))
        .code(2)
        .says(&["accepted with a reason"]);
    lake.run(&with("頁面永久移除")).ok().prints(&[
        "red, accepted",
        "頁面永久移除",
        "1 of 2 requests are dead",
    ]);
    // Told again it changes nothing; another word does not take the place of the first.
    lake.run(&with("頁面永久移除")).ok();
    lake.run(&with("other")).code(1).says(&["頁面永久移除"]);
    let file = lake.project().join("crawl/books/2026-11-30.day/run.json");
    let told: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    assert_eq!(
        (&told["accepted"]["note"], &told["pass"], &told["coverage"]),
        (&"頁面永久移除".into(), &false.into(), &"partial".into())
    );
    assert_eq!(told["pack"]["captures"], 2, "{told}");
    lake.run(&["status", "books", "--date", DAY])
        .ok()
        .prints(&["missing", "accepted: 頁面永久移除; `lakebed run` goes on"]);
    lake.run(&["run", "books", "--date", DAY])
        .ok()
        .says(&["`lakebed queue list books --date 2026-11-30 --run day --state dead` names"]);
    lake.run(&["status", "books", "--date", DAY])
        .ok()
        .prints(&["done", "accepted: 頁面永久移除"]);
    assert!(
        lake.run(&["queue", "status"])
            .ok()
            .stdout
            .contains("accepted")
    );
    lake.assert_clean();
    // What is green, open or empty is not accepted.
    let refused = |run: &'static str| {
        let args = ["--run", run, "--accept", "--note", "x"];
        [&["crawl", "close", "books", "--date", DAY][..], &args].concat()
    };
    let crawl = |run: &'static str| ["crawl", "books", "--date", DAY, "--run", run, "--no-close"];
    lake.run(&crawl("open")).ok();
    lake.run(&refused("open")).code(1).says(&["is open"]);
    write(&lake, "seeds.txt", &format!("{}/a\n", site.url));
    lake.run(&crawl("green")[..6]).ok();
    lake.run(&refused("green")).code(1).says(&["closed green"]);
    write(&lake, "seeds.txt", &format!("{}/gone\n", site.url));
    lake.run(&crawl("empty")[..6]).code(14);
    lake.run(&refused("empty"))
        .code(1)
        .says(&["an empty day is not accepted"]);
}

#[test]
fn what_is_told_beside_the_parts_is_of_the_closing_that_stands() {
    let lake = new_lake();
    let site = Site::start(0);
    let told = || -> Value {
        let file = lake.project().join("crawl/books/2026-11-30.day/run.json");
        serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
    };
    let crawl = ["crawl", "books", "--date", DAY];
    write(&lake, "seeds.txt", &format!("{}/a\n", site.url));
    lake.run(&crawl).ok();
    assert_eq!(told()["pass"], true);
    // A file that is gone is written anew, with the pack that the lake holds.
    let lake = new_lake();
    let told = || lake.project().join("crawl/books/2026-11-30.day/run.json");
    write(&lake, "seeds.txt", &half_gone(&site));
    lake.run(&crawl).code(16);
    fs::remove_file(told()).unwrap();
    let accept = ["crawl", "close", "books", "--date", DAY, "--accept"];
    lake.run(&[&accept[..], &["--note", "好"]].concat()).ok();
    let red: Value = serde_json::from_slice(&fs::read(told()).unwrap()).unwrap();
    assert_eq!(
        (&red["accepted"]["note"], &red["pack"]["captures"]),
        (&"好".into(), &2.into()),
        "{red}"
    );
    lake.assert_clean();
}

#[test]
fn a_bad_moment_of_robots_txt_costs_no_attempt() {
    let lake = new_lake();
    let site = Site::start(2);
    write(
        &lake,
        "seeds.txt",
        &format!("{0}/a\n{0}/b\n{0}/c\n", site.url),
    );
    let crawled = lake
        .run(&["crawl", "books", "--date", DAY, "--format", "json"])
        .ok()
        .says(&[
            "robots.txt of `http://127.0.0.1",
            "(http_503); asked again after",
        ]);
    assert_eq!(site.robots.load(Ordering::SeqCst), 3);
    let answer = crawled.json();
    assert_eq!(
        (
            &answer["books"]["failures"],
            &answer["books"]["states"]["done"]
        ),
        (&0.into(), &3.into())
    );
    // Three reads in a row are a no.
    let lake = new_lake();
    let site = Site::start(usize::MAX);
    write(&lake, "seeds.txt", &format!("{0}/a\n{0}/b\n", site.url));
    lake.run(&["crawl", "books", "--date", DAY])
        .code(14)
        .prints(&["2 robots_unreachable"])
        .says(&["(http_503); asked again after"]);
    assert_eq!(site.robots.load(Ordering::SeqCst), 3);
    // A host that does not exist is told as such.
    let lake = new_lake();
    write(&lake, "seeds.txt", "http://no-such-name.invalid/a\n");
    lake.run(&["crawl", "books", "--date", DAY])
        .code(14)
        .prints(&["1 dns"])
        .says(&["the name of `http://no-such-name.invalid` could not be resolved"]);
}

#[test]
fn a_crawl_of_another_day_says_so_and_of_a_day_to_come_is_refused() {
    let lake = new_lake();
    let site = Site::start(0);
    write(&lake, "seeds.txt", &format!("{}/a\n", site.url));
    lake.run(&["crawl", "books", "--date", "2999-05-01"])
        .code(2)
        .says(&["2999-05-01 is not here yet: today is"]);
    lake.run(&["run", "books", "--date", "2999-05-01"])
        .code(30)
        .says(&["2999-05-01 is not here yet"]);
    assert!(!lake.run(&["queue", "status"]).ok().stdout.contains("2999"));
    let said = "the pages are those of now (";
    lake.run(&["crawl", "books", "--date", "2020-02-29"])
        .ok()
        .says(&[said, "stored as 2020-02-29"]);
    // It is said where a crawl begins, not where one is asked for again.
    let again = lake.run(&["crawl", "books", "--date", "2020-02-29"]).ok();
    assert!(!again.stderr.contains(said), "{}", again.stderr);
}
