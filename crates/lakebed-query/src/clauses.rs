//! Clauses that the parser knows and the planner forgets.
//!
//! The parser reads the dialects of many databases. What the planner does not look at would be
//! dropped in silence and give another answer than the one that was asked for, so it is refused.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{LimitClause, Query, Select, TableFactor, Visit, Visitor};
use lakebed::{Error, Result};

/// Refuses a statement with such a clause.
pub(crate) fn check_clauses(statement: &Statement) -> Result<()> {
    let found = match statement {
        Statement::Statement(inner) => inner.visit(&mut Clauses),
        Statement::Explain(explain) => return check_clauses(&explain.statement),
        Statement::CreateExternalTable(_) | Statement::CopyTo(_) | Statement::Reset(_) => {
            return Ok(());
        }
    };
    let ControlFlow::Break(clause) = found else {
        return Ok(());
    };
    let error = Error::invalid(format!("plan the query: not supported: {clause}"));
    Err(match clause {
        "PREWHERE" => error.hint("write `WHERE`: files are skipped by it, too"),
        "TABLESAMPLE" => error.hint("`WHERE random() < 0.1` takes about a tenth of the rows"),
        "FORMAT" => error.hint("`--format` chooses the form of the rows"),
        "LIMIT BY" => error.hint("take `QUALIFY row_number() OVER (PARTITION BY ...) <= n`"),
        _ => error,
    })
}

struct Clauses;

fn refuse_if(clauses: &[(bool, &'static str)]) -> ControlFlow<&'static str> {
    match clauses.iter().find(|(there, _)| *there) {
        Some((_, clause)) => ControlFlow::Break(clause),
        None => ControlFlow::Continue(()),
    }
}

impl Visitor for Clauses {
    type Break = &'static str;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Self::Break> {
        let limit_by = matches!(&query.limit_clause,
            Some(LimitClause::LimitOffset { limit_by, .. }) if !limit_by.is_empty());
        refuse_if(&[
            (!query.locks.is_empty(), "FOR UPDATE"),
            (query.for_clause.is_some(), "FOR"),
            (query.settings.is_some(), "SETTINGS"),
            (query.format_clause.is_some(), "FORMAT"),
            (limit_by, "LIMIT BY"),
        ])
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Self::Break> {
        refuse_if(&[
            (select.prewhere.is_some(), "PREWHERE"),
            (!select.connect_by.is_empty(), "CONNECT BY"),
            (select.value_table_mode.is_some(), "SELECT AS"),
        ])
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<Self::Break> {
        match table {
            TableFactor::Table {
                with_hints,
                version,
                with_ordinality,
                partitions,
                sample,
                index_hints,
                ..
            } => refuse_if(&[
                (sample.is_some(), "TABLESAMPLE"),
                (!partitions.is_empty(), "PARTITION"),
                (version.is_some(), "FOR SYSTEM_TIME AS OF"),
                (*with_ordinality, "WITH ORDINALITY"),
                (!with_hints.is_empty(), "WITH"),
                (!index_hints.is_empty(), "INDEX"),
            ]),
            TableFactor::Derived { sample, .. } => refuse_if(&[(sample.is_some(), "TABLESAMPLE")]),
            _ => ControlFlow::Continue(()),
        }
    }
}
