//! The engine: a SQL text in, a stream of batches out.
//!
//! ```text
//! text -> statement (reads only) -> freshen + look up its tables -> optimize -> plan -> stream
//! ```
//!
//! Each query gets its own tables, made from what the catalog says at that moment; functions,
//! configuration and memory are the engine's.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use arrow::temporal_conversions::timestamp_us_to_datetime;
use async_trait::async_trait;
use datafusion::catalog::CatalogProviderList;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, ScalarUDF};
use datafusion::optimizer::Analyzer;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionConfig;
use lakebed::Result;
use lakebed::catalog::{Catalog, SchemaRow};
use lakebed::config::SourceConfig;
use lakebed::name::DatasetRef;
use lakebed::store::Lake;
use lakebed::time::{BusinessDate, time_zone};

use crate::by_file::AggregateByFile;
use crate::checked::CheckedIntegers;
use crate::comparisons::Comparisons;
use crate::day_of::DayOfInstants;
use crate::error::convert;
use crate::history::{ObjectKey, history_plan};
use crate::json_functions::json_functions;
use crate::latest::latest_of;
use crate::literals::FloatLiterals;
use crate::nested_text::NestedText;
use crate::queue_tables::QueueTables;
use crate::reads::{ReadCounter, Reads};
use crate::result::{QueryMeter, QueryResult, QueryStats, planned_files};
use crate::scan::{Footers, KnownColumns, ScanNote, ScanTrace};
use crate::statement::{DEFAULT_CATALOG, DEFAULT_SCHEMA, DatasetTable, NamedTable, read_statement};
use crate::tables::{PublishedRows, TableMaker};
use crate::text_equals::TextEquality;
use crate::text_length::TextLength;
use crate::today::Today;

/// Brings the catalog up to date with the logs before a query is planned.
#[async_trait]
pub trait Freshen: Send + Sync + fmt::Debug {
    /// Brings what the catalog knows of one dataset up to date; an unknown dataset is no error. Answers
    /// the dataset's published versions, as [`Catalog::list_schemas`] has them now.
    async fn freshen(&self, dataset: &DatasetRef) -> Result<Vec<SchemaRow>>;

    /// Brings the whole catalog up to date: the query names a system table.
    async fn freshen_all(&self) -> Result<()>;
}

/// How an engine works.
#[derive(Debug, Clone, Default)]
pub struct QueryOptions {
    /// Workers of one query; absent = the cores of this machine.
    pub workers: Option<NonZeroUsize>,
    /// Called before each query; absent = the catalog is taken as it stands.
    pub freshen: Option<Arc<dyn Freshen>>,
    /// What the project declares of its sources: the keys of datasets.
    pub sources: Vec<SourceConfig>,
    /// Path or URL of the request queue; absent = the tables of the queue are empty.
    pub queue: Option<String>,
    /// The day under which reads of partitions are counted; absent = they are not.
    pub access_day: Option<BusinessDate>,
}

/// Rows in a batch: a batch is held whole, and its texts may be long (decision 0011).
const BATCH_ROWS: usize = 8192;

/// SQL over one lake.
pub struct QueryEngine {
    lake: Lake,
    catalog: Arc<dyn Catalog>,
    options: QueryOptions,
    state: SessionState,
    footers: Arc<Footers>,
    columns: KnownColumns,
    queue: QueueTables,
    reads: ReadCounter,
}

impl fmt::Debug for QueryEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryEngine")
            .field("lake", &self.lake)
            .field("catalog", &self.catalog)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

fn session_config(options: &QueryOptions) -> SessionConfig {
    let cores = || std::thread::available_parallelism().ok();
    let workers = options.workers.or_else(cores).map_or(1, NonZeroUsize::get);
    let mut config = SessionConfig::new()
        .with_target_partitions(workers)
        .with_batch_size(BATCH_ROWS)
        .with_information_schema(true)
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(DEFAULT_CATALOG, DEFAULT_SCHEMA.as_str());
    let settings = config.options_mut();
    // In the order in which they are written: `n <> 0` may guard what comes after it.
    settings.execution.parquet.pushdown_filters = true;
    settings.execution.time_zone = Some("UTC".to_owned());
    // A literal 0.1 is exact, as a stored decimal is; texts keep one type from file to result.
    settings.sql_parser.parse_float_as_decimal = true;
    settings.sql_parser.map_string_types_to_utf8view = false;
    config
}

/// Whether one row over all of a table may be answered by counts and bounds.
fn aggregates_whole(plan: &LogicalPlan) -> bool {
    let found = plan
        .exists(|node| Ok(matches!(node, LogicalPlan::Aggregate(a) if a.group_expr.is_empty())));
    found.unwrap_or(false)
}

/// A planned query.
struct Planned {
    plan: Arc<dyn ExecutionPlan>,
    notes: Vec<ScanNote>,
    stats: QueryStats,
}

impl QueryEngine {
    /// An engine over a lake and the catalog that indexes it.
    pub fn new(lake: Lake, catalog: Arc<dyn Catalog>, options: QueryOptions) -> Result<Self> {
        let mut rules = Analyzer::new().rules;
        rules.insert(0, Arc::new(FloatLiterals));
        rules.insert(0, Arc::new(Comparisons));
        // Last: coercion casts to texts too.
        rules.push(Arc::new(NestedText::new()));
        rules.push(Arc::new(CheckedIntegers::new()));
        let mut state = SessionStateBuilder::new()
            .with_analyzer_rules(rules)
            .with_config(session_config(&options))
            .with_default_features()
            .with_optimizer_rule(Arc::new(AggregateByFile))
            .with_optimizer_rule(Arc::new(DayOfInstants::new()))
            .with_physical_optimizer_rule(Arc::new(TextEquality))
            .build();
        let length = ScalarUDF::new_from_impl(TextLength::new());
        for function in json_functions().into_iter().chain([length]) {
            state
                .register_udf(Arc::new(function))
                .map_err(|e| convert(&e))?;
        }
        Ok(Self {
            lake,
            catalog,
            queue: QueueTables::new(options.queue.clone()),
            reads: ReadCounter::new(options.access_day),
            options,
            state,
            footers: Arc::default(),
            columns: KnownColumns::default(),
        })
    }

    /// Plans the query and begins to run it; the result's rows are made as they are taken.
    pub async fn sql(&self, text: &str) -> Result<QueryResult> {
        let statement = read_statement(&self.state, text)?;
        let began = Instant::now();
        let published = self.freshen(&statement.tables).await?;
        let trace = Arc::new(ScanTrace::new(Arc::clone(&self.footers)));
        let maker = self.maker(&trace).with_published(published);
        let state = self.query_state(maker.make(&statement).await?)?;
        let plan = state
            .statement_to_plan(statement.statement)
            .await
            .map_err(|e| convert(&e))?;
        SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false)
            .verify_plan(&plan)
            .map_err(|e| convert(&e))?;
        self.run(began, &state, &trace, &plan).await
    }

    /// Plans what it takes to answer, and begins to run it.
    pub(crate) async fn run(
        &self,
        began: Instant,
        state: &SessionState,
        trace: &ScanTrace,
        plan: &LogicalPlan,
    ) -> Result<QueryResult> {
        let (planned, explained) = match plan {
            LogicalPlan::Explain(e) => (&*e.plan, true),
            LogicalPlan::Analyze(a) => (&*a.input, true),
            other => (other, false),
        };
        trace.count_all.store(explained, Ordering::Relaxed);
        let query = plan_query(state, trace, planned).await?;
        let runnable = match explained {
            true => plan_query(state, trace, plan).await?.plan,
            false => query.plan,
        };
        let meter = QueryMeter::planned(began, trace);
        if !matches!(plan, LogicalPlan::Explain(_))
            && let Some(reads) = self.reads.add(&query.notes)
            && let Err(e) = self.tell_reads(reads).await
        {
            meter.warn(format!("reads were not counted: {e}"));
        }
        let stream = execute_stream(runnable, state.task_ctx()).map_err(|e| convert(&e))?;
        let lake = self.lake.clone();
        let result = QueryResult::new(stream, query.stats, meter, lake);
        Ok(match explained {
            true => result.with_files_shown(),
            false => result,
        })
    }

    /// All rows of one object that readers see, the oldest first.
    pub async fn history(&self, object: &ObjectKey) -> Result<QueryResult> {
        let began = Instant::now();
        let of = NamedTable::Dataset(DatasetTable::new(object.dataset.clone()));
        let published = self.freshen(&BTreeSet::from([of])).await?;
        let trace = Arc::new(ScanTrace::new(Arc::clone(&self.footers)));
        let maker = self.maker(&trace).with_published(published);
        let (table, key) = maker.history(&object.dataset).await?;
        let plan = history_plan(table, &key, object)?;
        let result = self.run(began, &self.state, &trace, &plan).await?;
        match object.changes_only {
            true => result.with_changes_only(),
            false => Ok(result),
        }
    }

    /// The plan of the query, with how many files are considered and read.
    pub async fn explain(&self, text: &str) -> Result<QueryResult> {
        self.sql(&format!("EXPLAIN {text}")).await
    }

    /// What the hook tells of the datasets that are named.
    pub(crate) async fn freshen(&self, tables: &BTreeSet<NamedTable>) -> Result<PublishedRows> {
        let mut published = PublishedRows::new();
        let Some(hook) = &self.options.freshen else {
            return Ok(published);
        };
        for table in tables {
            match table {
                NamedTable::Dataset(table) => {
                    for dataset in std::iter::once(table.dataset.clone()).chain(table.latest_of()) {
                        let rows = hook.freshen(&dataset).await?;
                        published.insert(dataset, rows);
                    }
                }
                NamedTable::System(t) if t.is_of_queue() => {}
                NamedTable::System(_) | NamedTable::Information => hook.freshen_all().await?,
                NamedTable::Unknown(_) => {}
            }
        }
        Ok(published)
    }

    /// The engine's state with the tables of a statement.
    fn query_state(&self, tables: Arc<dyn CatalogProviderList>) -> Result<SessionState> {
        let mut state = self.state.clone();
        state.register_catalog_list(tables);
        self.set_time(&mut state)?;
        Ok(state)
    }

    /// Makes tables for a query.
    pub(crate) fn maker<'a>(&'a self, trace: &'a Arc<ScanTrace>) -> TableMaker<'a> {
        TableMaker {
            lake: &self.lake,
            catalog: &self.catalog,
            sources: &self.options.sources,
            queue: &self.queue,
            published: PublishedRows::new(),
            columns: &self.columns,
            trace,
        }
    }

    /// What `now()` and `current_date` say in this query.
    fn set_time(&self, state: &mut SessionState) -> Result<()> {
        let now = self.lake.clock().now();
        let zone = time_zone(&self.lake.spec().time_zone)?;
        let today = ScalarUDF::new_from_impl(Today::new(BusinessDate::of(now, &zone)));
        state
            .register_udf(Arc::new(today))
            .map_err(|e| convert(&e))?;
        let config = Arc::clone(state.config_options());
        let props = state.execution_props_mut();
        props.query_execution_start_time =
            timestamp_us_to_datetime(now.micros()).map(|at| at.and_utc());
        props.config_options = Some(config);
        Ok(())
    }

    /// Functions and configuration.
    pub(crate) fn state(&self) -> &SessionState {
        &self.state
    }

    /// The names of a table's columns, those on demand included; none where it is unknown. The
    /// newest rows of a dataset have its columns.
    pub(crate) async fn dataset_columns(&self, dataset: &DatasetRef) -> Result<Vec<String>> {
        let trace = Arc::default();
        let maker = self.maker(&trace);
        let known = maker.list_datasets().await?;
        let of = Some(dataset.clone()).filter(|d| known.contains(d));
        let of = of.or_else(|| latest_of(dataset).filter(|d| known.contains(d)));
        let Some(of) = of else {
            return Ok(Vec::new());
        };
        let table = maker.present(&of, true).await?;
        let schema = table.schema();
        Ok(schema.fields().iter().map(|f| f.name().clone()).collect())
    }

    /// Brings the whole catalog up to date, as a query over a system table does first.
    pub async fn freshen_all(&self) -> Result<()> {
        match &self.options.freshen {
            Some(hook) => hook.freshen_all().await,
            None => Ok(()),
        }
    }

    /// Tells the catalog which partitions were read and how often. It learns so by itself while queries go on;
    /// whoever ends asks for it once more. An error changes no answer.
    pub async fn count_reads(&self) -> Result<()> {
        match self.reads.take() {
            Some(reads) => self.tell_reads(reads).await,
            None => Ok(()),
        }
    }

    async fn tell_reads(&self, (day, ids): Reads) -> Result<()> {
        self.catalog.record_access(&ids, day).await
    }
}

/// Optimizes and plans; the notes are those of this planning alone.
async fn plan_query(
    state: &SessionState,
    trace: &ScanTrace,
    plan: &LogicalPlan,
) -> Result<Planned> {
    let optimized = state.optimize(plan).map_err(|e| convert(&e))?;
    let mut whole = aggregates_whole(&optimized);
    optimized
        .apply(|node| {
            if let LogicalPlan::Explain(e) = node {
                whole |= aggregates_whole(&e.plan);
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .map_err(|e| convert(&e))?;
    trace.want_bounds.store(whole, Ordering::Relaxed);
    let physical = state
        .query_planner()
        .create_physical_plan(&optimized, state)
        .await
        .map_err(|e| convert(&e))?;
    let notes = trace.take();
    let stats = planned_files(&physical, &notes);
    Ok(Planned {
        plan: physical,
        notes,
        stats,
    })
}
