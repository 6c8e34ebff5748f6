//! `clean.weibo__latest`: of each key the newest row, from the last full load on.
//!
//! ```text
//! scan: key, newest_by, rank and row of files     which row of each key is newest
//!   -> aggregate by key: the last place           (memory grows with the number of keys)
//!        -> join by place and key                 the rows themselves, which stream past
//!             scan: all columns
//! ```
//!
//! A row's place is one number: the rank of its file times 2^32 and its row there. Files rank by
//! business date, then by the record that added them, then by name, so a later date wins over an
//! earlier one that was filled in afterwards. Where a column says which row is newer (`newest_by`, or
//! `_fetched_at`), it decides, and places break its ties.
//!
//! Rows with a NULL in their key name no object and are left out. Without a key, `dedup = "rows"`
//! takes rows that are equal in every field for one.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::catalog::default_table_source::provider_as_source;
use datafusion::catalog::view::ViewTable;
use datafusion::common::{Column, JoinType};
use datafusion::error::DataFusionError;
use datafusion::functions_aggregate::expr_fn::max;
use datafusion::functions_aggregate::first_last::last_value;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use lakebed::catalog::{FileRow, visible_files};
use lakebed::config::DatasetConfig;
use lakebed::log::DatasetState;
use lakebed::name::DatasetRef;
use lakebed::registry::ROW_COLUMN;
use lakebed::spec::LoadKind;
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};

use crate::error::{convert, nearest, quoted};
use crate::scan::{FieldColumn, LakeTable, RANK_COLUMN};

/// What a view's name ends with.
const SUFFIX: &str = "__latest";
/// The column of our own crawls that says when a row was fetched.
const FETCHED_AT: &str = "_fetched_at";
/// The name of a row's place within the plan.
const PLACE: &str = "place of the row";
/// Places of one file.
const ROWS_PER_RANK: i64 = 1 << 32;

/// The dataset whose newest rows a table of this name would show.
pub(crate) fn latest_of(table: &DatasetRef) -> Option<DatasetRef> {
    let name = table.dataset.as_str().strip_suffix(SUFFIX)?;
    Some(DatasetRef {
        layer: table.layer,
        dataset: name.parse().ok()?,
    })
}

/// The view's name.
pub(crate) fn latest_name(dataset: &DatasetRef) -> String {
    format!("{}{SUFFIX}", dataset.dataset)
}

/// The visible files from the last full load on, the oldest first.
pub(crate) fn from_last_full_load(state: &DatasetState) -> Vec<FileRow> {
    let mut files = by_age(visible_files(state));
    if let Some(from) = last_full_load(state) {
        files.retain(|file| (file.key.dt, file.log_position) >= from);
    }
    files
}

/// The files as they rank, the oldest first.
pub(crate) fn by_age(mut files: Vec<FileRow>) -> Vec<FileRow> {
    files.sort_by_cached_key(|file| (file.key.dt, file.log_position, file.name.clone()));
    files
}

/// The date and record of the last full load that readers see; one may hold no rows at all.
fn last_full_load(state: &DatasetState) -> Option<(BusinessDate, u64)> {
    let visible = state.partitions().iter().filter(|(_, p)| p.is_visible());
    visible
        .flat_map(|(key, p)| p.inputs.iter().map(|input| (key.dt, input)))
        .filter(|(_, input)| input.spec.load == LoadKind::Full)
        .map(|(dt, input)| (dt, input.number))
        .max()
}

/// The view over a table of ranked files.
pub(crate) fn latest_view(
    table: Arc<LakeTable>,
    declared: &DatasetConfig,
    with_origin: bool,
) -> Result<Arc<dyn TableProvider>> {
    let rows = Rows::new(table, declared)?;
    let plan = rows.plan(with_origin).map_err(|e| convert(&e))?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// Why a dataset has neither such a view nor a history of one object.
pub(crate) fn no_key(dataset: &DatasetRef) -> Error {
    let source = dataset.source();
    Error::precondition(format!("`{dataset}` declares no key")).hint(format!(
        "add `key = [\"...\"]`, the columns that name one object, under [dataset.\"{}\"] in sources/{source}/source.toml",
        dataset.dataset
    ))
}

/// Why JSON lines have neither.
pub(crate) fn no_columns(dataset: &DatasetRef) -> Error {
    Error::precondition(format!(
        "`{dataset}` holds JSON lines, which have no columns to name an object"
    ))
    .hint("compare members of `json` in SQL: docs/sql.md lists the functions")
}

/// A column by its very name.
pub(crate) fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

/// Where a row lies among all rows of a table with ranks.
pub(crate) fn place() -> Expr {
    column(RANK_COLUMN) * lit(ROWS_PER_RANK) + column(ROW_COLUMN)
}

/// Whether equal values of the type are joined as they are grouped: a float's zeros and NaN are not.
fn joins(column: &FieldColumn) -> bool {
    let data_type = column.field.data_type();
    !data_type.is_nested() && !data_type.is_floating()
}

/// What the view is made of.
struct Rows {
    table: Arc<LakeTable>,
    /// Rows equal in these are one.
    key: Vec<FieldColumn>,
    /// Whether a NULL in the key takes a row out.
    null_is_no_key: bool,
    /// What says which row is newer, before its place does.
    newest_by: Option<FieldColumn>,
}

impl Rows {
    fn new(table: Arc<LakeTable>, declared: &DatasetConfig) -> Result<Self> {
        let fields = table.fields();
        let newest_by = match &declared.newest_by {
            Some(name) => Some(plain_column(&table, name, "newest_by")?),
            None => fields
                .iter()
                .find(|c| c.field.name() == FETCHED_AT)
                .cloned(),
        };
        let key = match declared.key.as_slice() {
            [] => fields.iter().filter(|c| is_data(c)).cloned().collect(),
            declared => key_columns(&table, declared)?,
        };
        Ok(Self {
            key,
            null_is_no_key: !declared.key.is_empty(),
            newest_by,
            table,
        })
    }

    fn scan(&self) -> Result<LogicalPlanBuilder, DataFusionError> {
        let source = provider_as_source(Arc::clone(&self.table) as Arc<dyn TableProvider>);
        LogicalPlanBuilder::scan("rows", source, None)
    }

    /// The last place of each key.
    fn newest(&self) -> Result<LogicalPlan, DataFusionError> {
        let keys = || self.key.iter().map(|c| column(c.field.name()));
        let mut rows = self.scan()?;
        if self.null_is_no_key
            && let Some(named) = keys().map(Expr::is_not_null).reduce(Expr::and)
        {
            rows = rows.filter(named)?;
        }
        let last = match &self.newest_by {
            Some(by) => {
                let newer = column(by.field.name()).sort(true, true);
                last_value(place(), vec![newer, place().sort(true, false)])
            }
            None => max(place()),
        };
        let joined = self.joined().map(|c| column(c.field.name()));
        rows.aggregate(keys(), [last.alias(PLACE)])?
            .project(joined.chain([column(PLACE)]))?
            .alias("newest")?
            .build()
    }

    /// Key columns that are compared again where rows are joined: a filter on one of them is then a
    /// filter of both scans.
    fn joined(&self) -> impl Iterator<Item = &FieldColumn> {
        let key = self.key.iter().filter(|c| joins(c));
        key.filter(|_| self.null_is_no_key)
    }

    fn plan(&self, with_origin: bool) -> Result<LogicalPlan, DataFusionError> {
        let name = latest_name(self.table.dataset());
        let shown = self.table.shown_columns(with_origin);
        let placed = shown
            .iter()
            .map(|n| column(n))
            .chain([place().alias(PLACE)]);
        let rows = self
            .scan()?
            .project(placed)?
            .alias(name.as_str())?
            .build()?;
        let on = || {
            let keys = self.joined().map(|c| c.field.name().as_str());
            keys.chain([PLACE]).map(Column::new_unqualified)
        };
        let of = |table: &str| -> Vec<Column> {
            on().map(|c| Column::new(Some(table.to_owned()), c.name))
                .collect()
        };
        let all = shown
            .iter()
            .map(|n| Expr::Column(Column::new(Some(name.clone()), *n)));
        LogicalPlanBuilder::new(self.newest()?)
            .join(rows, JoinType::Inner, (of("newest"), of(&name)), None)?
            .project(all)?
            .build()
    }
}

/// The columns of a declared key.
pub(crate) fn key_columns(table: &LakeTable, key: &[String]) -> Result<Vec<FieldColumn>> {
    key.iter().map(|n| plain_column(table, n, "key")).collect()
}

fn plain_column(table: &LakeTable, name: &str, of: &str) -> Result<FieldColumn> {
    let found = table.fields().iter().find(|c| c.field.name() == name);
    let found = found.ok_or_else(|| unknown(table, name, of))?;
    match found.field.data_type().is_nested() {
        true => Err(not_plain(table, name, of)),
        false => Ok(found.clone()),
    }
}

/// Whether a column is of the record, and not written beside it.
fn is_data(column: &FieldColumn) -> bool {
    let name = column.field.name();
    !name.starts_with('_') || name == lakebed::spec::EXTRA_COLUMN
}

fn declared_where(error: Error, table: &LakeTable, name: &str) -> Error {
    let source = table.dataset().source();
    error
        .with("column", name)
        .with("file", format!("sources/{source}/source.toml"))
}

fn unknown(table: &LakeTable, name: &str, of: &str) -> Error {
    let known: BTreeSet<&str> = table
        .fields()
        .iter()
        .map(|c| c.field.name().as_str())
        .collect();
    let near = nearest(name, known.iter().copied());
    let error = Error::invalid(format!(
        "`{of}` of `{}` names `{name}`, which is no column of it",
        table.dataset()
    ));
    declared_where(error, table, name).hint(match near.is_empty() {
        true => format!("`DESCRIBE {}` shows the columns", table.sql_name()),
        false => format!("did you mean {}?", quoted(&near)),
    })
}

fn not_plain(table: &LakeTable, name: &str, of: &str) -> Error {
    let error = Error::invalid(format!(
        "`{of}` of `{}` names `{name}`, which is nested",
        table.dataset()
    ));
    declared_where(error, table, name).hint("name columns of plain values")
}
