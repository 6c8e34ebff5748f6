//! Reading the tail of a pack: trailer and seek table, in one or two reads from its end.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::pack::source::ReadAt;
use crate::spec::{
    PACK_FORMAT, PART_FORMAT, PackTrailer, SEEK_FOOTER_BYTES, SeekRow, decode_seek_table,
    decode_trailer, seek_table_bytes,
};

/// What is read first: enough for the tail of a pack of some thousand frames.
const FIRST_READ: u64 = 256 << 10;
/// The largest tail that is read.
const MAX_TAIL_BYTES: u64 = 1 << 30;

/// The tail of a pack.
#[derive(Debug)]
pub(super) struct PackTail {
    pub(super) trailer: PackTrailer,
    /// Offset and row of every frame before the trailer.
    pub(super) frames: Vec<(u64, SeekRow)>,
    /// BLAKE3 of each of these frames.
    pub(super) digests: Vec<[u8; 32]>,
    /// Where the trailer begins.
    pub(super) offset: u64,
    /// Trailer and seek table as they lie in the file.
    pub(super) bytes: Bytes,
}

impl PackTail {
    /// Reads it.
    ///
    /// # Errors
    /// `CorruptData` where the file does not end with a tail whose numbers fit together and to the file.
    pub(super) fn read(source: &dyn ReadAt) -> Result<Self> {
        Self::read_tail(source).map_err(|e| {
            e.with("file", source.name())
                .hint("`lakebed pack repair` makes the tail again from the frames")
        })
    }

    fn read_tail(source: &dyn ReadAt) -> Result<Self> {
        let size = source.size();
        let mut end = read_end(source, size.min(FIRST_READ))?;
        let footer = end.len().saturating_sub(SEEK_FOOTER_BYTES);
        let table_len = seek_table_bytes(&end[footer..])?;
        if table_len as u64 > size.min(MAX_TAIL_BYTES) {
            return Err(Error::corrupt(
                "read the seek table: it is longer than the file",
            ));
        }
        if table_len > end.len() {
            end = read_end(source, table_len as u64)?;
        }
        let rows = decode_seek_table(&end[end.len() - table_len..])?;
        let Some((trailer, rows)) = rows.split_last().filter(|(t, _)| t.raw == 0) else {
            return Err(Error::corrupt("read the seek table: it names no trailer"));
        };
        let mut frames = Vec::with_capacity(rows.len());
        let mut at = 0;
        for row in rows {
            frames.push((at, *row));
            at += u64::from(row.compressed);
        }
        let tail_len = u64::from(trailer.compressed) + table_len as u64;
        if at + tail_len != size || tail_len > MAX_TAIL_BYTES {
            return Err(Error::corrupt(
                "read the seek table: its sizes do not sum to the file's",
            ));
        }
        if tail_len > end.len() as u64 {
            end = read_end(source, tail_len)?;
        }
        let begin = end.len() - usize::try_from(tail_len).unwrap_or(end.len());
        let bytes = end.slice(begin..);
        let (trailer, digests) = decode_trailer(&bytes[..bytes.len() - table_len])?;
        if !is_known(&trailer.format) {
            return Err(newer_format(&trailer.format));
        }
        if digests.len() != frames.len() {
            return Err(Error::corrupt(
                "read the trailer: it has not a digest for each frame",
            ));
        }
        Ok(Self {
            trailer,
            frames,
            digests,
            offset: at,
            bytes,
        })
    }

    /// The place in `frames` of the frame that begins at `offset`.
    pub(super) fn find(&self, offset: u64) -> Option<usize> {
        self.frames
            .binary_search_by_key(&offset, |(at, _)| *at)
            .ok()
    }

    /// Where the first frame behind `offset` begins, by the table; the trailer counts as one.
    pub(super) fn next_after(&self, offset: u64) -> u64 {
        let index = self.frames.partition_point(|(at, _)| *at <= offset);
        self.frames.get(index).map_or(self.offset, |(at, _)| *at)
    }
}

fn read_end(source: &dyn ReadAt, length: u64) -> Result<Bytes> {
    let length_bytes = usize::try_from(length).unwrap_or(usize::MAX);
    source.read_at(source.size() - length, length_bytes)
}

/// Whether packs of this format are read.
pub(super) fn is_known(format: &str) -> bool {
    [PACK_FORMAT, PART_FORMAT].contains(&format)
}

/// The error of a format this program does not know.
pub(super) fn newer_format(format: &str) -> Error {
    Error::unavailable(format!("the pack has the format `{format}`")).hint(format!(
        "this program knows `{PACK_FORMAT}`; install a newer one"
    ))
}
