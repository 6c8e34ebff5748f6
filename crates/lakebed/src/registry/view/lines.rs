//! The view of a dataset of JSON lines: one column of texts, as `lakebed sql` shows it.

use crate::error::{Error, Result};
use crate::registry::view::dialect::{Engine, doubled};
use crate::registry::view::location::{check_location, quote_path};
use crate::registry::view::statement::{ViewColumn, ViewRequest, ViewStatement, folder_of};
use crate::registry::{DT_COLUMN, VERSION_COLUMN};
use crate::spec::{FileFormat, JSON_COLUMN, SCHEMALESS_VERSION, SOURCE_COLUMN};

/// The longest line that DuckDB is told to take; it takes 16 MiB unless told.
const MAX_LINE_BYTES: u32 = 1 << 30;

/// Writes the view, for the one engine that reads such files as they are.
pub fn write_lines_view(request: &ViewRequest<'_>) -> Result<ViewStatement> {
    let (engine, dataset) = (request.engine, request.dataset);
    let dialect = engine.dialect();
    if engine != Engine::DuckDb {
        let title = dialect.title();
        return Err(Error::invalid(format!(
            "there is no view of JSON lines for {title}"
        ))
        .hint(format!(
            "`--engine duckdb` has one; the files are JSON lines in zstd: {dataset}/dt=*/schema_version=0/*.jsonl.zst"
        )));
    }
    if !request.filled.contains(&SCHEMALESS_VERSION) {
        return Err(Error::precondition(format!(
            "`{dataset}` has no rows yet, and {} refuses a folder without files",
            dialect.title()
        ))
        .hint("`lakebed ingest` stores the first ones; print the view after it"));
    }
    check_location(request.location, engine, &[DT_COLUMN, VERSION_COLUMN])?;
    let files = format!(
        "{}/dt=*/schema_version={SCHEMALESS_VERSION}/*.{}",
        folder_of(request),
        FileFormat::Jsonl.extension()
    );
    let (files, source) = (
        doubled(&files, '\''),
        doubled(dataset.source().as_str(), '\''),
    );
    let query = format!(
        "SELECT\n  {source} AS \"{SOURCE_COLUMN}\",\n  \"{DT_COLUMN}\",\n  \"{VERSION_COLUMN}\",\n  \
         CAST(\"json\" AS VARCHAR) AS \"{JSON_COLUMN}\"\nFROM read_ndjson_objects({files}, \
         maximum_object_size = {MAX_LINE_BYTES}, hive_partitioning = true, \
         hive_types = {{'dt': DATE, 'schema_version': BIGINT}})"
    );
    let statement = match request.name {
        None => query,
        Some(name) => format!(
            "CREATE OR REPLACE VIEW {} AS\n{query}",
            quote_path(dialect, name)?
        ),
    };
    let column = |name: &str, engine_type: &str| ViewColumn {
        name: name.to_owned(),
        id: None,
        engine_type: engine_type.to_owned(),
    };
    Ok(ViewStatement {
        versions: vec![SCHEMALESS_VERSION],
        left_out: Vec::new(),
        columns: vec![
            column(SOURCE_COLUMN, "VARCHAR"),
            column(DT_COLUMN, "DATE"),
            column(VERSION_COLUMN, "BIGINT"),
            column(JSON_COLUMN, "VARCHAR"),
        ],
        comment: vec![format!("{dataset} for {}: JSON lines.", dialect.title())],
        statement,
    })
}
