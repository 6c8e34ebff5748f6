//! What a frame holds: the lines of its captures, then the bodies they name.
//!
//! ```text
//! m/000007.jsonl     a line a capture
//! b/ab/ab12....html  the body of the first line that has one
//! b/cd/cd34....json  ...
//! ```
//!
//! PAK-2: a frame stands for itself: the body of each of its lines lies in it. So one read gives a capture
//! whole, a damaged frame takes no other capture with it, and an erased document touches no other frame.
//! A body is stored once in a frame; an empty one is not stored.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::name::BodyHash;
use crate::pack::tar;
use crate::spec::{
    CaptureRecord, LONE_BODY_BYTES, MAX_SHARED_LINES_BYTES, PACK_HEAD_NAME, PackHead, PackLine,
    RunKey, TAR_END_BYTES, TERMINALS_NAME, body_member_name, lines_member_name,
    parse_body_member_name, parse_lines_member_name,
};

/// The SHA-256 of a body.
pub fn body_hash(body: &[u8]) -> Result<BodyHash> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(body) {
        hex.push(char::from(DIGITS[usize::from(byte >> 4)]));
        hex.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    hex.parse()
}

/// A frame being filled.
pub(super) struct FrameBuilder {
    lines: Vec<u8>,
    bodies: Vec<u8>,
    held: HashMap<BodyHash, ()>,
    captures: usize,
    time: u64,
}

impl FrameBuilder {
    /// An empty one; `time` stands on its members.
    pub(super) fn new(time: u64) -> Self {
        Self {
            lines: Vec::new(),
            bodies: Vec::new(),
            held: HashMap::new(),
            captures: 0,
            time,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.captures == 0
    }

    /// Bodies it holds, each once.
    pub(super) fn body_count(&self) -> usize {
        self.held.len()
    }

    pub(super) fn holds(&self, hash: &BodyHash) -> bool {
        self.held.contains_key(hash)
    }

    /// Bytes of its content so far.
    pub(super) fn raw_len(&self) -> usize {
        self.lines.len() + self.bodies.len()
    }

    /// Whether it closes before a capture whose body has this hash and length comes in, given the raw bytes
    /// at which its profile closes frames.
    pub(super) fn closes_before(&self, body: Option<(&BodyHash, u64)>, frame_bytes: usize) -> bool {
        if self.is_empty() {
            return false;
        }
        let shares = body.is_some_and(|(hash, _)| self.holds(hash));
        if shares {
            return self.lines.len() >= MAX_SHARED_LINES_BYTES;
        }
        let comes_alone = body.is_some_and(|(_, len)| len > LONE_BODY_BYTES as u64);
        comes_alone || self.bodies.len() > LONE_BODY_BYTES || self.raw_len() >= frame_bytes
    }

    /// Puts in a line, its end included, with its body; `None` for no or an empty body, and where the
    /// frame holds it already.
    pub(super) fn add(
        &mut self,
        line: &[u8],
        body: Option<(&BodyHash, Option<&str>, &[u8])>,
    ) -> Result<()> {
        if let Some((hash, content_type, bytes)) = body
            && !self.holds(hash)
        {
            let name = body_member_name(hash, content_type);
            tar::append(&mut self.bodies, &name, self.time, bytes)?;
            self.held.insert(hash.clone(), ());
        }
        self.lines.extend(line);
        self.captures += 1;
        Ok(())
    }

    /// What a trial compresses: about the content it would have now.
    pub(super) fn sample(&self) -> Vec<u8> {
        [&self.lines[..], &self.bodies[..]].concat()
    }

    /// The content of the frame with this number; the builder is empty then.
    pub(super) fn take(&mut self, number: u32) -> Result<Vec<u8>> {
        let mut raw = Vec::with_capacity(self.raw_len() + 2 * tar::BLOCK);
        tar::append(&mut raw, &lines_member_name(number), self.time, &self.lines)?;
        raw.append(&mut self.bodies);
        self.lines.clear();
        self.held.clear();
        self.captures = 0;
        Ok(raw)
    }
}

/// A line within the content of its frames.
#[derive(Debug, Clone)]
pub(super) struct PlacedLine {
    pub(super) line: PackLine,
    /// The line with its end.
    pub(super) range: Range<usize>,
    /// Its body; `None` for no, an empty or an erased one.
    pub(super) body: Option<Range<usize>>,
}

/// What the content of one or several frames is.
#[derive(Debug)]
pub(super) enum Content {
    Head(Box<PackHead>),
    /// The lines of `TERMINALS.jsonl`.
    Terminals(Range<usize>),
    Captures {
        number: u32,
        lines: Vec<PlacedLine>,
        /// Bodies by their hash, in the order of their places.
        bodies: Vec<(BodyHash, Range<usize>)>,
    },
    End,
}

/// How many bytes the members that begin in `raw` need; more than there are where frames follow.
pub(super) fn needed_bytes(raw: &[u8]) -> Result<usize> {
    if is_end(raw) {
        return Ok(raw.len());
    }
    Ok(tar::members(raw)?.1)
}

fn is_end(raw: &[u8]) -> bool {
    raw.len() == TAR_END_BYTES && raw.iter().all(|b| *b == 0)
}

impl Content {
    /// Reads the content of whole frames of the run's pack or part. Bodies are found, and their bytes not
    /// looked at.
    ///
    /// # Errors
    /// `CorruptData` where it is none that a pack has.
    pub(super) fn parse(raw: &[u8], run: Option<&RunKey>) -> Result<Self> {
        if is_end(raw) {
            return Ok(Self::End);
        }
        let (members, needed) = tar::members(raw)?;
        if needed != raw.len() {
            return Err(Error::corrupt("read a frame: its last member is cut"));
        }
        let Some((first, rest)) = members.split_first() else {
            return Err(Error::corrupt("read a frame: it holds nothing"));
        };
        let content = first.offset..first.offset + first.len;
        match (first.name.as_str(), rest.is_empty()) {
            (PACK_HEAD_NAME, true) => {
                let head = serde_json::from_slice(&raw[content]);
                let bad = |e: serde_json::Error| {
                    Error::corrupt(format!("read `{PACK_HEAD_NAME}`: {e}")).caused_by(e)
                };
                Ok(Self::Head(Box::new(head.map_err(bad)?)))
            }
            (TERMINALS_NAME, true) => Ok(Self::Terminals(content)),
            (name, _) => match parse_lines_member_name(name) {
                Some(number) => {
                    let (lines, bodies) = parse_captures(raw, run, content, rest)?;
                    Ok(Self::Captures {
                        number,
                        lines,
                        bodies,
                    })
                }
                None => Err(Error::corrupt(format!(
                    "read a frame: member `{name}` does not belong there"
                ))),
            },
        }
    }
}

/// A body within the bytes of a frame.
type PlacedBody = (BodyHash, Range<usize>);

/// The lines and bodies of a frame.
fn parse_captures(
    raw: &[u8],
    run: Option<&RunKey>,
    content: Range<usize>,
    members: &[tar::Member],
) -> Result<(Vec<PlacedLine>, Vec<PlacedBody>)> {
    let mut bodies = Vec::with_capacity(members.len());
    let mut known: BTreeMap<BodyHash, Range<usize>> = BTreeMap::new();
    for member in members {
        let range = member.offset..member.offset + member.len;
        let hash = parse_body_member_name(&member.name).filter(|_| member.len > 0);
        let fresh = hash.filter(|hash| known.insert(hash.clone(), range.clone()).is_none());
        let Some(hash) = fresh else {
            let name = &member.name;
            return Err(Error::corrupt(format!(
                "read a frame: member `{name}` does not belong there"
            )));
        };
        bodies.push((hash, range));
    }
    let mut lines = Vec::new();
    let mut at = content.start;
    while at < content.end {
        let Some(end) = memchr::memchr(b'\n', &raw[at..content.end]) else {
            return Err(Error::corrupt("read a frame: its last line has no end"));
        };
        let range = at..at + end + 1;
        let line = PackLine::parse(&raw[at..at + end], run)?;
        let body = find_body(&line, &known)?;
        at = range.end;
        lines.push(PlacedLine { line, range, body });
    }
    Ok((lines, bodies))
}

fn find_body(
    line: &PackLine,
    known: &BTreeMap<BodyHash, Range<usize>>,
) -> Result<Option<Range<usize>>> {
    let Some((hash, len)) = line.body() else {
        return Ok(None);
    };
    let found = known.get(hash).filter(|range| range.len() as u64 == len);
    let Some(range) = found else {
        let id = line.capture_id();
        return Err(
            Error::corrupt(format!("read capture `{id}`: its body is not in its frame"))
                .with("invariant", "PAK-2"),
        );
    };
    Ok(Some(range.clone()))
}

/// Whether the body has its hash.
///
/// # Errors
/// `CorruptData` where it has not.
pub(super) fn check_body(hash: &BodyHash, body: &[u8]) -> Result<()> {
    if body_hash(body)? == *hash {
        return Ok(());
    }
    Err(Error::corrupt(format!(
        "read the body `{hash}`: it does not have this SHA-256"
    )))
}

/// Whether a capture says the truth about the body that comes with it.
///
/// # Errors
/// `InvalidInput` where it does not.
pub(super) fn check_capture(capture: &CaptureRecord, body: &[u8]) -> Result<()> {
    let id = &capture.capture_id;
    let wrong = |what: &str| Err(Error::invalid(format!("capture `{id}` {what}")));
    match &capture.body_sha256 {
        None if body.is_empty() && capture.body_len == 0 => Ok(()),
        None => wrong("has a body and no hash of it"),
        Some(_) if capture.body_len != body.len() as u64 => wrong("has a body of another length"),
        Some(hash) if body_hash(body)? != *hash => wrong("has a body of another SHA-256"),
        Some(_) => Ok(()),
    }
}
