//! Writing parts: what a worker fetched, made durable frame by frame.
//!
//! ```text
//! <folder of the run>/<writer>-000001.tar.zst     PACK.json | frame | frame | ...     no end, no seek table
//! ```
//!
//! PAK-1: a capture is acknowledged (it has a [`Receipt`]) only when the frame that holds it is durable. Each
//! frame is made durable before the next one is written, so a crash tears the last frame alone. A part
//! belongs to one writer, which holds its lock; nobody ever appends to the part of another.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::name::CaptureId;
use crate::pack::content::{FrameBuilder, check_capture};
use crate::pack::durable::{create_folder, lock, sync_folder};
use crate::pack::encode::head_content;
use crate::pack::frame::FrameEncoder;
use crate::spec::{
    CaptureRecord, MAX_BODY_BYTES, MAX_FRAME_BYTES, PACK_SUFFIX, PART_FORMAT, PackHead, PackKind,
    PackLine, PackProfile, RunKey,
};
use crate::time::{Clock, Instant, unique_id};

/// The end of a part's name until its first frame is durable.
pub(super) const NEW_SUFFIX: &str = ".new";

/// When a frame and a part close.
#[derive(Debug, Clone, Copy)]
pub struct PartOptions {
    /// Raw bytes after which a frame closes.
    pub frame_bytes: usize,
    /// Microseconds after its first capture when a frame closes.
    pub frame_age_us: i64,
    /// Bytes of a file after which the next frame goes into a new part.
    pub part_bytes: u64,
    /// Raw bytes of a frame at most; a longer content goes over several.
    pub split_bytes: usize,
}

impl Default for PartOptions {
    fn default() -> Self {
        Self {
            frame_bytes: PackProfile::Live.frame_bytes(0, 0),
            frame_age_us: 30_000_000,
            part_bytes: 256 << 20,
            split_bytes: MAX_FRAME_BYTES,
        }
    }
}

/// The proof that a capture is durable, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The capture.
    pub capture_id: CaptureId,
    /// The part's file name.
    pub part: String,
    /// The frame within it.
    pub frame: u32,
}

/// The file that is being written.
struct OpenPart {
    file: File,
    name: String,
    frames: u32,
    len: u64,
}

/// Writes the parts of one worker.
pub struct PartWriter {
    folder: PathBuf,
    head: PackHead,
    writer: String,
    options: PartOptions,
    encoder: FrameEncoder,
    frame: FrameBuilder,
    waiting: Vec<CaptureId>,
    /// When the first capture of the frame came.
    since: Option<Instant>,
    sequence: u32,
    open: Option<OpenPart>,
}

impl PartWriter {
    /// A writer of its own unique name for `folder`, which need not exist yet. No file is made before the
    /// first frame.
    ///
    /// # Errors
    /// `Unavailable` where the folder cannot be made.
    pub fn new(folder: &Path, run: &RunKey, options: PartOptions, clock: &Clock) -> Result<Self> {
        create_folder(folder)?;
        let writer = unique_id(clock);
        Ok(Self {
            folder: folder.to_owned(),
            head: PackHead {
                format: PART_FORMAT.to_owned(),
                kind: PackKind::Part,
                run: run.clone(),
                profile: PackProfile::Live,
                zstd: zstd::zstd_safe::version_string().to_owned(),
                writer: Some(writer.clone()),
            },
            writer,
            options,
            encoder: FrameEncoder::new(PackProfile::Live)?,
            frame: FrameBuilder::new(PackHead::member_time(run)),
            waiting: Vec::new(),
            since: None,
            sequence: 0,
            open: None,
        })
    }

    /// The unique name of this writer.
    #[must_use]
    pub fn writer(&self) -> &str {
        &self.writer
    }

    /// Captures that have no receipt yet.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a capture with its body. The receipts are those of a frame that closed, and thereby became
    /// durable; this capture's comes with a later call where it is not among them.
    ///
    /// # Errors
    /// `InvalidInput` where the capture does not say the truth about its body: nothing was taken.
    /// `Unavailable` where a frame could not be made durable: no capture that waits has or will get a
    /// receipt. The writer goes on in a new part, so the captures can be handed in again.
    pub fn append(
        &mut self,
        capture: &CaptureRecord,
        body: &[u8],
        now: Instant,
    ) -> Result<Vec<Receipt>> {
        if body.len() as u64 > MAX_BODY_BYTES {
            let (id, len) = (&capture.capture_id, body.len());
            return Err(
                Error::limit(format!("capture `{id}` has a body of {len} bytes")).hint(format!(
                    "at most {MAX_BODY_BYTES} bytes fit; cap what is fetched"
                )),
            );
        }
        check_capture(capture, body)?;
        let line = PackLine::Capture(Box::new(capture.clone()));
        let bytes = line.to_bytes()?;
        let mut receipts = Vec::new();
        if self
            .frame
            .closes_before(line.body(), self.options.frame_bytes)
        {
            receipts = self.flush()?;
        }
        let content_type = capture.content_type.as_deref();
        let body = line.body().map(|(hash, _)| (hash, content_type, body));
        self.frame.add(&bytes, body)?;
        self.waiting.push(capture.capture_id.clone());
        let since = *self.since.get_or_insert(now);
        let is_old = now.micros().saturating_sub(since.micros()) >= self.options.frame_age_us;
        if self.frame.raw_len() >= self.options.frame_bytes || is_old {
            receipts.extend(self.flush()?);
        }
        Ok(receipts)
    }

    /// Closes the frame where it is old enough at `now`; for when nothing comes in.
    ///
    /// # Errors
    /// As [`PartWriter::append`].
    pub fn tick(&mut self, now: Instant) -> Result<Vec<Receipt>> {
        let is_old = |since: Instant| {
            now.micros().saturating_sub(since.micros()) >= self.options.frame_age_us
        };
        match self.since.is_some_and(is_old) {
            true => self.flush(),
            false => Ok(Vec::new()),
        }
    }

    /// Closes the frame and makes it durable; then, and only then, its captures have receipts.
    ///
    /// # Errors
    /// As [`PartWriter::append`].
    pub fn flush(&mut self) -> Result<Vec<Receipt>> {
        if self.frame.is_empty() {
            return Ok(Vec::new());
        }
        self.since = None;
        let waiting = std::mem::take(&mut self.waiting);
        let written = self.write_frame();
        if written.is_err() {
            // What the file holds behind its last good frame nobody knows: it is cut when it is opened.
            self.open = None;
            self.frame = FrameBuilder::new(PackHead::member_time(&self.head.run));
        }
        let (part, frame) = written?;
        let receipt = |capture_id| Receipt {
            capture_id,
            part: part.clone(),
            frame,
        };
        Ok(waiting.into_iter().map(receipt).collect())
    }

    /// Makes durable what waits and gives up the lock.
    ///
    /// # Errors
    /// As [`PartWriter::append`].
    pub fn finish(mut self) -> Result<Vec<Receipt>> {
        self.flush()
    }

    fn write_frame(&mut self) -> Result<(String, u32)> {
        if self
            .open
            .as_ref()
            .is_some_and(|p| p.len >= self.options.part_bytes)
        {
            self.open = None;
        }
        let mut part = match self.open.take() {
            Some(part) => part,
            None => self.create_part()?,
        };
        let number = part.frames;
        let raw = self.frame.take(number)?;
        let mut bytes = Vec::new();
        for piece in raw.chunks(self.options.split_bytes) {
            bytes.extend(self.encoder.encode(piece)?);
            part.frames += 1;
        }
        let path = self.folder.join(&part.name);
        let failed = |e| Error::io("write the part", path.display(), e);
        part.file.write_all(&bytes).map_err(failed)?;
        kill_point("pack.frame_written");
        part.file.sync_data().map_err(failed)?;
        kill_point("pack.frame_durable");
        part.len += bytes.len() as u64;
        let name = part.name.clone();
        self.open = Some(part);
        Ok((name, number))
    }

    /// The first of a few names that is not taken away while it is made: whoever opens the folder removes
    /// files that never got a name.
    fn create_part(&mut self) -> Result<OpenPart> {
        const TRIES: u32 = 5;
        let first = self.encoder.encode(&head_content(&self.head)?)?;
        for _ in 0..TRIES {
            self.sequence += 1;
            if let Some(part) = self.try_create(&first)? {
                kill_point("pack.part_created");
                return Ok(part);
            }
        }
        Err(Error::conflict("a new part was taken away again and again").retryable())
    }

    /// A part gets its name when its first frame is durable and its lock is held, so that whoever sees the
    /// name sees a part, and knows whether its writer lives.
    fn try_create(&self, first: &[u8]) -> Result<Option<OpenPart>> {
        let name = format!("{}-{:06}{PACK_SUFFIX}", self.writer, self.sequence);
        let path = self.folder.join(&name);
        let new = self.folder.join(format!("{name}{NEW_SUFFIX}"));
        let failed = |e| Error::io("create the part", path.display(), e);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&new)
            .map_err(failed)?;
        if !lock(&file, &new)? {
            return Ok(None);
        }
        let written = file.write_all(first).and_then(|()| file.sync_all());
        written.map_err(failed)?;
        match std::fs::rename(&new, &path) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(e)),
        }
        sync_folder(&self.folder)?;
        Ok(Some(OpenPart {
            file,
            name,
            frames: 1,
            len: first.len() as u64,
        }))
    }
}
