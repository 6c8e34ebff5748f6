//! The beginning of a text, read until its form, its header or its document is clear.

use crate::error::{Error, Result};
use crate::ingest::read::body::{FILL_BYTES, Held, Splitter, TextBody};
use crate::ingest::read::csv::{
    CsvSplitter, HeaderFound, declared_header, first_record_end, header_of,
};
use crate::ingest::read::form::{Form, JsonProbe, format_of_first_byte};
use crate::ingest::read::lines::LineSplitter;
use crate::ingest::read::options::ReadOptions;
use crate::ingest::read::pointer::Pointer;
use crate::ingest::read::text::TextStream;
use crate::ingest::read::unpack::Unpacked;
use crate::ingest::read::values::ValueSplitter;
use crate::ingest::read::window::Window;
use crate::spec::InputFormat;

/// A text whose form is known, at its first record.
pub(super) struct OpenedText {
    pub(super) form: Form,
    pub(super) body: TextBody,
    pub(super) hints: Vec<String>,
    pub(super) is_empty: bool,
}

/// Opens a text, finds out its form and stops at its first record.
pub(super) fn open_text(
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
