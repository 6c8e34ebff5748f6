//! The columns that follow from rules: names and order are theirs, types those of what cleaning makes; what the rules
//! leave open (the values of JSON, how many digits a decimal has) is read off records.
//!
//! Ids are not given here, and names are those of the records: `registry` makes both sound.

use crate::config::PageValue;
use crate::name::DatasetName;
use crate::parse::field::{Field, Shape, Source};
use crate::parse::rules::Rules;
use crate::parse::steps::Step;
use crate::spec::{Datum, FieldSpec, FieldType};

/// Digits that a decimal has at least: what one page shows is not the dearest that there is.
const DECIMAL_DIGITS: u8 = 12;
/// Digits after the point that it has at least, for the same reason.
const DECIMAL_SCALE: u8 = 2;
/// The most that the type can have.
const MAX_DIGITS: usize = 38;
/// Lists within lists beyond this are JSON.
const MAX_LIST_DEPTH: usize = 4;
/// The columns that every record ends with: name, type, what it is.
const ORIGIN: [(&str, FieldType, Option<&str>); 3] = [
    ("_raw", FieldType::String, Some("the page it comes from")),
    ("_key", FieldType::String, None),
    ("_fetched_at", FieldType::Timestamp, None),
];

/// A type with the members of the struct in it.
type Typed = (FieldType, Vec<FieldSpec>);

impl Rules {
    /// The columns of a dataset of these rules; `seen` are records of it. A column that only some of the rules of the
    /// dataset give is not required. None where the rules do not say and no record shows it.
    #[must_use]
    pub fn columns(&self, dataset: &DatasetName, seen: &[&Datum]) -> Vec<FieldSpec> {
        let items = self.pages.iter().flat_map(|p| &p.items);
        let mut given: Vec<Vec<FieldSpec>> = Vec::new();
        for item in items.filter(|i| i.dataset == *dataset) {
            let mut fields = members(&item.fields, seen);
            for field in &mut fields {
                // A record whose key has no value is rejected.
                field.required |= item.key.contains(&field.name);
            }
            given.push(fields);
        }
        let commands = self.pages.iter().filter_map(|p| p.command.as_ref());
        if commands.into_iter().any(|c| c.datasets.contains(dataset)) {
            given.push(of_values(seen, 0).1);
        }
        let mut columns = united(given);
        columns.retain(|c| ORIGIN.iter().all(|(name, ..)| *name != c.name));
        if columns.is_empty() {
            return columns;
        }
        columns.extend(ORIGIN.map(|(name, field_type, doc)| FieldSpec {
            doc: doc.map(str::to_owned),
            ..FieldSpec::new(0, name, field_type)
        }));
        columns
    }
}

/// The columns of several rules for one dataset.
fn united(given: Vec<Vec<FieldSpec>>) -> Vec<FieldSpec> {
    let rules = given.len();
    let mut columns: Vec<(FieldSpec, usize)> = Vec::new();
    for field in given.into_iter().flatten() {
        match columns.iter_mut().find(|(c, _)| c.name == field.name) {
            Some((column, times)) => {
                *times += 1;
                column.required &= field.required;
                let both = [column.field_type.clone(), field.field_type];
                column.field_type = both_types(both, column.fields == field.fields);
                if column.field_type == FieldType::Json {
                    column.fields.clear();
                }
            }
            None => columns.push((field, 1)),
        }
    }
    let columns = columns.into_iter().map(|(mut column, times)| {
        column.required &= times == rules;
        column
    });
    columns.collect()
}

/// The type that holds what either does.
fn both_types([a, b]: [FieldType; 2], same_members: bool) -> FieldType {
    let decimal = |t: &FieldType| match t {
        FieldType::Decimal { precision, scale } => Some((*precision - *scale, *scale)),
        _ => None,
    };
    match (decimal(&a), decimal(&b)) {
        (Some((m, s)), Some((n, t))) => FieldType::Decimal {
            precision: m.max(n).saturating_add(s.max(t)).min(38),
            scale: s.max(t),
        },
        _ if a == b && same_members => a,
        _ => FieldType::Json,
    }
}

fn members(fields: &[Field], seen: &[&Datum]) -> Vec<FieldSpec> {
    let fields = fields.iter().map(|field| {
        let values: Vec<&Datum> = seen.iter().filter_map(|d| d.get(&field.name)).collect();
        let (field_type, members) = typed(field, &values);
        FieldSpec {
            required: field.is_required,
            fields: members,
            ..FieldSpec::new(0, &field.name, field_type)
        }
    });
    fields.collect()
}

fn typed(field: &Field, seen: &[&Datum]) -> Typed {
    let has_split = field.steps.iter().any(|s| matches!(s, Step::Split(_)));
    match &field.shape {
        Shape::Exists => (FieldType::Bool, Vec::new()),
        Shape::Object(inner) => (FieldType::Struct, members(inner, seen)),
        Shape::Objects(inner) => list((FieldType::Struct, members(inner, &elements(seen)))),
        Shape::All | Shape::Parts => list(scalar(field, &elements(seen))),
        Shape::Join(_) if has_split => list(scalar(field, &elements(seen))),
        Shape::First | Shape::Join(_) => with_default(scalar(field, seen), &field.default),
    }
}

fn list((inner, members): Typed) -> Typed {
    (FieldType::List(Box::new(inner)), members)
}

fn elements<'a>(seen: &[&'a Datum]) -> Vec<&'a Datum> {
    let lists = seen.iter().filter_map(|d| match d {
        Datum::List(items) => Some(items),
        _ => None,
    });
    lists.flatten().collect()
}

/// The type of one value: what the last step makes, without one what the place holds.
fn scalar(field: &Field, seen: &[&Datum]) -> Typed {
    let plain = |field_type| (field_type, Vec::new());
    match field.steps.last() {
        Some(Step::Int(_)) => plain(FieldType::Int),
        Some(Step::Decimal(_)) => plain(decimal_of(seen)),
        Some(Step::Date(_)) => plain(FieldType::Date),
        Some(Step::Timestamp(..)) => plain(FieldType::Timestamp),
        Some(Step::Map(words)) => of_values(&words.values().collect::<Vec<_>>(), 0),
        Some(Step::Json(_)) => of_values(seen, 0),
        Some(
            Step::Trim
            | Step::Collapse
            | Step::Url
            | Step::Replace(..)
            | Step::Format(_)
            | Step::Regex(..)
            | Step::Split(_),
        ) => plain(FieldType::String),
        None if matches!(field.shape, Shape::Join(_)) => plain(FieldType::String),
        None => match &field.source {
            Source::Css(_) | Source::Query(_) | Source::Path(_) | Source::Header(_) => {
                plain(FieldType::String)
            }
            Source::Page(PageValue::Status) => plain(FieldType::Int),
            Source::Page(PageValue::FetchedAt) => plain(FieldType::Timestamp),
            Source::Page(PageValue::Url | PageValue::Stage | PageValue::Body) => {
                plain(FieldType::String)
            }
            Source::Value(value) => of_values(&[value], 0),
            Source::Own | Source::Json(_) | Source::JsonLd(_) | Source::Microdata(_) => {
                of_values(seen, 0)
            }
        },
    }
}

/// A default of another kind makes the column JSON. Texts are read by the type, as the values are.
fn with_default(typed: Typed, default: &Datum) -> Typed {
    let fits = match (default, &typed.0) {
        (Datum::Null, _) | (Datum::Text(_), _) => true,
        (Datum::Number(_), FieldType::Int | FieldType::Float | FieldType::Decimal { .. }) => true,
        (Datum::Bool(_), FieldType::Bool) => true,
        _ => false,
    };
    match fits {
        true => typed,
        false => (FieldType::Json, Vec::new()),
    }
}

/// A decimal that holds every value that was seen, with room for dearer ones.
fn decimal_of(seen: &[&Datum]) -> FieldType {
    let (mut whole, mut scale) = (0, usize::from(DECIMAL_SCALE));
    for text in seen.iter().filter_map(|d| d.scalar_text()) {
        let digits = text.trim_start_matches(['-', '+']);
        let (before, after) = digits.split_once('.').unwrap_or((digits, ""));
        whole = whole.max(before.len());
        scale = scale.max(after.len());
    }
    let scale = scale.min(MAX_DIGITS);
    let precision = (whole + scale).clamp(usize::from(DECIMAL_DIGITS).max(scale), MAX_DIGITS);
    FieldType::Decimal {
        precision: u8::try_from(precision).unwrap_or(38),
        scale: u8::try_from(scale).unwrap_or(38),
    }
}

/// The type of values; JSON where they are of several kinds, or where there are none.
fn of_values(values: &[&Datum], depth: usize) -> Typed {
    let values: Vec<&Datum> = values.iter().filter(|v| !v.is_null()).copied().collect();
    let json = (FieldType::Json, Vec::new());
    let Some(first) = values.first() else {
        return json;
    };
    let is_one_kind = values
        .iter()
        .all(|v| std::mem::discriminant(*v) == std::mem::discriminant(*first));
    match first {
        _ if !is_one_kind => json,
        Datum::Null => json,
        Datum::Bool(_) => (FieldType::Bool, Vec::new()),
        Datum::Text(_) => (FieldType::String, Vec::new()),
        Datum::Number(_) => {
            let mut texts = values.iter().filter_map(|v| v.scalar_text());
            let is_int = texts.all(|t| t.parse::<i64>().is_ok());
            (
                if is_int {
                    FieldType::Int
                } else {
                    FieldType::Float
                },
                Vec::new(),
            )
        }
        Datum::List(_) if depth >= MAX_LIST_DEPTH => json,
        Datum::List(_) => match elements(&values) {
            inner if inner.iter().all(|v| v.is_null()) => json,
            inner => list(of_values(&inner, depth + 1)),
        },
        Datum::Object(_) => match object_members(&values, depth) {
            members if members.is_empty() => json,
            members => (FieldType::Struct, members),
        },
    }
}

/// The members of all objects, in the order in which they are first met.
fn object_members(objects: &[&Datum], depth: usize) -> Vec<FieldSpec> {
    let mut names: Vec<&str> = Vec::new();
    for object in objects {
        if let Datum::Object(members) = object {
            for (name, _) in members {
                if !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
        }
    }
    let members = names.into_iter().map(|name| {
        let values: Vec<&Datum> = objects.iter().filter_map(|o| o.get(name)).collect();
        let (field_type, fields) = match depth >= MAX_LIST_DEPTH {
            true => (FieldType::Json, Vec::new()),
            false => of_values(&values, depth + 1),
        };
        FieldSpec {
            fields,
            ..FieldSpec::new(0, name, field_type)
        }
    });
    members.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SourceConfig;

    fn columns(fields: &str, seen: &[&Datum]) -> Vec<String> {
        let text = format!(
            "class = \"log\"\n[[parse.page]]\n[[parse.page.item]]\nkey = [\"id\"]\n[parse.page.item.field]\nid = {{ path = 1 }}\n{fields}"
        );
        let source = SourceConfig::parse(&"shop".parse().unwrap(), &text, "source.toml").unwrap();
        let rules = Rules::read(&source, "source.toml").unwrap();
        let columns = rules.columns(&"shop".parse().unwrap(), seen);
        let mut lines = Vec::new();
        told(&columns, "", &mut lines);
        lines
    }

    fn told(columns: &[FieldSpec], above: &str, lines: &mut Vec<String>) {
        for column in columns {
            let path = format!("{above}{}", column.name);
            let mark = if column.required { "!" } else { "" };
            lines.push(format!("{path} {}{mark}", column.field_type));
            told(&column.fields, &format!("{path}."), lines);
        }
    }

    fn text(text: &str) -> Datum {
        Datum::Text(text.to_owned())
    }

    fn number(text: &str) -> Datum {
        Datum::Number(text.to_owned())
    }

    fn object(members: &[(&str, Datum)]) -> Datum {
        let members = members.iter();
        Datum::Object(members.map(|(n, v)| ((*n).to_owned(), v.clone())).collect())
    }

    #[test]
    fn types_are_those_of_the_last_step() {
        let fields = r#"
            title = { css = "h1::text", required = true }
            price = { css = "b::text", clean = ["decimal"] }
            stock = { css = "i::text", clean = [{ regex = '\d+' }, "int"] }
            code = { css = "i::text", clean = ["int", "trim"] }
            stars = { css = "i::attr(class)", clean = [{ map = { One = 1, Two = 2 } }] }
            size = { css = "i::attr(class)", clean = [{ map = { S = "small" } }] }
            odd = { css = "i::attr(class)", clean = [{ map = { a = 1, b = "b" } }] }
            day = { css = "u::text", clean = [{ date = "%Y-%m-%d" }] }
            tags = { css = "a::text", all = true }
            new = { css = ".new", exists = true }
            status = { page = "status" }
            none = { css = "s::text", clean = ["int"], default = "no" }
            other = { css = "s::text", default = 0 }
            reviews = { each = "li", field = { stars = { css = "::attr(x)", clean = ["int"], required = true } } }
        "#;
        let records = [
            object(&[("price", text("1234567890.5"))]),
            object(&[
                ("price", text("2.125")),
                ("reviews", Datum::List(Vec::new())),
            ]),
        ];
        let seen: Vec<&Datum> = records.iter().collect();
        assert_eq!(
            columns(fields, &seen),
            [
                "id string!",
                "title string!",
                "price decimal(13,3)",
                "stock int",
                "code string",
                "stars int",
                "size string",
                "odd json",
                "day date",
                "tags list<string>",
                "new bool",
                "status int",
                "none int",
                "other json",
                "reviews list<struct>",
                "reviews.stars int!",
                "_raw string",
                "_key string",
                "_fetched_at timestamp",
            ]
        );
    }

    #[test]
    fn what_json_holds_is_read_off_records() {
        let fields = r#"
            n = "$.n"
            x = "$.x"
            mixed = "$.mixed"
            never = "$.never"
            list = { json = "$.list[*]", all = true }
            thing = "$.thing"
        "#;
        let records = [
            object(&[
                ("n", number("1")),
                ("x", number("1")),
                ("mixed", number("1")),
                ("list", Datum::List(vec![Datum::Bool(true)])),
                ("thing", object(&[("a", text("a"))])),
            ]),
            object(&[
                ("n", Datum::Null),
                ("x", number("1.5")),
                ("mixed", text("1")),
                ("thing", object(&[("b", Datum::List(vec![number("1")]))])),
            ]),
        ];
        let seen: Vec<&Datum> = records.iter().collect();
        let found = columns(fields, &seen);
        assert_eq!(
            found[1..9],
            [
                "n int",
                "x float",
                "mixed json",
                "never json",
                "list list<bool>",
                "thing struct",
                "thing.a string",
                "thing.b list<int>",
            ]
        );
    }
}
