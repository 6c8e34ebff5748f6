//! The demo's folder and the calls of the library that the commands make, too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use lakebed::config::{PROJECT_FILE, Project, Settings};
use lakebed::ingest::decode::Mismatch;
use lakebed::ingest::read::resolve_inputs;
use lakebed::ingest::{IngestReport, IngestRequest, RevisionTarget, Silent, ingest};
use lakebed::name::{DatasetRef, SourceName};
use lakebed::spec::{DatasetClass, LoadKind, Provenance, ReadSpec};
use lakebed::{Error, Result};

use crate::commands::schema::{offer_next, publish_file};
use crate::context::{Context, Globals, make_lake};
use crate::demo::delivery::{Delivery, DemoSource, ZONE};
use crate::demo::schemas;
use crate::printer::Printer;

/// Default folder.
const DEFAULT_DIR: &str = "lakebed-demo";
/// Marks a folder that a demo made and may make anew.
const MARKER: &str = ".lakebed-demo";
/// What a demo makes, and may remove, in its folder.
const OWN: [&str; 20] = [
    "inbox",
    "lake",
    "sources",
    "crawl",
    "parse",
    "flow",
    "fold",
    "seed",
    "derive",
    "shadow",
    "summary.html",
    "queue.db",
    "queue.db-wal",
    "queue.db-shm",
    "catalog.db",
    "catalog.db-wal",
    "catalog.db-shm",
    ".gitignore",
    "lakebed.local.toml",
    PROJECT_FILE,
];

/// Sums over the deliveries of a source.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Deliveries.
    pub(crate) deliveries: u64,
    /// Rows stored.
    pub(crate) rows: u64,
    /// Records in quarantine.
    pub(crate) rejected: u64,
}

/// The demo's project, opened.
pub(crate) struct Stage<'a> {
    dir: PathBuf,
    context: Context<'a>,
    tallies: BTreeMap<DemoSource, Tally>,
    told: BTreeSet<(DemoSource, String)>,
}

impl<'a> Stage<'a> {
    /// Makes the project, its sources and their first schema versions.
    pub(crate) async fn build(dir: Option<PathBuf>, globals: &Globals<'a>) -> Result<Self> {
        let dir = dir.unwrap_or_else(|| PathBuf::from(DEFAULT_DIR));
        prepare(&dir)?;
        let made = Project::init(&dir, Some(ZONE))?;
        let settings = Settings::load(&made.project, &globals.layers())?;
        inside(&dir, &settings)?;
        make_lake(&settings).await?;
        let context = Context::open_project(globals.printer, made.project, settings).await?;
        let printer = globals.printer;
        let shown = dir.display();
        printer.line("Sixty days of three sources, as a crawler would deliver them.\n")?;
        printer.line(format!(
            "A project, a lake, a catalog in `{shown}`; no service runs."
        ))?;
        printer.line(format!("   $ lakebed init {shown} --time-zone {ZONE}"))?;
        for source in DemoSource::ALL {
            let name: SourceName = source.name().parse()?;
            context
                .project()
                .add_source(&name, DatasetClass::Log, Some(source.title()))?;
            let dataset = dataset(source)?;
            let text = schemas::first_version(source);
            context.project().write_schema_file(&dataset, 1, text)?;
            publish_file(&context, &dataset, 1).await?;
            printer.line(format!("   $ lakebed schema publish {dataset} 1"))?;
        }
        context.follow_all().await?;
        printer.line("")?;
        Ok(Self {
            dir,
            context,
            tallies: BTreeMap::new(),
            told: BTreeSet::new(),
        })
    }

    /// Output.
    pub(crate) fn printer(&self) -> &'a Printer {
        self.context.printer()
    }

    /// The opened project.
    pub(crate) fn context(&self) -> &Context<'a> {
        &self.context
    }

    /// The demo's folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Sums by source.
    pub(crate) fn tallies(&self) -> &BTreeMap<DemoSource, Tally> {
        &self.tallies
    }

    /// Writes the delivery into the inbox; answers its path.
    pub(crate) fn receive(&self, delivery: &Delivery) -> Result<String> {
        let folder = self.dir.join("inbox").join(delivery.date.to_string());
        let path = folder.join(&delivery.name);
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&path, &delivery.bytes))
            .map_err(|e| Error::io("write the file", path.display(), e))?;
        Ok(path.display().to_string())
    }

    /// The call that a command line for this delivery makes.
    pub(crate) fn request(&self, delivery: &Delivery, file: &str) -> Result<IngestRequest> {
        let run = delivery.run.map(str::parse).transpose()?;
        Ok(IngestRequest {
            dataset: dataset(delivery.source)?,
            dt: delivery.date,
            inputs: resolve_inputs(&[file.to_owned()])?,
            format: None,
            schema_version: None,
            read: ReadSpec::default(),
            mismatch: match delivery.source {
                DemoSource::HotTopics => Mismatch::Fail,
                DemoSource::Rentals | DemoSource::Shop => Mismatch::Quarantine,
            },
            batch: None,
            run: run.clone(),
            revision: RevisionTarget::Join,
            complete: delivery.completes,
            late: false,
            allow_empty: false,
            rejects_of: None,
            restore: false,
            bounds: Vec::new(),
            load: LoadKind::Incremental,
            parents: Vec::new(),
            provenance: Some(Provenance::Live),
            by: self.context.by(run, None),
            threads: None,
            group_bytes: None,
        })
    }

    /// Makes the call.
    pub(crate) async fn ingest(&self, request: &IngestRequest) -> Result<IngestReport> {
        let catalog = self.context.catalog();
        ingest(self.context.lake(), &*catalog, request, &Silent).await
    }

    /// Takes the version that a refused call offers, as its owner would after reviewing it.
    pub(crate) async fn publish_offer(&self, request: &IngestRequest) -> Result<u32> {
        let offer = offer_next(&self.context, request)
            .await?
            .ok_or_else(|| Error::internal("the demo expected an offered version"))?;
        fs::rename(&offer.file, &offer.target)
            .map_err(|e| Error::io("rename the file", offer.file.display(), e))?;
        publish_file(&self.context, &request.dataset, offer.version).await?;
        Ok(offer.version)
    }

    /// Adds a report to the sums.
    pub(crate) fn count(&mut self, delivery: &Delivery, report: &IngestReport) {
        let tally = self.tallies.entry(delivery.source).or_default();
        tally.deliveries += 1;
        tally.rows += report.rows;
        tally.rejected += report.rejected;
    }

    /// Whether a kind of reject is met for the first time.
    pub(crate) fn is_first_reject(&mut self, delivery: &Delivery, report: &IngestReport) -> bool {
        let mut first = false;
        for item in report.drift.items() {
            first |= self
                .told
                .insert((delivery.source, format!("{} {}", item.path, item.code)));
        }
        first
    }

    /// Files of the lake, temporary ones aside.
    pub(crate) fn count_files(&self) -> Result<usize> {
        count_files(&self.context.settings().lake.value)
    }
}

/// The dataset of a source.
pub(crate) fn dataset(source: DemoSource) -> Result<DatasetRef> {
    format!("clean/{}", source.name()).parse()
}

fn count_files(folder: &Path) -> Result<usize> {
    let failed = |e| Error::io("list the folder", folder.display(), e);
    let mut count = 0;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        count += if path.is_dir() {
            count_files(&path)?
        } else {
            1
        };
    }
    Ok(count)
}

/// An empty folder, or one that a demo made: that one is made anew. Anything else is left alone.
pub(crate) fn prepare(dir: &Path) -> Result<()> {
    let failed = |e| Error::io("prepare the folder", dir.display(), e);
    fs::create_dir_all(dir).map_err(failed)?;
    let marker = dir.join(MARKER);
    let is_empty = fs::read_dir(dir).map_err(failed)?.next().is_none();
    if !is_empty && !marker.is_file() {
        return Err(Error::already_exists(format!(
            "`{}` holds something that no demo made",
            dir.display()
        ))
        .hint("name a new folder: `lakebed demo DIR`"));
    }
    fs::write(
        &marker,
        "Made by `lakebed demo`, which may make this folder anew.\n",
    )
    .map_err(failed)?;
    for name in OWN {
        let path = dir.join(name);
        let removed = if path.is_dir() {
            fs::remove_dir_all(&path)
        } else {
            fs::remove_file(&path)
        };
        match removed {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("remove", path.display(), e)),
        }
    }
    Ok(())
}

/// The demo never writes into a lake or catalog elsewhere, whatever the environment says.
fn inside(dir: &Path, settings: &Settings) -> Result<()> {
    for (path, origin) in [
        (&settings.lake.value, &settings.lake.origin),
        (&settings.catalog.value, &settings.catalog.origin),
    ] {
        if !path.starts_with(dir) {
            return Err(Error::invalid(format!(
                "the demo keeps everything in its folder, but `{}` lies elsewhere",
                path.display()
            ))
            .with("origin", origin)
            .hint("unset that variable for the demo"));
        }
    }
    Ok(())
}
