//! Erasing documents from a pack: their frames are made again without them and filled to their old length,
//! so that every other offset stays wherever that is possible.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;

use crate::error::{Error, Result};
use crate::name::{BodyHash, CaptureId, RequestKey};
use crate::pack::content::{Content, FrameBuilder};
use crate::pack::digest::ContentDigest;
use crate::pack::encode::{FrameTable, TERMINALS_FRAME_BYTES, terminals_content};
use crate::pack::frame::FrameEncoder;
use crate::pack::scan::{PackScan, scan_with};
use crate::pack::source::ReadAt;
use crate::pack::tail::PackTail;
use crate::pack::terminals::{Asked, terminal_record};
use crate::pack::walk::{Step, Unit, step_at};
use crate::spec::{
    ErasedCapture, MAX_FRAME_BYTES, PART_FORMAT, PackHead, PackLine, PackTrailer,
    SKIPPABLE_HEAD_BYTES, TerminalLine, full_line, padding,
};

/// Levels that are tried behind the profile's own, until the frame fits.
const LEVELS: std::ops::RangeInclusive<i32> = 1..=22;

/// What an erasure did.
#[derive(Debug, Clone, serde::Serialize)]
pub struct EraseOutcome {
    /// The captures that were asked for.
    pub erased: Vec<CaptureId>,
    /// Other captures that had one of their bodies: erased with them.
    pub duplicates: Vec<CaptureId>,
    /// Frames that were made again, those of terminals among them.
    pub frames: u32,
    /// Whether a frame did not fit into its old place: what lies behind it has other offsets.
    pub moved: bool,
    /// What the pack says of itself now.
    pub trailer: PackTrailer,
}

/// Writes the pack in `source` without these captures: bodies, URLs and heads are gone, ids and times stay.
///
/// # Errors
/// `NotFound` where a capture is not there or was erased before; `CorruptData` where the pack is damaged.
pub fn erase_captures<W: Write>(
    source: &dyn ReadAt,
    captures: &BTreeSet<CaptureId>,
    out: W,
) -> Result<EraseOutcome> {
    let mut lines = HashMap::new();
    let scan = scan_with(source, None, &mut |unit, placed, _| {
        for line in placed {
            let full = full_line(&line.line, &unit.raw[line.range.clone()]);
            let hash = *blake3::hash(&full).as_bytes();
            lines.insert(line.line.capture_id().clone(), hash);
        }
        Ok(())
    })?;
    scan.check(&source.name())?;
    let Some(head) = scan.head.clone() else {
        return Err(Error::corrupt("the pack has no head"));
    };
    let tail = PackTail::read(source)?;
    let goal = Goal::new(&scan, captures)?;
    let mut erasing = Erasing {
        out,
        head,
        goal,
        lines,
        table: FrameTable::default(),
        frames: 0,
        moved: false,
        bodies_gone: 0,
        terminals: Vec::new(),
    };
    let mut at = 0;
    while at < tail.offset {
        at = erasing.next(source, &tail, &scan, at)?;
    }
    erasing.finish(&scan)
}

/// What is to go.
struct Goal {
    asked: BTreeSet<CaptureId>,
    all: BTreeSet<CaptureId>,
    requests: BTreeSet<RequestKey>,
    /// Where the units begin that hold one of them.
    places: BTreeSet<u64>,
}

impl Goal {
    fn new(scan: &PackScan, asked: &BTreeSet<CaptureId>) -> Result<Self> {
        let mut bodies: BTreeSet<&BodyHash> = BTreeSet::new();
        let mut found = BTreeSet::new();
        for row in scan.rows.iter().filter(|r| asked.contains(&r.capture_id)) {
            if !row.is_erased {
                found.insert(&row.capture_id);
                bodies.extend(row.body_sha256.as_ref().filter(|_| row.body_len > 0));
            }
        }
        if let Some(missing) = asked.iter().find(|id| !found.contains(id)) {
            return Err(Error::not_found(format!(
                "capture `{missing}` is not in the pack, or was erased before"
            )));
        }
        let (mut all, mut requests, mut places) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for row in &scan.rows {
            let shares = row
                .body_sha256
                .as_ref()
                .is_some_and(|hash| bodies.contains(hash));
            if shares || asked.contains(&row.capture_id) {
                all.insert(row.capture_id.clone());
                requests.insert(row.request_key.clone());
                places.insert(row.frame_offset);
            }
        }
        Ok(Self {
            asked: asked.clone(),
            all,
            requests,
            places,
        })
    }
}

struct Erasing<W> {
    out: W,
    head: PackHead,
    goal: Goal,
    /// BLAKE3 of every line as it is written.
    lines: HashMap<CaptureId, [u8; 32]>,
    table: FrameTable,
    frames: u32,
    moved: bool,
    bodies_gone: u64,
    terminals: Vec<TerminalLine>,
}

impl<W: Write> Erasing<W> {
    /// Writes what lies at `at`, as it is or made again; answers where the next begins.
    fn next(
        &mut self,
        source: &dyn ReadAt,
        tail: &PackTail,
        scan: &PackScan,
        at: u64,
    ) -> Result<u64> {
        let is_terminals = scan.terminals_at.is_some_and(|(offset, _)| offset == at);
        if !is_terminals && !self.goal.places.contains(&at) {
            let row = tail
                .find(at)
                .and_then(|i| tail.frames.get(i))
                .map(|(_, row)| *row);
            let row = row.ok_or_else(|| Error::corrupt("the seek table has a hole"))?;
            let frame = source.read_at(at, row.compressed as usize)?;
            self.put(&frame, row.raw as usize)?;
            return Ok(at + u64::from(row.compressed));
        }
        let Some(Step::Unit(unit)) = step_at(source, at)? else {
            return Err(Error::corrupt("the pack changed while it was read"));
        };
        // What an earlier erasure left behind it is its place, too.
        let mut end = unit.end();
        while let Some((_, row)) = tail.find(end).and_then(|i| tail.frames.get(i)) {
            if row.raw > 0 {
                break;
            }
            end += u64::from(row.compressed);
        }
        let place = usize::try_from(end - at)
            .map_err(|e| Error::limit("a frame beyond this machine's memory").caused_by(e))?;
        match is_terminals {
            true => self.terminals(&unit, place)?,
            false => self.captures(&unit, place)?,
        }
        Ok(end)
    }

    fn put(&mut self, frame: &[u8], raw: usize) -> Result<()> {
        self.table.add(frame, raw)?;
        self.out
            .write_all(frame)
            .map_err(|e| Error::io("write the pack", "the new file", e))
    }

    fn terminals(&mut self, unit: &Unit, place: usize) -> Result<()> {
        let Content::Terminals(range) = Content::parse(&unit.raw, Some(&self.head.run))? else {
            return Err(Error::corrupt("the pack changed while it was read"));
        };
        let mut lines = Vec::new();
        for line in unit.raw[range].split_inclusive(|b| *b == b'\n') {
            let mut terminal = TerminalLine::parse(line)?;
            if let TerminalLine::Full(terminal) = &mut terminal
                && self.goal.requests.contains(&terminal.request_key)
            {
                terminal.url.clear();
            }
            lines.extend(terminal.to_bytes()?);
            self.terminals.push(terminal);
        }
        let raw = terminals_content(PackHead::member_time(&self.head.run), &lines)?;
        self.replace(place, &raw, TERMINALS_FRAME_BYTES)
    }

    fn captures(&mut self, unit: &Unit, place: usize) -> Result<()> {
        let Content::Captures {
            number,
            lines,
            bodies,
        } = Content::parse(&unit.raw, Some(&self.head.run))?
        else {
            return Err(Error::corrupt("the pack changed while it was read"));
        };
        let mut frame = FrameBuilder::new(PackHead::member_time(&self.head.run));
        for placed in lines {
            match placed.line {
                PackLine::Capture(capture) if self.goal.all.contains(&capture.capture_id) => {
                    let line = PackLine::Erased(ErasedCapture {
                        erased: true,
                        capture_id: capture.capture_id,
                        request_key: capture.request_key,
                        attempt: capture.attempt,
                        hop: capture.hop,
                        kind: capture.kind,
                        fetched_at: capture.fetched_at,
                        method: (self.head.format != PART_FORMAT).then_some(capture.method),
                    });
                    let bytes = line.to_bytes()?;
                    let hash = *blake3::hash(&bytes).as_bytes();
                    self.lines.insert(line.capture_id().clone(), hash);
                    frame.add(&bytes, None)?;
                }
                line => {
                    let bytes = &unit.raw[placed.range];
                    let content_type = match &line {
                        PackLine::Capture(capture) => capture.content_type.as_deref(),
                        PackLine::Erased(_) => None,
                    };
                    let body = line.body().zip(placed.body);
                    let body =
                        body.map(|((hash, _), range)| (hash, content_type, &unit.raw[range]));
                    frame.add(bytes, body)?;
                }
            }
        }
        self.bodies_gone += (bodies.len() - frame.body_count()) as u64;
        let raw = frame.take(number)?;
        self.replace(place, &raw, MAX_FRAME_BYTES)
    }

    /// Frames of this content, with their filling of exactly `old` bytes where that can be.
    fn replace(&mut self, old: usize, raw: &[u8], split_bytes: usize) -> Result<()> {
        self.frames += 1;
        let levels = std::iter::once(self.head.profile.level()).chain(LEVELS);
        for level in levels {
            match self.encode(raw, split_bytes, level, old) {
                Err(e) if e.kind() == crate::error::ErrorKind::LimitExceeded => {}
                done => return done,
            }
        }
        // Better other offsets than a document that stays.
        self.moved = true;
        let mut encoder = FrameEncoder::new(self.head.profile)?;
        for piece in raw.chunks(split_bytes) {
            self.put(&encoder.encode(piece)?, piece.len())?;
        }
        Ok(())
    }

    fn encode(&mut self, raw: &[u8], split_bytes: usize, level: i32, old: usize) -> Result<()> {
        let mut encoder = FrameEncoder::with_level(self.head.profile, level)?;
        let mut frames = Vec::new();
        for piece in raw.chunks(split_bytes) {
            frames.push((encoder.encode(piece)?, piece.len()));
        }
        let len: usize = frames.iter().map(|(frame, _)| frame.len()).sum();
        let filling = match old.checked_sub(len) {
            Some(0) => None,
            Some(left) if left >= SKIPPABLE_HEAD_BYTES => padding(left),
            _ => return Err(Error::limit("a frame does not fit")),
        };
        for (frame, raw) in &frames {
            self.put(frame, *raw)?;
        }
        filling.map_or(Ok(()), |bytes| self.put(&bytes, 0))
    }

    fn finish(mut self, scan: &PackScan) -> Result<EraseOutcome> {
        let mut digest = ContentDigest::default();
        for row in &scan.rows {
            if let Some(hash) = self.lines.get(&row.capture_id) {
                digest.add_hashed(&row.capture_id, *hash);
            }
        }
        let asked = Asked::new(&scan.rows, &scan.methods).without(&self.goal.all);
        for line in &self.terminals {
            let record = terminal_record(line, &self.head.run, &asked);
            let full = record.map(TerminalLine::Full);
            let full = full.as_ref().unwrap_or(line).to_bytes()?;
            digest.add_terminal(line.request_key(), &full);
        }
        let trailer = PackTrailer {
            content: digest.finish(&self.head.run),
            bodies: scan.trailer.bodies - self.bodies_gone,
            erased: scan.trailer.erased + self.goal.all.len() as u64,
            ..scan.trailer.clone()
        };
        let tail = self.table.tail(&trailer)?;
        self.out
            .write_all(&tail)
            .and_then(|()| self.out.flush())
            .map_err(|e| Error::io("write the pack", "the new file", e))?;
        let duplicates = self.goal.all.difference(&self.goal.asked).cloned();
        Ok(EraseOutcome {
            duplicates: duplicates.collect(),
            erased: self.goal.asked.into_iter().collect(),
            frames: self.frames,
            moved: self.moved,
            trailer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::pack::frame::decode_up_to;
    use crate::pack::samples::{capture, id, key, small_frames};
    use crate::pack::scan::scan_pack;
    use crate::pack::source::MemorySource;

    fn erase(bytes: &[u8], ids: &[u32]) -> Result<(Vec<u8>, EraseOutcome)> {
        let mut out = Vec::new();
        let ids = ids.iter().map(|n| id(*n)).collect();
        let outcome = erase_captures(&MemorySource::new(bytes.to_vec()), &ids, &mut out)?;
        Ok((out, outcome))
    }

    fn contains(haystack: &[u8], needle: &str) -> bool {
        memchr::memmem::find(haystack, needle.as_bytes()).is_some()
    }

    #[test]
    fn a_document_goes_and_every_other_offset_stays() {
        let bytes = small_frames(1..30);
        let before = scan_pack(&MemorySource::new(bytes.clone())).unwrap();
        let (out, outcome) = erase(&bytes, &[5]).unwrap();
        assert_eq!((outcome.erased.len(), outcome.duplicates.len()), (1, 0));
        let after = scan_pack(&MemorySource::new(out.clone())).unwrap();
        after.check("memory").unwrap();
        assert_eq!(after.trailer, outcome.trailer);
        assert_eq!(after.trailer.erased, 1);
        let gone = after.rows.iter().find(|r| r.capture_id == id(5)).unwrap();
        assert!(gone.is_erased && gone.url.is_empty() && gone.is_named);
        let place = |scan: &PackScan, n: u32| {
            let row = scan
                .rows
                .iter()
                .find(|r| r.capture_id == id(n))
                .unwrap()
                .clone();
            (row.frame, row.frame_offset, row.url)
        };
        for n in (1..30).filter(|n| *n != 5) {
            assert_eq!(place(&before, n), place(&after, n), "capture {n}");
        }
        let text = decode_up_to(&out, 1 << 30).unwrap();
        let url = capture(5, b"").url;
        assert!(contains(&decode_up_to(&bytes, 1 << 30).unwrap(), &url));
        assert!(
            !contains(&text, &url),
            "the URL is gone from terminals, too"
        );
        assert!(!contains(&text, "Book 5<"), "the body is gone");
        assert!(
            contains(&text, key(5).as_str()),
            "the request still has its end"
        );
    }

    #[test]
    fn captures_of_the_same_body_go_with_it_and_are_named() {
        let bytes = small_frames(1..40);
        let (out, outcome) = erase(&bytes, &[11]).unwrap();
        let mut expected = vec![id(22), id(33)];
        expected.sort();
        assert_eq!(outcome.duplicates, expected);
        let text = decode_up_to(&out, 1 << 30).unwrap();
        assert!(!contains(&text, "Book 0<"));
        scan_pack(&MemorySource::new(out))
            .unwrap()
            .check("memory")
            .unwrap();
    }

    #[test]
    fn one_erasure_after_another() {
        let mut bytes = small_frames(1..30);
        for (count, n) in [3, 7, 29, 14, 1].into_iter().enumerate() {
            bytes = erase(&bytes, &[n]).unwrap().0;
            let scan = scan_pack(&MemorySource::new(bytes.clone())).unwrap();
            scan.check("memory").unwrap();
            assert_eq!(scan.trailer.erased, count as u64 + 1);
        }
        assert_eq!(erase(&bytes, &[7]).unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(
            erase(&bytes, &[999]).unwrap_err().kind(),
            ErrorKind::NotFound
        );
        let all: Vec<u32> = (1..30)
            .filter(|n| ![3, 7, 29, 14, 1].contains(n) && *n % 11 != 0)
            .collect();
        let (out, outcome) = erase(&bytes, &all).unwrap();
        assert_eq!(outcome.erased.len(), all.len());
        scan_pack(&MemorySource::new(out))
            .unwrap()
            .check("memory")
            .unwrap();
    }

    #[test]
    fn a_damaged_pack_is_not_touched() {
        let mut bytes = small_frames(1..10);
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        assert_eq!(
            erase(&bytes, &[5]).unwrap_err().kind(),
            ErrorKind::CorruptData
        );
    }
}
