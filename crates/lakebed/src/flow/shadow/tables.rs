//! Two tables, both in the order of the same columns, row against row.
//!
//! ```text
//! old.parquet --batches--+
//!                        +-- merged by key: Agree, Changed (field by field), OnlyOld, OnlyNew
//! new.parquet --batches--+
//! ```
//! One batch of each is in memory. The second of two rows with one key meets the second.

use std::cmp::Ordering;
use std::fs::File;
use std::path::PathBuf;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_ord::ord::{DynComparator, make_comparator};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{DECIMAL128_MAX_PRECISION, DataType, SortOptions};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::flow::shadow::item::{Compared, ItemVerdict, shown_key};
use crate::fold::json_of;
use crate::parse::{Difference, differences};
use crate::spec::{FieldSpec, FieldType, arrow_type};

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;

/// A table in a Parquet file.
#[derive(Debug, Clone)]
pub struct ShadowTable {
    /// The file.
    pub path: PathBuf,
    /// Its columns; others of the file are not looked at.
    pub fields: Vec<FieldSpec>,
}

/// What the rows of two tables are, and how they meet.
pub(super) struct RowsOf<'a> {
    /// `row`, `event`.
    pub(super) kind: &'a str,
    /// The dataset, without its layer.
    pub(super) dataset: &'a str,
    /// Both are sorted by these columns, and rows with equal values in them meet.
    pub(super) key: &'a [String],
    /// Columns of the key that are told only where they are not null.
    pub(super) optional: usize,
    /// Whether nulls come first.
    pub(super) nulls_first: bool,
    /// Whether a column is left out.
    pub(super) is_ignored: &'a dyn Fn(&str) -> bool,
}

/// Compares both, item by item.
///
/// # Errors
/// `PreconditionFailed` for a column of the key that only one has, or that has two types.
pub(super) fn compare_tables(
    of: &RowsOf<'_>,
    (old, new): (&ShadowTable, &ShadowTable),
    take: &mut dyn FnMut(Compared) -> Result<()>,
) -> Result<()> {
    check_key(of.key, old, new)?;
    let (mut left, mut right) = (Side::open(old, of)?, Side::open(new, of)?);
    let mut columns = Columns::of(of, old, new);
    loop {
        let order = match (&left.at, &right.at) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.keys.row(a.row).cmp(&b.keys.row(b.row)),
        };
        match order {
            Ordering::Less => {
                take(left.alone(of, &columns, ItemVerdict::OnlyOld)?)?;
                left.step()?;
            }
            Ordering::Greater => {
                take(right.alone(of, &columns, ItemVerdict::OnlyNew)?)?;
                right.step()?;
            }
            Ordering::Equal => {
                if let (Some(a), Some(b)) = (&left.at, &right.at) {
                    columns.meet((left.batches, &a.batch), (right.batches, &b.batch))?;
                    let differences = columns.differences((a, b))?;
                    take(met(of, &left, differences)?)?;
                }
                left.step()?;
                right.step()?;
            }
        }
    }
}

fn met(of: &RowsOf<'_>, left: &Side, differences: Vec<Difference>) -> Result<Compared> {
    let is_equal = differences.is_empty();
    Ok(Compared {
        kind: of.item(),
        // Nobody reads the keys of what agrees.
        key: match is_equal {
            true => String::new(),
            false => left.key(of)?,
        },
        verdict: match is_equal {
            true => ItemVerdict::Agree,
            false => ItemVerdict::Changed,
        },
        differences,
    })
}

impl RowsOf<'_> {
    fn item(&self) -> String {
        format!("{} {}", self.kind, self.dataset)
    }
}

fn check_key(key: &[String], old: &ShadowTable, new: &ShadowTable) -> Result<()> {
    for name in key {
        let of = |table: &ShadowTable| table.fields.iter().find(|f| f.name == *name).cloned();
        let (old, new) = (of(old), of(new));
        let (Some(old), Some(new)) = (old, new) else {
            return Err(Error::precondition(format!(
                "`{name}` is a column of the key, and only one of both has it"
            ))
            .hint("rows of both meet by their key: give it in both"));
        };
        let type_of = |field: &FieldSpec| arrow_type(field, &field.field_type);
        if type_of(&old) != type_of(&new) {
            return Err(Error::precondition(format!(
                "`{name}` is a column of the key, and is {} in one and {} in the other",
                old.field_type, new.field_type
            ))
            .hint("rows of both meet by their key: give it one type"));
        }
    }
    Ok(())
}

fn failed(action: &str, e: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::internal(action).caused_by(e)
}

/// A row of a side.
struct At {
    batch: RecordBatch,
    keys: Rows,
    row: usize,
}

/// One of both tables, at a row.
struct Side {
    path: PathBuf,
    reader: ParquetRecordBatchReader,
    /// For each wanted column: its place in the file.
    places: Vec<usize>,
    fields: Vec<FieldSpec>,
    converter: RowConverter,
    /// Places of the key among the wanted columns.
    key: Vec<usize>,
    at: Option<At>,
    /// How many batches were read.
    batches: usize,
    /// How many rows with this key came before.
    same: usize,
}

impl Side {
    fn open(table: &ShadowTable, of: &RowsOf<'_>) -> Result<Self> {
        let path = &table.path;
        let file = File::open(path).map_err(|e| Error::io("open the file", path.display(), e))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file)
            .map_err(|e| failed("read what was just written", e))?;
        let mut places = Vec::new();
        for field in &table.fields {
            let place = builder.schema().index_of(&field.name);
            places.push(place.map_err(|e| failed("find a column of what was just written", e))?);
        }
        let place = |name: &String| table.fields.iter().position(|f| f.name == *name);
        let key: Vec<usize> = of.key.iter().filter_map(place).collect();
        let options = SortOptions {
            descending: false,
            nulls_first: of.nulls_first,
        };
        let sorted = key.iter().map(|at| {
            let field = &table.fields[*at];
            SortField::new_with_options(arrow_type(field, &field.field_type), options)
        });
        let mut side = Self {
            converter: RowConverter::new(sorted.collect())
                .map_err(|e| failed("compare keys", e))?,
            path: path.clone(),
            reader: builder
                .with_batch_size(BATCH_ROWS)
                .build()
                .map_err(|e| failed("read what was just written", e))?,
            places,
            fields: table.fields.clone(),
            key,
            at: None,
            batches: 0,
            same: 0,
        };
        side.at = side.next_batch()?;
        Ok(side)
    }

    fn next_batch(&mut self) -> Result<Option<At>> {
        loop {
            let batch = self.reader.next().transpose();
            let batch = batch.map_err(|e| {
                failed("read what was just written", e).with("file", self.path.display())
            })?;
            let Some(batch) = batch else {
                return Ok(None);
            };
            if batch.num_rows() == 0 {
                continue;
            }
            self.batches += 1;
            let batch = self.arrange(&batch)?;
            let key: Vec<ArrayRef> = self.key.iter().map(|k| batch.column(*k).clone()).collect();
            let keys = self
                .converter
                .convert_columns(&key)
                .map_err(|e| failed("compare keys", e))?;
            return Ok(Some(At {
                batch,
                keys,
                row: 0,
            }));
        }
    }

    /// The wanted columns, in the types of their fields.
    fn arrange(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = Vec::new();
        for (field, place) in self.fields.iter().zip(&self.places) {
            let column = batch.column(*place);
            let wanted = arrow_type(field, &field.field_type);
            let is_map = matches!(wanted, DataType::Map(_, _));
            let fits = is_map || *column.data_type() == wanted;
            let column = match fits {
                true => column.clone(),
                false => arrow_cast::cast(column, &wanted).map_err(|e| {
                    failed("bring a column into the type of its field", e)
                        .with("column", &field.name)
                })?,
            };
            columns.push((field.name.clone(), column, true));
        }
        RecordBatch::try_from_iter_with_nullable(columns)
            .map_err(|e| failed("put the columns of a table together", e))
    }

    fn step(&mut self) -> Result<()> {
        let Some(mut at) = self.at.take() else {
            return Ok(());
        };
        let before = at.keys.row(at.row).owned();
        at.row += 1;
        self.at = match at.row < at.batch.num_rows() {
            true => Some(at),
            false => self.next_batch()?,
        };
        let order = self
            .at
            .as_ref()
            .map(|at| before.row().cmp(&at.keys.row(at.row)));
        match order {
            Some(Ordering::Equal) => self.same += 1,
            Some(Ordering::Less) | None => self.same = 0,
            Some(Ordering::Greater) => {
                return Err(
                    Error::internal("rows came in another order than their key's")
                        .with("file", self.path.display()),
                );
            }
        }
        Ok(())
    }

    /// The key for people: the value of the one column, a JSON list of several.
    fn key(&self, of: &RowsOf<'_>) -> Result<String> {
        let Some(at) = &self.at else {
            return Ok(String::new());
        };
        let mut values = Vec::new();
        for (n, place) in self.key.iter().enumerate() {
            let column = at.batch.column(*place);
            if n + of.optional >= self.key.len() && column.is_null(at.row) {
                continue;
            }
            values.push(value_of(column, at.row, &self.fields[*place]));
        }
        let text = match values.as_slice() {
            [Value::String(text)] => text.clone(),
            [value] => value.to_string(),
            _ => Value::Array(values).to_string(),
        };
        Ok(shown_key(&text, self.same))
    }

    /// A row that the other side does not have.
    fn alone(&self, of: &RowsOf<'_>, columns: &Columns, verdict: ItemVerdict) -> Result<Compared> {
        let mut row = Map::new();
        if let Some(at) = &self.at {
            for (field, column) in self.fields.iter().zip(at.batch.columns()) {
                if !columns.ignored.contains(&field.name) {
                    row.insert(field.name.clone(), value_of(column, at.row, field));
                }
            }
        }
        let name = (of.item(), self.key(of)?);
        Ok(Compared::one_sided(name, verdict, Value::Object(row)))
    }
}

/// Both columns in one type, where a value of one may be one of the other: whole numbers and decimals.
fn in_one_type(a: &ArrayRef, b: &ArrayRef) -> Option<(ArrayRef, ArrayRef)> {
    use DataType::{Decimal128, Int64};
    let scale = match (a.data_type(), b.data_type()) {
        (a_type, b_type) if a_type.equals_datatype(b_type) => {
            return Some((a.clone(), b.clone()));
        }
        (Decimal128(_, one), Decimal128(_, other)) => *one.max(other),
        (Int64, Decimal128(_, scale)) | (Decimal128(_, scale), Int64) => *scale,
        _ => return None,
    };
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let wide = Decimal128(DECIMAL128_MAX_PRECISION, scale);
    let cast = |column| cast_with_options(column, &wide, &options).ok();
    cast(a).zip(cast(b))
}

/// A value as JSON; decimals as their digits.
fn value_of(column: &ArrayRef, row: usize, field: &FieldSpec) -> Value {
    let text = json_of(column, row, field.field_type == FieldType::Json);
    match column.data_type() {
        _ if column.is_null(row) => Value::Null,
        DataType::Decimal128(_, _) => Value::String(text),
        _ => serde_json::from_str(&text).unwrap_or(Value::String(text)),
    }
}

/// A column that is compared.
struct Column {
    old: Option<(usize, FieldSpec)>,
    new: Option<(usize, FieldSpec)>,
    name: String,
    /// Of the batches that meet; absent where types differ.
    compare: Option<DynComparator>,
}

/// The columns of both beside the key and what is ignored.
struct Columns {
    columns: Vec<Column>,
    ignored: Vec<String>,
    /// The batches that `compare` is of.
    met: Option<(usize, usize)>,
}

impl Columns {
    fn of(of: &RowsOf<'_>, old: &ShadowTable, new: &ShadowTable) -> Self {
        let place = |table: &ShadowTable, name: &str| {
            let at = table.fields.iter().position(|f| f.name == name)?;
            Some((at, table.fields[at].clone()))
        };
        let has = |name: &String| old.fields.iter().any(|f| f.name == *name);
        let names = old.fields.iter().map(|f| f.name.clone());
        let others = new.fields.iter().map(|f| f.name.clone());
        let names: Vec<String> = names.chain(others.filter(|n| !has(n))).collect();
        let (ignored, compared): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| (of.is_ignored)(name));
        let columns = compared.into_iter().filter(|name| !of.key.contains(name));
        Self {
            columns: columns
                .map(|name| Column {
                    old: place(old, &name),
                    new: place(new, &name),
                    name,
                    compare: None,
                })
                .collect(),
            ignored,
            met: None,
        }
    }

    /// Makes the comparisons of two batches, once.
    fn meet(
        &mut self,
        (old_number, old): (usize, &RecordBatch),
        (new_number, new): (usize, &RecordBatch),
    ) -> Result<()> {
        if self.met == Some((old_number, new_number)) {
            return Ok(());
        }
        for column in &mut self.columns {
            let (Some((a, _)), Some((b, _))) = (&column.old, &column.new) else {
                continue;
            };
            let (a, b) = (old.column(*a), new.column(*b));
            column.compare = match in_one_type(a, b) {
                Some((a, b)) => Some(
                    make_comparator(&a, &b, SortOptions::default())
                        .map_err(|e| failed("compare a column", e))?,
                ),
                None => None,
            };
        }
        self.met = Some((old_number, new_number));
        Ok(())
    }

    /// Where the rows differ; the batches have met.
    fn differences(&self, (old, new): (&At, &At)) -> Result<Vec<Difference>> {
        let mut all = Vec::new();
        for column in &self.columns {
            let is_equal = column.compare.as_ref();
            if is_equal.is_some_and(|compare| compare(old.row, new.row).is_eq()) {
                continue;
            }
            let of = |at: &At, place: &Option<(usize, FieldSpec)>| {
                let (place, field) = place.as_ref()?;
                Some(value_of(at.batch.column(*place), at.row, field))
            };
            let (expected, found) = (of(old, &column.old), of(new, &column.new));
            let within = |value: &Option<Value>| {
                let members = value.iter().map(|v| (column.name.clone(), v.clone()));
                Value::Object(members.collect())
            };
            let mut differing = differences(&within(&expected), &within(&found));
            // Of one text, and not the same: a number within a list that has more digits than it is told with.
            if differing.is_empty() && is_equal.is_some() {
                differing.push(Difference {
                    path: format!("$.{}", column.name),
                    expected,
                    found,
                });
            }
            all.append(&mut differing);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests;
