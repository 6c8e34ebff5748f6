//! Members of a zip archive, each a logical input of its own.
//!
//! The central directory gives names, places, sizes and checksums; the bytes are then read straight
//! from the member's place, so that they stream. Size and CRC-32 are verified at the member's end.
//! Encrypted members and methods other than stored and deflate are failed files.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;

use bytes::Bytes;
use flate2::Crc;
use flate2::read::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use crate::error::{Error, Result};
use crate::ingest::read::unpack::ByteStream;

/// An archive that can be opened any number of times.
#[derive(Clone)]
pub(super) enum Archive {
    /// A file.
    File(PathBuf),
    /// An archive from standard input.
    Memory(Bytes),
}

impl std::fmt::Debug for Archive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Memory(bytes) => f.debug_tuple("Memory").field(&bytes.len()).finish(),
        }
    }
}

/// How a member is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Stored,
    Deflate,
}

/// A file member.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) name: String,
    /// Unpacked bytes, as the archive's directory says.
    pub(super) size: u64,
    packed_bytes: u64,
    method: Method,
    data_start: u64,
    crc: u32,
}

/// The file members in name order, and how many were left out.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) members: Vec<Member>,
    pub(super) ignored: usize,
}

trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

fn damaged(error: &zip::result::ZipError) -> Error {
    Error::corrupt(format!("zip archive cannot be read: {error}"))
        .hint("the archive may be truncated: fetch it again, or test it with `unzip -t`")
}

/// Entries of the central directory, by walking it: the archive's index keeps one of equal names.
fn count_entries(mut archive: Box<dyn ReadSeek>, start: u64) -> io::Result<usize> {
    const FIXED_BYTES: usize = 46;
    archive.seek(SeekFrom::Start(start))?;
    let mut directory = BufReader::new(archive);
    let mut entries = 0;
    let mut fixed = [0_u8; FIXED_BYTES];
    while read_whole(&mut directory, &mut fixed)? && fixed.starts_with(b"PK\x01\x02") {
        entries += 1;
        let length = |at: usize| u64::from(u16::from_le_bytes([fixed[at], fixed[at + 1]]));
        let rest = length(28) + length(30) + length(32);
        io::copy(&mut (&mut directory).take(rest), &mut io::sink())?;
    }
    Ok(entries)
}

/// Fills the buffer; false at the end.
fn read_whole(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match stream.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}

impl Archive {
    fn open(&self) -> Result<Box<dyn ReadSeek>> {
        match self {
            Self::File(path) => {
                let file =
                    File::open(path).map_err(|e| Error::io("open the input", path.display(), e))?;
                Ok(Box::new(file))
            }
            Self::Memory(bytes) => Ok(Box::new(Cursor::new(bytes.clone()))),
        }
    }

    /// Lists the file members in name order.
    pub(super) fn list_members(&self) -> Result<Listing> {
        let mut archive = ZipArchive::new(self.open()?).map_err(|e| damaged(&e))?;
        let entries = count_entries(self.open()?, archive.central_directory_start())
            .map_err(|e| Error::io("read", "directory of the zip archive", e))?;
        if entries != archive.len() {
            return Err(
                Error::corrupt("zip archive has two members of one name").hint(
                    "only one of them could be told apart: unpack the archive and name the files",
                ),
            );
        }
        let mut listing = Listing {
            members: Vec::new(),
            ignored: 0,
        };
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(|e| damaged(&e))?;
            let name = entry.name().map_err(|e| damaged(&e))?.into_owned();
            if entry.is_dir() {
                continue;
            }
            if name.starts_with("__MACOSX/") {
                listing.ignored += 1;
                continue;
            }
            let refused = |why: &str| {
                Error::corrupt(format!("zip member `{name}` {why}"))
                    .hint("unpack the archive and name the files")
            };
            if entry.encrypted() {
                return Err(refused("is encrypted"));
            }
            let method = match entry.compression() {
                CompressionMethod::Stored => Method::Stored,
                CompressionMethod::Deflated => Method::Deflate,
                other => {
                    return Err(refused(&format!(
                        "is packed with `{other}`, which is not supported"
                    )));
                }
            };
            let data_start = entry
                .data_start()
                .ok_or_else(|| refused("has no place in the archive"))?;
            listing.members.push(Member {
                packed_bytes: entry.compressed_size(),
                method,
                data_start,
                size: entry.size(),
                crc: entry.crc32(),
                name,
            });
        }
        if listing.members.is_empty() {
            return Err(Error::corrupt("zip archive holds no file"));
        }
        listing.members.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listing)
    }

    /// Opens a member's unpacked bytes; size and checksum are verified at their end.
    pub(super) fn open_member(&self, member: &Member) -> Result<ByteStream> {
        let mut stream = self.open()?;
        stream
            .seek(SeekFrom::Start(member.data_start))
            .map_err(|e| Error::io("read the zip member", &member.name, e))?;
        let packed = stream.take(member.packed_bytes);
        let plain: ByteStream = match member.method {
            Method::Stored => Box::new(packed),
            Method::Deflate => Box::new(DeflateDecoder::new(packed)),
        };
        Ok(Box::new(Verified {
            plain,
            crc: Crc::new(),
            read: 0,
            size: member.size,
            expected: member.crc,
        }))
    }
}

/// Compares size and checksum when the end is reached.
struct Verified {
    plain: ByteStream,
    crc: Crc,
    read: u64,
    size: u64,
    expected: u32,
}

impl Read for Verified {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let invalid = |why| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        let n = self.plain.read(out)?;
        self.crc.update(&out[..n]);
        self.read += u64::try_from(n).unwrap_or(u64::MAX);
        if self.read > self.size {
            return invalid("zip member is longer than the archive's directory says");
        }
        if n == 0 && !out.is_empty() {
            if self.read < self.size {
                return invalid("zip member is shorter than the archive's directory says");
            }
            if self.crc.sum() != self.expected {
                return invalid("checksum of the zip member does not match");
            }
        }
        Ok(n)
    }
}
