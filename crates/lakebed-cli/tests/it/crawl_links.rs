//! Links of pages at the closing (CRL-2): what a page leads to counts where it is found, not where its rows come from; a
//! pager that no page shows any more; kinds of pages of one stage, each for itself.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::flow_red::{DAY, SOURCE, new_lake, write};
use crate::lake::{Run, TestLake};

const DETAIL: &str = "[[parse.page.follow]]\nstage = \"detail\"\nurl = \"a.item::attr(href)\"\n";
const PAGER: &str = "[[parse.page.follow]]\nstage = \"page\"\nurl = \"a.next::attr(href)\"\n";

/// A shop with two lists of two pages; without its pager it shows the first page alone, renamed it shows no links.
struct Shop {
    url: String,
    has_pager: Arc<AtomicBool>,
}

impl Shop {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let has_pager = Arc::new(AtomicBool::new(true));
        let shows = Arc::clone(&has_pager);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = [0; 4096];
                let n = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..n]).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default();
                let status = match path {
                    "/robots.txt" => "404 Not Found",
                    _ => "200 OK",
                };
                let next = match shows.load(Ordering::SeqCst) {
                    true => "<a class=next href='?page=2'>next</a>",
                    false => "",
                };
                let body = match path {
                    "/list" => format!("<i>1</i><a class=item href=/d1>1</a>{next}"),
                    "/list?page=2" => "<i>1</i><a class=item href=/d1>1</a>".to_owned(),
                    _ => "<p>page</p>".to_owned(),
                };
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                drop(stream.write_all(answer.as_bytes()));
            }
        });
        Self { url, has_pager }
    }
}

fn lake_with(rules: &str) -> TestLake {
    let lake = new_lake();
    write(
        &lake,
        "source.toml",
        &format!("{SOURCE}stage.detail = {{}}\n{rules}"),
    );
    lake
}

fn crawl(lake: &TestLake, seeds: &str, (date, run): (&str, &str)) -> Run {
    write(lake, "seeds.txt", seeds);
    lake.run(&["crawl", "books", "--date", date, "--run", run])
}

/// Attacks CRL-2: rows of the stage that come from elsewhere do not stand for links.
#[test]
fn pages_that_lead_nowhere_are_red_whatever_else_the_date_has() {
    let shop = Shop::start();
    let page = "[[parse.page]]\nstage = \"page\"\n";
    let lake = lake_with(&format!("{page}{DETAIL}"));
    let url = &shop.url;
    // A detail page among the seeds.
    let detail = format!("{{\"url\": \"{url}/d9\", \"stage\": \"detail\"}}\n");
    let red = "1 pages were read and none has a link to the stage `detail`";
    crawl(&lake, &format!("{url}/a\n{detail}"), (DAY, "one"))
        .code(19)
        .prints(&[red]);
    // Another run of the date that found links.
    crawl(&lake, &format!("{url}/list\n"), (DAY, "two")).ok();
    crawl(&lake, &format!("{url}/b\n"), (DAY, "three"))
        .code(19)
        .prints(&[red]);
    // Links that are known already are links.
    crawl(
        &lake,
        &format!("{url}/list\n{{\"url\": \"{url}/d1\", \"stage\": \"detail\"}}\n"),
        (DAY, "four"),
    )
    .ok();
    // By `follow` of the stage alike.
    let lake = new_lake();
    let follow =
        "stage.page.follow = [{ stage = \"detail\", css = \"a.item\" }]\nstage.detail = {}\n";
    write(
        &lake,
        "source.toml",
        &SOURCE.replace("stage.page = {}\n", follow),
    );
    crawl(&lake, &format!("{url}/list\n{url}/a\n"), (DAY, "one")).ok();
    crawl(&lake, &format!("{url}/a\n{detail}"), (DAY, "two"))
        .code(19)
        .prints(&[red]);
}

/// Attacks CRL-2: a kind of pages before a plain one of its stage is counted for itself.
#[test]
fn each_kind_of_pages_is_judged_by_its_own_links() {
    let shop = Shop::start();
    let own = "[[parse.page]]\nname = \"listed\"\nstage = \"page\"\nurl_regex = \"/list$\"\n";
    let plain = "[[parse.page]]\nname = \"other\"\nstage = \"page\"\n";
    let lake = lake_with(&format!("{own}{DETAIL}{plain}{DETAIL}"));
    let url = &shop.url;
    crawl(&lake, &format!("{url}/list\n{url}/a\n"), (DAY, "one"))
        .code(19)
        .prints(&["1 pages were read and none has a link to the stage `detail`"]);
    // Where no page is of the plain kind, nothing is asked of it.
    crawl(&lake, &format!("{url}/list\n"), (DAY, "two")).ok();
}

/// Attacks CRL-2: a pager that is gone is red where the last good run had it, and never on a first day.
#[test]
fn a_pager_that_no_page_shows_any_more_is_red_once_it_was_there() {
    let shop = Shop::start();
    let page = "[[parse.page]]\nstage = \"page\"\n";
    let lake = lake_with(&format!("{page}{DETAIL}{PAGER}"));
    let seeds = format!("{}/list\n", shop.url);
    let pager = |is_there: bool| shop.has_pager.store(is_there, Ordering::SeqCst);
    // A list of one page is as good as any.
    pager(false);
    crawl(&lake, &seeds, ("2026-11-27", "day")).ok();
    pager(true);
    crawl(&lake, &seeds, ("2026-11-28", "day")).ok();
    pager(false);
    let lost = "1 pages of the stage `page` were read and none has a link to a further one, as 1 pages of the run `books 2026-11-28 day` had";
    crawl(&lake, &seeds, ("2026-11-29", "day"))
        .code(19)
        .prints(&[lost, "may_be_empty = true"]);
    // A run of another name is of other seeds; what is red is no measure, what a person accepted is.
    crawl(&lake, &seeds, ("2026-11-29", "other")).ok();
    crawl(&lake, &seeds, (DAY, "day")).code(19).prints(&[lost]);
    let accept = [
        "crawl", "close", "books", "--date", DAY, "--accept", "--note", "shrunk",
    ];
    lake.run(&accept).ok();
    crawl(&lake, &seeds, ("2026-12-01", "day")).ok();
}

#[test]
fn a_list_that_has_all_it_announces_needs_no_pager() {
    let shop = Shop::start();
    let page = "[[parse.page]]\nstage = \"page\"\n";
    let total = "total = { css = \"i::text\", clean = [\"int\"] }\n";
    let lake = lake_with(&format!("{page}{DETAIL}{total}{PAGER}"));
    let seeds = format!("{}/list\n", shop.url);
    crawl(&lake, &seeds, ("2026-11-29", "day")).ok();
    shop.has_pager.store(false, Ordering::SeqCst);
    crawl(&lake, &seeds, (DAY, "day")).ok();
    let told = lake.project().join("crawl/books/2026-11-30.day/run.json");
    assert!(fs::read_to_string(told).unwrap().contains("\"pass\": true"));
    // Without the announcement it would be red.
    let bare = lake_with(&format!("{page}{DETAIL}{PAGER}"));
    shop.has_pager.store(true, Ordering::SeqCst);
    crawl(&bare, &seeds, ("2026-11-29", "day")).ok();
    shop.has_pager.store(false, Ordering::SeqCst);
    crawl(&bare, &seeds, (DAY, "day")).code(19);
}
