//! Statistics from footers: every type, exactness, damage.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float64Array,
    Int64Array, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::basic::ColumnOrder;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::statistics::Statistics;

use super::*;
use crate::catalog::footer::{Chunk, Order};
use crate::catalog::testlog::{dataset, file, key, new_lake, put, small_parquet, write_parquet};
use crate::catalog::{ColumnStats, StatValue};
use crate::name::ContentHash;

fn with_id(field: Field, id: u32) -> Field {
    let id = ("PARQUET:field_id".to_owned(), id.to_string());
    field.with_metadata(HashMap::from([id]))
}

/// Each inner list is a row group of one column with id 1.
fn stats_of(groups: &[ArrayRef]) -> ColumnStats {
    let mut columns = all_stats_of(groups, WriterProperties::new());
    assert_eq!(columns.len(), 1);
    columns.remove(0)
}

fn all_stats_of(groups: &[ArrayRef], properties: WriterProperties) -> Vec<ColumnStats> {
    let field = with_id(Field::new("列", groups[0].data_type().clone(), true), 1);
    let schema = Arc::new(Schema::new(vec![field]));
    let batches: Vec<RecordBatch> = groups
        .iter()
        .map(|g| RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(g)]).unwrap())
        .collect();
    let footer = footer_of_file(&write_parquet(&batches, properties));
    assert_eq!(hold_against_parquet(&footer), groups.len());
    column_stats(&footer)
}

/// What the footer says of its columns.
fn column_stats(footer: &[u8]) -> Vec<ColumnStats> {
    let mut last = LastSchema::default();
    let (_, stats) = last.of(footer).unwrap().stats(footer).unwrap();
    stats.unpack().unwrap()
}

fn footer_of_file(bytes: &[u8]) -> Vec<u8> {
    let needed = footer_bytes(bytes, bytes.len() as u64).unwrap();
    bytes[bytes.len() - needed..bytes.len() - FOOTER_TAIL_BYTES].to_vec()
}

/// Ours is what Parquet's own reader makes of a footer; answers how many row groups there are.
fn hold_against_parquet(footer: &[u8]) -> usize {
    let metadata = ParquetMetaDataReader::decode_metadata(footer).unwrap();
    let of_file = metadata.file_metadata();
    let end = schema_end(footer).unwrap();
    let wanted = vec![true; of_file.schema_descr().num_columns()];
    let ours = Footer::read(&footer[end..], &wanted).unwrap();
    assert_eq!(ours.rows, of_file.num_rows());
    let groups = metadata.row_groups();
    let rows: Vec<_> = groups.iter().map(|g| u64::try_from(g.num_rows())).collect();
    assert_eq!(ours.groups.iter().map(|n| Ok(*n)).collect::<Vec<_>>(), rows);
    let theirs: Vec<_> = groups.iter().flat_map(|g| g.columns()).collect();
    assert_eq!(ours.chunks.len(), theirs.len());
    for (ours, theirs) in ours.chunks.iter().zip(theirs) {
        let Some(theirs) = theirs.statistics() else {
            assert_eq!(*ours, Chunk::default());
            continue;
        };
        assert_eq!(ours.min, theirs.min_bytes_opt());
        assert_eq!(ours.max, theirs.max_bytes_opt());
        assert_eq!(ours.null_count, theirs.null_count_opt());
        assert_eq!(ours.is_old, theirs.is_min_max_deprecated());
        if matches!(
            theirs,
            Statistics::ByteArray(_) | Statistics::FixedLenByteArray(_)
        ) {
            assert_eq!(ours.min_exact, theirs.min_is_exact());
            assert_eq!(ours.max_exact, theirs.max_is_exact());
        }
    }
    let typed = |order: &ColumnOrder| match order {
        ColumnOrder::TYPE_DEFINED_ORDER(_) => Order::Typed,
        ColumnOrder::UNDEFINED | ColumnOrder::UNKNOWN => Order::Unknown,
    };
    let orders = of_file
        .column_orders()
        .map(|o| o.iter().map(typed).collect());
    assert_eq!(ours.orders, orders);
    groups.len()
}

fn ints(values: &[Option<i64>]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

fn floats(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn int_bounds(s: &ColumnStats) -> (Option<StatValue>, Option<StatValue>) {
    (s.min.clone(), s.max.clone())
}

#[test]
fn row_groups_merge() {
    let s = stats_of(&[
        ints(&[Some(5), None, Some(7)]),
        ints(&[None, None]),
        ints(&[Some(i64::MAX), Some(i64::MIN), None]),
    ]);
    assert_eq!(s.null_count, Some(4));
    assert_eq!(
        int_bounds(&s),
        (
            Some(StatValue::Int(i64::MIN)),
            Some(StatValue::Int(i64::MAX))
        )
    );
    assert!(s.min_exact && s.max_exact);
    assert_eq!((s.field_id, s.name.as_str()), (1, "列"));
}

#[test]
fn columns_of_nulls_have_no_bounds() {
    let s = stats_of(&[ints(&[None, None])]);
    assert_eq!((s.null_count, s.min, s.max), (Some(2), None, None));
}

#[test]
fn nan_is_no_bound_and_takes_none_away_wrongly() {
    let s = stats_of(&[floats(&[1.0, f64::NAN, 3.0])]);
    assert_eq!(
        int_bounds(&s),
        (Some(StatValue::Float(1.0)), Some(StatValue::Float(3.0)))
    );
    assert!(!s.min_exact && !s.max_exact);
    // A row group of NaN alone has no bounds, so the file has none: it is not "empty".
    let s = stats_of(&[floats(&[1.0]), floats(&[f64::NAN])]);
    assert_eq!(int_bounds(&s), (None, None));
}

#[test]
fn zeros_stand_for_both_signs() {
    for zero in [0.0, -0.0] {
        let s = stats_of(&[floats(&[zero])]);
        let (Some(StatValue::Float(min)), Some(StatValue::Float(max))) = (s.min, s.max) else {
            panic!("no bounds");
        };
        assert!(min == 0.0 && min.is_sign_negative());
        assert!(max == 0.0 && max.is_sign_positive());
    }
    let s = stats_of(&[floats(&[f64::NEG_INFINITY, f64::INFINITY])]);
    assert_eq!(s.max, Some(StatValue::Float(f64::INFINITY)));
}

#[test]
fn decimals_of_every_width() {
    let decimals = |precision: u8, values: Vec<i128>| -> ArrayRef {
        let array = Decimal128Array::from(values);
        Arc::new(array.with_precision_and_scale(precision, 2).unwrap())
    };
    let big = 10_i128.pow(38) - 1;
    for (precision, low, high) in [
        (4, -1234, 99),
        (9, -999_999_999, 999_999_999),
        (18, -5, 10_i128.pow(18) - 1),
        (20, -(10_i128.pow(19)), 7),
        (38, -big, big),
    ] {
        let s = stats_of(&[
            decimals(precision, vec![0, high]),
            decimals(precision, vec![low]),
        ]);
        assert_eq!(s.min, Some(StatValue::Decimal(low)), "{precision}");
        assert_eq!(s.max, Some(StatValue::Decimal(high)), "{precision}");
        assert!(s.min_exact && s.max_exact);
    }
}

#[test]
fn long_texts_are_cut_but_stay_bounds() {
    let long = "微".repeat(100);
    let s = stats_of(&[texts(&["a", &long]), texts(&["b"])]);
    assert_eq!(s.min, Some(StatValue::Text("a".to_owned())));
    assert!(s.min_exact && !s.max_exact);
    let Some(StatValue::Text(max)) = s.max else {
        panic!("no bound");
    };
    assert!(max.len() < 100 && max > long, "{max}");
    let s = stats_of(&[texts(&["", "熱搜"])]);
    assert_eq!(s.min, Some(StatValue::Text(String::new())));
    assert!(s.max_exact);
}

#[test]
fn days_instants_and_bools_are_ints() {
    let s = stats_of(&[Arc::new(Date32Array::from(vec![-1, 19863]))]);
    assert_eq!(
        int_bounds(&s),
        (Some(StatValue::Int(-1)), Some(StatValue::Int(19863)))
    );
    let micros = TimestampMicrosecondArray::from(vec![1_583_139_530_139_668]).with_timezone("UTC");
    let s = stats_of(&[Arc::new(micros)]);
    assert_eq!(s.min, Some(StatValue::Int(1_583_139_530_139_668)));
    let s = stats_of(&[Arc::new(BooleanArray::from(vec![true, false]))]);
    assert_eq!(
        int_bounds(&s),
        (Some(StatValue::Int(0)), Some(StatValue::Int(1)))
    );
}

#[test]
fn what_has_another_order_or_unit_has_no_bounds() {
    let columns: [ArrayRef; 3] = [
        Arc::new(UInt64Array::from(vec![1, u64::MAX])),
        Arc::new(TimestampMillisecondArray::from(vec![1, 2])),
        Arc::new(BinaryArray::from(vec![&b"a"[..], &b"b"[..]])),
    ];
    for column in columns {
        let s = stats_of(&[Arc::clone(&column)]);
        assert_eq!(
            (s.null_count, s.min, s.max),
            (Some(0), None, None),
            "{:?}",
            column.data_type()
        );
    }
}

#[test]
fn files_without_statistics_say_unknown() {
    let properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::None)
        .build();
    let columns = all_stats_of(&[ints(&[Some(1), None])], properties);
    assert_eq!(columns[0].null_count, None);
    assert_eq!(int_bounds(&columns[0]), (None, None));
}

#[test]
fn nested_columns_and_columns_without_an_id_have_none() {
    let inner = with_id(Field::new("n", DataType::Int64, true), 3);
    let outer = StructArray::from(vec![(Arc::new(inner), ints(&[Some(1)]))]);
    let fields = vec![
        Field::new("plain", DataType::Int64, true),
        with_id(Field::new("s", outer.data_type().clone(), true), 2),
        with_id(Field::new("last", DataType::Int64, true), 9),
    ];
    let columns: Vec<ArrayRef> = vec![ints(&[Some(4)]), Arc::new(outer), ints(&[Some(8)])];
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let footer = footer_of_file(&write_parquet(&[batch], WriterProperties::new()));
    hold_against_parquet(&footer);
    let columns = column_stats(&footer);
    assert_eq!(columns.len(), 1);
    assert_eq!(columns[0].name, "last");
    assert_eq!(columns[0].max, Some(StatValue::Int(8)));
}

/// What reading a file with these bytes answers, when the log says `spec` of it.
async fn read(bytes: &[u8], spec: &DataFileSpec) -> Result<Option<FileStats>> {
    let dir = tempfile::tempdir().unwrap();
    let lake = new_lake(&dir).await;
    let p = key("2024-05-20", 1, 0);
    put(&lake, &data_file_path(&dataset(), &p, &spec.name), bytes).await;
    read_footer_stats(
        &lake,
        &dataset(),
        &p,
        spec,
        None,
        &mut LastSchema::default(),
    )
    .await
}

#[tokio::test]
async fn corrupt_files_are_named() {
    let (good, spec) = small_parquet("a.parquet", &[1, 2, 3]);
    assert!(read(&good, &spec).await.unwrap().is_some());
    let end = good.len();
    let mut attacks: Vec<Vec<u8>> = vec![
        Vec::new(),
        b"PAR1".to_vec(),
        good[..end - 1].to_vec(),
        good[..end / 2].to_vec(),
    ];
    let mut huge = good.clone();
    huge[end - 8..end - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    attacks.push(huge);
    let mut short = good.clone();
    short[end - 8..end - 4].copy_from_slice(&3_u32.to_le_bytes());
    attacks.push(short);
    let mut encrypted = good.clone();
    encrypted[end - 4..].copy_from_slice(b"PARE");
    attacks.push(encrypted);
    let mut garbled = good.clone();
    garbled[end - 60..end - 8].fill(0xff);
    attacks.push(garbled);
    for bytes in attacks {
        let mut spec = spec.clone();
        spec.bytes = bytes.len() as u64;
        let error = read(&bytes, &spec).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptData, "{error}");
        assert!(error.to_string().contains("schema_version=1/a.parquet"));
    }
    let mut rows = spec.clone();
    rows.rows = 4;
    assert_eq!(
        read(&good, &rows).await.unwrap_err().kind(),
        ErrorKind::CorruptData
    );
    let mut size = spec.clone();
    size.bytes += 1;
    assert_eq!(
        read(&good, &size).await.unwrap_err().kind(),
        ErrorKind::CorruptData
    );
}

/// The footer of a file of one row, whose columns have these names.
fn footer_of(names: &[&str]) -> Vec<u8> {
    let fields = names.iter().zip(1..);
    let fields: Vec<Field> = fields
        .map(|(name, id)| with_id(Field::new(*name, DataType::Int64, true), id))
        .collect();
    let columns = names.iter().map(|_| ints(&[Some(1)])).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    footer_of_file(&write_parquet(&[batch], WriterProperties::new()))
}

#[test]
fn any_damage_to_a_footer_is_an_error_or_harmless() {
    let (good, spec) = small_parquet("a.parquet", &[1, 2, 3]);
    let good = footer_of_file(&good);
    let known = LastSchema::default().of(&good).unwrap().begin.len();
    let (mut refused, mut read) = (0, 0);
    for at in 0..good.len() {
        for flip in [0x01, 0x55, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[at] ^= flip;
            // No panic: an error, or statistics of something else.
            let mut last = LastSchema::default();
            let found = last.of(&bytes).and_then(|known| known.stats(&bytes));
            *if found.is_ok() {
                &mut read
            } else {
                &mut refused
            } += 1;
            // With the schema of the undamaged one, it is the same.
            last.of(&good).unwrap();
            let after = last.of(&bytes).and_then(|known| known.stats(&bytes));
            if at >= known {
                assert_eq!(after.ok(), found.ok(), "byte {at}");
            } else {
                assert_eq!(after.is_ok(), found.is_ok(), "byte {at}");
            }
        }
    }
    assert!(refused > 0 && read > 0);
    for length in 0..good.len() {
        let mut last = LastSchema::default();
        let cut = &good[..length];
        assert!(
            last.of(cut).and_then(|known| known.stats(cut)).is_err(),
            "{length}"
        );
    }
    assert_eq!(spec.rows, 3);
}

#[test]
fn a_schema_is_taken_again_for_the_same_bytes_alone() {
    let mut last = LastSchema::default();
    for names in [
        &["a", "價格"][..],
        &["a"],
        &["a", "價格"],
        &["a", "價錢"],
        &["a", "b", "c"],
    ] {
        let footer = footer_of(names);
        let known = last.of(&footer).unwrap();
        assert!(known.begin.len() < footer.len());
        let shape = Arc::clone(&known.shape);
        let again = last.of(&footer).unwrap();
        assert!(Arc::ptr_eq(&again.shape, &shape));
        let (rows, stats) = again.stats(&footer).unwrap();
        assert_eq!(rows, 1);
        let found = stats.unpack().unwrap();
        let found: Vec<&str> = found.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(found, names);
        let mut alone = LastSchema::default();
        assert_eq!(alone.of(&footer).unwrap().stats(&footer).unwrap().1, stats);
    }
}

#[tokio::test]
async fn a_footer_larger_than_the_first_read_is_read_whole() {
    let fields: Vec<Field> = (0..2000)
        .map(|i| {
            with_id(
                Field::new(format!("欄位_{i:04}"), DataType::Int64, true),
                i + 1,
            )
        })
        .collect();
    let columns: Vec<ArrayRef> = (0..2000).map(|i| ints(&[Some(i), None])).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let bytes = write_parquet(&[batch], WriterProperties::new());
    let mut spec = file("wide.parquet", 2);
    spec.bytes = bytes.len() as u64;
    spec.blake3 = ContentHash::of(&bytes);
    let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().unwrap());
    assert!(footer > 65_536 * 2);
    let stats = read(&bytes, &spec).await.unwrap().unwrap();
    let columns = stats.columns.unpack().unwrap();
    assert_eq!(columns.len(), 2000);
    assert_eq!(columns[1999].min, Some(StatValue::Int(1999)));
}

#[tokio::test]
async fn an_absent_file_is_no_error_and_jsonl_has_no_columns() {
    let dir = tempfile::tempdir().unwrap();
    let lake = new_lake(&dir).await;
    let p = key("2024-05-20", 1, 0);
    let attempt = "attempt-1".parse().unwrap();
    let mut spec = file("a", 1);
    let read = read_footer_stats(
        &lake,
        &dataset(),
        &p,
        &spec,
        Some(&attempt),
        &mut LastSchema::default(),
    )
    .await;
    assert_eq!(read.unwrap(), None);
    spec.format = FileFormat::Jsonl;
    let read = read_footer_stats(
        &lake,
        &dataset(),
        &p,
        &spec,
        None,
        &mut LastSchema::default(),
    )
    .await;
    assert!(read.unwrap().unwrap().columns.is_empty());
}
