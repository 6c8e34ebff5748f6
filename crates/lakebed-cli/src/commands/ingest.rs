//! `ingest`: the command line's words into a request, the report into text or JSON.

use lakebed::config::{MismatchPolicy, Origin, Settings};
use lakebed::ingest::decode::Mismatch;
use lakebed::ingest::read::{InputSource, resolve_inputs};
use lakebed::ingest::{
    IngestOutcome, IngestReport, IngestRequest, Retry, RevisionTarget, ingest as store,
    retry_inputs,
};
use lakebed::log::DatasetState;
use lakebed::name::{BatchLabel, CommitId, DatasetRef, RunName};
use lakebed::spec::{FileFormat, LoadKind, Provenance, ReadSpec, SCHEMALESS_VERSION};
use lakebed::time::BusinessDate;
use lakebed::{Error, ErrorKind, Result};
use serde::Serialize;

use crate::args::{
    CorrectArgs, IngestArgs, KeepAs, LoadArg, MismatchArg, ProvenanceArg, TextFormat,
};
use crate::commands::read::read_spec;
use crate::commands::schema::{Offer, offer_next};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::progress::IngestProgress;
use crate::table::{count, size};

/// Drifted places told as warnings; the JSON and `rejects` have them all.
const MAX_DRIFT_LINES: usize = 20;
/// Version of the JSON answer of `--rejects-of`; without it the answer is an ingest report.
const RETRY_FORMAT: u32 = 1;

/// `ingest`, resolved but for what the project says.
pub(crate) struct IngestOptions {
    dataset: DatasetRef,
    dt: BusinessDate,
    pub(crate) files: Vec<String>,
    revision: RevisionTarget,
    note: Option<String>,
    run: Option<RunName>,
    complete: bool,
    late: bool,
    load: LoadKind,
    provenance: Option<Provenance>,
    format: Option<FileFormat>,
    schema_version: Option<u32>,
    mismatch: Option<Mismatch>,
    batch: Option<BatchLabel>,
    pub(crate) read: ReadSpec,
    allow_empty: bool,
    rejects_of: Option<CommitId>,
    restore: bool,
}

impl IngestOptions {
    fn resolve(args: IngestArgs) -> Result<Self> {
        Ok(Self {
            dataset: args.dataset.parse()?,
            dt: args.date.parse()?,
            files: args.files,
            revision: RevisionTarget::Join,
            note: None,
            run: args.run.as_deref().map(str::parse).transpose()?,
            complete: args.complete,
            late: args.late,
            load: load(args.load),
            provenance: args.provenance.map(provenance),
            format: args.keep_as.map(file_format),
            schema_version: args.schema_version,
            mismatch: args.on_mismatch.map(mismatch),
            batch: args.batch.as_deref().map(str::parse).transpose()?,
            read: read_spec(&args.read)?,
            allow_empty: args.allow_empty,
            rejects_of: args.rejects_of.as_deref().map(str::parse).transpose()?,
            restore: args.restore,
        })
    }

    /// `correct`, resolved in the same way.
    pub(crate) fn correcting(args: CorrectArgs) -> Result<Self> {
        Ok(Self {
            dataset: args.dataset.parse()?,
            dt: args.date.parse()?,
            files: args.files,
            revision: if args.keep {
                RevisionTarget::Keep
            } else {
                RevisionTarget::Replace
            },
            note: args.note,
            run: args.run.as_deref().map(str::parse).transpose()?,
            complete: args.complete,
            late: false,
            load: load(args.load),
            provenance: args.provenance.map(provenance),
            format: args.keep_as.map(file_format),
            schema_version: args.schema_version,
            mismatch: args.on_mismatch.map(mismatch),
            batch: args.batch.as_deref().map(str::parse).transpose()?,
            read: read_spec(&args.read)?,
            allow_empty: args.allow_empty,
            rejects_of: None,
            restore: args.restore,
        })
    }

    /// The request for some inputs, with what the settings say where the call says nothing.
    pub(crate) fn request(
        &self,
        context: &Context<'_>,
        inputs: Vec<InputSource>,
        read: ReadSpec,
    ) -> Result<IngestRequest> {
        let settings = context.settings();
        Ok(IngestRequest {
            dataset: self.dataset.clone(),
            dt: self.dt,
            inputs,
            format: self.format,
            schema_version: self.schema_version,
            read,
            mismatch: self.mismatch.unwrap_or(policy(settings.on_mismatch.value)),
            batch: self.batch.clone(),
            run: self.run.clone(),
            revision: self.revision,
            complete: self.complete,
            late: self.late,
            allow_empty: self.allow_empty,
            restore: self.restore,
            rejects_of: self.rejects_of.clone(),
            load: self.load,
            parents: Vec::new(),
            bounds: bounds(context, &self.dataset)?,
            provenance: self.provenance,
            by: context.by(self.run.clone(), self.note.clone()),
            threads: settings.threads.value.and_then(|n| usize::try_from(n).ok()),
            group_bytes: group_bytes(settings),
        })
    }
}

/// Columns whose bounds go into the log: the declared key and those declared for pruning.
fn bounds(context: &Context<'_>, dataset: &DatasetRef) -> Result<Vec<String>> {
    match context.project().load_source(&dataset.source()) {
        Ok(source) => {
            let declared = source.dataset(dataset);
            Ok([declared.key, declared.prune].concat())
        }
        // A lake may hold datasets of sources that this project does not describe.
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(e),
    }
}

fn file_format(word: KeepAs) -> FileFormat {
    match word {
        KeepAs::Parquet => FileFormat::Parquet,
        KeepAs::Jsonl => FileFormat::Jsonl,
    }
}

fn load(word: LoadArg) -> LoadKind {
    match word {
        LoadArg::Full => LoadKind::Full,
        LoadArg::Incremental => LoadKind::Incremental,
    }
}

fn provenance(word: ProvenanceArg) -> Provenance {
    match word {
        ProvenanceArg::Live => Provenance::Live,
        ProvenanceArg::Backfill => Provenance::Backfill,
    }
}

/// The policy of a call as ingest takes it.
pub(crate) fn mismatch(word: MismatchArg) -> Mismatch {
    match word {
        MismatchArg::Fail => Mismatch::Fail,
        MismatchArg::Quarantine => Mismatch::Quarantine,
        MismatchArg::Extra => Mismatch::Extra,
    }
}

/// The configured policy as ingest takes it.
pub(crate) fn policy(policy: MismatchPolicy) -> Mismatch {
    match policy {
        MismatchPolicy::Fail => Mismatch::Fail,
        MismatchPolicy::Quarantine => Mismatch::Quarantine,
        MismatchPolicy::Extra => Mismatch::Extra,
    }
}

/// Bytes of a row group, where somebody chose them.
pub(crate) fn group_bytes(settings: &Settings) -> Option<usize> {
    match settings.chunk_mib.origin {
        Origin::Default => None,
        Origin::File { .. } | Origin::Env(_) | Origin::Flag(_) => {
            usize::try_from(settings.chunk_mib.value)
                .ok()
                .map(|n| n << 20)
        }
    }
}

/// `lakebed ingest`
pub(crate) async fn ingest(args: IngestArgs, globals: &Globals<'_>) -> Result<Exit> {
    let options = IngestOptions::resolve(args)?;
    let context = Context::open(globals).await?;
    if let Some(commit) = &options.rejects_of {
        return retry(&context, &options, commit).await;
    }
    let inputs = resolve_inputs(&options.files)?;
    let request = options.request(&context, inputs, options.read.clone())?;
    let report = run(&context, &request).await?;
    finish(&context, &request, &report).await
}

/// Runs one call with its progress shown.
pub(crate) async fn run(context: &Context<'_>, request: &IngestRequest) -> Result<IngestReport> {
    let title = format!("{} {}", request.dataset, request.dt);
    let progress = IngestProgress::new(context.printer(), &title);
    store(context.lake(), &*context.catalog(), request, &progress).await
}

/// Prints the report; a refusal is an error after it.
pub(crate) async fn finish(
    context: &Context<'_>,
    request: &IngestRequest,
    report: &IngestReport,
) -> Result<Exit> {
    let printer = context.printer();
    if printer.format() == TextFormat::Json {
        printer.json(report)?;
    }
    if let Some(error) = report.refusal() {
        // A file that was read by the wrong rules speaks for no version.
        // Nor does one that is kept without a schema.
        let speaks = report.hints.is_empty() && report.schema_version != SCHEMALESS_VERSION;
        return Err(if speaks {
            with_offer(context, request, error).await
        } else {
            error
        });
    }
    if printer.format() == TextFormat::Text {
        print_text(printer, report)?;
    }
    warn(printer, report);
    Ok(Exit::Done)
}

/// The refusal with the next version as a ready file, where one would help.
async fn with_offer(context: &Context<'_>, request: &IngestRequest, error: Error) -> Error {
    match offer_next(context, request).await {
        Ok(Some(offer)) => {
            let Offer {
                version,
                file,
                target,
            } = offer;
            let dataset = &request.dataset;
            error.with("proposed", file.display()).hint(format!(
                "version {version} is ready to review; then `mv {} {}` and `lakebed schema publish {dataset} {version}`",
                file.display(),
                target.display()
            ))
        }
        Ok(None) => error,
        Err(reason) => {
            // The refusal is what counts; that no offer could be made must not hide it.
            context
                .printer()
                .debug(format!("no version could be proposed: {reason}"));
            error
        }
    }
}

#[derive(Serialize)]
struct RetryAnswer<'a> {
    format: u32,
    rejects_of: &'a CommitId,
    /// Rejects that were no records at all: not tried.
    left: u64,
    calls: &'a [IngestReport],
}

/// `--rejects-of`: quarantined records once more, in one call.
async fn retry(context: &Context<'_>, options: &IngestOptions, commit: &CommitId) -> Result<Exit> {
    let mut state = context.load_known(&options.dataset).await?;
    let scratch = Scratch::new()?;
    let retry = retry_inputs(context.lake(), &state, commit, scratch.path()).await?;
    check_retry(&retry, options)?;
    let printer = context.printer();
    let mut calls = Vec::new();
    if !retry.inputs.is_empty() {
        let request = options.request(context, retry.inputs, options.read.clone())?;
        let report = run(context, &request).await?;
        if let Some(error) = report.refusal() {
            return Err(error.with("commit", commit));
        }
        calls.push(report);
    }
    match printer.format() {
        TextFormat::Json => printer.json(&RetryAnswer {
            format: RETRY_FORMAT,
            rejects_of: commit,
            left: retry.left,
            calls: &calls,
        })?,
        TextFormat::Text => {
            for report in &calls {
                print_text(printer, report)?;
            }
        }
    }
    for report in &calls {
        warn(printer, report);
    }
    if retry.left > 0 {
        printer.warn(format!(
            "{} not tried: they are no records, whatever the schema",
            count(retry.left, "reject")
        ));
    }
    state.catch_up(context.lake()).await?;
    hint_at_later_rejects(printer, &state, options, commit);
    Ok(Exit::Done)
}

/// Whoever tries a commit again that was tried before may look for what was refused then.
fn hint_at_later_rejects(
    printer: &Printer,
    state: &DatasetState,
    options: &IngestOptions,
    commit: &CommitId,
) {
    let (dataset, dt) = (&options.dataset, options.dt);
    let retried_by = |c: &CommitId| state.find_rejects(dt, c).and_then(|r| r.retried_by);
    let Some(number) = retried_by(commit) else {
        return;
    };
    let kept = state.dates().get(&dt).map(|d| &d.rejects);
    let later = kept.and_then(|all| all.iter().find(|r| r.number == number));
    if let Some(later) = later {
        printer.hint(format!(
            "what record {number} refused once more is tried again with `lakebed ingest {dataset} --date {dt} --rejects-of {}`",
            later.commit
        ));
    }
}

fn check_retry(retry: &Retry, options: &IngestOptions) -> Result<()> {
    if retry.dt == options.dt {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "that commit belongs to {}, not to {}",
        retry.dt, options.dt
    ))
    .hint(format!("call again with `--date {}`", retry.dt)))
}

/// A folder of this call alone, gone at its end.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let name = format!(
            "lakebed-{}",
            lakebed::time::unique_id(&lakebed::time::Clock::System)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path)
            .map_err(|e| Error::io("create the folder", path.display(), e))?;
        Ok(Self(path))
    }

    fn path(&self) -> &std::path::Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A rest in the temporary folder harms nobody.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn print_text(printer: &Printer, report: &IngestReport) -> Result<()> {
    let place = format!("{} {}", report.dataset, report.date);
    match report.outcome {
        IngestOutcome::Committed => {
            let record = report.log_position.unwrap_or(0);
            let rejects = if report.rejected == 0 {
                String::new()
            } else {
                format!(", {} kept apart", count(report.rejected, "reject"))
            };
            let sealed = if report.complete { ", sealed" } else { "" };
            printer.line(format!(
                "{place}: committed {} as record {record}, schema version {}{rejects}{sealed}",
                count(report.rows, "row"),
                report.schema_version,
            ))?;
            if report.revision > 0 {
                printer.line(revision_text(report))?;
            }
            for file in &report.files {
                printer.line(format!(
                    "  {} ({}, {})",
                    file.path,
                    count(file.rows, "row"),
                    size(file.bytes)
                ))?;
            }
        }
        IngestOutcome::AlreadyThere => {
            let sealed = if report.complete { ", sealed" } else { "" };
            printer.line(format!("{place}: already there, nothing written{sealed}"))?;
        }
        IngestOutcome::Refused => {}
    }
    for skipped in &report.skipped {
        printer.line(format!("  skipped {}: {}", skipped.name, skipped.reason))?;
    }
    Ok(())
}

/// What became of the date's revisions.
fn revision_text(report: &IngestReport) -> String {
    let (revision, dataset, date) = (report.revision, &report.dataset, report.date);
    match &report.replaced {
        Some(old) => format!(
            "  revision {revision} instead of {} ({} in {}; `lakebed rollback {dataset} --date {date}` takes it back)",
            old.revision,
            count(old.rows, "row"),
            count(old.files, "file"),
        ),
        None => format!("  revision {revision}"),
    }
}

/// What a person should look at, on stderr in every format.
fn warn(printer: &Printer, report: &IngestReport) {
    for warning in &report.warnings {
        printer.warn(warning);
    }
    for input in report.inputs.iter().filter(|i| i.repeat_of.is_some()) {
        printer.info(format!(
            "{} repeats record {}: stored as another observation",
            input.name,
            input.repeat_of.unwrap_or(0)
        ));
    }
    if report.rejected > 0 {
        printer.warn(format!(
            "{} of {} into quarantine",
            report.rejected,
            count(report.rows + report.rejected, "record")
        ));
    }
    if report.extra_rows > 0 {
        printer.warn(format!(
            "{} with unknown fields, kept in `_extra`",
            count(report.extra_rows, "row")
        ));
    }
    for (what, n) in [
        ("lone surrogate replaced by U+FFFD", report.lone_surrogates),
        ("NUL character kept", report.nul_characters),
    ] {
        if n > 0 {
            printer.warn(format!("{what}: {n} x"));
        }
    }
    drift(printer, report);
}

fn drift(printer: &Printer, report: &IngestReport) {
    for (i, item) in report.drift.items().enumerate() {
        if i == MAX_DRIFT_LINES {
            printer.warn("... and more; `--format json` names them all");
            break;
        }
        printer.warn(format!(
            "drift at {} ({}): {} x, first at {} line {}: {}",
            item.path, item.code, item.count, item.file, item.line, item.reason
        ));
    }
    if report.rejected > 0 {
        printer.hint(format!(
            "`lakebed rejects {} --date {}` shows them",
            report.dataset, report.date
        ));
    }
}
