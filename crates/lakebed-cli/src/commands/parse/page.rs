//! `parse --try`: what the rules give for one page.

use std::fs;
use std::path::{Path, PathBuf};

use lakebed::flow::find_page;
use lakebed::parse::{EXPECTED_SUFFIX, Fixture, FixturePage, PageInput, parse_with};
use lakebed::spec::{Datum, PageExpectation, ParsedPage};
use lakebed::time::Instant;
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{ParseArgs, TextFormat};
use crate::commands::parse::{PARSE_ANSWER_FORMAT, Ruled, write};
use crate::commands::queue::SAMPLE_FOLDER;
use crate::commands::skeleton::{is_skeleton_page, skeleton_pages};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::count;

/// A page that was tried.
pub(super) struct Tried {
    pub(super) page: FixturePage,
    pub(super) body: Vec<u8>,
    pub(super) parsed: ParsedPage,
    pub(super) from: String,
}

#[derive(Serialize)]
struct TryAnswer<'a> {
    format: u32,
    from: &'a str,
    #[serde(flatten)]
    parsed: &'a ParsedPage,
}

/// `--try`
pub(super) async fn try_page(
    wanted: &str,
    args: &ParseArgs,
    ruled: &Ruled,
    globals: &Globals<'_>,
) -> Result<Exit> {
    let path = Path::new(wanted);
    let tried = match path.is_file() {
        true => {
            let tried = try_file(path, (args.url.as_deref(), args.stage.as_deref()), ruled)?;
            tell_assumed(&tried, path, args, globals);
            tried
        }
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

/// A file, as found at that URL for that stage; what is not given is that of its fixture, where it is one.
pub(super) fn try_file(
    path: &Path,
    (url, stage): (Option<&str>, Option<&str>),
    ruled: &Ruled,
) -> Result<Tried> {
    let body = fs::read(path).map_err(|e| Error::io("read the page", path.display(), e))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut page = match known_page(path)? {
        Some(known) => known,
        None => assumed_page(path, &name, ruled)?,
    };
    if let Some(url) = url {
        page.url = url.to_owned();
    }
    if let Some(stage) = stage {
        page.stage = stage.parse()?;
    }
    Ok(Tried {
        parsed: ruled.parse(&page, &name, &body)?,
        page,
        body,
        from: path.display().to_string(),
    })
}

/// What stands beside a page that is a fixture.
fn beside(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(EXPECTED_SUFFIX);
    beside.into()
}

/// The response that a fixture tells of.
pub(super) fn known_page(path: &Path) -> Result<Option<FixturePage>> {
    let beside = beside(path);
    match fs::read_to_string(&beside) {
        Ok(text) => Ok(Some(
            Fixture::parse(&text, &beside.display().to_string())?.page,
        )),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read the file", beside.display(), e)),
    }
}

/// The response of a file of which nothing is known.
fn assumed_page(path: &Path, name: &str, ruled: &Ruled) -> Result<FixturePage> {
    let source = &ruled.source;
    let made_up = || {
        let host = source.name.as_str().replace('_', "-");
        format!("http://{host}.invalid/{name}")
    };
    let mut rules = source.parse.iter().flat_map(|p| &p.page);
    Ok(FixturePage {
        url: source.url.clone().unwrap_or_else(made_up),
        stage: match rules.find_map(|page| page.stage.clone()) {
            Some(stage) => stage,
            None => "page".parse()?,
        },
        status: 200,
        fetched_at: Instant::from_micros(0),
        charset: None,
        headers: match path.extension().is_some_and(|e| e == "json") {
            true => vec!["Content-Type: application/json".to_owned()],
            false => Vec::new(),
        },
    })
}

/// What was assumed of a file of which the call says neither where it was found nor for which stage.
fn tell_assumed(tried: &Tried, path: &Path, args: &ParseArgs, globals: &Globals<'_>) {
    let mut assumed = Vec::new();
    if args.url.is_none() {
        assumed.push(format!("found at {} (`--url`)", tried.page.url));
    }
    if args.stage.is_none() {
        assumed.push(format!("of stage `{}` (`--stage`)", tried.page.stage));
    }
    if !assumed.is_empty() {
        let beside = beside(path);
        let name = beside.file_name().unwrap_or_default().to_string_lossy();
        let who = match beside.exists() {
            true => format!(", as `{name}` beside it says"),
            false => String::new(),
        };
        let assumed = assumed.join(", ");
        globals.printer.info(format!("taken as {assumed}{who}"));
    }
}

/// Keeps a page and what it gives as a fixture.
pub(crate) fn save(
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
    if path.exists() && !is_skeleton_page(&path) {
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
    for invented in skeleton_pages(&folder, page.stage.as_str()) {
        if invented != path {
            take_away(&invented)?;
            globals.printer.info(format!(
                "took away {}, which was made up",
                invented.display()
            ));
        }
    }
    globals.printer.hint(format!(
        "wrote {}; `lakebed parse {} --test` compares it from now on",
        path.display(),
        ruled.source.name
    ));
    Ok(())
}

/// Warns where a list of several pages is counted page by page: its closing would be red.
fn tell_short(expected: &PageExpectation, tried: &Tried, globals: &Globals<'_>) {
    let bare = |url: &str| url.split(['?', '#']).next().unwrap_or(url).to_owned();
    let own = bare(&tried.parsed.url);
    // Named after this address, another page has another count.
    let is_own = expected.group.ends_with(&own);
    let stage = tried.page.stage.as_str();
    let mut next = tried.parsed.follow_ups.iter();
    let next = next.find(|f| f.stage.as_str() == stage && bare(&f.url) != own);
    if let (true, true, Some(next)) = (expected.found < expected.expected, is_own, next) {
        globals.printer.warn(format!(
            "{} of {} are on this page, and it leads to {}, which is counted for itself: where all pages announce one number, give the rule a `group = \"...\"`, or the closing is red",
            expected.found, expected.expected, next.url
        ));
    }
}

/// Removes a fixture.
fn take_away(page: &Path) -> Result<()> {
    for path in [page, &beside(page)] {
        match fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove the file", path.display(), e));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
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
        tell_short(expected, tried, globals);
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
