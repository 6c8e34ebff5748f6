//! The frames of a part or pack one after another: each with its place, and those that belong together
//! joined to a unit.
//!
//! A unit is one frame, or several where a body is too large for one. Nothing of a unit is believed before
//! all of its frames were decoded and its members read.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::pack::content::needed_bytes;
use crate::pack::frame::{Shape, decode, shape_at};
use crate::pack::source::ReadAt;
use crate::spec::MAX_BODY_BYTES;

/// Content of a unit at most: a body of the largest size with its lines.
const MAX_UNIT_BYTES: usize = 3 << 30;

/// One frame or several that hold whole members together.
#[derive(Debug)]
pub(super) struct Unit {
    /// Where its first frame begins.
    pub(super) offset: u64,
    /// Its frames as they lie in the file.
    pub(super) bytes: Bytes,
    /// How many frames these are.
    pub(super) frames: u32,
    /// Their content.
    pub(super) raw: Bytes,
}

impl Unit {
    /// The offset behind it.
    pub(super) fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// What was found at a place.
#[derive(Debug)]
pub(super) enum Step {
    Unit(Box<Unit>),
    /// Passed over by readers.
    Skippable {
        len: u64,
        magic: u32,
    },
    /// The file's end cuts what begins here.
    Cut,
    /// It cannot be believed; where the next frame begins by its blocks, if they can be walked.
    Bad {
        error: Error,
        next: Option<u64>,
    },
}

/// What begins at `offset`, decoded; `None` at the end of the file.
///
/// # Errors
/// Failures of reading alone: what the bytes are is in the answer.
pub(super) fn step_at(source: &dyn ReadAt, offset: u64) -> Result<Option<Step>> {
    if offset >= source.size() {
        return Ok(None);
    }
    let (mut bytes, mut raw, mut frames) = (Vec::new(), Vec::new(), 0_u32);
    let mut at = offset;
    loop {
        let (len, size) = match shape_at(source, at)? {
            Shape::Data { len, raw } => (len, raw),
            Shape::Skippable { len, magic } if frames == 0 => {
                return Ok(Some(Step::Skippable { len, magic }));
            }
            Shape::Cut => return Ok(Some(Step::Cut)),
            Shape::Skippable { .. } => return Ok(Some(bad(cut_member(), Some(at)))),
            Shape::Bad(what) => return Ok(Some(bad(Error::corrupt(what), None))),
        };
        let next = Some(at + len);
        let length = usize::try_from(len).unwrap_or(usize::MAX);
        let frame = source.read_at(at, length)?;
        let content = match decode(&frame, size) {
            Ok(content) => content,
            Err(error) => return Ok(Some(bad(error, next))),
        };
        frames += 1;
        at += len;
        let first = bytes.is_empty();
        join(&mut bytes, frame.into());
        join(&mut raw, content);
        let needed = match needed_bytes(&raw) {
            Ok(needed) => needed,
            Err(error) => return Ok(Some(bad(error, next.filter(|_| first)))),
        };
        if needed <= raw.len() {
            return Ok(Some(Step::Unit(Box::new(Unit {
                offset,
                bytes: bytes.into(),
                frames,
                raw: raw.into(),
            }))));
        }
        if needed > MAX_UNIT_BYTES {
            let error = Error::limit(format!("a member beyond {MAX_BODY_BYTES} bytes"));
            return Ok(Some(bad(error, next)));
        }
        if at >= source.size() {
            return Ok(Some(Step::Cut));
        }
    }
}

fn cut_member() -> Error {
    Error::corrupt("a member does not go on in the next frame")
}

fn bad(error: Error, next: Option<u64>) -> Step {
    Step::Bad { error, next }
}

/// Appends without a copy where there is nothing yet.
fn join(to: &mut Vec<u8>, more: Vec<u8>) {
    if to.is_empty() {
        *to = more;
    } else {
        to.extend(more);
    }
}

/// The first place from `from` on where a whole, sound frame begins; `None` where none follows.
pub(super) fn find_next(source: &dyn ReadAt, from: u64) -> Result<Option<u64>> {
    const PIECE: u64 = 1 << 20;
    let mut at = from;
    while at < source.size() {
        let length = (source.size() - at).min(PIECE + 3);
        let piece = source.read_at(at, usize::try_from(length).unwrap_or(0))?;
        for magic in memchr::memmem::find_iter(&piece, &[0x28, 0xB5, 0x2F, 0xFD]) {
            let place = at + magic as u64;
            if magic as u64 >= PIECE {
                break;
            }
            if let Some(Step::Unit(_)) = step_at(source, place)? {
                return Ok(Some(place));
            }
        }
        at += PIECE;
    }
    Ok(None)
}
