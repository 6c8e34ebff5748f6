//! What was found, kept by date below `shadow/<source>/parse/<pair>/` of the project.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::flow::shadow::STAGE;
use crate::flow::shadow::compare::{Compared, ItemVerdict};
use crate::name::{CaptureId, ContentHash, SourceName};
use crate::parse::Rules;
use crate::spec::{ParsedPage, RunKey, SHADOW_FORMAT, ShadowDay, ShadowVerdict};
use crate::time::BusinessDate;

/// Differing items of a date that are kept; all are counted.
const MAX_LINES: u64 = 100_000;
const DAY_SUFFIX: &str = ".json";

/// The folder of two sets of rules.
pub(super) fn folder_of(kept: &Path, source: &SourceName, old: &Rules, new: &Rules) -> PathBuf {
    let pair = format!("{}\n{}", old.hash(), new.hash());
    let pair = ContentHash::of(pair.as_bytes());
    kept.join(source.as_str()).join(STAGE).join(pair.short())
}

fn day_path(folder: &Path, date: BusinessDate) -> PathBuf {
    folder.join(format!("{date}{DAY_SUFFIX}"))
}

/// The record of the date, if it is of the same inputs and compared the same way.
pub(super) fn find_day(folder: &Path, like: &ShadowDay) -> Result<Option<ShadowDay>> {
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
pub(super) fn put_day(folder: &Path, day: &ShadowDay) -> Result<()> {
    let path = day_path(folder, day.date);
    let mut text = serde_json::to_string_pretty(day)
        .map_err(|e| Error::internal("write a shadow record as JSON").caused_by(e))?;
    text.push('\n');
    let temporary = path.with_extension("json.new");
    let failed = |e| Error::io("write the file", path.display(), e);
    fs::write(&temporary, text).map_err(failed)?;
    fs::rename(&temporary, &path).map_err(failed)
}

/// A line of `<date>.diff.jsonl`.
#[derive(Serialize)]
struct DiffLine<'a> {
    run: &'a RunKey,
    capture_id: &'a CaptureId,
    url: &'a str,
    #[serde(flatten)]
    item: &'a Compared,
}

/// The differing items of a date.
pub(super) struct Diffs {
    path: PathBuf,
    out: BufWriter<File>,
    lines: u64,
}

impl Diffs {
    pub(super) fn create(folder: &Path, date: BusinessDate) -> Result<Self> {
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

    /// Counts an item, and keeps it where it differs.
    pub(super) fn take(
        &mut self,
        day: &mut ShadowDay,
        (run, page): (&RunKey, &ParsedPage),
        item: Compared,
    ) -> Result<()> {
        let counts = day.items.entry(item.kind.clone()).or_default();
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
            let fields = item.differences.iter().map(|d| field_of(&d.path));
            let fields: std::collections::BTreeSet<String> = fields.collect();
            for field in fields {
                let name = format!("{} {field}", item.kind);
                *day.fields.entry(name).or_default() += 1;
            }
        }
        self.lines += 1;
        if self.lines > MAX_LINES {
            return Ok(());
        }
        let line = DiffLine {
            run,
            capture_id: &page.capture_id,
            url: &page.url,
            item: &item,
        };
        let failed = |e| Error::io("write the file", self.path.display(), e);
        serde_json::to_writer(&mut self.out, &line).map_err(|e| failed(e.into()))?;
        self.out.write_all(b"\n").map_err(failed)
    }

    /// No file stays where nothing differs.
    pub(super) fn close(mut self) -> Result<()> {
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

/// What all recorded dates of two sets of rules say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShadowSummary {
    /// Dates that were compared, with their verdicts, in order.
    pub days: Vec<(BusinessDate, ShadowVerdict)>,
    /// How many of the newest agree, one after the other.
    pub equal_in_a_row: u32,
}

/// Reads every record of two sets of rules.
///
/// # Errors
/// `CorruptData` for a record that cannot be read.
pub fn summarize_shadow(
    kept: &Path,
    source: &SourceName,
    (old, new): (&Rules, &Rules),
) -> Result<ShadowSummary> {
    let folder = folder_of(kept, source, old, new);
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
