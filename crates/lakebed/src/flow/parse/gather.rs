//! What comes of pages, on disk until it is stored: for each pack and dataset the records, and what was rejected.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::flow::parse::pages::{Came, Done};
use crate::ingest::Progress;
use crate::name::DatasetName;
use crate::parse::{Filled, Rules};
use crate::spec::{
    DatasetCounts, PAGE_FORM, PackCounts, PageReject, ParsedPage, RejectReason, RejectRecord,
    RunKey,
};

/// What a pack gave.
pub(super) struct Gathered {
    pub(super) counts: PackCounts,
    pub(super) datasets: BTreeMap<DatasetName, Records>,
}

/// The records of a dataset out of one pack.
pub(super) struct Records {
    pub(super) path: PathBuf,
    /// Lines of [`RejectRecord`]; absent where nothing was rejected.
    pub(super) rejects: Option<PathBuf>,
    pub(super) counts: DatasetCounts,
}

/// Takes pages in their order.
pub(super) struct Gatherer<'a> {
    folder: &'a Path,
    rules: &'a Rules,
    /// The datasets of each kind of pages.
    kinds: BTreeMap<String, Vec<DatasetName>>,
    progress: &'a dyn Progress,
    /// How many packs come.
    expected: usize,
    open: Option<OpenPack>,
    packs: Vec<Gathered>,
    filled: Filled,
}

struct OpenPack {
    counts: PackCounts,
    datasets: BTreeMap<DatasetName, OpenRecords>,
}

struct OpenRecords {
    lines: Lines,
    rejects: Lines,
    counts: DatasetCounts,
}

impl<'a> Gatherer<'a> {
    /// Gathers so many packs in an empty folder.
    pub(super) fn new(
        folder: &'a Path,
        (rules, expected): (&'a Rules, usize),
        progress: &'a dyn Progress,
    ) -> Result<Self> {
        // What a call left that died means nothing: its pages are read again.
        match fs::remove_dir_all(folder) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("empty the folder", folder.display(), e));
            }
            Ok(()) | Err(_) => {}
        }
        fs::create_dir_all(folder)
            .map_err(|e| Error::io("create the folder", folder.display(), e))?;
        Ok(Self {
            folder,
            rules,
            kinds: BTreeMap::new(),
            progress,
            expected,
            open: None,
            packs: Vec::new(),
            filled: Filled::default(),
        })
    }

    /// Takes what came next.
    pub(super) fn take(&mut self, came: Came) -> Result<()> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                let number = self.packs.len();
                self.progress.step("reads", number + 1, self.expected);
                OpenPack::create(self.folder, number, self.rules)?
            }
        };
        match came {
            Came::Page(page) => {
                self.page(&mut open, &page)?;
                self.open = Some(open);
            }
            Came::End => self.packs.push(open.close()?),
        }
        Ok(())
    }

    /// What each pack gave, in their order, and which fields had a value.
    pub(super) fn finish(self) -> (Vec<Gathered>, Filled) {
        (self.packs, self.filled)
    }

    fn page(&mut self, open: &mut OpenPack, page: &Done) -> Result<()> {
        let parsed = &page.parsed;
        open.count(parsed);
        let kind = parsed.page.as_deref().unwrap_or_default();
        if !self.kinds.contains_key(kind) {
            self.kinds
                .insert(kind.to_owned(), self.rules.datasets_of(kind));
        }
        let of_kind = self.kinds.get(kind).map_or(&[][..], Vec::as_slice);
        for dataset in of_kind {
            if let Some(records) = open.datasets.get_mut(dataset) {
                records.counts.pages += 1;
            }
        }
        for record in &parsed.records {
            self.filled.add(&record.dataset, &record.record);
            if let Some(records) = open.datasets.get_mut(&record.dataset) {
                records.counts.records += 1;
                records.lines.add(&record.record)?;
            }
        }
        for reject in &parsed.rejects {
            // What is of no dataset, a page or a link, is kept with the first one of its page.
            let named = reject.dataset.as_ref().or_else(|| of_kind.first());
            let first = open.datasets.keys().next().cloned();
            let Some(name) = named.cloned().or(first) else {
                continue;
            };
            if let Some(records) = open.datasets.get_mut(&name) {
                records.counts.rejects += u64::from(reject.dataset.is_some());
                records.rejects.add(&kept(&page.run, parsed, reject))?;
            }
        }
        let (records, rejects) = (parsed.records.len() as u64, parsed.rejects.len() as u64);
        self.progress.advance(page.bytes, records, rejects);
        Ok(())
    }
}

impl OpenPack {
    fn create(folder: &Path, number: usize, rules: &Rules) -> Result<Self> {
        let mut datasets = BTreeMap::new();
        for name in rules.datasets() {
            let records = OpenRecords {
                lines: Lines::create(folder.join(format!("{number}-{name}.jsonl")))?,
                rejects: Lines::create(folder.join(format!("{number}-{name}.rejects.jsonl")))?,
                counts: DatasetCounts::default(),
            };
            datasets.insert(name, records);
        }
        Ok(Self {
            counts: PackCounts::default(),
            datasets,
        })
    }

    fn count(&mut self, parsed: &ParsedPage) {
        let counts = &mut self.counts;
        counts.pages += 1;
        counts.follow_ups += parsed.follow_ups.len() as u64;
        counts.expectations += parsed.expectations.len() as u64;
        counts.rejects += parsed.rejects.len() as u64;
        let is_empty = parsed.records.is_empty() && parsed.follow_ups.is_empty();
        match (&parsed.page, parsed.is_rejected()) {
            (None, _) => counts.unmatched += 1,
            (Some(_), true) => counts.rejected += 1,
            (Some(_), false) => {
                counts.parsed += 1;
                counts.barren += u64::from(is_empty);
            }
        }
    }

    fn close(self) -> Result<Gathered> {
        let mut datasets = BTreeMap::new();
        for (name, open) in self.datasets {
            let (path, _) = open.lines.close()?;
            let (rejects, count) = open.rejects.close()?;
            let records = Records {
                path,
                rejects: (count > 0).then_some(rejects),
                counts: open.counts,
            };
            datasets.insert(name, records);
        }
        Ok(Gathered {
            counts: self.counts,
            datasets,
        })
    }
}

/// A reject as the lake keeps it.
fn kept(run: &RunKey, parsed: &ParsedPage, reject: &PageReject) -> RejectRecord {
    let RunKey { source, date, run } = run;
    let reasons: Vec<RejectReason> = reject
        .faults
        .iter()
        .map(|fault| RejectReason {
            field: field_of(&fault.path),
            path: fault.path.clone(),
            code: fault.code.clone(),
            reason: fault.reason.clone(),
        })
        .collect();
    let first = reasons.first().cloned().unwrap_or_else(|| RejectReason {
        field: String::new(),
        path: "$".to_owned(),
        code: "page".to_owned(),
        reason: String::new(),
    });
    RejectRecord {
        file: format!("{source}/{date}/{run}/{}", parsed.capture_id),
        input: 0,
        line: reject.item.map_or(0, |n| n + 1),
        field: first.field,
        path: first.path,
        reason: first.reason,
        reasons,
        form: PAGE_FORM.to_owned(),
        raw: reject.record.to_json(),
        header: Vec::new(),
        delimiter: None,
        quote: None,
        url: Some(parsed.url.clone()),
    }
}

/// The field of a path such as `$.reviews[2].stars`.
fn field_of(path: &str) -> String {
    let inside = path.strip_prefix("$.").unwrap_or_default();
    let end = inside.find(['.', '[']).unwrap_or(inside.len());
    inside[..end].to_owned()
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
