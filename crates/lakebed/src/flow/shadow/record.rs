//! What was found, kept by date below `shadow/<source>/<stage>/<pair>/` of the project.
//!
//! SHD-1: records lie beside the lake. A date whose record is of the same inputs, compared the same way, is not compared
//! again; one that died on the way has none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::flow::guard::lock_folder;
use crate::flow::shadow::item::{Compared, ItemVerdict};
use crate::name::{CaptureId, ContentHash, SourceName};
use crate::spec::{RunKey, SHADOW_FORMAT, ShadowDay, ShadowVerdict};
use crate::time::BusinessDate;

/// Differing items of a date that are kept; all are counted.
const MAX_LINES: u64 = 100_000;
const DAY_SUFFIX: &str = ".json";

/// How a shadow run compares.
#[derive(Debug, Clone)]
pub struct ShadowOptions {
    /// Where records are kept: `shadow` of the project.
    pub kept: PathBuf,
    /// Fields that are not compared: `field`, or `dataset.field`.
    pub ignored: Vec<String>,
    /// Workers; `None` = the machine's cores.
    pub threads: Option<usize>,
    /// Bytes of an input's rows that a fold holds in memory.
    pub memory_bytes: usize,
}

impl ShadowOptions {
    /// Whether the field of the dataset is left out.
    #[must_use]
    pub fn is_ignored(&self, dataset: &str, field: &str) -> bool {
        let names = |text: &String| {
            let of = text.strip_suffix(field).and_then(|t| t.strip_suffix('.'));
            text == field || of == Some(dataset)
        };
        self.ignored.iter().any(names)
    }
}

/// Two implementations of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowPair {
    source: SourceName,
    stage: String,
    old: ContentHash,
    new: ContentHash,
}

impl ShadowPair {
    /// The present one and the one that is tried, by the hashes that name them.
    ///
    /// # Errors
    /// `PreconditionFailed` where they are the same.
    pub fn new(
        source: &SourceName,
        stage: &str,
        (old, new): (&ContentHash, &ContentHash),
    ) -> Result<Self> {
        if old == new {
            return Err(Error::precondition(
                "both sets of rules are the same: there is nothing to compare",
            )
            .with("stage", stage)
            .hint(
                "write the new rules into a file beside source.toml, and name it with `--with`",
            ));
        }
        Ok(Self {
            source: source.clone(),
            stage: stage.to_owned(),
            old: old.clone(),
            new: new.clone(),
        })
    }

    fn folder(&self, kept: &Path) -> PathBuf {
        let pair = format!("{}\n{}", self.old, self.new);
        let pair = ContentHash::of(pair.as_bytes());
        kept.join(self.source.as_str())
            .join(&self.stage)
            .join(pair.short())
    }
}

/// What became of a date.
#[derive(Debug)]
pub enum Shadowed {
    /// It was compared, now or before.
    Compared(ShadowDay),
    /// It cannot be compared, and why.
    Missing(String),
}

/// A date that is about to be compared.
#[derive(Debug)]
pub enum ShadowBegun {
    /// It was compared before: the same inputs, the same way.
    Kept(ShadowDay),
    /// It is to be compared.
    Open(Box<ShadowDate>),
}

/// A date while it is compared.
#[derive(Debug)]
pub struct ShadowDate {
    folder: PathBuf,
    work: PathBuf,
    day: ShadowDay,
    diffs: Diffs,
    _alone: File,
}

impl ShadowDate {
    /// Looks for its record, and opens one where there is none; `inputs` names what both read.
    ///
    /// # Errors
    /// `Unavailable` where another call compares something of the source; `CorruptData` for a record that cannot be read.
    pub fn begin(
        pair: &ShadowPair,
        (date, inputs): (BusinessDate, ContentHash),
        options: &ShadowOptions,
    ) -> Result<ShadowBegun> {
        let mut ignored = options.ignored.clone();
        ignored.sort();
        ignored.dedup();
        let day = ShadowDay {
            format: SHADOW_FORMAT,
            source: pair.source.clone(),
            stage: pair.stage.clone(),
            date,
            old: pair.old.clone(),
            new: pair.new.clone(),
            inputs,
            verdict: ShadowVerdict::Agree,
            pages: None,
            items: BTreeMap::new(),
            fields: BTreeMap::new(),
            ignored,
        };
        let folder = pair.folder(&options.kept);
        if let Some(kept) = find_day(&folder, &day)? {
            return Ok(ShadowBegun::Kept(kept));
        }
        let of_source = options.kept.join(pair.source.as_str());
        let alone = lock_folder(&of_source, "compare the stages of the source")?;
        // What was found for other inputs counts no more.
        remove(&day_path(&folder, date))?;
        let diffs = Diffs::create(&folder, date)?;
        Ok(ShadowBegun::Open(Box::new(Self {
            folder,
            work: of_source.join("work"),
            day,
            diffs,
            _alone: alone,
        })))
    }

    /// An empty folder for what both give, which goes when the date ends.
    ///
    /// # Errors
    /// What the disk answers.
    pub fn work(&self) -> Result<&Path> {
        clear_work(&self.work)?;
        fs::create_dir_all(&self.work)
            .map_err(|e| Error::io("create the folder", self.work.display(), e))?;
        Ok(&self.work)
    }

    /// Where its record will lie.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Ends it without a record.
    pub(super) fn give_up(self) -> Result<()> {
        remove(&self.diffs.path)?;
        clear_work(&self.work)
    }

    /// One page more that both were given.
    pub(super) fn count_page(&mut self) {
        *self.day.pages.get_or_insert(0) += 1;
    }

    /// Counts an item, and keeps it where it differs.
    pub(super) fn take(&mut self, page: Option<PagePlace<'_>>, item: Compared) -> Result<()> {
        self.diffs.take(&mut self.day, page, item)
    }

    /// Ends it: from here on it is known.
    ///
    /// # Errors
    /// What the disk answers.
    pub fn finish(mut self) -> Result<ShadowDay> {
        if self.day.items.values().any(|counts| counts.differ() > 0) {
            self.day.verdict = ShadowVerdict::Diff;
        }
        self.diffs.close()?;
        put_day(&self.folder, &self.day)?;
        clear_work(&self.work)?;
        Ok(self.day)
    }
}

fn clear_work(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("delete the folder", folder.display(), e))
        }
        _ => Ok(()),
    }
}

fn remove(file: &Path) -> Result<()> {
    match fs::remove_file(file) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("delete the file", file.display(), e))
        }
        _ => Ok(()),
    }
}

fn day_path(folder: &Path, date: BusinessDate) -> PathBuf {
    folder.join(format!("{date}{DAY_SUFFIX}"))
}

/// The record of the date, if it is of the same inputs and compared the same way.
fn find_day(folder: &Path, like: &ShadowDay) -> Result<Option<ShadowDay>> {
    let kept = read_day(&day_path(folder, like.date))?;
    Ok(kept.filter(|day| day.inputs == like.inputs && day.ignored == like.ignored))
}

fn read_day(path: &Path) -> Result<Option<ShadowDay>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("read the file", path.display(), e)),
    };
    let day: ShadowDay = serde_json::from_str(&text).map_err(|e| {
        Error::corrupt(format!("read the record of a shadow run: {e}"))
            .with("file", path.display())
            .hint("delete it: the next shadow run of the date makes it anew")
    })?;
    if day.format > SHADOW_FORMAT {
        return Err(
            Error::unavailable(format!("a shadow record of format {}", day.format))
                .with("file", path.display())
                .hint("a newer program wrote it: install that one"),
        );
    }
    Ok(Some(day))
}

/// Writes the record of a date, whole.
fn put_day(folder: &Path, day: &ShadowDay) -> Result<()> {
    let path = day_path(folder, day.date);
    let mut text = serde_json::to_string_pretty(day)
        .map_err(|e| Error::internal("write a shadow record as JSON").caused_by(e))?;
    text.push('\n');
    let temporary = path.with_extension("json.new");
    let failed = |e| Error::io("write the file", path.display(), e);
    fs::write(&temporary, text).map_err(failed)?;
    fs::rename(&temporary, &path).map_err(failed)
}

/// The page that an item is of.
#[derive(Clone, Copy, Serialize)]
pub(super) struct PagePlace<'a> {
    pub(super) run: &'a RunKey,
    pub(super) capture_id: &'a CaptureId,
    pub(super) url: &'a str,
}

/// A line of `<date>.diff.jsonl`.
#[derive(Serialize)]
struct DiffLine<'a> {
    #[serde(flatten)]
    page: Option<PagePlace<'a>>,
    #[serde(flatten)]
    item: &'a Compared,
}

/// The differing items of a date.
#[derive(Debug)]
struct Diffs {
    path: PathBuf,
    out: BufWriter<File>,
    lines: u64,
}

impl Diffs {
    fn create(folder: &Path, date: BusinessDate) -> Result<Self> {
        fs::create_dir_all(folder)
            .map_err(|e| Error::io("create the folder", folder.display(), e))?;
        let path = folder.join(format!("{date}.diff.jsonl"));
        let file =
            File::create(&path).map_err(|e| Error::io("create the file", path.display(), e))?;
        Ok(Self {
            path,
            out: BufWriter::new(file),
            lines: 0,
        })
    }

    fn take(
        &mut self,
        day: &mut ShadowDay,
        page: Option<PagePlace<'_>>,
        item: Compared,
    ) -> Result<()> {
        let counts = match day.items.get_mut(&item.kind) {
            Some(counts) => counts,
            None => day.items.entry(item.kind.clone()).or_default(),
        };
        match item.verdict {
            ItemVerdict::Agree => {
                counts.agree += 1;
                return Ok(());
            }
            ItemVerdict::Changed => counts.changed += 1,
            ItemVerdict::OnlyOld => counts.only_old += 1,
            ItemVerdict::OnlyNew => counts.only_new += 1,
        }
        if item.verdict == ItemVerdict::Changed {
            let fields: BTreeSet<String> =
                item.differences.iter().map(|d| field_of(&d.path)).collect();
            for field in fields {
                let name = format!("{} {field}", item.kind);
                *day.fields.entry(name).or_default() += 1;
            }
        }
        self.lines += 1;
        if self.lines > MAX_LINES {
            return Ok(());
        }
        let line = DiffLine { page, item: &item };
        let failed = |e| Error::io("write the file", self.path.display(), e);
        serde_json::to_writer(&mut self.out, &line).map_err(|e| failed(e.into()))?;
        self.out.write_all(b"\n").map_err(failed)
    }

    /// No file stays where nothing differs.
    fn close(&mut self) -> Result<()> {
        let failed = |e| Error::io("write the file", self.path.display(), e);
        self.out.flush().map_err(failed)?;
        if self.lines == 0 {
            fs::remove_file(&self.path).map_err(failed)?;
        }
        Ok(())
    }
}

/// A path without its places in lists: `$.tags[3]` is `$.tags[]`.
fn field_of(path: &str) -> String {
    let mut field = String::with_capacity(path.len());
    let mut in_place = false;
    for c in path.chars() {
        match c {
            '[' => {
                field.push_str("[]");
                in_place = true;
            }
            ']' => in_place = false,
            _ if in_place => {}
            _ => field.push(c),
        }
    }
    field
}

/// What all recorded dates of two implementations say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShadowSummary {
    /// Dates that were compared, with their verdicts, in order.
    pub days: Vec<(BusinessDate, ShadowVerdict)>,
    /// How many of the newest agree, one after the other.
    pub equal_in_a_row: u32,
}

/// Reads every record of two implementations.
///
/// # Errors
/// `CorruptData` for a record that cannot be read.
pub fn summarize_shadow(kept: &Path, pair: &ShadowPair) -> Result<ShadowSummary> {
    let folder = pair.folder(kept);
    let mut days = Vec::new();
    if folder.is_dir() {
        let failed = |e| Error::io("list the folder", folder.display(), e);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let date = name
                .strip_suffix(DAY_SUFFIX)
                .map(str::parse::<BusinessDate>);
            if let Some(Ok(_)) = date
                && let Some(day) = read_day(&path)?
            {
                days.push((day.date, day.verdict));
            }
        }
    }
    days.sort_by_key(|(date, _)| *date);
    let agree = |(_, verdict): &&(BusinessDate, ShadowVerdict)| *verdict == ShadowVerdict::Agree;
    let equal_in_a_row = days.iter().rev().take_while(agree).count();
    Ok(ShadowSummary {
        equal_in_a_row: u32::try_from(equal_in_a_row).unwrap_or(u32::MAX),
        days,
    })
}
