//! Several fields that read one member: `change = "dual"`.

use super::*;

#[test]
fn the_old_field_is_null_where_only_the_new_type_takes_the_value() {
    let fields = ["n: int", "x: float | from = \"n\"\nchange = \"dual\""];
    let mut f = Fixture::new(&fields, Mismatch::Quarantine);
    let decoded = f.lines(
        "{\"n\":1}\n{\"n\":1.5}\n{\"n\":null}\n{}\n{\"n\":\"a\"}\n{\"n\":2.25,\"y\":1}\n{\"n\":9007199254740993}\n",
    );
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"n":1,"x":1.0}"#,
            r#"{"n":null,"x":1.5}"#,
            r#"{"n":null,"x":null}"#,
            r#"{"n":null,"x":null}"#,
        ]
    );
    // Where the newest type does not take it, the record is at fault, in every field that failed.
    assert_eq!(
        reasons(&decoded),
        [
            reason(5, "n", "$.n", "format"),
            reason(5, "x", "$.n", "format"),
            reason(6, "y", "$.y", "unknown_field"),
            reason(7, "x", "$.n", "precision"),
        ]
    );
    // The value that the old field lost is told by its presence.
    assert_eq!(count(&decoded, "n", Presence::Invalid), 3);
    assert_eq!(count(&decoded, "x", Presence::Invalid), 2);
}

#[test]
fn the_newest_of_three_types_decides_wherever_it_stands() {
    let fields = [
        "a: int",
        "c: string | from = \"a\"\nchange = \"dual\"\nlenient = true",
        "b: float | from = \"a\"\nchange = \"dual\"",
    ];
    // Ids count in the order of the lines: `b` is the newest.
    let mut f = Fixture::new(&fields, Mismatch::Quarantine);
    let decoded = f.lines("{\"a\":7}\n{\"a\":\"old\"}\n");
    assert_eq!(f.rows(&decoded), [r#"{"a":7,"c":"7","b":7.0}"#]);
    assert_eq!(rejected(&decoded), [2]);

    let by_id = "[[field]]\nid = 3\nname = \"c\"\ntype = \"string\"\nfrom = \"a\"\nchange = \"dual\"\n\
                 [[field]]\nid = 1\nname = \"a\"\ntype = \"int\"\n\
                 [[field]]\nid = 2\nname = \"b\"\ntype = \"float\"\nfrom = \"a\"\nchange = \"dual\"\n";
    let mut f = Fixture::of_toml(by_id, Mismatch::Quarantine);
    let decoded = f.lines("{\"a\":\"new\"}\n");
    assert_eq!(f.rows(&decoded), [r#"{"c":"new","a":null,"b":null}"#]);
}

#[test]
fn what_an_old_struct_noted_is_forgotten_with_its_faults() {
    let fields = "[[field]]\nid = 1\nname = \"s\"\ntype = \"struct\"\n\
                  [[field.field]]\nid = 2\nname = \"k\"\ntype = \"int\"\n\
                  [[field]]\nid = 3\nname = \"j\"\ntype = \"json\"\nfrom = \"s\"\nchange = \"dual\"\n";
    let mut f = Fixture::of_toml(fields, Mismatch::Extra);
    let decoded = f.lines("{\"s\":{\"k\":\"x\",\"u\":1}}\n{\"s\":{\"k\":2}}\n");
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"s":null,"j":"{\"k\":\"x\",\"u\":1}"}"#,
            r#"{"s":{"k":2},"j":"{\"k\":2}"}"#,
        ]
    );
    assert!(decoded.stats.drift.is_empty(), "{:?}", decoded.stats.drift);
    assert_eq!(decoded.stats.extra_rows, 0);
}

#[test]
fn cells_have_old_and_new_types_too() {
    let fields = [
        "deaths: int",
        "exact: decimal(12,0) | from = \"deaths\"\nchange = \"dual\"",
    ];
    let mut f = Fixture::new(&fields, Mismatch::Quarantine);
    let decoded = f.csv("deaths\n1529\n1529.0\n1.5\n");
    assert_eq!(
        f.rows(&decoded),
        [
            r#"{"deaths":1529,"exact":1529}"#,
            r#"{"deaths":null,"exact":1529}"#,
        ]
    );
    assert_eq!(rejected(&decoded), [4]);
}
