//! From packed to plain bytes. The magic bytes decide, never the name; a difference is reported.
//!
//! gzip: all members, each with its checksum; zstd: all frames. Bytes after the last member or frame
//! that belong to none are an error, as is an end in the middle. What is packed twice, or in a way
//! that is not supported, is refused by name instead of being read as text.

use std::io::{self, BufReader, Cursor, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::error::{Error, Result};
use crate::ingest::read::source::{InputSource, Origin, has_extension};

/// Plain or packed bytes as they come.
pub(super) type ByteStream = Box<dyn Read + Send>;

/// Buffer between the file and a decompressor.
const PACKED_BUFFER_BYTES: usize = 256 << 10;
/// Bytes that tell any packing or Parquet.
const HEAD_BYTES: usize = 16;
const PARQUET_MAGIC: &[u8] = b"PAR1";

/// How bytes are packed, by their magic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// Not packed, as far as we know.
    Plain,
    Gzip,
    Zstd,
    Zip,
    /// Packed in a way that is not supported, with its name.
    Unsupported(&'static str),
}

impl Packing {
    /// Tells the packing by the first bytes.
    pub(super) fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] | [b'P', b'K', 7, 8, ..] => Self::Zip,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, ..] => {
                Self::Unsupported("bzip2")
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Unsupported("xz"),
            [0x04, 0x22, 0x4d, 0x18, ..] => Self::Unsupported("lz4"),
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Self::Unsupported("7-zip"),
            _ => Self::Plain,
        }
    }

    /// What the name says.
    fn of_name(name: &str) -> Self {
        let is = |extensions: &[&str]| extensions.iter().any(|e| has_extension(name, e));
        if is(&["gz", "gzip"]) {
            Self::Gzip
        } else if is(&["zst", "zstd"]) {
            Self::Zstd
        } else if is(&["zip"]) {
            Self::Zip
        } else {
            Self::Plain
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain bytes",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Zip => "zip",
            Self::Unsupported(name) => name,
        }
    }

    /// Whether `head` is all there is, and too short to tell this packing.
    fn may_be_cut_off(self, head: &[u8]) -> bool {
        let magic: &[u8] = match self {
            Self::Gzip => &[0x1f, 0x8b],
            Self::Zstd => &[0x28, 0xb5, 0x2f, 0xfd],
            Self::Zip => b"PK\x03\x04",
            Self::Plain | Self::Unsupported(_) => return false,
        };
        !head.is_empty() && head.len() < magic.len() && magic.starts_with(head)
    }
}

/// Plain bytes with what was learnt on the way.
pub(super) struct Unpacked {
    pub(super) stream: ByteStream,
    /// The bytes are a Parquet file, by their magic.
    pub(super) is_parquet: bool,
    /// The bytes lie unpacked in this file.
    pub(super) plain_file: Option<PathBuf>,
    pub(super) warnings: Vec<String>,
    /// Packed bytes read so far; absent where the bytes were not packed.
    pub(super) packed_read: Option<Arc<AtomicU64>>,
}

/// Counts what a decompressor takes.
struct Counted {
    stream: ByteStream,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.stream.read(out)?;
        self.read
            .fetch_add(u64::try_from(n).unwrap_or(0), Ordering::Relaxed);
        Ok(n)
    }
}

/// The first bytes (at most `n`; fewer only at the end), and the whole stream again.
pub(super) fn peek(mut stream: ByteStream, n: u64) -> io::Result<(Vec<u8>, ByteStream)> {
    let mut head = Vec::new();
    (&mut stream).take(n).read_to_end(&mut head)?;
    let whole = Cursor::new(head.clone()).chain(stream);
    Ok((head, Box::new(whole)))
}

/// A failed read: bytes that are wrong are a failed file, a disk that fails is not.
pub(super) fn read_failed(error: io::Error) -> Error {
    if error.raw_os_error().is_some() {
        return Error::unavailable(format!("input could not be read: {error}")).caused_by(error);
    }
    let message = if error.kind() == io::ErrorKind::UnexpectedEof {
        "input ends in the middle of its packed data".to_owned()
    } else {
        format!("input cannot be unpacked: {error}")
    };
    Error::corrupt(message)
        .hint("the file is truncated or damaged: fetch it again; nothing of it was stored")
}

/// Opens an input's plain bytes.
pub(super) fn open_unpacked(source: &InputSource) -> Result<Unpacked> {
    let (head, stream) = peek_head(source.open_stream()?)?;
    let found = Packing::of(&head);
    let named = Packing::of_name(source.content_name());
    if named.may_be_cut_off(&head) {
        return Err(read_failed(io::ErrorKind::UnexpectedEof.into()));
    }
    let mut warnings = source.warnings.clone();
    if found != named && !matches!(source.origin, Origin::Stdin(_)) && !head.is_empty() {
        warnings.push(format!(
            "`{}` holds {}, though its name says {}: the content decided",
            source.display_name(),
            found.name(),
            named.name()
        ));
    }
    let packed_read = Arc::new(AtomicU64::new(0));
    let stream: ByteStream = match found {
        Packing::Plain => {
            let plain_file = match &source.origin {
                Origin::File(path) if path.is_file() => Some(path.clone()),
                Origin::File(_) | Origin::Stdin(_) | Origin::Member(..) => None,
            };
            return Ok(Unpacked {
                stream,
                is_parquet: head.starts_with(PARQUET_MAGIC),
                plain_file,
                warnings,
                packed_read: None,
            });
        }
        Packing::Gzip => Box::new(MultiGzDecoder::new(buffered(stream, &packed_read))),
        Packing::Zstd => Box::new(
            zstd::stream::read::Decoder::with_buffer(buffered(stream, &packed_read))
                .map_err(read_failed)?,
        ),
        Packing::Zip | Packing::Unsupported(_) => return Err(unsupported(found)),
    };
    let (inner, stream) = peek_head(stream)?;
    let twice = Packing::of(&inner);
    if twice != Packing::Plain {
        return Err(unsupported(twice).with("inside", found.name()));
    }
    Ok(Unpacked {
        stream,
        is_parquet: inner.starts_with(PARQUET_MAGIC),
        plain_file: None,
        warnings,
        packed_read: Some(packed_read),
    })
}

fn unsupported(found: Packing) -> Error {
    Error::corrupt(format!(
        "input is packed with {} in a place where that cannot be read",
        found.name()
    ))
    .hint("unpack it and name the files; gzip, zstd and zip are read, one inside a zip, none twice")
}

fn peek_head(stream: ByteStream) -> Result<(Vec<u8>, ByteStream)> {
    let bytes = u64::try_from(HEAD_BYTES).unwrap_or(16);
    peek(stream, bytes).map_err(read_failed)
}

fn buffered(stream: ByteStream, read: &Arc<AtomicU64>) -> BufReader<Counted> {
    let counted = Counted {
        stream,
        read: Arc::clone(read),
    };
    BufReader::with_capacity(PACKED_BUFFER_BYTES, counted)
}
