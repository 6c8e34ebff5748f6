//! `source test`: whether what follows from a day, its folds and derived tables, can be made: a day that parses and
//! then stops at its fold is not ready.

use lakebed::config::{Project, SourceConfig};
use lakebed::flow::{Declared, Derived, Graph, WHOLE_DAY, check_fold};
use lakebed::time::{BusinessDate, Clock, time_zone};
use lakebed::{Error, Result};

use super::check::Check;
use crate::commands::derive::check_derived;
use crate::context::{Context, Globals};
use crate::table::count;

/// A check for the folds and one for the derived tables, of those that are declared.
pub(super) async fn check_followers(
    project: &Project,
    source: &SourceConfig,
    globals: &Globals<'_>,
) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    if source.folds.is_empty() && source.derive.is_empty() {
        return Ok(checks);
    }
    let context = Context::open(globals).await?;
    if !source.folds.is_empty() {
        let mut errors = Vec::new();
        for name in source.folds.keys() {
            if let Err(e) = check_fold(context.lake(), source, name).await {
                errors.push((format!("fold.{name}"), e));
            }
        }
        checks.push(verdict("folds", source.folds.len(), "fold", errors));
    }
    if !source.derive.is_empty() {
        let mut errors = Vec::new();
        for name in source.derive.keys() {
            let checked = match Derived::read(project, source, name) {
                Ok(derived) => check_derived(name, &derived, (source, &context)).await,
                Err(e) => Err(e),
            };
            if let Err(e) = checked {
                errors.push((format!("derive.{name}"), e));
            }
        }
        checks.push(verdict(
            "derives",
            source.derive.len(),
            "derived table",
            errors,
        ));
    }
    if let Err(e) = check_graph(project, source, &context) {
        checks.push(Check::failed("flow", &e));
    }
    Ok(checks)
}

/// Whether the stages of a day have an order.
fn check_graph(project: &Project, source: &SourceConfig, context: &Context<'_>) -> Result<()> {
    let zone = time_zone(&context.lake().spec().time_zone)?;
    let date = BusinessDate::of(Clock::System.now(), &zone);
    let declared = Declared::read(project, source)?;
    Graph::of(&declared, date, &WHOLE_DAY.parse()?).map(|_| ())
}

fn verdict(
    check: &'static str,
    declared: usize,
    what: &str,
    errors: Vec<(String, Error)>,
) -> Check {
    if errors.is_empty() {
        return Check::pass(
            check,
            format!("{} can be made", count(declared as u64, what)),
        );
    }
    let (mut found, mut hints) = (Vec::new(), Vec::new());
    for (name, error) in errors {
        found.push(format!("{name}: {error}"));
        found.extend(error.details().iter().cloned());
        for hint in error.hints() {
            if !hints.contains(hint) {
                hints.push(hint.clone());
            }
        }
    }
    Check::fail(check, found, hints)
}
