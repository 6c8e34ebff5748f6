//! What may be reached, what goes along to another origin, and `robots.txt` of an origin.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::HeaderValue;

use super::server::{Act, Server, fetch, fetcher, get, options, page, redirect, response};
use crate::fetch::{
    FailureClass, FetchOptions, FetchOutcome, Fetched, Fetcher, NoHopCheck, RobotsRules,
    RobotsVerdict,
};
use crate::spec::{CanonicalUrl, RobotsContent};
use crate::time::Clock;

fn class(fetched: &Fetched) -> Option<FailureClass> {
    match &fetched.outcome {
        FetchOutcome::Failed(failure) => Some(failure.class),
        _ => None,
    }
}

#[tokio::test]
async fn this_machine_is_not_reached_by_any_spelling() {
    let server = Server::pages(&[("/", &page("secret"))]).await;
    let port = server.address.port();
    let mut strict = FetchOptions::new("lakebed-test").unwrap();
    strict.fixed_hosts.insert(
        "rebound.example".to_owned(),
        vec!["127.0.0.1".parse().unwrap()],
    );
    strict.fixed_hosts.insert(
        "mapped.example".to_owned(),
        vec!["::ffff:127.0.0.1".parse().unwrap()],
    );
    let fetcher = Fetcher::new(strict, Arc::new(Clock::System)).unwrap();
    for host in [
        "127.0.0.1",
        "localhost",
        "LOCALHOST.",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0.0.0.0",
        "0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "rebound.example",
        "mapped.example",
        "127\u{3002}0.0.1",
        "\u{2460}27.0.0.1",
    ] {
        let Ok(url) = format!("http://{host}:{port}/").parse::<CanonicalUrl>() else {
            panic!("{host}");
        };
        let fetched = fetcher.fetch(&get(url.as_str()), &NoHopCheck).await;
        assert_eq!(
            class(&fetched),
            Some(FailureClass::PrivateAddress),
            "{host}: {:?}",
            fetched.outcome
        );
        assert!(fetched.captures[0].record.error.is_some());
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_redirect_does_not_lead_inside() {
    let inside = Server::pages(&[("/", &page("secret"))]).await;
    let to = format!("http://2130706433:{}/", inside.address.port());
    let outside = Server::pages(&[("/", &redirect(302, &to))]).await;
    let mut strict = FetchOptions::new("lakebed-test").unwrap();
    strict.fixed_hosts.insert(
        "outside.example".to_owned(),
        vec!["127.0.0.1".parse().unwrap()],
    );
    strict.addresses.allowed_hosts = vec!["outside.example".to_owned()];
    let url = format!("http://outside.example:{}/", outside.address.port());
    let fetched = fetch(strict, &url).await;
    assert_eq!(class(&fetched), Some(FailureClass::PrivateAddress));
    assert_eq!(fetched.captures.len(), 2);
    assert_eq!((outside.connections(), inside.connections()), (1, 0));
}

#[tokio::test]
async fn a_host_with_both_kinds_of_address_is_reached_by_the_allowed_one() {
    let server = Server::pages(&[("/", &page("x"))]).await;
    let mut some = options();
    some.fixed_hosts.insert(
        "both.example".to_owned(),
        vec!["10.0.0.1".parse().unwrap(), "127.0.0.1".parse().unwrap()],
    );
    let url = format!("http://both.example:{}/", server.address.port());
    let fetched = fetch(some, &url).await;
    assert_eq!(fetched.outcome, FetchOutcome::Answered);
    assert_eq!(
        fetched.captures[0].record.remote_ip.as_deref(),
        Some("127.0.0.1")
    );
    assert_eq!(
        server.received()[0].header("host"),
        format!("both.example:{}", server.address.port())
    );
}

#[tokio::test]
async fn credentials_stay_with_their_origin() {
    let other = Server::start(|_| vec![Act::Send(page("other"))]).await;
    let to = other.url("/end");
    let own = Server::start(move |request| {
        let bytes = match request.target() {
            "/away" => redirect(307, &to),
            "/same" => redirect(302, "/end"),
            _ => page("own"),
        };
        vec![Act::Send(bytes)]
    })
    .await;
    let mut with_key = options();
    with_key.secret_headers = vec!["x-api-key".parse().unwrap()];
    let origin = own.url("");
    with_key.origin_headers.insert(
        origin,
        vec![("x-api-key".parse().unwrap(), HeaderValue::from_static("k"))],
    );
    with_key.headers = vec![(
        "accept-language".parse().unwrap(),
        HeaderValue::from_static("zh-TW"),
    )];
    let fetcher = fetcher(with_key);
    for path in ["/same", "/away"] {
        let mut request = get(&own.url(path));
        request.headers = vec![
            ("Authorization".to_owned(), "Bearer t".to_owned()),
            ("Cookie".to_owned(), "s=1".to_owned()),
            ("X-Plain".to_owned(), "p".to_owned()),
            ("Accept".to_owned(), "text/html".to_owned()),
        ];
        let fetched = fetcher.fetch(&request, &NoHopCheck).await;
        assert_eq!(fetched.outcome, FetchOutcome::Answered);
        for capture in &fetched.captures {
            let head = String::from_utf8(capture.record.request_head.0.clone()).unwrap();
            for secret in ["Bearer", "s=1", "X-Api-Key: k"] {
                assert!(!head.contains(secret), "{head}");
            }
            assert!(
                head.contains("Accept: text/html\r\n") && !head.contains("*/*"),
                "{head}"
            );
        }
    }
    for sent in own.received() {
        assert_eq!(sent.header("authorization"), "Bearer t");
        assert_eq!(
            (sent.header("x-api-key"), sent.header("cookie")),
            ("k".to_owned(), "s=1".to_owned())
        );
    }
    let away = &other.received()[0];
    for secret in ["authorization", "cookie", "x-api-key"] {
        assert_eq!(away.header(secret), "", "{secret}");
    }
    assert_eq!(
        (away.header("x-plain"), away.header("accept-language")),
        ("p".to_owned(), "zh-TW".to_owned())
    );
}

async fn robots_of(server: &Server) -> (RobotsContent, i64) {
    let now = "2026-11-30T12:00:00Z".parse().unwrap();
    let fetcher = Fetcher::new(options(), Arc::new(Clock::manual(now))).unwrap();
    let state = fetcher
        .read_robots(&server.url("/deep/page?q").parse().unwrap(), None)
        .await;
    assert_eq!(state.fetched_at, now);
    (
        state.content,
        (state.expires_at.micros() - now.micros()) / 1_000_000,
    )
}

#[tokio::test]
async fn robots_are_read_as_the_status_says() {
    let unreachable = |class: &str| RobotsContent::Unreachable {
        class: class.to_owned(),
    };
    for (status, headers, expected, seconds) in [
        (
            200,
            "",
            RobotsContent::Text {
                text: "User-agent: *".to_owned(),
            },
            86_400,
        ),
        (404, "", RobotsContent::Absent, 86_400),
        (403, "", RobotsContent::Absent, 86_400),
        (429, "", unreachable("http_429"), 60),
        (429, "Retry-After: 1800\r\n", unreachable("http_429"), 1800),
        (500, "", unreachable("http_500"), 60),
        (503, "Retry-After: 5\r\n", unreachable("http_503"), 60),
        (304, "", unreachable("http_304"), 60),
    ] {
        let server =
            Server::start(move |_| vec![Act::Send(response(status, headers, b"User-agent: *"))])
                .await;
        assert_eq!(
            robots_of(&server).await,
            (expected, seconds),
            "{status} {headers}"
        );
        assert_eq!(server.targets(), ["/robots.txt"]);
    }
    let silent = Server::start(|_| vec![Act::Close]).await;
    assert_eq!(robots_of(&silent).await.0, unreachable("disconnect"));
    let cut = Server::start(|_| {
        vec![
            Act::Send(
                b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUser-agent: *\nAllow".to_vec(),
            ),
            Act::Close,
        ]
    })
    .await;
    assert_eq!(robots_of(&cut).await.0, unreachable("disconnect"));
}

#[tokio::test]
async fn robots_follow_five_redirects() {
    for (hops, expected) in [
        (
            5,
            RobotsContent::Text {
                text: "User-agent: *\nDisallow: /".to_owned(),
            },
        ),
        (6, RobotsContent::Absent),
    ] {
        let count = AtomicUsize::new(0);
        let server = Server::start(move |_| {
            let n = count.fetch_add(1, Ordering::SeqCst);
            let bytes = if n < hops {
                redirect(301, &format!("/r{n}"))
            } else {
                response(200, "", b"User-agent: *\nDisallow: /")
            };
            vec![Act::Send(bytes)]
        })
        .await;
        assert_eq!(robots_of(&server).await.0, expected, "{hops}");
    }
}

#[tokio::test]
async fn of_long_robots_the_beginning_counts() {
    let mut text = "User-agent: *\nDisallow: /a\n".to_owned();
    while text.len() < 500 * 1024 - 8 {
        text.push_str("# padding\n");
    }
    text.push_str("Disallow: /bcdefghijklmnop\n");
    assert!(text.len() > 500 * 1024);
    for headers in ["", "X: declared\r\n"] {
        let body = text.clone();
        let server =
            Server::start(move |_| vec![Act::Send(response(200, headers, body.as_bytes()))]).await;
        let fetcher = fetcher(options());
        let origin: CanonicalUrl = server.url("/").parse().unwrap();
        let state = fetcher.read_robots(&origin, None).await;
        let rules = RobotsRules::of(&state, "lakebed-test");
        let verdict = |path| rules.verdict(&server.url(path).parse().unwrap());
        assert_eq!(verdict("/a"), RobotsVerdict::Disallowed);
        assert_eq!(
            verdict("/bcd"),
            RobotsVerdict::Allowed,
            "half a rule is no rule"
        );
    }
}

#[tokio::test]
async fn unchanged_robots_are_not_sent_again() {
    let server = Server::start(|request| {
        let bytes = if request.header("if-none-match") == "\"r\"" {
            b"HTTP/1.1 304 X\r\n\r\n".to_vec()
        } else {
            response(200, "ETag: \"r\"\r\n", b"User-agent: *\nDisallow: /x")
        };
        vec![Act::Send(bytes)]
    })
    .await;
    let origin: CanonicalUrl = server.url("/").parse().unwrap();
    let fetcher = fetcher(options());
    let first = fetcher.read_robots(&origin, None).await;
    let second = fetcher.read_robots(&origin, Some(&first)).await;
    assert_eq!(
        (&second.content, &second.etag),
        (&first.content, &first.etag)
    );
    assert!(second.expires_at > first.expires_at);
    assert_eq!(server.received()[1].header("if-none-match"), "\"r\"");
}
