//! One part for many tasks: responses that come at the same time share a frame and its fsync.
//!
//! A thread of its own writes. It takes what waits, makes one frame of it, makes that durable, and answers
//! everybody: while it works, the next ones gather. So a task waits for one fsync, and a second of a
//! hundred responses costs a few fsyncs and not a hundred.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::pack::part::{PartOptions, PartWriter, Receipt};
use crate::spec::{CaptureRecord, RunKey};
use crate::time::{Clock, Instant};

/// How captures gather.
#[derive(Debug, Clone, Copy)]
pub struct SharedPartOptions {
    /// When frames and parts close.
    pub part: PartOptions,
    /// How long a frame waits for more captures when none are there; zero = not at all. Tasks gather while
    /// the frame before is made durable, so a wait mostly delays answers; it is for disks on which an fsync
    /// costs more than it.
    pub linger: Duration,
}

impl Default for SharedPartOptions {
    fn default() -> Self {
        Self {
            part: PartOptions::default(),
            linger: Duration::ZERO,
        }
    }
}

/// A capture on its way to the thread.
struct Job {
    capture: Box<CaptureRecord>,
    body: Bytes,
    answer: oneshot::Sender<Result<Receipt>>,
}

/// A part that tasks share; it ends when it is dropped.
pub struct SharedPart {
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    writer: String,
}

impl SharedPart {
    /// Opens a writer in `folder` and its thread.
    ///
    /// # Errors
    /// As [`PartWriter::new`]; `Unavailable` where no thread can be had.
    pub fn open(
        folder: &Path,
        run: &RunKey,
        options: SharedPartOptions,
        clock: &Clock,
    ) -> Result<Self> {
        let writer = PartWriter::new(folder, run, options.part, clock)?;
        let name = writer.writer().to_owned();
        let (jobs, queue) = channel();
        let thread = std::thread::Builder::new()
            .name("pack-part".to_owned())
            .spawn(move || write_all(writer, &queue, options))
            .map_err(|e| Error::unavailable("start the thread of a part").caused_by(e))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            writer: name,
        })
    }

    /// The unique name of its writer.
    #[must_use]
    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// Appends a capture; answers when the frame that holds it is durable (PAK-1).
    ///
    /// # Errors
    /// As [`PartWriter::append`], for this capture alone or for all of its frame.
    pub async fn append(&self, capture: CaptureRecord, body: Bytes) -> Result<Receipt> {
        let (answer, receipt) = oneshot::channel();
        let gone = || Error::unavailable("the thread of a part ended");
        let job = Job {
            capture: Box::new(capture),
            body,
            answer,
        };
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.send(job).map_err(|_| gone())?;
        receipt.await.map_err(|_| gone())?
    }
}

impl Drop for SharedPart {
    fn drop(&mut self) {
        // The thread ends when nobody can send any more; what it had taken becomes durable.
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Captures that wait for their frame, in the order of their receipts.
type Waiting = Vec<oneshot::Sender<Result<Receipt>>>;

fn write_all(mut writer: PartWriter, queue: &Receiver<Job>, options: SharedPartOptions) {
    let mut waiting = Waiting::new();
    // The frame never grows old here, so the instants are all the same.
    let now = Instant::from_micros(0);
    while let Ok(first) = queue.recv() {
        let deadline = std::time::Instant::now() + options.linger;
        let mut next = Some(first);
        while let Some(job) = next {
            let appended = writer.append(&job.capture, &job.body, now);
            match appended {
                Ok(receipts) => {
                    waiting.push(job.answer);
                    answer(&mut waiting, receipts);
                }
                Err(error) if writer.waiting() == waiting.len() => {
                    // Refused by itself: the others still wait.
                    reply(job.answer, Err(error));
                }
                Err(error) => {
                    waiting.push(job.answer);
                    fail(&mut waiting, &error);
                }
            }
            // What is there already comes along even when the time is over.
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            next = queue.recv_timeout(left).ok();
        }
        match writer.flush() {
            Ok(receipts) => answer(&mut waiting, receipts),
            Err(error) => fail(&mut waiting, &error),
        }
    }
}

/// Answers the first of those that wait, as many as there are receipts: they come in order.
fn answer(waiting: &mut Waiting, receipts: Vec<Receipt>) {
    for (one, receipt) in waiting.drain(..receipts.len()).zip(receipts) {
        reply(one, Ok(receipt));
    }
}

/// Tells everybody that the frame was lost.
fn fail(waiting: &mut Waiting, error: &Error) {
    for one in waiting.drain(..) {
        let lost = Error::new(error.kind(), format!("keep a response: {error}"));
        reply(one, Err(lost.retryable()));
    }
}

/// Who has gone away is not told.
fn reply(to: oneshot::Sender<Result<Receipt>>, answer: Result<Receipt>) {
    drop(to.send(answer));
}
