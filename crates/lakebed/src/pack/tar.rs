//! The tar inside a pack: plain ustar members, written one way only and read strictly.
//!
//! Stock tools read what is written here; here only that is read. A header must be, byte for byte, the one
//! that this program would write for its name, size and time: no long names, links, sparse files or
//! vendor keywords can stand in it, so none of their traps exist.

use crate::error::{Error, Result};
use crate::spec::MAX_BODY_BYTES;

/// Bytes of a block.
pub(super) const BLOCK: usize = 512;
/// The largest name a plain header holds.
const NAME_BYTES: usize = 100;
/// Members are at most this long, whatever they hold.
const MAX_MEMBER_BYTES: u64 = MAX_BODY_BYTES;

/// A member of a tar: its name and where its content lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) offset: usize,
    pub(super) len: usize,
}

/// Bytes that fill the last block of a member.
pub(super) fn filling(len: usize) -> usize {
    len.next_multiple_of(BLOCK) - len
}

/// Appends a member: header, content, filling.
///
/// # Errors
/// `LimitExceeded` for a content beyond the limit.
pub(super) fn append(to: &mut Vec<u8>, name: &str, time: u64, content: &[u8]) -> Result<()> {
    to.extend(header(name, time, content.len() as u64)?);
    to.extend(content);
    to.resize(to.len() + filling(content.len()), 0);
    Ok(())
}

/// The header of a plain file.
pub(super) fn header(name: &str, time: u64, size: u64) -> Result<[u8; BLOCK]> {
    if name.is_empty() || name.len() > NAME_BYTES {
        return Err(Error::internal(format!("`{name}` as the name of a member")));
    }
    if size > MAX_MEMBER_BYTES {
        return Err(Error::limit(format!(
            "member `{name}` of {size} bytes: at most {MAX_MEMBER_BYTES} fit"
        )));
    }
    let mut block = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(
        136,
        format!("{:011o}\0", time.min(0o77_777_777_777)).as_bytes(),
    );
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    put(329, b"0000000\0");
    put(337, b"0000000\0");
    let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    Ok(block)
}

/// Name, time and size in a header; `CorruptData` for any header this program does not write.
fn parse_header(block: &[u8]) -> Result<(String, u64, u64)> {
    let bad = || Error::corrupt("read a tar header: it is none that a pack has");
    let field = |from: usize, to: usize| {
        let bytes = block.get(from..to)?;
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        std::str::from_utf8(&bytes[..end]).ok()
    };
    let number = |from, to| u64::from_str_radix(field(from, to)?, 8).ok();
    let name = field(0, NAME_BYTES).ok_or_else(bad)?.to_owned();
    let size = number(124, 136).ok_or_else(bad)?;
    let time = number(136, 148).ok_or_else(bad)?;
    let expected = header(&name, time, size).map_err(|e| bad().caused_by(e))?;
    (block == expected)
        .then_some((name, time, size))
        .ok_or_else(bad)
}

/// The members that lie in `raw` and how many bytes they need; more than there are where the last one
/// goes on in the next frame.
///
/// # Errors
/// `CorruptData` for bytes that are no members.
pub(super) fn members(raw: &[u8]) -> Result<(Vec<Member>, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < raw.len() {
        let Some(block) = raw.get(at..at + BLOCK) else {
            // A header that is cut by the end of a frame is none that we write.
            return Err(Error::corrupt("read a tar header: it is cut"));
        };
        let (name, _, size) = parse_header(block)?;
        let len = usize::try_from(size)
            .map_err(|e| Error::limit("a member larger than this machine's memory").caused_by(e))?;
        let offset = at + BLOCK;
        at = offset + len + filling(len);
        let zeros = raw.get(offset + len..at.min(raw.len())).unwrap_or_default();
        if zeros.iter().any(|b| *b != 0) {
            return Err(Error::corrupt(format!(
                "read member `{name}`: its last block is not filled with zeros"
            )));
        }
        found.push(Member { name, offset, len });
    }
    Ok((found, at))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_tar_crate_reads_what_is_written() {
        let mut raw = Vec::new();
        let bodies = [
            ("a.json", vec![7; 5]),
            ("b/empty", Vec::new()),
            ("c", vec![1; 512]),
        ];
        for (name, body) in &bodies {
            append(&mut raw, name, 1_764_460_800, body).unwrap();
        }
        let (found, needed) = members(&raw).unwrap();
        assert_eq!(needed, raw.len());
        let mut stock = tar::Archive::new(&raw[..]);
        for ((entry, (name, body)), mine) in stock.entries().unwrap().zip(&bodies).zip(&found) {
            let mut entry = entry.unwrap();
            assert_eq!(entry.path_bytes(), name.as_bytes());
            assert_eq!(entry.header().mtime().unwrap(), 1_764_460_800);
            let mut read = Vec::new();
            entry.read_to_end(&mut read).unwrap();
            assert_eq!(&read, body);
            assert_eq!(mine.name, *name);
            assert_eq!(&raw[mine.offset..mine.offset + mine.len], body);
        }
    }

    #[test]
    fn every_flip_of_a_header_is_seen() {
        let head = header("b/ab/name.html", 1, 12).unwrap();
        let mut raw = head.to_vec();
        raw.resize(2 * BLOCK, 0);
        assert!(members(&raw).is_ok());
        for at in 0..BLOCK {
            let mut bad = raw.clone();
            bad[at] ^= 1;
            assert!(members(&bad).is_err(), "byte {at}");
        }
        raw[BLOCK + 12] = 1;
        assert!(members(&raw).is_err(), "filling is not zero");
    }

    #[test]
    fn hostile_sizes_are_refused() {
        for size in ["77777777777", "-0000000001", "zzzzzzzzzzz", "           "] {
            let mut head = header("a", 1, 0).unwrap();
            head[124..135].copy_from_slice(size.as_bytes());
            head[148..156].copy_from_slice(b"        ");
            let sum: u32 = head.iter().map(|b| u32::from(*b)).sum();
            head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
            assert!(members(&head).is_err(), "{size}");
        }
        assert!(header("a", 1, MAX_MEMBER_BYTES + 1).is_err());
        assert!(header(&"x".repeat(101), 1, 1).is_err());
        let (found, needed) = members(&header("a", 1, 1 << 30).unwrap()).unwrap();
        assert_eq!(
            (found.len(), needed),
            (1, BLOCK + (1 << 30)),
            "it goes on in the next frame"
        );
    }
}
