//! From plain bytes to UTF-8 text: identity, byte order mark, decoding.
//!
//! Every byte passes the hasher once, in the pass that reads the records. A byte order mark beats
//! the declared encoding. Texts in UTF-8 are handed on unchecked (the worker checks them, in
//! parallel); all others are decoded here, and bytes that do not decode are an error with their
//! exact offset among the unpacked bytes.

use std::io::Read;

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::error::{Error, Result};
use crate::ingest::read::source::InputSource;
use crate::ingest::read::unpack::{ByteStream, open_unpacked, read_failed};
use crate::name::ContentHash;

/// Bytes that are decoded or hashed at a time.
const STEP_BYTES: usize = 256 << 10;

/// The identity of an input, BLAKE3 of its unpacked bytes, and their number. Reads it all.
///
/// # Errors
/// A failed file: truncated, damaged or unreadable; `InvalidInput` for standard input that was read.
pub fn hash_input(source: &InputSource) -> Result<(ContentHash, u64)> {
    let hash = || -> Result<(ContentHash, u64)> {
        let mut stream = open_unpacked(source)?.stream;
        hash_stream(&mut stream)
    };
    hash().map_err(|e| e.with("file", source.display_name()))
}

/// Hashes what is left of a stream.
pub(super) fn hash_stream(stream: &mut impl Read) -> Result<(ContentHash, u64)> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0_u8; STEP_BYTES];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok((ContentHash::finish(&hasher), hasher.count())),
            Ok(n) => {
                hasher.update(&buffer[..n]);
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(read_failed(e)),
        }
    }
}

/// A text as it comes.
pub(super) struct TextStream {
    stream: ByteStream,
    hasher: blake3::Hasher,
    /// Bytes read but not handed on yet: what follows the byte order mark.
    pending: Vec<u8>,
    /// Absent for UTF-8.
    decoder: Option<Transcoder>,
    start_offset: u64,
    at_end: bool,
}

struct Transcoder {
    decoder: Decoder,
    encoding: &'static Encoding,
    input: Vec<u8>,
}

impl TextStream {
    /// Looks for a byte order mark and starts decoding.
    pub(super) fn open(mut stream: ByteStream, declared: &'static Encoding) -> Result<Self> {
        let mut head = Vec::new();
        (&mut stream)
            .take(4)
            .read_to_end(&mut head)
            .map_err(read_failed)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&head);
        let (encoding, mark) = match head.as_slice() {
            [0xff, 0xfe, 0, 0] | [0, 0, 0xfe, 0xff] => {
                return Err(Error::corrupt("input is in UTF-32, which is not supported")
                    .hint("convert it to UTF-8, for example with `iconv -f UTF-32 -t UTF-8`"));
            }
            [0xef, 0xbb, 0xbf, ..] => (UTF_8, 3),
            [0xff, 0xfe, ..] => (UTF_16LE, 2),
            [0xfe, 0xff, ..] => (UTF_16BE, 2),
            _ => (declared, 0),
        };
        let pending = head.split_off(mark);
        let is_utf8 = encoding == UTF_8;
        Ok(Self {
            stream,
            hasher,
            pending,
            decoder: (!is_utf8).then(|| Transcoder {
                decoder: encoding.new_decoder_without_bom_handling(),
                encoding,
                input: Vec::new(),
            }),
            start_offset: if is_utf8 {
                u64::try_from(mark).unwrap_or(0)
            } else {
                0
            },
            at_end: false,
        })
    }

    /// Offset of the first byte that is handed on: 3 after the mark of UTF-8, else 0.
    pub(super) fn start_offset(&self) -> u64 {
        self.start_offset
    }

    /// Unpacked bytes so far, all of them at the end.
    pub(super) fn bytes(&self) -> u64 {
        self.hasher.count()
    }

    /// The identity, once the end was reached.
    pub(super) fn content(&self) -> ContentHash {
        ContentHash::finish(&self.hasher)
    }

    /// Appends about `want` bytes of text; false at the end.
    pub(super) fn fill(&mut self, out: &mut Vec<u8>, want: usize) -> Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        let before = out.len();
        match self.decoder.take() {
            None => self.fill_plain(out, want)?,
            Some(mut transcoder) => {
                while out.len() == before && !self.at_end {
                    self.fill_decoded(&mut transcoder, out, want)?;
                }
                self.decoder = Some(transcoder);
            }
        }
        Ok(out.len() > before)
    }

    fn fill_plain(&mut self, out: &mut Vec<u8>, want: usize) -> Result<()> {
        if !self.pending.is_empty() {
            out.append(&mut self.pending);
            return Ok(());
        }
        let old = out.len();
        self.read_raw(out, want)?;
        self.at_end = out.len() == old;
        Ok(())
    }

    fn fill_decoded(
        &mut self,
        transcoder: &mut Transcoder,
        out: &mut Vec<u8>,
        want: usize,
    ) -> Result<()> {
        transcoder.input.clear();
        transcoder.input.append(&mut self.pending);
        if transcoder.input.is_empty() {
            let want = want.min(STEP_BYTES);
            let mut input = std::mem::take(&mut transcoder.input);
            self.read_raw(&mut input, want)?;
            transcoder.input = input;
            self.at_end = transcoder.input.is_empty();
        }
        transcoder.decode(out, self.hasher.count(), self.at_end)
    }

    fn read_raw(&mut self, out: &mut Vec<u8>, want: usize) -> Result<()> {
        let old = out.len();
        out.reserve(want);
        let limit = u64::try_from(want).unwrap_or(u64::MAX);
        (&mut self.stream)
            .take(limit)
            .read_to_end(out)
            .map_err(read_failed)?;
        self.hasher.update(&out[old..]);
        Ok(())
    }
}

impl Transcoder {
    /// Decodes all of `input`, whose end is at `end` among the unpacked bytes.
    fn decode(&mut self, out: &mut Vec<u8>, end: u64, last: bool) -> Result<()> {
        let too_big = || Error::internal("text to decode does not fit into memory");
        let mut done = 0;
        loop {
            let old = out.len();
            let need = self
                .decoder
                .max_utf8_buffer_length_without_replacement(self.input.len() - done)
                .ok_or_else(too_big)?;
            out.resize(old + need, 0);
            let (result, read, written) = self.decoder.decode_to_utf8_without_replacement(
                &self.input[done..],
                &mut out[old..],
                last,
            );
            out.truncate(old + written);
            done += read;
            match result {
                DecoderResult::InputEmpty => return Ok(()),
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(bad, after) => {
                    let ahead = u64::try_from(self.input.len() - done).map_err(|_| too_big())?;
                    let offset = end - ahead - u64::from(after) - u64::from(bad);
                    return Err(undecodable(self.encoding, offset));
                }
            }
        }
    }
}

fn undecodable(encoding: &'static Encoding, offset: u64) -> Error {
    Error::corrupt(format!(
        "bytes at offset `{offset}` are no text in `{}`",
        encoding.name()
    ))
    .with("offset", offset)
    .hint("the file is in another encoding, or damaged there: declare the right one with --encoding or `encoding` of [input]")
}
