//! Reading from a pack: one capture by one ranged read, or all of them in order.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::name::{CaptureId, ContentHash, RequestKey};
use crate::pack::content::{Content, check_body};
use crate::pack::frame::decode_up_to;
use crate::pack::index::PackIndex;
use crate::pack::scan::{PackScan, scan_pack};
use crate::pack::source::{FileSource, ReadAt};
use crate::pack::tail::PackTail;
use crate::pack::walk::{Step, Unit, step_at};
use crate::spec::{
    CaptureRecord, IndexRow, MAX_BODY_BYTES, MAX_FRAME_BYTES, PACK_INDEX_SUFFIX, PACK_SUFFIX,
    PackLine, PackTrailer, RunKey,
};

/// A response with its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The response.
    pub capture: CaptureRecord,
    /// Its body as it is kept; empty where there is none.
    pub body: Bytes,
}

/// A pack that is read, with its index where it has one.
#[derive(Debug)]
pub struct PackReader {
    source: Arc<dyn ReadAt>,
    tail: PackTail,
    index: Option<PackIndex>,
}

impl PackReader {
    /// Opens the pack at `path` and the index beside it, if that is there.
    ///
    /// # Errors
    /// `CorruptData` where its tail is damaged, or the index is of another pack.
    pub fn open(path: &Path) -> Result<Self> {
        let source = Arc::new(FileSource::open(path)?);
        let name = path
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or_default();
        let index = match name.strip_suffix(PACK_SUFFIX) {
            Some(stem) => {
                let path = path.with_file_name(format!("{stem}{PACK_INDEX_SUFFIX}"));
                match PackIndex::open(&path) {
                    Ok(index) => Some(index),
                    Err(e) if e.kind() == ErrorKind::NotFound => None,
                    Err(e) => return Err(e),
                }
            }
            None => None,
        };
        Self::new(source, index)
    }

    /// Reads from any source.
    ///
    /// # Errors
    /// `CorruptData` where its tail is damaged, or the index is of another pack.
    pub fn new(source: Arc<dyn ReadAt>, index: Option<PackIndex>) -> Result<Self> {
        let tail = PackTail::read(&*source)?;
        let content = index.as_ref().and_then(PackIndex::content);
        if index.is_some() && content.as_ref() != Some(&tail.trailer.content) {
            return Err(Error::corrupt("the index is of another pack")
                .with("file", source.name())
                .hint("make it again: `lakebed pack verify --reindex`"));
        }
        Ok(Self {
            source,
            tail,
            index,
        })
    }

    /// What the pack says of itself as a whole.
    #[must_use]
    pub fn trailer(&self) -> &PackTrailer {
        &self.tail.trailer
    }

    /// Whose pack it is, where its lines need it.
    fn run(&self) -> Option<&RunKey> {
        self.tail.trailer.run.as_ref()
    }

    /// Where its bytes come from.
    #[must_use]
    pub fn source(&self) -> &dyn ReadAt {
        &*self.source
    }

    /// Its index.
    ///
    /// # Errors
    /// `NotFound` where it has none.
    pub fn index(&self) -> Result<&PackIndex> {
        self.index.as_ref().ok_or_else(|| {
            Error::not_found("the pack has no index beside it")
                .with("file", self.source.name())
                .hint("make it: `lakebed pack verify --reindex`")
        })
    }

    /// A capture: one ranged read, verified.
    ///
    /// # Errors
    /// `NotFound` where it is not in the pack, or was erased; `CorruptData` where its frame is damaged.
    pub fn get(&self, id: &CaptureId) -> Result<Capture> {
        match self.index()?.find_capture(id)? {
            Some(row) => self.read(&row),
            None => Err(
                Error::not_found(format!("capture `{id}` is not in the pack"))
                    .with("file", self.source.name()),
            ),
        }
    }

    /// All captures of a request, one ranged read each; erased ones are left out.
    ///
    /// # Errors
    /// `CorruptData` where a frame is damaged.
    pub fn get_request(&self, key: &RequestKey) -> Result<Vec<Capture>> {
        let rows = self.index()?.find_request(key)?;
        let whole = rows.iter().filter(|row| !row.is_erased);
        whole.map(|row| self.read(row)).collect()
    }

    /// The capture of an index row: one ranged read of its frames, compared with their BLAKE3. They are
    /// unpacked up to the end of its body alone, and the body is compared with its SHA-256.
    ///
    /// # Errors
    /// `NotFound` for an erased capture; `CorruptData` where the frames are not what the row says.
    pub fn read(&self, row: &IndexRow) -> Result<Capture> {
        let id = &row.capture_id;
        if row.is_erased {
            return Err(Error::not_found(format!("capture `{id}` was erased")));
        }
        let end = match row.body_offset {
            None => row.line_offset.saturating_add(row.line_len),
            Some(at) => at.saturating_add(row.body_len),
        };
        let bad = |what: &str| {
            Error::corrupt(format!("read capture `{id}`: {what}")).with("file", self.source.name())
        };
        let limit = MAX_BODY_BYTES + MAX_FRAME_BYTES as u64;
        let sizes = (usize::try_from(row.frame_len), usize::try_from(end));
        let (Ok(length), Ok(end), true) = (sizes.0, sizes.1, end <= limit) else {
            return Err(bad("the index has sizes that no pack has"));
        };
        let frames = self.source.read_at(row.frame_offset, length)?;
        if ContentHash::of(&frames) != row.frame_blake3 {
            return Err(bad("its frame is damaged"));
        }
        let raw = Bytes::from(decode_up_to(&frames, end)?);
        let part = |at: u64, len: u64| {
            let begin = usize::try_from(at).ok()?;
            let end = begin.checked_add(usize::try_from(len).ok()?)?;
            (end <= raw.len()).then(|| raw.slice(begin..end))
        };
        let line =
            part(row.line_offset, row.line_len).ok_or_else(|| bad("its line is not there"))?;
        let PackLine::Capture(capture) = PackLine::parse(line.trim_ascii_end(), self.run())? else {
            return Err(bad("the index says nothing of its erasure"));
        };
        if capture.capture_id != *id {
            return Err(bad("another capture lies where the index says"));
        }
        let body = match row.body_offset {
            None => Bytes::new(),
            Some(at) => part(at, row.body_len).ok_or_else(|| bad("its body is not there"))?,
        };
        if let Some(hash) = &capture.body_sha256 {
            check_body(hash, &body)?;
        }
        Ok(Capture {
            capture: *capture,
            body,
        })
    }

    /// Reads and verifies all of it.
    pub fn scan(&self) -> Result<PackScan> {
        scan_pack(&*self.source)
    }

    /// All captures in the order of the pack, each verified: frames by digest and checksum, bodies by
    /// SHA-256. Erased ones are left out.
    pub fn replay(&self) -> impl Iterator<Item = Result<Capture>> + '_ {
        let mut at = 0;
        let units = std::iter::from_fn(move || {
            while at < self.tail.offset {
                match self.next_unit(at) {
                    Ok((next, None)) => at = next,
                    Ok((next, Some(unit))) => {
                        at = next;
                        return Some(Ok(unit));
                    }
                    Err(error) => {
                        at = u64::MAX;
                        return Some(Err(error));
                    }
                }
            }
            None
        });
        units.flat_map(
            |unit| match unit.and_then(|unit| captures_of(&unit, self.run())) {
                Ok(captures) => captures.into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            },
        )
    }

    /// What follows `at`: the next offset, and the unit that lies there.
    fn next_unit(&self, at: u64) -> Result<(u64, Option<Unit>)> {
        let damaged = |what: &str| {
            Error::corrupt(format!("read the pack: {what}"))
                .with("file", self.source.name())
                .with("offset", at)
                .hint("`lakebed pack repair` saves what is whole")
        };
        match step_at(&*self.source, at)? {
            Some(Step::Unit(unit)) => {
                let first = self.tail.find(at);
                let digest = first.and_then(|i| self.tail.digests.get(i));
                let is_one = unit.frames == 1;
                if is_one && digest != Some(blake3::hash(&unit.bytes).as_bytes()) {
                    return Err(damaged("a frame does not have the digest of the trailer"));
                }
                Ok((unit.end(), Some(*unit)))
            }
            Some(Step::Skippable { len, .. }) => Ok((at + len, None)),
            Some(Step::Bad { error, .. }) => Err(damaged(&error.to_string()).caused_by(error)),
            Some(Step::Cut) | None => Err(damaged("it ends within a frame")),
        }
    }
}

fn captures_of(unit: &Unit, run: Option<&RunKey>) -> Result<Vec<Capture>> {
    let Content::Captures { lines, bodies, .. } = Content::parse(&unit.raw, run)? else {
        return Ok(Vec::new());
    };
    for (hash, range) in &bodies {
        check_body(hash, &unit.raw[range.clone()])?;
    }
    let mut captures = Vec::with_capacity(lines.len());
    for placed in lines {
        if let PackLine::Capture(capture) = placed.line {
            let body = placed
                .body
                .map_or_else(Bytes::new, |range| unit.raw.slice(range));
            captures.push(Capture {
                capture: *capture,
                body,
            });
        }
    }
    Ok(captures)
}

#[cfg(test)]
mod tests;
