//! The identity of a pack: a hash over what it holds, whatever its order, frames or compression.
//!
//! BLAKE3 of `rawpack/1 content`, the run, then per capture id in order: id and BLAKE3 of its line, then
//! the same of the terminals by request key. Bodies are in it by their SHA-256, which the lines carry. Two
//! seals of the same captures have the same content; the log knows them by it.

use crate::name::{CaptureId, ContentHash, RequestKey};
use crate::spec::RunKey;

/// Gathers what a pack holds, in any order.
#[derive(Debug, Default)]
pub(super) struct ContentDigest {
    captures: Vec<([u8; 32], [u8; 32])>,
    terminals: Vec<([u8; 32], [u8; 32])>,
}

impl ContentDigest {
    /// A capture's line, its end included.
    pub(super) fn add_capture(&mut self, id: &CaptureId, line: &[u8]) {
        self.add_hashed(id, hash(line));
    }

    /// A capture by the BLAKE3 of its line.
    pub(super) fn add_hashed(&mut self, id: &CaptureId, line: [u8; 32]) {
        self.captures.push((hex(id.as_str()), line));
    }

    /// A terminal's line, its end included.
    pub(super) fn add_terminal(&mut self, key: &RequestKey, line: &[u8]) {
        self.terminals.push((hex(key.as_str()), hash(line)));
    }

    /// The identity.
    pub(super) fn finish(mut self, run: &RunKey) -> ContentHash {
        let mut hasher = blake3::Hasher::new();
        let (source, date, run) = (&run.source, run.date, &run.run);
        hasher.update(format!("rawpack/1 content\n{source}\n{date}\n{run}\n").as_bytes());
        for part in [&mut self.captures, &mut self.terminals] {
            part.sort_unstable();
            hasher.update(&(part.len() as u64).to_le_bytes());
            for (id, line) in part {
                hasher.update(id.as_slice());
                hasher.update(line.as_slice());
            }
        }
        ContentHash::finish(&hasher)
    }
}

/// The 32 hex digits of an id.
fn hex(id: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(id.bytes()) {
        *to = from;
    }
    bytes
}

fn hash(line: &[u8]) -> [u8; 32] {
    *blake3::hash(line).as_bytes()
}
