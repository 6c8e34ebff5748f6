//! `parse --test`: what the rules give for the pages of `fixtures/`, compared with what is expected.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lakebed::name::SourceName;
use lakebed::parse::{Difference, EXPECTED_SUFFIX, Fixture, differences, gives};
use lakebed::spec::ParsedPage;
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{ParseArgs, TextFormat};
use crate::commands::parse::doubt::{MAY_BE_EMPTY, never_there, only_rejects};
use crate::commands::parse::page::try_file;
use crate::commands::parse::{PARSE_ANSWER_FORMAT, Ruled, write};
use crate::context::Globals;
use crate::exit::Exit;
use crate::table::message_text;

/// Ends of the names of fixtures' pages.
const PAGE_SUFFIXES: [&str; 5] = ["html", "htm", "json", "xml", "txt"];

/// What became of a fixture.
#[derive(Serialize)]
pub(crate) struct TestedPage {
    /// Its file.
    pub(crate) name: String,
    /// Whether there was something to compare with.
    pub(crate) expected: bool,
    /// Whether the page is gone and what is expected of it is left.
    pub(crate) gone: bool,
    /// Where it differs.
    pub(crate) differences: Vec<Difference>,
    /// What it gives; none where nothing was expected.
    #[serde(skip)]
    pub(crate) parsed: Option<ParsedPage>,
}

#[derive(Serialize)]
struct TestAnswer {
    format: u32,
    pass: bool,
    wrote: bool,
    /// What makes one doubt that the rules fit, although nothing differs: fields without a value in any record.
    doubts: Vec<String>,
    pages: Vec<TestedPage>,
}

impl TestAnswer {
    /// Whether every page gives what is expected of it, as it is from now on.
    fn is_as_expected(&self) -> bool {
        let is_good = |p: &TestedPage| self.wrote || (p.expected && p.differences.is_empty());
        self.pages.iter().all(|p| is_good(p) && !p.gone)
    }
}

/// What the rules give for every fixture; with `rewrite` it is what is expected from now on.
///
/// # Errors
/// `NotFound` where there is no fixture.
pub(crate) fn test_pages(ruled: &Ruled, rewrite: bool) -> Result<Vec<TestedPage>> {
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
pub(super) fn test(args: &ParseArgs, ruled: &Ruled, globals: &Globals<'_>) -> Result<Exit> {
    let pages = test_pages(ruled, args.write)?;
    let mut answer = TestAnswer {
        format: PARSE_ANSWER_FORMAT,
        pass: true,
        wrote: args.write,
        doubts: never_there(ruled, &pages),
        pages,
    };
    answer.pass = answer.is_as_expected() && answer.doubts.is_empty();
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&answer)?,
        TextFormat::Text => tell_test(&answer, &ruled.source.name, globals)?,
    }
    let printer = globals.printer;
    for line in only_rejects(ruled, &answer.pages) {
        printer.warn(line);
    }
    answer.doubts.iter().for_each(|line| printer.warn(line));
    if !answer.doubts.is_empty() {
        printer.hint(MAY_BE_EMPTY);
    }
    Ok(if answer.pass { Exit::Done } else { Exit::No })
}

/// Names of the pages in a folder, sorted; one that is gone is named by what is expected of it.
pub(super) fn fixture_names(folder: &Path) -> Result<Vec<String>> {
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
        match name.strip_suffix(EXPECTED_SUFFIX) {
            Some(page) => names.push(page.to_owned()),
            None if is_page => names.push(name),
            None => {}
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn test_page(folder: &Path, name: String, rewrite: bool, ruled: &Ruled) -> Result<TestedPage> {
    let page = folder.join(&name);
    let beside = folder.join(format!("{name}{EXPECTED_SUFFIX}"));
    let body = match fs::read(&page) {
        Ok(body) => body,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Ok(TestedPage {
                name,
                expected: false,
                gone: true,
                differences: Vec::new(),
                parsed: None,
            });
        }
        Err(e) => return Err(Error::io("read the page", page.display(), e)),
    };
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
                gone: false,
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
        gone: false,
        differences,
        parsed: Some(parsed),
    })
}

fn tell_test(answer: &TestAnswer, source: &SourceName, globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    for page in &answer.pages {
        let verdict = match (page.expected, page.differences.len()) {
            (false, _) if page.gone => "the page is gone, what is expected of it is left",
            (false, _) => "nothing to compare with",
            (true, 0) => "equal",
            (true, _) if answer.wrote => "written anew",
            (true, _) => "different",
        };
        printer.line(format!("{}: {verdict}", page.name))?;
        tell_differences(page, answer.wrote, globals)?;
    }
    if let Some(page) = answer.pages.iter().find(|p| p.gone) {
        printer.hint(format!(
            "bring the page back, or delete `{}{EXPECTED_SUFFIX}`",
            page.name
        ));
    }
    if !answer.is_as_expected() && answer.pages.iter().any(|p| !p.gone) {
        printer.hint(format!(
            "if that is right: `lakebed parse {source} --test --write`, and look at the difference in git"
        ));
    }
    Ok(())
}

/// What a page gives otherwise than expected. Of what was written anew, members that came or went are told by name alone:
/// those of a field that was taken away stand in every record.
fn tell_differences(page: &TestedPage, wrote: bool, globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    let (mut gone, mut new) = (BTreeSet::new(), BTreeSet::new());
    let shown = |value: &Option<serde_json::Value>| {
        value
            .as_ref()
            .map_or("nothing".to_owned(), ToString::to_string)
    };
    for d in &page.differences {
        let member = d.path.rsplit_once(".record.").map(|(_, member)| member);
        match (member, &d.expected, &d.found) {
            (Some(member), Some(_), None) if wrote => {
                gone.insert(member);
            }
            (Some(member), None, Some(_)) if wrote => {
                new.insert(member);
            }
            (_, expected, found) => {
                printer.line(format!("  {}", d.path))?;
                printer.line(format!("    expected {}", shown(expected)))?;
                printer.line(format!("    found    {}", shown(found)))?;
            }
        }
    }
    for (what, members) in [("no longer", gone), ("new", new)] {
        if !members.is_empty() {
            let members: Vec<&str> = members.into_iter().collect();
            printer.line(format!("  {what}: {}", message_text(&members.join(", "))))?;
        }
    }
    Ok(())
}
