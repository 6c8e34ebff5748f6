//! Reads the body of a response, within its size and time.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::Instant as Deadline;

use super::transport::class_of;
use crate::spec::Truncated;

/// A body as it came, content encodings and all.
#[derive(Debug)]
pub(super) struct WireBody {
    pub(super) bytes: Bytes,
    /// Whether it is whole.
    pub(super) truncated: Truncated,
    /// What cut it, in one line; empty for a whole one.
    pub(super) message: String,
}

/// How much of a body is taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimit {
    /// Bytes on the wire.
    pub(super) max_wire: u64,
    /// Bytes without encodings.
    pub(super) max_body: u64,
    /// Whether the beginning of a body that is too long is of use.
    pub(super) wants_beginning: bool,
}

impl BodyLimit {
    /// The first `max` bytes of a body that may be longer.
    pub(super) fn beginning(max: u64) -> Self {
        Self {
            max_wire: max,
            max_body: max,
            wants_beginning: true,
        }
    }
}

/// Reads up to the limit until `deadline`.
///
/// A body whose declared length is over the limit is not read at all, unless its beginning is of use. One that ends where the connection
/// ends, without a declared length, cannot be told from a cut one over plain HTTP; over TLS it is whole
/// only if the peer said goodbye.
pub(super) async fn read_body(
    mut body: Incoming,
    limit: BodyLimit,
    deadline: Deadline,
) -> WireBody {
    let max = limit.max_wire;
    let cut = |bytes: BytesMut, truncated, message: String| WireBody {
        bytes: bytes.freeze(),
        truncated,
        message,
    };
    let mut bytes = BytesMut::new();
    let declared = body.size_hint().exact();
    if let Some(length) = declared.filter(|length| *length > max && !limit.wants_beginning) {
        let text = format!("the body has {length} bytes, {max} at most are taken");
        return cut(bytes, Truncated::Length, text);
    }
    loop {
        let frame = match tokio::time::timeout_at(deadline, body.frame()).await {
            Ok(None) => return cut(bytes, Truncated::None, String::new()),
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(error))) => {
                let (_, text) = class_of(&error);
                return cut(
                    bytes,
                    Truncated::Disconnect,
                    format!("the body broke off: {text}"),
                );
            }
            Err(_) => {
                let text = "the time of the fetch was over before the body was whole".to_owned();
                return cut(bytes, Truncated::Time, text);
            }
        };
        // Trailers are no part of the body and are not kept.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let room = max.saturating_sub(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        bytes.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            let text = format!("the body is longer than {max} bytes on the wire");
            return cut(bytes, Truncated::Length, text);
        }
    }
}
