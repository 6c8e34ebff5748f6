//! Sealing: all parts of a run become one sorted pack.
//!
//! ```text
//! parts, verified -> spool            every line and body once
//!                 -> reconcile        every `done` terminal has its capture, with its body
//!                 -> sort             kind, URL, time; captures of one body together
//!                 -> encode           frames, tail
//! ```
//!
//! PAK-5: a pack is sealed only when every request that ended `done` has the capture it names, with the answer that the
//! books know. PAK-10: every response of the parts is in the pack; of several with one id the books' own has it, and the
//! others have ids of their own. PAK-3: the same captures and terminals make the same bytes, in whichever parts they lie.
//! Memory holds some hundred bytes a capture and a terminal, whatever their URLs and heads, and one frame.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write;
use std::path::Path;

use crate::error::{Error, Result};
use crate::name::{BodyHash, CaptureId, ContentHash, RequestKey, StageName};
use crate::pack::content::check_body;
use crate::pack::digest::ContentDigest;
use crate::pack::encode::PackEncoder;
use crate::pack::parts::{OpenParts, PartCapture};
use crate::pack::spool::{Place, Spool};
use crate::spec::surt;
use crate::spec::{
    Answer, BodyMark, PackFileName, PackLine, PackProfile, PackTrailer, RunKey, ShortTerminal,
    TerminalLine, TerminalRecord, TerminalState, capture_id, twin_id,
};
use crate::time::Instant;

/// Requests that an error names.
const NAMED_REQUESTS: usize = 20;

/// A capture that goes into the pack.
struct Kept {
    kind: StageName,
    surt: String,
    fetched_at: Instant,
    capture_id: CaptureId,
    request_key: RequestKey,
    attempt: u32,
    hop: u32,
    /// Hash of method and URL.
    asked: [u8; 32],
    has_response: bool,
    answer: Answer,
    body: Option<BodyHash>,
    line: Place,
    line_hash: [u8; 32],
}

/// The captures of the parts: one for each id, and what else came under an id. An attempt has one number; where a queue
/// lost what came before (a power failure, a backup, a deleted file), the number is given again, and the site may have
/// answered otherwise.
#[derive(Default)]
struct Found {
    kept: Vec<Kept>,
    twins: BTreeMap<CaptureId, Twins>,
}

struct Twins {
    /// The place in `kept` of the one that has the id.
    at: usize,
    others: Vec<Kept>,
}

/// What sealing found, before a byte of the pack is written.
pub struct PackPlan {
    run: RunKey,
    profile: PackProfile,
    kept: Vec<Kept>,
    /// The lines of the terminals by request key.
    terminals: Vec<Place>,
    spool: Spool,
    content: ContentHash,
    stats: SealStats,
}

/// Counts of a seal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct SealStats {
    /// Captures in the pack.
    pub captures: u64,
    /// Captures that lay in the parts twice and are kept once.
    pub repeats: u64,
    /// Captures that no terminal names: kept, not parsed.
    pub unnamed: u64,
    /// Terminals.
    pub requests: u64,
    /// Bytes of all bodies before equal ones were joined.
    pub body_bytes: u64,
}

/// Verifies the parts and compares them with the terminals.
///
/// `spool_folder` takes a file of about the size of the parts, which goes when the plan goes.
///
/// # Errors
/// `Conflict` where a part is still being written. `CorruptData` for a damaged part.
/// `PreconditionFailed` where a request that is `done` has no capture, naming the requests.
pub fn plan_pack(
    run: &RunKey,
    parts: &OpenParts,
    terminals: impl Iterator<Item = Result<TerminalRecord>>,
    profile: PackProfile,
    spool_folder: &Path,
) -> Result<PackPlan> {
    let mut spool = Spool::create(spool_folder)?;
    let mut stats = SealStats::default();
    let found = keep_captures(run, parts, &mut spool, &mut stats)?;
    let mut digest = ContentDigest::default();
    let books = Books::new(run, &found, &mut spool, &mut digest);
    let (terminals, named, chosen) = books.read(terminals)?.close()?;
    let Found { mut kept, twins } = found;
    part_twins(&mut kept, twins, &chosen, &mut spool)?;
    stats.requests = terminals.len() as u64;
    stats.captures = kept.len() as u64;
    stats.unnamed = stats.captures - named;
    kept.sort_by(|a, b| a.order().cmp(&b.order()));
    for capture in &kept {
        digest.add_hashed(&capture.capture_id, capture.line_hash);
    }
    Ok(PackPlan {
        run: run.clone(),
        profile,
        kept,
        terminals,
        spool,
        content: digest.finish(run),
        stats,
    })
}

/// The requests that are done and whose response is in no part: what [`plan_pack`] refuses to seal without.
///
/// # Errors
/// Those of [`plan_pack`], but for requests that do not agree.
pub fn find_lost(
    run: &RunKey,
    parts: &OpenParts,
    terminals: impl Iterator<Item = Result<TerminalRecord>>,
    spool_folder: &Path,
) -> Result<BTreeSet<RequestKey>> {
    let mut spool = Spool::create(spool_folder)?;
    let found = keep_captures(run, parts, &mut spool, &mut SealStats::default())?;
    let mut digest = ContentDigest::default();
    let books = Books::new(run, &found, &mut spool, &mut digest);
    Ok(books.read(terminals)?.lost)
}

impl Kept {
    fn order(&self) -> (&StageName, &str, Instant, &CaptureId) {
        (&self.kind, &self.surt, self.fetched_at, &self.capture_id)
    }

    /// Of several that are equal for the books the last one stands.
    fn rank(&self) -> (Instant, [u8; 32]) {
        (self.fetched_at, self.line_hash)
    }

    /// Whether it is what the books know.
    fn answers(&self, known: Answer) -> bool {
        let is_body = known.body.is_none_or(|body| self.answer.body == Some(body));
        let is_status = known.status.is_none_or(|s| self.answer.status == Some(s));
        is_body && is_status
    }
}

/// Reads every part once.
fn keep_captures(
    run: &RunKey,
    parts: &OpenParts,
    spool: &mut Spool,
    stats: &mut SealStats,
) -> Result<Found> {
    if let Some(live) = parts.live.first() {
        return Err(Error::conflict(format!(
            "{} parts of `{run}` are still being written or read",
            parts.live.len()
        ))
        .with("part", live)
        .hint("end the workers of this run first")
        .retryable());
    }
    let mut all = Found::default();
    let mut known: HashMap<CaptureId, usize> = HashMap::new();
    for found in parts.captures() {
        let found = found?;
        let name = || parts.parts.get(found.part).map_or("", |p| p.name.as_str());
        let fresh = keep(&found, spool).map_err(|e| e.with("part", name()))?;
        stats.body_bytes += found.body.len() as u64;
        let Some(index) = known.get(&fresh.capture_id).copied() else {
            known.insert(fresh.capture_id.clone(), all.kept.len());
            all.kept.push(fresh);
            continue;
        };
        let of_id = all.twins.get(&fresh.capture_id);
        let others = of_id.map_or(&[][..], |twins| &twins.others);
        let mut held = all.kept.get(index).into_iter().chain(others);
        if held.any(|k| k.line_hash == fresh.line_hash) {
            stats.repeats += 1;
            continue;
        }
        let twins = all.twins.entry(fresh.capture_id.clone());
        let twins = twins.or_insert_with(|| Twins {
            at: index,
            others: Vec::new(),
        });
        twins.others.push(fresh);
    }
    Ok(all)
}

/// Gives the id to the one that the books chose, else to the latest; the others are held under ids of their own.
fn part_twins(
    kept: &mut Vec<Kept>,
    twins: BTreeMap<CaptureId, Twins>,
    chosen: &BTreeMap<CaptureId, [u8; 32]>,
    spool: &mut Spool,
) -> Result<()> {
    for (id, Twins { at, mut others }) in twins {
        let Some(first) = kept.get_mut(at) else {
            continue;
        };
        let is_better = |k: &Kept, held: &Kept| match chosen.get(&id) {
            Some(line) => k.line_hash == *line,
            None => k.rank() > held.rank(),
        };
        for other in &mut others {
            if is_better(other, first) {
                std::mem::swap(other, first);
            }
        }
        for mut other in others {
            let bytes = spool.read(other.line)?;
            let mut line = PackLine::parse(bytes.trim_ascii_end(), None)?;
            other.capture_id = twin_id(&id, &other.line_hash);
            if let PackLine::Capture(capture) = &mut line {
                capture.capture_id = other.capture_id.clone();
            }
            let bytes = line.to_bytes()?;
            other.line = spool.put_line(&bytes)?;
            other.line_hash = *blake3::hash(&bytes).as_bytes();
            kept.push(other);
        }
    }
    Ok(())
}

fn keep(found: &PartCapture, spool: &mut Spool) -> Result<Kept> {
    let capture = &found.capture;
    let body = capture
        .body_sha256
        .as_ref()
        .filter(|_| capture.body_len > 0);
    if let Some(hash) = body {
        check_body(hash, &found.body)?;
        spool.put_body(hash, &found.body)?;
    }
    Ok(Kept {
        kind: capture.kind.clone(),
        surt: surt(&capture.url),
        fetched_at: capture.fetched_at,
        capture_id: capture.capture_id.clone(),
        request_key: capture.request_key.clone(),
        attempt: capture.attempt,
        hop: capture.hop,
        asked: asked(&capture.method, &capture.url),
        has_response: capture.body_sha256.is_some(),
        answer: Answer {
            status: capture.status,
            body: capture.body_sha256.as_ref().and_then(BodyMark::of),
        },
        body: body.cloned(),
        line: spool.put_line(&found.line)?,
        line_hash: *blake3::hash(&found.line).as_bytes(),
    })
}

/// What is asked for, in the size in which it is kept in memory.
fn asked(method: &str, url: &str) -> [u8; 32] {
    *blake3::hash(format!("{method} {url}").as_bytes()).as_bytes()
}

/// The comparison of the captures with the terminals, which come in any order and are not kept in memory.
struct Books<'a> {
    run: &'a RunKey,
    captures: HashMap<&'a CaptureId, &'a Kept>,
    twins: &'a BTreeMap<CaptureId, Twins>,
    spool: &'a mut Spool,
    digest: &'a mut ContentDigest,
    named: BTreeSet<&'a CaptureId>,
    /// Lines of the captures that the books chose among several with one id.
    chosen: BTreeMap<CaptureId, [u8; 32]>,
    ends: Vec<(RequestKey, Place)>,
    /// The first requests that do not agree, and why.
    wrong: Vec<String>,
    wrong_count: usize,
    /// Those that are done by a response that is in no part.
    lost: BTreeSet<RequestKey>,
}

/// What the comparison gives.
type Closed = (Vec<Place>, u64, BTreeMap<CaptureId, [u8; 32]>);

impl<'a> Books<'a> {
    fn new(
        run: &'a RunKey,
        found: &'a Found,
        spool: &'a mut Spool,
        digest: &'a mut ContentDigest,
    ) -> Self {
        Self {
            run,
            captures: found.kept.iter().map(|k| (&k.capture_id, k)).collect(),
            twins: &found.twins,
            spool,
            digest,
            named: BTreeSet::new(),
            chosen: BTreeMap::new(),
            ends: Vec::new(),
            wrong: Vec::new(),
            wrong_count: 0,
            lost: BTreeSet::new(),
        }
    }

    fn read(mut self, terminals: impl Iterator<Item = Result<TerminalRecord>>) -> Result<Self> {
        for terminal in terminals {
            self.take(&terminal?)?;
        }
        Ok(self)
    }

    /// The capture that the request is done by; `None` for a dead one.
    fn check(&self, terminal: &TerminalRecord) -> Result<Option<&'a Kept>, &'static str> {
        let id = match (terminal.state, &terminal.capture) {
            (TerminalState::Dead, None) => return Ok(None),
            (TerminalState::Dead, Some(_)) => return Err("is dead and names a capture"),
            (TerminalState::Done, None) => return Err("is done and names no capture"),
            (TerminalState::Done, Some(id)) => id,
        };
        let first: &'a Kept = self
            .captures
            .get(id)
            .ok_or("is done, and its capture is in no part")?;
        let others = self.twins.get(id).map_or(&[][..], |twins| &twins.others);
        let mut all: Vec<&'a Kept> = std::iter::once(first).chain(others).collect();
        all.retain(|k| k.request_key == terminal.request_key);
        if all.is_empty() {
            return Err("is done by the capture of another request");
        }
        all.retain(|k| k.has_response);
        if all.is_empty() {
            return Err("is done by a capture without a response");
        }
        all.retain(|k| k.answers(terminal.answer));
        let last = all.into_iter().max_by_key(|k| k.rank());
        last.map(Some)
            .ok_or("is done, and the response that its books tell of is in no part")
    }

    fn take(&mut self, terminal: &TerminalRecord) -> Result<()> {
        match self.check(terminal) {
            Ok(None) => {}
            Ok(Some(capture)) => {
                let id = &capture.capture_id;
                self.named.insert(id);
                if self.twins.contains_key(id) {
                    self.chosen.insert(id.clone(), capture.line_hash);
                }
            }
            Err(what) => {
                let url = &terminal.url;
                if terminal.state == TerminalState::Done {
                    self.lost.insert(terminal.request_key.clone());
                }
                self.note(&terminal.request_key, &format!("{what}: {url}"));
            }
        }
        let full = TerminalLine::Full(terminal.clone());
        self.digest
            .add_terminal(&terminal.request_key, &full.to_bytes()?);
        let line = self.short(terminal).unwrap_or(full);
        let place = self.spool.put_line(&line.to_bytes()?)?;
        self.ends.push((terminal.request_key.clone(), place));
        Ok(())
    }

    fn note(&mut self, key: &RequestKey, what: &str) {
        self.wrong_count += 1;
        if self.wrong.len() < NAMED_REQUESTS {
            self.wrong.push(format!("request `{key}` {what}"));
        }
    }

    /// The terminal without what its captures say; `None` where it says more.
    fn short(&self, terminal: &TerminalRecord) -> Option<TerminalLine> {
        let named = self.captures.get(terminal.capture.as_ref()?)?;
        let short = ShortTerminal {
            request_key: terminal.request_key.clone(),
            attempts: terminal.attempts,
            hop: named.hop,
        };
        let first = capture_id(self.run, &short.request_key, short.attempts, 0);
        // Several may say it, and each otherwise.
        if self.twins.contains_key(&first) || self.twins.contains_key(&named.capture_id) {
            return None;
        }
        let first = self.captures.get(&first)?;
        let says_all = terminal.state == TerminalState::Done
            && terminal.class.is_none()
            && short.capture(self.run) == named.capture_id
            && (first.attempt, first.hop) == (terminal.attempts, 0)
            && first.request_key == terminal.request_key
            && first.kind == terminal.stage
            && first.asked == asked(&terminal.method, &terminal.url);
        says_all.then_some(TerminalLine::Short(short))
    }

    /// The places of the lines by request key, how many captures are named, and which were chosen among several.
    fn close(mut self) -> Result<Closed> {
        let mut ends = std::mem::take(&mut self.ends);
        ends.sort_by(|a, b| a.0.cmp(&b.0));
        for pair in ends.windows(2) {
            if let [(one, _), (other, _)] = pair
                && one == other
            {
                self.note(one, "ends twice");
            }
        }
        if self.wrong.is_empty() {
            let places = ends.into_iter().map(|(_, place)| place).collect();
            return Ok((places, self.named.len() as u64, self.chosen));
        }
        let mut error = Error::precondition(format!(
            "{} requests of the run do not agree with its captures",
            self.wrong_count
        ))
        .with("invariant", "PAK-5")
        .hint("nothing was sealed; a part may be missing from the run's folder, or its tail was torn (`.torn`)");
        for what in &self.wrong {
            error = error.detail(what.clone());
        }
        if self.wrong_count > self.wrong.len() {
            error = error.detail(format!("and {} more", self.wrong_count - self.wrong.len()));
        }
        Err(error)
    }
}

impl PackPlan {
    /// The names of the pack's files.
    #[must_use]
    pub fn file_name(&self) -> PackFileName {
        PackFileName::new(&self.run, &self.content)
    }

    /// Its run.
    #[must_use]
    pub fn run(&self) -> &RunKey {
        &self.run
    }

    /// The identity of what it holds.
    #[must_use]
    pub fn content(&self) -> &ContentHash {
        &self.content
    }

    /// What was counted.
    #[must_use]
    pub fn stats(&self) -> SealStats {
        self.stats
    }

    /// Writes the pack.
    ///
    /// # Errors
    /// `Unavailable` where `out` cannot be written.
    pub fn write<W: Write>(&mut self, out: W) -> Result<(W, PackTrailer)> {
        let mut pack = PackEncoder::begin(out, &self.run, self.profile)?;
        let len = self.terminals.iter().map(|p| p.raw_len()).sum();
        let spool = &mut self.spool;
        let lines = self.terminals.iter().map(|place| spool.read(*place));
        pack.terminals(lines, self.stats.requests, len)?;
        let mut groups: HashMap<&BodyHash, Vec<usize>> = HashMap::new();
        for (index, capture) in self.kept.iter().enumerate() {
            if let Some(hash) = &capture.body {
                groups.entry(hash).or_default().push(index);
            }
        }
        for (index, capture) in self.kept.iter().enumerate() {
            // Captures of one body come where the first of them is.
            let group = match &capture.body {
                Some(hash) => groups.remove(hash).unwrap_or_default(),
                None => vec![index],
            };
            for member in group.iter().filter_map(|i| self.kept.get(*i)) {
                write_one(&mut pack, member, &mut self.spool)?;
            }
        }
        pack.finish(self.content.clone())
    }
}

fn write_one<W: Write>(pack: &mut PackEncoder<W>, capture: &Kept, spool: &mut Spool) -> Result<()> {
    let bytes = spool.read(capture.line)?;
    let line = PackLine::parse(bytes.trim_ascii_end(), None)?;
    pack.capture(&line, &bytes, || match &capture.body {
        Some(hash) => spool.body(hash),
        None => Ok(Vec::new()),
    })
}

#[cfg(test)]
mod tests;
