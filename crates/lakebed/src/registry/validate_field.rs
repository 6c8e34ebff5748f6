//! Whether what one field declares fits its type and itself.
//!
//! Options of an element stand on the field: `formats` fit a `list<timestamp>`, too.

use std::collections::BTreeSet;

use crate::registry::format_text::{FormatClass, classify};
use crate::registry::{FieldAt, Problem, ProblemCode};
use crate::spec::{FieldSpec, FieldType, MoneySpec, Token};
use crate::time::time_zone;

/// Adds everything that is wrong with the field's declarations.
pub(crate) fn check_field(at: &FieldAt<'_>, problems: &mut Vec<Problem>) {
    let mut out = Out {
        path: &at.path,
        problems,
    };
    check_keys_fit(at.field, &mut out);
    check_tokens(at.field, &mut out);
    check_formats(at.field, &mut out);
    check_enum(at.field, &mut out);
    if let Some(money) = &at.field.money {
        check_money(money, &mut out);
    }
}

/// Adds what is wrong with how values of another form are read.
pub(crate) fn check_read_keys(field: &FieldSpec, out: &mut Out<'_>) {
    check_keys_fit(field, out);
    check_formats(field, out);
    if let Some(money) = &field.money {
        check_money(money, out);
    }
}

/// Where problems of a field go.
pub(crate) struct Out<'a> {
    pub(crate) path: &'a str,
    pub(crate) problems: &'a mut Vec<Problem>,
}

impl Out<'_> {
    pub(crate) fn add(&mut self, code: ProblemCode, message: impl Into<String>) {
        self.problems.push(Problem::at(code, self.path, message));
    }

    pub(crate) fn add_with(&mut self, code: ProblemCode, message: impl Into<String>, hint: &str) {
        self.problems
            .push(Problem::at(code, self.path, message).hint(hint));
    }
}

fn check_keys_fit(field: &FieldSpec, out: &mut Out<'_>) {
    let leaf = field.field_type.leaf();
    let instant = matches!(leaf, FieldType::Timestamp);
    let day = matches!(leaf, FieldType::Date);
    let boolean = matches!(leaf, FieldType::Bool);
    let float = matches!(leaf, FieldType::Float);
    let members = matches!(leaf, FieldType::Struct);
    let rules = [
        (
            "formats",
            !field.formats.is_empty(),
            instant || day,
            "date and timestamp",
        ),
        ("time_zone", field.time_zone.is_some(), instant, "timestamp"),
        ("ambiguous", field.ambiguous.is_some(), instant, "timestamp"),
        (
            "money",
            field.money.is_some(),
            matches!(leaf, FieldType::Decimal { .. }),
            "decimal",
        ),
        (
            "values",
            !field.values.is_empty(),
            matches!(leaf, FieldType::Enum),
            "enum",
        ),
        (
            "true_values",
            !field.true_values.is_empty(),
            boolean,
            "bool",
        ),
        (
            "false_values",
            !field.false_values.is_empty(),
            boolean,
            "bool",
        ),
        (
            "lenient",
            field.lenient,
            matches!(leaf, FieldType::String),
            "string",
        ),
        ("allow_nan", field.allow_nan.is_some(), float, "float"),
        ("nan_as_null", field.nan_as_null.is_some(), float, "float"),
        ("field", !field.fields.is_empty(), members, "struct"),
    ];
    for (key, there, fits, types) in rules {
        if there && !fits {
            let message = format!("`{key}` fits only {types}, not `{}`", field.field_type);
            out.add(ProblemCode::KeyMisfit, message);
        }
    }
    if members {
        check_struct(field, out);
    }
}

fn check_struct(field: &FieldSpec, out: &mut Out<'_>) {
    if field.fields.is_empty() {
        out.add_with(
            ProblemCode::KeyMisfit,
            "a struct needs members",
            "add `[[field.field]]` tables, or take the type `json`",
        );
    }
    if !field.null_values.is_empty() {
        out.add_with(
            ProblemCode::KeyMisfit,
            "`null_values` do not fit a struct",
            "declare them on its members",
        );
    }
}

fn check_tokens(field: &FieldSpec, out: &mut Out<'_>) {
    let lists = [
        ("null_values", &field.null_values),
        ("true_values", &field.true_values),
        ("false_values", &field.false_values),
    ];
    for (key, list) in lists {
        let mut seen = BTreeSet::new();
        for token in list {
            if !seen.insert((matches!(token, Token::Text(_)), token.text())) {
                let message = format!("`{key}` has `{}` twice", token.text());
                out.add(ProblemCode::TokenConflict, message);
            }
        }
    }
    // Cells of a CSV are texts, so tokens of different keys must differ by their text alone.
    let texts = |list: &[Token]| list.iter().map(Token::text).collect::<BTreeSet<_>>();
    let nulls = texts(&field.null_values);
    let mut yes = texts(&field.true_values);
    let mut no = texts(&field.false_values);
    if matches!(field.field_type.leaf(), FieldType::Bool) {
        yes.insert("true".to_owned());
        no.insert("false".to_owned());
    }
    let values: BTreeSet<String> = field.values.iter().cloned().collect();
    for (a, b, what) in [
        (&yes, &no, "both true and false"),
        (&nulls, &yes, "both NULL and true"),
        (&nulls, &no, "both NULL and false"),
        (&nulls, &values, "both NULL and a value of the enum"),
    ] {
        for token in a.intersection(b) {
            let message = format!("`{token}` would mean {what}");
            out.add(ProblemCode::TokenConflict, message);
        }
    }
}

fn check_formats(field: &FieldSpec, out: &mut Out<'_>) {
    let leaf = field.field_type.leaf();
    let mut seen = BTreeSet::new();
    let mut epoch: Option<&str> = None;
    let mut zoneless: Option<&str> = None;
    for format in &field.formats {
        if !seen.insert(format) {
            out.add(
                ProblemCode::BadFormat,
                format!("`formats` has `{format}` twice"),
            );
            continue;
        }
        let class = match classify(format) {
            Ok(class) => class,
            Err(message) => {
                out.add(ProblemCode::BadFormat, format!("`formats`: {message}"));
                continue;
            }
        };
        let loses = match class {
            FormatClass::Rfc3339 | FormatClass::Epoch => true,
            FormatClass::Strptime { time, .. } => time,
        };
        if matches!(leaf, FieldType::Date) && loses {
            out.add_with(
                ProblemCode::BadFormat,
                format!("`{format}` reads a time, which a date cannot keep"),
                "take the type `timestamp`, or a format of year, month and day",
            );
        }
        match class {
            FormatClass::Epoch => {
                if let Some(other) = epoch.replace(format) {
                    out.add_with(
                        ProblemCode::BadFormat,
                        format!("`{other}` and `{format}` cannot be told apart"),
                        "one field takes one epoch unit",
                    );
                }
            }
            FormatClass::Strptime { offset: false, .. } => zoneless = zoneless.or(Some(format)),
            FormatClass::Strptime { offset: true, .. } | FormatClass::Rfc3339 => {}
        }
    }
    check_zone(field, zoneless, out);
}

fn check_zone(field: &FieldSpec, zoneless: Option<&str>, out: &mut Out<'_>) {
    match (&field.time_zone, zoneless) {
        (Some(zone), _) => {
            if time_zone(zone).is_err() {
                out.add_with(
                    ProblemCode::BadTimeZone,
                    format!("`{zone}` is not a time zone"),
                    "use an IANA name, for example `Asia/Shanghai`, `Asia/Taipei` or `UTC`",
                );
            }
        }
        (None, Some(format)) if matches!(field.field_type.leaf(), FieldType::Timestamp) => {
            out.add_with(
                ProblemCode::BadTimeZone,
                format!("`{format}` reads no offset, so the field needs `time_zone`"),
                "for example `time_zone = \"Asia/Shanghai\"`",
            );
        }
        (None, _) => {}
    }
}

fn check_enum(field: &FieldSpec, out: &mut Out<'_>) {
    if !matches!(field.field_type.leaf(), FieldType::Enum) {
        return;
    }
    if field.values.is_empty() {
        out.add_with(
            ProblemCode::BadEnum,
            "an enum needs `values`",
            "list them, or take the type `string`",
        );
    }
    let mut seen = BTreeSet::new();
    for value in &field.values {
        if value.is_empty() {
            out.add_with(
                ProblemCode::BadEnum,
                "`values` has an empty text",
                "an empty text in an enum is NULL; leave it out",
            );
        }
        if !seen.insert(value) {
            out.add(
                ProblemCode::BadEnum,
                format!("`values` has `{value}` twice"),
            );
        }
    }
}

fn check_money(money: &MoneySpec, out: &mut Out<'_>) {
    let decimal = money.decimal.as_deref().unwrap_or(".");
    for (key, mark) in [
        ("thousands", money.thousands.as_deref()),
        ("decimal", Some(decimal)),
    ] {
        let Some(mark) = mark else { continue };
        let mut chars = mark.chars();
        let good = matches!((chars.next(), chars.next()), (Some(c), None)
            if !c.is_alphanumeric() && !c.is_control() && !matches!(c, '-' | '+' | '(' | ')'));
        if !good {
            let message = format!("`money`: `{key}` = `{mark}` is not one mark");
            out.add_with(
                ProblemCode::BadMoney,
                message,
                "one character, no digit, letter or sign",
            );
        }
    }
    if money.thousands.as_deref() == Some(decimal) {
        out.add_with(
            ProblemCode::BadMoney,
            format!("`money`: `thousands` and `decimal` are both `{decimal}`"),
            "without `decimal` the decimal mark is `.`",
        );
    }
    let mut seen = BTreeSet::new();
    for symbol in &money.symbols {
        let plain = !symbol.is_empty()
            && !symbol.chars().any(|c| c.is_ascii_digit() || c.is_control())
            && !symbol.contains('-')
            && symbol.trim() == symbol;
        if !plain {
            out.add_with(
                ProblemCode::BadMoney,
                format!("`money`: `{symbol}` cannot be a symbol"),
                "a symbol is not empty and has no digit, no minus and no blank at its ends",
            );
        }
        if !seen.insert(symbol) {
            out.add(
                ProblemCode::BadMoney,
                format!("`money`: `symbols` has `{symbol}` twice"),
            );
        }
    }
}
