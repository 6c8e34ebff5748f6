//! The threads of an ingest: one reads, many decode and encode, one appends in order.
//!
//! ```text
//! reader ── Work (seq, chunks) ──> workers ── Done (seq, row group, rejects, stats) ──> appender
//!    ^                                                                                     │
//!    └────────────────────────── tokens: bounded work in flight ───────────────────────────┘
//! ```
//!
//! Memory is bounded by the tokens, not by the input. What is written depends on the inputs, the
//! plan and the chunk size alone, never on the number of threads (see `write`). Nothing here commits.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::RecordBatch;

use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::ingest::chunk::{Chunk, ChunkBody};
use crate::ingest::convert::{Plan, RejectDraft};
use crate::ingest::data_file::{Encoder, Group, OpenPiece, Writer};
use crate::ingest::decode::{DecodeOptions, DecodeStats, Decoded, Decoder, Mismatch};
use crate::ingest::progress::Progress;
use crate::ingest::read::{
    ChunkReader, DEFAULT_CHUNK_BYTES, FirstPlaces, InputFacts, InputSource, ReadOptions,
};
use crate::ingest::write::{LinesFileWriter, StagedFile};
use crate::name::{AttemptId, SourceName};
use crate::spec::{FileFormat, RejectRecord};
use crate::store::{Store, StorePath, staged_path};

/// What a run of the pipeline needs.
pub(super) struct Job<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) inputs: &'a [InputSource],
    /// How each input is read.
    pub(super) read: &'a [ReadOptions],
    pub(super) plan: Arc<Plan>,
    /// Format of the data files.
    pub(super) format: FileFormat,
    pub(super) source: &'a SourceName,
    pub(super) mismatch: Mismatch,
    pub(super) threads: usize,
    /// Bytes of text in a row group.
    pub(super) group_bytes: usize,
    /// Bytes after which the next data file begins.
    pub(super) file_bytes: usize,
    /// The attempt whose stage folder the files are written to.
    pub(super) attempt: &'a AttemptId,
    /// Folder of the partition, to which data files move.
    pub(super) folder: StorePath,
    /// Folder of the date's rejects.
    pub(super) rejects_folder: StorePath,
    pub(super) progress: &'a dyn Progress,
}

/// What one input gave.
#[derive(Debug)]
pub(super) struct InputResult {
    pub(super) facts: InputFacts,
    pub(super) rows: u64,
    pub(super) rejected: u64,
}

/// What the pipeline left in the stage, durable.
#[derive(Debug)]
pub(super) struct Staged {
    pub(super) files: Vec<StagedFile>,
    pub(super) rejects: Option<StagedFile>,
    pub(super) inputs: Vec<InputResult>,
    pub(super) stats: DecodeStats,
}

struct Work {
    seq: u64,
    chunks: Vec<Chunk>,
}

/// What one chunk gave, its rows aside.
struct Part {
    input: usize,
    rows: u64,
    rejected: u64,
    rejects: Vec<RejectDraft>,
}

struct Done {
    group: Option<Group>,
    parts: Vec<Part>,
    stats: DecodeStats,
}

type Answer = (u64, Result<Done>);

/// Shared by the threads of one run.
struct Shared<'a> {
    job: &'a Job<'a>,
    /// Nothing more is needed: some thread failed.
    stopped: AtomicBool,
    /// Under `fail`, a reject was met: rows are still checked, but no longer written.
    refused: AtomicBool,
    /// Buffers of decoded chunks, for the reader to fill again.
    buffers: Mutex<Vec<Vec<u8>>>,
    /// Chosen by the first work item; `None` when that one failed.
    encoder: OnceLock<Option<Encoder>>,
}

impl Shared<'_> {
    fn take_buffer(&self) -> Option<Vec<u8>> {
        self.buffers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
    }

    /// Keeps the buffer of a decoded chunk; one that a huge record made is let go.
    fn give_back(&self, chunk: Chunk) {
        let (ChunkBody::Lines(buffer)
        | ChunkBody::Values(buffer)
        | ChunkBody::Csv { bytes: buffer, .. }) = chunk.body
        else {
            return;
        };
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        if buffers.len() < 4 && buffer.capacity() <= 2 * DEFAULT_CHUNK_BYTES {
            buffers.push(buffer);
        }
    }
}

/// Reads, decodes, encodes and stages everything.
pub(super) fn run(job: &Job<'_>) -> Result<Staged> {
    let shared = Shared {
        job,
        stopped: AtomicBool::new(false),
        refused: AtomicBool::new(false),
        buffers: Mutex::new(Vec::new()),
        encoder: OnceLock::new(),
    };
    let in_flight = job.threads + 1;
    let (work_in, work_out) = sync_channel::<Work>(1);
    let (done_in, done_out) = sync_channel::<Answer>(in_flight);
    let (token_in, token_out) = sync_channel::<()>(in_flight);
    for _ in 0..in_flight {
        if token_in.try_send(()).is_err() {
            return Err(Error::internal("the channel has no room for its tokens"));
        }
    }
    let work_out = Mutex::new(work_out);
    std::thread::scope(|scope| {
        let (shared, work_out) = (&shared, &work_out);
        let reader = scope.spawn(move || read_all(shared, work_in, token_out));
        for _ in 0..job.threads {
            let done = done_in.clone();
            scope.spawn(move || work(shared, work_out, done));
        }
        drop(done_in);
        let appended = append_all(shared, &done_out, &token_in);
        if appended.is_err() {
            shared.stopped.store(true, Ordering::SeqCst);
        }
        // Whoever still waits for a place or a token must be let go.
        drop(token_in);
        while done_out.recv().is_ok() {}
        let facts = reader
            .join()
            .map_err(|_| Error::internal("the reading thread died"))?;
        let (mut staged, mut counts) = appended?;
        for (i, facts) in facts?.into_iter().enumerate() {
            let (rows, rejected) = counts.remove(&i).unwrap_or_default();
            staged.inputs.push(InputResult {
                facts,
                rows,
                rejected,
            });
        }
        Ok(staged)
    })
}

fn chunk_bytes(chunk: &Chunk) -> usize {
    match &chunk.body {
        ChunkBody::Lines(bytes) | ChunkBody::Values(bytes) | ChunkBody::Csv { bytes, .. } => {
            bytes.len()
        }
        ChunkBody::Batch(batch) => batch.get_array_memory_size(),
    }
}

/// The reading thread: chunks in order, small ones gathered into one row group.
fn read_all(
    shared: &Shared<'_>,
    work: SyncSender<Work>,
    tokens: Receiver<()>,
) -> Result<Vec<InputFacts>> {
    let mut facts = Vec::new();
    let mut pending = Vec::new();
    let mut pending_bytes = 0;
    let mut seq = 0;
    let mut send = |chunks: Vec<Chunk>| -> bool {
        // No token any more, or nobody to work: the run has failed elsewhere and says so itself.
        let sent = tokens.recv().is_ok() && work.send(Work { seq, chunks }).is_ok();
        seq += 1;
        sent
    };
    let inputs = shared.job.inputs.iter().zip(shared.job.read).enumerate();
    for (index, (input, read)) in inputs {
        let mut reader = ChunkReader::open(input, index, read)?;
        check_form(shared.job.format, &reader, input)?;
        let mut done = 0;
        loop {
            if let Some(buffer) = shared.take_buffer() {
                reader.recycle(buffer);
            }
            let Some(chunk) = reader.next_chunk()? else {
                break;
            };
            let now = reader.bytes_done();
            shared.job.progress.advance(now.saturating_sub(done), 0, 0);
            done = now;
            if shared.stopped.load(Ordering::SeqCst) {
                return Ok(facts);
            }
            pending_bytes += chunk_bytes(&chunk);
            pending.push(chunk);
            if pending_bytes >= shared.job.group_bytes {
                pending_bytes = 0;
                if !send(std::mem::take(&mut pending)) {
                    return Ok(facts);
                }
            }
        }
        facts.push(reader.finish()?);
    }
    if !pending.is_empty() {
        // Everything was read, so it does not matter any more whether somebody still listens.
        send(pending);
    }
    Ok(facts)
}

/// Only JSON is kept as JSON.
fn check_form(format: FileFormat, reader: &ChunkReader, input: &InputSource) -> Result<()> {
    let form = reader.form();
    if format == FileFormat::Parquet || form.is_json() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a {} input has no JSON values to keep as they are",
        form.as_str()
    ))
    .with("file", input.display_name())
    .hint("ingest it into a dataset of tables, without `--as jsonl`"))
}

fn work(shared: &Shared<'_>, work: &Mutex<Receiver<Work>>, done: SyncSender<Answer>) {
    let options = DecodeOptions::new(shared.job.mismatch);
    let mut decoder = Decoder::new(Arc::clone(&shared.job.plan), shared.job.source, options);
    loop {
        let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Work { seq, chunks }) = next else {
            return;
        };
        // After a failure the queue is only drained, so that the reader never waits for a place.
        let answer = if shared.stopped.load(Ordering::SeqCst) {
            Err(Error::internal("another piece of the input failed"))
        } else {
            decode_and_encode(shared, &mut decoder, seq, chunks)
        };
        if answer.is_err() {
            shared.stopped.store(true, Ordering::SeqCst);
            if seq == 0 {
                // Nobody may wait for an encoder that never comes.
                drop(shared.encoder.set(None));
            }
        }
        if done.send((seq, answer)).is_err() {
            shared.stopped.store(true, Ordering::SeqCst);
        }
    }
}

fn decode_and_encode(
    shared: &Shared<'_>,
    decoder: &mut Decoder,
    seq: u64,
    chunks: Vec<Chunk>,
) -> Result<Done> {
    let job = shared.job;
    let mut done = Done {
        group: None,
        parts: Vec::new(),
        stats: DecodeStats::default(),
    };
    let (mut batches, mut piece) = (Vec::new(), None);
    // Each chunk goes as soon as it is decoded: encoding needs its columns alone.
    for chunk in chunks {
        let input = job.inputs.get(chunk.input);
        let name = input.map_or("-", InputSource::display_name);
        let mut decoded = decoder.decode(&chunk, name)?;
        if let Some(places) = input.and_then(InputSource::first_places) {
            name_first_places(places, &mut decoded);
        }
        let (rows, rejected) = (decoded.stats.rows, decoded.stats.rejected);
        job.progress.advance(0, rows, rejected);
        if rejected > 0 && job.mismatch == Mismatch::Fail {
            shared.refused.store(true, Ordering::SeqCst);
        }
        done.parts.push(Part {
            input: chunk.input,
            rows,
            rejected,
            rejects: decoded.rejects,
        });
        done.stats.merge(decoded.stats);
        batches.extend(decoded.batches);
        shared.give_back(chunk);
        // What is known to have an encoder is not held as columns until its row group is whole.
        if let Some(Some(encoder)) = shared.encoder.get() {
            add(&mut piece, encoder, &mut batches)?;
        }
    }
    if seq == 0 {
        drop(
            shared
                .encoder
                .set(Some(Encoder::new(job.format, &job.plan, &batches)?)),
        );
    }
    if shared.refused.load(Ordering::SeqCst) {
        return Ok(done);
    }
    match shared.encoder.wait() {
        Some(encoder) => {
            add(&mut piece, encoder, &mut batches)?;
            done.group = piece.map(OpenPiece::close).transpose()?;
        }
        None => return Err(Error::internal("the first row group failed")),
    }
    Ok(done)
}

/// Moves the batches into the piece, which is begun where there is none.
fn add(
    piece: &mut Option<OpenPiece>,
    encoder: &Encoder,
    batches: &mut Vec<RecordBatch>,
) -> Result<()> {
    let piece = match piece {
        Some(piece) => piece,
        None => piece.insert(encoder.open()?),
    };
    batches.drain(..).try_for_each(|batch| piece.write(&batch))
}

/// Names the file and line where records were first met in place of those of a scratch file.
fn name_first_places(places: &FirstPlaces, decoded: &mut Decoded) {
    for item in decoded.stats.drift.items_mut() {
        if let Some(first) = places.find(item.line) {
            item.file = first.file.to_string();
            item.line = first.line;
        }
    }
    for draft in &mut decoded.rejects {
        if let Some(first) = places.find(draft.line) {
            draft.file = first.file.to_string();
            draft.line = first.line;
            draft.form = first.form;
        }
    }
}

/// Rows and rejects by input.
type Counts = BTreeMap<usize, (u64, u64)>;

/// The calling thread: everything in order.
fn append_all(
    shared: &Shared<'_>,
    done: &Receiver<Answer>,
    tokens: &SyncSender<()>,
) -> Result<(Staged, Counts)> {
    let mut out = Appender {
        shared,
        labels: labels(shared.job.inputs),
        writer: None,
        rejects: None,
        files: Vec::new(),
    };
    let mut stats = DecodeStats::default();
    let mut counts = out.keep_made_rejects()?;
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    kill_point("ingest.stage_created");
    for (seq, answer) in done {
        waiting.insert(seq, answer);
        while let Some(answer) = waiting.remove(&next) {
            next += 1;
            let piece = answer?;
            stats.merge(piece.stats);
            for part in piece.parts {
                let count = counts.entry(part.input).or_default();
                count.0 += part.rows;
                count.1 += part.rejected;
                out.keep_rejects(part.input, part.rejects)?;
            }
            if let Some(group) = piece.group {
                out.append(group)?;
            }
            // When the reader is done and gone, nobody waits for the token.
            tokens.try_send(()).ok();
        }
    }
    if let Some((_, answer)) = waiting.pop_first() {
        // A gap means that the piece before it failed without an answer.
        answer?;
        return Err(Error::internal("a piece of the input was lost on its way"));
    }
    let (files, rejects) = out.finish()?;
    Ok((
        Staged {
            files,
            rejects,
            inputs: Vec::new(),
            stats,
        },
        counts,
    ))
}

struct Appender<'a> {
    shared: &'a Shared<'a>,
    /// Names of the inputs in the rejects file.
    labels: Vec<String>,
    writer: Option<Writer>,
    rejects: Option<LinesFileWriter>,
    files: Vec<StagedFile>,
}

impl Appender<'_> {
    fn append(&mut self, group: Group) -> Result<()> {
        if self.shared.refused.load(Ordering::SeqCst) {
            return Ok(());
        }
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.begin()?,
        };
        writer.append(group)?;
        kill_point("ingest.first_row_group");
        if writer.bytes() >= self.shared.job.file_bytes {
            self.files.push(writer.finish()?);
        } else {
            self.writer = Some(writer);
        }
        Ok(())
    }

    fn begin(&self) -> Result<Writer> {
        let job = self.shared.job;
        let name = format!("writing-{:05}", self.files.len());
        let path = staged_path(job.attempt, &job.folder.child(&name));
        match self.shared.encoder.get() {
            Some(Some(encoder)) => encoder.begin(job.store, path),
            Some(None) | None => Encoder::new(job.format, &job.plan, &[])?.begin(job.store, path),
        }
    }

    /// What did not become a record when the inputs were made, before what does not fit now; counted by input.
    fn keep_made_rejects(&mut self) -> Result<Counts> {
        let mut counts = Counts::new();
        let inputs = self.shared.job.inputs.iter().enumerate();
        for (number, path) in inputs.filter_map(|(n, i)| Some((n, i.made_rejects()?))) {
            let index = u32::try_from(number)
                .map_err(|_| Error::limit("there are more than 4294967295 inputs"))?;
            let file =
                File::open(path).map_err(|e| Error::io("open the rejects", path.display(), e))?;
            for line in BufReader::new(file).lines() {
                let line = line.map_err(|e| Error::io("read the rejects", path.display(), e))?;
                let mut record = made_reject(&line, path)?;
                record.input = index;
                self.write_reject(&record)?;
                counts.entry(number).or_default().1 += 1;
            }
        }
        Ok(counts)
    }

    fn write_reject(&mut self, record: &RejectRecord) -> Result<()> {
        let writer = match &mut self.rejects {
            Some(writer) => writer,
            None => {
                let job = self.shared.job;
                let path = staged_path(job.attempt, &job.rejects_folder.child("writing-rejects"));
                let writer = LinesFileWriter::create(job.store, path)?;
                self.rejects.insert(writer)
            }
        };
        writer.append(record)
    }

    fn keep_rejects(&mut self, input: usize, rejects: Vec<RejectDraft>) -> Result<()> {
        if self.shared.job.mismatch == Mismatch::Fail {
            return Ok(());
        }
        let index = u32::try_from(input)
            .map_err(|_| Error::limit("there are more than 4294967295 inputs"))?;
        let label = self.labels.get(input).cloned().unwrap_or_default();
        let source = self.shared.job.inputs.get(input);
        let is_named = source.is_some_and(|i| i.first_places().is_some());
        for mut draft in rejects {
            if !is_named {
                // The lake does not depend on where a machine keeps its inbox.
                draft.file.clone_from(&label);
            }
            self.write_reject(&draft.into_record(index))?;
        }
        Ok(())
    }

    /// A day that found nothing still has a file: of 0 rows.
    fn finish(mut self) -> Result<(Vec<StagedFile>, Option<StagedFile>)> {
        if self.shared.refused.load(Ordering::SeqCst) {
            return Ok((Vec::new(), None));
        }
        kill_point("ingest.rows_written");
        match self.writer.take() {
            Some(writer) => self.files.push(writer.finish()?),
            None if self.files.is_empty() => {
                let empty = self.begin()?.finish()?;
                self.files.push(empty);
            }
            None => {}
        }
        kill_point("ingest.file_durable");
        let rejects = self
            .rejects
            .take()
            .map(LinesFileWriter::finish)
            .transpose()?;
        kill_point("ingest.rejects_durable");
        Ok((self.files, rejects))
    }
}

/// A line of a file of rejects that this program wrote beside an input.
fn made_reject(line: &str, path: &Path) -> Result<RejectRecord> {
    serde_json::from_str(line).map_err(|e| {
        Error::internal("read a reject that was written before")
            .with("file", path.display())
            .caused_by(e)
    })
}

/// A name for each input that does not depend on the machine's folders: its base name, with as many
/// folders before it as it takes to tell the inputs of a call apart.
fn labels(inputs: &[InputSource]) -> Vec<String> {
    let suffix = |name: &str, parts: usize| {
        let all: Vec<&str> = name.split('/').filter(|p| !p.is_empty()).collect();
        all[all.len().saturating_sub(parts)..].join("/")
    };
    let names: Vec<&str> = inputs.iter().map(InputSource::display_name).collect();
    let longest = names
        .iter()
        .map(|n| n.split('/').count())
        .max()
        .unwrap_or(1);
    let mut labels: Vec<String> = names.iter().map(|n| suffix(n, 1)).collect();
    for parts in 2..=longest {
        let mut count: BTreeMap<&String, usize> = BTreeMap::new();
        for label in &labels {
            *count.entry(label).or_default() += 1;
        }
        let shared: Vec<bool> = labels
            .iter()
            .map(|l| count.get(l).is_some_and(|n| *n > 1))
            .collect();
        if !shared.contains(&true) {
            break;
        }
        for (i, name) in names.iter().enumerate().filter(|(i, _)| shared[*i]) {
            labels[i] = suffix(name, parts);
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_as_short_as_they_may_be() {
        let inputs =
            ["/in/a/x.csv", "/in/b/x.csv", "/in/y.csv"].map(|p| InputSource::file(Path::new(p)));
        assert_eq!(labels(&inputs), ["a/x.csv", "b/x.csv", "y.csv"]);
    }
}
