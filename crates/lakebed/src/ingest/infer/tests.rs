//! Tests of evidence and proposals.

mod real;

use super::*;
use crate::ingest::read::{ReadOptions, resolve_inputs};
use crate::spec::{FieldSpec, FieldType, ReadSpec};

fn evidence(files: &[(&str, &str)]) -> Evidence {
    let folder = tempfile::tempdir().unwrap();
    let args: Vec<String> = files
        .iter()
        .map(|(name, text)| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        })
        .collect();
    let sources = resolve_inputs(&args).unwrap();
    let options = ReadOptions::new(&ReadSpec::default())
        .unwrap()
        .with_chunk_bytes(16);
    gather(&sources, &options, None).unwrap()
}

fn proposed(name: &str, text: &str) -> InferredFields {
    propose_fields(&evidence(&[(name, text)]), &[], 1)
}

/// The type of the field `v` over records with these values.
fn type_of(values: &[&str]) -> String {
    let text: String = values.iter().map(|v| format!("{{\"v\":{v}}}\n")).collect();
    let inferred = proposed("a.jsonl", &text);
    assert!(!inferred.choices[0].reason.is_empty());
    inferred.fields[0].field_type.to_string()
}

fn column_type(cells: &[&str]) -> String {
    let text: String = cells.iter().map(|c| format!("x,{c}\n")).collect();
    let inferred = proposed("a.csv", &format!("k,v\n{text}"));
    inferred.fields[1].field_type.to_string()
}

#[test]
fn json_values_get_the_type_that_keeps_them() {
    let cases: [(&[&str], &str); 24] = [
        (&["1", "null", "-3"], "int"),
        (&["9223372036854775807"], "int"),
        (&["9223372036854775808", "1"], "decimal(20,0)"),
        (&["18446744073709551616"], "json"),
        (&["-9223372036854775809"], "json"),
        (&["1.5", "2"], "float"),
        (&["1.0"], "float"),
        (&["1.5", "9007199254740993"], "json"),
        (&["1e400"], "json"),
        (&["true", "false", "null"], "bool"),
        (&["true", "1"], "json"),
        (&["\"1\"", "\"2\""], "string"),
        (&["\"00123\""], "string"),
        (&["\"true\""], "string"),
        (&["1", "\"2\""], "json"),
        (&["\"2024-02-29\"", "null"], "date"),
        (&["\"2024-02-29\"", "\"\""], "string"),
        (&["\"2023-02-29\""], "string"),
        (&["\"2024-05-20T08:00:00.5+08:00\""], "timestamp"),
        (&["\"2024-05-20T24:00:00Z\""], "string"),
        (&["null"], "json"),
        (&["[]", "[null]"], "json"),
        (&["[1]", "[]", "[null,2]"], "list<int>"),
        (&["[[1.5]]", "[[\"a\"]]"], "list<list<json>>"),
    ];
    for (values, expected) in cases {
        assert_eq!(type_of(values), expected, "{values:?}");
    }
}

#[test]
fn cells_become_numbers_only_where_nothing_is_lost() {
    let cases: [(&[&str], &str); 13] = [
        (&["1", "", "-20"], "int"),
        (&["08", "10"], "string"),
        (&["1", "NA"], "string"),
        (&["1E5", "2E7"], "string"),
        (&["1.5", "2"], "float"),
        (&["1.50"], "float"),
        (&["0.12345678901234567890"], "string"),
        (&["18446744073709551615"], "decimal(20,0)"),
        (&["18446744073709551616"], "string"),
        (&["", ""], "string"),
        (&["true"], "string"),
        (&["+1"], "string"),
        (&["2024-05-20"], "date"),
    ];
    for (cells, expected) in cases {
        assert_eq!(column_type(cells), expected, "{cells:?}");
    }
}

#[test]
fn nested_members_get_ids_and_paths() {
    let inferred = proposed(
        "a.jsonl",
        "{\"u\":{\"n\":\"x\",\"t\":[{\"k\":1}]}}\n{\"u\":{\"t\":[{\"l\":true}]},\"z\":{}}\n",
    );
    let paths: Vec<(String, String)> = inferred
        .choices
        .iter()
        .map(|c| (c.path.clone(), c.field_type.to_string()))
        .collect();
    let expected = [
        ("u", "struct"),
        ("u.n", "string"),
        ("u.t", "list<struct>"),
        ("u.t[].k", "int"),
        ("u.t[].l", "bool"),
        ("z", "json"),
    ];
    assert_eq!(paths, expected.map(|(a, b)| (a.to_owned(), b.to_owned())));
    let u = &inferred.fields[0];
    assert_eq!(
        (
            u.id,
            u.fields[0].id,
            u.fields[1].id,
            u.fields[1].fields[1].id
        ),
        (1, 2, 3, 5)
    );
    assert_eq!(inferred.next_id, 7);
}

#[test]
fn existing_fields_stay_and_new_members_are_named_with_their_parent() {
    let mut old = FieldSpec::new(7, "u", FieldType::List(Box::new(FieldType::Struct)));
    old.fields.push(FieldSpec::new(8, "n", FieldType::Int));
    let mut renamed = FieldSpec::new(9, "title", FieldType::String);
    renamed.from = Some("t".into());
    let mut deep = FieldSpec::new(10, "city", FieldType::String);
    deep.from = Some("/place/city".into());
    let evidence = evidence(&[(
        "a.jsonl",
        "{\"u\":[{\"n\":\"late text\",\"m\":1}],\"t\":5,\"place\":{\"city\":\"x\"},\"new\":true}\n",
    )]);
    let existing = [old.clone(), renamed.clone(), deep.clone()];
    let inferred = propose_fields(&evidence, &existing, 20);
    assert_eq!(inferred.fields[0].fields[0], old.fields[0]);
    assert_eq!(inferred.fields[1..3], [renamed, deep]);
    let added: Vec<(Option<u32>, &str, u32)> = inferred
        .added
        .iter()
        .map(|a| (a.parent, a.field.name.as_str(), a.field.id))
        .collect();
    assert_eq!(added, [(Some(7), "m", 20), (None, "new", 21)]);
    assert_eq!(inferred.choices.len(), 2);
}

#[test]
fn names_that_are_not_free_get_another_column() {
    let inferred = proposed(
        "a.jsonl",
        "{\"source\":1,\"_id\":2,\"DT\":3,\"\":4,\"a\":5,\"A\":6,\"/x~y\":7,\"o\":{\"_id\":8}}\n",
    );
    let names: Vec<(&str, Option<&str>)> = inferred
        .fields
        .iter()
        .map(|f| (f.name.as_str(), f.from.as_deref()))
        .collect();
    let expected = [
        ("input_source", Some("source")),
        ("input_id", Some("_id")),
        ("input_DT", Some("DT")),
        ("unnamed", Some("")),
        ("a", None),
        ("A_2", Some("A")),
        ("x~y", Some("/~1x~0y")),
        ("o", None),
    ];
    assert_eq!(names, expected);
    assert_eq!(inferred.fields[7].fields[0].name, "_id");
}

#[test]
fn evidence_counts_kinds_absence_and_files() {
    let evidence = evidence(&[
        (
            "1.jsonl",
            "{\"a\":1,\"b\":\"\"}\n{\"a\":null}\nrubbish\n5\n",
        ),
        ("2.jsonl", "{\"a\":1.25,\"c\":\" \"}\n"),
        ("3.jsonl", "{\"c\":\"中\"} {\"a\":1}\n"),
    ]);
    assert_eq!((evidence.records, evidence.unreadable), (5, 2));
    assert!(
        evidence
            .first_unreadable
            .as_ref()
            .unwrap()
            .contains("line 3")
    );
    let root = &evidence.root;
    let a = root.find("a").unwrap();
    assert_eq!((a.kinds.int, a.kinds.float, a.kinds.null), (2, 1, 1));
    assert_eq!(root.absent(a), 1);
    assert_eq!((a.first_file, a.last_file), (0, 2));
    assert_eq!(a.numbers.max_fraction_digits, 2);
    assert_eq!(a.samples, ["1", "1.25"]);
    let (b, c) = (root.find("b").unwrap(), root.find("c").unwrap());
    assert_eq!((b.texts.empty, c.texts.blank, c.texts.other), (1, 1, 1));
    assert_eq!((c.first_file, c.last_file), (1, 2));
}

#[test]
fn distinct_values_and_samples_are_bounded() {
    let text: String = (0..100)
        .map(|n| format!("{{\"a\":\"{}{n}\"}}\n", "长".repeat(500)))
        .collect();
    let evidence = evidence(&[("a.jsonl", &text)]);
    let a = evidence.root.find("a").unwrap();
    assert!(a.has_more_distinct && a.samples.iter().all(|s| s.len() <= 200));
}

#[test]
fn depth_is_bounded() {
    let deep = format!("{}1{}", "{\"a\":".repeat(50_000), "}".repeat(50_000));
    let lists = format!("{{\"a\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let inferred = proposed("a.jsonl", &format!("{deep}\n{lists}\n"));
    assert_eq!(inferred.fields[0].field_type, FieldType::Json);
    let inferred = proposed("a.jsonl", &format!("{lists}\n"));
    assert!(
        inferred.fields[0]
            .field_type
            .to_string()
            .parse::<FieldType>()
            .is_ok()
    );
    let inferred = proposed("a.jsonl", &format!("{deep}\n"));
    assert_eq!(inferred.fields[0].field_type, FieldType::Struct);
}

#[test]
fn bytes_that_are_no_text_fail_with_their_offset() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    std::fs::write(&path, b"{\"a\":1}\n{\"a\":\"\xff\"}\n").unwrap();
    let sources = resolve_inputs(&[path.display().to_string()]).unwrap();
    let options = ReadOptions::new(&ReadSpec::default()).unwrap();
    let error = gather(&sources, &options, None).unwrap_err();
    assert!(
        error.context().contains(&("offset", "14".to_owned())),
        "{error}"
    );
    assert!(error.context().contains(&("line", "2".to_owned())));
}

#[test]
fn a_limit_stops_each_file_early() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    std::fs::write(&path, "[{\"a\":1},{\"a\":2},{\"a\":3}]").unwrap();
    let arg = path.display().to_string();
    let sources = resolve_inputs(&[arg.clone(), arg]).unwrap();
    let options = ReadOptions::new(&ReadSpec::default()).unwrap();
    let evidence = gather(&sources, &options, Some(2)).unwrap();
    assert_eq!(evidence.records, 4);
}

#[test]
fn typed_columns_keep_their_declared_types() {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, BooleanArray, Date32Array, Decimal128Array, Int32Array, RecordBatch, StringArray,
        StructArray, TimestampMicrosecondArray, UInt64Array,
    };
    use arrow_schema::{DataType, Field};

    let inner: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let pair = StructArray::from(vec![(
        Arc::new(Field::new("n", DataType::Int32, true)),
        inner,
    )]);
    let decimals = Decimal128Array::from(vec![1, 2])
        .with_precision_and_scale(12, 2)
        .unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("b", Arc::new(BooleanArray::from(vec![true, false]))),
        ("d", Arc::new(Date32Array::from(vec![1, 2]))),
        ("p", Arc::new(decimals)),
        ("t", Arc::new(TimestampMicrosecondArray::from(vec![1, 2]))),
        ("u", Arc::new(UInt64Array::from(vec![1, 2]))),
        ("s", Arc::new(StringArray::from(vec![Some("x"), None]))),
        ("o", Arc::new(pair)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let sources = resolve_inputs(&[path.display().to_string()]).unwrap();
    let options = ReadOptions::new(&ReadSpec::default()).unwrap();
    let evidence = gather(&sources, &options, None).unwrap();
    assert_eq!(evidence.root.find("s").unwrap().kinds.null, 1);
    let inferred = propose_fields(&evidence, &[], 1);
    let types: Vec<String> = inferred
        .fields
        .iter()
        .map(|f| f.field_type.to_string())
        .collect();
    let expected = [
        "bool",
        "date",
        "decimal(12,2)",
        "timestamp",
        "decimal(20,0)",
        "string",
        "struct",
    ];
    assert_eq!(types, expected);
    assert_eq!((inferred.fields[6].fields[0].id, inferred.next_id), (8, 9));
    assert!(inferred.choices[3].reason.contains("time_zone"));
}
