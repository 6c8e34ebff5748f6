//! Writing a pack from its first to its last byte: frames in the order they are given, then the end of the
//! tar, the trailer and the seek table.
//!
//! The bytes depend on what is given, its order, the profile and the version of zstd alone (see `seal`).

use std::io::Write;

use crate::error::{Error, Result};
use crate::name::ContentHash;
use crate::pack::content::FrameBuilder;
use crate::pack::frame::FrameEncoder;
use crate::pack::tar;
use crate::spec::{
    MAX_FRAME_BYTES, PACK_FORMAT, PACK_HEAD_NAME, PackHead, PackKind, PackLine, PackProfile,
    PackTrailer, RunKey, SeekRow, TAR_END_BYTES, TERMINALS_NAME, encode_seek_table, encode_trailer,
    short_line,
};

/// Frames of terminals close here.
pub(super) const TERMINALS_FRAME_BYTES: usize = 8 << 20;

/// A pack being written.
pub(super) struct PackEncoder<W> {
    out: W,
    encoder: FrameEncoder,
    run: RunKey,
    profile: PackProfile,
    frame: FrameBuilder,
    table: FrameTable,
    /// Raw and compressed bytes of the data frames so far; of a trial before the first.
    so_far: (u64, u64),
    is_trial: bool,
    split_bytes: usize,
    /// Raw bytes at which frames close, in the place of what the profile says.
    frame_bytes: Option<usize>,
    counts: Counts,
    time: u64,
}

#[derive(Default)]
struct Counts {
    captures: u64,
    bodies: u64,
    requests: u64,
    erased: u64,
}

/// What the tail of a pack says of the frames before it.
#[derive(Debug, Default, Clone)]
pub(super) struct FrameTable {
    pub(super) rows: Vec<SeekRow>,
    pub(super) digests: Vec<[u8; 32]>,
}

impl FrameTable {
    /// A frame as it lies in the file and the bytes of its content; 0 for a skippable one.
    pub(super) fn add(&mut self, frame: &[u8], raw: usize) -> Result<()> {
        let compressed = u32::try_from(frame.len());
        let raw = u32::try_from(raw);
        let (Ok(compressed), Ok(raw)) = (compressed, raw) else {
            return Err(Error::limit("a frame beyond 4 GiB"));
        };
        self.rows.push(SeekRow { compressed, raw });
        self.digests.push(*blake3::hash(frame).as_bytes());
        Ok(())
    }

    /// Trailer and seek table.
    pub(super) fn tail(mut self, trailer: &PackTrailer) -> Result<Vec<u8>> {
        let mut bytes = encode_trailer(trailer, &self.digests)?;
        self.add(&bytes, 0)?;
        bytes.extend(encode_seek_table(&self.rows)?);
        Ok(bytes)
    }
}

/// What `PACK.json` of a sealed pack says.
pub(super) fn pack_head(run: &RunKey, profile: PackProfile) -> PackHead {
    PackHead {
        format: PACK_FORMAT.to_owned(),
        kind: PackKind::Pack,
        run: run.clone(),
        profile,
        zstd: zstd::zstd_safe::version_string().to_owned(),
        writer: None,
    }
}

/// The content of the first frame.
pub(super) fn head_content(head: &PackHead) -> Result<Vec<u8>> {
    let mut json =
        serde_json::to_vec(head).map_err(|e| Error::internal("write PACK.json").caused_by(e))?;
    json.push(b'\n');
    let mut raw = Vec::new();
    let time = PackHead::member_time(&head.run);
    tar::append(&mut raw, PACK_HEAD_NAME, time, &json)?;
    Ok(raw)
}

/// The content of the frames that hold these lines of terminals.
pub(super) fn terminals_content(time: u64, lines: &[u8]) -> Result<Vec<u8>> {
    let mut raw = Vec::with_capacity(lines.len() + 2 * tar::BLOCK);
    tar::append(&mut raw, TERMINALS_NAME, time, lines)?;
    Ok(raw)
}

impl<W: Write> PackEncoder<W> {
    /// Begins a pack; its head is written.
    pub(super) fn begin(out: W, run: &RunKey, profile: PackProfile) -> Result<Self> {
        let time = PackHead::member_time(run);
        let mut pack = Self {
            out,
            encoder: FrameEncoder::new(profile)?,
            run: run.clone(),
            profile,
            frame: FrameBuilder::new(time),
            table: FrameTable::default(),
            so_far: (0, 0),
            is_trial: false,
            split_bytes: MAX_FRAME_BYTES,
            frame_bytes: None,
            counts: Counts::default(),
            time,
        };
        pack.write(&head_content(&pack_head(run, profile))?, MAX_FRAME_BYTES)?;
        Ok(pack)
    }

    /// Cuts contents into frames of this many raw bytes at most.
    #[cfg(test)]
    pub(super) fn split_at(mut self, bytes: usize) -> Self {
        self.split_bytes = bytes;
        self
    }

    /// Closes frames at this many raw bytes.
    #[cfg(test)]
    pub(super) fn close_at(mut self, bytes: usize) -> Self {
        self.frame_bytes = Some(bytes);
        self
    }

    /// The lines of all terminals, by request key: `len` bytes in all.
    pub(super) fn terminals(
        &mut self,
        lines: impl Iterator<Item = Result<Vec<u8>>>,
        requests: u64,
        len: u64,
    ) -> Result<()> {
        self.counts.requests = requests;
        let mut raw = tar::header(TERMINALS_NAME, self.time, len)?.to_vec();
        let mut left = len;
        for line in lines {
            let line = line?;
            left = left
                .checked_sub(line.len() as u64)
                .ok_or_else(wrong_length)?;
            raw.extend(line);
            while raw.len() >= TERMINALS_FRAME_BYTES {
                let rest = raw.split_off(TERMINALS_FRAME_BYTES);
                self.write(&raw, TERMINALS_FRAME_BYTES)?;
                raw = rest;
            }
        }
        if left > 0 {
            return Err(wrong_length());
        }
        let filling = len.next_multiple_of(tar::BLOCK as u64) - len;
        raw.resize(raw.len() + usize::try_from(filling).unwrap_or(0), 0);
        self.write(&raw, TERMINALS_FRAME_BYTES)?;
        Ok(())
    }

    /// The next capture with its full line; `body` is asked for where it is not in the frame yet.
    pub(super) fn capture(
        &mut self,
        line: &PackLine,
        full: &[u8],
        body: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<()> {
        let named = line.body();
        if self.frame.closes_before(named, self.frame_bytes())
            && (!self.learn()? || self.frame.closes_before(named, self.frame_bytes()))
        {
            self.close_frame()?;
        }
        let bytes = &short_line(line, full, &self.run);
        match (named, line) {
            (Some((hash, _)), PackLine::Capture(capture)) if !self.frame.holds(hash) => {
                let body = body()?;
                let content_type = capture.content_type.as_deref();
                self.frame.add(bytes, Some((hash, content_type, &body)))?;
            }
            (_, line) => {
                self.counts.erased += u64::from(matches!(line, PackLine::Erased(_)));
                self.frame.add(bytes, None)?;
            }
        }
        self.counts.captures += 1;
        Ok(())
    }

    fn frame_bytes(&self) -> usize {
        let (raw, compressed) = self.so_far;
        self.frame_bytes
            .unwrap_or_else(|| self.profile.frame_bytes(raw, compressed))
    }

    /// Compresses what the first frame holds for trial: no frame before it says what to expect. Whether that
    /// was done.
    fn learn(&mut self) -> Result<bool> {
        if self.so_far.1 > 0 || self.profile != PackProfile::Std || self.frame_bytes.is_some() {
            return Ok(false);
        }
        let raw = self.frame.sample();
        self.so_far = (raw.len() as u64, self.encoder.encode(&raw)?.len() as u64);
        self.is_trial = true;
        Ok(true)
    }

    fn close_frame(&mut self) -> Result<()> {
        if self.frame.is_empty() {
            return Ok(());
        }
        self.counts.bodies += self.frame.body_count() as u64;
        let number = u32::try_from(self.table.rows.len())
            .map_err(|e| Error::limit("more frames than a pack can count").caused_by(e))?;
        let raw = self.frame.take(number)?;
        let compressed = self.write(&raw, self.split_bytes)?;
        if self.is_trial {
            (self.is_trial, self.so_far) = (false, (0, 0));
        }
        self.so_far.0 += raw.len() as u64;
        self.so_far.1 += compressed;
        Ok(())
    }

    fn write(&mut self, raw: &[u8], split_bytes: usize) -> Result<u64> {
        let mut written = 0;
        for piece in raw.chunks(split_bytes) {
            let frame = self.encoder.encode(piece)?;
            self.table.add(&frame, piece.len())?;
            self.put(&frame)?;
            written += frame.len() as u64;
        }
        Ok(written)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out
            .write_all(bytes)
            .map_err(|e| Error::io("write the pack", "the staged file", e))
    }

    /// Ends the pack; the writer comes back with what the trailer says.
    pub(super) fn finish(mut self, content: ContentHash) -> Result<(W, PackTrailer)> {
        self.close_frame()?;
        self.write(&[0; TAR_END_BYTES], MAX_FRAME_BYTES)?;
        let trailer = PackTrailer {
            format: PACK_FORMAT.to_owned(),
            run: Some(self.run.clone()),
            content,
            captures: self.counts.captures,
            bodies: self.counts.bodies,
            requests: self.counts.requests,
            erased: self.counts.erased,
        };
        let tail = std::mem::take(&mut self.table).tail(&trailer)?;
        self.put(&tail)?;
        Ok((self.out, trailer))
    }
}

fn wrong_length() -> Error {
    Error::internal("the terminals are not as long as was said")
}
