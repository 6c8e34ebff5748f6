//! Through proxies: CONNECT, forwarding and SOCKS 5, each a small real one.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use super::secure::{secure_server, trusting};
use super::server::{Server, fetch, options, page, read_request};
use crate::fetch::{FailureClass, FetchOptions, FetchOutcome, Fetched, ProxySpec};

fn class(fetched: &Fetched) -> Option<FailureClass> {
    match &fetched.outcome {
        FetchOutcome::Failed(failure) => Some(failure.class),
        _ => None,
    }
}

type Asked = Arc<Mutex<Vec<String>>>;

/// An HTTP proxy that sends every CONNECT to `upstream` and answers other requests itself.
async fn http_proxy(upstream: String, status: &'static str) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Asked = Arc::default();
    let log = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (upstream, log) = (upstream.clone(), log.clone());
            tokio::spawn(async move {
                let mut buffer = Vec::new();
                while let Some(request) = read_request(&mut client, &mut buffer).await {
                    log.lock().unwrap().push(request.head.clone());
                    if !request.head.starts_with("CONNECT") {
                        client.write_all(&page("forwarded")).await.unwrap();
                        continue;
                    }
                    client
                        .write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes())
                        .await
                        .unwrap();
                    if status.starts_with("200") {
                        let mut to = TcpStream::connect(&upstream).await.unwrap();
                        drop(copy_bidirectional(&mut client, &mut to).await);
                    }
                    return;
                }
            });
        }
    });
    (address.to_string(), asked)
}

/// A SOCKS 5 proxy with a password that sends everything to `upstream`; it logs the names it was told.
async fn socks_proxy(upstream: String) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Asked = Arc::default();
    let log = asked.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let (upstream, log) = (upstream.clone(), log.clone());
            tokio::spawn(async move {
                let mut hello = [0; 2];
                client.read_exact(&mut hello).await.unwrap();
                let mut methods = vec![0; hello[1].into()];
                client.read_exact(&mut methods).await.unwrap();
                assert!(methods.contains(&2));
                client.write_all(&[5, 2]).await.unwrap();
                let mut user = read_text_after(&mut client, 1).await;
                user.push(':');
                user.push_str(&read_text_after(&mut client, 0).await);
                client.write_all(&[1, 0]).await.unwrap();
                let host = read_text_after(&mut client, 4).await;
                let port = client.read_u16().await.unwrap();
                log.lock().unwrap().push(format!("{user}@{host}:{port}"));
                client
                    .write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
                    .await
                    .unwrap();
                let mut to = TcpStream::connect(&upstream).await.unwrap();
                drop(copy_bidirectional(&mut client, &mut to).await);
            });
        }
    });
    (address.to_string(), asked)
}

/// A text with its length before it, behind `skipped` bytes.
async fn read_text_after(from: &mut TcpStream, skipped: usize) -> String {
    let mut head = vec![0; skipped];
    from.read_exact(&mut head).await.unwrap();
    let length = from.read_u8().await.unwrap();
    let mut text = vec![0; length.into()];
    from.read_exact(&mut text).await.unwrap();
    String::from_utf8(text).unwrap()
}

fn through(mut options: FetchOptions, proxy: &str) -> FetchOptions {
    options.proxy = Some(ProxySpec::parse(proxy).unwrap());
    options
}

#[tokio::test]
async fn http_is_forwarded_and_https_tunnelled() {
    let secure = secure_server(false).await;
    let (proxy, asked) = http_proxy(secure.to_string(), "200 OK").await;
    let with_proxy = through(trusting(), &format!("http://me:pass@{proxy}"));
    let plain = fetch(with_proxy.clone(), "http://plain.example/x?y").await;
    assert_eq!(plain.outcome, FetchOutcome::Answered);
    assert_eq!(plain.captures[0].body, "forwarded");
    let record = &plain.captures[0].record;
    assert_eq!(record.remote_ip, None);
    let head = String::from_utf8(record.request_head.0.clone()).unwrap();
    assert!(
        head.starts_with("GET http://plain.example/x?y HTTP/1.1\r\n"),
        "{head}"
    );
    assert!(
        head.contains("Proxy-Authorization: [removed]\r\n"),
        "{head}"
    );
    let tunnelled = fetch(with_proxy, "https://secure.test/x").await;
    assert_eq!(
        tunnelled.outcome,
        FetchOutcome::Answered,
        "{:?}",
        tunnelled.captures
    );
    let head = String::from_utf8(tunnelled.captures[0].record.request_head.0.clone()).unwrap();
    assert!(
        head.starts_with("GET /x HTTP/1.1\r\n") && !head.contains("Proxy-"),
        "{head}"
    );
    let asked = asked.lock().unwrap().clone();
    assert!(
        asked[1].starts_with("CONNECT secure.test:443 HTTP/1.1\r\n"),
        "{asked:?}"
    );
    assert!(asked.iter().all(|head| {
        head.to_lowercase()
            .contains("proxy-authorization: basic bwu6cgfzcw==")
    }));
}

#[tokio::test]
async fn socks_resolves_the_name() {
    let server = Server::pages(&[("/x", &page("over socks"))]).await;
    let (proxy, asked) = socks_proxy(server.address.to_string()).await;
    let fetched = fetch(
        through(options(), &format!("socks5://me:pass@{proxy}")),
        "http://name.example/x",
    )
    .await;
    assert_eq!(fetched.captures[0].body, "over socks");
    let secure = secure_server(false).await;
    let (proxy, asked_secure) = socks_proxy(secure.to_string()).await;
    let fetched = fetch(
        through(trusting(), &format!("socks5h://me:pass@{proxy}")),
        "https://secure.test/x",
    )
    .await;
    assert_eq!(
        fetched.outcome,
        FetchOutcome::Answered,
        "{:?}",
        fetched.captures
    );
    assert_eq!(*asked.lock().unwrap(), ["me:pass@name.example:80"]);
    assert_eq!(*asked_secure.lock().unwrap(), ["me:pass@secure.test:443"]);
}

#[tokio::test]
async fn a_proxy_that_fails_is_told_from_a_host() {
    let (refusing, _) = http_proxy(String::new(), "407 Proxy Authentication Required").await;
    let fetched = fetch(
        through(options(), &format!("http://{refusing}")),
        "https://secure.test/",
    )
    .await;
    assert_eq!(class(&fetched), Some(FailureClass::Proxy));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = listener.local_addr().unwrap();
    drop(listener);
    for scheme in ["http", "socks5"] {
        for url in ["http://a.example/", "https://a.example/"] {
            let fetched = fetch(through(options(), &format!("{scheme}://{closed}")), url).await;
            assert_eq!(
                class(&fetched),
                Some(FailureClass::Proxy),
                "{scheme} {url}: {:?}",
                fetched.outcome
            );
        }
    }
}

#[tokio::test]
async fn behind_a_proxy_names_and_literals_are_checked() {
    let (proxy, asked) = http_proxy(String::new(), "200 OK").await;
    let mut strict = FetchOptions::new("lakebed-test").unwrap();
    strict.proxy = Some(ProxySpec::parse(&format!("http://{proxy}")).unwrap());
    for host in ["localhost", "10.0.0.1", "0x7f.1", "[::1]", "printer.local"] {
        let fetched = fetch(strict.clone(), &format!("http://{host}/")).await;
        assert_eq!(
            class(&fetched),
            Some(FailureClass::PrivateAddress),
            "{host}"
        );
    }
    assert!(asked.lock().unwrap().is_empty());
    assert_eq!(
        fetch(strict, "http://public.example/").await.outcome,
        FetchOutcome::Answered
    );
}
