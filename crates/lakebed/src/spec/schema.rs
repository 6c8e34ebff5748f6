//! A schema version: the TOML file a team reviews in git, and the JSON that is published from it.
//!
//! This is data only. Whether a version is sound, and what may follow it, is `registry`'s business;
//! how a value is converted is `ingest`'s. The keys are those of docs/formats/schema.md.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::name::{ContentHash, DatasetRef, LakeId};
use crate::spec::By;
use crate::time::Instant;

/// Newest format number of published schema files: 2 where a field is retyped or casts to its old type.
pub const PUBLISHED_FORMAT: u32 = 2;

/// One version of a dataset's schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaSpec {
    /// The dataset.
    pub dataset: DatasetRef,
    /// Its number, from 1.
    pub version: u32,
    /// What changed and why.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub note: Option<String>,
    /// The version this one was made from; absent only in version 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<u32>,
    /// Fields of the base that this version drops on purpose, by name or id.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub removed: Vec<RemovedField>,
    /// How this source's files are read, where it is not the default.
    #[serde(skip_serializing_if = "ReadSpec::is_default", default)]
    pub input: ReadSpec,
    /// Top-level fields in order.
    #[serde(rename = "field", default)]
    pub fields: Vec<FieldSpec>,
}

/// A dropped field, by name or by id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RemovedField {
    /// By id.
    Id(u32),
    /// By name.
    Name(String),
}

/// Form of an input file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputFormat {
    /// JSON in any of its forms; arrays, documents and lines are told apart by reading.
    Json,
    /// JSON lines, even where reading would say otherwise.
    Jsonl,
    /// Cells with a delimiter, comma unless declared.
    Csv,
    /// Cells with a delimiter, tab unless declared.
    Tsv,
    /// Apache Parquet.
    Parquet,
}

/// The table `[input]`. Every key may be absent; command-line options override it for one call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadSpec {
    /// Form; absent = by file name, then by the first byte.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub format: Option<InputFormat>,
    /// WHATWG label; absent = UTF-8. A byte order mark beats it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub encoding: Option<String>,
    /// One ASCII character; absent = comma, tab for TSV.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub delimiter: Option<String>,
    /// One ASCII character; absent = `"`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub quote: Option<String>,
    /// Column names of a CSV file that has no header line.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub header: Option<Vec<String>>,
    /// JSON pointer to the records of a document.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub records: Option<String>,
    /// Accept NaN and Infinity in float fields.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub allow_nan: Option<bool>,
    /// Store NaN as NULL, counted as nan; absent = true for Parquet, else false.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nan_as_null: Option<bool>,
}

impl ReadSpec {
    /// Whether nothing is declared.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// This table with every key that `over` declares replaced.
    #[must_use]
    pub fn overridden_by(&self, over: &Self) -> Self {
        Self {
            format: over.format.or(self.format),
            encoding: over.encoding.clone().or_else(|| self.encoding.clone()),
            delimiter: over.delimiter.clone().or_else(|| self.delimiter.clone()),
            quote: over.quote.clone().or_else(|| self.quote.clone()),
            header: over.header.clone().or_else(|| self.header.clone()),
            records: over.records.clone().or_else(|| self.records.clone()),
            allow_nan: over.allow_nan.or(self.allow_nan),
            nan_as_null: over.nan_as_null.or(self.nan_as_null),
        }
    }
}

/// A null or bool token of the schema: a text, or a number by its own text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Token {
    /// A text.
    Text(String),
    /// An integer.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
}

impl Token {
    /// The token's text.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Text(t) => t.clone(),
            Self::Int(n) => n.to_string(),
            Self::Float(x) => x.to_string(),
        }
    }
}

/// One field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldSpec {
    /// Stable id, unique in the dataset over all versions and depths, never reused.
    pub id: u32,
    /// Column name.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub field_type: FieldType,
    /// Whether a record without a value is a reject.
    #[serde(skip_serializing_if = "is_false", default)]
    pub required: bool,
    /// Texts or numbers that mean NULL.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub null_values: Vec<Token>,
    /// Date and timestamp formats, tried in order; empty = the default of the type.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub formats: Vec<String>,
    /// IANA zone of texts without an offset.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub time_zone: Option<String>,
    /// What the repeated hour of a clock change means; absent = reject.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ambiguous: Option<Ambiguous>,
    /// How amounts of money are written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub money: Option<MoneySpec>,
    /// Values of an enum, append-only.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub values: Vec<String>,
    /// Further values that mean true.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub true_values: Vec<Token>,
    /// Further values that mean false.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub false_values: Vec<Token>,
    /// Whether a string field takes JSON numbers by their own text.
    #[serde(skip_serializing_if = "is_false", default)]
    pub lenient: bool,
    /// Accept NaN and Infinity; absent = as `[input]` says.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub allow_nan: Option<bool>,
    /// Store NaN as NULL; absent = as `[input]` says.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nan_as_null: Option<bool>,
    /// Input name, or JSON pointer when it begins with `/`; absent = `name`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    /// The name this id had in the base.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub renamed_from: Option<String>,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub doc: Option<String>,
    /// Absent = active.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lifecycle: Option<Lifecycle>,
    /// Absent = public.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub privacy: Option<Privacy>,
    /// The declared strategy of a type change.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub change: Option<ChangeKind>,
    /// Name of the column in the files, where `name` was that of a field of another type; absent = `name`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub column: Option<String>,
    /// The form that is cast to the field's type, under `cast_old`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cast: Option<CastSpec>,
    /// Members of a struct (also under `list<struct>` and `map<struct>`).
    #[serde(rename = "field", skip_serializing_if = "Vec::is_empty", default)]
    pub fields: Vec<FieldSpec>,
}

fn is_false(b: &bool) -> bool {
    !b
}

impl FieldSpec {
    /// A field with nothing declared but id, name and type.
    #[must_use]
    pub fn new(id: u32, name: &str, field_type: FieldType) -> Self {
        Self {
            id,
            name: name.to_owned(),
            field_type,
            required: false,
            null_values: Vec::new(),
            formats: Vec::new(),
            time_zone: None,
            ambiguous: None,
            money: None,
            values: Vec::new(),
            true_values: Vec::new(),
            false_values: Vec::new(),
            lenient: false,
            allow_nan: None,
            nan_as_null: None,
            from: None,
            renamed_from: None,
            doc: None,
            lifecycle: None,
            privacy: None,
            change: None,
            column: None,
            cast: None,
            fields: Vec::new(),
        }
    }

    /// Its column in the files: what readers by name see.
    #[must_use]
    pub fn column_name(&self) -> &str {
        self.column.as_deref().unwrap_or(&self.name)
    }

    /// The name or pointer under which inputs carry it.
    #[must_use]
    pub fn input_name(&self) -> &str {
        self.from.as_deref().unwrap_or(&self.name)
    }

    /// Whether no bounds, samples or values of it may stand outside the data.
    #[must_use]
    pub fn is_personal(&self) -> bool {
        self.privacy == Some(Privacy::Personal)
    }
}

/// The type of a field. Text form: `string`, `decimal(12,2)`, `list<map<int>>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum FieldType {
    /// UTF-8 text.
    String,
    /// Signed 64-bit integer.
    Int,
    /// IEEE 754 double.
    Float,
    /// true or false.
    Bool,
    /// Exact decimal.
    Decimal {
        /// All digits, 1 to 38.
        precision: u8,
        /// Digits after the point, at most `precision`.
        scale: u8,
    },
    /// Calendar day.
    Date,
    /// Instant, microseconds UTC.
    Timestamp,
    /// One of the declared texts.
    Enum,
    /// Any JSON value as its text.
    Json,
    /// Bytes, base64 in JSON and CSV.
    Bytes,
    /// List of elements.
    List(Box<FieldType>),
    /// Map from text to values.
    Map(Box<FieldType>),
    /// The declared members.
    Struct,
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String => f.write_str("string"),
            Self::Int => f.write_str("int"),
            Self::Float => f.write_str("float"),
            Self::Bool => f.write_str("bool"),
            Self::Decimal { precision, scale } => write!(f, "decimal({precision},{scale})"),
            Self::Date => f.write_str("date"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Enum => f.write_str("enum"),
            Self::Json => f.write_str("json"),
            Self::Bytes => f.write_str("bytes"),
            Self::List(t) => write!(f, "list<{t}>"),
            Self::Map(t) => write!(f, "map<{t}>"),
            Self::Struct => f.write_str("struct"),
        }
    }
}

/// Deepest nesting of list and map in one type.
const MAX_TYPE_DEPTH: usize = 8;

impl FieldType {
    fn parse(text: &str, depth: usize) -> Result<Self> {
        let bad = || {
            Error::invalid(format!("`{text}` is not a type")).hint(
                "types are string, int, float, bool, decimal(p,s), date, timestamp, enum, json, bytes, list<T>, map<T>, struct",
            )
        };
        if depth > MAX_TYPE_DEPTH {
            return Err(Error::invalid(format!(
                "type is nested deeper than {MAX_TYPE_DEPTH}"
            )));
        }
        let inner = |prefix: &str| text.strip_prefix(prefix).and_then(|t| t.strip_suffix('>'));
        if let Some(t) = inner("list<") {
            return Ok(Self::List(Box::new(Self::parse(t.trim(), depth + 1)?)));
        }
        if let Some(t) = inner("map<") {
            return Ok(Self::Map(Box::new(Self::parse(t.trim(), depth + 1)?)));
        }
        if let Some(t) = text
            .strip_prefix("decimal(")
            .and_then(|t| t.strip_suffix(')'))
        {
            let (p, s) = t.split_once(',').ok_or_else(bad)?;
            let precision: u8 = p.trim().parse().map_err(|_| bad())?;
            let scale: u8 = s.trim().parse().map_err(|_| bad())?;
            if precision == 0 || precision > 38 || scale > precision {
                return Err(bad().hint("decimal(p,s): p from 1 to 38, s at most p"));
            }
            return Ok(Self::Decimal { precision, scale });
        }
        Ok(match text {
            "string" => Self::String,
            "int" => Self::Int,
            "float" => Self::Float,
            "bool" => Self::Bool,
            "date" => Self::Date,
            "timestamp" => Self::Timestamp,
            "enum" => Self::Enum,
            "json" => Self::Json,
            "bytes" => Self::Bytes,
            "struct" => Self::Struct,
            _ => return Err(bad()),
        })
    }

    /// The innermost type under lists and maps.
    #[must_use]
    pub fn leaf(&self) -> &Self {
        match self {
            Self::List(t) | Self::Map(t) => t.leaf(),
            Self::String
            | Self::Int
            | Self::Float
            | Self::Bool
            | Self::Decimal { .. }
            | Self::Date
            | Self::Timestamp
            | Self::Enum
            | Self::Json
            | Self::Bytes
            | Self::Struct => self,
        }
    }
}

impl FromStr for FieldType {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text.trim(), 0)
    }
}

impl TryFrom<String> for FieldType {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<FieldType> for String {
    fn from(value: FieldType) -> Self {
        value.to_string()
    }
}

/// What the repeated hour of a clock change means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ambiguous {
    /// The first of the two.
    Earlier,
    /// The second of the two.
    Later,
    /// A mismatch.
    Reject,
}

/// How amounts of money are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoneySpec {
    /// Currency symbols, optional before the number.
    #[serde(default)]
    pub symbols: Vec<String>,
    /// Mark between groups of three digits; absent = none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thousands: Option<String>,
    /// Decimal mark; absent = `.`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub decimal: Option<String>,
}

/// Whether a field is still in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// In use.
    Active,
    /// Kept for old readers.
    Deprecated,
}

/// Whether values may stand outside the data itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Privacy {
    /// May be shown anywhere.
    Public,
    /// No bounds, top values or samples anywhere.
    Personal,
}

/// Strategy of a type change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The old field keeps its value, the parsed value gets a new field.
    Dual,
    /// Parsed to the old type.
    CastOld,
    /// Readers show the newest type.
    Retype,
}

/// Another form of a field's values, and what becomes of those that the field's type cannot keep whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CastSpec {
    /// The type as which such a value is read.
    pub from: FieldType,
    /// What may be lost on the way to the field's type; absent = nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lossy: Option<Lossy>,
    /// Date and timestamp formats of `from`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub formats: Vec<String>,
    /// IANA zone of texts without an offset.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub time_zone: Option<String>,
    /// What the repeated hour of a clock change means; absent = reject.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ambiguous: Option<Ambiguous>,
    /// How amounts of money are written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub money: Option<MoneySpec>,
}

impl CastSpec {
    /// The field as it would be if it had the type `from`.
    #[must_use]
    pub fn as_field(&self, field: &FieldSpec) -> FieldSpec {
        let mut read = FieldSpec::new(field.id, &field.name, self.from.clone());
        read.formats.clone_from(&self.formats);
        read.time_zone.clone_from(&self.time_zone);
        read.ambiguous = self.ambiguous;
        read.money.clone_from(&self.money);
        read.nan_as_null = field.nan_as_null;
        read
    }
}

/// A declared loss of precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lossy {
    /// What is too fine is cut off: digits of a fraction, the time of a day.
    Truncate,
    /// The nearest value; of two equally near ones the one farther from zero.
    Round,
}

/// What kind of data a source delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DatasetClass {
    /// Each day adds observations.
    Log,
    /// Each day holds the whole.
    Snapshot,
    /// Slowly changing look-up data.
    Reference,
}

impl DatasetClass {
    /// The name in TOML and SQL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::Snapshot => "snapshot",
            Self::Reference => "reference",
        }
    }
}

impl SchemaSpec {
    /// The oldest format of published files that can say this version.
    #[must_use]
    pub fn published_format(&self) -> u32 {
        fn needs_second(field: &FieldSpec) -> bool {
            let strategy = matches!(field.change, Some(ChangeKind::CastOld | ChangeKind::Retype));
            strategy
                || field.column.is_some()
                || field.cast.is_some()
                || field.fields.iter().any(needs_second)
        }
        match self.fields.iter().any(needs_second) {
            true => 2,
            false => 1,
        }
    }
}

/// A published version: `_lake/schema/<layer>/<dataset>/v<N>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedSchema {
    /// Format of this file; a newer one is refused.
    pub format: u32,
    /// The lake.
    pub lake: LakeId,
    /// When it was published.
    pub published_at: Instant,
    /// By whom.
    pub by: By,
    /// BLAKE3 of the published file of the base; absent for version 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base_hash: Option<ContentHash>,
    /// Commit of the project's git repository; absent outside one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub git_commit: Option<String>,
    /// The version itself.
    pub schema: SchemaSpec,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_round_trip() {
        for t in [
            "string",
            "decimal(12,2)",
            "list<string>",
            "list<map<list<struct>>>",
            "map<decimal(38,0)>",
        ] {
            assert_eq!(t.parse::<FieldType>().unwrap().to_string(), t);
        }
        for t in [
            "",
            "text",
            "decimal(0,0)",
            "decimal(39,0)",
            "decimal(3,4)",
            "list<>",
            "list<string",
            "decimal(5)",
        ] {
            assert!(t.parse::<FieldType>().is_err(), "{t}");
        }
        let deep = format!("{}int{}", "list<".repeat(200_000), ">".repeat(200_000));
        assert!(deep.parse::<FieldType>().is_err());
    }

    #[test]
    fn the_example_of_the_design_parses() {
        let text = r#"
dataset = "clean/weibo"
version = 2
note = "the site added read_count"
base = 1
[[field]]
id = 1
name = "title"
type = "string"
required = true
[[field]]
id = 3
name = "price"
type = "decimal(12,2)"
money = { symbols = ["$", "NT$"], thousands = ",", decimal = "." }
null_values = ["", "-", "N/A", -1]
[[field]]
id = 5
name = "author"
type = "struct"
  [[field.field]]
  id = 6
  name = "name"
  type = "string"
"#;
        let spec: SchemaSpec = toml::from_str(text).unwrap();
        assert_eq!(spec.fields.len(), 3);
        assert_eq!(spec.fields[2].fields[0].name, "name");
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<SchemaSpec>(&json).unwrap(), spec);
        assert!(toml::from_str::<SchemaSpec>(&text.replace("required", "requird")).is_err());
    }
}
