//! The engine: a SQL text in, a stream of batches out.
//!
//! ```text
//! text -> statement (reads only) -> freshen + look up its tables -> optimize -> plan -> stream
//! ```
//!
//! Each query gets its own tables, made from what the catalog says at that moment; functions,
//! configuration and memory are the engine's.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use arrow::temporal_conversions::timestamp_us_to_datetime;
use async_trait::async_trait;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList,
    MemorySchemaProvider, SchemaProvider, TableProvider,
};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, ScalarUDF};
use datafusion::optimizer::Analyzer;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionConfig;
use lakebed::catalog::{Catalog, PartitionFilter, partition_id, visible_files};
use lakebed::log::{AsOf, DatasetState};
use lakebed::name::{DatasetRef, Layer};
use lakebed::spec::{PublishedSchema, SCHEMALESS_VERSION, SchemaSpec};
use lakebed::store::Lake;
use lakebed::time::{BusinessDate, time_zone};
use lakebed::{Error, Result};

use crate::by_file::AggregateByFile;
use crate::comparisons::Comparisons;
use crate::error::{convert, nearest, quoted};
use crate::json_functions::json_functions;
use crate::literals::FloatLiterals;
use crate::nested_text::NestedText;
use crate::result::{QueryMeter, QueryResult, QueryStats, planned_files};
use crate::scan::{LakeTable, ScanNote, ScanTrace, TableInput};
use crate::statement::{
    DEFAULT_CATALOG, DEFAULT_SCHEMA, NamedTable, ReadStatement, SYSTEM_SCHEMA, read_statement,
    sql_name,
};
use crate::system::SystemTable;
use crate::today::Today;

/// Brings the catalog up to date with the logs before a query is planned.
#[async_trait]
pub trait Freshen: Send + Sync + fmt::Debug {
    /// Brings what the catalog knows of one dataset up to date; an unknown dataset is no error.
    async fn freshen(&self, dataset: &DatasetRef) -> Result<()>;

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

/// What stands in the place of schema versions where there are none.
fn schemaless(dataset: &DatasetRef) -> BTreeMap<u32, SchemaSpec> {
    let spec = SchemaSpec::schemaless(dataset.clone());
    BTreeMap::from([(spec.version, spec)])
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
        let mut state = SessionStateBuilder::new()
            .with_analyzer_rules(rules)
            .with_config(session_config(&options))
            .with_default_features()
            .with_optimizer_rule(Arc::new(AggregateByFile))
            .build();
        for function in json_functions() {
            state
                .register_udf(Arc::new(function))
                .map_err(|e| convert(&e))?;
        }
        Ok(Self {
            lake,
            catalog,
            options,
            state,
        })
    }

    /// Plans the query and begins to run it; the result's rows are made as they are taken.
    pub async fn sql(&self, text: &str) -> Result<QueryResult> {
        let statement = read_statement(&self.state, text)?;
        let began = Instant::now();
        self.freshen(&statement.tables).await?;
        let trace = Arc::new(ScanTrace::default());
        let state = self.query_state(&statement, &trace).await?;
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
        let (planned, explained) = match &plan {
            LogicalPlan::Explain(e) => (&*e.plan, true),
            LogicalPlan::Analyze(a) => (&*a.input, true),
            other => (other, false),
        };
        trace.count_all.store(explained, Ordering::Relaxed);
        let query = plan_query(&state, &trace, planned).await?;
        let runnable = match explained {
            true => plan_query(&state, &trace, &plan).await?.plan,
            false => query.plan,
        };
        let meter = QueryMeter::planned(began, &trace);
        let warnings = match &plan {
            LogicalPlan::Explain(_) => Vec::new(),
            _ => self.record_access(&query.notes).await,
        };
        let stream = execute_stream(runnable, state.task_ctx()).map_err(|e| convert(&e))?;
        let lake = self.lake.clone();
        let result = QueryResult::new(stream, query.stats, meter, lake).with_warnings(warnings);
        Ok(match explained {
            true => result.with_files_shown(),
            false => result,
        })
    }

    /// The plan of the query, with how many files are considered and read.
    pub async fn explain(&self, text: &str) -> Result<QueryResult> {
        self.sql(&format!("EXPLAIN {text}")).await
    }

    async fn freshen(&self, tables: &BTreeSet<NamedTable>) -> Result<()> {
        let Some(hook) = &self.options.freshen else {
            return Ok(());
        };
        for table in tables {
            match table {
                NamedTable::Dataset(d)
                | NamedTable::DottedDataset(d)
                | NamedTable::Past(d, _, _) => hook.freshen(d).await?,
                NamedTable::System(_) | NamedTable::Information => hook.freshen_all().await?,
                NamedTable::Unknown(_) => {}
            }
        }
        Ok(())
    }

    /// The engine's state with the tables that the statement names.
    async fn query_state(
        &self,
        statement: &ReadStatement,
        trace: &Arc<ScanTrace>,
    ) -> Result<SessionState> {
        let mut tables = TableSet::new()?;
        let mut names: BTreeSet<NamedTable> = statement.tables.clone();
        if names.contains(&NamedTable::Information) {
            names.extend(SystemTable::ALL.map(NamedTable::System));
            let all = self.catalog.list_schemas(None).await?;
            names.extend(all.into_iter().map(|s| NamedTable::Dataset(s.dataset)));
            let lines = self.schemaless_datasets(None).await?;
            names.extend(lines.into_iter().map(NamedTable::Dataset));
        }
        for name in &names {
            match name {
                NamedTable::Dataset(d) => {
                    let table = self.dataset_table(d, statement.names_origin, trace).await?;
                    tables.add(DEFAULT_CATALOG, d.layer.as_str(), d.dataset.as_str(), table)?;
                }
                NamedTable::DottedDataset(d) => {
                    let table = self.dataset_table(d, statement.names_origin, trace).await?;
                    if let Some((schema, part)) = d.dataset.as_str().split_once('.') {
                        tables.add(d.layer.as_str(), schema, part, table)?;
                    }
                }
                NamedTable::Past(d, as_of, name) => {
                    let table = self.past_table(d, *as_of, statement.names_origin, trace);
                    tables.add(DEFAULT_CATALOG, d.layer.as_str(), name, table.await?)?;
                }
                NamedTable::System(t) => {
                    let table = Arc::new(t.load(&*self.catalog).await?);
                    tables.add(DEFAULT_CATALOG, SYSTEM_SCHEMA, t.as_str(), table)?;
                }
                NamedTable::Information => {}
                NamedTable::Unknown(name) => return Err(self.unknown_table(name).await),
            }
        }
        let mut state = SessionStateBuilder::new_from_existing(self.state.clone())
            .with_catalog_list(tables.list)
            .build();
        self.set_time(&mut state)?;
        Ok(state)
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

    async fn dataset_table(
        &self,
        dataset: &DatasetRef,
        with_origin: bool,
        trace: &Arc<ScanTrace>,
    ) -> Result<Arc<dyn TableProvider>> {
        let published = self.published_versions(dataset).await?;
        let versions: BTreeMap<u32, SchemaSpec> = match published.is_empty() {
            true => schemaless(dataset),
            false => published
                .into_iter()
                .map(|p| (p.schema.version, p.schema))
                .collect(),
        };
        Ok(Arc::new(LakeTable::new(TableInput {
            lake: self.lake.clone(),
            catalog: Arc::clone(&self.catalog),
            dataset: dataset.clone(),
            versions,
            past: None,
            with_origin,
            trace: Arc::clone(trace),
        })))
    }

    /// The dataset as it was: with the columns that were published by then.
    async fn past_table(
        &self,
        dataset: &DatasetRef,
        as_of: AsOf,
        with_origin: bool,
        trace: &Arc<ScanTrace>,
    ) -> Result<Arc<dyn TableProvider>> {
        let published = self.published_versions(dataset).await?;
        let state = DatasetState::load_as_of(&self.lake, dataset, as_of).await?;
        let used: BTreeSet<u32> = state
            .partitions()
            .keys()
            .map(|k| k.schema_version)
            .collect();
        let until = match as_of {
            AsOf::Instant(instant) => Some(instant),
            AsOf::Record(_) => state.last_at(),
        };
        let was_there = |p: &PublishedSchema| {
            used.contains(&p.schema.version) || until.is_some_and(|t| p.published_at <= t)
        };
        let mut versions: BTreeMap<u32, SchemaSpec> = BTreeMap::new();
        for (i, version) in published.iter().enumerate() {
            // Before everything there is the first version: a table needs columns.
            if i == 0 || was_there(version) {
                versions.insert(version.schema.version, version.schema.clone());
            }
        }
        if versions.is_empty() {
            versions = schemaless(dataset);
        }
        Ok(Arc::new(LakeTable::new(TableInput {
            lake: self.lake.clone(),
            catalog: Arc::clone(&self.catalog),
            dataset: dataset.clone(),
            versions,
            past: Some(Arc::new(visible_files(&state))),
            with_origin,
            trace: Arc::clone(trace),
        })))
    }

    /// The catalog that is asked.
    pub(crate) fn catalog(&self) -> &dyn Catalog {
        &*self.catalog
    }

    /// Functions and configuration.
    pub(crate) fn state(&self) -> &SessionState {
        &self.state
    }

    /// The names of a dataset's columns, those on demand included; none where it is unknown.
    pub(crate) async fn dataset_columns(&self, dataset: &DatasetRef) -> Result<Vec<String>> {
        let Ok(table) = self.dataset_table(dataset, true, &Arc::default()).await else {
            return Ok(Vec::new());
        };
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

    /// Datasets of JSON lines: all, or the one if it is such.
    pub(crate) async fn schemaless_datasets(
        &self,
        one: Option<&DatasetRef>,
    ) -> Result<BTreeSet<DatasetRef>> {
        let filter = PartitionFilter {
            dataset: one.cloned(),
            schema_versions: vec![SCHEMALESS_VERSION],
            all_states: true,
            ..PartitionFilter::default()
        };
        let rows = self.catalog.list_partitions(&filter).await?;
        Ok(rows.into_iter().map(|r| r.dataset).collect())
    }

    /// Every published version of a dataset, in order; none where it holds JSON lines, else none is an
    /// unknown table.
    async fn published_versions(&self, dataset: &DatasetRef) -> Result<Vec<PublishedSchema>> {
        let rows = self.catalog.list_schemas(Some(dataset)).await?;
        if rows.is_empty() && self.schemaless_datasets(Some(dataset)).await?.is_empty() {
            return Err(self.unknown_table(&sql_name(dataset)).await);
        }
        rows.iter()
            .map(|row| {
                serde_json::from_str(&row.schema).map_err(|e| {
                    Error::corrupt(format!("read a schema version from the catalog: {e}"))
                        .with("dataset", dataset)
                        .with("schema_version", row.version)
                        .hint("`lakebed catalog rebuild` makes the catalog anew from the lake")
                })
            })
            .collect()
    }

    async fn unknown_table(&self, name: &str) -> Error {
        let error = Error::not_found(format!("there is no table `{name}`"));
        let Ok(mut known) = self.list_datasets().await else {
            return error;
        };
        let datasets = known.clone();
        known.extend(SystemTable::ALL.map(|t| format!("{SYSTEM_SCHEMA}.{}", t.as_str())));
        let tail = |n: &str| n.split_once('.').map_or(n, |(_, t)| t).to_owned();
        let mut near = nearest(name, known.iter().map(String::as_str));
        if near.is_empty() {
            // The layer may be the wrong part of the name.
            let wanted = tail(name);
            near = known
                .iter()
                .map(String::as_str)
                .filter(|k| tail(k) == wanted || k.ends_with(&format!(".{name}")))
                .take(3)
                .collect();
        }
        let error = match near.is_empty() {
            true => error,
            false => error.hint(format!("did you mean {}?", quoted(&near))),
        };
        match datasets.as_slice() {
            [] => error.hint(
                "no dataset has a published schema or JSON lines yet: `lakebed schema publish` makes the first",
            ),
            few if few.len() <= 20 => error.hint(format!("tables are {}", quoted(few))),
            _ => error.hint("`SHOW TABLES` lists them all"),
        }
    }

    /// Counts the reads of this query; a failure is a warning, since it changes no answer.
    async fn record_access(&self, notes: &[ScanNote]) -> Vec<String> {
        let Some(day) = self.options.access_day else {
            return Vec::new();
        };
        let ids: BTreeSet<String> = notes
            .iter()
            .flat_map(|n| n.partitions.iter().map(|key| partition_id(&n.dataset, key)))
            .collect();
        if ids.is_empty() {
            return Vec::new();
        }
        let ids: Vec<String> = ids.into_iter().collect();
        match self.catalog.record_access(&ids, day).await {
            Ok(()) => Vec::new(),
            Err(e) => vec![format!("the reads of this query were not counted: {e}")],
        }
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

/// The tables of one query, by catalog and schema.
struct TableSet {
    list: Arc<MemoryCatalogProviderList>,
}

impl TableSet {
    fn new() -> Result<Self> {
        let set = Self {
            list: Arc::new(MemoryCatalogProviderList::new()),
        };
        for layer in Layer::ALL {
            set.schema(DEFAULT_CATALOG, layer.as_str())?;
        }
        Ok(set)
    }

    fn schema(&self, catalog: &str, schema: &str) -> Result<Arc<dyn SchemaProvider>> {
        let catalog = match self.list.catalog(catalog) {
            Some(known) => known,
            None => {
                let new: Arc<dyn CatalogProvider> = Arc::new(MemoryCatalogProvider::new());
                self.list
                    .register_catalog(catalog.to_owned(), Arc::clone(&new));
                new
            }
        };
        if let Some(known) = catalog.schema(schema) {
            return Ok(known);
        }
        let new: Arc<dyn SchemaProvider> = Arc::new(MemorySchemaProvider::new());
        catalog
            .register_schema(schema, Arc::clone(&new))
            .map_err(|e| convert(&e))?;
        Ok(new)
    }

    fn add(
        &mut self,
        catalog: &str,
        schema: &str,
        name: &str,
        table: Arc<dyn TableProvider>,
    ) -> Result<()> {
        self.schema(catalog, schema)?
            .register_table(name.to_owned(), table)
            .map_err(|e| convert(&e))?;
        Ok(())
    }
}
