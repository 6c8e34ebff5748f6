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
//! bytes a capture and a terminal, and one frame.

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
    PackFileName, PackLine, PackProfile, PackTrailer, RunKey, TerminalRecord, TerminalState,
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
    terminals: Vec<u8>,
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
    let (terminals, named) = reconcile(&kept, terminals, &mut digest, &mut stats)?;
    stats.captures = kept.len() as u64;
    let is_named = |k: &&Kept| named.contains(&k.capture_id);
    stats.unnamed = stats.captures - kept.iter().filter(is_named).count() as u64;
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

/// Reads every part once. Of captures with one id the earliest stays: it is the one that may have been
/// acknowledged before the crash that let it be fetched again.
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
            && rank(&fresh) < rank(held)
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
        has_response: capture.body_sha256.is_some(),
        body: body.cloned(),
        line: spool.put_line(&found.line)?,
        line_hash: *blake3::hash(&found.line).as_bytes(),
    })
}

/// The lines of the terminals by request key, and the captures they name.
fn reconcile(
    kept: &[Kept],
    terminals: impl Iterator<Item = Result<TerminalRecord>>,
    digest: &mut ContentDigest,
    stats: &mut SealStats,
) -> Result<(Vec<u8>, BTreeSet<CaptureId>)> {
    let captures: HashMap<&CaptureId, &Kept> = kept.iter().map(|k| (&k.capture_id, k)).collect();
    let mut terminals = terminals.collect::<Result<Vec<TerminalRecord>>>()?;
    terminals.sort_by(|a, b| a.request_key.cmp(&b.request_key));
    let (mut lines, mut named, mut wrong) = (Vec::new(), BTreeSet::new(), Vec::new());
    let mut last: Option<&RequestKey> = None;
    for terminal in &terminals {
        if last == Some(&terminal.request_key) {
            wrong.push((terminal, "ends twice"));
        }
        last = Some(&terminal.request_key);
        match check_terminal(terminal, &captures) {
            Ok(capture) => named.extend(capture.cloned()),
            Err(what) => wrong.push((terminal, what)),
        }
        let mut line = serde_json::to_vec(terminal)
            .map_err(|e| Error::internal("write a terminal as JSON").caused_by(e))?;
        line.push(b'\n');
        digest.add_terminal(&terminal.request_key, &line);
        lines.extend(line);
    }
    stats.requests = terminals.len() as u64;
    if wrong.is_empty() {
        return Ok((lines, named));
    }
    let mut error = Error::precondition(format!(
        "{} requests of the run do not agree with its captures",
        wrong.len()
    ))
    .with("invariant", "PAK-5")
    .hint("nothing was sealed; a part may be missing from the run's folder, or its tail was torn (`.torn`)")
    .hint("fetch these requests again in a run of their own, or end them as dead");
    for (terminal, what) in wrong.iter().take(NAMED_REQUESTS) {
        let (key, url) = (&terminal.request_key, &terminal.url);
        error = error.detail(format!("request `{key}` {what}: {url}"));
    }
    if wrong.len() > NAMED_REQUESTS {
        error = error.detail(format!("and {} more", wrong.len() - NAMED_REQUESTS));
    }
    Err(error)
}

fn check_terminal<'t>(
    terminal: &'t TerminalRecord,
    captures: &HashMap<&CaptureId, &Kept>,
) -> Result<Option<&'t CaptureId>, &'static str> {
    match (terminal.state, &terminal.capture) {
        (TerminalState::Dead, None) => Ok(None),
        (TerminalState::Dead, Some(_)) => Err("is dead and names a capture"),
        (TerminalState::Done, None) => Err("is done and names no capture"),
        (TerminalState::Done, Some(id)) => match captures.get(id) {
            None => Err("is done, and its capture is in no part"),
            Some(kept) if kept.request_key != terminal.request_key => {
                Err("is done by the capture of another request")
            }
            Some(kept) if !kept.has_response => Err("is done by a capture without a response"),
            Some(_) => Ok(Some(id)),
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
        pack.terminals(&self.terminals, self.stats.requests)?;
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
    let line = PackLine::parse(bytes.trim_ascii_end())?;
    pack.capture(&line, &bytes, || match &capture.body {
        Some(hash) => spool.body(hash),
        None => Ok(Vec::new()),
    })
}

#[cfg(test)]
mod tests;
