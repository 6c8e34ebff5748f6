//! Connections that fail, and connections that are kept.

use std::time::Duration;

use tokio::net::TcpListener;

use super::server::{Act, Server, fetch, fetcher, get, options, page};
use crate::fetch::{FailureClass, FetchOutcome, Fetched, OpenGate};

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
async fn idle_connections_are_bounded_and_dead_ones_replaced() {
    let server = Server::start(|request| match request.target() {
        "/last" => vec![Act::Send(page("x")), Act::Close],
        _ => vec![Act::Wait(Duration::from_millis(100)), Act::Send(page("x"))],
    })
    .await;
    let fetcher = fetcher(options());
    let many = || async {
        let fetches = (0..6).map(|_| {
            let (fetcher, request) = (fetcher.clone(), get(&server.url("/")));
            tokio::spawn(async move { fetcher.fetch(&request, &OpenGate).await.outcome })
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
    // A kept connection that the server closed meanwhile does not fail a fetch.
    for _ in 0..5 {
        let fetched = fetcher.fetch(&get(&server.url("/last")), &OpenGate).await;
        assert_eq!(fetched.outcome, FetchOutcome::Answered);
    }
}
