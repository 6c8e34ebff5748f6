//! Records of WARC 1.1: named fields, a block of bytes, one gzip member each where packed.

use std::io::{BufRead, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::{Error, Result};
use crate::spec::MAX_BODY_BYTES;

/// Bytes of all fields of a record at most.
const MAX_FIELDS_BYTES: u64 = 4 << 20;
/// Bytes of a block at most: a body with its head.
const MAX_BLOCK_BYTES: u64 = MAX_BODY_BYTES + (16 << 20);

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WarcRecord {
    pub(super) fields: Vec<(String, String)>,
    pub(super) block: Vec<u8>,
}

impl WarcRecord {
    /// The value of a field; names are compared without regard to case.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let found = self
            .fields
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The record as it is written; the length of its block is added to its fields.
    pub(super) fn to_bytes(&self, gzip: bool) -> Result<Vec<u8>> {
        let mut bytes = b"WARC/1.1\r\n".to_vec();
        for (name, value) in &self.fields {
            // A line break in a value would begin another field.
            let value = value.replace(['\r', '\n'], " ");
            bytes.extend(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend(format!("Content-Length: {}\r\n\r\n", self.block.len()).as_bytes());
        bytes.extend(&self.block);
        bytes.extend(b"\r\n\r\n");
        if !gzip {
            return Ok(bytes);
        }
        let packed = || -> std::io::Result<Vec<u8>> {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&bytes)?;
            encoder.finish()
        };
        packed().map_err(|e| Error::internal("compress a WARC record").caused_by(e))
    }
}

fn failed(e: std::io::Error) -> Error {
    Error::corrupt(format!("read the WARC: {e}")).caused_by(e)
}

/// A line without its end; `None` at the end of the file.
fn read_line(from: &mut impl BufRead) -> Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut limited = from.take(MAX_FIELDS_BYTES);
    limited.read_until(b'\n', &mut line).map_err(failed)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(Error::corrupt(
            "read the WARC: it ends within a record, or a line has no end",
        ));
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(Some(line))
}

/// The next record; `None` at the end.
///
/// # Errors
/// `CorruptData` for what is no record, or one that the file's end cuts.
pub(super) fn read_record(from: &mut impl BufRead) -> Result<Option<WarcRecord>> {
    let version = loop {
        match read_line(from)? {
            None => return Ok(None),
            Some(line) if line.is_empty() => {}
            Some(line) => break line,
        }
    };
    if !version.starts_with(b"WARC/1.") && !version.starts_with(b"WARC/0.") {
        return Err(Error::corrupt(
            "read the WARC: a record does not begin with its version",
        ));
    }
    let fields = read_fields(from)?;
    let mut record = WarcRecord {
        fields,
        block: Vec::new(),
    };
    let length = record
        .field("Content-Length")
        .and_then(|n| n.trim().parse::<u64>().ok());
    let Some(length) = length.filter(|n| *n <= MAX_BLOCK_BYTES) else {
        return Err(Error::corrupt(
            "read the WARC: a record has no length that it could have",
        ));
    };
    from.take(length)
        .read_to_end(&mut record.block)
        .map_err(failed)?;
    if record.block.len() as u64 != length {
        return Err(Error::corrupt("read the WARC: it ends within a record"));
    }
    Ok(Some(record))
}

fn read_fields(from: &mut impl BufRead) -> Result<Vec<(String, String)>> {
    let cut = || Error::corrupt("read the WARC: it ends within a record");
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut bytes = 0;
    loop {
        let line = read_line(from)?.ok_or_else(cut)?;
        if line.is_empty() {
            return Ok(fields);
        }
        bytes += line.len() as u64;
        if bytes > MAX_FIELDS_BYTES {
            return Err(Error::corrupt(
                "read the WARC: the fields of a record have no end",
            ));
        }
        let text = String::from_utf8_lossy(&line);
        match (text.starts_with([' ', '\t']), fields.last_mut()) {
            (true, Some((_, value))) => {
                value.push(' ');
                value.push_str(text.trim());
            }
            _ => {
                let (name, value) = text.split_once(':').unwrap_or((&text, ""));
                fields.push((name.trim().to_owned(), value.trim().to_owned()));
            }
        }
    }
}
