//! Every pair, and what becomes of values at the edges of each cast.

use super::{Cast, CastClass, Scalar, cast_class};
use crate::spec::{FieldType, Lossy};

/// The table that users read.
const PAGE: &str = include_str!("../../../../../docs/formats/schema.md");

/// Types beyond those of the table: decimals of other shapes, and what has no cast at all.
const OTHERS: [&str; 10] = [
    "decimal(4,2)",
    "decimal(14,4)",
    "decimal(15,0)",
    "decimal(18,0)",
    "decimal(38,0)",
    "decimal(38,20)",
    "list<int>",
    "list<string>",
    "map<int>",
    "struct",
];

fn scalar_type(text: &str) -> FieldType {
    match text {
        "decimal" => "decimal(12,2)".parse().unwrap(),
        text => text.parse().unwrap(),
    }
}

/// The documented class of every pair of the table.
fn documented() -> Vec<(String, String, Option<CastClass>)> {
    let rows: Vec<Vec<&str>> = PAGE
        .lines()
        .skip_while(|l| !l.starts_with("| from \\ to |"))
        .take_while(|l| l.starts_with('|'))
        .map(|l| l.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let (header, rows) = rows.split_first().expect("the page has the table");
    let mut pairs = Vec::new();
    for row in &rows[1..] {
        for (to, cell) in header.iter().zip(row).skip(1) {
            let class = match *cell {
                "all" => Some(CastClass::Always),
                "some" => Some(CastClass::PerValue),
                "no" | "same" => None,
                other => panic!("{other}"),
            };
            pairs.push((row[0].to_owned(), (*to).to_owned(), class));
        }
    }
    pairs
}

#[test]
fn the_table_of_pairs_is_the_documented_one() {
    let pairs = documented();
    assert_eq!(pairs.len(), 100);
    for (from, to, class) in pairs {
        let found = cast_class(&scalar_type(&from), &scalar_type(&to));
        assert_eq!(found, class, "{from} -> {to}");
    }
}

#[test]
fn decimals_are_kept_whole_where_their_digits_are() {
    use CastClass::{Always, PerValue};
    for (from, to, class) in [
        ("int", "decimal(19,0)", Some(Always)),
        ("int", "decimal(38,19)", Some(Always)),
        ("int", "decimal(20,2)", Some(PerValue)),
        ("decimal(18,0)", "int", Some(Always)),
        ("decimal(19,0)", "int", Some(PerValue)),
        ("decimal(15,15)", "float", Some(Always)),
        ("decimal(16,2)", "float", Some(PerValue)),
        ("decimal(20,16)", "float", None),
        ("float", "decimal(20,16)", None),
        ("string", "decimal(38,20)", None),
        ("decimal(10,2)", "decimal(12,4)", Some(Always)),
        ("decimal(10,2)", "decimal(11,4)", Some(PerValue)),
        ("decimal(10,2)", "decimal(10,2)", None),
    ] {
        let found = cast_class(&from.parse().unwrap(), &to.parse().unwrap());
        assert_eq!(found, class, "{from} -> {to}");
    }
}

fn text(text: &str) -> Scalar<'_> {
    Scalar::Text(text.into())
}

const DAY: i64 = 86_400_000_000;

/// Values of a type: ordinary ones, and those at its ends.
fn samples(of: &FieldType) -> Vec<Scalar<'static>> {
    match of {
        FieldType::String | FieldType::Enum | FieldType::Json => [
            "",
            "abc",
            "7",
            "007",
            "-7",
            "-0",
            "+7",
            " 7",
            "7 ",
            "1.50",
            "1.5",
            "01.5",
            "1.005",
            "-0.0",
            "-0.5",
            ".5",
            "5.",
            "1e3",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "12345678901.25",
            "0.1234567890123456",
            "NaN",
            "true",
            "True",
            "t",
            "1",
            "0",
            "2026-11-30",
            "2026-02-30",
            "2026-1-1",
            "0000-01-01",
            "9999-12-31",
            "2026-11-30T08:00:00Z",
            "2026-11-30T08:00:00.5Z",
            "2026-11-30T08:00:00+08:00",
            "2026-11-30T24:00:00Z",
            "2026-11-30T08:00:60Z",
            "2026-11-30 08:00:00Z",
            "flat",
            "٣",
        ]
        .map(text)
        .to_vec(),
        FieldType::Int => [
            0,
            1,
            -1,
            2,
            7,
            99,
            100,
            9_007_199_254_740_993,
            1 << 60,
            i64::MAX,
            i64::MIN,
        ]
        .map(Scalar::Int)
        .to_vec(),
        FieldType::Float => [
            0.0,
            -0.0,
            1.0,
            0.1,
            0.29,
            -12.34,
            1.005,
            1.5,
            1e15,
            1e300,
            5e-324,
            0.1 + 0.2,
            9_223_372_036_854_775_808.0,
            -9_223_372_036_854_775_808.0,
            f64::NAN,
            f64::INFINITY,
        ]
        .map(Scalar::Float)
        .to_vec(),
        FieldType::Bool => [true, false].map(Scalar::Bool).to_vec(),
        FieldType::Decimal { precision, .. } => {
            let most = 10_i128.pow(u32::from(*precision)) - 1;
            [0, 1, -1, 100, -100, 1250, most, -most]
                .map(Scalar::Decimal)
                .to_vec()
        }
        FieldType::Date => [0, -719_162, 2_932_896, 20_787].map(Scalar::Date).to_vec(),
        FieldType::Timestamp => [0, DAY, DAY - 1, -1, -DAY, 1_764_489_600_123_456]
            .map(Scalar::Timestamp)
            .to_vec(),
        FieldType::Bytes | FieldType::List(_) | FieldType::Map(_) | FieldType::Struct => Vec::new(),
    }
}

fn cast(from: &FieldType, to: &FieldType) -> Cast {
    let plain = |to: &FieldType| Cast {
        from: from.clone(),
        to: to.clone(),
        values: Vec::new(),
    };
    // An enum has one value, which is the last sample.
    let last = samples(from).pop();
    let text = last.and_then(|value| match value {
        Scalar::Text(text) => Some(text.into_owned()),
        value => match plain(&FieldType::String).apply(value, None)? {
            Scalar::Text(text) => Some(text.into_owned()),
            _ => None,
        },
    });
    Cast {
        values: text.into_iter().collect(),
        ..plain(to)
    }
}

#[test]
fn every_pair_does_what_its_class_says_and_comes_back() {
    let tabled = documented().into_iter().map(|(from, _, _)| from);
    let mut names: Vec<String> = tabled.collect();
    names.dedup();
    names.extend(OTHERS.map(str::to_owned));
    let types: Vec<FieldType> = names.iter().map(|n| scalar_type(n)).collect();
    for from in &types {
        for to in &types {
            let there = cast(from, to);
            let back = cast(to, from);
            let (mut kept, mut lost) = (0, 0);
            for value in samples(from) {
                let Some(got) = there.apply(value.clone(), None) else {
                    lost += 1;
                    continue;
                };
                kept += 1;
                // A text may have zeros that a number does not keep, and an enum has few values.
                let is_text = matches!(value, Scalar::Text(_)) || *from == FieldType::Enum;
                if back.class().is_some() && !is_text && *to != FieldType::Enum {
                    assert_eq!(back.apply(got, None), Some(value), "{from} -> {to}");
                }
            }
            match there.class() {
                None => assert_eq!(kept, 0, "{from} -> {to}"),
                Some(CastClass::Always) => assert_eq!(lost, 0, "{from} -> {to}"),
                Some(CastClass::PerValue) => assert!(kept > 0 && lost > 0, "{from} -> {to}"),
            }
        }
    }
}

fn apply(from: &str, to: &str, value: Scalar<'static>) -> Option<Scalar<'static>> {
    cast(&from.parse().unwrap(), &to.parse().unwrap()).apply(value, None)
}

#[test]
fn texts_of_numbers_are_plain() {
    for (value, wanted) in [
        ("7", Some(7)),
        ("-7", Some(-7)),
        ("0", Some(0)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("007", None),
        ("-0", None),
        ("+7", None),
        ("7.0", None),
        (" 7", None),
        ("", None),
        ("٣", None),
    ] {
        assert_eq!(
            apply("string", "int", text(value)),
            wanted.map(Scalar::Int),
            "{value}"
        );
    }
    for (value, wanted) in [
        ("1.5", Some(150)),
        ("1.500", Some(150)),
        ("-0.05", Some(-5)),
        ("0.00", Some(0)),
        ("-0.00", None),
        ("1.005", None),
        ("01.5", None),
        (".5", None),
        ("5.", None),
        ("1e3", None),
        ("1,000.00", None),
        ("9999999999.99", Some(999_999_999_999)),
        ("10000000000", None),
    ] {
        let wanted = wanted.map(Scalar::Decimal);
        assert_eq!(
            apply("string", "decimal(12,2)", text(value)),
            wanted,
            "{value}"
        );
    }
    for (value, wanted) in [
        ("0.1", Some(0.1)),
        ("0.10", Some(0.1)),
        ("123456789012345", Some(123_456_789_012_345.0)),
        ("1234567890123456", None),
        ("0.123456789012345", None),
        ("NaN", None),
        ("1e5", None),
    ] {
        assert_eq!(
            apply("string", "float", text(value)),
            wanted.map(Scalar::Float),
            "{value}"
        );
    }
}

#[test]
fn floats_are_cast_by_their_digits() {
    for (value, wanted) in [
        (0.1, Some(10)),
        (0.29, Some(29)),
        (-12.34, Some(-1234)),
        (-0.0, Some(0)),
        (1.005, None),
        (0.1 + 0.2, None),
        (9_999_999_999.99, Some(999_999_999_999)),
        (1e10, None),
        (f64::NAN, None),
        (f64::NEG_INFINITY, None),
    ] {
        let got = apply("float", "decimal(12,2)", Scalar::Float(value));
        assert_eq!(got, wanted.map(Scalar::Decimal), "{value}");
    }
    let int = |x: f64| apply("float", "int", Scalar::Float(x));
    assert_eq!(
        int(-9_223_372_036_854_775_808.0),
        Some(Scalar::Int(i64::MIN))
    );
    assert_eq!(int(9_223_372_036_854_775_808.0), None);
    assert_eq!(int(1e15), Some(Scalar::Int(1_000_000_000_000_000)));
    assert_eq!(apply("int", "float", Scalar::Int(i64::MAX)), None);
    assert!(apply("int", "float", Scalar::Int(1 << 60)).is_some());
}

#[test]
fn a_declared_loss_cuts_or_rounds() {
    let lossy = |from: &str, to: &str, value: Scalar<'static>| {
        let cast = cast(&from.parse().unwrap(), &to.parse().unwrap());
        [Lossy::Truncate, Lossy::Round].map(|l| cast.apply(value.clone(), Some(l)))
    };
    let ints = |a: i64, b: i64| [a, b].map(|n| Some(Scalar::Int(n)));
    assert_eq!(
        lossy("float", "int", Scalar::Float(-1200.5)),
        ints(-1200, -1201)
    );
    assert_eq!(lossy("float", "int", Scalar::Float(0.49)), ints(0, 0));
    assert_eq!(lossy("float", "int", Scalar::Float(1e16)), [None, None]);
    assert_eq!(lossy("float", "int", Scalar::Float(f64::NAN)), [None, None]);
    assert_eq!(
        lossy("decimal(12,2)", "int", Scalar::Decimal(-150)),
        ints(-1, -2)
    );
    assert_eq!(
        lossy("decimal(12,2)", "int", Scalar::Decimal(149)),
        ints(1, 1)
    );
    assert_eq!(
        lossy("decimal(38,0)", "int", Scalar::Decimal(1 << 70)),
        [None, None]
    );
    let units = |a: i128, b: i128| [a, b].map(|n| Some(Scalar::Decimal(n)));
    assert_eq!(
        lossy("decimal(8,4)", "decimal(3,2)", Scalar::Decimal(12_350)),
        units(123, 124)
    );
    // Rounding may need a digit that the type has not.
    let nearly_ten = lossy("decimal(8,4)", "decimal(3,2)", Scalar::Decimal(99_990));
    assert_eq!(nearly_ten, [Some(Scalar::Decimal(999)), None]);
    let noon = Scalar::Timestamp(-DAY / 2);
    assert_eq!(
        lossy("timestamp", "date", noon),
        [Some(Scalar::Date(-1)), None]
    );
    let big = lossy("int", "float", Scalar::Int(i64::MAX));
    assert_eq!(
        big,
        [None, Some(Scalar::Float(9_223_372_036_854_775_808.0))]
    );
}
