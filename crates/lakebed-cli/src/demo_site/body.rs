//! Bodies as segments that may repeat, sent at a pace, and cut where a fault says so.
//!
//! A repeated segment is one shared buffer, so a body of gigabytes takes no memory.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use crate::demo_site::journal::Exchange;

/// Before a connection is cut, what was sent so far is given time to leave.
const FLUSH: Duration = Duration::from_millis(20);
/// Largest piece that is handed on at once.
const PIECE: usize = 64 << 10;

/// Bytes that are sent a number of times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The bytes; never empty.
    pub(crate) bytes: Bytes,
    /// How often.
    pub(crate) times: u64,
}

impl Segment {
    /// Bytes that are sent once.
    pub(crate) fn once(bytes: impl Into<Bytes>) -> Self {
        Self {
            bytes: bytes.into(),
            times: 1,
        }
    }

    fn len(&self) -> u64 {
        let one = u64::try_from(self.bytes.len()).unwrap_or(u64::MAX);
        one.saturating_mul(self.times)
    }
}

/// Bytes of all segments.
pub(crate) fn total(segments: &[Segment]) -> u64 {
    segments.iter().map(Segment::len).sum()
}

/// The body of an answer; it tells the journal what was sent and when it ended.
#[derive(Debug)]
pub(crate) struct SiteBody {
    segments: VecDeque<Segment>,
    /// Bytes of the first segment that were sent already.
    offset: usize,
    /// Bytes that the answer announced and that were not sent yet.
    announced: u64,
    /// Bytes after which the connection breaks.
    cut: Option<u64>,
    drip: Option<(usize, Duration)>,
    wait: Option<Pin<Box<Sleep>>>,
    cutting: bool,
    exchange: Exchange,
}

impl SiteBody {
    /// A body; `cut` and `drip` as faults order them.
    pub(crate) fn new(
        segments: Vec<Segment>,
        cut: Option<u64>,
        drip: Option<(u32, Duration)>,
        exchange: Exchange,
    ) -> Self {
        let announced = total(&segments);
        Self {
            segments: segments.into_iter().filter(|s| s.len() > 0).collect(),
            offset: 0,
            announced,
            cut,
            drip: drip.map(|(n, wait)| (usize::try_from(n).unwrap_or(usize::MAX).max(1), wait)),
            wait: None,
            cutting: false,
            exchange,
        }
    }

    /// The next piece of at most `most` bytes.
    fn take(&mut self, most: usize) -> Option<Bytes> {
        let segment = self.segments.front_mut()?;
        let end = segment.bytes.len().min(self.offset.saturating_add(most));
        let piece = segment.bytes.slice(self.offset..end);
        self.offset = end;
        if end == segment.bytes.len() {
            self.offset = 0;
            segment.times -= 1;
            if segment.times == 0 {
                self.segments.pop_front();
            }
        }
        Some(piece)
    }

    fn is_done(&self) -> bool {
        self.segments.is_empty() && self.cut.is_none()
    }
}

impl Body for SiteBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        if let Some(wait) = &mut this.wait {
            if wait.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            this.wait = None;
        }
        if this.cutting {
            return Poll::Ready(Some(Err(io::Error::other(
                "the fault `truncate` cuts here",
            ))));
        }
        let left = this.cut.unwrap_or(u64::MAX);
        if left == 0 {
            this.cutting = true;
            this.wait = Some(Box::pin(sleep(FLUSH)));
            return self.poll_frame(context);
        }
        let most = this.drip.map_or(PIECE, |(n, _)| n.min(PIECE));
        let most = most.min(usize::try_from(left).unwrap_or(usize::MAX));
        let Some(piece) = this.take(most) else {
            return Poll::Ready(None);
        };
        let sent = u64::try_from(piece.len()).unwrap_or(u64::MAX);
        this.announced = this.announced.saturating_sub(sent);
        this.cut = this.cut.map(|c| c.saturating_sub(sent));
        this.exchange.add_bytes(sent);
        if let Some((_, pause)) = this.drip
            && !this.segments.is_empty()
        {
            this.wait = Some(Box::pin(sleep(pause)));
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.is_done()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.announced)
    }
}
