//! The steps of an owner's story, told through the binary: publish, store, be refused.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::lake::TestLake;
use crate::real::data::DayFile;
use crate::real::draft::Draft;

/// A dataset of a lake and what happens to it.
pub(super) struct Story<'a> {
    lake: &'a TestLake,
    dataset: &'a str,
}

/// A call that was refused, with nothing written.
pub(super) struct Refusal {
    /// Standard output and standard error.
    told: String,
    /// Drifted places: field as the report names it, count of faulty values.
    fields: BTreeMap<String, u64>,
}

/// Writes a version file and publishes it.
#[track_caller]
pub(super) fn publish(lake: &TestLake, dataset: &str, version: u32, draft: &Draft) {
    lake.schema(dataset, version, &draft.text(version));
    lake.run(&["schema", "publish", dataset, &version.to_string()])
        .ok();
}

impl<'a> Story<'a> {
    /// The story of a dataset.
    pub(super) fn of(lake: &'a TestLake, dataset: &'a str) -> Self {
        Self { lake, dataset }
    }

    /// The next version is published.
    #[track_caller]
    pub(super) fn publish(&self, version: u32, draft: &Draft) {
        publish(self.lake, self.dataset, version, draft);
    }

    /// A file is stored whole, on the date of its name: so many rows, none rejected.
    #[track_caller]
    pub(super) fn store(&self, file: &DayFile, rows: usize, more: &[&str]) -> Value {
        let report = self.call(file, more).ok().json();
        assert_eq!(report["outcome"], "committed", "{report}");
        assert_eq!(report["rows"], rows, "{report}");
        assert_eq!(report["rejected"], 0, "{report}");
        report
    }

    /// A file is refused: exit 1, the lake's files are what they were.
    #[track_caller]
    pub(super) fn refuse(&self, file: &DayFile, more: &[&str]) -> Refusal {
        self.refuse_with(1, file, more)
    }

    /// As [`Self::refuse`], with another exit code: a file that cannot be read.
    #[track_caller]
    pub(super) fn refuse_with(&self, code: i32, file: &DayFile, more: &[&str]) -> Refusal {
        let before = self.lake.files();
        let run = self.call(file, more).code(code);
        assert_eq!(self.lake.files(), before, "something was written: {run}");
        let told = format!("{}{}", run.stdout, run.stderr);
        let name = file.path.file_name().unwrap().to_str().unwrap();
        assert!(told.contains(name), "the file is not named: {run}");
        let mut fields = BTreeMap::new();
        if code == 1 {
            for item in run.json()["drift"].as_array().unwrap() {
                let field = item["field"].as_str().unwrap().to_owned();
                *fields.entry(field).or_default() += item["count"].as_u64().unwrap();
            }
        }
        Refusal { told, fields }
    }

    fn call(&self, file: &DayFile, more: &[&str]) -> crate::lake::Run {
        let mut args = vec![file.arg(), "--date", file.date()];
        args.extend(more);
        self.lake.ingest(self.dataset, &args)
    }
}

impl Refusal {
    /// Exactly these fields are named as drifted.
    #[track_caller]
    pub(super) fn names(self, fields: &[&str]) -> Self {
        let named: BTreeSet<&str> = self.fields.keys().map(String::as_str).collect();
        let expected: BTreeSet<&str> = fields.iter().copied().collect();
        assert_eq!(named, expected, "{}", self.told);
        self
    }

    /// So many values of a field were at fault.
    #[track_caller]
    pub(super) fn counts(self, field: &str, faults: usize) -> Self {
        let told = usize::try_from(self.fields[field]).unwrap();
        assert_eq!(told, faults, "{field}: {}", self.told);
        self
    }

    /// Every text is told somewhere.
    #[track_caller]
    pub(super) fn says(self, texts: &[&str]) -> Self {
        for text in texts {
            assert!(
                self.told.contains(text),
                "`{text}` is not told: {}",
                self.told
            );
        }
        self
    }
}
