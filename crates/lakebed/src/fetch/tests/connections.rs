//! Connections that fail, and connections that are kept.

use std::time::Duration;

use tokio::net::TcpListener;

use super::server::{Act, Server, fetch, fetcher, get, options, page};
use crate::fetch::{FailureClass, FetchOutcome, Fetched, NoHopCheck};

fn class(fetched: &Fetched) -> Option<FailureClass> {
    match &fetched.outcome {
        FetchOutcome::Failed(failure) => Some(failure.class),
        _ => None,
    }
}

#[tokio::test]
async fn failures_of_the_network_have_their_classes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    let refused = fetch(options(), &format!("http://{closed}/")).await;
    assert_eq!(class(&refused), Some(FailureClass::Refused));
    let record = &refused.captures[0].record;
    assert!(
        record.error.as_ref().unwrap().starts_with("refused: "),
        "{:?}",
        record.error
    );
    assert!(record.request_head.0.is_empty(), "nothing went out");
    let unknown = fetch(options(), "http://does-not-exist.invalid/").await;
    assert_eq!(class(&unknown), Some(FailureClass::Dns));
    let mut none = options();
    none.fixed_hosts
        .insert("empty.example".to_owned(), Vec::new());
    assert_eq!(
        class(&fetch(none, "http://empty.example/").await),
        Some(FailureClass::Dns)
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_host_that_does_not_answer_times_out() {
    // A listener whose queue is full drops further attempts to connect.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(Ok(stream)) = tokio::time::timeout(
        Duration::from_millis(200),
        tokio::net::TcpStream::connect(address),
    )
    .await
    {
        waiting.push(stream);
    }
    let mut hasty = options();
    hasty.limits.connect = Duration::from_millis(300);
    let fetched = fetch(hasty, &format!("http://{address}/")).await;
    assert_eq!(class(&fetched), Some(FailureClass::TimeoutConnect));
}

#[tokio::test]
async fn another_address_is_tried_when_one_refuses() {
    let server = Server::pages(&[("/", &page("x"))]).await;
    let mut two = options();
    let addresses = vec!["127.0.0.2".parse().unwrap(), "127.0.0.1".parse().unwrap()];
    two.fixed_hosts.insert("two.example".to_owned(), addresses);
    let fetched = fetch(
        two,
        &format!("http://two.example:{}/", server.address.port()),
    )
    .await;
    assert_eq!(fetched.outcome, FetchOutcome::Answered);
}

#[tokio::test]
async fn idle_connections_are_bounded() {
    let server = Server::start(|_| {
        let wait = Act::Wait(Duration::from_millis(300));
        vec![wait, Act::Send(page("x"))]
    })
    .await;
    let fetcher = fetcher(options());
    let many = || async {
        let fetches = (0..6).map(|_| {
            let (fetcher, request) = (fetcher.clone(), get(&server.url("/")));
            tokio::spawn(async move { fetcher.fetch(&request, &NoHopCheck).await.outcome })
        });
        for fetch in fetches.collect::<Vec<_>>() {
            assert_eq!(fetch.await.unwrap(), FetchOutcome::Answered);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    many().await;
    let first = server.connections();
    assert_eq!(first, 6);
    many().await;
    assert_eq!(server.connections() - first, 4, "two were kept");
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_fails_no_fetch() {
    // It answers once and goes away when it hears the next request: the worst moment.
    let answered = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::start(move |request| {
        let n = answered.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        match request.target() {
            "/first" => vec![Act::Send(page("first"))],
            _ if n % 2 == 1 => vec![Act::Drop],
            _ => vec![Act::Send(page("again"))],
        }
    })
    .await;
    let fetcher = fetcher(options());
    let fetched = fetcher
        .fetch(&get(&server.url("/first")), &NoHopCheck)
        .await;
    assert_eq!(fetched.outcome, FetchOutcome::Answered);
    let fetched = fetcher
        .fetch(&get(&server.url("/second")), &NoHopCheck)
        .await;
    assert_eq!(fetched.outcome, FetchOutcome::Answered);
    assert_eq!(
        (fetched.captures.len(), &fetched.captures[0].body[..]),
        (1, &b"again"[..])
    );
    assert_eq!((server.connections(), server.received().len()), (2, 3));
    // What must not be repeated is a failure, and so is a new connection that says nothing.
    let mut post = get(&server.url("/third"));
    post.method = http::Method::POST;
    assert_eq!(
        class(&fetcher.fetch(&post, &NoHopCheck).await),
        Some(FailureClass::Disconnect)
    );
    let silent = Server::start(|_| vec![Act::Drop]).await;
    let fetched = fetcher.fetch(&get(&silent.url("/")), &NoHopCheck).await;
    assert_eq!(class(&fetched), Some(FailureClass::Disconnect));
    assert_eq!(silent.received().len(), 1);
}

/// Whatever comes, it ends in an outcome with the capture of its one hop.
#[tokio::test]
async fn cut_and_flipped_responses_end_in_an_outcome() {
    let chunked = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=big5\r\nSet-Cookie: a=b\r\n\
        Transfer-Encoding: chunked\r\nETag: \"x\"\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n";
    let limited = b"HTTP/1.0 429 Slow\r\nRetry-After: 120\r\nLocation: /x\r\nContent-Encoding: gzip, br\r\nContent-Length: 3\r\n\r\nabc";
    let server = Server::start(move |request| {
        let numbers: Vec<usize> = (request.target().split('/').skip(1))
            .map(|n| n.parse().unwrap())
            .collect();
        let mut bytes = if numbers[0] == 0 {
            chunked.to_vec()
        } else {
            limited.to_vec()
        };
        let at = numbers[1] % bytes.len();
        if numbers[2] == 0 {
            bytes.truncate(at);
        } else {
            bytes[at] ^= u8::try_from(numbers[2]).unwrap();
        }
        vec![Act::Send(bytes), Act::Close]
    })
    .await;
    let mut hasty = options();
    hasty.limits.total = Duration::from_secs(2);
    hasty.redirects.max = 0;
    hasty.cookies = Some(crate::fetch::CookieJar::default());
    let fetcher = fetcher(hasty);
    for which in 0..2 {
        for at in 0..chunked.len().max(limited.len()) {
            for flip in [0, 1, 4, 32, 128] {
                let url = server.url(&format!("/{which}/{at}/{flip}"));
                let fetched = fetcher.fetch(&get(&url), &NoHopCheck).await;
                assert_eq!(fetched.captures.len(), 1, "{url}");
                let record = &fetched.captures[0].record;
                assert_eq!(record.status.is_some(), record.error.is_none(), "{url}");
                if flip == 0 && which == 0 {
                    assert!(
                        matches!(fetched.outcome, FetchOutcome::Failed(_)),
                        "{url}: {:?}",
                        fetched.outcome
                    );
                }
            }
        }
    }
}
