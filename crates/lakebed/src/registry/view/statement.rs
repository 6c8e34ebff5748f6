//! The whole statement: one SELECT a version, with the columns of the table in their order.

use std::collections::{BTreeMap, BTreeSet};

use arrow_schema::{Field, Fields};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::name::DatasetRef;
use crate::registry::view::cast::{rest, retyped};
use crate::registry::view::dialect::{Dialect, Engine, Scan, expression};
use crate::registry::view::location::{check_location, quote_path};
use crate::registry::view::shape::{find_by_id, find_by_name, shape_of};
use crate::registry::view::trino::{registration, table_columns};
use crate::registry::{
    ColumnSource, DT_COLUMN, MergedColumn, VERSION_COLUMN, field_id, merge_columns,
};
use crate::spec::{SOURCE_COLUMN, SchemaSpec, arrow_schema};

/// What a view is written from.
#[derive(Debug)]
pub struct ViewRequest<'a> {
    /// The engine.
    pub engine: Engine,
    /// The dataset.
    pub dataset: &'a DatasetRef,
    /// Every published version.
    pub versions: &'a BTreeMap<u32, SchemaSpec>,
    /// The versions of which readers see rows.
    pub filled: &'a BTreeSet<u32>,
    /// The lake as the engine sees it: a folder or a URL.
    pub location: &'a str,
    /// Name of the view; `None` = the query alone.
    pub name: Option<&'a str>,
    /// The registered table, for Trino.
    pub table: Option<&'a str>,
}

/// A column of a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ViewColumn {
    /// Its name.
    pub name: String,
    /// Its field id; absent for `dt` and `schema_version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// Its type as the engine writes it.
    #[serde(rename = "type")]
    pub engine_type: String,
}

/// A written view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ViewStatement {
    /// The versions that it reads.
    pub versions: Vec<u32>,
    /// Published versions that it leaves out, since they have no rows yet.
    pub left_out: Vec<u32>,
    /// The columns in order.
    pub columns: Vec<ViewColumn>,
    /// What to know beside it, line by line.
    pub comment: Vec<String>,
    /// The statement, without a semicolon.
    pub statement: String,
}

impl ViewStatement {
    /// The comment and the statement as one text.
    #[must_use]
    pub fn text(&self) -> String {
        let comment: String = self.comment.iter().map(|l| format!("-- {l}\n")).collect();
        format!("{comment}{};\n", self.statement)
    }
}

/// Writes the view of a dataset.
pub fn write_view(request: &ViewRequest<'_>) -> Result<ViewStatement> {
    let dialect = request.engine.dialect();
    let files: BTreeMap<u32, Fields> = request
        .versions
        .iter()
        .map(|(version, spec)| (*version, arrow_schema(&spec.fields).fields))
        .collect();
    let merged = merge_columns(request.versions);
    let mut names = vec![DT_COLUMN, VERSION_COLUMN];
    let columns = files.values().flat_map(|f| f.iter());
    names.extend(columns.map(|f| f.name().as_str()));
    check_location(request.location, request.engine, &names)?;
    let (versions, left_out) = chosen(request, dialect)?;
    let table = match request.engine {
        Engine::Trino => Some(table_columns(&files.values().rev().collect::<Vec<_>>())?),
        Engine::DuckDb | Engine::Spark | Engine::ClickHouse => None,
    };
    let folder = folder_of(request);
    let mut selects = Vec::new();
    for version in &versions {
        let Some(columns) = files.get(version) else {
            continue;
        };
        let scan = Scan {
            folder: &folder,
            version: *version,
            columns,
            table: request.table,
        };
        selects.push(select(dialect, &scan, table.as_ref(), &merged)?);
    }
    let query = selects.join("\nUNION ALL\n");
    let statement = match request.name {
        None => query,
        Some(name) => {
            let name = quote_path(dialect, name)?;
            format!("CREATE OR REPLACE VIEW {name} AS\n{query}")
        }
    };
    let mut comment = vec![summary(request, &versions, &left_out)];
    if let (Some(columns), Some(name)) = (&table, request.table) {
        comment.extend(registration(name, &folder, columns)?);
    }
    Ok(ViewStatement {
        columns: view_columns(dialect, &merged),
        versions,
        left_out,
        comment,
        statement,
    })
}

pub(super) fn folder_of(request: &ViewRequest<'_>) -> String {
    let location = request.location.trim_end_matches('/');
    format!("{location}/{}", request.dataset)
}

/// The versions that are read, and those that are left out.
fn chosen(request: &ViewRequest<'_>, dialect: &dyn Dialect) -> Result<(Vec<u32>, Vec<u32>)> {
    let (read, left_out): (Vec<u32>, Vec<u32>) = request
        .versions
        .keys()
        .partition(|v| !dialect.needs_files() || request.filled.contains(v));
    if !read.is_empty() {
        return Ok((read, left_out));
    }
    let (dataset, title) = (request.dataset, dialect.title());
    if request.versions.is_empty() {
        return Err(
            Error::not_found(format!("no version of `{dataset}` is published")).hint(format!(
                "`lakebed schema publish {dataset} 1` publishes one"
            )),
        );
    }
    Err(Error::precondition(format!(
        "`{dataset}` has no rows yet, and {title} refuses a folder without files"
    ))
    .hint("`lakebed ingest` stores the first ones; print the view after it"))
}

fn summary(request: &ViewRequest<'_>, versions: &[u32], left_out: &[u32]) -> String {
    let (dataset, title) = (request.dataset, request.engine.dialect().title());
    let list = |numbers: &[u32]| {
        let all: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        all.join(", ")
    };
    let read = format!("{dataset} for {title}: schema versions {}.", list(versions));
    if !request.engine.dialect().needs_files() {
        return format!("{read} Print it again when another one is published.");
    }
    let without = match left_out {
        [] => String::new(),
        left_out => format!(" No rows yet: {}.", list(left_out)),
    };
    format!("{read}{without} Print it again when another one gets its first rows.")
}

fn view_columns(dialect: &dyn Dialect, merged: &[MergedColumn]) -> Vec<ViewColumn> {
    let column = |field: &Field| ViewColumn {
        name: field.name().clone(),
        id: field_id(field),
        engine_type: dialect.type_text(field.data_type()),
    };
    let [dt, version] = dialect.partition_types();
    let path_column = |name: &str, engine_type| ViewColumn {
        name: name.to_owned(),
        id: None,
        engine_type,
    };
    let mut all = vec![
        column(&source_column()),
        path_column(DT_COLUMN, dt),
        path_column(VERSION_COLUMN, version),
    ];
    all.extend(merged.iter().map(|c| column(&c.field)));
    all
}

/// Our column `source` as every version has it.
fn source_column() -> Field {
    let schema = arrow_schema(&[]);
    schema.field(0).clone()
}

/// The SELECT of one version. `table` holds the columns of the registered table, where there is one.
fn select(
    dialect: &dyn Dialect,
    scan: &Scan<'_>,
    table: Option<&Fields>,
    merged: &[MergedColumn],
) -> Result<String> {
    let [dt, version] = dialect.partition_columns(scan.version);
    let mut items = vec![
        named(dialect, dialect.column(SOURCE_COLUMN), SOURCE_COLUMN),
        named(dialect, dt, DT_COLUMN),
        named(dialect, version, VERSION_COLUMN),
    ];
    for column in merged {
        let read = |wanted: &Field| read_field(dialect, scan, table, wanted);
        let value = match &column.source {
            ColumnSource::Own => read(&column.field),
            ColumnSource::Rest(cast) => {
                read(&column.field).map(|value| rest(dialect, &value, cast))
            }
            ColumnSource::Retyped(old) => read(&column.field).or_else(|| {
                old.iter().find_map(|old| {
                    let value = read(&old.field)?;
                    Some(retyped(dialect, &value, &old.cast))
                })
            }),
        };
        let value = value.unwrap_or_else(|| dialect.null(column.field.data_type()));
        items.push(named(dialect, value, column.field.name()));
    }
    let items = items.join(",\n  ");
    Ok(format!("SELECT\n  {items}\nFROM {}", dialect.source(scan)?))
}

/// The field of `wanted`'s id in the form of `wanted`; `None` where the version lacks it.
fn read_field(
    dialect: &dyn Dialect,
    scan: &Scan<'_>,
    table: Option<&Fields>,
    wanted: &Field,
) -> Option<String> {
    let own = find_by_id(scan.columns.iter().map(AsRef::as_ref), wanted)?;
    let known = table.and_then(|t| find_by_name(t.iter().map(AsRef::as_ref), own.name()));
    let held = known.map_or(own.data_type(), Field::data_type);
    let shape = shape_of(own.data_type(), held, wanted.data_type());
    let value = dialect.column(own.name());
    Some(expression(dialect, &value, &shape, wanted.data_type(), 0))
}

/// `value AS name`; the value alone where it has that name.
fn named(dialect: &dyn Dialect, value: String, name: &str) -> String {
    let name = dialect.name(name);
    match value == name {
        true => value,
        false => format!("{value} AS {name}"),
    }
}
