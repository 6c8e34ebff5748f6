//! Zstd frames: making them, finding their ends without decoding, decoding them within bounds.
//!
//! Every frame of a pack says its content's size, carries a checksum and needs no dictionary; one that
//! does not is refused. A frame's end is found by walking over its block headers, so that a torn or damaged
//! frame is known as such, and nothing is ever allocated by what a header alone claims.

use std::io::Read;

use zstd::zstd_safe::CParameter;

use crate::error::{Error, Result};
use crate::pack::source::ReadAt;
use crate::spec::{MAX_FRAME_BYTES, MAX_WINDOW_LOG, PackProfile, SKIPPABLE_HEAD_BYTES};

const FRAME_MAGIC: u32 = 0xFD2F_B528;
const SKIPPABLE_MAGIC: u32 = 0x184D_2A50;
const SKIPPABLE_MASK: u32 = 0xFFFF_FFF0;
/// Content beyond this is not given memory before it is decoded.
const TRUSTED_BYTES: usize = 16 << 20;
const MAX_BLOCK_BYTES: u64 = 128 << 10;

/// Makes frames; keeps its context from one to the next.
pub(super) struct FrameEncoder {
    compressor: zstd::bulk::Compressor<'static>,
}

impl FrameEncoder {
    pub(super) fn new(profile: PackProfile) -> Result<Self> {
        Self::with_level(profile, profile.level())
    }

    /// With another level than the profile's.
    pub(super) fn with_level(profile: PackProfile, level: i32) -> Result<Self> {
        let made = || -> std::io::Result<_> {
            let mut compressor = zstd::bulk::Compressor::new(level)?;
            compressor.set_parameter(CParameter::ChecksumFlag(true))?;
            compressor.set_parameter(CParameter::ContentSizeFlag(true))?;
            compressor.set_parameter(CParameter::WindowLog(profile.window_log()))?;
            Ok(compressor)
        };
        let compressor =
            made().map_err(|e| Error::internal("set up the compressor").caused_by(e))?;
        Ok(Self { compressor })
    }

    /// One frame of this content.
    pub(super) fn encode(&mut self, raw: &[u8]) -> Result<Vec<u8>> {
        self.compressor
            .compress(raw)
            .map_err(|e| Error::internal("compress a frame").caused_by(e))
    }
}

/// What begins at some place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A frame with content.
    Data { len: u64, raw: u64 },
    /// A frame that readers pass over.
    Skippable { len: u64, magic: u32 },
    /// The beginning of a frame that the file's end cuts.
    Cut,
    /// No frame, or none that a pack has; why.
    Bad(&'static str),
}

/// Looks at the frame that begins at `offset`. The content is not looked at.
pub(super) fn shape_at(source: &dyn ReadAt, offset: u64) -> Result<Shape> {
    /// The longest head of a frame.
    const HEAD: u64 = 18;
    let left = source.size().saturating_sub(offset);
    let head = source.read_at(offset, usize::try_from(left.min(HEAD)).unwrap_or(0))?;
    let Some(magic) = le_number(&head, 0, 4) else {
        return Ok(Shape::Cut);
    };
    let magic = u32::try_from(magic).unwrap_or(0);
    if magic & SKIPPABLE_MASK == SKIPPABLE_MAGIC {
        return Ok(match le_number(&head, 4, 4) {
            Some(size) if size + SKIPPABLE_HEAD_BYTES as u64 <= left => Shape::Skippable {
                len: size + SKIPPABLE_HEAD_BYTES as u64,
                magic,
            },
            _ => Shape::Cut,
        });
    }
    if magic != FRAME_MAGIC {
        return Ok(Shape::Bad("no frame begins here"));
    }
    let Some(descriptor) = head.get(4) else {
        return Ok(Shape::Cut);
    };
    let (is_single, has_checksum) = (descriptor & 0x20 != 0, descriptor & 4 != 0);
    if descriptor & 0x1B != 0 || !has_checksum {
        return Ok(Shape::Bad("the head of its frame is none that a pack has"));
    }
    let size_at = if is_single { 5 } else { 6 };
    let (size_bytes, base) = match (descriptor >> 6, is_single) {
        (0, false) => return Ok(Shape::Bad("a frame does not say its content's size")),
        (0, true) => (1, 0),
        (1, _) => (2, 256),
        (2, _) => (4, 0),
        _ => (8, 0),
    };
    let Some(raw) = le_number(&head, size_at, size_bytes) else {
        return Ok(Shape::Cut);
    };
    let raw = raw.saturating_add(base);
    if raw > MAX_FRAME_BYTES as u64 {
        return Ok(Shape::Bad("a frame says that its content passes the limit"));
    }
    blocks_end(source, offset, (size_at + size_bytes) as u64, left).map(|end| match end {
        Ok(len) => Shape::Data { len, raw },
        Err(shape) => shape,
    })
}

/// Walks over the blocks of a frame; the frame's length with its checksum.
fn blocks_end(
    source: &dyn ReadAt,
    offset: u64,
    first: u64,
    left: u64,
) -> Result<Result<u64, Shape>> {
    let mut at = first;
    loop {
        if at + 3 > left {
            return Ok(Err(Shape::Cut));
        }
        let block = source.read_at(offset + at, 3)?;
        let block = le_number(&block, 0, 3).unwrap_or(0);
        let (is_last, kind, size) = (block & 1 == 1, (block >> 1) & 3, block >> 3);
        if kind == 3 || size > MAX_BLOCK_BYTES {
            return Ok(Err(Shape::Bad("a block is none that zstd knows")));
        }
        at += 3 + if kind == 1 { 1 } else { size };
        if is_last {
            let end = at + 4;
            return Ok(if end > left { Err(Shape::Cut) } else { Ok(end) });
        }
    }
}

fn le_number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + length)?;
    Some(bytes.iter().rev().fold(0, |n, b| (n << 8) | u64::from(*b)))
}

/// The whole content of one frame, whose head says that it has `raw` bytes; the checksum is compared.
///
/// # Errors
/// `CorruptData` where it cannot be decoded to exactly that many bytes.
pub(super) fn decode(frame: &[u8], raw: u64) -> Result<Vec<u8>> {
    let raw = usize::try_from(raw).unwrap_or(usize::MAX);
    if raw > MAX_FRAME_BYTES {
        return Err(Error::limit(format!("a frame of {raw} bytes")));
    }
    let bad = |e: std::io::Error| Error::corrupt(format!("unpack a frame: {e}")).caused_by(e);
    let content = if raw <= TRUSTED_BYTES {
        zstd::bulk::decompress(frame, raw).map_err(bad)?
    } else {
        decode_up_to(frame, raw + 1)?
    };
    if content.len() == raw {
        return Ok(content);
    }
    Err(Error::corrupt(format!(
        "unpack a frame: its content is not the {raw} bytes it says"
    )))
}

/// The first `wanted` bytes of the content of one or several frames, fewer where they hold fewer. Nothing
/// behind them is decoded.
pub(super) fn decode_up_to(frames: &[u8], wanted: usize) -> Result<Vec<u8>> {
    let decoded = || -> std::io::Result<Vec<u8>> {
        let mut decoder = zstd::stream::read::Decoder::with_buffer(frames)?;
        decoder.window_log_max(MAX_WINDOW_LOG)?;
        let mut content = Vec::with_capacity(wanted.min(TRUSTED_BYTES));
        decoder.take(wanted as u64).read_to_end(&mut content)?;
        Ok(content)
    };
    decoded().map_err(|e| Error::corrupt(format!("unpack a frame: {e}")).caused_by(e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::source::MemorySource;
    use crate::spec::padding;

    fn frame(raw: &[u8]) -> Vec<u8> {
        FrameEncoder::new(PackProfile::Std)
            .unwrap()
            .encode(raw)
            .unwrap()
    }

    fn shape(bytes: &[u8]) -> Shape {
        shape_at(&MemorySource::new(bytes.to_vec()), 0).unwrap()
    }

    #[test]
    fn a_frames_end_is_found_without_decoding() {
        for size in [0, 1, 255, 256, 300, 65_791, 65_792, 1 << 20, 5 << 20] {
            let raw: Vec<u8> = (0..size)
                .map(|n: u32| (n.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0])
                .collect();
            let bytes = frame(&raw);
            let len = bytes.len() as u64;
            let expected = Shape::Data {
                len,
                raw: raw.len() as u64,
            };
            assert_eq!(shape(&bytes), expected, "{size}");
            let longer = [&bytes[..], b"more"].concat();
            assert_eq!(shape(&longer), expected);
            assert_eq!(decode(&bytes, raw.len() as u64).unwrap(), raw);
            assert!(decode(&bytes, raw.len() as u64 + 1).is_err());
        }
    }

    #[test]
    fn every_cut_is_seen() {
        let bytes = frame(&[7; 3000]);
        for cut in 0..bytes.len() {
            assert_eq!(shape(&bytes[..cut]), Shape::Cut, "{cut}");
        }
        let skipped = padding(20).unwrap();
        for cut in 0..skipped.len() {
            assert_eq!(shape(&skipped[..cut]), Shape::Cut, "{cut}");
        }
        assert!(matches!(shape(&skipped), Shape::Skippable { len: 20, .. }));
        assert!(matches!(shape(b"hello world"), Shape::Bad(_)));
    }

    #[test]
    fn a_bomb_costs_what_it_holds_at_most() {
        // A frame that claims 200 MiB and holds nothing of it.
        let mut bomb = FRAME_MAGIC.to_le_bytes().to_vec();
        bomb.extend([0b1010_0100]);
        bomb.extend((200_u32 << 20).to_le_bytes());
        bomb.extend([0b0000_0001, 0, 0]);
        bomb.extend([0; 4]);
        assert!(matches!(shape(&bomb), Shape::Data { .. }));
        assert!(decode(&bomb, 200 << 20).is_err());
        // One that claims more than the limit.
        bomb[5..9].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(shape(&bomb), Shape::Bad(_)));
        // A real one that says less than it holds.
        let real = frame(&vec![0; 64 << 20]);
        assert!(real.len() < 16 << 10);
        assert!(decode(&real, 1 << 20).is_err());
        assert_eq!(decode_up_to(&real, 1000).unwrap().len(), 1000);
    }

    #[test]
    fn frames_without_checksum_or_size_are_refused() {
        let plain = zstd::bulk::compress(&[1; 1000], 3).unwrap();
        assert!(matches!(shape(&plain), Shape::Bad(_)));
        let streamed = zstd::stream::encode_all(&[1; 1000][..], 3).unwrap();
        assert!(matches!(shape(&streamed), Shape::Bad(_)));
    }
}
