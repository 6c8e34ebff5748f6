//! Connections: accepted within a number, served within their limits, ended in order (API-5).
//!
//! A call runs on its own once its body is there: whoever goes away does not stop a finish between the bytes
//! and the queue, nor a closing between the pack and the verdict.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderValue,
    RETRY_AFTER, WWW_AUTHENTICATE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use lakebed::spec::RunKey;
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use crate::api::body;
use crate::api::fail::{Code, Fail};
use crate::api::framed::{FRAMED, Framed, MAX_CALL_BYTES, plain, split};
use crate::api::office::{Office, RunDesk};
use crate::api::route::{self, Brings, Call, Route, Segments};
use crate::api::token::Token;
use crate::api::{openapi, runs, work};

/// Connections at once; more wait to be accepted.
const MAX_CONNECTIONS: usize = 256;
/// A head must come within this time, which is also how long an idle connection is kept.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);
/// Bytes of a head, and headers of it, at most.
const MAX_HEAD_BYTES: usize = 64 * 1024;
const MAX_HEADERS: usize = 100;
/// Bodies of calls in memory at once, MiB; one that is larger waits for all of it.
const MEMORY_MIB: u32 = 256;
/// A call waits so long for its share of the memory.
const MEMORY_WAIT: Duration = Duration::from_secs(30);
/// What running calls get when the process is told to end.
const GRACE: Duration = Duration::from_secs(20);

/// What all connections share.
pub(super) struct Served {
    pub(super) office: Office,
    pub(super) token: Token,
    memory: Arc<Semaphore>,
    document: Bytes,
}

impl Served {
    pub(super) fn new(office: Office, token: Token) -> Self {
        let document = openapi::document().to_string();
        Self {
            office,
            token,
            memory: Arc::new(Semaphore::new(usize::try_from(MEMORY_MIB).unwrap_or(1))),
            document: Bytes::from(document),
        }
    }
}

/// Serves until `stop` is set; then running calls end, within their grace.
pub(super) async fn serve(
    listener: TcpListener,
    served: Arc<Served>,
    mut stop: watch::Receiver<bool>,
) {
    // Every running call holds a sender: the channel closes when the last one has ended.
    let (running, mut ended) = mpsc::channel::<Infallible>(1);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            Some(_) = connections.join_next() => continue,
            _ = stop.changed() => break,
        };
        match accepted {
            Ok((stream, place)) => {
                let call = (Arc::clone(&served), running.clone());
                connections.spawn(connection(stream, call, stop.clone(), place));
            }
            // Out of file handles, or a peer that left at once: neither ends the server.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    drop((listener, running));
    let drained = async {
        while connections.join_next().await.is_some() {}
        ended.recv().await
    };
    if tokio::time::timeout(GRACE, drained).await.is_err() {
        connections.shutdown().await;
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await;
    let place = place.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

type Shared = (Arc<Served>, mpsc::Sender<Infallible>);

async fn connection(
    stream: TcpStream,
    shared: Shared,
    mut stop: watch::Receiver<bool>,
    place: OwnedSemaphorePermit,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let service = service_fn(|request| answer(shared.clone(), request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = stop.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    drop(place);
    ended.map_err(io::Error::other)
}

/// Answers a call; every refusal is an answer, too.
async fn answer(
    shared: Shared,
    mut request: Request<Incoming>,
) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    let started = tokio::time::Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let answered = dispatch(&shared, &mut request).await;
    let is_read = request.body().is_end_stream();
    if answered.is_err() && !is_read {
        let headers = request.headers().clone();
        body::drain(&headers, request.body_mut()).await;
    }
    let response = match answered {
        Ok(bytes) => json_response(200, bytes),
        Err(fail) => fail_response(&fail, request.body().is_end_stream()),
    };
    let took = started.elapsed().as_millis();
    let status = response.status().as_u16();
    let printer = &shared.0.office.printer;
    printer.debug(format!(
        "{method} {} {status} {took} ms",
        path.escape_debug()
    ));
    Ok(response)
}

fn json_response(status: u16, bytes: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(bytes));
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn fail_response(fail: &Fail, is_read: bool) -> Response<Full<Bytes>> {
    let bytes = serde_json::to_vec(&fail.shape()).unwrap_or_default();
    let mut response = json_response(fail.code.status().as_u16(), Bytes::from(bytes));
    let headers = response.headers_mut();
    if fail.code == Code::Unauthorized {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if fail.code.is_retryable() {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    let allow = fail.context.iter().find(|(key, _)| key == "allow");
    if let Some(value) = allow.and_then(|(_, v)| HeaderValue::from_str(v).ok()) {
        headers.insert(ALLOW, value);
    }
    if !is_read {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Token, route, body; then the call runs on its own.
async fn dispatch(shared: &Shared, request: &mut Request<Incoming>) -> Result<Bytes, Fail> {
    let (served, running) = shared;
    let token = request.headers().get(AUTHORIZATION);
    if !served.token.admits(token.map(HeaderValue::as_bytes)) {
        return Err(Fail::new(Code::Unauthorized, "no token, or another one")
            .hint("send `Authorization: Bearer TOKEN` (docs/api.md)"));
    }
    let path = request.uri().path().to_owned();
    let (route, segments) = route::find(request.method(), &path)?;
    if route.call == Call::Document {
        return Ok(served.document.clone());
    }
    let key = run_key(&segments)?;
    let media = media_type(request.headers(), route)?;
    let desk = served
        .office
        .desk(&key, route.call == Call::RunCreate)
        .await?;
    let max = match media {
        Media::Framed => MAX_CALL_BYTES + 1 + runs::max_body_bytes(&desk),
        Media::Json => MAX_CALL_BYTES,
    };
    let share = memory(
        served,
        request
            .body()
            .size_hint()
            .upper()
            .map_or(max, |n| n.min(max)),
    )
    .await?;
    let bytes = body::read(request.body_mut(), max).await?;
    let named: Vec<String> = segments
        .iter()
        .map(|(_, text)| (*text).to_owned())
        .collect();
    let (served, running) = (Arc::clone(served), running.clone());
    let call = tokio::spawn(async move {
        let answered = run(&served, route, desk, &named, (media, bytes)).await;
        drop((running, share));
        answered
    });
    call.await
        .map_err(|e| Error::internal("a call ended by itself").caused_by(e))?
}

/// A share of the memory for bodies.
async fn memory(served: &Served, bytes: u64) -> Result<OwnedSemaphorePermit, Fail> {
    let mib = u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX);
    let wanted = Arc::clone(&served.memory).acquire_many_owned(mib.min(MEMORY_MIB));
    match tokio::time::timeout(MEMORY_WAIT, wanted).await {
        Ok(Ok(share)) => Ok(share),
        Ok(Err(_)) | Err(_) => Err(Fail::new(Code::Busy, "too many bodies at once")),
    }
}

fn run_key(segments: &Segments<'_>) -> Result<RunKey, Fail> {
    let find = |name: &str| {
        let found = segments.iter().find(|(n, _)| *n == name);
        found.map_or("", |(_, text)| *text)
    };
    let at = |name: &'static str| move |e: Error| Fail::from(e.with("path", name));
    Ok(RunKey {
        source: find("source").parse().map_err(at("source"))?,
        date: find("date").parse::<BusinessDate>().map_err(at("date"))?,
        run: find("run").parse().map_err(at("run"))?,
    })
}

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Media {
    Json,
    Framed,
}

fn media_type(headers: &HeaderMap, route: &Route) -> Result<Media, Fail> {
    let given = headers
        .get(CONTENT_TYPE)
        .map(|v| String::from_utf8_lossy(v.as_bytes()));
    let essence = given.as_deref().unwrap_or_default();
    let essence = essence
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match (route.brings, essence.as_str()) {
        (Brings::Nothing, _) | (Brings::Json(_) | Brings::Finish(_), "application/json") => {
            Ok(Media::Json)
        }
        (Brings::Finish(_), FRAMED) => Ok(Media::Framed),
        (Brings::Json(_), _) => Err(wrong_type(&essence, "application/json")),
        (Brings::Finish(_), _) => Err(wrong_type(&essence, FRAMED)),
    }
}

fn wrong_type(given: &str, wanted: &str) -> Fail {
    let message = match given {
        "" => "the call has no `Content-Type`".to_owned(),
        _ => format!("the call is `{}`", given.escape_debug()),
    };
    Fail::new(Code::WrongType, message).hint(format!("send `Content-Type: {wanted}`"))
}

fn to_bytes(answer: Result<impl Serialize, Fail>) -> Result<Bytes, Fail> {
    let bytes = serde_json::to_vec(&answer?)
        .map_err(|e| Error::internal("write the answer as JSON").caused_by(e))?;
    Ok(Bytes::from(bytes))
}

/// Runs a call whose body is there.
async fn run(
    served: &Served,
    route: &Route,
    desk: Arc<RunDesk>,
    named: &[String],
    (media, body): (Media, Bytes),
) -> Result<Bytes, Fail> {
    if matches!(route.brings, Brings::Nothing) && !body.is_empty() {
        let _nothing: crate::api::shape::NothingCall = crate::api::framed::read_json(&body)?;
    }
    let last = named.get(3).map_or("", String::as_str);
    match route.call {
        Call::Document => Ok(served.document.clone()),
        Call::RunStatus | Call::RunCreate => to_bytes(runs::status(&desk).await),
        Call::RunSeeds => to_bytes(runs::seeds(&desk, &body).await),
        Call::RunOpen => to_bytes(runs::open(&desk, &body).await),
        Call::RunRequests => to_bytes(runs::requests(&desk, &body).await),
        Call::RunSeal => to_bytes(runs::seal(&desk).await),
        Call::RunStop => to_bytes(runs::stop(&desk, &body).await),
        Call::RunResume => to_bytes(runs::resume(&desk).await),
        Call::RunClose => to_bytes(runs::close(&served.office, desk).await),
        Call::WorkerJoin => to_bytes(work::join(&desk, &body).await),
        Call::WorkerHeartbeat => to_bytes(work::heartbeat(&desk, last).await),
        Call::WorkerLeave => to_bytes(work::leave(&desk, last).await),
        Call::Claims => to_bytes(work::claims(&desk, &body).await),
        Call::Turn => to_bytes(work::turn(&desk, &body).await),
        Call::Finish => {
            let framed: Framed = match media {
                Media::Json => plain(&body)?,
                Media::Framed => split(&body, runs::max_body_bytes(&desk))?,
            };
            to_bytes(work::finish(&desk, last, framed).await)
        }
    }
}
