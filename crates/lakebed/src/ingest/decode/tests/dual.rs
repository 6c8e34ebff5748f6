//! The `dual` strategy, sentence by sentence of docs/formats/schema.md.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};

use super::*;

const PRICE: [&str; 2] = [
    "price: int",
    "amount: decimal(8,2) | from = \"price\" | change = \"dual\"",
];

fn price() -> Fixture {
    Fixture::new(&PRICE, Mismatch::Quarantine)
}

#[test]
fn each_field_takes_what_fits_it() {
    let mut f = price();
    let decoded = f.lines("{\"price\":5}\n{\"price\":\"1.5\"}\n{\"price\":123456789}\n");
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"price":5,"amount":5.00}"#,
            r#"{"price":null,"amount":1.50}"#,
            r#"{"price":123456789,"amount":null}"#,
        ]
    );
    // `invalid` without reject and without drift; the counts still sum to the records.
    assert_eq!(count(&decoded, "price", Presence::Invalid), 1);
    assert_eq!(count(&decoded, "price", Presence::Present), 2);
    assert_eq!(count(&decoded, "amount", Presence::Invalid), 1);
    assert_eq!(decoded.rejects.len(), 0);
    assert_eq!(decoded.stats.rejected, 0);
    assert!(decoded.stats.drift.is_empty());
}

#[test]
fn what_no_field_takes_is_told_once_under_the_old_field() {
    let mut f = price();
    let decoded = f.lines("{\"price\":5}\n{\"price\":\"cheap\"}\n{\"price\":6}\n");
    assert_eq!(f.rows(&decoded).len(), 2);
    assert_eq!(reasons(&decoded), [reason(2, "price", "$.price", "format")]);
    let why = &decoded.rejects[0].reasons[0].reason;
    assert!(why.contains("`cheap` is not an int"), "{why}");
    assert!(why.contains("`amount` (decimal(8,2))"), "{why}");
    assert_eq!(decoded.stats.drift.items().count(), 1);
    for field in ["price", "amount"] {
        assert_eq!(count(&decoded, field, Presence::Invalid), 1);
    }

    // Where all of the group have `dual`, the first one tells.
    let fields = PRICE.map(|f| f.replace(": int", ": int | change = \"dual\""));
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let mut f = Fixture::new(&fields, Mismatch::Quarantine);
    let decoded = f.lines("{\"price\":true}\n");
    assert_eq!(reasons(&decoded), [reason(1, "price", "$.price", "type")]);

    // The field without `dual` tells, wherever it stands.
    let mut f = Fixture::new(
        &[
            "new: bool | from = \"/v\" | change = \"dual\"",
            "v: int",
            "text: date | from = \"v\" | change = \"dual\"",
        ],
        Mismatch::Quarantine,
    );
    let decoded = f.lines("{\"v\":\"x\"}\n{\"v\":true}\n{\"v\":\"2024-05-20\"}\n");
    assert_eq!(reasons(&decoded), [reason(1, "v", "$.v", "format")]);
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"new":true,"v":null,"text":null}"#,
            r#"{"new":null,"v":null,"text":"2024-05-20"}"#,
        ]
    );
}

#[test]
fn null_by_rule_counts_as_taken() {
    let mut f = Fixture::new(
        &[
            "price: int | null_values = [\"-\"]",
            "amount: decimal(8,2) | from = \"price\" | change = \"dual\"",
            "rate: float | from = \"price\" | change = \"dual\" | nan_as_null = true",
        ],
        Mismatch::Quarantine,
    );
    let decoded = f.lines("{\"price\":\"-\"}\n{\"price\":null}\n{}\n{\"price\":NaN}\n");
    assert_eq!(f.rows(&decoded).len(), 4, "{:?}", decoded.rejects);
    let of = |field| {
        Presence::ALL
            .map(|kind| (kind, count(&decoded, field, kind)))
            .into_iter()
            .filter(|(_, n)| *n > 0)
            .collect::<Vec<_>>()
    };
    let (null, absent) = ((Presence::Null, 1), (Presence::Absent, 1));
    assert_eq!(
        of("price"),
        [
            absent,
            null,
            (Presence::Sentinel, 1),
            (Presence::Invalid, 1)
        ]
    );
    assert_eq!(of("amount"), [absent, null, (Presence::Invalid, 2)]);
    assert_eq!(
        of("rate"),
        [absent, null, (Presence::Nan, 1), (Presence::Invalid, 1)]
    );

    // A quoted empty cell is NULL for both types.
    let mut f = price();
    let decoded = f.csv("price\n\"\"\n1.5\n7\nx\n");
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"price":null,"amount":null}"#,
            r#"{"price":null,"amount":1.50}"#,
            r#"{"price":7,"amount":7.00}"#,
        ]
    );
    assert_eq!(rejected(&decoded), [5]);
}

#[test]
fn required_is_asked_of_each_field_afterwards() {
    let mut f = Fixture::new(
        &[
            "price: string",
            "amount: decimal(8,2) | from = \"price\" | change = \"dual\" | required = true",
        ],
        Mismatch::Quarantine,
    );
    let decoded = f.lines(concat!(
        "{\"price\":\"1.5\"}\n",
        "{\"price\":\"cheap\"}\n",
        "{\"price\":2}\n",
        "{\"price\":null}\n",
        "{}\n",
        "{\"price\":[]}\n",
    ));
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"price":"1.5","amount":1.50}"#,
            r#"{"price":null,"amount":2.00}"#,
        ]
    );
    assert_eq!(
        reasons(&decoded),
        [
            reason(2, "amount", "$.price", "missing"),
            reason(4, "amount", "$.price", "missing"),
            reason(5, "amount", "$.price", "missing"),
            reason(6, "price", "$.price", "type"),
        ]
    );
    let why = &decoded.rejects[0].reasons[0].reason;
    assert!(why.contains("`cheap` is not a decimal"), "{why}");
    assert_eq!(count(&decoded, "amount", Presence::Invalid), 4);
    // A rejected record's other fields count by their own kind.
    assert_eq!(count(&decoded, "price", Presence::Invalid), 2);
}

#[test]
fn groups_inside_structs_work_per_parent() {
    let text = r#"
[[field]]
id = 1
name = "items"
type = "list<struct>"
[[field.field]]
id = 2
name = "n"
type = "int"
[[field.field]]
id = 3
name = "parts"
type = "list<int>"
from = "/n"
change = "dual"
[[field.field]]
id = 4
name = "deep"
type = "struct"
from = "n"
change = "dual"
[[field.field.field]]
id = 5
name = "x"
type = "int"
[[field]]
id = 6
name = "after"
type = "int"
"#;
    let mut f = Fixture::of_toml(text, Mismatch::Quarantine);
    let decoded = f.lines(concat!(
        "{\"items\":[{\"n\":1},{\"n\":[2,3]},{\"n\":{\"x\":4}},null,{}],\"after\":1}\n",
        "{\"items\":[{\"n\":1},{\"n\":[2,\"x\"]}],\"after\":2}\n",
        "{\"items\":[{\"n\":[5]},{\"n\":{\"x\":6}}],\"after\":3}\n",
    ));
    assert_eq!(
        f.rows(&decoded),
        [
            concat!(
                r#"{"items":[{"n":1,"parts":null,"deep":null},{"n":null,"parts":[2,3],"deep":null},"#,
                r#"{"n":null,"parts":null,"deep":{"x":4}},null,{"n":null,"parts":null,"deep":null}],"#,
                r#""after":1}"#
            ),
            concat!(
                r#"{"items":[{"n":null,"parts":[5],"deep":null},"#,
                r#"{"n":null,"parts":null,"deep":{"x":6}}],"after":3}"#
            ),
        ]
    );
    assert_eq!(
        reasons(&decoded),
        [reason(2, "items", "$.items[1].n", "type")]
    );
    assert_eq!(count(&decoded, "items", Presence::Present), 2);
}

#[test]
fn half_a_value_leaves_nothing_behind() {
    let text = r#"
[[field]]
id = 1
name = "v"
type = "struct"
[[field.field]]
id = 2
name = "a"
type = "string"
[[field.field]]
id = 3
name = "b"
type = "int"
[[field]]
id = 4
name = "all"
type = "json"
from = "v"
change = "dual"
[[field]]
id = 5
name = "map"
type = "map<int>"
from = "v"
change = "dual"
"#;
    let lines = concat!(
        "{\"v\":{\"a\":\"long text\",\"b\":\"x\"}}\n",
        "{\"v\":{\"a\":\"t\",\"b\":1}}\n",
        "{\"v\":{\"c\":3,\"d\":4,\"e\":{}}}\n",
        "{\"v\":{\"b\":7}}\n",
        "{\"v\":{\"b\":7,\"b\":8}}\n",
    );
    let rows = [
        r#"{"v":null,"all":"{\"a\":\"long text\",\"b\":\"x\"}","map":null}"#,
        r#"{"v":{"a":"t","b":1},"all":"{\"a\":\"t\",\"b\":1}","map":null}"#,
        r#"{"v":null,"all":"{\"c\":3,\"d\":4,\"e\":{}}","map":null}"#,
        r#"{"v":{"a":null,"b":7},"all":"{\"b\":7}","map":{"b":7}}"#,
    ];
    let mut f = Fixture::of_toml(text, Mismatch::Quarantine);
    let decoded = f.lines(lines);
    assert_eq!(f.rows(&decoded), rows);
    // Unknown members of a value that another field took are no drift.
    let places: Vec<_> = decoded
        .stats
        .drift
        .items()
        .map(|i| i.path.as_str())
        .collect();
    assert_eq!(places, ["$.v.b"]);
    assert_eq!(rejected(&decoded), [5]);

    // Under `extra` the struct takes them; they are in `all` already, so `_extra` stays empty.
    let mut f = Fixture::of_toml(text, Mismatch::Extra);
    let decoded = f.lines(lines);
    assert_eq!(
        f.rows(&decoded)[2],
        rows[2].replacen("null", r#"{"a":null,"b":null}"#, 1)
    );
    assert_eq!(decoded.stats.extra_rows, 0);
    assert!(decoded.stats.drift.items().all(|i| i.path == "$.v.b"));
}

#[test]
fn what_no_taker_knows_goes_to_extra_once() {
    let text = r#"
[[field]]
id = 1
name = "v"
type = "struct"
[[field.field]]
id = 2
name = "a"
type = "int"
[[field]]
id = 3
name = "w"
type = "struct"
from = "v"
change = "dual"
[[field.field]]
id = 4
name = "a"
type = "int"
[[field.field]]
id = 5
name = "b"
type = "int"
"#;
    let mut f = Fixture::of_toml(text, Mismatch::Extra);
    let decoded =
        f.lines("{\"v\":{\"a\":1,\"b\":2,\"c\":3}}\n{\"v\":{\"a\":1,\"b\":\"x\",\"c\":3}}\n");
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"v":{"a":1},"w":{"a":1,"b":2}}"#,
            r#"{"v":{"a":1},"w":null}"#
        ]
    );
    let extra = decoded.batches[0].column_by_name("_extra").unwrap();
    let extra = extra.as_any().downcast_ref::<StringArray>().unwrap();
    assert_eq!(extra.value(0), r#"{"/v/c":3}"#);
    assert_eq!(extra.value(1), r#"{"/v/b":"x","/v/c":3}"#);
}

#[test]
fn typed_inputs_and_characters_of_one_value() {
    let mut f = price();
    let values: ArrayRef = Arc::new(StringArray::from(vec![
        Some("5"),
        Some("1.5"),
        None,
        Some("x"),
    ]));
    let batch = RecordBatch::try_from_iter([("price", values)]).unwrap();
    let decoded = f.chunk(ChunkBody::Batch(batch)).unwrap();
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"price":5,"amount":5.00}"#,
            r#"{"price":null,"amount":1.50}"#,
            r#"{"price":null,"amount":null}"#,
        ]
    );
    assert_eq!(rejected(&decoded), [4]);

    // One input value, read three times, taken twice: its characters count once.
    let mut f = Fixture::new(
        &[
            "t: string",
            "u: json | from = \"t\" | change = \"dual\"",
            "n: int | from = \"t\" | change = \"dual\"",
        ],
        Mismatch::Quarantine,
    );
    let decoded = f.lines("{\"t\":\"a\\u0000\\ud800\"}\n");
    assert_eq!(f.rows(&decoded).len(), 1);
    assert_eq!(decoded.stats.nul_characters, 1);
    assert_eq!(decoded.stats.lone_surrogates, 1);
}

#[test]
fn a_personal_field_of_the_group_hides_the_value_everywhere() {
    let mut f = Fixture::new(
        &[
            "phone: int",
            "number: decimal(20,0) | from = \"phone\" | change = \"dual\" | privacy = \"personal\"",
        ],
        Mismatch::Quarantine,
    );
    let decoded = f.lines("{\"phone\":\"call-me\"}\n");
    assert!(!decoded.rejects[0].reasons[0].reason.contains("call-me"));
    assert!(decoded.stats.drift.items().all(|i| i.samples.is_empty()));
}

#[test]
fn one_input_without_dual_is_no_group() {
    let mut f = Fixture::new(
        &["a: int", "b: string | from = \"/a\""],
        Mismatch::Quarantine,
    );
    let decoded = f.lines("{\"a\":1}\n{\"a\":\"x\"}\n");
    assert_eq!(rejected(&decoded), [1, 2]);
}
