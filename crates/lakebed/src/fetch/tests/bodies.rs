//! What is recorded of a response, and bodies that are cut, too long or oddly packed.

use std::io::Write;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::server::{Act, Server, fetch, fetcher, get, options, page, response};
use crate::fetch::{FailureClass, FetchOutcome, Fetched, NoHopCheck};
use crate::spec::{CharsetOrigin, Truncated};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn class(fetched: &Fetched) -> Option<FailureClass> {
    match &fetched.outcome {
        FetchOutcome::Failed(failure) => Some(failure.class),
        _ => None,
    }
}

#[tokio::test]
async fn a_capture_holds_what_went_over_the_wire() {
    let body = gzip("<p>中文</p>".as_bytes());
    let head = b"HTTP/1.1 200 Fine\r\nx-ODD:  \xff \r\nContent-Type: Text/HTML; Charset=UTF-8\r\nContent-Encoding: gzip\r\nX: 1\r\nx: 2\r\n";
    let wire = [
        &head[..],
        format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(),
        &body,
    ]
    .concat();
    let server = Server::pages(&[("/a%20b?q=1", &wire)]).await;
    let fetched = fetch(options(), &server.url("/a b?q=1#f")).await;
    assert_eq!(fetched.outcome, FetchOutcome::Answered);
    let capture = &fetched.captures[0];
    let record = &capture.record;
    assert_eq!(record.response_head.0, wire[..wire.len() - body.len()]);
    assert_eq!(record.request_head.0, server.received()[0].head.as_bytes());
    assert!(
        server.received()[0]
            .head
            .starts_with("GET /a%20b?q=1 HTTP/1.1\r\n")
    );
    assert_eq!(
        server.received()[0].header("user-agent"),
        options().user_agent
    );
    assert_eq!(record.url, server.url("/a%20b?q=1"));
    assert_eq!(
        (record.status, record.http_version.as_deref()),
        (Some(200), Some("HTTP/1.1"))
    );
    assert_eq!(record.remote_ip.as_deref(), Some("127.0.0.1"));
    assert_eq!(record.content_type.as_deref(), Some("text/html"));
    assert_eq!(record.removed_encodings, ["gzip"]);
    assert_eq!(capture.body, "<p>中文</p>");
    assert_eq!(record.body_len, 13);
    assert_eq!(record.wire_len, u64::try_from(body.len()).unwrap());
    let hash = format!("{:x}", Sha256::digest(&capture.body));
    assert_eq!(record.body_sha256.as_ref().unwrap().as_str(), hash);
    let charset = record.charset.as_ref().unwrap();
    assert_eq!(
        (charset.name.as_str(), charset.from),
        ("utf-8", CharsetOrigin::Http)
    );
    assert_eq!(charset.text(&capture.body), "<p>中文</p>");
    assert_eq!(record.error, None);
    assert!(record.truncated.is_none());
}

#[tokio::test]
async fn heads_are_those_of_their_own_request_on_one_connection() {
    let server = Server::start(|request| {
        let text = format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nx-target: {}\r\nContent-Length: 4\r\n\r\n\r\n\r\n", request.target());
        vec![Act::Send(text.into_bytes())]
    })
    .await;
    let fetcher = fetcher(options());
    for n in 0..20 {
        let path = format!("/{n}");
        let mut request = get(&server.url(&path));
        if n % 3 == 0 {
            request.method = http::Method::POST;
            request.body = Some(format!("{n}\r\n\r\nbody").into());
        }
        let fetched = fetcher.fetch(&request, &NoHopCheck).await;
        let record = &fetched.captures[0].record;
        let head = String::from_utf8(record.response_head.0.clone()).unwrap();
        assert_eq!(
            head,
            format!("HTTP/1.1 200 OK\r\nx-target: {path}\r\nContent-Length: 4\r\n\r\n")
        );
        assert_eq!(record.request_head.0, server.received()[n].head.as_bytes());
    }
    assert_eq!(server.connections(), 1, "the connection is kept");
}

#[tokio::test]
async fn a_cut_body_is_told_from_a_whole_one() {
    let short =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nhalf".to_vec();
    let chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n".to_vec();
    let until_close = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nwhole".to_vec();
    let server = Server::start(move |request| {
        let bytes = match request.target() {
            "/short" => &short,
            "/chunks" => &chunks,
            _ => &until_close,
        };
        vec![Act::Send(bytes.clone()), Act::Close]
    })
    .await;
    for path in ["/short", "/chunks"] {
        let fetched = fetch(options(), &server.url(path)).await;
        assert_eq!(class(&fetched), Some(FailureClass::Disconnect), "{path}");
        let capture = &fetched.captures[0];
        assert_eq!(capture.record.truncated, Truncated::Disconnect);
        assert_eq!(
            (&capture.body[..], capture.record.status),
            (&b"half"[..], Some(200))
        );
    }
    let fetched = fetch(options(), &server.url("/close")).await;
    assert_eq!(fetched.outcome, FetchOutcome::Answered);
    assert_eq!(fetched.captures[0].body, "whole");
}

#[tokio::test]
async fn sizes_are_capped_on_the_wire_and_unpacked() {
    let bomb = gzip(&vec![0_u8; 5 << 20]);
    let endless = Server::start(|request| match request.target() {
        "/declared" => vec![Act::Send(
            b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nabc".to_vec(),
        )],
        _ => {
            let mut acts = vec![Act::Send(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
            )];
            let chunk = [b"1000\r\n".to_vec(), vec![b'x'; 0x1000], b"\r\n".to_vec()].concat();
            acts.extend(std::iter::repeat_n(Act::Send(chunk), 100_000));
            acts
        }
    })
    .await;
    let mut small = options();
    small.limits.max_wire_bytes = 100_000;
    small.limits.max_body_bytes = 200_000;
    let server = Server::pages(&[
        ("/bomb", &response(200, "Content-Encoding: gzip\r\n", &bomb)),
        ("/plain", &response(200, "", &[7; 100_000])),
    ])
    .await;
    for (url, expected_len, expected_wire) in [
        (endless.url("/chunks"), 100_000, 100_000),
        (endless.url("/declared"), 0, 0),
        (server.url("/bomb"), 200_000, bomb.len()),
    ] {
        let fetched = fetch(small.clone(), &url).await;
        assert_eq!(class(&fetched), Some(FailureClass::BodyTooLarge), "{url}");
        let capture = &fetched.captures[0];
        assert_eq!(capture.record.truncated, Truncated::Length, "{url}");
        assert_eq!(
            (capture.body.len(), capture.record.wire_len),
            (expected_len, u64::try_from(expected_wire).unwrap()),
            "{url}"
        );
    }
    let fetched = fetch(small, &server.url("/plain")).await;
    assert_eq!(
        fetched.outcome,
        FetchOutcome::Answered,
        "just the limit is no failure"
    );
    let eleven =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n";
    let server = Server::pages(&[("/", eleven)]).await;
    for (max, expected) in [(11, None), (10, Some(FailureClass::BodyTooLarge))] {
        let mut tiny = options();
        tiny.limits.max_wire_bytes = max;
        assert_eq!(
            class(&fetch(tiny, &server.url("/")).await),
            expected,
            "{max}"
        );
    }
}

#[tokio::test]
async fn a_broken_encoding_keeps_what_came() {
    let server = Server::pages(&[
        (
            "/plain",
            &response(
                200,
                "Content-Type: text/html\r\nContent-Encoding: gzip\r\n",
                b"<p>no gzip",
            ),
        ),
        (
            "/cut",
            &response(
                200,
                "Content-Encoding: gzip\r\n",
                &gzip(&[b'a'; 9000])[..30],
            ),
        ),
        (
            "/unknown",
            &response(200, "Content-Encoding: compress\r\n", b"xyz"),
        ),
    ])
    .await;
    let plain = fetch(options(), &server.url("/plain")).await;
    assert_eq!(class(&plain), Some(FailureClass::Decode));
    assert_eq!(plain.captures[0].body, "<p>no gzip");
    assert!(plain.captures[0].record.removed_encodings.is_empty());
    assert_eq!(
        class(&fetch(options(), &server.url("/cut")).await),
        Some(FailureClass::Decode)
    );
    let unknown = fetch(options(), &server.url("/unknown")).await;
    assert_eq!(unknown.outcome, FetchOutcome::Answered);
    assert_eq!(unknown.captures[0].body, "xyz");
}

#[tokio::test]
async fn a_head_request_and_empty_answers_have_no_body() {
    let server = Server::start(|request| {
        let head = if request.head.starts_with("HEAD") {
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\nContent-Encoding: gzip\r\n\r\n"
        } else {
            "HTTP/1.1 204 No Content\r\nContent-Encoding: br\r\n\r\n"
        };
        vec![Act::Send(head.into())]
    })
    .await;
    let fetcher = fetcher(options());
    for method in [http::Method::HEAD, http::Method::GET] {
        let mut request = get(&server.url("/"));
        request.method = method.clone();
        let fetched = fetcher.fetch(&request, &NoHopCheck).await;
        assert_eq!(fetched.outcome, FetchOutcome::Answered, "{method}");
        assert_eq!(fetched.captures[0].record.body_len, 0);
        assert_eq!(fetched.captures[0].record.method, method.as_str());
    }
}

#[tokio::test]
async fn times_are_capped() {
    let slow = Server::start(|request| match request.target() {
        "/head" => vec![Act::Wait(Duration::from_secs(60))],
        _ => {
            let mut acts = vec![Act::Send(
                b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_vec(),
            )];
            for _ in 0..1000 {
                acts.push(Act::Send(b"x".to_vec()));
                acts.push(Act::Wait(Duration::from_millis(50)));
            }
            acts
        }
    })
    .await;
    let mut hasty = options();
    hasty.limits.first_byte = Duration::from_millis(300);
    hasty.limits.total = Duration::from_secs(1);
    let head = fetch(hasty.clone(), &slow.url("/head")).await;
    assert_eq!(class(&head), Some(FailureClass::TimeoutFirstByte));
    let record = &head.captures[0].record;
    assert!(
        record
            .error
            .as_ref()
            .unwrap()
            .starts_with("timeout_first_byte: ")
    );
    assert!(record.request_head.0.starts_with(b"GET /head HTTP/1.1\r\n"));
    assert_eq!((record.status, record.body_sha256.as_ref()), (None, None));
    let body = fetch(hasty.clone(), &slow.url("/body")).await;
    assert_eq!(class(&body), Some(FailureClass::TimeoutTotal));
    assert_eq!(body.captures[0].record.truncated, Truncated::Time);
    assert!(!body.captures[0].body.is_empty());
    hasty.limits.first_byte = Duration::from_secs(60);
    let total = fetch(hasty, &slow.url("/head")).await;
    assert_eq!(class(&total), Some(FailureClass::TimeoutTotal));
}

#[tokio::test]
async fn what_is_no_http_is_no_answer() {
    let long = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(600_000));
    let server = Server::start(move |request| {
        let bytes = match request.target() {
            "/ssh" => b"SSH-2.0-OpenSSH_9.9\r\n\r\n".to_vec(),
            "/long" => long.clone().into_bytes(),
            _ => Vec::new(),
        };
        vec![Act::Send(bytes), Act::Close]
    })
    .await;
    for (path, expected) in [
        ("/ssh", FailureClass::BadResponse),
        ("/long", FailureClass::BadResponse),
        ("/nothing", FailureClass::Disconnect),
    ] {
        let fetched = fetch(options(), &server.url(path)).await;
        assert_eq!(
            class(&fetched),
            Some(expected),
            "{path}: {:?}",
            fetched.outcome
        );
    }
}

#[tokio::test]
async fn old_encodings_are_recorded_and_read() {
    let (big5, _, _) = encoding_rs::BIG5.encode("<meta charset=big5>價格");
    let server = Server::pages(&[
        ("/", &response(200, "Content-Type: text/html\r\n", &big5)),
        ("/x", &page("x")),
    ])
    .await;
    let fetched = fetch(options(), &server.url("/")).await;
    let capture = &fetched.captures[0];
    let charset = capture.record.charset.as_ref().unwrap();
    assert_eq!(
        (charset.name.as_str(), charset.from),
        ("big5", CharsetOrigin::Meta)
    );
    assert!(charset.text(&capture.body).ends_with("價格"));
}
