//! `pack`: seal, look into, mend and exchange raw day packs.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use lakebed::name::CaptureId;
use lakebed::pack::{
    CommitOptions, FileSource, ImportOptions, PackDamage, PackReader, PackReport, PartOptions,
    PartWriter, WarcExport, WarcOptions, commit_pack, erase_captures, export_wacz, export_warc,
    import_warc, index_beside, index_path, open_parts, plan_pack, repair_pack, scan_pack,
    write_cdxj,
};
use lakebed::spec::{IndexRow, PackProfile, PackTrailer, Provenance, RunKey, TerminalRecord};
use lakebed::time::Clock;
use lakebed::{Error, ErrorKind, Result};
use serde::Serialize;

use crate::args::{
    PackCatArgs, PackCommand, PackEraseArgs, PackExportArgs, PackImportArgs, PackListArgs,
    PackRepairArgs, PackRunArgs, PackSealArgs, PackVerifyArgs, ProfileArg, TextFormat,
};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::{Table, count, size};

/// Version of the JSON answers.
const PACK_ANSWER_FORMAT: u32 = 1;

/// An answer with its version.
#[derive(Serialize)]
struct Answer<T> {
    format: u32,
    #[serde(flatten)]
    answer: T,
}

fn answer<T: Serialize>(globals: &Globals<'_>, answer: T) -> Result<()> {
    let format = PACK_ANSWER_FORMAT;
    globals.printer.json(&Answer { format, answer })
}

/// `lakebed pack ...`
pub(crate) async fn run(command: PackCommand, globals: &Globals<'_>) -> Result<Exit> {
    match command {
        PackCommand::Seal(args) => seal(args, globals).await,
        PackCommand::List(args) => list(&args, globals),
        PackCommand::Cat(args) => cat(&args, globals),
        PackCommand::Verify(args) => verify(&args, globals),
        PackCommand::Repair(args) => repair(&args, globals),
        PackCommand::Export(args) => export(&args, globals),
        PackCommand::Import(args) => import(&args, globals),
        PackCommand::Erase(args) => erase(&args, globals),
    }
}

fn run_key(args: &PackRunArgs) -> Result<RunKey> {
    Ok(RunKey {
        source: args.source.parse()?,
        date: args.date.parse()?,
        run: args.run.parse()?,
    })
}

/// The terminals in a file of JSON lines.
fn read_terminals(path: &Path) -> Result<impl Iterator<Item = Result<TerminalRecord>>> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|e| Error::io("open the file", &name, e))?;
    let lines = BufReader::new(file).lines().enumerate();
    Ok(lines.filter_map(move |(n, line)| match line {
        Err(e) => Some(Err(Error::io("read the file", &name, e))),
        Ok(line) if line.trim().is_empty() => None,
        Ok(line) => Some(serde_json::from_str(&line).map_err(|e| {
            Error::invalid(format!("read a terminal: {e}"))
                .with("file", &name)
                .with("line", n + 1)
        })),
    }))
}

/// `lakebed pack seal`
async fn seal(args: PackSealArgs, globals: &Globals<'_>) -> Result<Exit> {
    let context = Context::open(globals).await?;
    let run = run_key(&args.run)?;
    let parts = open_parts(&args.parts, &run)?;
    for torn in &parts.torn {
        globals.printer.warn(format!(
            "the torn tail of part `{}` ({}) is kept as `{}`",
            torn.part,
            size(torn.bytes),
            torn.kept_as.display()
        ));
    }
    let profile = match args.profile {
        ProfileArg::Std => PackProfile::Std,
        ProfileArg::Deep => PackProfile::Deep,
    };
    let terminals = read_terminals(&args.terminals)?;
    let plan = plan_pack(&run, &parts, terminals, profile, &args.parts)?;
    let options = CommitOptions {
        by: context.by(Some(run.run.clone()), args.note),
        complete: args.complete,
        late: args.late,
        provenance: Provenance::Live,
    };
    let catalog = context.catalog();
    let report = commit_pack(context.lake(), &*catalog, plan, &options).await?;
    for warning in &report.warnings {
        globals.printer.warn(warning);
    }
    match globals.printer.format() {
        TextFormat::Json => answer(globals, &report)?,
        TextFormat::Text => globals.printer.line(told(&report))?,
    }
    Ok(Exit::Done)
}

fn told(report: &PackReport) -> String {
    let (run, pack) = (&report.run, &report.pack);
    if report.already_there {
        return format!("`{run}` is in the lake already: {pack}");
    }
    format!(
        "`{run}`: {} of {} in {}, record {}: {pack}",
        count(report.stats.captures, "capture"),
        count(report.stats.requests, "request"),
        size(report.bytes.unwrap_or(0)),
        report.log_position
    )
}

/// A row of `list` in JSON.
#[derive(Serialize)]
struct ListedCapture {
    capture_id: String,
    request_key: String,
    attempt: u32,
    kind: String,
    url: String,
    fetched_at: String,
    status: Option<u16>,
    content_type: Option<String>,
    body_len: u64,
    is_named: bool,
    is_erased: bool,
}

impl ListedCapture {
    fn of(row: IndexRow) -> Self {
        Self {
            capture_id: row.capture_id.to_string(),
            request_key: row.request_key.to_string(),
            attempt: row.attempt,
            kind: row.kind.to_string(),
            url: row.url,
            fetched_at: row.fetched_at.to_string(),
            status: row.status,
            content_type: row.content_type,
            body_len: row.body_len,
            is_named: row.is_named,
            is_erased: row.is_erased,
        }
    }
}

#[derive(Serialize)]
struct Listed<'a> {
    pack: &'a PackTrailer,
    captures: Vec<ListedCapture>,
}

/// `lakebed pack list`
fn list(args: &PackListArgs, globals: &Globals<'_>) -> Result<Exit> {
    let reader = PackReader::open(&args.pack)?;
    let rows = reader.index()?.rows()?;
    let captures = rows
        .map(|row| row.map(ListedCapture::of))
        .collect::<Result<Vec<_>>>()?;
    let printer = globals.printer;
    if printer.format() == TextFormat::Json {
        let pack = reader.trailer();
        answer(globals, Listed { pack, captures })?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new([
        "capture", "fetched", "kind", "status", "type", "bytes", "url",
    ]);
    for row in &captures {
        table.row([
            row.capture_id.clone(),
            row.fetched_at.clone(),
            row.kind.clone(),
            row.status.map_or_else(String::new, |s| s.to_string()),
            row.content_type.clone().unwrap_or_default(),
            row.body_len.to_string(),
            if row.is_erased {
                "(erased)".to_owned()
            } else {
                row.url.clone()
            },
        ]);
    }
    printer.table(&table)?;
    Ok(Exit::Done)
}

/// `lakebed pack cat`
fn cat(args: &PackCatArgs, globals: &Globals<'_>) -> Result<Exit> {
    let reader = PackReader::open(&args.pack)?;
    let found = match reader.get(&args.key.parse()?) {
        // The same 32 digits may be those of a request.
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let of_request = reader.get_request(&args.key.parse()?)?;
            let newest = of_request.into_iter().max_by_key(|c| c.capture.fetched_at);
            newest.ok_or(e)?
        }
        found => found?,
    };
    match args.head {
        true => globals.printer.json(&found.capture)?,
        false => globals.printer.bytes(&found.body)?,
    }
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Verified<'a> {
    whole: bool,
    pack: &'a PackTrailer,
    damage: &'a [PackDamage],
    lost: &'a [lakebed::name::RequestKey],
}

fn tell_damage(globals: &Globals<'_>, verified: &Verified<'_>) -> Result<()> {
    if globals.printer.format() == TextFormat::Json {
        return answer(globals, verified);
    }
    for damage in verified.damage {
        globals
            .printer
            .line(format!("at byte {}: {}", damage.offset, damage.what))?;
    }
    for key in verified.lost {
        globals
            .printer
            .line(format!("request {key} is done, and its capture is lost"))?;
    }
    globals.printer.line(format!(
        "{}: {}, {}",
        if verified.whole { "whole" } else { "not whole" },
        count(verified.pack.captures, "capture"),
        count(verified.damage.len() as u64, "damaged place"),
    ))
}

/// `lakebed pack verify`
fn verify(args: &PackVerifyArgs, globals: &Globals<'_>) -> Result<Exit> {
    let scan = scan_pack(&FileSource::open(&args.pack)?)?;
    let whole = scan.is_whole();
    if whole && args.reindex {
        index_beside(&args.pack)?;
    }
    let verified = Verified {
        whole,
        pack: &scan.trailer,
        damage: &scan.damage,
        lost: &scan.lost,
    };
    tell_damage(globals, &verified)?;
    Ok(if whole { Exit::Done } else { Exit::No })
}

/// A new file, which `write` fills; it is gone again where that fails.
fn new_file<T>(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> Result<T>) -> Result<T> {
    let failed = |e| Error::io("write the file", path.display(), e);
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(path);
    let mut file = BufWriter::new(match opened {
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(
                Error::already_exists(format!("`{}` exists", path.display()))
                    .hint("name another file"),
            );
        }
        opened => opened.map_err(failed)?,
    });
    let written = write(&mut file).and_then(|done| {
        file.flush()
            .and_then(|()| file.get_ref().sync_all())
            .map_err(failed)?;
        Ok(done)
    });
    if written.is_err() {
        // The error that is told is the first one.
        drop(std::fs::remove_file(path));
    }
    written
}

/// `lakebed pack repair`
fn repair(args: &PackRepairArgs, globals: &Globals<'_>) -> Result<Exit> {
    let run = match (&args.source, &args.date) {
        (Some(source), Some(date)) => Some(RunKey {
            source: source.parse()?,
            date: date.parse()?,
            run: args.run.parse()?,
        }),
        _ => None,
    };
    let source = FileSource::open(&args.pack)?;
    let path = &args.output_file;
    let outcome = new_file(path, |file| repair_pack(&source, run.as_ref(), file))?;
    if index_path(path).is_ok() && outcome.has_terminals {
        index_beside(path)?;
    }
    let whole = outcome.damage.is_empty() && outcome.lost.is_empty();
    let verified = Verified {
        whole,
        pack: &outcome.trailer,
        damage: &outcome.damage,
        lost: &outcome.lost,
    };
    tell_damage(globals, &verified)?;
    Ok(if outcome.lost.is_empty() {
        Exit::Done
    } else {
        Exit::No
    })
}

#[derive(Serialize)]
struct Exported<'a> {
    records: u64,
    responses: u64,
    revisits: u64,
    skipped: u64,
    bytes: u64,
    file: &'a str,
}

/// `lakebed pack export`
fn export(args: &PackExportArgs, globals: &Globals<'_>) -> Result<Exit> {
    let reader = PackReader::open(&args.pack)?;
    let revisits = !args.no_revisit;
    let (path, done) = match (&args.warc, &args.wacz) {
        (Some(path), _) => (
            path,
            to_warc(&reader, path, revisits, args.cdxj.as_deref())?,
        ),
        (None, Some(path)) => {
            let done = new_file(path, |file| export_wacz(&reader, file, revisits))?;
            (path, done)
        }
        (None, None) => return Err(Error::invalid("export to what: `--warc` or `--wacz`")),
    };
    let file = path.display().to_string();
    match globals.printer.format() {
        TextFormat::Json => answer(
            globals,
            Exported {
                records: done.records,
                responses: done.responses,
                revisits: done.revisits,
                skipped: done.skipped,
                bytes: done.bytes,
                file: &file,
            },
        )?,
        TextFormat::Text => globals.printer.line(format!(
            "{file}: {}, {} of them revisits; {} without a response left out",
            count(done.responses, "response"),
            done.revisits,
            count(done.skipped, "attempt"),
        ))?,
    }
    Ok(Exit::Done)
}

fn to_warc(
    reader: &PackReader,
    path: &Path,
    revisits: bool,
    cdxj: Option<&Path>,
) -> Result<WarcExport> {
    let filename = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let options = WarcOptions {
        gzip: path.extension().is_some_and(|e| e == "gz"),
        revisits,
        filename,
    };
    let mut done = new_file(path, |file| export_warc(reader, file, &options))?;
    if let Some(path) = cdxj {
        new_file(path, |file| write_cdxj(&mut done.entries, file))?;
    }
    Ok(done)
}

#[derive(Serialize)]
struct Imported {
    captures: u64,
    revisits: u64,
    skipped: u64,
    requests: u64,
}

/// `lakebed pack import`
fn import(args: &PackImportArgs, globals: &Globals<'_>) -> Result<Exit> {
    let run = run_key(&args.run)?;
    let name = args.warc.display();
    let warc = File::open(&args.warc).map_err(|e| Error::io("open the WARC", name, e))?;
    let clock = Clock::System;
    let mut writer = PartWriter::new(&args.parts, &run, PartOptions::default(), &clock)?;
    let options = ImportOptions {
        run,
        kind: args.kind.parse()?,
        max_body_bytes: args.max_body_bytes,
    };
    let import = import_warc(warc, &mut writer, &options, &args.parts)?;
    drop(writer.finish()?);
    new_file(&args.terminals, |file| {
        for terminal in &import.terminals {
            let mut line = serde_json::to_vec(terminal)
                .map_err(|e| Error::internal("write a terminal as JSON").caused_by(e))?;
            line.push(b'\n');
            file.write_all(&line)
                .map_err(|e| Error::io("write the file", args.terminals.display(), e))?;
        }
        Ok(())
    })?;
    let imported = Imported {
        captures: import.captures,
        revisits: import.revisits,
        skipped: import.skipped,
        requests: import.terminals.len() as u64,
    };
    match globals.printer.format() {
        TextFormat::Json => answer(globals, imported)?,
        TextFormat::Text => globals.printer.line(format!(
            "{} of {}; {} left out",
            count(imported.captures, "capture"),
            count(imported.requests, "request"),
            count(imported.skipped, "record"),
        ))?,
    }
    Ok(Exit::Done)
}

/// `lakebed pack erase`
fn erase(args: &PackEraseArgs, globals: &Globals<'_>) -> Result<Exit> {
    let captures = args
        .captures
        .iter()
        .map(|id| id.parse::<CaptureId>())
        .collect::<Result<_>>()?;
    let source = FileSource::open(&args.pack)?;
    let path = &args.output_file;
    let outcome = new_file(path, |file| erase_captures(&source, &captures, file))?;
    index_beside(path)?;
    match globals.printer.format() {
        TextFormat::Json => answer(globals, &outcome)?,
        TextFormat::Text => {
            for id in &outcome.duplicates {
                globals
                    .printer
                    .line(format!("{id} had the same body and is erased, too"))?;
            }
            globals.printer.line(format!(
                "{}: {} erased, {} made again",
                path.display(),
                count(
                    (outcome.erased.len() + outcome.duplicates.len()) as u64,
                    "capture"
                ),
                count(u64::from(outcome.frames), "frame"),
            ))?;
        }
    }
    globals
        .printer
        .hint("the old file still holds the document: delete it and its copies");
    Ok(Exit::Done)
}
