//! `lakebed demo-site` as a process: its address, its log, its end. What it shows is tested beside its code.

#![allow(
    clippy::unwrap_used,
    reason = "what fails here fails the test that called it"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus};

use serde_json::Value;

use crate::lake::TestLake;

/// A running site; killed when a test ends early.
struct Site {
    child: Child,
    first_line: String,
}

impl Site {
    fn start(lake: &TestLake, args: &[&str]) -> Self {
        let mut all = vec!["demo-site", "--port", "0", "--listings", "100"];
        all.extend(args);
        let mut child = lake.call(&all).command().spawn().unwrap();
        let mut first_line = String::new();
        let stdout = child.stdout.as_mut().unwrap();
        BufReader::new(stdout).read_line(&mut first_line).unwrap();
        Self {
            child,
            first_line: first_line.trim().to_owned(),
        }
    }

    fn get(&self, port: u16, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: a.localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn signal(mut self, name: &str) -> ExitStatus {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success());
        self.child.wait().unwrap()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // After `signal` it has ended, and nothing is left to kill.
        if self.child.kill().is_ok() {
            self.child.wait().unwrap();
        }
    }
}

#[test]
fn a_site_tells_its_address_serves_logs_and_ends() {
    let lake = TestLake::without_project();
    let log = lake.path_text("site.jsonl");
    let site = Site::start(
        &lake,
        &["--format", "json", "--log", &log, "--fault", "forbid@api"],
    );
    let told: Value = serde_json::from_str(&site.first_line).unwrap();
    assert_eq!(told["format"], 1);
    assert_eq!(told["date"], "2026-11-30");
    let port = u16::try_from(told["port"].as_u64().unwrap()).unwrap();
    assert_eq!(told["url"], format!("http://127.0.0.1:{port}/"));
    assert!(
        site.get(port, "/zh/list")
            .starts_with("HTTP/1.1 200 OK\r\n")
    );
    assert!(
        site.get(port, "/api/list")
            .starts_with("HTTP/1.1 403 Forbidden\r\n")
    );
    assert_eq!(site.signal("-TERM").code(), Some(0));
    let lines = fs::read_to_string(&log).unwrap();
    let statuses: Vec<u64> = lines
        .lines()
        .map(|l| {
            serde_json::from_str::<Value>(l).unwrap()["status"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert_eq!(statuses, [200, 403]);
}

#[test]
fn an_interrupt_ends_a_site_that_hangs() {
    let lake = TestLake::without_project();
    let site = Site::start(&lake, &["--fault", "hang"]);
    let address = site.first_line.strip_prefix("http://").unwrap();
    let mut hanging = TcpStream::connect(address.trim_end_matches('/')).unwrap();
    hanging
        .write_all(b"GET /zh/ HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    assert_eq!(site.signal("-INT").code(), Some(0));
    let mut rest = Vec::new();
    // Cut off: an end or a reset, and no byte before it.
    if hanging.read_to_end(&mut rest).is_ok() {
        assert!(rest.is_empty());
    }
}

#[test]
fn what_cannot_be_served_is_refused_by_name() {
    let lake = TestLake::without_project();
    let refused = |args: &[&str], code: i32, says: &str| {
        let mut all = vec!["demo-site", "--port", "0"];
        all.extend(args);
        lake.run(&all).code(code).says(&[says]);
    };
    refused(&["--fault", "nonsense"], 2, "`nonsense`");
    refused(&["--fault", "slow:soon"], 2, "`soon`");
    refused(&["--date", "2026-02-30"], 2, "`2026-02-30`");
    refused(&["--listings", "5"], 2, "20 to 1000000");
    refused(&["--per-page", "0"], 2, "1 to 1000");
    refused(
        &["--log", "/nowhere/at/all.jsonl"],
        2,
        "/nowhere/at/all.jsonl",
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    lake.run(&["demo-site", "--port", &port])
        .code(4)
        .says(&[&port]);
}
