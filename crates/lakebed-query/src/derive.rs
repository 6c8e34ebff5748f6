//! Derived rows: a query over declared parents of declared dates, whose rows come in one order alone.
//!
//! ```text
//! text -> statement -> its tables are the parents, each as it was after a record and of its dates alone
//!      -> parameters ($date, $previous, $month_begin) -> sorted by the declared columns, then by all -> stream
//! ```
//! DRV-1: a query sees of each parent the dates that are declared, as they were after one record of its log, and nothing
//! else: no other table, no clock, no chance. DRV-2: its rows come in one order, from one worker: equal parents give equal
//! bytes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::catalog::TableProvider;
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::catalog::view::ViewTable;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::execution::context::SQLOptions;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Volatility, lit};
use lakebed::log::AsOf;
use lakebed::name::DatasetRef;
use lakebed::spec::{FieldSpec, FieldType};
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};

use crate::engine::QueryEngine;
use crate::error::{convert, quoted};
use crate::latest::column;
use crate::result::QueryResult;
use crate::scan::ScanTrace;
use crate::statement::{NamedTable, ReadStatement, read_statement, sql_name};

/// A parent of derived rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DerivedParent {
    /// The first date that is seen.
    pub from: BusinessDate,
    /// The last one.
    pub to: BusinessDate,
    /// The record after which it is read.
    pub position: u64,
}

/// A query with all that it may see.
#[derive(Debug, Clone)]
pub struct DeriveQuery {
    /// Its text.
    pub sql: String,
    /// The business date.
    pub date: BusinessDate,
    /// What it may read.
    pub parents: BTreeMap<DatasetRef, DerivedParent>,
    /// Columns that order its rows.
    pub order: Vec<String>,
}

/// What a query may ask for.
const PARAMETERS: [&str; 3] = ["$date", "$previous", "$month_begin"];
/// Columns that a derived dataset gets from its place.
const FROM_PATH: [&str; 3] = ["dt", "schema_version", "source"];

impl DeriveQuery {
    /// The values of `$date`, `$previous` and `$month_begin`.
    fn parameters(&self) -> ParamValues {
        let day = |date: BusinessDate| ScalarValue::Date32(Some(date.days()));
        let month_begin = self.date.plus_days(1 - i64::from(self.date.date().day()));
        let values = HashMap::from([
            ("date".to_owned(), day(self.date)),
            ("previous".to_owned(), day(self.date.plus_days(-1))),
            ("month_begin".to_owned(), day(month_begin)),
        ]);
        ParamValues::from(values)
    }

    /// What the statement reads must be what is declared, and the other way round.
    fn check_tables(&self, statement: &ReadStatement) -> Result<()> {
        let declared = || {
            let names: BTreeSet<String> = self.parents.keys().map(sql_name).collect();
            format!("its declared parents are {}", quoted(&names))
        };
        let mut read = BTreeSet::new();
        for table in &statement.tables {
            match table {
                NamedTable::Dataset(table) if table.as_of.is_some() => {
                    return Err(Error::invalid("a derived dataset is made of what its parents hold now, not `as_of` then")
                        .hint("leave `as_of` out: the parents are read as they are when the call begins, and the log keeps which record that was"));
                }
                NamedTable::Dataset(table) if self.parents.contains_key(&table.dataset) => {
                    read.insert(&table.dataset);
                }
                NamedTable::Dataset(table) => {
                    let name = sql_name(&table.dataset);
                    let error = Error::invalid(format!(
                        "the query reads `{name}`, which is no declared parent"
                    ));
                    return Err(match table.latest_of() {
                        Some(of) if self.parents.contains_key(&of) => error.hint(format!(
                            "`{name}` looks at all dates; take the newest rows of `{}` by a window function over its dates",
                            sql_name(&of)
                        )),
                        _ => error
                            .hint(declared())
                            .hint(format!("parents = [..., \"{}\"] declares it", table.dataset)),
                    });
                }
                NamedTable::System(_) | NamedTable::Information => {
                    return Err(Error::invalid(
                        "a derived dataset is made of datasets, not of system tables",
                    )
                    .hint(declared()));
                }
                NamedTable::Unknown(name) => {
                    return Err(
                        Error::invalid(format!("there is no table `{name}`")).hint(declared())
                    );
                }
            }
        }
        match self.parents.keys().find(|parent| !read.contains(parent)) {
            None => Ok(()),
            Some(idle) => Err(Error::invalid(format!(
                "`{idle}` is a declared parent, but the query does not read it"
            ))
            .hint(
                "take it out of `parents`: what is named there is waited for and kept as lineage",
            )),
        }
    }
}

impl QueryEngine {
    /// The rows of a derived dataset, in their order.
    ///
    /// # Errors
    /// `InvalidInput` for a query that reads something else than its parents, or asks clock or chance.
    pub async fn derive(&self, query: &DeriveQuery) -> Result<QueryResult> {
        let began = Instant::now();
        let trace = Arc::default();
        let (state, plan) = self.derived_plan(query, &trace).await?;
        self.run(began, &state, &trace, &plan).await
    }

    /// The fields of a derived dataset as the types of its query say, ids from 1.
    ///
    /// # Errors
    /// As [`Self::derive`], and `InvalidInput` for a column whose type no field has.
    pub async fn derived_fields(&self, query: &DeriveQuery) -> Result<Vec<FieldSpec>> {
        let trace = Arc::default();
        let (_, plan) = self.derived_plan(query, &trace).await?;
        let schema: Schema = plan.schema().as_arrow().clone();
        let mut next_id = 1;
        schema
            .fields()
            .iter()
            .map(|field| field_of(field, &mut next_id))
            .collect()
    }

    async fn derived_plan(
        &self,
        query: &DeriveQuery,
        trace: &Arc<ScanTrace>,
    ) -> Result<(SessionState, LogicalPlan)> {
        let mut alone = self.state().clone();
        // One worker: sums of floats come in one order.
        alone.config_mut().options_mut().execution.target_partitions = 1;
        let statement = read_statement(&alone, &query.sql)?;
        if !statement.gives_rows() {
            return Err(Error::invalid(
                "the text of a derived dataset is a query that gives rows: SELECT, WITH or VALUES",
            )
            .hint("`lakebed sql` answers EXPLAIN, SHOW and DESCRIBE"));
        }
        query.check_tables(&statement)?;
        let published = self.freshen(&statement.tables).await?;
        let maker = self.maker(trace).with_published(published);
        let mut tables = BTreeMap::new();
        for (dataset, parent) in &query.parents {
            let as_of = AsOf::Record(parent.position);
            let table = maker.as_of(dataset, as_of, statement.names_origin).await?;
            tables.insert(dataset.clone(), of_dates(table, parent)?);
        }
        alone.register_catalog_list(maker.make_of(&statement, &tables)?);
        let plan = alone
            .statement_to_plan(statement.statement)
            .await
            .map_err(|e| convert(&e))?;
        SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false)
            .verify_plan(&plan)
            .map_err(|e| convert(&e))?;
        check_pure(&plan)?;
        let plan = plan
            .with_param_values(query.parameters())
            .map_err(|e| convert(&e))?;
        Ok((alone, sorted(plan, &query.order)?))
    }
}

/// The rows of these dates.
fn of_dates(
    table: Arc<dyn TableProvider>,
    parent: &DerivedParent,
) -> Result<Arc<dyn TableProvider>> {
    let day = |date: BusinessDate| lit(ScalarValue::Date32(Some(date.days())));
    let plan = LogicalPlanBuilder::scan("parent", provider_as_source(table), None)
        .and_then(|scan| scan.filter(column("dt").between(day(parent.from), day(parent.to))))
        .and_then(LogicalPlanBuilder::build)
        .map_err(|e| convert(&e))?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// Refuses what would give other rows at another time.
fn check_pure(plan: &LogicalPlan) -> Result<()> {
    let mut impure = None;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                match expr {
                    Expr::ScalarFunction(ScalarFunction { func, .. })
                        if func.signature().volatility != Volatility::Immutable
                            && asks_clock(func.name()) =>
                    {
                        impure = Some(format!("{}()", func.name()));
                    }
                    Expr::Placeholder(placeholder)
                        if !PARAMETERS.contains(&placeholder.id.as_str()) =>
                    {
                        impure = Some(placeholder.id.clone());
                    }
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })
    .map_err(|e| convert(&e))?;
    match impure {
        None => Ok(()),
        Some(name) if name.starts_with('$') => {
            Err(Error::invalid(format!("there is no parameter `{name}`"))
                .hint("parameters are $date, $previous and $month_begin"))
        }
        Some(name) => Err(Error::invalid(format!(
            "the query asks `{name}`: a derived dataset follows from its parents alone"
        ))
        .hint("`$date` is the business date of the call")),
    }
}

/// Functions that ask the clock or chance; others that are not immutable only depend on the session's settings.
fn asks_clock(name: &str) -> bool {
    matches!(
        name,
        "now"
            | "current_timestamp"
            | "current_date"
            | "today"
            | "current_time"
            | "random"
            | "uuid"
            | "rand"
    )
}

/// The rows by the declared columns, then by all of them.
fn sorted(plan: LogicalPlan, order: &[String]) -> Result<LogicalPlan> {
    let names: Vec<String> = plan
        .schema()
        .fields()
        .iter()
        .map(|f| f.name().clone())
        .collect();
    for (n, name) in names.iter().enumerate() {
        if names[..n].contains(name) {
            return Err(
                Error::invalid(format!("two columns of the result are called `{name}`"))
                    .hint("name them with AS"),
            );
        }
        if FROM_PATH.contains(&name.as_str()) {
            return Err(Error::invalid(format!(
                "the result has a column `{name}`, which every dataset has from its place"
            ))
            .hint("leave it out: `dt` of the rows is the business date of the call"));
        }
    }
    if let Some(unknown) = order.iter().find(|name| !names.contains(name)) {
        let error = Error::invalid(format!(
            "`order` names `{unknown}`, which the result does not have"
        ));
        return Err(
            match lakebed::config::nearest(unknown, names.iter().map(String::as_str)) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint(format!("its columns are {}", names.join(", "))),
            },
        );
    }
    let mut by: Vec<&String> = order.iter().collect();
    by.extend(names.iter().filter(|name| !order.contains(name)));
    let by: Vec<_> = by
        .into_iter()
        .map(|name| column(name).sort(true, false))
        .collect();
    LogicalPlanBuilder::from(plan)
        .sort(by)
        .and_then(LogicalPlanBuilder::build)
        .map_err(|e| convert(&e))
}

/// A column as a field.
fn field_of(column: &Field, next_id: &mut u32) -> Result<FieldSpec> {
    let id = *next_id;
    *next_id += 1;
    let field_type = type_of(column.name(), column.data_type())?;
    let mut field = FieldSpec::new(id, column.name(), field_type);
    if let DataType::Struct(members) = innermost(column.data_type()) {
        field.fields = members
            .iter()
            .map(|member| field_of(member, next_id))
            .collect::<Result<Vec<_>>>()?;
    }
    Ok(field)
}

fn innermost(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::List(element) | DataType::LargeList(element) => innermost(element.data_type()),
        other => other,
    }
}

fn type_of(name: &str, data_type: &DataType) -> Result<FieldType> {
    Ok(match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => FieldType::String,
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => FieldType::Int,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => FieldType::Int,
        DataType::Float16 | DataType::Float32 | DataType::Float64 => FieldType::Float,
        DataType::Boolean => FieldType::Bool,
        DataType::Date32 => FieldType::Date,
        DataType::Timestamp(
            TimeUnit::Second | TimeUnit::Millisecond | TimeUnit::Microsecond | TimeUnit::Nanosecond,
            _,
        ) => FieldType::Timestamp,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => FieldType::Bytes,
        DataType::Decimal128(precision, scale) if *scale >= 0 => FieldType::Decimal {
            precision: *precision,
            scale: u8::try_from(*scale).unwrap_or(0),
        },
        DataType::List(element) | DataType::LargeList(element) => {
            FieldType::List(Box::new(type_of(name, element.data_type())?))
        }
        DataType::Dictionary(_, value) => type_of(name, value)?,
        DataType::Struct(_) => FieldType::Struct,
        other => {
            return Err(Error::invalid(format!(
                "the column `{name}` has the type {other}, which no field has"
            ))
            .hint("cast it: CAST(... AS BIGINT), DECIMAL(12,2), VARCHAR, DATE, TIMESTAMP"));
        }
    })
}
