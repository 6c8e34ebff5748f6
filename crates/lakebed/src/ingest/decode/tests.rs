//! Decoding as a whole: each rule with its right value and the neighbours that must not pass.

use std::sync::Arc;

use crate::ingest::chunk::{Chunk, ChunkBody, CsvHeader};
use crate::ingest::convert::{Plan, Presence, TypedRow, write_members};
use crate::ingest::decode::{DecodeOptions, Decoded, Decoder, Mismatch};
use crate::spec::{ReadSpec, SchemaSpec};

mod cases;
mod cast;
mod csv;
mod dual;
mod hostile;
mod json;
mod keys;
mod properties;
mod rules;
mod typed;

/// A decoder and what it gave, in forms that are easy to compare.
struct Fixture {
    decoder: Decoder,
    columns: usize,
}

impl Fixture {
    /// Fields as lines `name: type` or `name: type, key = value, ...`; ids are given in order.
    fn new(fields: &[&str], mismatch: Mismatch) -> Self {
        let mut text = String::new();
        for (i, field) in fields.iter().enumerate() {
            let (name, rest) = field.split_once(": ").unwrap();
            let mut parts = rest.split(" | ");
            let kind = parts.next().unwrap();
            text.push_str(&format!(
                "[[field]]\nid = {}\nname = \"{name}\"\ntype = \"{kind}\"\n",
                i + 1
            ));
            for part in parts {
                text.push_str(&format!("{part}\n"));
            }
        }
        Self::of_toml(&text, mismatch)
    }

    fn of_toml(fields: &str, mismatch: Mismatch) -> Self {
        Self::reading(fields, mismatch, &ReadSpec::default())
    }

    fn reading(fields: &str, mismatch: Mismatch, read: &ReadSpec) -> Self {
        let text = format!("dataset = \"clean/src\"\nversion = 1\n{fields}");
        let schema: SchemaSpec = toml::from_str(&text).unwrap();
        let plan = Arc::new(Plan::compile(&schema, read).unwrap());
        let mut options = DecodeOptions::new(mismatch);
        options.kept_rejects = 3;
        Self {
            columns: schema.fields.len(),
            decoder: Decoder::new(plan, &"src".parse().unwrap(), options),
        }
    }

    fn chunk(&mut self, body: ChunkBody) -> crate::Result<Decoded> {
        let chunk = Chunk {
            input: 0,
            first_line: 1,
            offset: 0,
            body,
        };
        self.decoder.decode(&chunk, "input.x")
    }

    fn lines(&mut self, text: &str) -> Decoded {
        self.chunk(ChunkBody::Lines(text.as_bytes().to_vec()))
            .unwrap()
    }

    fn values(&mut self, text: &str) -> crate::Result<Decoded> {
        self.chunk(ChunkBody::Values(text.as_bytes().to_vec()))
    }

    /// The first line is the header.
    fn csv(&mut self, text: &str) -> Decoded {
        let (header, rest) = text.split_once('\n').unwrap();
        let header = CsvHeader {
            names: header.split(',').map(str::to_owned).collect(),
            delimiter: b',',
            quote: b'"',
            from_file: true,
        };
        let chunk = Chunk {
            input: 0,
            first_line: 2,
            offset: 0,
            body: ChunkBody::Csv {
                bytes: rest.as_bytes().to_vec(),
                header: Arc::new(header),
            },
        };
        self.decoder.decode(&chunk, "input.csv").unwrap()
    }

    /// Rows of the schema's own columns as JSON.
    fn rows(&self, decoded: &Decoded) -> Vec<String> {
        let mut rows = Vec::new();
        for batch in &decoded.batches {
            let own: Vec<usize> = (0..self.columns).collect();
            let own = batch.project(&own).unwrap();
            for row in 0..own.num_rows() {
                let mut out = String::new();
                write_members(&mut out, &TypedRow::of_batch(&own, row));
                rows.push(out);
            }
        }
        rows
    }
}

/// (line, field, path, code) of each reason of each reject.
fn reasons(decoded: &Decoded) -> Vec<(u64, String, String, String)> {
    let mut all = Vec::new();
    for reject in &decoded.rejects {
        for r in &reject.reasons {
            all.push((reject.line, r.field.clone(), r.path.clone(), r.code.clone()));
        }
    }
    all
}

fn reason(line: u64, field: &str, path: &str, code: &str) -> (u64, String, String, String) {
    (line, field.to_owned(), path.to_owned(), code.to_owned())
}

/// The lines of the rejects.
fn rejected(decoded: &Decoded) -> Vec<u64> {
    decoded.rejects.iter().map(|r| r.line).collect()
}

fn count(decoded: &Decoded, field: &str, kind: Presence) -> u64 {
    decoded.stats.presence.find(field).unwrap().count(kind)
}

/// Values of one field: (JSON of the value, what is stored), or `None` for a reject.
fn check_values(field: &str, cases: &[(&str, Option<&str>)]) {
    let mut fixture = Fixture::new(&[&format!("v: {field}")], Mismatch::Quarantine);
    for (value, wanted) in cases {
        let decoded = fixture.lines(&format!("{{\"v\":{value}}}\n"));
        let rows = fixture.rows(&decoded);
        let got = rows
            .first()
            .map(|r| r["{\"v\":".len()..r.len() - 1].to_owned());
        assert_eq!(
            got.as_deref(),
            *wanted,
            "{field}: {value}: {:?}",
            decoded.rejects
        );
        assert_eq!(
            decoded.rejects.len(),
            usize::from(wanted.is_none()),
            "{field}: {value}"
        );
    }
}
