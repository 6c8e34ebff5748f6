//! One input as chunks of whole records. Plain sync code, meant for a thread of its own.
//!
//! The one pass that reads the records also computes identity and size. Only new bytes are searched
//! for the place to cut; what follows the cut moves to the next chunk's buffer.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ingest::chunk::{Chunk, ChunkBody, CsvHeader};
use crate::ingest::read::columnar::ParquetRows;
use crate::ingest::read::csv::{
    CsvSplitter, HeaderFound, declared_header, first_record_end, header_of,
};
use crate::ingest::read::form::{
    Form, JsonProbe, declared_format, format_of_first_byte, format_of_name,
};
use crate::ingest::read::lines::LineSplitter;
use crate::ingest::read::options::ReadOptions;
use crate::ingest::read::pointer::Pointer;
use crate::ingest::read::source::InputSource;
use crate::ingest::read::text::TextStream;
use crate::ingest::read::unpack::{Unpacked, open_unpacked};
use crate::ingest::read::values::ValueSplitter;
use crate::ingest::read::window::Window;
use crate::name::ContentHash;
use crate::spec::InputFormat;

/// Bytes read at a time: small enough to stay in the cache while they are hashed and searched.
const FILL_BYTES: usize = 1 << 20;

/// What is known of an input once it was read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFacts {
    /// BLAKE3 of the unpacked bytes: the identity.
    pub content: ContentHash,
    /// Unpacked bytes.
    pub bytes: u64,
    /// What the user should know, though nothing failed.
    pub warnings: Vec<String>,
    /// The form it was read in.
    pub form: Form,
    /// Records, where the file announces them (Parquet).
    pub records_hint: Option<u64>,
    /// No bytes, or blank lines only.
    pub is_empty: bool,
}

/// Reads one input.
pub struct ChunkReader {
    file: String,
    input: usize,
    form: Form,
    chunk_bytes: usize,
    warnings: Vec<String>,
    hints: Vec<String>,
    is_empty: bool,
    ended: bool,
    body: Body,
}

enum Body {
    Text(Box<TextBody>),
    Parquet(Box<ParquetRows>),
}

struct TextBody {
    stream: TextStream,
    /// A document's records, read whole; they are fed from here instead of the stream.
    held: Option<Held>,
    window: Window,
    /// Up to here the window was searched.
    scanned: usize,
    splitter: Splitter,
}

struct Held {
    text: Vec<u8>,
    at: usize,
    /// Arrays of the document that end with a comma.
    trailing_commas: u64,
}

enum Splitter {
    Lines(LineSplitter),
    Values(ValueSplitter),
    Csv(CsvSplitter, Arc<CsvHeader>),
}

impl ChunkReader {
    /// Opens an input and finds out its form.
    ///
    /// # Errors
    /// A failed file (`CorruptData`), with the file and, where there is one, the line; `LimitExceeded`
    /// for a document that is too large; `NotFound` or `Unavailable` for one that cannot be opened.
    pub fn open(source: &InputSource, input: usize, options: &ReadOptions) -> Result<Self> {
        Self::open_named(source, input, options).map_err(|e| e.with("file", source.display_name()))
    }

    fn open_named(source: &InputSource, input: usize, options: &ReadOptions) -> Result<Self> {
        let mut unpacked = open_unpacked(source)?;
        let format = declared_format(options, source.content_name());
        let mut warnings = std::mem::take(&mut unpacked.warnings);
        let mut reader = |form, body, hints, is_empty, more: Vec<String>| {
            warnings.extend(more);
            Self {
                file: source.display_name().to_owned(),
                input,
                form,
                chunk_bytes: options.chunk_bytes,
                warnings: std::mem::take(&mut warnings),
                hints,
                is_empty,
                ended: false,
                body,
            }
        };
        if reads_as_parquet(&unpacked, options, format)? {
            let mut more = ignored_keys(options, Form::Parquet);
            let named = format_of_name(source.content_name());
            if named.is_some_and(|f| f != InputFormat::Parquet) {
                more.push(format!(
                    "`{}` is a Parquet file, whatever its name says: the content decided",
                    source.display_name()
                ));
            }
            let rows = ParquetRows::open(unpacked, options.chunk_bytes)?;
            let body = Body::Parquet(Box::new(rows));
            return Ok(reader(Form::Parquet, body, Vec::new(), false, more));
        }
        let opened = open_text(unpacked, format, options)?;
        let mut more = ignored_keys(options, opened.form);
        more.extend(opened.hints.iter().cloned());
        let body = Body::Text(Box::new(opened.body));
        Ok(reader(
            opened.form,
            body,
            opened.hints,
            opened.is_empty,
            more,
        ))
    }

    /// The form the input is read in.
    #[must_use]
    pub fn form(&self) -> Form {
        self.form
    }

    /// Advice that belongs to whatever goes wrong with this input, such as a wrong delimiter.
    #[must_use]
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Unpacked bytes read so far, for progress.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        match &self.body {
            Body::Text(text) => text.stream.bytes(),
            Body::Parquet(rows) => rows.bytes,
        }
    }

    /// The next whole records, in order; `None` at the end.
    ///
    /// # Errors
    /// A failed file, as for [`ChunkReader::open`].
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        if self.ended {
            return Ok(None);
        }
        let next = match &mut self.body {
            Body::Text(text) => text.next_chunk(self.input, self.chunk_bytes),
            Body::Parquet(rows) => rows.next_batch().map(|next| {
                next.map(|(batch, first_row)| Chunk {
                    input: self.input,
                    first_line: first_row,
                    offset: 0,
                    body: ChunkBody::Batch(batch),
                })
            }),
        };
        let next = next.map_err(|e| {
            let e = e.with("file", &self.file);
            self.hints.iter().fold(e, |e, hint| e.hint(hint.clone()))
        })?;
        self.ended = next.is_none();
        Ok(next)
    }

    /// What is known of the input, once [`ChunkReader::next_chunk`] gave `None`.
    ///
    /// # Errors
    /// `Internal` before the end: identity and checksums are known only there.
    pub fn finish(mut self) -> Result<InputFacts> {
        if !self.ended {
            return Err(Error::internal("input was not read to its end").with("file", &self.file));
        }
        let (content, bytes, records_hint) = match &self.body {
            Body::Text(text) => {
                let commas = match (&text.splitter, &text.held) {
                    (Splitter::Values(_), Some(held)) => held.trailing_commas,
                    (Splitter::Values(values), None) => values.trailing_commas(),
                    (Splitter::Lines(_) | Splitter::Csv(..), _) => 0,
                };
                self.warnings
                    .extend(trailing_comma_warning(&self.file, commas));
                (text.stream.content(), text.stream.bytes(), None)
            }
            Body::Parquet(rows) => (rows.content.clone(), rows.bytes, Some(rows.rows)),
        };
        Ok(InputFacts {
            content,
            bytes,
            warnings: self.warnings,
            form: self.form,
            records_hint,
            is_empty: self.is_empty,
        })
    }
}

fn trailing_comma_warning(file: &str, arrays: u64) -> Option<String> {
    (arrays > 0).then(|| {
        format!("`{file}` has a comma before the end of {arrays} array(s): accepted, though it is no JSON")
    })
}

/// Keys that are declared but mean nothing for this form.
fn ignored_keys(options: &ReadOptions, form: Form) -> Vec<String> {
    let mut ignored = Vec::new();
    if options.records.is_some() && !form.is_json() {
        ignored.push("records");
    }
    ignored
        .into_iter()
        .map(|key| {
            format!(
                "`{key}` is declared, but means nothing for a {} input",
                form.as_str()
            )
        })
        .collect()
}

/// Whether the input is read as Parquet: declared so, or by its magic bytes.
fn reads_as_parquet(
    unpacked: &Unpacked,
    options: &ReadOptions,
    format: Option<InputFormat>,
) -> Result<bool> {
    let declared = options.format;
    if unpacked.is_parquet {
        return match declared {
            None | Some(InputFormat::Parquet) => Ok(true),
            Some(InputFormat::Json | InputFormat::Jsonl | InputFormat::Csv | InputFormat::Tsv) => {
                Err(
                    Error::corrupt("input is a Parquet file, but another format is declared")
                        .hint("drop `format` of [input], or declare format = \"parquet\""),
                )
            }
        };
    }
    if format == Some(InputFormat::Parquet) {
        return Err(
            Error::corrupt("input is no Parquet file, though it is declared or named so")
                .hint("the file may be truncated or of another format: look at its first bytes"),
        );
    }
    Ok(false)
}

struct OpenedText {
    form: Form,
    body: TextBody,
    hints: Vec<String>,
    is_empty: bool,
}

fn open_text(
    unpacked: Unpacked,
    format: Option<InputFormat>,
    options: &ReadOptions,
) -> Result<OpenedText> {
    let stream = TextStream::open(unpacked.stream, options.encoding)?;
    let mut head = Head {
        window: Window::new(stream.start_offset()),
        stream,
        fill: options.chunk_bytes.min(FILL_BYTES),
        at_end: false,
    };
    let Some(first) = head.first_byte()? else {
        return empty_text(head, format, options);
    };
    let format = match format {
        Some(format) => format,
        None => format_of_first_byte(options, first)?,
    };
    match format {
        InputFormat::Csv => head.open_csv(Form::Csv, options),
        InputFormat::Tsv => head.open_csv(Form::Tsv, options),
        InputFormat::Jsonl => Ok(head.open_json(Form::JsonLines)),
        InputFormat::Json => match &options.records {
            Some(pointer) => head.open_document(pointer),
            None => {
                let form = head.probe()?;
                Ok(head.open_json(form))
            }
        },
        InputFormat::Parquet => Err(Error::internal("Parquet was opened as text")),
    }
}

/// An input without a record: refused unless that is allowed.
fn empty_text(
    head: Head,
    format: Option<InputFormat>,
    options: &ReadOptions,
) -> Result<OpenedText> {
    if !options.allow_empty {
        let what = if head.stream.bytes() == 0 {
            "input is empty: it has no byte"
        } else {
            "input is empty: it has blank lines only"
        };
        return Err(Error::corrupt(what)
            .hint("if a day without records is right, call with --allow-empty; a crawl that found nothing should write `[]`"));
    }
    let form = match format {
        Some(InputFormat::Csv) => Form::Csv,
        Some(InputFormat::Tsv) => Form::Tsv,
        Some(InputFormat::Json | InputFormat::Jsonl | InputFormat::Parquet) | None => {
            Form::JsonLines
        }
    };
    let mut opened = head.open_json(form);
    opened.body.window.buf.clear();
    opened.is_empty = true;
    Ok(opened)
}

/// The beginning of a text, read until its form is clear.
struct Head {
    stream: TextStream,
    window: Window,
    fill: usize,
    at_end: bool,
}

impl Head {
    /// Reads on; false at the end.
    fn more(&mut self) -> Result<bool> {
        self.window.check_size("beginning of the input")?;
        let more = self.stream.fill(&mut self.window.buf, self.fill)?;
        self.at_end = !more;
        Ok(more)
    }

    /// The first byte that is not blank; whole blank lines before it are dropped.
    fn first_byte(&mut self) -> Result<Option<u8>> {
        loop {
            let buf = &self.window.buf;
            let blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
            let found = buf.iter().position(|b| !blank(b));
            let lines = memchr::memrchr(b'\n', &buf[..found.unwrap_or(buf.len())]);
            let first = found.map(|at| buf[at]);
            if let Some(at) = lines {
                self.window.skip(at + 1);
            }
            if first.is_some() || !self.more()? {
                return Ok(first);
            }
        }
    }

    fn probe(&mut self) -> Result<Form> {
        let mut probe = JsonProbe::new();
        loop {
            if let Some(form) = probe.look(&self.window.buf, self.at_end) {
                return Ok(form);
            }
            self.more()?;
        }
    }

    fn open_json(self, form: Form) -> OpenedText {
        let splitter = match form {
            Form::JsonValues | Form::JsonDocument => {
                Splitter::Values(ValueSplitter::new(self.window.line))
            }
            Form::JsonLines | Form::Csv | Form::Tsv | Form::Parquet => {
                Splitter::Lines(LineSplitter::default())
            }
        };
        self.opened(form, splitter, Vec::new())
    }

    fn opened(self, form: Form, splitter: Splitter, hints: Vec<String>) -> OpenedText {
        OpenedText {
            form,
            body: TextBody {
                stream: self.stream,
                held: None,
                window: self.window,
                scanned: 0,
                splitter,
            },
            hints,
            is_empty: false,
        }
    }

    /// Reads the whole document and finds its records.
    fn open_document(mut self, pointer: &Pointer) -> Result<OpenedText> {
        while self.more().map_err(|e| {
            e.hint(
                "a document with `records` is held whole: let the crawler write JSON lines instead",
            )
        })? {}
        let (range, trailing_commas) = pointer.find(&self.window.buf, self.window.line)?;
        let mut text = std::mem::take(&mut self.window.buf);
        let mut window = Window::new(self.window.offset);
        window.line = self.window.line;
        window.buf = text;
        window.skip(range.start);
        text = std::mem::take(&mut window.buf);
        text.truncate(range.end - range.start);
        self.window = window;
        let mut opened = self.open_json(Form::JsonDocument);
        opened.body.held = Some(Held {
            text,
            at: 0,
            trailing_commas,
        });
        Ok(opened)
    }

    fn open_csv(mut self, form: Form, options: &ReadOptions) -> Result<OpenedText> {
        let delimiter = options.delimiter_byte(form == Form::Tsv);
        let quote = options.quote_byte();
        let HeaderFound { header, hints } = match &options.header {
            Some(names) => declared_header(names, delimiter, quote),
            None => self.read_header(delimiter, quote)?,
        };
        let splitter = Splitter::Csv(CsvSplitter::new(delimiter, quote), header);
        Ok(self.opened(form, splitter, hints))
    }

    /// The first record. It is looked for again each time the text has doubled.
    fn read_header(&mut self, delimiter: u8, quote: u8) -> Result<HeaderFound> {
        loop {
            if let Some(end) = first_record_end(&self.window.buf, delimiter, quote) {
                let found = header_of(&self.window.buf[..end], &self.window, delimiter, quote)?;
                self.window.skip(end);
                return Ok(found);
            }
            if self.at_end {
                let mut splitter = CsvSplitter::new(delimiter, quote);
                splitter.scan(&self.window.buf, true);
                splitter.finish(&self.window)?;
                let all = &self.window.buf;
                let found = header_of(all, &self.window, delimiter, quote)?;
                self.window.skip(self.window.buf.len());
                return Ok(found);
            }
            let wanted = self.window.buf.len() * 2;
            while self.more()? && self.window.buf.len() < wanted {}
        }
    }
}

impl TextBody {
    fn next_chunk(&mut self, input: usize, target: usize) -> Result<Option<Chunk>> {
        loop {
            let cut = self.scan(false)?;
            if cut > 0 && self.window.buf.len() >= target {
                if let Some(chunk) = self.emit(cut, input, target) {
                    return Ok(Some(chunk));
                }
                continue;
            }
            self.check_size()?;
            if !self.fill(target.min(FILL_BYTES))? {
                break;
            }
        }
        self.scan(true)?;
        match &mut self.splitter {
            Splitter::Lines(_) => {}
            Splitter::Values(values) => values.finish(&self.window)?,
            Splitter::Csv(csv, _) => csv.finish(&self.window)?,
        }
        Ok(self.emit(self.window.buf.len(), input, target))
    }

    fn fill(&mut self, want: usize) -> Result<bool> {
        let buf = &mut self.window.buf;
        match &mut self.held {
            None => self.stream.fill(buf, want),
            Some(held) => {
                let end = held.text.len().min(held.at + want);
                buf.extend_from_slice(&held.text[held.at..end]);
                let more = end > held.at;
                held.at = end;
                Ok(more)
            }
        }
    }

    /// Searches what was not searched yet; the position up to which whole records lie.
    fn scan(&mut self, at_end: bool) -> Result<usize> {
        let from = self.scanned;
        self.scanned = self.window.buf.len();
        match &mut self.splitter {
            Splitter::Lines(lines) => Ok(lines.scan(&self.window.buf, from)),
            Splitter::Values(values) => values.scan(&mut self.window, from),
            Splitter::Csv(csv, _) => Ok(csv.scan(&self.window.buf, at_end)),
        }
    }

    /// Cuts a chunk off; `None` where it would hold no record.
    fn emit(&mut self, cut: usize, input: usize, target: usize) -> Option<Chunk> {
        let piece = self
            .window
            .cut(cut, target.saturating_add(FILL_BYTES.min(target)));
        self.scanned = self.scanned.saturating_sub(cut);
        let line = self.window.line;
        let (body, has_records) = match &mut self.splitter {
            Splitter::Lines(lines) => {
                lines.forget(cut);
                let has = !piece.bytes.is_empty();
                (ChunkBody::Lines(piece.bytes), has)
            }
            Splitter::Values(values) => {
                let has = values.forget(cut, line);
                (ChunkBody::Values(piece.bytes), has)
            }
            Splitter::Csv(csv, header) => {
                csv.forget(cut);
                let has = !piece.bytes.is_empty();
                let header = Arc::clone(header);
                (
                    ChunkBody::Csv {
                        bytes: piece.bytes,
                        header,
                    },
                    has,
                )
            }
        };
        has_records.then_some(Chunk {
            input,
            first_line: piece.line,
            offset: piece.offset,
            body,
        })
    }

    fn check_size(&self) -> Result<()> {
        self.window.check_size("record").map_err(|e| {
            let open = match &self.splitter {
                Splitter::Csv(csv, _) => csv.open_line(&self.window),
                Splitter::Lines(_) | Splitter::Values(_) => None,
            };
            match open {
                Some(line) => e.hint(format!(
                    "the quote that opens on line {line} has no partner so far"
                )),
                None => e,
            }
        })
    }
}
