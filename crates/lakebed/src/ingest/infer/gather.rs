//! Reads inputs record by record and collects evidence.
//!
//! Values are taken apart level by level with their texts kept; nesting is followed to a fixed depth,
//! so that hostile input costs neither stack nor time. What is no record is counted, never fatal;
//! a file that cannot be read at all is an error, as it is for ingest.

use std::fmt;

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::ingest::chunk::{Chunk, ChunkBody, CsvHeader};
use crate::ingest::infer::evidence::{Evidence, FieldEvidence, Members};
use crate::ingest::infer::typed;
use crate::ingest::read::{ChunkReader, InputSource, ReadOptions, csv_records, split_cells};

/// Levels of objects and arrays that are looked into.
const MAX_DEPTH: usize = 16;

/// Reads the inputs (each up to `max_records` records) and collects what they say.
///
/// # Errors
/// A failed file, as for ingest; `CorruptData` with the offset for bytes that are no UTF-8.
pub fn gather(
    sources: &[InputSource],
    options: &ReadOptions,
    max_records: Option<u64>,
) -> Result<Evidence> {
    let mut evidence = Evidence::default();
    for (file, source) in sources.iter().enumerate() {
        evidence.files.push(source.display_name().to_owned());
        let enough = max_records.map(|max| evidence.records.saturating_add(max));
        let mut reader = ChunkReader::open(source, file, options)?;
        let mut is_whole = true;
        while let Some(chunk) = reader.next_chunk()? {
            Gatherer {
                evidence: &mut evidence,
                file,
                enough,
            }
            .add_chunk(&chunk)
            .map_err(|e| e.with("file", source.display_name()))?;
            if enough.is_some_and(|n| evidence.records >= n) {
                is_whole = false;
                break;
            }
        }
        if is_whole {
            evidence.warnings.extend(reader.finish()?.warnings);
        } else {
            evidence.warnings.extend_from_slice(reader.hints());
        }
    }
    Ok(evidence)
}

struct Gatherer<'a> {
    evidence: &'a mut Evidence,
    file: usize,
    /// Records at which to stop.
    enough: Option<u64>,
}

impl Gatherer<'_> {
    fn add_chunk(&mut self, chunk: &Chunk) -> Result<()> {
        match &chunk.body {
            ChunkBody::Lines(bytes) => {
                let lines = utf8(bytes, chunk)?.split_inclusive('\n');
                for (line, text) in (chunk.first_line..).zip(lines) {
                    self.add_values(text, line);
                }
            }
            ChunkBody::Values(bytes) => self.add_values(utf8(bytes, chunk)?, chunk.first_line),
            ChunkBody::Csv { bytes, header } => {
                utf8(bytes, chunk)?;
                self.add_rows(bytes, header, chunk.first_line);
            }
            ChunkBody::Batch(batch) => {
                let rows = u64::try_from(batch.num_rows()).unwrap_or(u64::MAX);
                self.evidence.records += rows;
                self.evidence.root.objects += rows;
                typed::add_batch(&mut self.evidence.root, batch, self.file);
            }
        }
        Ok(())
    }

    fn is_enough(&self) -> bool {
        self.enough.is_some_and(|n| self.evidence.records >= n)
    }

    fn unreadable(&mut self, line: u64, why: &str) {
        self.evidence.unreadable += 1;
        if self.evidence.first_unreadable.is_none() {
            let file = self.evidence.files.last().map_or("", String::as_str);
            self.evidence.first_unreadable = Some(format!("`{file}`, line {line}: {why}"));
        }
    }

    /// Whole values, the first of which begins at or after `first_line`.
    fn add_values(&mut self, text: &str, first_line: u64) {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
        let mut line = first_line;
        let mut counted = 0;
        while !self.is_enough() {
            let Some(next) = values.next() else { break };
            let end = values.byte_offset();
            match next {
                Ok(value) => {
                    let value = value.get();
                    let start = end - value.len();
                    line += newlines(&text[counted..start]);
                    counted = start;
                    self.add_record(value, line);
                }
                Err(e) => {
                    let at = u64::try_from(e.line()).unwrap_or(1).saturating_sub(1);
                    self.unreadable(first_line + at, "it is not well-formed JSON");
                    break;
                }
            }
        }
    }

    fn add_record(&mut self, text: &str, line: u64) {
        match members_of(text) {
            Some(members) => {
                self.evidence.records += 1;
                add_members(&mut self.evidence.root, &members, self.file, 0);
            }
            None => self.unreadable(line, "it is no JSON object with readable keys"),
        }
    }

    fn add_rows(&mut self, bytes: &[u8], header: &CsvHeader, first_line: u64) {
        let mut line = first_line;
        for record in csv_records(bytes, header.delimiter, header.quote) {
            if self.is_enough() {
                break;
            }
            let cells = split_cells(record, header.delimiter, header.quote);
            let here = line;
            line += u64::try_from(memchr::memchr_iter(b'\n', record).count()).unwrap_or(0);
            if record.trim_ascii().is_empty() {
                continue;
            }
            if cells.len() != header.names.len() {
                self.unreadable(here, "its cells are not as many as those of the header");
                continue;
            }
            self.evidence.records += 1;
            self.evidence.root.objects += 1;
            for (name, cell) in header.names.iter().zip(&cells) {
                let text = String::from_utf8_lossy(&cell.text);
                let field = self.evidence.root.entry(name, self.file);
                field.last_file = self.file;
                field.add_cell(&text, cell.is_quoted);
            }
        }
    }
}

fn newlines(text: &str) -> u64 {
    u64::try_from(memchr::memchr_iter(b'\n', text.as_bytes()).count()).unwrap_or(0)
}

fn utf8<'a>(bytes: &'a [u8], chunk: &Chunk) -> Result<&'a str> {
    simdutf8::compat::from_utf8(bytes).map_err(|e| {
        let valid = e.valid_up_to();
        let offset = chunk.offset + u64::try_from(valid).unwrap_or(0);
        let before = memchr::memchr_iter(b'\n', &bytes[..valid]).count();
        Error::corrupt(format!("bytes at offset `{offset}` are no text in `UTF-8`"))
            .with("line", chunk.first_line + u64::try_from(before).unwrap_or(0))
            .with("offset", offset)
            .hint("if the file is in another encoding, declare it with --encoding or `encoding` of [input]")
    })
}

fn add_members(members: &mut Members, values: &[(String, &RawValue)], file: usize, depth: usize) {
    members.objects += 1;
    for (name, value) in values {
        add_value(members.entry(name, file), value.get(), file, depth);
    }
}

fn add_value(field: &mut FieldEvidence, text: &str, file: usize, depth: usize) {
    field.last_file = file;
    match text.as_bytes().first() {
        Some(b'n') => field.kinds.null += 1,
        Some(b't' | b'f') => {
            field.kinds.bool += 1;
            field.sample(text, true);
        }
        Some(b'"') => {
            // an escape that is no character (a lone surrogate) keeps its own text
            let plain = serde_json::from_str::<String>(text);
            field.add_text(plain.as_deref().unwrap_or(text));
        }
        Some(b'{') => {
            field.kinds.object += 1;
            field.sample(text, false);
            if depth >= MAX_DEPTH {
                field.is_too_deep = true;
            } else if let Some(values) = members_of(text) {
                let members = field.members.get_or_insert_default();
                add_members(members, &values, file, depth + 1);
            }
        }
        Some(b'[') => {
            field.kinds.array += 1;
            field.sample(text, false);
            if depth >= MAX_DEPTH {
                field.is_too_deep = true;
            } else {
                for element in elements_of(text) {
                    let elements = field
                        .elements
                        .get_or_insert_with(|| Box::new(FieldEvidence::new(file)));
                    add_value(elements, element.get(), file, depth + 1);
                }
            }
        }
        Some(_) | None => {
            field.add_number(text);
            field.sample(text, true);
        }
    }
}

/// The members of an object, in order; `None` for anything else.
fn members_of(text: &str) -> Option<Vec<(String, &RawValue)>> {
    struct Object;
    impl<'de> Visitor<'de> for Object {
        type Value = Vec<(String, &'de RawValue)>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }
    serde_json::Deserializer::from_str(text)
        .deserialize_map(Object)
        .ok()
}

fn elements_of(text: &str) -> Vec<&RawValue> {
    struct Array;
    impl<'de> Visitor<'de> for Array {
        type Value = Vec<&'de RawValue>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut elements = Vec::new();
            while let Some(element) = seq.next_element()? {
                elements.push(element);
            }
            Ok(elements)
        }
    }
    serde_json::Deserializer::from_str(text)
        .deserialize_seq(Array)
        .unwrap_or_default()
}
