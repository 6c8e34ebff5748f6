//! Statuses, patience, and what is worth another attempt.

use std::sync::Arc;
use std::time::Duration;

use super::server::{Act, Server, fetcher, get, options, response};
use crate::fetch::{FailureClass, FetchOutcome, Fetcher, NoHopCheck};
use crate::time::Clock;

async fn answering(status: u16, headers: &'static str) -> Server {
    Server::start(move |_| vec![Act::Send(response(status, headers, b"text"))]).await
}

#[tokio::test]
async fn each_status_has_its_class() {
    for (status, is_retryable) in [
        (400, false),
        (401, false),
        (403, false),
        (404, false),
        (408, true),
        (410, false),
        (425, true),
        (451, false),
        (500, true),
        (502, true),
        (503, true),
        (504, true),
        (520, true),
    ] {
        let server = answering(status, "").await;
        let fetched = fetcher(options())
            .fetch(&get(&server.url("/")), &NoHopCheck)
            .await;
        let FetchOutcome::Failed(failure) = &fetched.outcome else {
            panic!("{status}: {:?}", fetched.outcome);
        };
        assert_eq!(failure.class, FailureClass::Http(status));
        assert_eq!(failure.is_retryable, is_retryable, "{status}");
        assert_eq!(
            fetched.captures[0].body, "text",
            "{status}: the page of an error is kept, too"
        );
    }
}

#[tokio::test]
async fn a_source_says_which_statuses_are_answers() {
    let mut gone_is_data = options();
    gone_is_data.accepted_statuses.extend([404, 410]);
    gone_is_data.retried_statuses.insert(403);
    let fetcher = fetcher(gone_is_data);
    let fetched = fetcher
        .fetch(&get(&answering(404, "").await.url("/")), &NoHopCheck)
        .await;
    assert_eq!(fetched.outcome, FetchOutcome::Answered);
    let fetched = fetcher
        .fetch(&get(&answering(403, "").await.url("/")), &NoHopCheck)
        .await;
    assert!(matches!(fetched.outcome, FetchOutcome::Failed(f) if f.is_retryable));
}

#[tokio::test]
async fn a_host_may_ask_for_patience() {
    let now = "2026-11-30T12:00:00Z".parse().unwrap();
    let fetcher = Fetcher::new(options(), Arc::new(Clock::manual(now))).unwrap();
    for (status, headers, wait) in [
        (429, "Retry-After: 30\r\n", Some(30)),
        (
            429,
            "Retry-After: Mon, 30 Nov 2026 12:05:00 GMT\r\n",
            Some(300),
        ),
        // A date is counted from what the host's own clock says, an hour behind ours.
        (
            429,
            "Date: Mon, 30 Nov 2026 11:00:00 GMT\r\nRetry-After: Mon, 30 Nov 2026 11:00:20 GMT\r\n",
            Some(20),
        ),
        (429, "Retry-After: 999999999\r\n", Some(3600)),
        (429, "Retry-After: 0\r\n", Some(1)),
        (429, "Retry-After: -10\r\n", Some(60)),
        (429, "", Some(60)),
        (503, "Retry-After: 30\r\n", Some(30)),
        (503, "Retry-After: later\r\n", None),
        (503, "", None),
        (500, "Retry-After: 30\r\n", None),
    ] {
        let server = answering(status, headers).await;
        let fetched = fetcher.fetch(&get(&server.url("/")), &NoHopCheck).await;
        let expected = wait.map(|seconds| FetchOutcome::RateLimited {
            class: FailureClass::Http(status),
            wait: Duration::from_secs(seconds),
        });
        match expected {
            Some(expected) => assert_eq!(fetched.outcome, expected, "{status} {headers}"),
            None => assert!(
                matches!(fetched.outcome, FetchOutcome::Failed(_)),
                "{status} {headers}"
            ),
        }
    }
}

#[tokio::test]
async fn requests_that_cannot_be_sent_are_values_too() {
    let server = answering(200, "").await;
    let fetcher = fetcher(options());
    let mut connect = get(&server.url("/"));
    connect.method = http::Method::CONNECT;
    let mut requests = vec![connect];
    for (name, value) in [
        ("Host", "evil"),
        ("content-length", "3"),
        ("Transfer-Encoding", "chunked"),
        ("a b", "c"),
        ("x", "a\r\nb: c"),
    ] {
        let mut request = get(&server.url("/"));
        request.headers = vec![(name.to_owned(), value.to_owned())];
        requests.push(request);
    }
    for request in requests {
        let fetched = fetcher.fetch(&request, &NoHopCheck).await;
        assert!(
            matches!(&fetched.outcome, FetchOutcome::Failed(f) if f.class == FailureClass::BadRequest && !f.is_retryable),
            "{:?}",
            request.headers
        );
    }
    assert!(server.received().is_empty());
}
