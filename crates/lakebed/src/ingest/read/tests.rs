//! Tests of reading: what a caller sees of an input, whatever the size of the chunks.

mod csv;
mod encodings;
mod json;
mod packed;
mod rows;
mod sources;

use std::path::PathBuf;

use tempfile::TempDir;

use super::{ChunkReader, InputFacts, InputSource, ReadOptions, resolve_inputs};
use crate::error::{Error, ErrorKind, Result};
use crate::ingest::chunk::{Chunk, ChunkBody};
use crate::spec::ReadSpec;

/// Chunk sizes that put borders everywhere, and one that puts none.
const SIZES: [usize; 8] = [1, 2, 3, 5, 7, 16, 64, 1 << 20];

/// A folder with one input.
struct Input {
    folder: TempDir,
    path: PathBuf,
}

fn input(name: &str, bytes: &[u8]) -> Input {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    Input { folder, path }
}

impl Input {
    fn source(&self) -> InputSource {
        self.sources().remove(0)
    }

    fn sources(&self) -> Vec<InputSource> {
        resolve_inputs(&[self.path.display().to_string()]).unwrap()
    }

    fn read(&self, options: &ReadOptions) -> Result<(Vec<Chunk>, InputFacts)> {
        read(&self.source(), options)
    }
}

fn read(source: &InputSource, options: &ReadOptions) -> Result<(Vec<Chunk>, InputFacts)> {
    let mut reader = ChunkReader::open(source, 0, options)?;
    let mut chunks = Vec::new();
    while let Some(chunk) = reader.next_chunk()? {
        chunks.push(chunk);
    }
    assert!(reader.next_chunk()?.is_none(), "the end stays the end");
    Ok((chunks, reader.finish()?))
}

fn options(size: usize) -> ReadOptions {
    with(size, |_| {})
}

fn with(size: usize, change: impl FnOnce(&mut ReadSpec)) -> ReadOptions {
    let mut spec = ReadSpec::default();
    change(&mut spec);
    ReadOptions::new(&spec).unwrap().with_chunk_bytes(size)
}

fn bytes_of(chunk: &Chunk) -> &[u8] {
    match &chunk.body {
        ChunkBody::Lines(b) | ChunkBody::Values(b) | ChunkBody::Csv { bytes: b, .. } => b,
        ChunkBody::Batch(_) => panic!("text expected"),
    }
}

/// All text of the chunks; lines and offsets of the chunks must follow each other.
fn text_of(chunks: &[Chunk]) -> String {
    let mut all = Vec::new();
    let mut next = None;
    for chunk in chunks {
        let bytes = bytes_of(chunk);
        if let Some((line, offset)) = next {
            assert_eq!((chunk.first_line, chunk.offset), (line, offset));
        }
        let lines = bytes.iter().filter(|b| **b == b'\n').count() as u64;
        next = Some((chunk.first_line + lines, chunk.offset + bytes.len() as u64));
        all.extend_from_slice(bytes);
    }
    String::from_utf8(all).unwrap()
}

/// The values of the chunks, each with its physical line and offset.
fn values_of(chunks: &[Chunk]) -> Vec<(String, u64, u64)> {
    let mut found = Vec::new();
    for chunk in chunks {
        let text = std::str::from_utf8(bytes_of(chunk)).unwrap();
        let mut values =
            serde_json::Deserializer::from_str(text).into_iter::<&serde_json::value::RawValue>();
        while let Some(value) = values.next() {
            let value = value.unwrap().get();
            let at = values.byte_offset() - value.len();
            let lines = text[..at].matches('\n').count() as u64;
            found.push((
                value.to_owned(),
                chunk.first_line + lines,
                chunk.offset + at as u64,
            ));
        }
    }
    found
}

fn texts(values: &[(String, u64, u64)]) -> Vec<&str> {
    values.iter().map(|v| v.0.as_str()).collect()
}

fn context<'a>(error: &'a Error, key: &str) -> Option<&'a str> {
    error
        .context()
        .iter()
        .find(|(k, _)| *k == key)
        .map(|(_, v)| v.as_str())
}

/// The error of a failed file: it is corrupt data, and names the file.
#[track_caller]
fn failed(input: &Input, options: &ReadOptions) -> Error {
    let error = match input.read(options) {
        Ok((chunks, _)) => panic!("read as {chunks:?}"),
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::CorruptData, "{error}");
    assert_eq!(
        context(&error, "file"),
        Some(input.path.display().to_string().as_str()),
        "{error}"
    );
    error
}
