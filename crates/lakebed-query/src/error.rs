//! DataFusion's errors as ours: a kind, a message of one line, hints with the nearest names.

use std::borrow::Cow;
use std::error::Error as StdError;

use arrow::error::ArrowError;
use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::parquet::errors::ParquetError;
use lakebed::Error;

use crate::hints::nested_hint;

/// The names nearest to `name`, at most three, best first.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let small = name.to_lowercase();
    let mut found: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|candidate| {
            let other = candidate.to_lowercase();
            let distance = strsim::osa_distance(&small, &other);
            let longest = small.chars().count().max(other.chars().count());
            let close = distance * 5 <= longest * 2 || (small.len() > 2 && other.contains(&small));
            close.then_some((distance, candidate))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    let best = found.first().map_or(0, |(d, _)| *d);
    found
        .into_iter()
        .take_while(|(d, _)| *d <= best + 1)
        .take(3)
        .map(|(_, n)| n)
        .collect()
}

/// `a`, `b` and so on, each in backticks.
pub(crate) fn quoted<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let names: Vec<String> = names
        .into_iter()
        .map(|n| format!("`{}`", n.as_ref()))
        .collect();
    names.join(", ")
}

/// An error of ours anywhere among the causes, made anew.
fn ours(error: &DataFusionError) -> Option<Error> {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(e) = cause {
        if let Some(own) = e.downcast_ref::<Error>() {
            let mut copy = Error::new(own.kind(), own.message());
            for (key, value) in own.context() {
                copy = copy.with(key, value);
            }
            for hint in own.hints() {
                copy = copy.hint(hint);
            }
            return Some(if own.is_retryable() {
                copy.retryable()
            } else {
                copy
            });
        }
        cause = match e.downcast_ref::<DataFusionError>() {
            Some(DataFusionError::Shared(inner)) => Some(&**inner),
            Some(DataFusionError::External(inner)) => Some(&**inner),
            Some(DataFusionError::Collection(all)) => all.first().map(|e| e as _),
            _ => e.source(),
        };
    }
    None
}

/// The error below contexts, diagnostics and collections.
fn root(error: &DataFusionError) -> &DataFusionError {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => root(inner),
        DataFusionError::Shared(inner) => root(inner),
        DataFusionError::Collection(all) => all.first().map_or(error, root),
        _ => error,
    }
}

/// One line: what comes after the first is a listing or a backtrace.
fn line(text: impl ToString) -> String {
    let text = text.to_string();
    let first = text.lines().next().unwrap_or_default().trim_end();
    first.trim_end_matches('.').to_owned()
}

/// What a filter said within the Parquet reader, which hands on the debug form of its error.
fn without_debug_form(text: &str) -> &str {
    let Some((_, inner)) = text.split_once("Error evaluating filter predicate: ") else {
        return text;
    };
    match (inner.find("(\""), inner.find("\")")) {
        (Some(from), Some(to)) if from + 2 <= to => &inner[from + 2..to],
        _ => inner,
    }
}

/// What a function was given and does not take, without the list of all that it would take.
fn wrong_argument(text: &str) -> Option<String> {
    let (_, of_signature) = text.split_once("failed to match any signature")?;
    let (_, function) = text.split_once("Function '")?;
    let (function, _) = function.split_once('\'')?;
    let (_, received) = of_signature.split_once("but received ")?;
    let (received, _) = received.split_once(" (DataType")?;
    Some(format!("`{function}` takes no value of type {received}"))
}

fn unknown_column(field: &Column, valid: &[Column]) -> Error {
    let names: Vec<&str> = valid.iter().map(Column::name).collect();
    let error = Error::invalid(format!("there is no column `{}`", field.flat_name()));
    let near = nearest(field.name(), names.iter().copied());
    let error = if near.is_empty() {
        error
    } else {
        error.hint(format!("did you mean {}?", quoted(&near)))
    };
    let error = if field.name().chars().any(char::is_uppercase) || near.is_empty() {
        error
    } else if near.iter().any(|n| n.to_lowercase() == field.name()) {
        error.hint("names with capital letters are written in double quotes")
    } else {
        error
    };
    if names.is_empty() {
        return error;
    }
    error.hint(format!("columns are {}", quoted(&names)))
}

fn schema_error(error: &SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => unknown_column(field, valid_fields),
        SchemaError::AmbiguousReference { field } => Error::invalid(format!(
            "column `{}` could be of several tables",
            field.name()
        ))
        .hint("write the table's name or alias before it"),
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => {
            Error::invalid(format!("the query yields two columns named `{name}`"))
                .hint("name one of them with `AS`")
        }
    }
}

fn arrow_error(error: &ArrowError) -> Error {
    match error {
        ArrowError::DivideByZero => Error::invalid("evaluate the query: division by zero"),
        ArrowError::MemoryError(_)
        | ArrowError::DictionaryKeyOverflowError
        | ArrowError::RunEndIndexOverflowError
        | ArrowError::OffsetOverflowError(_) => {
            Error::limit(format!("evaluate the query: {}", line(error)))
        }
        ArrowError::ParquetError(_) | ArrowError::IpcError(_) => damaged(line(error)),
        ArrowError::IoError(..) => {
            Error::unavailable(format!("evaluate the query: {}", line(error)))
        }
        ArrowError::ExternalError(inner) => match inner.downcast_ref::<DataFusionError>() {
            Some(inner) => convert(inner),
            None => Error::internal(format!("evaluate the query: {}", line(inner))),
        },
        ArrowError::NotYetImplemented(_)
        | ArrowError::CastError(_)
        | ArrowError::ParseError(_)
        | ArrowError::SchemaError(_)
        | ArrowError::ComputeError(_)
        | ArrowError::ArithmeticOverflow(_)
        | ArrowError::CsvError(_)
        | ArrowError::JsonError(_)
        | ArrowError::AvroError(_)
        | ArrowError::InvalidArgumentError(_)
        | ArrowError::CDataInterface(_) => Error::invalid(format!(
            "evaluate the query: {}",
            line(without_debug_form(&said(error)))
        )),
    }
}

/// The words of an error, without the kind before them.
fn said(error: &ArrowError) -> Cow<'_, str> {
    match error {
        ArrowError::CastError(text)
        | ArrowError::ParseError(text)
        | ArrowError::ComputeError(text)
        | ArrowError::InvalidArgumentError(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

fn damaged(what: String) -> Error {
    Error::corrupt(format!("read a data file: {what}"))
        .hint("`lakebed audit --deep` tells which files differ from the log")
}

/// What a filter said that the Parquet reader evaluated: no damage of the file.
fn filter_error(error: &ParquetError) -> Option<&ArrowError> {
    match error {
        ParquetError::External(inner) => inner.downcast_ref::<ArrowError>(),
        _ => None,
    }
}

/// Whether the error may come from damaged bytes of a file that it does not name.
pub(crate) fn is_unnamed_damage(error: &DataFusionError) -> bool {
    ours(error).is_none()
        && match root(error) {
            DataFusionError::ParquetError(e) => filter_error(e).is_none(),
            DataFusionError::ArrowError(e, _) => {
                matches!(**e, ArrowError::ParquetError(_) | ArrowError::IpcError(_))
            }
            _ => false,
        }
}

/// A DataFusion error as ours.
pub(crate) fn convert(error: &DataFusionError) -> Error {
    if let Some(own) = ours(error) {
        return own;
    }
    let root = root(error);
    let error = convert_root(root);
    let said = match root {
        DataFusionError::ArrowError(inner, _) => inner.to_string(),
        DataFusionError::Plan(text)
        | DataFusionError::NotImplemented(text)
        | DataFusionError::Execution(text)
        | DataFusionError::Internal(text) => text.clone(),
        _ => return error,
    };
    match nested_hint(&said) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn convert_root(root: &DataFusionError) -> Error {
    match root {
        DataFusionError::SQL(e, _) => {
            Error::invalid(format!("the query is not valid SQL: {}", line(e)))
        }
        DataFusionError::SchemaError(e, _) => schema_error(e),
        DataFusionError::ArrowError(e, _) => arrow_error(e),
        DataFusionError::ParquetError(e) => match filter_error(e) {
            Some(inner) => arrow_error(inner),
            None => damaged(line(e)),
        },
        DataFusionError::Plan(text) | DataFusionError::Configuration(text) => {
            let said = wrong_argument(text).unwrap_or_else(|| line(text));
            Error::invalid(format!("plan the query: {said}"))
        }
        DataFusionError::NotImplemented(text) => {
            let error = Error::invalid(format!("plan the query: not supported: {}", line(text)));
            match text.contains("Decimal scale") {
                true => error.hint("write a number that far from 1 as `CAST('1e300' AS DOUBLE)`"),
                false => error,
            }
        }
        // What it has not been taught for nested types it calls a fault of its own.
        DataFusionError::Internal(text) if nested_hint(text).is_some() => {
            Error::invalid(format!("evaluate the query: not supported: {}", line(text)))
        }
        DataFusionError::Execution(text) => {
            Error::invalid(format!("evaluate the query: {}", line(text)))
        }
        DataFusionError::ResourcesExhausted(text) => {
            Error::limit(format!("evaluate the query: {}", line(text)))
        }
        DataFusionError::IoError(e) => {
            Error::unavailable(format!("evaluate the query: {}", line(e)))
        }
        DataFusionError::ObjectStore(e) => {
            Error::unavailable(format!("evaluate the query: {}", line(e)))
        }
        other => Error::internal(format!("evaluate the query: {}", line(other)))
            .hint("this is a fault of the query engine; a simpler form of the query may work"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lakebed::ErrorKind;

    #[test]
    fn near_names_are_found_in_any_script() {
        let known = ["clean.weibo", "clean.wechat", "clean.zhihu"];
        assert_eq!(nearest("clean.webo", known), ["clean.weibo"]);
        assert_eq!(nearest("标提", ["标题", "热度"]), Vec::<&str>::new());
        assert_eq!(nearest("文章标提", ["文章标题", "热度"]), ["文章标题"]);
        assert_eq!(nearest("zzz", known), Vec::<&str>::new());
    }

    #[test]
    fn our_own_error_comes_through_all_wrappings() {
        let own = Error::corrupt("x").with("file", "a.parquet").hint("h");
        let wrapped = DataFusionError::ParquetError(Box::new(
            datafusion::parquet::errors::ParquetError::External(Box::new(own)),
        ))
        .context("while reading");
        let got = convert(&DataFusionError::Shared(std::sync::Arc::new(wrapped)));
        assert_eq!(got.kind(), ErrorKind::CorruptData);
        assert_eq!(got.context()[0].1, "a.parquet");
        assert_eq!(got.hints(), ["h"]);
    }
}
