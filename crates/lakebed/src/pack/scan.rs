//! Reading a whole pack or part from its first to its last byte, verifying everything and going on behind
//! what is damaged.
//!
//! Index, verification, repair and erasure all come from this one pass, so they cannot disagree. PAK-6: every
//! byte of a pack is compared with something: frames by their digest and checksum, members by their only
//! possible header, bodies by their SHA-256, the tail by what the frames make of it. A damaged frame costs
//! its own captures and no others.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::error::{Error, Result};
use crate::name::{BodyHash, CaptureId, ContentHash, RequestKey};
use crate::pack::content::{Content, PlacedLine, check_body};
use crate::pack::digest::ContentDigest;
use crate::pack::encode::FrameTable;
use crate::pack::source::ReadAt;
use crate::pack::tail::{PackTail, is_known, newer_format};
use crate::pack::terminals::{Asked, terminal_record};
use crate::pack::walk::{Step, Unit, find_next, step_at};
use crate::spec::surt;
use crate::spec::{
    IndexRow, PACK_FORMAT, PADDING_MAGIC, PART_FORMAT, PackHead, PackKind, PackLine, PackTrailer,
    RunKey, TerminalLine, TerminalRecord, Truncated, full_line,
};

/// Something in a pack that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct PackDamage {
    /// Where it begins in the file.
    pub offset: u64,
    /// In words.
    pub what: String,
}

/// A unit of captures that is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GoodUnit {
    pub(super) number: u32,
    pub(super) offset: u64,
    pub(super) len: u64,
}

/// What a pack or part holds.
#[derive(Debug)]
pub struct PackScan {
    /// What its first member says; `None` where that is damaged.
    pub head: Option<PackHead>,
    /// How every request ended, by request key, without those of whom only a lost capture says more; `None`
    /// where that is damaged, and in a part.
    pub terminals: Option<Vec<TerminalRecord>>,
    /// The rows of its index, in their order.
    pub rows: Vec<IndexRow>,
    /// What its trailer must say.
    pub trailer: PackTrailer,
    /// What is wrong; empty = nothing.
    pub damage: Vec<PackDamage>,
    /// Requests that are done and whose capture is not there.
    pub lost: Vec<RequestKey>,
    pub(super) units: Vec<GoodUnit>,
    /// Offset and length of the terminals' unit.
    pub(super) terminals_at: Option<(u64, u64)>,
    /// Methods of captures that are not `GET`.
    pub(super) methods: HashMap<CaptureId, String>,
}

impl PackScan {
    /// Whether everything is as it must be.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty() && self.lost.is_empty()
    }

    /// The first damage as an error.
    ///
    /// # Errors
    /// `CorruptData` where anything is wrong.
    pub fn check(&self, name: &str) -> Result<()> {
        if self.is_whole() {
            return Ok(());
        }
        let (damaged, lost) = (self.damage.len(), self.lost.len());
        let mut error = Error::corrupt(format!(
            "the pack has {damaged} damaged places, and {lost} requests miss their capture"
        ))
        .with("file", name)
        .hint("`lakebed pack repair` saves what is whole");
        for damage in self.damage.iter().take(10) {
            error = error.detail(format!("at byte {}: {}", damage.offset, damage.what));
        }
        Err(error)
    }
}

/// Reads all of it.
///
/// # Errors
/// Failures of reading, and a newer format; damage is in the answer.
pub fn scan_pack(source: &dyn ReadAt) -> Result<PackScan> {
    scan_with(source, None, &mut |_, _, _| Ok(()))
}

/// Called for every whole unit of captures with its lines and bodies, in order.
pub(super) type Visit<'a> = dyn FnMut(&Unit, &[PlacedLine], &[Body]) -> Result<()> + 'a;
/// A body and where it lies in the content of its unit.
pub(super) type Body = (BodyHash, std::ops::Range<usize>);

/// As [`scan_pack`], showing each whole unit as it is read. `run` is whose pack it is where its head is lost.
pub(super) fn scan_with(
    source: &dyn ReadAt,
    run: Option<&RunKey>,
    visit: &mut Visit<'_>,
) -> Result<PackScan> {
    let tail = PackTail::read(source);
    if let Err(error) = &tail
        && error.kind() == crate::error::ErrorKind::Unavailable
    {
        return Err(tail
            .err()
            .unwrap_or_else(|| Error::internal("a tail without its error")));
    }
    let mut scan = Scanner::new(tail.as_ref().ok(), run);
    let end = scan.tail.map_or(source.size(), |t| t.offset);
    let mut at = 0;
    while at < end {
        let Some(step) = step_at(source, at)? else {
            break;
        };
        at = match step {
            Step::Unit(unit) => scan.unit(source, &unit, visit)?,
            Step::Skippable { len, magic } => scan.skippable(source, at, len, magic)?,
            Step::Cut => scan.bad(source, at, "the file ends within a frame".to_owned(), None)?,
            Step::Bad { error, next } => scan.bad(source, at, error.to_string(), next)?,
        };
    }
    scan.finish(source, tail.as_ref().err())
}

/// State of a scan.
struct Scanner<'a> {
    tail: Option<&'a PackTail>,
    /// Whose pack it is, where neither head nor tail say so.
    given: Option<&'a RunKey>,
    head: Option<PackHead>,
    terminals: Option<Vec<TerminalLine>>,
    terminals_at: Option<(u64, u64)>,
    named: BTreeSet<CaptureId>,
    rows: Vec<IndexRow>,
    units: Vec<GoodUnit>,
    damage: Vec<PackDamage>,
    digest: ContentDigest,
    table: FrameTable,
    seen: HashSet<BodyHash>,
    ids: HashSet<CaptureId>,
    methods: HashMap<CaptureId, String>,
    counts: [u64; 2],
    last_number: Option<u32>,
    has_end: bool,
}

impl<'a> Scanner<'a> {
    fn new(tail: Option<&'a PackTail>, given: Option<&'a RunKey>) -> Self {
        Self {
            tail,
            given,
            methods: HashMap::new(),
            head: None,
            terminals: None,
            terminals_at: None,
            named: BTreeSet::new(),
            rows: Vec::new(),
            units: Vec::new(),
            damage: Vec::new(),
            digest: ContentDigest::default(),
            table: FrameTable::default(),
            seen: HashSet::new(),
            ids: HashSet::new(),
            counts: [0; 2],
            last_number: None,
            has_end: false,
        }
    }

    fn run(&self) -> Option<&RunKey> {
        let told = self.tail.and_then(|t| t.trailer.run.as_ref());
        let head = self.head.as_ref().map(|h| &h.run);
        head.or(told).or(self.given)
    }

    fn note(&mut self, offset: u64, what: impl Into<String>) {
        self.damage.push(PackDamage {
            offset,
            what: what.into(),
        });
    }

    /// Notes damage at `at`; where to go on.
    fn bad(
        &mut self,
        source: &dyn ReadAt,
        at: u64,
        what: String,
        next: Option<u64>,
    ) -> Result<u64> {
        self.note(at, what);
        if let Some(tail) = self.tail {
            return Ok(tail.next_after(at));
        }
        if let Some(next) = next {
            return Ok(next);
        }
        Ok(find_next(source, at + 1)?.unwrap_or_else(|| source.size()))
    }

    fn skippable(&mut self, source: &dyn ReadAt, at: u64, len: u64, magic: u32) -> Result<u64> {
        let length = usize::try_from(len).unwrap_or(usize::MAX);
        let Some(tail) = self.tail else {
            // Without a tail nothing says what it should be; the old trailer and table pass here.
            return Ok(at + len);
        };
        let frame = source.read_at(at, length)?;
        let is_known = tail.find(at).and_then(|i| tail.digests.get(i));
        if magic != PADDING_MAGIC || is_known != Some(blake3::hash(&frame).as_bytes()) {
            return self.bad(source, at, "a skippable frame is damaged".to_owned(), None);
        }
        self.table.add(&frame, 0)?;
        Ok(at + len)
    }

    fn unit(&mut self, source: &dyn ReadAt, unit: &Unit, visit: &mut Visit<'_>) -> Result<u64> {
        let next = Some(unit.end());
        if let Err(error) = self.check_frames(unit) {
            return self.bad(source, unit.offset, error.to_string(), next);
        }
        let content = match Content::parse(&unit.raw, self.run()) {
            Ok(content) => content,
            Err(error) => return self.bad(source, unit.offset, error.to_string(), next),
        };
        let taken = match content {
            Content::Head(head) => self.take_head(unit, *head)?,
            Content::Terminals(range) => self.take_terminals(unit, &unit.raw[range]),
            Content::End => {
                self.has_end = true;
                Ok(())
            }
            Content::Captures {
                number,
                lines,
                bodies,
            } => match self.check_captures(unit, number, &lines, &bodies) {
                Ok(()) => {
                    self.take_captures(unit, number, &lines, bodies.len());
                    visit(unit, &lines, &bodies)?;
                    Ok(())
                }
                Err(error) => Err(error),
            },
        };
        match taken {
            Ok(()) => self.add_frames(unit)?,
            Err(error) => return self.bad(source, unit.offset, error.to_string(), next),
        }
        Ok(unit.end())
    }

    /// Compares the frames of a unit with their digests, where there are any.
    fn check_frames(&self, unit: &Unit) -> Result<()> {
        let Some(tail) = self.tail else {
            return Ok(());
        };
        let Some(first) = tail.find(unit.offset) else {
            return Err(Error::corrupt(
                "a frame begins where the seek table has none",
            ));
        };
        let mut at = 0;
        for index in first..first + unit.frames as usize {
            let (Some((_, row)), Some(digest)) = (tail.frames.get(index), tail.digests.get(index))
            else {
                return Err(Error::corrupt("a frame is not in the seek table"));
            };
            let end = at + row.compressed as usize;
            let frame = unit.bytes.get(at..end).unwrap_or_default();
            if blake3::hash(frame).as_bytes() != digest {
                return Err(Error::corrupt(
                    "a frame does not have the digest of the trailer",
                ));
            }
            at = end;
        }
        match at == unit.bytes.len() {
            true => Ok(()),
            false => Err(Error::corrupt("a frame is longer than the seek table says")),
        }
    }

    /// The rows of a good unit go into the table that is compared with the tail at last.
    fn add_frames(&mut self, unit: &Unit) -> Result<()> {
        match (self.tail, self.tail.and_then(|t| t.find(unit.offset))) {
            (Some(tail), Some(first)) => {
                let mut at = 0;
                for (_, row) in tail.frames.iter().skip(first).take(unit.frames as usize) {
                    let end = at + row.compressed as usize;
                    self.table.add(&unit.bytes[at..end], row.raw as usize)?;
                    at = end;
                }
                // What the rows say of the content must be what it is.
                let sum: u64 = self.table.rows[self.table.rows.len() - unit.frames as usize..]
                    .iter()
                    .map(|row| u64::from(row.raw))
                    .sum();
                if sum != unit.raw.len() as u64 {
                    self.note(
                        unit.offset,
                        "a frame's content is not as long as the seek table says",
                    );
                }
                Ok(())
            }
            _ => self.table.add(&unit.bytes, unit.raw.len()),
        }
    }

    fn take_head(&mut self, unit: &Unit, head: PackHead) -> Result<Result<()>> {
        if !is_known(&head.format) {
            return Err(newer_format(&head.format));
        }
        if unit.offset != 0 || self.head.is_some() {
            return Ok(Err(Error::corrupt("`PACK.json` is not the first member")));
        }
        self.head = Some(head);
        Ok(Ok(()))
    }

    fn take_terminals(&mut self, unit: &Unit, lines: &[u8]) -> Result<()> {
        if self.terminals.is_some() || !self.units.is_empty() {
            return Err(Error::corrupt("`TERMINALS.jsonl` is not the second member"));
        }
        let lines = lines.split_inclusive(|b| *b == b'\n');
        let terminals = lines
            .map(TerminalLine::parse)
            .collect::<Result<Vec<TerminalLine>>>()?;
        for terminal in &terminals {
            let capture = match terminal {
                TerminalLine::Full(terminal) => terminal.capture.clone(),
                TerminalLine::Short(terminal) => self.run().map(|run| terminal.capture(run)),
            };
            self.named.extend(capture);
        }
        self.terminals = Some(terminals);
        self.terminals_at = Some((unit.offset, unit.bytes.len() as u64));
        Ok(())
    }

    fn check_captures(
        &self,
        unit: &Unit,
        number: u32,
        lines: &[PlacedLine],
        bodies: &[Body],
    ) -> Result<()> {
        if self.has_end {
            return Err(Error::corrupt("captures lie behind the end of the tar"));
        }
        if self.last_number.is_some_and(|last| last >= number) {
            return Err(Error::corrupt("the numbers of the frames do not grow"));
        }
        for (hash, range) in bodies {
            check_body(hash, &unit.raw[range.clone()])?;
        }
        let mut own = HashSet::new();
        for line in lines {
            let id = line.line.capture_id();
            if self.ids.contains(id) || !own.insert(id) {
                let is_part = self.head.as_ref().is_some_and(|h| h.kind == PackKind::Part);
                if !is_part {
                    return Err(Error::corrupt(format!("capture `{id}` is there twice")));
                }
            }
        }
        Ok(())
    }

    fn take_captures(&mut self, unit: &Unit, number: u32, lines: &[PlacedLine], bodies: usize) {
        let blake3 = ContentHash::of(&unit.bytes);
        for line in lines {
            let id = line.line.capture_id();
            let full = full_line(&line.line, &unit.raw[line.range.clone()]);
            self.digest.add_capture(id, &full);
            self.ids.insert(id.clone());
            let method = match &line.line {
                PackLine::Capture(capture) => Some(&capture.method),
                PackLine::Erased(capture) => capture.method.as_ref(),
            };
            if let Some(method) = method.filter(|m| *m != "GET") {
                self.methods.insert(id.clone(), method.clone());
            }
            let fresh = line
                .line
                .body()
                .is_some_and(|(h, _)| self.seen.insert(h.clone()));
            let mut row = index_row(unit, number, line, &blake3);
            row.is_duplicate = line.body.is_some() && !fresh;
            row.is_named = self.named.contains(id);
            self.counts[1] += u64::from(row.is_erased);
            self.rows.push(row);
        }
        self.counts[0] += bodies as u64;
        self.last_number = Some(number);
        self.units.push(GoodUnit {
            number,
            offset: unit.offset,
            len: unit.bytes.len() as u64,
        });
    }

    fn finish(mut self, source: &dyn ReadAt, tail_error: Option<&Error>) -> Result<PackScan> {
        self.check_whole(source, tail_error);
        let run = self.run().cloned();
        let (terminals, lost) = self.settle_terminals(run.as_ref())?;
        let content = run
            .as_ref()
            .map(|run| std::mem::take(&mut self.digest).finish(run));
        let told = (self.head.as_ref().map(|h| h.format.as_str()))
            .or(self.tail.map(|t| t.trailer.format.as_str()));
        let format = told.unwrap_or(PACK_FORMAT).to_owned();
        let trailer = PackTrailer {
            run: run.filter(|_| format != PART_FORMAT),
            format,
            content: content.unwrap_or_else(|| ContentHash::of(b"")),
            captures: self.rows.len() as u64,
            bodies: self.counts[0],
            requests: self.terminals.as_ref().map_or(0, Vec::len) as u64,
            erased: self.counts[1],
        };
        if let (true, Some(tail)) = (self.damage.is_empty(), self.tail) {
            let expected = std::mem::take(&mut self.table).tail(&trailer)?;
            if expected != tail.bytes {
                self.note(tail.offset, "the tail does not say what the frames hold");
            }
        }
        self.rows.sort_by(|a, b| a.order().cmp(&b.order()));
        Ok(PackScan {
            head: self.head,
            terminals,
            rows: self.rows,
            trailer,
            damage: self.damage,
            lost,
            units: self.units,
            terminals_at: self.terminals_at,
            methods: self.methods,
        })
    }

    /// Notes what a pack must have and this one lacks.
    fn check_whole(&mut self, source: &dyn ReadAt, tail_error: Option<&Error>) {
        if self.head.is_none() {
            self.note(0, "`PACK.json` is missing or damaged");
        }
        if self.head.as_ref().map(|h| h.kind) == Some(PackKind::Part) {
            return;
        }
        if self.terminals.is_none() {
            self.note(0, "`TERMINALS.jsonl` is missing or damaged");
        }
        if !self.has_end {
            self.note(source.size(), "the end of the tar is missing or damaged");
        }
        if let Some(error) = tail_error {
            self.note(source.size(), error.to_string());
        }
    }

    /// The terminals with what their captures say, and the requests whose capture is lost.
    fn settle_terminals(
        &mut self,
        run: Option<&RunKey>,
    ) -> Result<(Option<Vec<TerminalRecord>>, Vec<RequestKey>)> {
        let Some(lines) = &self.terminals else {
            return Ok((None, Vec::new()));
        };
        let asked = Asked::new(&self.rows, &self.methods);
        let (mut records, mut lost) = (Vec::with_capacity(lines.len()), Vec::new());
        for line in lines {
            let key = line.request_key();
            let record = run.and_then(|run| terminal_record(line, run, &asked));
            let capture = match line {
                TerminalLine::Full(terminal) => terminal.capture.clone(),
                TerminalLine::Short(terminal) => run.map(|run| terminal.capture(run)),
            };
            if capture.is_some_and(|id| !self.ids.contains(&id)) {
                lost.push(key.clone());
            }
            let bytes = match &record {
                Some(record) => TerminalLine::Full(record.clone()).to_bytes()?,
                None => line.to_bytes()?,
            };
            self.digest.add_terminal(key, &bytes);
            records.extend(record);
        }
        Ok((Some(records), lost))
    }
}

fn index_row(unit: &Unit, number: u32, placed: &PlacedLine, blake3: &ContentHash) -> IndexRow {
    let empty = |capture_id: &CaptureId, request_key: &RequestKey| IndexRow {
        capture_id: capture_id.clone(),
        request_key: request_key.clone(),
        attempt: 0,
        hop: 0,
        kind: placed.line.kind().clone(),
        surt: String::new(),
        url: String::new(),
        fetched_at: placed.line.fetched_at(),
        status: None,
        content_type: None,
        truncated: Truncated::None,
        body_sha256: None,
        body_len: 0,
        is_duplicate: false,
        is_named: false,
        is_erased: false,
        frame: number,
        frame_offset: unit.offset,
        frame_len: unit.bytes.len() as u64,
        frame_count: unit.frames,
        frame_blake3: blake3.clone(),
        line_offset: placed.range.start as u64,
        line_len: placed.range.len() as u64,
        body_offset: placed.body.as_ref().map(|range| range.start as u64),
    };
    match &placed.line {
        PackLine::Erased(line) => IndexRow {
            attempt: line.attempt,
            hop: line.hop,
            is_erased: true,
            ..empty(&line.capture_id, &line.request_key)
        },
        PackLine::Capture(line) => IndexRow {
            attempt: line.attempt,
            hop: line.hop,
            surt: surt(&line.url),
            url: line.url.clone(),
            status: line.status,
            content_type: line.content_type.clone(),
            truncated: line.truncated,
            body_sha256: line.body_sha256.clone(),
            body_len: line.body_len,
            ..empty(&line.capture_id, &line.request_key)
        },
    }
}
