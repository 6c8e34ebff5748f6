//! Sealing: all parts of a run become one sorted pack.
//!
//! ```text
//! parts, verified -> spool            every line and body once
//!                 -> reconcile        every `done` terminal has its capture, with its body
//!                 -> sort             kind, URL, time; captures of one body together
//!                 -> encode           frames, tail
//! ```
//!
//! PAK-5: a pack is sealed only when every request that ended `done` has the capture it names. PAK-3: the
//! same captures and terminals make the same bytes, in whichever parts they lie. Memory holds some hundred
//! bytes a capture and a terminal, whatever their URLs and heads, and one frame.

use std::collections::{BTreeSet, HashMap};
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
    PackFileName, PackLine, PackProfile, PackTrailer, RunKey, ShortTerminal, TerminalLine,
    TerminalRecord, TerminalState, capture_id,
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
    body: Option<BodyHash>,
    line: Place,
    line_hash: [u8; 32],
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
    if let Some(live) = parts.live.first() {
        return Err(Error::conflict(format!(
            "{} parts of `{run}` are still being written or read",
            parts.live.len()
        ))
        .with("part", live)
        .hint("end the workers of this run first")
        .retryable());
    }
    let mut spool = Spool::create(spool_folder)?;
    let mut stats = SealStats::default();
    let mut kept = keep_captures(parts, &mut spool, &mut stats)?;
    let mut digest = ContentDigest::default();
    let captures = kept.iter().map(|k| (&k.capture_id, k)).collect();
    let mut books = Books {
        run,
        captures,
        spool: &mut spool,
        digest: &mut digest,
        named: BTreeSet::new(),
        ends: Vec::new(),
        wrong: Vec::new(),
        wrong_count: 0,
    };
    for terminal in terminals {
        books.take(&terminal?)?;
    }
    let (terminals, named) = books.close()?;
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

impl Kept {
    fn order(&self) -> (&StageName, &str, Instant, &CaptureId) {
        (&self.kind, &self.surt, self.fetched_at, &self.capture_id)
    }
}

/// Reads every part once. Of captures with one id the latest stays: an attempt has one number, so the queue lost
/// what came before (a power failure, a backup, a deleted file), and its books tell of the one that came after.
fn keep_captures(parts: &OpenParts, spool: &mut Spool, stats: &mut SealStats) -> Result<Vec<Kept>> {
    let mut kept: Vec<Kept> = Vec::new();
    let mut known: HashMap<CaptureId, usize> = HashMap::new();
    for found in parts.captures() {
        let found = found?;
        let name = || parts.parts.get(found.part).map_or("", |p| p.name.as_str());
        let fresh = keep(&found, spool).map_err(|e| e.with("part", name()))?;
        stats.body_bytes += found.body.len() as u64;
        let Some(index) = known.get(&fresh.capture_id).copied() else {
            known.insert(fresh.capture_id.clone(), kept.len());
            kept.push(fresh);
            continue;
        };
        stats.repeats += 1;
        let rank = |k: &Kept| (k.fetched_at, k.line_hash);
        if let Some(held) = kept.get_mut(index)
            && rank(&fresh) > rank(held)
        {
            *held = fresh;
        }
    }
    Ok(kept)
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
    spool: &'a mut Spool,
    digest: &'a mut ContentDigest,
    named: BTreeSet<&'a CaptureId>,
    ends: Vec<(RequestKey, Place)>,
    /// The first requests that do not agree, and why.
    wrong: Vec<String>,
    wrong_count: usize,
}

impl Books<'_> {
    fn take(&mut self, terminal: &TerminalRecord) -> Result<()> {
        match check_terminal(terminal, &self.captures) {
            Ok(capture) => self.named.extend(capture.map(|k| &k.capture_id)),
            Err(what) => {
                let url = &terminal.url;
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

    /// The places of the lines by request key, and how many captures are named.
    fn close(mut self) -> Result<(Vec<Place>, u64)> {
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
            return Ok((places, self.named.len() as u64));
        }
        let mut error = Error::precondition(format!(
            "{} requests of the run do not agree with its captures",
            self.wrong_count
        ))
        .with("invariant", "PAK-5")
        .hint("nothing was sealed; a part may be missing from the run's folder, or its tail was torn (`.torn`)")
        .hint("fetch these requests again in a run of their own, or end them as dead");
        for what in &self.wrong {
            error = error.detail(what.clone());
        }
        if self.wrong_count > self.wrong.len() {
            error = error.detail(format!("and {} more", self.wrong_count - self.wrong.len()));
        }
        Err(error)
    }
}

fn check_terminal<'k>(
    terminal: &TerminalRecord,
    captures: &HashMap<&CaptureId, &'k Kept>,
) -> Result<Option<&'k Kept>, &'static str> {
    match (terminal.state, &terminal.capture) {
        (TerminalState::Dead, None) => Ok(None),
        (TerminalState::Dead, Some(_)) => Err("is dead and names a capture"),
        (TerminalState::Done, None) => Err("is done and names no capture"),
        (TerminalState::Done, Some(id)) => match captures.get(id).copied() {
            None => Err("is done, and its capture is in no part"),
            Some(kept) if kept.request_key != terminal.request_key => {
                Err("is done by the capture of another request")
            }
            Some(kept) if !kept.has_response => Err("is done by a capture without a response"),
            Some(kept) => Ok(Some(kept)),
        },
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
