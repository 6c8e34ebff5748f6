use std::fs::File;
use std::sync::Arc;

use arrow_array::{Int64Array, StringArray};
use arrow_schema::{Field, Schema};
use parquet::arrow::ArrowWriter;

use super::*;

/// City and count.
type Row = (Option<&'static str>, i64);

/// A table in a file of its own.
fn table(folder: &tempfile::TempDir, name: &str, rows: &[Row]) -> ShadowTable {
    let path = folder.path().join(name);
    let schema = Arc::new(Schema::new(vec![
        Field::new("city", DataType::Utf8, true),
        Field::new("n", DataType::Int64, true),
    ]));
    let cities: StringArray = rows.iter().map(|(city, _)| *city).collect();
    let counts: Int64Array = rows.iter().map(|(_, n)| Some(*n)).collect();
    let batch = RecordBatch::try_new(
        Arc::clone(&schema),
        vec![Arc::new(cities), Arc::new(counts)],
    );
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), schema, None).unwrap();
    writer.write(&batch.unwrap()).unwrap();
    writer.close().unwrap();
    ShadowTable {
        path,
        fields: vec![
            FieldSpec::new(1, "city", FieldType::String),
            FieldSpec::new(2, "n", FieldType::Int),
        ],
    }
}

fn compared(
    key: &[&str],
    nulls_first: bool,
    (old, new): (&[Row], &[Row]),
) -> Result<Vec<(String, ItemVerdict)>> {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (
        table(&folder, "old.parquet", old),
        table(&folder, "new.parquet", new),
    );
    let key: Vec<String> = key.iter().map(|k| (*k).to_owned()).collect();
    let of = RowsOf {
        kind: "row",
        dataset: "a",
        key: &key,
        optional: 0,
        nulls_first,
        is_ignored: &|_| false,
    };
    let mut items = Vec::new();
    compare_tables(&of, (&old, &new), &mut |item| {
        if item.verdict != ItemVerdict::Agree {
            items.push((item.key, item.verdict));
        }
        Ok(())
    })?;
    Ok(items)
}

#[test]
fn rows_meet_by_key_and_the_second_meets_the_second() {
    let told = compared(
        &["city"],
        false,
        (
            &[(Some("a"), 1), (Some("b"), 1), (Some("b"), 2), (None, 5)],
            &[
                (Some("b"), 1),
                (Some("b"), 3),
                (Some("b"), 4),
                (Some("臺"), 1),
                (None, 5),
            ],
        ),
    )
    .unwrap();
    let named = |key: &str, verdict| (key.to_owned(), verdict);
    assert_eq!(
        told,
        [
            named("a", ItemVerdict::OnlyOld),
            named("b #2", ItemVerdict::Changed),
            named("b #3", ItemVerdict::OnlyNew),
            named("臺", ItemVerdict::OnlyNew),
        ]
    );
}

#[test]
fn whole_rows_are_a_multiset() {
    let rows: [Row; 3] = [(Some("a"), 1), (Some("a"), 1), (Some("a"), 2)];
    assert_eq!(compared(&["city", "n"], false, (&rows, &rows)).unwrap(), []);
    let told = compared(&["city", "n"], false, (&rows, &rows[1..])).unwrap();
    assert_eq!(told, [("[\"a\",1] #2".to_owned(), ItemVerdict::OnlyOld)]);
}

#[test]
fn rows_in_another_order_are_refused() {
    let (up, down): ([Row; 2], [Row; 2]) = (
        [(Some("a"), 1), (Some("b"), 1)],
        [(Some("b"), 1), (Some("a"), 1)],
    );
    assert!(compared(&["city"], false, (&up, &down)).is_err());
    // Nulls last where nulls are said to come first.
    let last = [(Some("a"), 1), (None, 1)];
    assert!(compared(&["city"], true, (&last, &last)).is_err());
}
