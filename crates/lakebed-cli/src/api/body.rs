//! Bodies of calls, bounded in bytes and time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::{Body, Incoming};
use hyper::header::EXPECT;
use tokio::time::Instant;

use crate::api::fail::{Code, Fail};

/// A body may pause for so long.
const IDLE: Duration = Duration::from_secs(30);
/// It may take so long as a whole.
const TOTAL: Duration = Duration::from_secs(600);
/// What is read of a refused body, so that its sender reads the answer.
const MAX_DRAIN: u64 = 64 << 20;
const DRAIN: Duration = Duration::from_secs(10);

/// Reads a body of at most `max` bytes.
pub(super) async fn read(body: &mut Incoming, max: u64) -> Result<Bytes, Fail> {
    let too_large = || {
        Fail::new(
            Code::TooLarge,
            format!("the body of the call is longer than {max} bytes"),
        )
    };
    if body.size_hint().lower() > max {
        return Err(too_large());
    }
    let slow = || {
        Fail::new(Code::TooSlow, "the body of the call did not come in time")
            .hint("no pause of 30 seconds, 10 minutes as a whole")
    };
    let end = Instant::now() + TOTAL;
    let mut bytes = BytesMut::new();
    loop {
        let until = end.min(Instant::now() + IDLE);
        let frame = match tokio::time::timeout_at(until, body.frame()).await {
            Err(_) => return Err(slow()),
            Ok(None) => return Ok(bytes.freeze()),
            Ok(Some(Err(e))) => {
                let message = format!("the body of the call broke off: {e}");
                return Err(Fail::new(Code::BadFrame, message));
            }
            Ok(Some(Ok(frame))) => frame,
        };
        if let Ok(data) = frame.into_data() {
            if bytes.len() as u64 + data.len() as u64 > max {
                return Err(too_large());
            }
            bytes.extend_from_slice(&data);
        }
    }
}

/// Reads a bounded part of a body that nobody wants: a sender that is cut off in the midst of it sees no answer.
pub(super) async fn drain(headers: &HeaderMap, body: &mut Incoming) {
    if headers.contains_key(EXPECT) {
        return;
    }
    let read = async {
        let mut left = MAX_DRAIN;
        while let Some(Ok(frame)) = body.frame().await {
            let len = frame.data_ref().map_or(0, |d| d.len() as u64);
            left = left.saturating_sub(len);
            if left == 0 {
                return;
            }
        }
    };
    // A body that does not end is left; its connection is closed.
    if tokio::time::timeout(DRAIN, read).await.is_err() {}
}
