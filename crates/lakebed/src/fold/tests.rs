//! The engine over rows that are written down here: windows of few keys, sorted runs on disk, ties.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Int64Type};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use super::*;
use crate::fold::sort::gather;
use crate::time::BusinessDate;

fn schema() -> SchemaRef {
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let types = [
        DataType::Utf8,
        instant,
        DataType::Date32,
        DataType::Boolean,
        DataType::Int64,
    ];
    let fields = types
        .into_iter()
        .zip(0..)
        .map(|(t, n)| Field::new(format!("c{n}"), t, true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Rows of (key, instant, value).
fn batch(rows: &[(Option<&str>, Option<i64>, i64)]) -> RecordBatch {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter(rows.iter().map(|r| r.0))),
        Arc::new(
            TimestampMicrosecondArray::from_iter(rows.iter().map(|r| r.1)).with_timezone("UTC"),
        ),
        Arc::new(Date32Array::from_value(20_000, rows.len())),
        Arc::new(BooleanArray::from(vec![false; rows.len()])),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|r| r.2))),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn sorted(batches: &[RecordBatch], budget: usize) -> (Vec<(String, i64)>, (u64, u64)) {
    let dir = tempfile::tempdir().unwrap();
    let mut sorter = DaySorter::new(schema(), 1, budget, dir.path().to_owned()).unwrap();
    for batch in batches {
        sorter.push(batch.clone()).unwrap();
    }
    let counts = sorter.counts();
    let batches: Vec<RecordBatch> = match sorter.finish().unwrap() {
        DayRows::Held { batches, order, .. } => vec![gather(&schema(), &batches, &order).unwrap()],
        DayRows::Merged(batches) => batches.map(|b| b.unwrap()).collect(),
    };
    let mut rows = Vec::new();
    for batch in &batches {
        let (keys, values) = (
            batch.column(0).as_string::<i32>(),
            batch.column(4).as_primitive::<Int64Type>(),
        );
        rows.extend((0..batch.num_rows()).map(|i| (keys.value(i).to_owned(), values.value(i))));
    }
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "runs are left"
    );
    (rows, counts)
}

#[test]
fn rows_are_sorted_alike_in_memory_and_on_disk() {
    let mut batches = Vec::new();
    let mut value = 0;
    for n in 0..40_i64 {
        let rows: Vec<(String, Option<i64>)> = (0..250_i64)
            .map(|i| {
                let key = format!("鍵{}", (i * 7919 + n * 104_729) % 997);
                (key, (i % 5 != 0).then_some((i * 31 + n) % 13))
            })
            .collect();
        let rows: Vec<(Option<&str>, Option<i64>, i64)> = rows
            .iter()
            .map(|(key, at)| {
                value += 1;
                ((value % 101 != 0).then_some(key.as_str()), *at, value)
            })
            .collect();
        batches.push(batch(&rows));
    }
    let (held, counts) = sorted(&batches, usize::MAX);
    assert_eq!(counts.0 + counts.1, 10_000);
    assert_eq!(counts.1, 99);
    assert!(held.windows(2).all(|w| w[0].0 <= w[1].0));
    for budget in [0, 100_000, 400_000] {
        let (merged, again) = sorted(&batches, budget);
        assert_eq!((&merged, again), (&held, counts), "{budget}");
    }
}

#[test]
fn windows_hold_every_row_of_their_keys_wherever_batches_end() {
    let previous = Arc::new(Schema::new(vec![
        Field::new("k", DataType::Utf8, true),
        Field::new("v", DataType::Int64, true),
    ]));
    let old: Vec<String> = (0..100).step_by(2).map(|n| format!("{n:03}")).collect();
    let rows: Vec<(String, i64)> = (0..300)
        .map(|n| (format!("{:03}", (n * 37) % 100), n))
        .collect();
    for (chunk, keys) in [(1, 1), (7, 3), (50, 10), (1000, 1000)] {
        let batches: Vec<crate::Result<RecordBatch>> = old
            .chunks(chunk)
            .map(|part| {
                let columns: Vec<ArrayRef> = vec![
                    Arc::new(StringArray::from_iter_values(part)),
                    Arc::new(Int64Array::from_iter_values(
                        part.iter().map(|k| k.parse::<i64>().unwrap()),
                    )),
                ];
                Ok(RecordBatch::try_new(Arc::clone(&previous), columns).unwrap())
            })
            .collect();
        let dir = tempfile::tempdir().unwrap();
        let mut sorter = DaySorter::new(
            schema(),
            1,
            if chunk == 7 { 0 } else { usize::MAX },
            dir.path().to_owned(),
        )
        .unwrap();
        for part in rows.chunks(chunk) {
            let part: Vec<(Option<&str>, Option<i64>, i64)> = part
                .iter()
                .map(|(key, n)| (Some(key.as_str()), None, *n))
                .collect();
            sorter.push(batch(&part)).unwrap();
        }
        let input = (schema(), sorter.finish().unwrap());
        let streams = (
            Arc::clone(&previous),
            Box::new(batches.into_iter()) as Box<_>,
        );
        let windows = Windows::new(1, streams, vec![input]).unwrap().of_keys(keys);
        let mut next = 0;
        for window in windows {
            let window = window.unwrap();
            assert!(!window.is_empty() && window.len() <= keys);
            for key in 0..window.len() {
                let text = format!("{next:03}");
                assert_eq!(window.previous[key].is_some(), next % 2 == 0, "{text}");
                if let Some((b, r)) = window.previous[key] {
                    assert_eq!(
                        window.old[b as usize]
                            .column(0)
                            .as_string::<i32>()
                            .value(r as usize),
                        text
                    );
                }
                let input = &window.inputs[0];
                let values: Vec<i64> = input
                    .of(key)
                    .iter()
                    .map(|(b, r)| {
                        let batch = &input.batches[*b as usize];
                        assert_eq!(batch.column(0).as_string::<i32>().value(*r as usize), text);
                        assert_eq!(
                            batch
                                .column(2)
                                .as_primitive::<Date32Type>()
                                .value(*r as usize),
                            20_000
                        );
                        batch
                            .column(4)
                            .as_primitive::<Int64Type>()
                            .value(*r as usize)
                    })
                    .collect();
                // As they came.
                assert_eq!(values.len(), 3);
                assert!(values.is_sorted());
                next += 1;
            }
        }
        assert_eq!(next, 100);
    }
}

#[test]
fn a_snapshot_out_of_order_is_refused() {
    let previous = Arc::new(Schema::new(vec![Field::new("k", DataType::Utf8, true)]));
    let column: ArrayRef = Arc::new(StringArray::from(vec!["b", "a"]));
    let batch = RecordBatch::try_new(Arc::clone(&previous), vec![column]).unwrap();
    let streams = (previous, Box::new(std::iter::once(Ok(batch))) as Box<_>);
    let windows = Windows::new(1, streams, Vec::new()).unwrap();
    let error = windows.collect::<crate::Result<Vec<_>>>().err().unwrap();
    assert!(error.message().contains("not in order"), "{error}");
}

#[test]
fn addresses_hold_unreserved_characters_alone() {
    assert_eq!(percent_encoded("a-Z_0.~"), "a-Z_0.~");
    assert_eq!(percent_encoded("甲/1 %&?"), "%E7%94%B2%2F1%20%25%26%3F");
    assert!(BusinessDate::from_days(20_000).is_some());
}
