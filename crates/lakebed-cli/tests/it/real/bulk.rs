//! Whole sets through the library, in one process: a start of the program for each of two thousand
//! days would cost more than everything else.

use std::sync::Arc;

use lakebed::Result;
use lakebed::catalog::SqliteCatalog;
use lakebed::ingest::decode::Mismatch;
use lakebed::ingest::read::InputSource;
use lakebed::ingest::{IngestOutcome, IngestReport, IngestRequest, RevisionTarget, Silent, ingest};
use lakebed::name::DatasetRef;
use lakebed::spec::{By, LoadKind, Provenance, ReadSpec};
use lakebed::store::{Lake, LocalStore};
use lakebed::time::Clock;
use tokio::runtime::Runtime;

use crate::lake::TestLake;
use crate::real::data::DayFile;

/// The lake and catalog of a test project, opened in this process.
pub(super) struct Bulk {
    runtime: Runtime,
    lake: Lake,
    catalog: SqliteCatalog,
    /// Rows stored so far.
    pub(super) rows: u64,
}

/// What differs from call to call.
#[derive(Debug, Clone, Default)]
pub(super) struct Options {
    /// Published version; `None` = the newest.
    pub(super) version: Option<u32>,
    /// Reading rules.
    pub(super) read: ReadSpec,
    /// Policy.
    pub(super) mismatch: Mismatch,
    /// Provenance, where declared.
    pub(super) provenance: Option<Provenance>,
}

impl Options {
    /// Everything as the version says.
    pub(super) fn version(version: u32) -> Self {
        Self {
            version: Some(version),
            ..Self::default()
        }
    }
}

impl Bulk {
    /// Opens the project that the binary made.
    pub(super) fn open(project: &TestLake) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let store = Arc::new(LocalStore::new(project.lake()));
        let open = async move {
            let lake = Lake::open(store, Arc::new(Clock::System)).await?;
            let catalog = SqliteCatalog::open(project.project().join("catalog.db")).await?;
            Result::<_>::Ok((lake, catalog))
        };
        let (lake, catalog) = runtime.block_on(open).unwrap();
        Self {
            runtime,
            lake,
            catalog,
            rows: 0,
        }
    }

    /// One file into one date.
    pub(super) fn try_store(
        &mut self,
        dataset: &str,
        file: &DayFile,
        options: Options,
    ) -> Result<IngestReport> {
        let dataset: DatasetRef = dataset.parse()?;
        let request = IngestRequest {
            dataset,
            dt: file.date().parse()?,
            inputs: vec![InputSource::file(&file.path)],
            format: None,
            schema_version: options.version,
            read: options.read,
            mismatch: options.mismatch,
            batch: None,
            run: None,
            revision: RevisionTarget::Join,
            complete: false,
            late: false,
            allow_empty: false,
            rejects_of: None,
            restore: false,
            bounds: Vec::new(),
            load: LoadKind::Incremental,
            parents: Vec::new(),
            provenance: options.provenance,
            by: By {
                program: "tests".to_owned(),
                user: None,
                run: None,
                note: None,
            },
            threads: Some(1),
            group_bytes: None,
        };
        self.runtime
            .block_on(ingest(&self.lake, &self.catalog, &request, &Silent))
    }

    /// One file into one date, whole: every record a row.
    #[track_caller]
    pub(super) fn store(
        &mut self,
        dataset: &str,
        file: &DayFile,
        options: Options,
        rows: usize,
    ) -> IngestReport {
        let report = self
            .try_store(dataset, file, options)
            .unwrap_or_else(|e| panic!("{}: {e:?}", file.path.display()));
        let day = &file.day;
        assert_eq!(
            report.outcome,
            IngestOutcome::Committed,
            "{day}: {report:?}"
        );
        assert_eq!(report.rows, rows as u64, "{day}: {report:?}");
        assert_eq!(report.rejected, 0, "{day}: {report:?}");
        for field in report.presence.iter() {
            assert_eq!(
                field.records(),
                report.records,
                "{day}: presence of {field:?}"
            );
        }
        self.rows += report.rows;
        report
    }

    /// Closes the catalog, so that the binary finds it whole.
    pub(super) fn close(self) -> u64 {
        self.runtime.block_on(self.catalog.close());
        self.rows
    }
}
