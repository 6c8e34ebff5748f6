//! Parse as a stage: the packs of a date through the rules, and the records into their datasets, one commit a
//! dataset.
//!
//! ```text
//! packs -> reader (one thread, in order) -> pages -> workers -> parsed pages -> collector (in order)
//!                      at most so many pages between them            |             |
//!                                                          <dataset>.jsonl    rejects.jsonl
//!                                                                    |
//!                                    ingest: appended, or as a new revision where the date has rows
//! ```
//! FLW-1: the same packs and rules give the same bytes at any number of threads, and what they gave is known by
//! the label of its input: a second call does nothing. FLW-2: every capture that made its request done is
//! counted once: parsed, rejected, or fitting no rule.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::catalog::Catalog;
use crate::config::SourceConfig;
use crate::error::{Error, Result};
use crate::flow::guard::{LABEL_PREFIX, check_replaced, check_schemas, lock_folder};
use crate::flow::packs::{SourcePack, list_packs};
use crate::ingest::decode::Mismatch;
use crate::ingest::read::InputSource;
use crate::ingest::{IngestOutcome, IngestReport, IngestRequest, Progress, RevisionTarget, ingest};
use crate::log::load;
use crate::name::{BatchLabel, CaptureId, DatasetName, DatasetRef, Layer, SourceName};
use crate::pack::Capture;
use crate::parse::{CommandParser, PageInput, Rules, parse_page, whole_page};
use crate::spec::{
    By, InputFormat, LoadKind, PageReject, ParsedPage, Provenance, ReadSpec, RunKey,
};
use crate::store::Lake;
use crate::time::BusinessDate;

/// Pages on their way, for each worker.
const PAGES_PER_WORKER: usize = 4;
/// Version of the report.
const PARSE_REPORT_FORMAT: u32 = 1;

/// How a date is parsed.
#[derive(Debug, Clone)]
pub struct ParseOptions {
    /// The source's folder: commands run there.
    pub folder: PathBuf,
    /// A folder for what is kept of the call: its rejects. Files of records lie there until they are stored.
    pub kept: PathBuf,
    /// What happens to records that do not fit their schema.
    pub mismatch: Mismatch,
    /// Who asks.
    pub by: By,
    /// Whether the records may take the place of rows that no replay made, or of more than twice as many.
    pub replace: bool,
    /// Workers; `None` = the machine's cores.
    pub threads: Option<usize>,
}

/// What became of the records of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredAs {
    /// The first rows of the date.
    New,
    /// A new revision; the old rows are kept for a rollback.
    Revision,
    /// The same rows are there already.
    AlreadyThere,
    /// They do not fit the schema; nothing was stored.
    Refused,
    /// There was no record: nothing was stored, and nothing was taken away.
    Empty,
}

/// The records of one dataset.
#[derive(Debug, Clone, Serialize)]
pub struct ParsedDataset {
    /// The dataset.
    pub dataset: DatasetRef,
    /// Records that the rules gave.
    pub records: u64,
    /// Records that the rules rejected.
    pub rejects: u64,
    /// What became of them.
    pub stored: StoredAs,
    /// The report of the ingest; absent where there was nothing to store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingest: Option<IngestReport>,
}

/// What became of a date.
#[derive(Debug, Clone, Serialize)]
#[must_use]
pub struct ParseReport {
    /// Version of this shape.
    pub format: u32,
    /// The source.
    pub source: SourceName,
    /// The business date.
    pub date: BusinessDate,
    /// Names packs and rules: equal labels have equal rows.
    pub label: BatchLabel,
    /// Whether all of it was stored before; then nothing was read, and the counts are 0.
    pub up_to_date: bool,
    /// Packs of the date.
    pub packs: u64,
    /// Captures that made a request done: `parsed + rejected + unmatched`.
    pub pages: u64,
    /// Pages that a rule took.
    pub parsed: u64,
    /// Pages that were rejected as a whole.
    pub rejected: u64,
    /// Pages that no rule fits.
    pub unmatched: u64,
    /// Of the parsed: those that gave neither record nor link.
    pub barren: u64,
    /// Links that the rules found.
    pub follow_ups: u64,
    /// Announced totals.
    pub expectations: u64,
    /// Rejects of links, records and pages.
    pub rejects: u64,
    /// The file of the rejects; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejects_file: Option<String>,
    /// By dataset.
    pub datasets: Vec<ParsedDataset>,
}

/// A line of the rejects file.
#[derive(Serialize)]
struct RejectLine<'a> {
    run: &'a RunKey,
    capture_id: &'a CaptureId,
    url: &'a str,
    page: Option<&'a str>,
    #[serde(flatten)]
    reject: &'a PageReject,
}

/// Parses the packs of a date and stores what they give; `None` where the date has no pack.
///
/// # Errors
/// Whatever reading a pack, a program that parses, or an ingest answers.
pub async fn parse_date(
    lake: &Lake,
    catalog: &dyn Catalog,
    rules: &Rules,
    (source, date): (&SourceConfig, BusinessDate),
    options: &ParseOptions,
    progress: &dyn Progress,
) -> Result<Option<ParseReport>> {
    let name = &source.name;
    let packs = list_packs(lake, name, date, date).await?;
    if packs.is_empty() {
        return Ok(None);
    }
    check_schemas(lake, rules.datasets().into_iter().map(clean)).await?;
    let _turn = lock_folder(&options.kept, "parse the date")?;
    let label = label_of(rules, &packs)?;
    let mut report = ParseReport {
        format: PARSE_REPORT_FORMAT,
        source: name.clone(),
        date,
        label: label.clone(),
        up_to_date: false,
        packs: packs.len() as u64,
        pages: 0,
        parsed: 0,
        rejected: 0,
        unmatched: 0,
        barren: 0,
        follow_ups: 0,
        expectations: 0,
        rejects: 0,
        rejects_file: None,
        datasets: Vec::new(),
    };
    if is_stored(lake, rules, date, &label).await? {
        report.up_to_date = true;
        return Ok(Some(report));
    }
    let folder = options.kept.join(label.as_str().replace(':', "-"));
    fs::create_dir_all(&folder).map_err(|e| Error::io("create the folder", folder.display(), e))?;
    let mut collector = Collector::new(&folder, rules)?;
    progress.begin(Some(bytes_of(&packs)?));
    let read = parse_packs(&packs, rules, options, |page| {
        collector.take(page, progress)
    });
    progress.end();
    read?;
    let files = collector.finish(&mut report)?;
    for (dataset, file) in files {
        let declared = source.dataset(&dataset);
        let to = Target {
            dataset: &dataset,
            records: &file,
            bounds: [declared.key, declared.prune].concat(),
        };
        let stored = store((lake, catalog), &report, &to, options, progress).await?;
        report.datasets.push(stored);
    }
    Ok(Some(report))
}

/// Names packs and rules.
fn label_of(rules: &Rules, packs: &[SourcePack]) -> Result<BatchLabel> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"parse/1\n");
    hasher.update(rules.hash().as_str().as_bytes());
    for pack in packs {
        hasher.update(format!("\n{} {}", pack.run, pack.blake3).as_bytes());
    }
    format!("{LABEL_PREFIX}{}", &hasher.finalize().to_hex()[..16]).parse()
}

/// Bytes of all bodies that will be parsed.
fn bytes_of(packs: &[SourcePack]) -> Result<u64> {
    let mut bytes = 0;
    for pack in packs {
        for row in pack.open()?.index()?.rows()? {
            let row = row?;
            if row.is_named && !row.is_erased {
                bytes += row.body_len;
            }
        }
    }
    Ok(bytes)
}

/// Whether every dataset of the rules holds what this label stands for, and readers see it.
async fn is_stored(
    lake: &Lake,
    rules: &Rules,
    date: BusinessDate,
    label: &BatchLabel,
) -> Result<bool> {
    for dataset in rules.datasets() {
        let state = load(lake, &clean(dataset)).await?.state;
        if state.visible_labelled(date, label).next().is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn clean(dataset: DatasetName) -> DatasetRef {
    DatasetRef {
        layer: Layer::Clean,
        dataset,
    }
}

/// A page on its way to a worker.
struct Job {
    number: u64,
    pack: usize,
    capture: Capture,
}

/// A parsed page on its way to the collector.
struct Done {
    number: u64,
    run: RunKey,
    bytes: u64,
    parsed: ParsedPage,
}

/// Every page of the packs through the rules, in order.
fn parse_packs(
    packs: &[SourcePack],
    rules: &Rules,
    options: &ParseOptions,
    mut take: impl FnMut(Done) -> Result<()>,
) -> Result<()> {
    let threads = options
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from))
        .max(1);
    let window = threads * PAGES_PER_WORKER;
    let (to_workers, jobs) = sync_channel::<Job>(window);
    let jobs = Mutex::new(jobs);
    let (to_collector, done) = sync_channel::<Result<Done>>(window);
    // Who reads waits for a place here, so a slow page holds back those behind it.
    let (give_back, places) = sync_channel::<()>(window);
    for _ in 0..window {
        give_back
            .send(())
            .map_err(|_| Error::internal("no place for a page"))?;
    }
    std::thread::scope(|scope| {
        let failed = to_collector.clone();
        scope.spawn(move || {
            if let Err(error) = read_packs(packs, &to_workers, &places) {
                // Where the collector is gone, it has an error of its own.
                drop(failed.send(Err(error)));
            }
        });
        for _ in 0..threads {
            let (jobs, to_collector) = (&jobs, to_collector.clone());
            scope.spawn(move || work(jobs, &to_collector, (packs, rules, options)));
        }
        drop(to_collector);
        // Both go when this ends, well or not: the threads end with them.
        let (done, give_back) = (done, give_back);
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        for page in done {
            let page = page?;
            waiting.insert(page.number, page);
            while let Some(page) = waiting.remove(&next) {
                take(page)?;
                next += 1;
                // The reader may have ended.
                let _has_ended = give_back.try_send(()).is_err();
            }
        }
        Ok(())
    })
}

/// Hands out the captures that the terminals name.
fn read_packs(packs: &[SourcePack], jobs: &SyncSender<Job>, places: &Receiver<()>) -> Result<()> {
    let mut number = 0;
    for (n, pack) in packs.iter().enumerate() {
        let reader = pack.open()?;
        let mut named: HashSet<CaptureId> = HashSet::new();
        for row in reader.index()?.rows()? {
            let row = row?;
            if row.is_named && !row.is_erased {
                named.insert(row.capture_id);
            }
        }
        for capture in reader.replay() {
            let capture = capture?;
            if !named.remove(&capture.capture.capture_id) {
                continue;
            }
            let job = Job {
                number,
                pack: n,
                capture,
            };
            if places.recv().is_err() || jobs.send(job).is_err() {
                return Ok(());
            }
            number += 1;
        }
        if let Some(lost) = named.iter().min() {
            return Err(Error::corrupt(format!(
                "replay a pack: {} captures of its index are not in it",
                named.len()
            ))
            .with("file", pack.path.display())
            .with("capture", lost)
            .hint(
                "`lakebed audit --deep` tells which file differs from the log; nothing was stored",
            ));
        }
    }
    Ok(())
}

fn work(
    jobs: &Mutex<Receiver<Job>>,
    to: &SyncSender<Result<Done>>,
    (packs, rules, options): (&[SourcePack], &Rules, &ParseOptions),
) {
    let mut commands: BTreeMap<String, CommandParser> = BTreeMap::new();
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else {
            return;
        };
        let input = PageInput {
            run: &packs[job.pack].run,
            capture: &job.capture.capture,
            body: &job.capture.body,
        };
        let parsed = match rules.command_of(input.capture) {
            None => Ok(guarded(rules, &input)),
            Some((name, config)) => commands
                .entry(name.to_owned())
                .or_insert_with(|| CommandParser::new(config, &options.folder))
                .parse(name, &input),
        };
        let done = parsed.map(|parsed| Done {
            number: job.number,
            run: input.run.clone(),
            bytes: input.body.len() as u64,
            parsed,
        });
        if to.send(done).is_err() {
            return;
        }
    }
}

/// The page by the rules; a fault of this program is a reject of the page, not the end of the call.
fn guarded(rules: &Rules, input: &PageInput<'_>) -> ParsedPage {
    let parse = std::panic::AssertUnwindSafe(|| parse_page(rules, input));
    std::panic::catch_unwind(parse).unwrap_or_else(|_| ParsedPage {
        capture_id: input.capture.capture_id.clone(),
        request_key: input.capture.request_key.clone(),
        url: input.capture.url.clone(),
        page: Some(String::new()),
        records: Vec::new(),
        follow_ups: Vec::new(),
        other_links: 0,
        expectations: Vec::new(),
        rejects: vec![whole_page("internal", "a fault of this program".to_owned())],
    })
}

/// A file of lines.
struct Lines {
    path: PathBuf,
    file: BufWriter<File>,
    count: u64,
}

impl Lines {
    fn create(path: PathBuf) -> Result<Self> {
        let file =
            File::create(&path).map_err(|e| Error::io("create the file", path.display(), e))?;
        Ok(Self {
            path,
            file: BufWriter::new(file),
            count: 0,
        })
    }

    fn add(&mut self, line: &impl Serialize) -> Result<()> {
        self.count += 1;
        serde_json::to_writer(&mut self.file, line)
            .map_err(std::io::Error::from)
            .and_then(|()| self.file.write_all(b"\n"))
            .map_err(|e| Error::io("write the file", self.path.display(), e))
    }

    fn close(mut self) -> Result<(PathBuf, u64)> {
        let flushed = self.file.flush();
        flushed.map_err(|e| Error::io("write the file", self.path.display(), e))?;
        Ok((self.path, self.count))
    }
}

/// What comes of the pages, in their order.
struct Collector {
    datasets: BTreeMap<DatasetName, (Lines, u64)>,
    rejects: Lines,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    pages: u64,
    parsed: u64,
    rejected: u64,
    unmatched: u64,
    barren: u64,
    follow_ups: u64,
    expectations: u64,
}

/// The records of a dataset on disk.
struct Records {
    path: PathBuf,
    count: u64,
    rejects: u64,
}

impl Collector {
    fn new(folder: &Path, rules: &Rules) -> Result<Self> {
        let mut datasets = BTreeMap::new();
        for name in rules.datasets() {
            let lines = Lines::create(folder.join(format!("{name}.jsonl")))?;
            datasets.insert(name, (lines, 0));
        }
        Ok(Self {
            datasets,
            rejects: Lines::create(folder.join("rejects.jsonl"))?,
            counts: Counts::default(),
        })
    }

    fn take(&mut self, page: Done, progress: &dyn Progress) -> Result<()> {
        let parsed = &page.parsed;
        let counts = &mut self.counts;
        counts.pages += 1;
        counts.follow_ups += parsed.follow_ups.len() as u64;
        counts.expectations += parsed.expectations.len() as u64;
        let is_whole = |r: &PageReject| r.dataset.is_none() && r.item.is_none();
        let is_rejected = parsed.rejects.iter().any(is_whole)
            && parsed.records.is_empty()
            && parsed.follow_ups.is_empty();
        match (&parsed.page, is_rejected) {
            (None, _) => counts.unmatched += 1,
            (Some(_), true) => counts.rejected += 1,
            (Some(_), false) => {
                counts.parsed += 1;
                let is_barren = parsed.records.is_empty() && parsed.follow_ups.is_empty();
                counts.barren += u64::from(is_barren);
            }
        }
        for record in &parsed.records {
            if let Some((lines, _)) = self.datasets.get_mut(&record.dataset) {
                lines.add(&record.record)?;
            }
        }
        for reject in &parsed.rejects {
            let of = reject
                .dataset
                .as_ref()
                .and_then(|d| self.datasets.get_mut(d));
            if let Some((_, rejects)) = of {
                *rejects += 1;
            }
            self.rejects.add(&RejectLine {
                run: &page.run,
                capture_id: &parsed.capture_id,
                url: &parsed.url,
                page: parsed.page.as_deref(),
                reject,
            })?;
        }
        let (records, rejects) = (parsed.records.len() as u64, parsed.rejects.len() as u64);
        progress.advance(page.bytes, records, rejects);
        Ok(())
    }

    fn finish(self, report: &mut ParseReport) -> Result<Vec<(DatasetRef, Records)>> {
        let counts = self.counts;
        report.pages = counts.pages;
        report.parsed = counts.parsed;
        report.rejected = counts.rejected;
        report.unmatched = counts.unmatched;
        report.barren = counts.barren;
        report.follow_ups = counts.follow_ups;
        report.expectations = counts.expectations;
        let (path, rejects) = self.rejects.close()?;
        report.rejects = rejects;
        match rejects {
            0 => remove(&path)?,
            _ => report.rejects_file = Some(path.display().to_string()),
        }
        let mut files = Vec::new();
        for (name, (lines, rejects)) in self.datasets {
            let (path, count) = lines.close()?;
            let records = Records {
                path,
                count,
                rejects,
            };
            files.push((clean(name), records));
        }
        Ok(files)
    }
}

fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(|e| Error::io("delete the file", path.display(), e))
}

/// Where records go.
struct Target<'a> {
    dataset: &'a DatasetRef,
    records: &'a Records,
    bounds: Vec<String>,
}

/// Stores the records of a dataset: its first rows of the date, or a new revision.
async fn store(
    (lake, catalog): (&Lake, &dyn Catalog),
    report: &ParseReport,
    to: &Target<'_>,
    options: &ParseOptions,
    progress: &dyn Progress,
) -> Result<ParsedDataset> {
    let (dataset, records) = (to.dataset, to.records);
    let mut parsed = ParsedDataset {
        dataset: dataset.clone(),
        records: records.count,
        rejects: records.rejects,
        stored: StoredAs::Empty,
        ingest: None,
    };
    if records.count > 0 {
        let state = load(lake, dataset).await?.state;
        let has_rows = state.visible_of(report.date).next().is_some();
        if !options.replace
            && state
                .visible_labelled(report.date, &report.label)
                .next()
                .is_none()
        {
            check_replaced(&state, dataset, report.date, records.count)?;
        }
        let request = request(to, report, has_rows, options);
        let done = ingest(lake, catalog, &request, progress).await?;
        parsed.stored = match (done.outcome, has_rows) {
            (IngestOutcome::Committed, false) => StoredAs::New,
            (IngestOutcome::Committed, true) => StoredAs::Revision,
            (IngestOutcome::AlreadyThere, _) => StoredAs::AlreadyThere,
            (IngestOutcome::Refused, _) => StoredAs::Refused,
        };
        parsed.ingest = Some(done);
    }
    // What was refused is looked into; the rest is in the lake.
    if parsed.stored != StoredAs::Refused {
        remove(&records.path)?;
    }
    Ok(parsed)
}

fn request(
    to: &Target<'_>,
    report: &ParseReport,
    has_rows: bool,
    options: &ParseOptions,
) -> IngestRequest {
    IngestRequest {
        dataset: to.dataset.clone(),
        dt: report.date,
        inputs: vec![InputSource::file(&to.records.path)],
        format: None,
        schema_version: None,
        read: ReadSpec {
            format: Some(InputFormat::Jsonl),
            ..ReadSpec::default()
        },
        mismatch: options.mismatch,
        batch: Some(report.label.clone()),
        run: options.by.run.clone(),
        revision: match has_rows {
            true => RevisionTarget::Replace,
            false => RevisionTarget::Join,
        },
        complete: false,
        late: false,
        allow_empty: false,
        restore: false,
        rejects_of: None,
        load: LoadKind::Incremental,
        bounds: to.bounds.clone(),
        provenance: Some(Provenance::Replay),
        by: options.by.clone(),
        threads: options.threads,
        group_bytes: None,
    }
}
