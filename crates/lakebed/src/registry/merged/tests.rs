//! Which columns there are over versions in which types changed.

use super::*;
use crate::registry::parse;

fn version(n: u32, fields: &[(u32, &str, &str)]) -> (u32, SchemaSpec) {
    let mut text = format!("dataset = \"clean/a\"\nversion = {n}\n");
    for (id, name, rest) in fields {
        text.push_str(&format!(
            "[[field]]\nid = {id}\nname = \"{name}\"\n{rest}\n"
        ));
    }
    (n, parse(&text, "v.toml").unwrap())
}

/// Name, id and source of every column but `_extra`.
fn columns(versions: &[(u32, SchemaSpec)]) -> Vec<String> {
    let versions = versions.iter().cloned().collect();
    let mut merged = merge_columns(&versions);
    assert_eq!(merged.pop().unwrap().field.name(), EXTRA_COLUMN);
    let text = |c: MergedColumn| {
        let id = field_id(&c.field).unwrap();
        let source = match c.source {
            ColumnSource::Own => String::new(),
            ColumnSource::Rest(cast) => format!(" rest of {} -> {}", cast.from, cast.to),
            ColumnSource::Retyped(old) => old
                .iter()
                .map(|o| format!(" or {} {}", field_id(&o.field).unwrap(), o.cast.from))
                .collect(),
        };
        format!("{} {id}{source}", c.field.name())
    };
    merged.into_iter().map(text).collect()
}

const INT: &str = "type = \"int\"";
const TEXT: &str = "type = \"string\"\nchange = \"retype\"\ncolumn = \"price_text\"";
const AMOUNT: &str = "type = \"decimal(12,2)\"\nchange = \"retype\"\ncolumn = \"price_amount\"";

#[test]
fn a_retyped_field_is_one_column_and_a_rest_where_something_can_be_lost() {
    let one = version(1, &[(1, "id", INT), (2, "price", INT)]);
    let two = version(2, &[(1, "id", INT), (9, "price", TEXT)]);
    // Every int is a text.
    assert_eq!(
        columns(&[one.clone(), two.clone()]),
        ["id 1", "price 9 or 2 int"]
    );
    let three = version(3, &[(1, "id", INT), (5, "price", AMOUNT)]);
    assert_eq!(
        columns(&[one.clone(), two.clone(), three.clone()]),
        [
            "id 1",
            "price 5 or 9 string or 2 int",
            "price__v2 9 rest of string -> decimal(12,2)",
            "price__v1 2 rest of int -> decimal(12,2)",
        ]
    );
    // Renamed since: all of it goes by the new name.
    let renamed = version(4, &[(5, "amount", AMOUNT), (1, "id", INT)]);
    let all = [one.clone(), two.clone(), three, renamed];
    let amount = [
        "amount 5 or 9 string or 2 int",
        "id 1",
        "amount__v2 9 rest of string -> decimal(12,2)",
        "amount__v1 2 rest of int -> decimal(12,2)",
    ];
    assert_eq!(columns(&all), amount);
    // Gone since: still one column.
    let gone = version(5, &[(1, "id", INT)]);
    let all = [&all[..], &[gone]].concat();
    assert_eq!(columns(&all)[1], "amount 5 or 9 string or 2 int");
    // The past knows nothing of it.
    assert_eq!(columns(&[one]), ["id 1", "price 2"]);
}

#[test]
fn a_type_without_a_cast_to_the_newest_one_stays_a_column_of_its_own() {
    let day = version(1, &[(2, "at", "type = \"date\"")]);
    let text = version(
        2,
        &[(
            9,
            "at",
            "type = \"string\"\nchange = \"retype\"\ncolumn = \"b\"",
        )],
    );
    let int = version(
        3,
        &[(
            4,
            "at",
            "type = \"int\"\nchange = \"retype\"\ncolumn = \"c\"",
        )],
    );
    assert_eq!(
        columns(&[day, text, int]),
        [
            "at 4 or 9 string",
            "at__v2 9 rest of string -> int",
            "at__v1 2"
        ]
    );
}

#[test]
fn names_of_the_rest_and_of_files_never_clash() {
    let one = version(1, &[(2, "price", INT)]);
    let amount = AMOUNT.replace("12,2", "4,2");
    let two = version(
        2,
        &[
            (9, "price", &amount),
            (3, "price__v1", INT),
            (4, "Price", INT),
        ],
    );
    assert_eq!(
        columns(&[one, two.clone()]),
        [
            "price 9 or 2 int",
            "price__v1 3",
            "Price 4",
            "price__v1_ 2 rest of int -> decimal(4,2)",
        ]
    );
    let files = arrow_schema(&two.1.fields);
    assert_eq!(files.field(0).name(), "price_amount");
}

#[test]
fn a_field_that_widened_is_cast_from_its_widest_type() {
    let one = version(1, &[(2, "p", "type = \"decimal(4,2)\"")]);
    let two = version(2, &[(2, "p", "type = \"decimal(9,2)\"")]);
    let three = version(
        3,
        &[(
            7,
            "p",
            "type = \"int\"\nchange = \"retype\"\ncolumn = \"q\"",
        )],
    );
    let versions = BTreeMap::from([one, two, three]);
    let merged = merge_columns(&versions);
    let ColumnSource::Retyped(old) = &merged[0].source else {
        panic!("{merged:?}")
    };
    assert_eq!(old[0].cast.from.to_string(), "decimal(9,2)");
    assert_eq!(*old[0].field.data_type(), DataType::Decimal128(9, 2));
}
