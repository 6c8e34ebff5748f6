//! What a day gave into the lake, or into a file outside of it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::catalog::Catalog;
use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::flow::fold::day::DaySink;
use crate::ingest::{
    CommittedTable, LooseTable, StagedTable, TableEncoder, TableGroup, TableRequest, TableStage,
    commit_table, discard_table,
};
use crate::log::DatasetState;
use crate::store::{Lake, StageFile};

/// Both tables on their way into the stage.
pub(super) struct StageSink<'a> {
    pub(super) lake: &'a Lake,
    pub(super) states: (&'a DatasetState, &'a DatasetState),
    pub(super) requests: (TableRequest, TableRequest),
    pub(super) open: Option<(TableStage, TableStage)>,
}

/// Both tables in the stage: snapshot and events.
pub(super) struct StagedDay {
    snapshot: StagedTable,
    events: StagedTable,
}

fn not_begun() -> Error {
    Error::internal("rows came before their file")
}

impl DaySink for StageSink<'_> {
    fn begin(&mut self, snapshot: TableEncoder, events: TableEncoder) -> Result<()> {
        let (of_snapshot, of_events) = self.states;
        let request = self.requests.clone();
        self.open = Some((
            TableStage::begin(self.lake, of_snapshot, request.0, snapshot)?,
            TableStage::begin(self.lake, of_events, request.1, events)?,
        ));
        Ok(())
    }

    fn snapshot(&mut self, group: TableGroup) -> Result<()> {
        self.open.as_mut().ok_or_else(not_begun)?.0.append(group)
    }

    fn events(&mut self, group: TableGroup) -> Result<()> {
        self.open.as_mut().ok_or_else(not_begun)?.1.append(group)
    }
}

impl StageSink<'_> {
    /// Ends both.
    pub(super) fn finish(self) -> Result<StagedDay> {
        let (snapshot, events) = self.open.ok_or_else(not_begun)?;
        Ok(StagedDay {
            snapshot: snapshot.finish()?,
            events: events.finish()?,
        })
    }
}

impl StagedDay {
    /// Commits the events, unless they are there, then the snapshot (FLD-6).
    pub(super) async fn commit(
        self,
        (lake, catalog): (&Lake, &dyn Catalog),
        (snapshot, events): (&mut DatasetState, &mut DatasetState),
        events_there: bool,
    ) -> Result<(CommittedTable, Option<CommittedTable>)> {
        kill_point("fold.staged");
        let told = match events_there {
            true => {
                discard_table(lake, events, self.events).await;
                None
            }
            false => Some(commit_table(lake, catalog, events, self.events).await?),
        };
        kill_point("fold.events_committed");
        let stored = commit_table(lake, catalog, snapshot, self.snapshot).await?;
        kill_point("fold.snapshot_committed");
        Ok((stored, told))
    }

    /// Gives both up.
    pub(super) async fn discard(
        self,
        lake: &Lake,
        (snapshot, events): (&mut DatasetState, &mut DatasetState),
    ) {
        discard_table(lake, snapshot, self.snapshot).await;
        discard_table(lake, events, self.events).await;
    }
}

/// A file that gets its name when it is whole.
struct LooseFile {
    file: File,
    temp: PathBuf,
    path: PathBuf,
}

impl Write for LooseFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl StageFile for LooseFile {
    fn finish(self: Box<Self>) -> Result<()> {
        let synced = self.file.sync_all();
        synced.map_err(|e| Error::io("make the file durable", self.temp.display(), e))?;
        fs::rename(&self.temp, &self.path)
            .map_err(|e| Error::io("name the file", self.path.display(), e))
    }
}

/// A day outside of the lake: files of the project, replaced by the next one.
pub(super) struct LooseSink {
    snapshot: PathBuf,
    events: Option<PathBuf>,
    tables: Option<(LooseTable, Option<LooseTable>)>,
}

impl LooseSink {
    /// The snapshot alone.
    pub(super) fn new(snapshot: &Path) -> Self {
        Self {
            snapshot: snapshot.to_owned(),
            events: None,
            tables: None,
        }
    }

    /// And its events.
    pub(super) fn with_events(self, events: &Path) -> Self {
        Self {
            events: Some(events.to_owned()),
            ..self
        }
    }

    pub(super) fn finish(self) -> Result<()> {
        let (snapshot, events) = self.tables.ok_or_else(not_begun)?;
        snapshot.finish()?;
        events.map_or(Ok(0), LooseTable::finish).map(|_| ())
    }
}

fn begin_loose(path: &Path, encoder: &TableEncoder) -> Result<LooseTable> {
    let temp = path.with_extension("parquet.tmp");
    let file = File::create(&temp).map_err(|e| Error::io("create the file", temp.display(), e))?;
    let file = LooseFile {
        file,
        temp,
        path: path.to_owned(),
    };
    LooseTable::begin(Box::new(file), encoder)
}

impl DaySink for LooseSink {
    fn begin(&mut self, snapshot: TableEncoder, events: TableEncoder) -> Result<()> {
        let told = self.events.as_deref();
        let told = told.map(|path| begin_loose(path, &events)).transpose()?;
        self.tables = Some((begin_loose(&self.snapshot, &snapshot)?, told));
        Ok(())
    }

    fn snapshot(&mut self, group: TableGroup) -> Result<()> {
        self.tables.as_mut().ok_or_else(not_begun)?.0.append(group)
    }

    fn events(&mut self, group: TableGroup) -> Result<()> {
        match &mut self.tables.as_mut().ok_or_else(not_begun)?.1 {
            Some(events) => events.append(group),
            None => Ok(()),
        }
    }
}
