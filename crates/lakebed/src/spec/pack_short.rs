//! What the lines of a pack leave out because it can be computed again: ids are half of what a short line
//! costs once it is compressed, and no compressor finds them again.
//!
//! ```text
//! full   {"capture_id":"...","request_key":"...","attempt":1,...   as parts hold it, and packs of rawpack/1
//! short  {"request_key":"...","attempt":1,...                      the id is `capture/1` of run, key, attempt, hop
//!        {"attempt":1,...                                          and the key is `request/1` of kind, method, URL, body
//! ```
//!
//! A terminal that says no more than its captures do is `{"request_key":"..."}`. Identities are made of full lines,
//! so they do not depend on how a pack is written.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::name::{CaptureId, RequestKey};
use crate::spec::{CaptureRecord, PackLine, RunKey, TerminalRecord, capture_id, request_key};

const ERASED: &[u8] = b"{\"erased\":true,";
const ID_FIELD: &[u8] = b"{\"capture_id\":\"";
const KEY_FIELD: &[u8] = b"{\"request_key\":\"";
/// Bytes of `"capture_id":"<32 digits>",` and of `"request_key":"<32 digits>",`.
const ID_BYTES: usize = 48;
const KEY_BYTES: usize = 49;
/// Stands where an id is put in after reading.
const NO_ID: &str = "00000000000000000000000000000000";

impl CaptureRecord {
    fn own_key(&self) -> RequestKey {
        let body = self.request_body.as_ref().map(|b| b.0.as_slice());
        request_key(&self.kind, &self.method, &self.url, body)
    }
}

/// The line as a pack stores it, given the full one.
#[must_use]
pub fn short_line<'a>(line: &PackLine, full: &'a [u8], run: &RunKey) -> Cow<'a, [u8]> {
    let PackLine::Capture(capture) = line else {
        return Cow::Borrowed(full);
    };
    let id = capture_id(run, &capture.request_key, capture.attempt, capture.hop);
    if id != capture.capture_id || !full.starts_with(ID_FIELD) {
        return Cow::Borrowed(full);
    }
    let left_out = match capture.own_key() == capture.request_key {
        true => ID_BYTES + KEY_BYTES,
        false => ID_BYTES,
    };
    let rest = full.get(1 + left_out..).unwrap_or_default();
    Cow::Owned([b"{", rest].concat())
}

/// The full line of what a pack stores.
#[must_use]
pub fn full_line<'a>(line: &PackLine, stored: &'a [u8]) -> Cow<'a, [u8]> {
    let PackLine::Capture(capture) = line else {
        return Cow::Borrowed(stored);
    };
    if stored.starts_with(ID_FIELD) {
        return Cow::Borrowed(stored);
    }
    Cow::Owned(with_ids(stored, &capture.capture_id, &capture.request_key))
}

fn with_ids(stored: &[u8], id: &CaptureId, key: &RequestKey) -> Vec<u8> {
    let mut full = format!("{{\"capture_id\":\"{id}\",").into_bytes();
    if !stored.starts_with(KEY_FIELD) {
        full.extend(format!("\"request_key\":\"{key}\",").bytes());
    }
    full.extend(stored.get(1..).unwrap_or_default());
    full
}

impl PackLine {
    /// Reads a line of the run's pack or part, without its end; what it leaves out is computed.
    ///
    /// # Errors
    /// `CorruptData` for anything else, and for a short line where nothing says whose pack it is.
    pub fn parse(line: &[u8], run: Option<&RunKey>) -> Result<Self> {
        let bad =
            |e: serde_json::Error| Error::corrupt(format!("read a capture: {e}")).caused_by(e);
        // Not by trying both forms: the error of the one that is meant must survive.
        if line.starts_with(ERASED) {
            return serde_json::from_slice(line).map(Self::Erased).map_err(bad);
        }
        if line.starts_with(ID_FIELD) || !line.starts_with(b"{\"") {
            let capture = serde_json::from_slice(line).map_err(bad)?;
            return Ok(Self::Capture(Box::new(capture)));
        }
        let Some(run) = run else {
            return Err(Error::corrupt(
                "read a capture: its line is short, and nothing says whose pack this is",
            ));
        };
        let (id, key) = (NO_ID.parse()?, NO_ID.parse()?);
        let full = with_ids(line, &id, &key);
        let mut capture: CaptureRecord = serde_json::from_slice(&full).map_err(bad)?;
        if !line.starts_with(KEY_FIELD) {
            capture.request_key = capture.own_key();
        }
        capture.capture_id = capture_id(run, &capture.request_key, capture.attempt, capture.hop);
        Ok(Self::Capture(Box::new(capture)))
    }
}

/// A line of `TERMINALS.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalLine {
    /// Everything about it.
    Full(TerminalRecord),
    /// Done, and the rest is what its captures say.
    Short(ShortTerminal),
}

/// The end of a request that is `done`: the capture is the one of this attempt and hop, stage, method and URL
/// are those of hop 0 of the attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShortTerminal {
    /// Which request.
    pub request_key: RequestKey,
    /// Attempts that were made; absent = 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub attempts: u32,
    /// The hop of its capture; absent = 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hop: u32,
}

fn one() -> u32 {
    1
}

fn is_one(n: &u32) -> bool {
    *n == 1
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl ShortTerminal {
    /// The capture that made the request `done`.
    #[must_use]
    pub fn capture(&self, run: &RunKey) -> CaptureId {
        capture_id(run, &self.request_key, self.attempts, self.hop)
    }
}

impl TerminalLine {
    /// Which request.
    #[must_use]
    pub fn request_key(&self) -> &RequestKey {
        match self {
            Self::Full(terminal) => &terminal.request_key,
            Self::Short(terminal) => &terminal.request_key,
        }
    }

    /// The line as it is written, with its end.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let json = match self {
            Self::Full(terminal) => serde_json::to_vec(terminal),
            Self::Short(terminal) => serde_json::to_vec(terminal),
        };
        let mut bytes =
            json.map_err(|e| Error::internal("write a terminal as JSON").caused_by(e))?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads a line.
    ///
    /// # Errors
    /// `CorruptData` for anything else.
    pub fn parse(line: &[u8]) -> Result<Self> {
        let is_full = line
            .get(KEY_BYTES + 1..)
            .is_some_and(|l| l.starts_with(b"\"stage\""));
        let parsed = match is_full {
            true => serde_json::from_slice(line).map(Self::Full),
            false => serde_json::from_slice(line).map(Self::Short),
        };
        parsed.map_err(|e| Error::corrupt(format!("read a terminal: {e}")).caused_by(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{RawText, TerminalState};

    fn run() -> RunKey {
        RunKey {
            source: "books".parse().unwrap(),
            date: "2026-11-30".parse().unwrap(),
            run: "day".parse().unwrap(),
        }
    }

    fn capture(body: Option<&[u8]>) -> CaptureRecord {
        let full = br#"{"capture_id":"00000000000000000000000000000000","request_key":"00000000000000000000000000000000","attempt":2,"hop":1,"kind":"detail","method":"POST","url":"https://x.example/","fetched_at":"2026-11-30T00:00:00.000000Z","wire_len":0,"body_len":0}"#;
        let mut capture: CaptureRecord = serde_json::from_slice(full).unwrap();
        capture.request_body = body.map(|b| RawText(b.to_vec()));
        capture
    }

    fn whole(mut capture: CaptureRecord, key: Option<RequestKey>) -> PackLine {
        capture.request_key = key.unwrap_or_else(|| capture.own_key());
        capture.capture_id = capture_id(&run(), &capture.request_key, capture.attempt, capture.hop);
        PackLine::Capture(Box::new(capture))
    }

    #[test]
    fn short_lines_come_back_whole() {
        let foreign = RequestKey::of(b"another rule");
        for body in [None, Some(&b"a=1"[..]), Some(b""), Some(&[0xff, 0])] {
            for (key, begins) in [
                (None, "{\"attempt\":2"),
                (Some(&foreign), "{\"request_key\""),
            ] {
                let line = whole(capture(body), key.cloned());
                let full = line.to_bytes().unwrap();
                let short = short_line(&line, &full, &run());
                assert!(
                    short.starts_with(begins.as_bytes()),
                    "{}",
                    String::from_utf8_lossy(&short)
                );
                let back = PackLine::parse(short.trim_ascii_end(), Some(&run())).unwrap();
                assert_eq!(back, line);
                assert_eq!(full_line(&back, &short), full);
                assert_eq!(PackLine::parse(full.trim_ascii_end(), None).unwrap(), line);
                assert_eq!(full_line(&back, &full), full);
                assert!(PackLine::parse(short.trim_ascii_end(), None).is_err());
            }
        }
    }

    #[test]
    fn ids_of_another_rule_stay() {
        let mut record = capture(None);
        record.request_key = record.own_key();
        record.capture_id = CaptureId::of(b"another rule");
        let line = PackLine::Capture(Box::new(record));
        let full = line.to_bytes().unwrap();
        assert_eq!(short_line(&line, &full, &run()), full);
        for bad in ["", "{}", "[]", "{\"request_key\":\"x\"}", "{\"attempt\":1}"] {
            assert!(
                PackLine::parse(bad.as_bytes(), Some(&run())).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn terminals_come_back() {
        let key = RequestKey::of(b"1");
        let short = |attempts, hop| {
            let request_key = key.clone();
            TerminalLine::Short(ShortTerminal {
                request_key,
                attempts,
                hop,
            })
        };
        let full = TerminalRecord {
            request_key: key.clone(),
            stage: "detail".parse().unwrap(),
            method: "GET".to_owned(),
            url: "https://x.example/".to_owned(),
            state: TerminalState::Dead,
            class: None,
            attempts: 3,
            capture: None,
            answer: Default::default(),
        };
        for (line, len) in [
            (short(1, 0), 51),
            (short(3, 2), 72),
            (TerminalLine::Full(full), 0),
        ] {
            let bytes = line.to_bytes().unwrap();
            assert!(len == 0 || bytes.len() == len, "{}", bytes.len());
            assert_eq!(TerminalLine::parse(&bytes).unwrap(), line);
        }
        for bad in ["", "{}", "{\"request_key\":\"x\"}"] {
            assert!(TerminalLine::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
