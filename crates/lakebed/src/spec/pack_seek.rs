//! The tail of a pack: the trailer with the digests of its frames, and the seek table of zstd.
//!
//! ```text
//! trailer     51 2A 4D 18 | size u32 | length of the JSON u32 | JSON | 32 bytes a frame | BLAKE3 of all before it in the frame
//! seek table  5E 2A 4D 18 | size u32 | (compressed u32, raw u32) a frame | frames u32 | 00 | B1 EA 92 8F
//! ```
//!
//! Numbers are little-endian. Every frame before the seek table has a row in it, skippable ones with raw
//! size 0; the trailer has a digest for every frame before itself. What is read here comes from outside:
//! nothing is allocated by a number that the bytes do not bear out.

use crate::error::{Error, Result};
use crate::spec::PackTrailer;

/// Magic number of the seek table's skippable frame.
pub const SEEK_TABLE_MAGIC: u32 = 0x184D_2A5E;
/// Magic number of the trailer's skippable frame.
pub const TRAILER_MAGIC: u32 = 0x184D_2A51;
/// Magic number of a skippable frame that fills the place of what is gone.
pub const PADDING_MAGIC: u32 = 0x184D_2A50;
/// The last bytes of a file with a seek table.
pub const SEEK_FOOTER_MAGIC: u32 = 0x8F92_EAB1;
/// Bytes before the content of a skippable frame.
pub const SKIPPABLE_HEAD_BYTES: usize = 8;
/// Bytes of the seek table's footer.
pub const SEEK_FOOTER_BYTES: usize = 9;
/// Bytes of a row of the seek table.
const ROW_BYTES: usize = 8;
/// Frames at most, by the seekable format.
const MAX_FRAMES: usize = 0x0800_0000;
const DIGEST_BYTES: usize = 32;

/// A row of the seek table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeekRow {
    /// Bytes in the file.
    pub compressed: u32,
    /// Bytes of content; 0 for a skippable frame.
    pub raw: u32,
}

/// The bytes of a seek table's frame.
///
/// # Errors
/// `LimitExceeded` for more frames than the format knows.
pub fn encode_seek_table(rows: &[SeekRow]) -> Result<Vec<u8>> {
    let size = rows.len() * ROW_BYTES + SEEK_FOOTER_BYTES;
    let count = u32::try_from(rows.len()).ok();
    let (Some(count), Ok(size)) = (
        count.filter(|_| rows.len() <= MAX_FRAMES),
        u32::try_from(size),
    ) else {
        return Err(Error::limit(format!("{} frames in one pack", rows.len())));
    };
    let mut bytes = Vec::with_capacity(rows.len() * ROW_BYTES + 17);
    bytes.extend(SEEK_TABLE_MAGIC.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    for row in rows {
        bytes.extend(row.compressed.to_le_bytes());
        bytes.extend(row.raw.to_le_bytes());
    }
    bytes.extend(count.to_le_bytes());
    bytes.push(0);
    bytes.extend(SEEK_FOOTER_MAGIC.to_le_bytes());
    Ok(bytes)
}

/// Bytes of the whole seek table that ends with this footer (the last 9 bytes of a file).
///
/// # Errors
/// `CorruptData` where it is none, or of a form this program does not write.
pub fn seek_table_bytes(footer: &[u8]) -> Result<usize> {
    let bad = |what: &str| Error::corrupt(format!("read the seek table: {what}"));
    let footer: &[u8; SEEK_FOOTER_BYTES] = footer
        .try_into()
        .map_err(|_| bad("the file is too short"))?;
    if u32_at(footer, 5) != Some(SEEK_FOOTER_MAGIC) {
        return Err(bad("the file does not end with one"));
    }
    if footer[4] != 0 {
        return Err(bad("its descriptor is not 0"));
    }
    let frames = u32_at(footer, 0).and_then(|n| usize::try_from(n).ok());
    match frames.filter(|n| *n <= MAX_FRAMES) {
        Some(frames) => Ok(frames * ROW_BYTES + SKIPPABLE_HEAD_BYTES + SEEK_FOOTER_BYTES),
        None => Err(bad("it counts more frames than the format knows")),
    }
}

/// The rows of a seek table, given the bytes of its whole frame.
///
/// # Errors
/// `CorruptData` where head, length and footer do not agree.
pub fn decode_seek_table(table: &[u8]) -> Result<Vec<SeekRow>> {
    let bad = |what: &str| Error::corrupt(format!("read the seek table: {what}"));
    let footer = table.len().checked_sub(SEEK_FOOTER_BYTES);
    let footer = footer.and_then(|at| table.get(at..)).unwrap_or_default();
    if seek_table_bytes(footer)? != table.len() {
        return Err(bad("its length does not fit its number of frames"));
    }
    let size = u32_at(table, 4).and_then(|n| usize::try_from(n).ok());
    if u32_at(table, 0) != Some(SEEK_TABLE_MAGIC)
        || size != Some(table.len() - SKIPPABLE_HEAD_BYTES)
    {
        return Err(bad("its head is not that of a seek table of this length"));
    }
    let rows = &table[SKIPPABLE_HEAD_BYTES..table.len() - SEEK_FOOTER_BYTES];
    let row = |bytes: &[u8]| SeekRow {
        compressed: u32_at(bytes, 0).unwrap_or(0),
        raw: u32_at(bytes, 4).unwrap_or(0),
    };
    Ok(rows.chunks_exact(ROW_BYTES).map(row).collect())
}

/// The bytes of a trailer's frame.
pub fn encode_trailer(trailer: &PackTrailer, digests: &[[u8; 32]]) -> Result<Vec<u8>> {
    let json = serde_json::to_vec(trailer)
        .map_err(|e| Error::internal("write the trailer as JSON").caused_by(e))?;
    let size = 4 + json.len() + (digests.len() + 1) * DIGEST_BYTES;
    let (Ok(size), Ok(length)) = (u32::try_from(size), u32::try_from(json.len())) else {
        return Err(Error::limit(format!(
            "{} frames in one pack",
            digests.len()
        )));
    };
    let mut bytes = Vec::new();
    bytes.extend(TRAILER_MAGIC.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(&json);
    for digest in digests {
        bytes.extend(digest);
    }
    let own = blake3::hash(&bytes);
    bytes.extend(own.as_bytes());
    Ok(bytes)
}

/// What a trailer says, and the digests of the frames before it.
///
/// # Errors
/// `CorruptData` for anything but the whole bytes of a trailer.
pub fn decode_trailer(bytes: &[u8]) -> Result<(PackTrailer, Vec<[u8; 32]>)> {
    let bad = |what: &str| Error::corrupt(format!("read the trailer: {what}"));
    let end = bytes.len().checked_sub(DIGEST_BYTES);
    let Some(end) = end.filter(|end| *end >= SKIPPABLE_HEAD_BYTES + 4) else {
        return Err(bad("it is too short"));
    };
    if u32_at(bytes, 0) != Some(TRAILER_MAGIC) {
        return Err(bad("it is none"));
    }
    if blake3::hash(&bytes[..end]).as_bytes() != &bytes[end..] {
        return Err(bad("it is damaged"));
    }
    let size = u32_at(bytes, 4).and_then(|n| usize::try_from(n).ok());
    let length = u32_at(bytes, 8).and_then(|n| usize::try_from(n).ok());
    let json_at = SKIPPABLE_HEAD_BYTES + 4;
    let json_end = length.and_then(|n| json_at.checked_add(n));
    let Some(json_end) = json_end.filter(|at| *at <= end && size == Some(bytes.len() - 8)) else {
        return Err(bad("its lengths do not fit"));
    };
    let trailer = serde_json::from_slice(&bytes[json_at..json_end])
        .map_err(|e| bad(&e.to_string()).caused_by(e))?;
    let digests = bytes[json_end..end].chunks_exact(DIGEST_BYTES);
    if !digests.remainder().is_empty() {
        return Err(bad("its digests do not fit"));
    }
    let digests = digests.filter_map(|d| d.try_into().ok()).collect();
    Ok((trailer, digests))
}

/// A skippable frame of exactly `length` bytes, of zeros; `None` where it would be too short or long.
#[must_use]
pub fn padding(length: usize) -> Option<Vec<u8>> {
    let size = u32::try_from(length.checked_sub(SKIPPABLE_HEAD_BYTES)?).ok()?;
    let mut bytes = Vec::with_capacity(length);
    bytes.extend(PADDING_MAGIC.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.resize(length, 0);
    Some(bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    four.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::ContentHash;

    fn rows() -> Vec<SeekRow> {
        (1..=5_u32)
            .map(|n| SeekRow {
                compressed: n * 7,
                raw: n * 100,
            })
            .collect()
    }

    fn trailer() -> PackTrailer {
        PackTrailer {
            format: "rawpack/1".to_owned(),
            run: None,
            content: ContentHash::of(b"x"),
            captures: 3,
            bodies: 2,
            requests: 3,
            erased: 0,
        }
    }

    #[test]
    fn tables_come_back() {
        for rows in [rows(), Vec::new()] {
            let bytes = encode_seek_table(&rows).unwrap();
            let footer = &bytes[bytes.len() - SEEK_FOOTER_BYTES..];
            assert_eq!(seek_table_bytes(footer).unwrap(), bytes.len());
            assert_eq!(decode_seek_table(&bytes).unwrap(), rows);
        }
        let digests = vec![[7; 32], [9; 32]];
        let bytes = encode_trailer(&trailer(), &digests).unwrap();
        assert_eq!(decode_trailer(&bytes).unwrap(), (trailer(), digests));
    }

    #[test]
    fn every_flip_of_a_trailer_is_seen() {
        let bytes = encode_trailer(&trailer(), &[[7; 32], [9; 32]]).unwrap();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                assert!(decode_trailer(&bad).is_err(), "byte {at} bit {bit}");
            }
            assert!(decode_trailer(&bytes[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn hostile_tables_are_refused_without_memory() {
        let mut footer = u32::MAX.to_le_bytes().to_vec();
        footer.push(0);
        footer.extend(SEEK_FOOTER_MAGIC.to_le_bytes());
        assert!(seek_table_bytes(&footer).is_err());
        assert!(decode_seek_table(&footer).is_err());
        let bytes = encode_seek_table(&rows()).unwrap();
        for cut in 0..bytes.len() {
            assert!(decode_seek_table(&bytes[..cut]).is_err(), "cut at {cut}");
            assert!(decode_seek_table(&bytes[cut + 1..]).is_err(), "from {cut}");
        }
        let table = SKIPPABLE_HEAD_BYTES..bytes.len() - SEEK_FOOTER_BYTES;
        for at in (0..bytes.len()).filter(|at| !table.contains(at)) {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert!(decode_seek_table(&bad).is_err(), "byte {at}");
        }
    }

    #[test]
    fn padding_has_its_length() {
        assert_eq!(padding(7), None);
        for length in [8, 9, 1000] {
            assert_eq!(padding(length).unwrap().len(), length);
        }
    }
}
