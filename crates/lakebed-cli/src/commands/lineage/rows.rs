//! `lineage --row`: the rows with a key, and what each came from, down to its page.

use std::collections::BTreeSet;

use arrow::datatypes::{DataType, Field};
use lakebed::flow::list_packs;
use lakebed::name::{CaptureId, DatasetRef, Layer, RunName, SourceName};
use lakebed::spec::{ParentSpec, Privacy};
use lakebed::store::Lake;
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};
use lakebed_query::{QueryEngine, write_json};
use serde::Serialize;

use super::row::Row;
use super::{ANSWER_FORMAT, MOST_NODES, Tree};
use crate::args::TextFormat;
use crate::commands::sql::{count_reads, engine};
use crate::context::{Context, Globals};
use crate::exit::Exit;

/// Rows that are followed at one level.
const MOST_ROWS: usize = 20;
/// Digits of the widest decimal.
const MOST_DIGITS: u8 = 38;

/// A page that a row came from.
#[derive(Debug, Serialize)]
struct PageOrigin {
    raw: String,
    url: String,
    status: Option<u16>,
    fetched_at: String,
    pack: String,
    frame: u64,
}

/// A row, and what it came from.
#[derive(Debug, Serialize)]
struct RowOrigin {
    dataset: DatasetRef,
    date: BusinessDate,
    row: Row,
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<PageOrigin>,
    /// Set where more rows of a parent have its key than are followed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
    /// Why it goes no further.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends: Option<String>,
    from: Vec<RowOrigin>,
}

#[derive(Serialize)]
struct RowAnswer<'a> {
    format: u32,
    /// Set where more rows have the key than are shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
    rows: &'a [RowOrigin],
}

/// Rows of a dataset with their dates, the newest first.
struct Found {
    rows: Vec<(BusinessDate, Row)>,
    /// Whether there are more than are followed.
    more: bool,
}

/// `--row`
pub(super) async fn row(
    context: &Context<'_>,
    dataset: &DatasetRef,
    (key, date): (&str, Option<BusinessDate>),
    globals: &Globals<'_>,
) -> Result<Exit> {
    let columns = key_of(context, dataset)?;
    let values: Vec<&str> = match columns.len() {
        1 => vec![key],
        _ => key.split(',').collect(),
    };
    if values.len() != columns.len() {
        return Err(Error::invalid(format!(
            "`{key}` has {} parts, the key of {dataset} has {}",
            values.len(),
            columns.len()
        ))
        .hint(format!(
            "values of {}, with `,` between them",
            columns.join(", ")
        )));
    }
    let named: Vec<(String, String)> = columns
        .into_iter()
        .zip(values.into_iter().map(str::to_owned))
        .collect();
    let finder = Finder {
        context,
        engine: engine(context)?,
        tree: Tree::open(context, false).await?,
    };
    let Found { rows, more } = finder.rows(dataset, (date, None), &named).await?;
    if rows.is_empty() {
        globals
            .printer
            .info(format!("no row of {dataset} has the key {key}"));
        return Ok(Exit::No);
    }
    // Where no date was given, the newest one is meant.
    let newest = rows.iter().map(|(dt, _)| *dt).max();
    let mut found = Vec::new();
    for (dt, row) in rows {
        if date.is_some() || Some(dt) == newest {
            found.push(
                finder
                    .origin(dataset, dt, row, &mut BTreeSet::new())
                    .await?,
            );
        }
    }
    count_reads(&finder.engine, globals.printer).await;
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&RowAnswer {
            format: ANSWER_FORMAT,
            more,
            rows: &found,
        })?,
        TextFormat::Text => {
            for row in &found {
                tell_row(row, "", globals)?;
            }
            if more {
                globals.printer.line(more_rows())?;
            }
        }
    }
    Ok(Exit::Done)
}

/// The declared key of a dataset.
fn key_of(context: &Context<'_>, dataset: &DatasetRef) -> Result<Vec<String>> {
    let source = context.project().load_source(&dataset.source())?;
    let key = source.dataset(dataset).key;
    if key.is_empty() {
        return Err(Error::precondition(format!("`{dataset}` declares no key")).hint(format!(
            "add `key = [\"...\"]`, the columns that name one object, under [dataset.\"{}\"] in sources/{}/source.toml",
            dataset.dataset, source.name
        )));
    }
    Ok(key)
}

fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The test that a column has a value, which is told by its text: compared as what the column is, so that a decimal is the
/// same at any scale and an instant however it is written. What cannot be one is no value of the column.
fn is_value(name: &str, kind: Option<&DataType>, text: &str) -> String {
    let (name, value) = (quoted_name(name), quoted_text(text));
    let behind_point = text.rsplit_once('.').map_or(0, |(_, digits)| digits.len());
    let decimal = |scale: usize| {
        let kind = DataType::Decimal128(MOST_DIGITS, i8::try_from(scale).unwrap_or(i8::MAX));
        format!(
            "{name} = arrow_try_cast({value}, {})",
            quoted_text(&format!("{kind:?}"))
        )
    };
    let is_written_out = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'-' | b'.'));
    match kind {
        Some(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => {
            format!("{name} = {value}")
        }
        Some(DataType::Decimal128(_, scale)) if is_written_out => {
            decimal(behind_point.max(usize::try_from(*scale).unwrap_or(0)))
        }
        Some(kind) if kind.is_integer() && is_written_out && behind_point > 0 => {
            decimal(behind_point)
        }
        Some(kind) if kind.is_numeric() || kind.is_temporal() || *kind == DataType::Boolean => {
            format!(
                "{name} = arrow_try_cast({value}, {})",
                quoted_text(&format!("{kind:?}"))
            )
        }
        _ => format!("CAST({name} AS VARCHAR) = {value}"),
    }
}

fn more_rows() -> String {
    format!("and more: {MOST_ROWS} rows of a dataset are followed")
}

struct Finder<'a> {
    context: &'a Context<'a>,
    engine: QueryEngine,
    tree: Tree,
}

impl Finder<'_> {
    /// Rows of a dataset with these values, with their dates: of one date, of several, or of all.
    async fn rows(
        &self,
        dataset: &DatasetRef,
        (to, from): (Option<BusinessDate>, Option<BusinessDate>),
        values: &[(String, String)],
    ) -> Result<Found> {
        let table = format!(
            "{}.{}",
            dataset.layer,
            quoted_name(dataset.dataset.as_str())
        );
        let columns = self
            .engine
            .sql(&format!("SELECT * FROM {table} LIMIT 0"))
            .await?;
        let mut tests: Vec<String> = values
            .iter()
            .map(|(name, value)| {
                let found = columns.schema().field_with_name(name).ok();
                is_value(name, found.map(Field::data_type), value)
            })
            .collect();
        if let Some(to) = to {
            let from = from.unwrap_or(to);
            tests.push(format!("dt BETWEEN DATE '{from}' AND DATE '{to}'"));
        }
        let sql = format!(
            "SELECT * FROM {table} WHERE {} ORDER BY dt DESC LIMIT {}",
            tests.join(" AND "),
            MOST_ROWS + 1
        );
        let mut text = Vec::new();
        write_json(self.engine.sql(&sql).await?, &mut text).await?;
        let rows: Vec<Row> = serde_json::from_slice(&text)
            .map_err(|e| Error::internal("read rows as JSON").caused_by(e))?;
        let more = rows.len() > MOST_ROWS;
        let rows = rows.into_iter().take(MOST_ROWS).map(|row| {
            let date = row.text("dt").unwrap_or_default();
            Ok((date.parse()?, row))
        });
        Ok(Found {
            rows: rows.collect::<Result<_>>()?,
            more,
        })
    }

    /// What a row came from: its page, or the rows of its dataset's parents that share their key with it.
    async fn origin(
        &self,
        dataset: &DatasetRef,
        date: BusinessDate,
        row: Row,
        met: &mut BTreeSet<(DatasetRef, BusinessDate)>,
    ) -> Result<RowOrigin> {
        let mut origin = RowOrigin {
            dataset: dataset.clone(),
            date,
            page: None,
            more: false,
            ends: None,
            from: Vec::new(),
            row: Row::default(),
        };
        if let Some(raw) = row.text("_raw") {
            match find_page(self.context.lake(), &raw).await? {
                Ok(page) => origin.page = Some(page),
                Err(why) => origin.ends = Some(why),
            }
        } else {
            self.follow(&mut origin, &row, met).await?;
        }
        origin.row = self.shown(dataset, row).await?;
        Ok(origin)
    }

    async fn follow(
        &self,
        origin: &mut RowOrigin,
        row: &Row,
        met: &mut BTreeSet<(DatasetRef, BusinessDate)>,
    ) -> Result<()> {
        let at = ParentSpec {
            dataset: origin.dataset.clone(),
            dt: origin.date,
            from: None,
            revision: 0,
            position: 0,
        };
        let parents = self.tree.parents_of(&at);
        if parents.is_empty() {
            origin.ends = Some("it came from outside: no parent is known of it".to_owned());
            return Ok(());
        }
        let mut without = Vec::new();
        for parent in parents.iter().filter(|p| p.dataset.layer != Layer::Raw) {
            if met.len() >= MOST_NODES || !met.insert((parent.dataset.clone(), parent.dt)) {
                continue;
            }
            let key = key_of(self.context, &parent.dataset).unwrap_or_default();
            let values: Option<Vec<(String, String)>> = key
                .iter()
                .map(|name| Some((name.clone(), row.text(name)?)))
                .collect();
            let Some(values) = values.filter(|v| !v.is_empty()) else {
                without.push(parent.dataset.to_string());
                continue;
            };
            let dates = (Some(parent.dt), parent.from);
            let found = self.rows(&parent.dataset, dates, &values).await?;
            origin.more |= found.more;
            for (date, row) in found.rows {
                let next = Box::pin(self.origin(&parent.dataset, date, row, met)).await?;
                origin.from.push(next);
            }
        }
        if !without.is_empty() {
            origin.ends = Some(format!(
                "it has not the key of {}: `lakebed lineage {} --date {}` leads on by dates",
                without.join(", "),
                origin.dataset,
                origin.date
            ));
        } else if origin.from.is_empty() {
            origin.ends = Some("no row of its parents has its key".to_owned());
        }
        Ok(())
    }

    /// The row as it is shown: values of personal fields are not.
    async fn shown(&self, dataset: &DatasetRef, mut row: Row) -> Result<Row> {
        let published = lakebed::registry::list_published(self.context.lake(), dataset).await?;
        let fields = published.iter().flat_map(|(p, _)| &p.schema.fields);
        let personal = fields.filter(|f| f.privacy == Some(Privacy::Personal));
        let mut hidden: BTreeSet<&str> = personal.map(|f| f.name.as_str()).collect();
        hidden.extend(["dt", "source", "schema_version"]);
        row.retain(|name, is_null| !(hidden.contains(name) || name == "_extra" && is_null));
        Ok(row)
    }
}

/// The page of a `_raw`: `source/date/run/capture`.
async fn find_page(lake: &Lake, raw: &str) -> Result<Result<PageOrigin, String>> {
    let parts: Vec<&str> = raw.split('/').collect();
    let [source, date, run, capture] = parts.as_slice() else {
        return Ok(Err(format!("`{raw}` names no page")));
    };
    let (source, date): (SourceName, BusinessDate) = (source.parse()?, date.parse()?);
    let (run, capture): (RunName, CaptureId) = (run.parse()?, capture.parse()?);
    let packs = list_packs(lake, &source, date, date).await?;
    let Some(pack) = packs.iter().find(|pack| pack.run.run == run) else {
        return Ok(Err(format!(
            "the pack of {source} {date} {run} is not in the lake any more"
        )));
    };
    let reader = pack.open()?;
    Ok(match reader.index()?.find_capture(&capture)? {
        None => Err(format!(
            "the pack {} has no capture {capture}",
            pack.path.display()
        )),
        Some(found) => Ok(PageOrigin {
            raw: raw.to_owned(),
            url: found.url.clone(),
            status: found.status,
            fetched_at: found.fetched_at.to_string(),
            pack: pack.path.display().to_string(),
            frame: u64::from(found.frame),
        }),
    })
}

fn tell_row(origin: &RowOrigin, indent: &str, globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    let row = serde_json::to_string(&origin.row)
        .map_err(|e| Error::internal("write a row as JSON").caused_by(e))?;
    printer.line(format!("{indent}{} {}: {row}", origin.dataset, origin.date))?;
    if let Some(page) = &origin.page {
        let status = page
            .status
            .map_or(String::new(), |s| format!(", status {s}"));
        printer.line(format!("{indent}  {}", page.url))?;
        printer.line(format!("{indent}  fetched at {}{status}", page.fetched_at))?;
        printer.line(format!(
            "{indent}  {} frame {} ({})",
            page.pack, page.frame, page.raw
        ))?;
    }
    if let Some(why) = &origin.ends {
        printer.line(format!("{indent}  ends here: {why}"))?;
    }
    for next in &origin.from {
        tell_row(next, &format!("{indent}  "), globals)?;
    }
    if origin.more {
        printer.line(format!("{indent}  {}", more_rows()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_compared_as_what_its_column_is() {
        use arrow::datatypes::TimeUnit;
        let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let cases = [
            (DataType::Utf8View, "7.0", "\"a\" = '7.0'"),
            (DataType::Int64, "7", "\"a\" = arrow_try_cast('7', 'Int64')"),
            (
                DataType::Int64,
                "7.00",
                "\"a\" = arrow_try_cast('7.00', 'Decimal128(38, 2)')",
            ),
            (
                DataType::Decimal128(10, 4),
                "7.00",
                "\"a\" = arrow_try_cast('7.00', 'Decimal128(38, 4)')",
            ),
            (
                DataType::Decimal128(10, 1),
                "7.00",
                "\"a\" = arrow_try_cast('7.00', 'Decimal128(38, 2)')",
            ),
            (
                instant,
                "2026-11-30T00:00:00Z",
                "\"a\" = arrow_try_cast('2026-11-30T00:00:00Z', 'Timestamp(Microsecond, Some(\"UTC\"))')",
            ),
            (DataType::Binary, "it's", "CAST(\"a\" AS VARCHAR) = 'it''s'"),
        ];
        for (kind, text, expected) in cases {
            assert_eq!(is_value("a", Some(&kind), text), expected, "{kind}");
        }
    }
}
