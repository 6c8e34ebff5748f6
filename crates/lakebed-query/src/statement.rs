//! What a SQL text asks for: which kind of statement, which tables, which columns on demand.

use std::collections::BTreeSet;

use datafusion::common::TableReference;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Statement as SqlStatement;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use lakebed::log::AsOf;
use lakebed::name::{DatasetRef, Layer};
use lakebed::{Error, Result};

use crate::clauses::check_clauses;
use crate::error::convert;
use crate::latest::latest_of;
use crate::past::{rewrite, split_name};
use crate::scan::ORIGIN_COLUMNS;
use crate::system::SystemTable;

/// Catalog that bare and two-part names lie in.
pub(crate) const DEFAULT_CATALOG: &str = "lakebed";
/// Schema that bare names lie in.
pub(crate) const DEFAULT_SCHEMA: Layer = Layer::Clean;
/// Schema of the system tables.
pub(crate) const SYSTEM_SCHEMA: &str = "lake";

/// A table that is made from a dataset.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DatasetTable {
    /// The dataset that the name spells.
    pub(crate) dataset: DatasetRef,
    /// The point in time it is wanted of; absent = now.
    pub(crate) as_of: Option<AsOf>,
    /// Catalog, schema and table under which the statement looks for it.
    pub(crate) place: [String; 3],
}

impl DatasetTable {
    /// A dataset of now, written in two parts.
    pub(crate) fn new(dataset: DatasetRef) -> Self {
        let table = dataset.dataset.to_string();
        Self::at(dataset, None, table)
    }

    /// A name in the schema of its layer; the table's name may hold a dot.
    fn at(dataset: DatasetRef, as_of: Option<AsOf>, table: String) -> Self {
        let layer = dataset.layer.to_string();
        Self {
            dataset,
            as_of,
            place: [DEFAULT_CATALOG.to_owned(), layer, table],
        }
    }

    /// The dataset whose newest rows this would be; `None` where the name is not of that form.
    pub(crate) fn latest_of(&self) -> Option<DatasetRef> {
        latest_of(&self.dataset)
    }
}

/// What a name in a query stands for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NamedTable {
    /// A dataset, or the newest rows of one.
    Dataset(DatasetTable),
    /// A system table.
    System(SystemTable),
    /// A table of `information_schema`: it lists every table.
    Information,
    /// Nothing that there can be; as written.
    Unknown(String),
}

/// A statement that only reads.
#[derive(Debug, Clone)]
pub(crate) struct ReadStatement {
    /// The parsed statement.
    pub(crate) statement: Statement,
    /// The tables it names.
    pub(crate) tables: BTreeSet<NamedTable>,
    /// Whether it names a column `_commit`, `_file` or `_row`.
    pub(crate) names_origin: bool,
}

impl ReadStatement {
    /// Whether it is a query, and not a question about one or about the tables.
    pub(crate) fn gives_rows(&self) -> bool {
        matches!(&self.statement, Statement::Statement(inner) if matches!(**inner, SqlStatement::Query(_)))
    }
}

fn refuse(what: &str) -> Error {
    Error::invalid(format!(
        "`{what}` is not a query: SQL reads the lake and never writes it"
    ))
    .hint(
        "SELECT, EXPLAIN, SHOW TABLES and DESCRIBE are answered; data comes in by `lakebed ingest`",
    )
}

fn first_words(text: &str) -> String {
    let words: Vec<String> = text
        .split_whitespace()
        .take(2)
        .map(str::to_uppercase)
        .collect();
    words.join(" ")
}

fn check(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Statement(inner) => check_sql(inner),
        Statement::Explain(explain) => check(&explain.statement),
        Statement::CreateExternalTable(_) | Statement::CopyTo(_) | Statement::Reset(_) => {
            Err(refuse(&first_words(&statement.to_string())))
        }
    }
}

fn check_sql(statement: &SqlStatement) -> Result<()> {
    match statement {
        SqlStatement::Query(_)
        | SqlStatement::ShowTables { .. }
        | SqlStatement::ShowColumns { .. }
        | SqlStatement::ShowVariable { .. }
        | SqlStatement::ShowFunctions { .. }
        | SqlStatement::ExplainTable { .. } => Ok(()),
        SqlStatement::Explain { statement, .. } => check_sql(statement),
        other => Err(refuse(&first_words(&other.to_string()))),
    }
}

/// Parses one statement and refuses any that writes.
pub(crate) fn read_statement(state: &SessionState, text: &str) -> Result<ReadStatement> {
    let dialect = state.config().options().sql_parser.dialect;
    let mut statement = state
        .sql_to_statement(text, &dialect)
        .map_err(|e| statement_error(text, &convert(&e)))?;
    rewrite(&mut statement)?;
    check(&statement)?;
    check_clauses(&statement)?;
    let references = state
        .resolve_table_references(&statement)
        .map_err(|e| convert(&e))?;
    Ok(ReadStatement {
        statement,
        tables: references.iter().map(named_table).collect(),
        names_origin: names_origin(text),
    })
}

fn statement_error(text: &str, error: &Error) -> Error {
    if text.trim().is_empty() {
        return Error::invalid("the query is empty")
            .hint("for example `SELECT dt, COUNT(*) FROM clean.weibo GROUP BY dt`");
    }
    if error.message().contains("single SQL statement") {
        return Error::invalid("the text holds more than one statement")
            .hint("call once for each statement, or send them through standard input: `lakebed sql < FILE`");
    }
    let mut copy = Error::new(error.kind(), error.message());
    for hint in error.hints() {
        copy = copy.hint(hint);
    }
    copy
}

/// Whether a word of the text is `_commit`, `_file` or `_row`.
fn names_origin(text: &str) -> bool {
    if !ORIGIN_COLUMNS.iter().any(|name| contains(text, name)) {
        return false;
    }
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize();
    tokens.unwrap_or_default().iter().any(|token| {
        matches!(token, Token::Word(w) if ORIGIN_COLUMNS
            .iter()
            .any(|name| w.value.eq_ignore_ascii_case(name)))
    })
}

/// Whether the text has these letters somewhere, large or small.
fn contains(text: &str, letters: &str) -> bool {
    let mut places = text.as_bytes().windows(letters.len());
    places.any(|place| place.eq_ignore_ascii_case(letters.as_bytes()))
}

fn dataset(layer: Layer, name: &str) -> Option<DatasetRef> {
    Some(DatasetRef {
        layer,
        dataset: name.parse().ok()?,
    })
}

fn named_dataset(dataset: DatasetRef) -> NamedTable {
    NamedTable::Dataset(DatasetTable::new(dataset))
}

fn in_schema(schema: &str, table: &str) -> Option<NamedTable> {
    if schema == "information_schema" {
        return Some(NamedTable::Information);
    }
    if schema == SYSTEM_SCHEMA {
        return table.parse().ok().map(NamedTable::System);
    }
    let layer = schema.parse().ok()?;
    if let Some((name, as_of)) = split_name(table) {
        let table = DatasetTable::at(dataset(layer, name)?, Some(as_of), table.to_owned());
        return Some(NamedTable::Dataset(table));
    }
    dataset(layer, table).map(named_dataset)
}

/// What a name in a query stands for.
pub(crate) fn named_table(reference: &TableReference) -> NamedTable {
    let found = match reference {
        TableReference::Bare { table } => dataset(DEFAULT_SCHEMA, table).map(named_dataset),
        TableReference::Partial { schema, table } => in_schema(schema, table),
        TableReference::Full {
            catalog,
            schema,
            table,
        } if &**catalog == DEFAULT_CATALOG => in_schema(schema, table),
        TableReference::Full {
            catalog,
            schema,
            table,
        } => catalog
            .parse()
            .ok()
            .and_then(|layer| dataset(layer, &format!("{schema}.{table}")))
            .map(|dataset| {
                NamedTable::Dataset(DatasetTable {
                    dataset,
                    as_of: None,
                    place: [catalog, schema, table].map(ToString::to_string),
                })
            }),
    };
    found.unwrap_or_else(|| NamedTable::Unknown(reference.to_string()))
}

/// How a dataset is written in SQL.
pub(crate) fn sql_name(dataset: &DatasetRef) -> String {
    format!("{}.{}", dataset.layer, dataset.dataset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ReadStatement> {
        let state = datafusion::execution::SessionStateBuilder::new_with_default_features().build();
        read_statement(&state, text)
    }

    #[test]
    fn what_writes_is_refused() {
        for text in [
            "CREATE TABLE t (a INT)",
            "CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '/etc'",
            "INSERT INTO clean.w VALUES (1)",
            "DROP TABLE clean.w",
            "COPY (SELECT 1) TO '/tmp/x.parquet'",
            "EXPLAIN COPY (SELECT 1) TO '/tmp/x.parquet'",
            "EXPLAIN INSERT INTO clean.w VALUES (1)",
            "SET datafusion.execution.batch_size = 1",
            "RESET datafusion.execution.batch_size",
            "DELETE FROM clean.w",
            "UPDATE clean.w SET a = 1",
            "TRUNCATE TABLE clean.w",
            "BEGIN",
        ] {
            let e = read(text).unwrap_err();
            assert_eq!(e.kind(), lakebed::ErrorKind::InvalidInput, "{text}");
            assert!(e.message().contains("is not a query"), "{text}: {e}");
        }
        assert!(read("SELECT 1; SELECT 2").is_err());
        assert!(read("").is_err());
    }

    #[test]
    fn names_are_datasets_or_system_tables() {
        let named = |text: &str| {
            let tables = read(text).unwrap().tables;
            assert_eq!(tables.len(), 1, "{text}");
            tables.into_iter().next().unwrap()
        };
        let w = || "clean/w".parse::<DatasetRef>().unwrap();
        let wc = || "clean/w.c".parse::<DatasetRef>().unwrap();
        assert_eq!(named("SELECT * FROM clean.w"), named_dataset(w()));
        assert_eq!(named("SELECT * FROM W"), named_dataset(w()));
        assert_eq!(named("SELECT * FROM lakebed.clean.w"), named_dataset(w()));
        assert_eq!(named("SELECT * FROM clean.\"w.c\""), named_dataset(wc()));
        let NamedTable::Dataset(dotted) = named("DESCRIBE clean.w.c") else {
            panic!()
        };
        assert_eq!((&dotted.dataset, dotted.as_of), (&wc(), None));
        assert_eq!(dotted.place, ["clean", "w", "c"]);
        let NamedTable::Dataset(latest) = named("SELECT * FROM as_of('clean.w.c__latest', 7)")
        else {
            panic!()
        };
        assert_eq!(latest.latest_of(), Some(wc()));
        assert_eq!(latest.as_of, Some(AsOf::Record(7)));
        assert_eq!(latest.place, ["lakebed", "clean", "w.c__latest@7"]);
        assert_eq!(
            named("WITH x AS (SELECT * FROM lake.files) SELECT * FROM x"),
            NamedTable::System(SystemTable::Files)
        );
        assert_eq!(
            named("SELECT * FROM lake.nothing"),
            NamedTable::Unknown("lake.nothing".to_owned())
        );
        assert_eq!(named("SHOW TABLES"), NamedTable::Information);
    }

    #[test]
    fn origin_is_found_as_a_word_only() {
        assert!(read("SELECT _FILE FROM clean.w").unwrap().names_origin);
        assert!(
            read("SELECT t.\"_commit\" FROM clean.w t")
                .unwrap()
                .names_origin
        );
        assert!(!read("SELECT '_file' FROM clean.w").unwrap().names_origin);
    }
}
