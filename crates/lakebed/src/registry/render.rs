//! A version as canonical TOML: fixed key order, one key a line, members indented.
//!
//! `parse(render_toml(spec)) == spec` for every version. What stands here by key and text is also
//! what `diff` compares, so a difference that a file shows is a difference that is told.

use crate::spec::{
    Ambiguous, CastSpec, ChangeKind, FieldSpec, InputFormat, Lifecycle, Lossy, MoneySpec, Privacy,
    ReadSpec, RemovedField, SchemaSpec, Token,
};

/// The version as a TOML file.
#[must_use]
pub fn render_toml(spec: &SchemaSpec) -> String {
    let mut out = String::new();
    for (key, value) in version_keys(spec) {
        push_line(&mut out, "", key, &value);
    }
    let input = input_keys(&spec.input);
    if !input.is_empty() {
        out.push_str("\n[input]\n");
        for (key, value) in input {
            push_line(&mut out, "", key, &value);
        }
    }
    for field in &spec.fields {
        push_field(&mut out, field, 0);
    }
    out
}

fn push_line(out: &mut String, indent: &str, key: &str, value: &str) {
    out.push_str(indent);
    out.push_str(key);
    out.push_str(" = ");
    out.push_str(value);
    out.push('\n');
}

fn push_field(out: &mut String, field: &FieldSpec, depth: usize) {
    let indent = "  ".repeat(depth);
    out.push('\n');
    out.push_str(&indent);
    out.push_str("[[field");
    out.push_str(&".field".repeat(depth));
    out.push_str("]]\n");
    for (key, value) in field_keys(field) {
        push_line(out, &indent, key, &value);
    }
    for member in &field.fields {
        push_field(out, member, depth + 1);
    }
}

/// Keys of the version with their TOML values, in canonical order; `[input]` and fields apart.
pub(crate) fn version_keys(spec: &SchemaSpec) -> Vec<(&'static str, String)> {
    let mut keys = Keys(Vec::new());
    keys.add("dataset", quote(&spec.dataset.to_string()));
    keys.add("version", spec.version.to_string());
    keys.text("note", spec.note.as_deref());
    keys.option("base", spec.base.map(|b| b.to_string()));
    keys.list(
        "removed",
        spec.removed.iter().map(|r| match r {
            RemovedField::Id(id) => id.to_string(),
            RemovedField::Name(name) => quote(name),
        }),
    );
    keys.0
}

/// Keys of `[input]` with their TOML values, in canonical order.
pub(crate) fn input_keys(input: &ReadSpec) -> Vec<(&'static str, String)> {
    let mut keys = Keys(Vec::new());
    keys.text(
        "format",
        input.format.map(|f| match f {
            InputFormat::Json => "json",
            InputFormat::Jsonl => "jsonl",
            InputFormat::Csv => "csv",
            InputFormat::Tsv => "tsv",
            InputFormat::Parquet => "parquet",
        }),
    );
    keys.text("encoding", input.encoding.as_deref());
    keys.text("delimiter", input.delimiter.as_deref());
    keys.text("quote", input.quote.as_deref());
    // An empty list is written: it is not the same as none.
    keys.option(
        "header",
        input
            .header
            .as_ref()
            .map(|h| list(h.iter().map(|n| quote(n)))),
    );
    keys.text("records", input.records.as_deref());
    keys.option("allow_nan", input.allow_nan.map(|b| b.to_string()));
    keys.option("nan_as_null", input.nan_as_null.map(|b| b.to_string()));
    keys.0
}

/// Keys of a field with their TOML values, in canonical order; members apart.
pub(crate) fn field_keys(field: &FieldSpec) -> Vec<(&'static str, String)> {
    let mut keys = Keys(Vec::new());
    keys.add("id", field.id.to_string());
    keys.add("name", quote(&field.name));
    keys.text("renamed_from", field.renamed_from.as_deref());
    keys.text("from", field.from.as_deref());
    keys.add("type", quote(&field.field_type.to_string()));
    keys.text(
        "change",
        field.change.map(|c| match c {
            ChangeKind::Dual => "dual",
            ChangeKind::CastOld => "cast_old",
            ChangeKind::Retype => "retype",
        }),
    );
    keys.text("column", field.column.as_deref());
    keys.option("cast", field.cast.as_ref().map(cast));
    keys.flag("required", field.required);
    keys.list("values", field.values.iter().map(|v| quote(v)));
    keys.list("formats", field.formats.iter().map(|f| quote(f)));
    keys.text("time_zone", field.time_zone.as_deref());
    keys.text("ambiguous", field.ambiguous.map(ambiguous));
    keys.option("money", field.money.as_ref().map(money));
    keys.list("true_values", field.true_values.iter().map(token));
    keys.list("false_values", field.false_values.iter().map(token));
    keys.list("null_values", field.null_values.iter().map(token));
    keys.flag("lenient", field.lenient);
    keys.option("allow_nan", field.allow_nan.map(|b| b.to_string()));
    keys.option("nan_as_null", field.nan_as_null.map(|b| b.to_string()));
    keys.text(
        "lifecycle",
        field.lifecycle.map(|l| match l {
            Lifecycle::Active => "active",
            Lifecycle::Deprecated => "deprecated",
        }),
    );
    keys.text(
        "privacy",
        field.privacy.map(|p| match p {
            Privacy::Public => "public",
            Privacy::Personal => "personal",
        }),
    );
    keys.text("doc", field.doc.as_deref());
    keys.0
}

struct Keys(Vec<(&'static str, String)>);

impl Keys {
    fn add(&mut self, key: &'static str, value: String) {
        self.0.push((key, value));
    }

    fn option(&mut self, key: &'static str, value: Option<String>) {
        if let Some(value) = value {
            self.add(key, value);
        }
    }

    fn text(&mut self, key: &'static str, value: Option<&str>) {
        self.option(key, value.map(quote));
    }

    fn flag(&mut self, key: &'static str, value: bool) {
        self.option(key, value.then(|| "true".to_owned()));
    }

    fn list(&mut self, key: &'static str, items: impl ExactSizeIterator<Item = String>) {
        if items.len() > 0 {
            self.add(key, list(items));
        }
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn ambiguous(ambiguous: Ambiguous) -> &'static str {
    match ambiguous {
        Ambiguous::Earlier => "earlier",
        Ambiguous::Later => "later",
        Ambiguous::Reject => "reject",
    }
}

fn cast(cast: &CastSpec) -> String {
    let mut keys = Keys(Vec::new());
    keys.add("from", quote(&cast.from.to_string()));
    keys.text(
        "lossy",
        cast.lossy.map(|l| match l {
            Lossy::Truncate => "truncate",
            Lossy::Round => "round",
        }),
    );
    keys.list("formats", cast.formats.iter().map(|f| quote(f)));
    keys.text("time_zone", cast.time_zone.as_deref());
    keys.text("ambiguous", cast.ambiguous.map(ambiguous));
    keys.option("money", cast.money.as_ref().map(money));
    let keys = keys.0.iter().map(|(key, value)| format!("{key} = {value}"));
    format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))
}

fn money(money: &MoneySpec) -> String {
    let mut parts = vec![format!(
        "symbols = {}",
        list(money.symbols.iter().map(|s| quote(s)))
    )];
    for (key, mark) in [("thousands", &money.thousands), ("decimal", &money.decimal)] {
        if let Some(mark) = mark {
            parts.push(format!("{key} = {}", quote(mark)));
        }
    }
    format!("{{ {} }}", parts.join(", "))
}

fn token(token: &Token) -> String {
    match token {
        Token::Text(text) => quote(text),
        Token::Int(n) => n.to_string(),
        Token::Float(x) => format!("{x:?}"),
    }
}

/// A TOML basic string; scripts of all kinds stay readable, control characters are escaped.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || is_invisible(c) => {
                let code = u32::from(c);
                let escaped = if code > 0xFFFF {
                    format!("\\U{code:08X}")
                } else {
                    format!("\\u{code:04X}")
                };
                out.push_str(&escaped);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Characters that a reviewer of the file could not see.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{A0}' | '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{3000}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::parse;
    use proptest::prelude::*;

    #[test]
    fn the_example_stays_readable() {
        let text = r#"dataset = "clean/weibo"
version = 2
note = "网站加了 read_count"
base = 1
removed = ["旧字段", 7, "kind=flat"]

[input]
format = "csv"
encoding = "gb18030"
delimiter = ";"
header = ["标题", ""]

[[field]]
id = 1
name = "title"
from = "标题"
type = "string"
required = true

[[field]]
id = 2
name = "published_at"
type = "timestamp"
formats = ["rfc3339", "%Y-%m-%d %H:%M:%S", "epoch_ms"]
time_zone = "Asia/Shanghai"
ambiguous = "reject"

[[field]]
id = 3
name = "price"
type = "decimal(12,2)"
money = { symbols = ["$", "NT$"], thousands = ",", decimal = "." }
null_values = ["", "-", -1, 1.5]

[[field]]
id = 5
name = "author"
type = "list<struct>"
privacy = "personal"

  [[field.field]]
  id = 6
  name = "name"
  type = "struct"

    [[field.field.field]]
    id = 8
    name = "名"
    type = "string"
    doc = "line one\nline \"two\""
"#;
        let spec = parse(text, "v2.toml").unwrap();
        assert_eq!(render_toml(&spec), text);
    }

    fn any_field(id: u32) -> impl Strategy<Value = FieldSpec> {
        let token = prop_oneof![
            any::<String>().prop_map(Token::Text),
            any::<i64>().prop_map(Token::Int),
            (-1e6..1e6_f64)
                .prop_map(|x| Token::Float(x + 0.5_f64.copysign(x)))
                .prop_filter("an integral float has no text of its own", |t| {
                    t.text().contains('.')
                }),
        ];
        (
            any::<String>(),
            prop_oneof![
                Just("string"),
                Just("list<map<decimal(9,2)>>"),
                Just("enum")
            ],
            proptest::collection::vec(token, 0..4),
            proptest::collection::vec(any::<String>(), 0..4),
            proptest::option::of(any::<String>()),
            any::<bool>(),
        )
            .prop_map(move |(name, kind, tokens, values, from, flag)| {
                let mut field = FieldSpec::new(id, &name, kind.parse().unwrap());
                field.null_values = tokens;
                field.values = values;
                field.doc.clone_from(&from);
                field.from = from;
                field.required = flag;
                field.allow_nan = flag.then_some(false);
                field
            })
    }

    proptest! {
        #[test]
        fn every_version_round_trips(
            note in proptest::option::of(any::<String>()),
            mut fields in proptest::collection::vec(any_field(1), 0..5),
            inner in any_field(2),
            header in proptest::option::of(proptest::collection::vec(any::<String>(), 0..3)),
        ) {
            if let Some(first) = fields.first_mut() {
                first.fields = vec![inner.clone(), inner];
            }
            let mut spec: SchemaSpec = toml::from_str("dataset = \"clean/a\"\nversion = 3\n").unwrap();
            spec.note = note;
            spec.removed = vec![RemovedField::Id(4), RemovedField::Name("作者.名".to_owned())];
            spec.input.header = header;
            spec.fields = fields;
            let text = render_toml(&spec);
            prop_assert_eq!(parse(&text, "v3.toml").unwrap(), spec, "{}", text);
        }
    }
}
