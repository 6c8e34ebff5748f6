//! `parse`: what the rules of a source give for a page, and whether they give what is expected.

use std::fs;
use std::path::{Path, PathBuf};

use lakebed::config::{Project, SourceConfig};
use lakebed::flow::{ParseOptions, ParseReport, ParsedDataset, StoredAs, find_page, parse_date};
use lakebed::ingest::IngestReport;
use lakebed::name::SourceName;
use lakebed::parse::{
    Difference, EXPECTED_SUFFIX, Fixture, FixturePage, PageInput, Rules, differences, gives,
    parse_with,
};
use lakebed::spec::{Datum, ParsedPage};
use lakebed::time::{BusinessDate, Instant};
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{ParseArgs, TextFormat};
use crate::commands::ingest;
use crate::commands::queue::SAMPLE_FOLDER;
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::progress::IngestProgress;
use crate::table::count;

/// Version of the JSON answers.
const PARSE_ANSWER_FORMAT: u32 = 1;
/// Ends of the names of fixtures' pages.
const PAGE_SUFFIXES: [&str; 5] = ["html", "htm", "json", "xml", "txt"];

/// A source with its rules.
pub(super) struct Ruled {
    project: Project,
    /// The source.
    pub(super) source: SourceConfig,
    /// Its rules.
    pub(super) rules: Rules,
}

impl Ruled {
    /// Reads the rules of a source.
    pub(super) fn open(name: &SourceName, globals: &Globals<'_>) -> Result<Self> {
        let project = globals.find_project()?;
        let source = project.load_source(name)?;
        let file = project.source_file(name).display().to_string();
        let rules = Rules::read(&source, &file)?;
        Ok(Self {
            project,
            source,
            rules,
        })
    }

    /// The source's folder: programs run there.
    pub(super) fn folder(&self) -> PathBuf {
        let file = self.project.source_file(&self.source.name);
        file.with_file_name("")
    }

    fn fixtures(&self) -> PathBuf {
        self.folder().join("fixtures")
    }

    fn parse(&self, page: &FixturePage, name: &str, body: &[u8]) -> Result<ParsedPage> {
        page.parse(&self.rules, &self.folder(), (&self.source.name, name), body)
    }
}

/// `lakebed parse`
pub(crate) async fn run(args: ParseArgs, globals: &Globals<'_>) -> Result<Exit> {
    let ruled = Ruled::open(&args.source.parse()?, globals)?;
    match (&args.page, &args.date) {
        (Some(wanted), _) => try_page(wanted, &args, &ruled, globals).await,
        (None, Some(dates)) => replay(dates, &args, &ruled, globals).await,
        (None, None) => test(&args, &ruled, globals),
    }
}

/// The dates of `D` or `A..B`.
fn dates_of(text: &str) -> Result<Vec<BusinessDate>> {
    let (from, to) = match text.split_once("..") {
        Some((from, to)) => (from.parse::<BusinessDate>()?, to.parse()?),
        None => (text.parse()?, text.parse()?),
    };
    if from > to {
        return Err(Error::invalid(format!("`{from}` is after `{to}`"))
            .hint("the earlier date comes first: --date 2026-11-01..2026-11-30"));
    }
    let days = i64::from(to.days() - from.days());
    Ok((0..=days).map(|n| from.plus_days(n)).collect())
}

#[derive(Serialize)]
struct ReplayAnswer {
    format: u32,
    pass: bool,
    /// Dates without a pack.
    missing: Vec<BusinessDate>,
    dates: Vec<ParseReport>,
}

/// `--date`
async fn replay(
    dates: &str,
    args: &ParseArgs,
    ruled: &Ruled,
    globals: &Globals<'_>,
) -> Result<Exit> {
    let dates = dates_of(dates)?;
    let context = Context::open(globals).await?;
    let (source, printer) = (&ruled.source, globals.printer);
    let catalog = context.catalog();
    let (mut missing, mut reports) = (Vec::new(), Vec::new());
    for date in dates {
        let options = options_of(args, ruled, &context, date);
        let progress = IngestProgress::new(printer, &format!("{} {date}", source.name));
        let (lake, catalog) = (context.lake(), &*catalog);
        let done = parse_date(
            lake,
            catalog,
            &ruled.rules,
            (source, date),
            &options,
            &progress,
        );
        match done.await {
            Ok(Some(report)) => {
                if printer.format() == TextFormat::Text {
                    tell_date(&report, globals)?;
                }
                reports.push(report);
            }
            Ok(None) => {
                printer.warn(format!("`{}` has no pack of {date}", source.name));
                missing.push(date);
            }
            Err(e) => return Err(e.with("date", date)),
        }
    }
    let bad = |d: &ParsedDataset| matches!(d.stored, StoredAs::Refused | StoredAs::Empty);
    let pass = missing.is_empty() && !reports.iter().flat_map(|r| &r.datasets).any(bad);
    if printer.format() == TextFormat::Json {
        printer.json(&ReplayAnswer {
            format: PARSE_ANSWER_FORMAT,
            pass,
            missing,
            dates: reports,
        })?;
    }
    Ok(if pass { Exit::Done } else { Exit::No })
}

fn options_of(
    args: &ParseArgs,
    ruled: &Ruled,
    context: &Context<'_>,
    date: BusinessDate,
) -> ParseOptions {
    let (project, source) = (&ruled.project, &ruled.source.name);
    let policy = context.settings().on_mismatch.value;
    let kept = project.root().join("parse").join(source.as_str());
    ParseOptions {
        folder: ruled.folder(),
        kept: kept.join(date.to_string()),
        mismatch: args
            .on_mismatch
            .map_or(ingest::policy(policy), ingest::mismatch),
        by: context.by(None, args.note.clone()),
        replace: args.replace,
        threads: None,
    }
}

fn tell_date(report: &ParseReport, globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    if report.up_to_date {
        return printer.line(format!("{}: up to date ({})", report.date, report.label));
    }
    printer.line(format!(
        "{}: {} in {}: {} parsed, {} rejected, {} fit no rule, {} gave nothing; {}",
        report.date,
        count(report.pages, "page"),
        count(report.packs, "pack"),
        report.parsed,
        report.rejected,
        report.unmatched,
        report.barren,
        count(report.follow_ups, "link"),
    ))?;
    for dataset in &report.datasets {
        let what = match dataset.stored {
            StoredAs::New => "stored",
            StoredAs::Revision => "stored as a new revision",
            StoredAs::AlreadyThere => "there already",
            StoredAs::Refused => "refused: they do not fit the schema",
            StoredAs::Empty => "nothing to store",
        };
        let place = match dataset.ingest.as_ref().and_then(|i| i.log_position) {
            Some(number) => format!(", record {number}"),
            None => String::new(),
        };
        printer.line(format!(
            "  {}: {}, {}: {what}{place}",
            dataset.dataset,
            count(dataset.records, "record"),
            count(dataset.rejects, "reject"),
        ))?;
        if let Some(refusal) = dataset.ingest.as_ref().and_then(IngestReport::refusal) {
            printer.warn(&refusal);
            refusal.details().iter().for_each(|d| printer.warn(d));
            refusal.hints().iter().for_each(|h| printer.hint(h));
        }
    }
    if let Some(file) = &report.rejects_file {
        printer.warn(format!("{} in {file}", count(report.rejects, "reject")));
    }
    Ok(())
}

/// A page that was tried.
struct Tried {
    page: FixturePage,
    body: Vec<u8>,
    parsed: ParsedPage,
    from: String,
}

#[derive(Serialize)]
struct TryAnswer<'a> {
    format: u32,
    from: &'a str,
    #[serde(flatten)]
    parsed: &'a ParsedPage,
}

/// `--try`
async fn try_page(
    wanted: &str,
    args: &ParseArgs,
    ruled: &Ruled,
    globals: &Globals<'_>,
) -> Result<Exit> {
    let path = Path::new(wanted);
    let tried = match path.is_file() {
        true => try_file(path, (args.url.as_deref(), args.stage.as_deref()), ruled)?,
        false => {
            let context = Context::open(globals).await?;
            let samples = ruled.project.root().join(SAMPLE_FOLDER);
            let (lake, name) = (context.lake(), &ruled.source.name);
            let found = find_page((lake, &samples), name, wanted).await?;
            let input = PageInput {
                run: &found.run,
                capture: &found.capture.capture,
                body: &found.capture.body,
            };
            Tried {
                parsed: parse_with(&ruled.rules, &ruled.folder(), &input)?,
                page: FixturePage::of(&found.capture.capture),
                body: found.capture.body.to_vec(),
                from: found.path.display().to_string(),
            }
        }
    };
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&TryAnswer {
            format: PARSE_ANSWER_FORMAT,
            from: &tried.from,
            parsed: &tried.parsed,
        })?,
        TextFormat::Text => tell_page(&tried, globals)?,
    }
    if let Some(name) = &args.save {
        save(name, (&tried.page, &tried.body), ruled, globals)?;
    }
    let is_good = tried.parsed.page.is_some() && tried.parsed.rejects.is_empty();
    Ok(if is_good { Exit::Done } else { Exit::No })
}

/// A file, as found at that URL for that stage.
fn try_file(
    path: &Path,
    (url, stage): (Option<&str>, Option<&str>),
    ruled: &Ruled,
) -> Result<Tried> {
    let body = fs::read(path).map_err(|e| Error::io("read the page", path.display(), e))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let source = &ruled.source;
    let made_up = format!(
        "http://{}.invalid/{name}",
        source.name.as_str().replace('_', "-")
    );
    let url = url.map(str::to_owned).or_else(|| source.url.clone());
    let rules = source.parse.iter().flat_map(|p| &p.page);
    let stage = match stage {
        Some(stage) => stage.parse()?,
        None => match rules.filter_map(|page| page.stage.clone()).next() {
            Some(stage) => stage,
            None => "page".parse()?,
        },
    };
    let page = FixturePage {
        url: url.unwrap_or(made_up),
        stage,
        status: 200,
        fetched_at: Instant::from_micros(0),
        charset: None,
        headers: match path.extension().is_some_and(|e| e == "json") {
            true => vec!["Content-Type: application/json".to_owned()],
            false => Vec::new(),
        },
    };
    Ok(Tried {
        parsed: ruled.parse(&page, &name, &body)?,
        page,
        body,
        from: path.display().to_string(),
    })
}

/// Keeps a page and what it gives as a fixture.
pub(super) fn save(
    name: &str,
    (page, body): (&FixturePage, &[u8]),
    ruled: &Ruled,
    globals: &Globals<'_>,
) -> Result<()> {
    let is_name = !name.is_empty()
        && !name.starts_with('.')
        && !name.contains(['/', '\\'])
        && !name.contains(EXPECTED_SUFFIX);
    if !is_name {
        return Err(
            Error::invalid(format!("`{name}` cannot be the name of a fixture"))
                .hint("letters and digits, without a folder: --save detail-1"),
        );
    }
    let folder = ruled.fixtures();
    fs::create_dir_all(&folder).map_err(|e| Error::io("create the folder", folder.display(), e))?;
    let is_json = page.headers.iter().any(|h| h.ends_with("json"));
    let file = format!("{name}.{}", if is_json { "json" } else { "html" });
    // What it gives under its own name is what a test will find.
    let parsed = ruled.parse(page, &file, body)?;
    let fixture = Fixture::of(page.clone(), &parsed)?;
    let path = folder.join(&file);
    if path.exists() {
        return Err(
            Error::already_exists(format!("fixture `{name}` is there already"))
                .with("file", path.display())
                .hint("choose another name, or delete it first"),
        );
    }
    write(&path, body)?;
    write(
        &folder.join(format!("{file}{EXPECTED_SUFFIX}")),
        fixture.to_text()?.as_bytes(),
    )?;
    globals.printer.hint(format!(
        "wrote {}; `lakebed parse {} --test` compares it from now on",
        path.display(),
        ruled.source.name
    ));
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).map_err(|e| Error::io("write the file", path.display(), e))
}

/// A page for people: what it is, every value on its line, links, and what did not pass.
fn tell_page(tried: &Tried, globals: &Globals<'_>) -> Result<()> {
    let (printer, parsed) = (globals.printer, &tried.parsed);
    printer.line(&parsed.url)?;
    let rule = match &parsed.page {
        Some(name) => format!("page `{name}`"),
        None => "no rule fits this page".to_owned(),
    };
    printer.line(format!(
        "  {rule}, stage {}, status {}, {}",
        tried.page.stage, tried.page.status, tried.from
    ))?;
    for record in &parsed.records {
        printer.line(&record.dataset)?;
        tell_members(&record.record, globals)?;
    }
    for follow in &parsed.follow_ups {
        let payload = follow
            .payload
            .as_ref()
            .map(Datum::to_json)
            .unwrap_or_default();
        printer.line(format!("-> {} {} {payload}", follow.stage, follow.url))?;
    }
    for expected in &parsed.expectations {
        printer.line(format!(
            "announced: {} of `{}`, {} on this page",
            expected.expected, expected.group, expected.found
        ))?;
    }
    for reject in &parsed.rejects {
        let what = match (&reject.dataset, reject.item) {
            (Some(dataset), Some(item)) => format!("record {item} of {dataset}"),
            (None, Some(item)) => format!("link {item}"),
            _ => "the page".to_owned(),
        };
        printer.line(format!("rejected: {what}"))?;
        for fault in &reject.faults {
            printer.line(format!(
                "  {} ({}): {}",
                fault.path, fault.code, fault.reason
            ))?;
        }
        tell_members(&reject.record, globals)?;
    }
    printer.line(format!(
        "{}, {}, {}",
        count(parsed.records.len() as u64, "record"),
        count(parsed.follow_ups.len() as u64, "link"),
        count(parsed.rejects.len() as u64, "reject"),
    ))
}

fn tell_members(record: &Datum, globals: &Globals<'_>) -> Result<()> {
    let Datum::Object(members) = record else {
        return Ok(());
    };
    let width = members.iter().map(|(name, _)| name.chars().count()).max();
    for (name, value) in members {
        let pad = " ".repeat(width.unwrap_or(0) - name.chars().count());
        globals
            .printer
            .line(format!("  {name}{pad}  {}", value.to_json()))?;
    }
    Ok(())
}

/// What became of a fixture.
#[derive(Serialize)]
pub(super) struct TestedPage {
    /// Its file.
    pub(super) name: String,
    /// Whether there was something to compare with.
    pub(super) expected: bool,
    /// Where it differs.
    pub(super) differences: Vec<Difference>,
    /// What it gives; none where nothing was expected.
    #[serde(skip)]
    pub(super) parsed: Option<ParsedPage>,
}

#[derive(Serialize)]
struct TestAnswer {
    format: u32,
    pass: bool,
    wrote: bool,
    pages: Vec<TestedPage>,
}

/// What the rules give for every fixture; with `rewrite` it is what is expected from now on.
///
/// # Errors
/// `NotFound` where there is no fixture.
pub(super) fn test_pages(ruled: &Ruled, rewrite: bool) -> Result<Vec<TestedPage>> {
    let folder = ruled.fixtures();
    let names = fixture_names(&folder)?;
    if names.is_empty() {
        return Err(
            Error::not_found(format!("source `{}` has no fixture", ruled.source.name))
                .with("folder", folder.display())
                .hint(format!(
                    "`lakebed parse {} --try URL --save NAME` keeps a page as one",
                    ruled.source.name
                )),
        );
    }
    let tested = names
        .into_iter()
        .map(|name| test_page(&folder, name, rewrite, ruled));
    tested.collect()
}

/// `--test`
fn test(args: &ParseArgs, ruled: &Ruled, globals: &Globals<'_>) -> Result<Exit> {
    let pages = test_pages(ruled, args.write)?;
    let pass = args.write || pages.iter().all(|p| p.expected && p.differences.is_empty());
    let answer = TestAnswer {
        format: PARSE_ANSWER_FORMAT,
        pass,
        wrote: args.write,
        pages,
    };
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&answer)?,
        TextFormat::Text => tell_test(&answer, &ruled.source.name, globals)?,
    }
    Ok(if pass { Exit::Done } else { Exit::No })
}

/// Names of the pages in a folder, sorted.
fn fixture_names(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("list the folder", folder.display(), e)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| Error::io("list the folder", folder.display(), e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_page = PAGE_SUFFIXES
            .iter()
            .any(|s| name.ends_with(&format!(".{s}")));
        if is_page && !name.ends_with(EXPECTED_SUFFIX) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn test_page(folder: &Path, name: String, rewrite: bool, ruled: &Ruled) -> Result<TestedPage> {
    let page = folder.join(&name);
    let beside = folder.join(format!("{name}{EXPECTED_SUFFIX}"));
    let body = fs::read(&page).map_err(|e| Error::io("read the page", page.display(), e))?;
    let expected = match fs::read_to_string(&beside) {
        Ok(text) => Some(Fixture::parse(&text, &beside.display().to_string())?),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(Error::io("read the file", beside.display(), e)),
    };
    let (fixture, parsed) = match (expected, rewrite) {
        (None, false) => {
            return Ok(TestedPage {
                name,
                expected: false,
                differences: Vec::new(),
                parsed: None,
            });
        }
        (None, true) => {
            let tried = try_file(&page, (None, None), ruled)?;
            (Fixture::of(tried.page, &tried.parsed)?, tried.parsed)
        }
        (Some(expected), _) => {
            let parsed = ruled.parse(&expected.page, &name, &body)?;
            (expected, parsed)
        }
    };
    let differences = differences(&fixture.gives, &gives(&parsed)?);
    if rewrite {
        let fixture = Fixture::of(fixture.page, &parsed)?;
        write(&beside, fixture.to_text()?.as_bytes())?;
    }
    Ok(TestedPage {
        name,
        expected: true,
        differences,
        parsed: Some(parsed),
    })
}

fn tell_test(answer: &TestAnswer, source: &SourceName, globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    for page in &answer.pages {
        let verdict = match (page.expected, page.differences.len()) {
            (false, _) => "nothing to compare with",
            (true, 0) => "equal",
            (true, _) if answer.wrote => "written anew",
            (true, _) => "different",
        };
        printer.line(format!("{}: {verdict}", page.name))?;
        let shown = |value: &Option<serde_json::Value>| {
            value
                .as_ref()
                .map_or("nothing".to_owned(), ToString::to_string)
        };
        for d in &page.differences {
            printer.line(format!("  {}", d.path))?;
            printer.line(format!("    expected {}", shown(&d.expected)))?;
            printer.line(format!("    found    {}", shown(&d.found)))?;
        }
    }
    if !answer.pass {
        printer.hint(format!(
            "if that is right: `lakebed parse {source} --test --write`, and look at the difference in git"
        ));
    }
    Ok(())
}
