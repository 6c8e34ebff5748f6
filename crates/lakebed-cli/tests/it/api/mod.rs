//! `lakebed serve --api` over real sockets: a crawl of somebody else, its mistakes, and what it cannot do.
//!
//! Every answer is held against docs/openapi.json.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails the test that called it"
)]

mod client;

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use client::{Api, RUN, exchange, fetch, read_answer, response};

/// Claims all, fetches, finishes with what came; the captures.
fn work_off(api: &Api, worker: &str) -> Vec<String> {
    let mut done = Vec::new();
    loop {
        let call = json!({"worker": worker, "limit": 10});
        let answer = api.must("POST", &format!("{RUN}/claims"), &call);
        match answer["outcome"].as_str().unwrap() {
            "drained" => return done,
            "wait" => {
                let wait = answer["wait_ms"].as_u64().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(wait));
            }
            "claimed" => {}
            other => panic!("{other}"),
        }
        for claim in answer["claims"].as_array().unwrap() {
            let url = claim["url"].as_str().unwrap();
            let (status, headers, body) = fetch(url);
            let end = if status == 200 || status == 410 {
                "done"
            } else {
                "failed"
            };
            let call = json!({
                "worker": worker, "attempt": claim["attempt"], "end": end,
                "responses": [{"url": url, "status": status, "headers": headers, "body_bytes": body.len(), "age_ms": 5}],
            });
            let told = api.finish(&claim["request"], &call, &body);
            assert_eq!(told.status, 200, "{}", told.json());
            done.push(
                told.json()["capture"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned(),
            );
        }
    }
}

#[test]
fn a_crawl_of_somebody_else_goes_its_whole_way() {
    let api = Api::new(&[]);
    let list = api.url("/zh/list");
    api.seed(std::slice::from_ref(&list), "list");
    let worker = api.join();
    let captures = work_off(&api, &worker);
    assert!(captures.len() > 20, "{captures:?}");
    let status = api.must("GET", RUN, &Value::Null);
    assert_eq!(
        (status["state"].as_str(), status["left"].as_u64()),
        (Some("open"), Some(0))
    );
    let left = api.must("DELETE", &format!("{RUN}/workers/{worker}"), &Value::Null);
    assert_eq!(left["given_back"], 0);
    let closed = api.close();
    assert_eq!(
        (closed["pass"].as_bool(), closed["exit_code"].as_u64()),
        (Some(true), Some(0)),
        "{closed}"
    );
    let requests = closed["books"]["states"]["done"].as_u64().unwrap();
    assert_eq!(closed["pack"]["captures"], requests);
    assert_eq!(closed["pack"]["unnamed"], 0);

    // The bytes of the pack are those that were fetched.
    let (_, _, page) = fetch(&list);
    let pack = api
        .lake
        .lake()
        .join(closed["pack"]["pack"].as_str().unwrap());
    let pack = pack.to_str().unwrap();
    let cat = api.lake.run(&["pack", "cat", pack, &captures[0]]).ok();
    assert_eq!(cat.stdout.as_bytes(), page);
    api.lake.run(&["pack", "verify", pack]).ok();
    api.lake
        .run(&["crawl", "close", "rentals", "--date", "2026-11-30"])
        .ok();
    api.lake.assert_clean();

    // A closed run answers as it did, and what is told of it lies beside its parts.
    let again = api.close();
    assert_eq!(again, closed);
    let file = api.lake.project();
    let file = file.join("crawl/rentals/2026-11-30.day/run.json");
    let bytes = std::fs::read(&file).unwrap();
    let told: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        (told["format"].as_str(), &told["pass"]),
        (Some("run/1"), &closed["pass"])
    );
    assert_eq!(
        (&told["states"], &told["pack"]),
        (&closed["books"]["states"], &closed["pack"])
    );
    assert_eq!(told["stages"].as_array().unwrap().len(), 2);
    std::fs::remove_file(&file).unwrap();
    api.lake
        .run(&["crawl", "close", "rentals", "--date", "2026-11-30"])
        .ok();
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
    std::fs::write(&file, "{").unwrap();
    api.lake
        .run(&["crawl", "close", "rentals", "--date", "2026-11-30"])
        .code(4)
        .says(&["run.json", "delete the file"]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(api.close(), closed);
    let late = api.join();
    assert!(api.claim(&late, 1).is_empty());
}

/// Attacks API-2.
#[test]
fn a_finish_told_again_is_answered_as_the_first_time() {
    let mut api = Api::new(&[]);
    let urls = ["/a", "/b", "/c"].map(|p| api.url(p));
    api.seed(&urls, "detail");
    let worker = api.join();
    let claims = api.claim(&worker, 3);
    let of = |i: usize| {
        (
            claims[i]["request"].clone(),
            claims[i]["url"].as_str().unwrap().to_owned(),
        )
    };
    let (request, url) = of(0);
    let body = "<p>湖畔公寓</p>".as_bytes();
    let call = json!({
        "worker": worker, "attempt": 1, "end": "done", "responses": [response(&url, 200, body)],
        "follow": [{"url": "/d", "stage": "detail"}, {"url": "/a", "stage": "detail"}, {"url": "http://b.test/", "stage": "list"},
                   {"url": "mailto:x@y", "stage": "list"}],
        "announced": 6,
    });
    let first = api.finish(&request, &call, body).json();
    assert_eq!(first["state"], "done");
    let told = json!({"announced": 6, "inserted": 1, "duplicate": 1, "out_of_scope": 4});
    assert_eq!(first["follow_ups"], told);
    assert_eq!(api.finish(&request, &call, body).json(), first);
    let mut other = call.clone();
    other["announced"] = json!(7);
    api.finish(&request, &other, body)
        .refused(409, "finished_otherwise");

    let (failing, url) = of(1);
    let call_failed = json!({"worker": worker, "attempt": 1, "end": "failed", "responses": [response(&url, 503, b"")]});
    let failed = api.finish(&failing, &call_failed, b"").json();
    assert_eq!(
        (failed["state"].as_str(), failed["class"].as_str()),
        (Some("failed"), Some("http_503"))
    );
    assert_eq!(api.finish(&failing, &call_failed, b"").json(), failed);

    // Two at once, and one after the process was started again.
    let (third, url) = of(2);
    let twice = json!({"worker": worker, "attempt": 1, "end": "done", "responses": [response(&url, 200, body)], "follow": []});
    let answers = std::thread::scope(|scope| {
        let both = [0, 1].map(|_| scope.spawn(|| api.finish(&third, &twice, body).json()));
        both.map(|thread| thread.join().unwrap())
    });
    assert_eq!(
        (&answers[0], answers[0]["state"].as_str()),
        (&answers[1], Some("done"))
    );
    let (exit, _) = api.server.take().unwrap().end();
    assert_eq!(exit.code(), Some(0));
    api.start();
    assert_eq!(api.finish(&request, &call, body).json(), first);

    // Another worker has no part in it, nor has another attempt.
    let stranger = api.join();
    let mut foreign = call.clone();
    foreign["worker"] = json!(stranger);
    api.finish(&request, &foreign, body)
        .refused(409, "fence_lost");
    let mut old = call.clone();
    old["attempt"] = json!(7);
    api.finish(&request, &old, body).refused(409, "fence_lost");

    for claim in std::iter::repeat_with(|| api.claim(&stranger, 5))
        .take(20)
        .flatten()
    {
        let url = claim["url"].as_str().unwrap();
        let call = json!({"worker": stranger, "attempt": claim["attempt"], "end": "done", "responses": [response(url, 200, body)], "follow": []});
        assert_eq!(api.finish(&claim["request"], &call, body).status, 200);
    }
    let closed = api.close();
    assert_eq!(closed["pass"], true, "{closed}");
    // Four requests, and the one attempt that failed: nothing lies there twice.
    assert_eq!(
        (
            closed["pack"]["captures"].as_u64(),
            closed["pack"]["unnamed"].as_u64()
        ),
        (Some(5), Some(1))
    );
}

/// Attacks API-1.
#[test]
fn a_success_without_bytes_is_refused() {
    let api = Api::new(&[]);
    let url = api.url("/a");
    api.seed(std::slice::from_ref(&url), "detail");
    let worker = api.join();
    let claim = &api.claim(&worker, 1)[0];
    let ends = |extra: Value| {
        let mut call = json!({"worker": worker, "attempt": 1, "end": "done"});
        call.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        call
    };
    let with = |key: &str, value: Value| {
        let mut one = response(&url, 200, b"abc");
        one[key] = value;
        ends(json!({"responses": [one]}))
    };
    let none = ends(json!({"responses": [response(&url, 200, b"")]}));
    for (call, bytes, status, code, path) in [
        (ends(json!({})), &b""[..], 422, "no_response", None),
        (
            ends(json!({"responses": [{"url": url, "error": "timeout"}]})),
            b"",
            422,
            "no_response",
            None,
        ),
        (none, b"", 422, "no_bytes", None),
        (
            with("status", json!(403)),
            b"abc",
            422,
            "not_an_answer",
            None,
        ),
        (
            with("status", json!(302)),
            b"abc",
            422,
            "not_an_answer",
            None,
        ),
        (
            with("truncated", json!("disconnect")),
            b"abc",
            422,
            "truncated",
            None,
        ),
        (
            with("url", json!(api.url("/b"))),
            b"abc",
            422,
            "invalid",
            Some("responses[0].url"),
        ),
        (
            with("status", json!(99)),
            b"abc",
            422,
            "invalid",
            Some("responses[0].status"),
        ),
        (
            with("headers", json!([["a\r\nb", "c"]])),
            b"abc",
            422,
            "invalid",
            Some("responses[0].headers"),
        ),
        (
            with("headers", json!([["a", "c\r\nSet-Cookie: x"]])),
            b"abc",
            422,
            "invalid",
            Some("responses[0].headers"),
        ),
        (
            with("headers", json!([["Content-Encoding", "gzip"]])),
            b"abc",
            422,
            "invalid",
            Some("responses[0].removed_encodings"),
        ),
        (
            with("http_version", json!("HTTP/9")),
            b"abc",
            422,
            "invalid",
            Some("responses[0].http_version"),
        ),
        (
            with("remote_ip", json!("nowhere")),
            b"abc",
            422,
            "invalid",
            Some("responses[0].remote_ip"),
        ),
        (with("body_bytes", json!(4)), b"abc", 400, "bad_frame", None),
        (
            with("body_bytes", json!(u64::MAX)),
            b"abc",
            400,
            "bad_frame",
            None,
        ),
        (
            with("body_byte", json!(3)),
            b"abc",
            400,
            "bad_json",
            Some("responses[0].body_byte"),
        ),
        (
            with("headers", json!([["a", 5]])),
            b"abc",
            400,
            "bad_json",
            Some("responses[0].headers[0][1]"),
        ),
        (
            ends(json!({"end": "given_back", "responses": [response(&url, 200, b"abc")]})),
            b"abc",
            422,
            "invalid",
            Some("responses"),
        ),
        (
            ends(json!({"class": "captcha", "responses": [response(&url, 200, b"abc")]})),
            b"abc",
            422,
            "invalid",
            Some("class"),
        ),
        (
            ends(json!({"end": "failed"})),
            b"",
            422,
            "invalid",
            Some("class"),
        ),
        (
            ends(
                json!({"follow": [{"url": "/x", "stage": "lost"}], "responses": [response(&url, 200, b"abc")]}),
            ),
            b"abc",
            422,
            "invalid",
            Some("follow[0]"),
        ),
    ] {
        let error = api
            .finish(&claim["request"], &call, bytes)
            .refused(status, code);
        assert_eq!(error["context"]["path"].as_str(), path, "{error}");
    }
    // The claim went on all the while; a body of no bytes is an answer where the server sent it so.
    let mut empty = response(&url, 200, b"");
    empty["empty"] = json!(true);
    let answer = api.finish(
        &claim["request"],
        &ends(json!({"responses": [empty], "follow": []})),
        b"",
    );
    assert_eq!(answer.json()["state"], "done");
    assert_eq!(api.close()["pack"]["captures"], 1);
}

/// Attacks API-3.
#[test]
fn what_robots_forbid_is_not_handed_out() {
    let api = Api::new(&["--fault", "robots:deny"]);
    api.seed(&[api.url("/zh/list")], "list");
    let worker = api.join();
    assert!(api.claim(&worker, 5).is_empty());
    let turn = api.must(
        "POST",
        &format!("{RUN}/turns"),
        &json!({"url": api.url("/zh/list")}),
    );
    assert_eq!(
        (turn["verdict"].as_str(), turn["class"].as_str()),
        (Some("never"), Some("robots"))
    );
    let closed = api.close();
    assert_eq!(
        (
            closed["exit_code"].as_u64(),
            &closed["books"]["dead_classes"]["robots"]
        ),
        (Some(14), &json!(1))
    );

    let mut api = Api::new(&[]);
    let local = "[crawl.usual]\npause_ms = 600\nplaces = 50\n";
    std::fs::write(api.lake.project().join("lakebed.local.toml"), local).unwrap();
    drop(api.server.take());
    api.start();
    api.seed(&["/a", "/b", "/c"].map(|p| api.url(p)), "detail");
    let worker = api.join();
    let waits: Vec<u64> = api
        .claim(&worker, 3)
        .iter()
        .map(|c| c["wait_ms"].as_u64().unwrap())
        .collect();
    assert!(waits.len() == 3 && waits[0] >= 300, "{waits:?}");
    assert!(
        waits[1] >= waits[0] + 600 || waits[2] >= waits[1] + 600,
        "{waits:?}"
    );
    let turn = api.must(
        "POST",
        &format!("{RUN}/turns"),
        &json!({"url": api.url("/d")}),
    );
    assert!(
        turn["verdict"] == "go" && turn["wait_ms"].as_u64().unwrap() > 600,
        "{turn}"
    );
}

/// Attacks API-4.
#[test]
fn nothing_is_answered_without_the_token() {
    let mut api = Api::new(&[]);
    let token = api.token.clone();
    let ask = |authorization: &str| {
        let request =
            format!("GET {RUN} HTTP/1.1\r\nHost: a\r\n{authorization}Connection: close\r\n\r\n");
        exchange(api.port(), request.as_bytes())
    };
    for wrong in [
        "",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer 0000000000000000000000000000\r\n",
        "Authorization: Basic eDp5\r\n",
    ] {
        let answer = ask(wrong);
        answer.refused(401, "unauthorized");
        assert!(
            answer
                .head
                .to_lowercase()
                .contains("www-authenticate: bearer"),
            "{}",
            answer.head
        );
    }
    ask(&format!("Authorization: Bearer {token}\r\n")).refused(404, "not_found");
    let body = vec![b'x'; 300_000];
    let head = format!(
        "POST {RUN}/claims HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    exchange(api.port(), &[head.as_bytes(), &body].concat()).refused(401, "unauthorized");
    let (exit, log) = api.server.take().unwrap().end();
    assert_eq!(exit.code(), Some(0));
    assert!(log.contains("401") && !log.contains(&token), "{log}");

    // The file is its owner's alone, or nothing is served.
    use std::os::unix::fs::PermissionsExt;
    let file = api.lake.project().join("crawl/api.token");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let serve = ["serve", "--api", "--listen", "127.0.0.1:0"];
    api.lake.run(&serve).code(1).says(&["chmod 600"]);
    api.lake
        .call(&serve)
        .env("LAKEBED_API_TOKEN", "short")
        .run()
        .code(2)
        .says(&["at least 20"]);
    api.lake.run(&["serve"]).code(2).says(&["serve --api"]);
}

/// Attacks API-5.
#[test]
fn what_a_call_can_take_is_bounded() {
    let api = Api::new(&[]);
    api.seed(&[api.url("/a")], "detail");
    let claims = format!("{RUN}/claims");
    api.send("POST", &claims, "application/json", &vec![b' '; 17 << 20])
        .refused(413, "too_large");
    let worker = api.join();
    let claim = &api.claim(&worker, 1)[0];
    let big = vec![b'x'; (1 << 20) + 1];
    let call = json!({"worker": worker, "attempt": 1, "end": "done", "responses": [response(&api.url("/a"), 200, &big)]});
    let error = api
        .finish(&claim["request"], &call, &big)
        .refused(413, "too_large");
    assert_eq!(error["context"]["path"], "responses[0].body_bytes");

    // A head that is too long is refused by the server itself, which then hangs up: the answer may be lost.
    let head = format!(
        "GET {RUN} HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "y".repeat(300_000)
    );
    let refused = std::panic::catch_unwind(|| exchange(api.port(), head.as_bytes()).status);
    assert!(refused.is_err() || refused.is_ok_and(|s| s == 431));

    // A body that breaks off is no call.
    let head = format!(
        "POST {claims} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        api.token
    );
    let mut stream = TcpStream::connect(("127.0.0.1", api.port())).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let broken = std::panic::catch_unwind(|| read_answer(stream).status);
    assert!(broken.is_err() || broken.is_ok_and(|s| s == 400));

    for (method, path, media, body, status, code) in [
        ("GET", "/v2/", "application/json", "", 404, "no_route"),
        (
            "PATCH",
            RUN,
            "application/json",
            "",
            405,
            "method_not_allowed",
        ),
        (
            "POST",
            claims.as_str(),
            "text/plain",
            "{}",
            415,
            "wrong_type",
        ),
        (
            "POST",
            claims.as_str(),
            "application/json",
            "",
            400,
            "bad_json",
        ),
        (
            "POST",
            claims.as_str(),
            "application/json",
            "{\"worker\": \"x\", \"limit\": 5, \"limits\": 5}",
            400,
            "bad_json",
        ),
        (
            "POST",
            claims.as_str(),
            "application/json",
            "[",
            400,
            "bad_json",
        ),
        (
            "POST",
            claims.as_str(),
            "application/json",
            "{\"worker\": \"x\", \"limit\": 0}",
            422,
            "invalid",
        ),
        (
            "POST",
            claims.as_str(),
            "application/json",
            "{\"worker\": \"\u{1b}[31m\", \"limit\": 1}",
            400,
            "bad_json",
        ),
        (
            "POST",
            claims.as_str(),
            "application/json",
            "{\"worker\": \"x\", \"limit\": 1}",
            404,
            "not_found",
        ),
        (
            "GET",
            "/v1/runs/rentals/2026-02-30/day",
            "application/json",
            "",
            422,
            "invalid",
        ),
        (
            "GET",
            "/v1/runs/nobody/2026-11-30/day",
            "application/json",
            "",
            404,
            "not_found",
        ),
        (
            "GET",
            "/v1/runs/rentals/2026-11-30/other",
            "application/json",
            "",
            404,
            "not_found",
        ),
        (
            "POST",
            "/v1/runs/rentals/2026-11-30/day/requests/x/finish",
            "application/json",
            "{\"worker\": \"x\", \"attempt\": 1, \"end\": \"done\"}",
            404,
            "not_found",
        ),
    ] {
        api.send(method, path, media, body.as_bytes())
            .refused(status, code);
    }
    let document = api.send("GET", "/v1/openapi.json", "", b"").json();
    assert_eq!(document["openapi"], "3.1.0");
}

#[test]
fn a_seeding_is_exact_however_it_is_repeated() {
    let api = Api::new(&[]);
    let (seeds, open) = (format!("{RUN}/seeds"), format!("{RUN}/open"));
    let made = api.must("PUT", RUN, &Value::Null);
    assert_eq!(made, api.must("PUT", RUN, &Value::Null));
    let batch = |name: &str, n: u32, paths: &[&str]| {
        let list: Vec<Value> = paths.iter().map(|p| json!({"url": api.url(p)})).collect();
        json!({"seeding": name, "batch": n, "seeds": list})
    };
    api.call("POST", &seeds, &batch("a", 1, &["/1"]))
        .refused(409, "seeding_unknown");
    let counts = |announced, inserted, duplicate, out_of_scope| json!({"announced": announced, "inserted": inserted, "duplicate": duplicate, "out_of_scope": out_of_scope});
    for _ in 0..2 {
        let added = api.must("POST", &seeds, &batch("a", 0, &["/1", "/2", "/1"]));
        assert_eq!(added["counts"], counts(3, 2, 1, 0));
    }
    api.call("POST", &seeds, &batch("a", 0, &["/3"]))
        .refused(409, "batch_differs");
    let error = api
        .call("POST", &seeds, &batch("a", 2, &["/3"]))
        .refused(409, "batch_missing");
    assert_eq!(error["context"]["next_batch"], "1");
    api.call("POST", &seeds, &batch("b", 0, &["/1"]))
        .refused(409, "seeding_busy");
    let wrong =
        json!({"seeding": "a", "batch": 1, "seeds": [{"url": api.url("/4")}, {"url": "ftp://x"}]});
    let error = api.call("POST", &seeds, &wrong).refused(422, "invalid");
    assert_eq!(error["context"]["path"], "seeds[1]");
    let outside = json!({"seeding": "a", "batch": 1, "seeds": [{"url": api.url("/4")}, {"url": "http://elsewhere.test/"}]});
    assert_eq!(
        api.must("POST", &seeds, &outside)["counts"],
        counts(2, 1, 0, 1)
    );
    let worker = api.join();
    let claim = json!({"worker": worker, "limit": 1});
    api.call("POST", &format!("{RUN}/claims"), &claim)
        .refused(409, "wrong_state");
    api.call("POST", &open, &json!({"seeding": "a", "announced": 6}))
        .refused(409, "seeds_lost");
    for _ in 0..2 {
        let run = api.must("POST", &open, &json!({"seeding": "a", "announced": 5}));
        assert_eq!(
            (run["state"].as_str(), &run["seeds"]),
            (Some("open"), &counts(5, 3, 1, 1))
        );
    }
    api.call("POST", &open, &json!({"seeding": "b", "announced": 5}))
        .refused(409, "already_open");
    api.call("POST", &seeds, &batch("c", 0, &["/1"]))
        .refused(409, "wrong_state");

    let more = json!({"requests": [{"url": api.url("/9")}, {"url": api.url("/1")}]});
    let requests = format!("{RUN}/requests");
    assert_eq!(
        api.must("POST", &requests, &more)["counts"],
        counts(2, 1, 1, 0)
    );
    assert_eq!(
        api.must("POST", &requests, &more)["counts"],
        counts(2, 0, 2, 0)
    );

    // A claim whose answer was lost is asked for again by its name.
    let named = json!({"worker": worker, "limit": 2, "call": "one"});
    let first = api.must("POST", &format!("{RUN}/claims"), &named);
    assert_eq!(first["claims"].as_array().unwrap().len(), 2);
    assert_eq!(api.must("POST", &format!("{RUN}/claims"), &named), first);
    assert_eq!(
        api.must(
            "POST",
            &format!("{RUN}/workers/{worker}/heartbeat"),
            &Value::Null
        )["alive"],
        true
    );
    let left = api.must("DELETE", &format!("{RUN}/workers/{worker}"), &Value::Null);
    assert_eq!(left["given_back"], 2);
    api.call(
        "POST",
        &format!("{RUN}/workers/{worker}/heartbeat"),
        &Value::Null,
    )
    .refused(409, "worker_lost");
    let stopped = api.must(
        "POST",
        &format!("{RUN}/stop"),
        &json!({"reason": "網站改版"}),
    );
    assert_eq!(stopped["stopped"], "網站改版");
    let answer = api.must(
        "POST",
        &format!("{RUN}/claims"),
        &json!({"worker": api.join(), "limit": 1}),
    );
    assert_eq!(
        (answer["outcome"].as_str(), answer["reason"].as_str()),
        (Some("stopped"), Some("網站改版"))
    );
    assert_eq!(
        api.must("POST", &format!("{RUN}/resume"), &Value::Null)["stopped"],
        Value::Null
    );
    assert_eq!(
        api.must("POST", &format!("{RUN}/seal"), &Value::Null)["state"],
        "sealed"
    );
    let closed = api.close();
    assert_eq!(
        (closed["exit_code"].as_u64(), closed["state"].as_str()),
        (Some(11), Some("sealed"))
    );
}
