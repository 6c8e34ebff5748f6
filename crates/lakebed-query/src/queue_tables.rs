//! The request queue as SQL tables: rows of its database as they are when a query asks for them.
//!
//! | table | rows |
//! | --- | --- |
//! | `lake.requests` | requests of every run that is not pruned, with where they are |
//! | `lake.runs` | runs |
//! | `lake.hosts` | what all workers together know of a host |
//!
//! A project that never crawled has none of them: its tables are empty and no file is made.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream::try_unfold;
use lakebed::Result;
use lakebed::queue::{
    Coverage, HostRecord, Queue, QueueOptions, RequestFilter, RequestRecord, RunRecord,
};
use lakebed::time::Instant;
use tokio::sync::OnceCell;

use crate::error::convert;
use crate::system::{Columns, batch_of, date, instant, maybe, number, table_of, text};

/// Rows that are read at once.
const PAGE: u32 = 5_000;

/// The queue of a project, opened when a query first names one of its tables.
#[derive(Debug, Default)]
pub(crate) struct QueueTables {
    /// Path or URL; absent = there is none.
    place: Option<String>,
    opened: OnceCell<Queue>,
}

impl QueueTables {
    /// The tables of the queue at `place`.
    pub(crate) fn new(place: Option<String>) -> Self {
        let opened = OnceCell::new();
        Self { place, opened }
    }

    /// The queue; `None` where nothing was ever put into one.
    async fn queue(&self) -> Result<Option<&Queue>> {
        let Some(place) = &self.place else {
            return Ok(None);
        };
        let is_file = !place.contains("://");
        if is_file && !std::path::Path::new(place).exists() {
            return Ok(None);
        }
        let open = || Queue::open(place, QueueOptions::default());
        self.opened.get_or_try_init(open).await.map(Some)
    }

    async fn list_runs(&self) -> Result<Vec<RunRecord>> {
        let Some(queue) = self.queue().await? else {
            return Ok(Vec::new());
        };
        let mut runs = queue.list_runs(None, u32::MAX).await?;
        runs.reverse();
        Ok(runs)
    }

    /// `lake.runs`
    pub(crate) async fn runs(&self) -> Result<Arc<dyn TableProvider>> {
        table_of(run_columns(&self.list_runs().await?))
    }

    /// `lake.hosts`
    pub(crate) async fn hosts(&self) -> Result<Arc<dyn TableProvider>> {
        let mut hosts: Vec<HostRecord> = Vec::new();
        if let Some(queue) = self.queue().await? {
            loop {
                let after = hosts.last().map_or("", |h| h.name.as_str());
                let page = queue.list_hosts(after, PAGE).await?;
                if page.is_empty() {
                    break;
                }
                hosts.extend(page);
            }
        }
        table_of(host_columns(&hosts))
    }

    /// `lake.requests`, whose rows are read page by page while the query takes them.
    pub(crate) async fn requests(&self) -> Result<Arc<dyn TableProvider>> {
        let Some(queue) = self.queue().await? else {
            return table_of(request_columns(&[]));
        };
        let none = batch_of(request_columns(&[])).map_err(|e| convert(&e))?;
        let schema = none.schema();
        let pages = RequestPages {
            schema: Arc::clone(&schema),
            queue: queue.clone(),
            runs: self.list_runs().await?,
        };
        let table = StreamingTable::try_new(schema, vec![Arc::new(pages)]);
        Ok(Arc::new(table.map_err(|e| convert(&e))?))
    }
}

/// The requests of the runs that there were when the query began.
#[derive(Debug)]
struct RequestPages {
    schema: SchemaRef,
    queue: Queue,
    runs: Vec<RunRecord>,
}

impl PartitionStream for RequestPages {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let runs = VecDeque::from(self.runs.clone());
        let begin = Reading {
            queue: self.queue.clone(),
            runs,
            after: 0,
        };
        let pages = try_unfold(begin, |mut reading| async move {
            let page = reading.next_page().await;
            let page = page.map_err(|e| DataFusionError::External(Box::new(e)))?;
            page.map(|(run, page)| {
                let rows: Vec<_> = page.iter().map(|request| (&run, request)).collect();
                Ok((batch_of(request_columns(&rows))?, reading))
            })
            .transpose()
        });
        let schema = Arc::clone(&self.schema);
        Box::pin(RecordBatchStreamAdapter::new(schema, pages))
    }
}

/// How far the requests are read.
struct Reading {
    queue: Queue,
    runs: VecDeque<RunRecord>,
    after: i64,
}

impl Reading {
    /// The next requests, all of one run; `None` at the end.
    async fn next_page(&mut self) -> Result<Option<(RunRecord, Vec<RequestRecord>)>> {
        while let Some(run) = self.runs.front() {
            let filter = RequestFilter {
                run_id: run.id,
                after: self.after,
                limit: PAGE,
                ..RequestFilter::default()
            };
            let page = self.queue.list_requests(&filter).await?;
            if let Some(last) = page.last() {
                self.after = last.id;
                return Ok(Some((run.clone(), page)));
            }
            self.runs.pop_front();
            self.after = 0;
        }
        Ok(None)
    }
}

fn run_key<R>(rows: &[R], of: impl Fn(&R) -> &RunRecord) -> Columns {
    [
        text("source", rows, |r| of(r).key.source.as_str().to_owned()),
        date("dt", rows, |r| Some(of(r).key.date)),
        text("run", rows, |r| of(r).key.run.as_str().to_owned()),
        text("run_state", rows, |r| of(r).state.as_str()),
    ]
    .concat()
}

pub(crate) fn run_columns(rows: &[RunRecord]) -> Columns {
    let coverage = |r: &RunRecord| match r.coverage {
        Coverage::Full => "full",
        Coverage::Partial => "partial",
    };
    [
        run_key(rows, |r| r),
        text("coverage", rows, coverage),
        number("announced", rows, |r| r.seeds.announced),
        number("inserted", rows, |r| r.seeds.inserted),
        number("duplicate", rows, |r| r.seeds.duplicate),
        number("out_of_scope", rows, |r| r.seeds.out_of_scope),
        number("late_finishes", rows, |r| r.late_finishes),
        maybe("plan_hash", rows, |r| r.plan_hash.as_deref()),
        maybe("stopped", rows, |r| r.stopped.as_deref()),
        maybe_instant("deadline_at", rows, |r| r.deadline_at),
        instant("created_at", rows, |r| Instant::from_micros(r.created_at)),
        maybe("closing", rows, |r| r.closing.as_deref()),
    ]
    .concat()
}

pub(crate) fn request_columns(rows: &[(&RunRecord, &RequestRecord)]) -> Columns {
    let status: Int64Array = rows.iter().map(|(_, r)| r.status).collect();
    let parent: Int64Array = rows.iter().map(|(_, r)| r.parent_id).collect();
    let ids = Int64Array::from_iter_values(rows.iter().map(|(_, r)| r.id));
    let capture: StringArray = rows
        .iter()
        .map(|(_, r)| r.capture.as_ref().map(ToString::to_string))
        .collect();
    [
        run_key(rows, |(run, _)| run),
        vec![("id", Arc::new(ids) as ArrayRef, false)],
        text("request_key", rows, |(_, r)| r.request_key.to_string()),
        text("stage", rows, |(_, r)| r.stage.as_str().to_owned()),
        text("method", rows, |(_, r)| r.method.clone()),
        text("url", rows, |(_, r)| r.url.clone()),
        text("state", rows, |(_, r)| r.state.as_str()),
        number("attempts", rows, |(_, r)| r.attempts.into()),
        number("failures", rows, |(_, r)| r.failures.into()),
        maybe("class", rows, |(_, r)| r.class.as_deref()),
        vec![("status", Arc::new(status) as ArrayRef, true)],
        vec![("capture", Arc::new(capture) as ArrayRef, true)],
        maybe_instant("not_before", rows, |(_, r)| some_time(r.not_before)),
        maybe_instant("ended_at", rows, |(_, r)| r.ended_at),
        vec![("parent_id", Arc::new(parent) as ArrayRef, true)],
    ]
    .concat()
}

pub(crate) fn host_columns(rows: &[HostRecord]) -> Columns {
    [
        text("host", rows, |r| r.name.clone()),
        number("in_flight", rows, |r| {
            u64::try_from(r.in_flight).unwrap_or(0)
        }),
        maybe_instant("next_at", rows, |r| some_time(r.next_at)),
        maybe_instant("blocked_until", rows, |r| some_time(r.blocked_until)),
        maybe_instant("robots_until", rows, |r| some_time(r.robots_until)),
    ]
    .concat()
}

/// An instant of the queue, which keeps 0 for none.
fn some_time(micros: i64) -> Option<i64> {
    (micros != 0).then_some(micros)
}

fn maybe_instant<R>(name: &'static str, rows: &[R], of: impl Fn(&R) -> Option<i64>) -> Columns {
    let array: TimestampMicrosecondArray = rows.iter().map(of).collect();
    vec![(name, Arc::new(array.with_timezone("UTC")), true)]
}
