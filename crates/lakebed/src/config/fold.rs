//! `[fold.<name>]` of a `source.toml`: how today's rows of a source change what is known of each object.
//!
//! What the types of the inputs allow is `fold`'s business; here is what can be said without them.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::parse::{ordered, serialize_ordered};
use crate::config::{ScalarConfig, Texts, nearest_hint};
use crate::error::{Error, Result};
use crate::name::{DatasetName, FoldName};

/// Columns of an events dataset beside the key.
const EVENT_COLUMNS: [&str; 6] = ["event", "field", "old", "new", "late", "seen_at"];

/// The table `[fold.<name>]`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FoldConfig {
    /// Columns that name one object; every input has them.
    pub key: Vec<String>,
    /// The inputs, in order.
    pub from: Vec<FoldInputConfig>,
    /// What is known of an object, in the order in which it is worked out.
    #[serde(default, skip_serializing_if = "FoldFields::is_empty")]
    pub field: FoldFields,
    /// Fields whose changes are events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watch: Vec<String>,
    /// What leaves the snapshot; absent = nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop: Option<FoldDropConfig>,
    /// Days over which a gap is folded again.
    #[serde(default = "replay_days")]
    pub replay_days: u32,
    /// Share of the present objects that may vanish on one day, 0 to 1.
    #[serde(default = "max_vanished")]
    pub max_vanished: f64,
}

fn replay_days() -> u32 {
    14
}

fn max_vanished() -> f64 {
    0.5
}

/// A table `[[fold.<name>.from]]`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FoldInputConfig {
    /// What rules call it; absent = the last part of the dataset's name.
    pub name: Option<String>,
    /// A dataset of the layer `clean`.
    pub dataset: DatasetName,
    /// Whether its complete day says what is there.
    #[serde(default)]
    pub presence: bool,
    /// Whether it may have nothing at all of a day.
    #[serde(default)]
    pub optional: bool,
    /// A column of instants that tells which row is newer; absent = `_fetched_at`, where there is one.
    pub newest_by: Option<String>,
    /// Rows that say no more than that the object is gone, such as a page that answered 404.
    pub gone: Option<CellTestConfig>,
}

impl FoldInputConfig {
    /// What rules call it.
    #[must_use]
    pub fn name(&self) -> &str {
        let dataset = self.dataset.as_str();
        let last = dataset.split_once('.').map_or(dataset, |(_, last)| last);
        self.name.as_deref().unwrap_or(last)
    }
}

/// Whether a column has one of these values.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CellTestConfig {
    /// The column, or field.
    pub field: String,
    /// The values.
    pub is: Scalars,
}

/// One value or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Scalars(pub Vec<ScalarConfig>);

/// `drop`: a key in one of these states that nothing has touched for so many days is left out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FoldDropConfig {
    /// States of the field of the rule `status`.
    pub status: Texts,
    /// Days without any row.
    pub untouched_days: u32,
}

/// The fields of a fold, in the order they are written in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoldFields(pub Vec<(String, FoldFieldConfig)>);

impl FoldFields {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// How a field is worked out. A text alone is the name of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FoldFieldTable {
    /// The rule.
    #[serde(default)]
    pub rule: FoldRule,
    /// Inputs that it looks at, the one that goes first where instants are equal first; empty = all that have the
    /// column.
    #[serde(default, skip_serializing_if = "is_none")]
    pub from: Texts,
    /// The column of the inputs; absent = the field's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// `fingerprint`: columns of the input. `copy`: the one field.
    #[serde(default, skip_serializing_if = "is_none")]
    pub of: Texts,
    /// `copy`: on days on which this input has a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// `status`: the state of an object that was not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// `status`: its moves; the first that fits is made.
    #[serde(rename = "move", default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<MoveConfig>,
}

fn is_none(texts: &Texts) -> bool {
    texts.0.is_empty()
}

/// A field of a fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldFieldConfig(pub FoldFieldTable);

/// The rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FoldRule {
    /// The newest value that is not null.
    #[default]
    Newest,
    /// The first value that is not null stays.
    Sticky,
    /// The value of the day on which the object came, null included.
    First,
    /// The value of the newest row, null included.
    Last,
    /// How many rows there were.
    Count,
    /// Days since the input of presence had it last.
    DaysAbsent,
    /// The first day with a row.
    FirstSeen,
    /// The last day with a row.
    LastSeen,
    /// The last day with a row of any input, those that say it is gone included.
    LastTouched,
    /// A hash of columns of the newest row.
    Fingerprint,
    /// What another field was when an input had a row last.
    Copy,
    /// A state, moved by rules.
    Status,
}

impl FoldRule {
    /// The word in TOML.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Sticky => "sticky",
            Self::First => "first",
            Self::Last => "last",
            Self::Count => "count",
            Self::DaysAbsent => "days_absent",
            Self::FirstSeen => "first_seen",
            Self::LastSeen => "last_seen",
            Self::LastTouched => "last_touched",
            Self::Fingerprint => "fingerprint",
            Self::Copy => "copy",
            Self::Status => "status",
        }
    }

    /// Whether its value is that of a column of the inputs.
    #[must_use]
    pub fn takes_column(self) -> bool {
        match self {
            Self::Newest | Self::Sticky | Self::First | Self::Last => true,
            Self::Count
            | Self::DaysAbsent
            | Self::FirstSeen
            | Self::LastSeen
            | Self::LastTouched
            | Self::Fingerprint
            | Self::Copy
            | Self::Status => false,
        }
    }
}

/// A move of a state.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MoveConfig {
    /// From which states; empty = from any.
    #[serde(default, skip_serializing_if = "is_none")]
    pub from: Texts,
    /// To which.
    pub to: String,
    /// All that must be so.
    pub when: WhenConfig,
}

/// What must be so today; every key that is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct WhenConfig {
    /// This input has a row of today.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// This input says that it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone: Option<String>,
    /// It is absent for at least so many days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent_days: Option<u32>,
    /// This field, worked out before, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// ... has one of these values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is: Option<Scalars>,
}

impl<'de> Deserialize<'de> for FoldFields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        ordered(from, "a table of fields").map(Self)
    }
}

impl Serialize for FoldFields {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serialize_ordered(&self.0, to)
    }
}

impl Serialize for FoldFieldConfig {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

impl<'de> Deserialize<'de> for FoldFieldConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Field;
        impl<'de> Visitor<'de> for Field {
            type Value = FoldFieldConfig;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a rule, or a table")
            }
            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<FoldFieldConfig, E> {
                let word = serde::de::value::StrDeserializer::<E>::new(word);
                Ok(FoldFieldConfig(FoldFieldTable {
                    rule: FoldRule::deserialize(word)?,
                    from: Texts::default(),
                    column: None,
                    of: Texts::default(),
                    at: None,
                    start: None,
                    moves: Vec::new(),
                }))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FoldFieldConfig, A::Error> {
                FoldFieldTable::deserialize(MapAccessDeserializer::new(map)).map(FoldFieldConfig)
            }
        }
        from.deserialize_any(Field)
    }
}

impl<'de> Deserialize<'de> for Scalars {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Values;
        impl<'de> Visitor<'de> for Values {
            type Value = Scalars;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value or a list of values")
            }
            fn visit_bool<E>(self, value: bool) -> Result<Scalars, E> {
                Ok(Scalars(vec![ScalarConfig::Bool(value)]))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Scalars, E> {
                Ok(Scalars(vec![ScalarConfig::Int(value)]))
            }
            fn visit_str<E>(self, value: &str) -> Result<Scalars, E> {
                Ok(Scalars(vec![ScalarConfig::Text(value.to_owned())]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Scalars, A::Error> {
                let mut values = Vec::new();
                while let Some(item) = items.next_element()? {
                    values.push(item);
                }
                Ok(Scalars(values))
            }
        }
        from.deserialize_any(Values)
    }
}

/// What is wrong with a fold, and where.
struct Wrong {
    key: String,
    what: String,
    hint: String,
}

type Checked = std::result::Result<(), Wrong>;

fn wrong(key: impl Into<String>, what: impl Into<String>, hint: impl Into<String>) -> Checked {
    Err(Wrong {
        key: key.into(),
        what: what.into(),
        hint: hint.into(),
    })
}

impl FoldConfig {
    /// Checks what can be said without the schemas of the inputs.
    pub(super) fn check(&self, name: &FoldName, source: &str, file: &str) -> Result<()> {
        let checked = self
            .check_inputs(source)
            .and_then(|()| self.check_keys())
            .and_then(|()| self.check_fields())
            .and_then(|()| self.check_ends());
        checked.map_err(|wrong| {
            Error::invalid(format!("fold `{name}`: {}", wrong.what))
                .with("file", file)
                .with("key", format!("fold.{name}.{}", wrong.key))
                .hint(wrong.hint)
        })
    }

    fn check_inputs(&self, source: &str) -> Checked {
        if self.from.is_empty() {
            return wrong(
                "from",
                "it has no input",
                "[[fold.NAME.from]] dataset = \"...\"",
            );
        }
        for (i, input) in self.from.iter().enumerate() {
            let dataset = input.dataset.as_str();
            let of = dataset.split_once('.').map_or(dataset, |(of, _)| of);
            if of != source {
                return wrong(
                    "from.dataset",
                    format!("`{dataset}` does not belong to `{source}`"),
                    "a fold reads datasets of its own source",
                );
            }
            if self.from[..i]
                .iter()
                .any(|other| other.name() == input.name())
            {
                return wrong(
                    "from.name",
                    format!("two inputs are called `{}`", input.name()),
                    "give one of them a `name`",
                );
            }
        }
        if self.from.iter().filter(|input| input.presence).count() > 1 {
            return wrong(
                "from.presence",
                "two inputs say what is there",
                "`presence = true` stands in one input at most",
            );
        }
        Ok(())
    }

    fn check_keys(&self) -> Checked {
        if self.key.is_empty() {
            return wrong(
                "key",
                "it has no key",
                "key = [\"id\"]: the columns that name one object",
            );
        }
        for (i, column) in self.key.iter().enumerate() {
            if self.key[..i].contains(column) {
                return wrong(
                    "key",
                    format!("`{column}` stands twice in `key`"),
                    "name it once",
                );
            }
            if EVENT_COLUMNS.contains(&column.as_str()) {
                return wrong(
                    "key",
                    format!("`{column}` is a column of every events dataset"),
                    "rename it in the schema of the inputs",
                );
            }
            if self.field.0.iter().any(|(field, _)| field == column) {
                return wrong(
                    format!("field.{column}"),
                    format!("`{column}` is a column of the key"),
                    "the key stands in the snapshot by itself",
                );
            }
        }
        Ok(())
    }

    fn check_fields(&self) -> Checked {
        for (i, (name, field)) in self.field.0.iter().enumerate() {
            self.check_field(name, &field.0, &self.field.0[..i])?;
        }
        let has = |rule| self.fields_of(rule).next().is_some();
        for rule in [
            FoldRule::DaysAbsent,
            FoldRule::LastTouched,
            FoldRule::Status,
        ] {
            if self.fields_of(rule).count() > 1 {
                return wrong(
                    "field",
                    format!("two fields of the rule `{}`", rule.as_str()),
                    "keep one",
                );
            }
        }
        let presence = self.from.iter().any(|input| input.presence);
        match (presence, has(FoldRule::DaysAbsent)) {
            (true, false) => wrong(
                "field",
                "no field counts the days of absence, so nothing could vanish or return",
                "days_absent = \"days_absent\"",
            ),
            (false, true) => wrong(
                "field",
                "days of absence are counted, and no input says what is there",
                "set `presence = true` in the input whose complete day is the list of all objects",
            ),
            (true, true) | (false, false) => Ok(()),
        }
    }

    /// The fields of a rule, with their names.
    pub fn fields_of(&self, rule: FoldRule) -> impl Iterator<Item = (&str, &FoldFieldTable)> {
        let fields = self
            .field
            .0
            .iter()
            .filter(move |(_, field)| field.0.rule == rule);
        fields.map(|(name, field)| (name.as_str(), &field.0))
    }

    fn check_input_name(&self, key: &str, name: &str) -> Checked {
        let names: Vec<&str> = self.from.iter().map(FoldInputConfig::name).collect();
        if names.contains(&name) {
            return Ok(());
        }
        wrong(
            key,
            format!("there is no input `{name}`"),
            nearest_hint(name, &names),
        )
    }

    fn check_field(
        &self,
        name: &str,
        field: &FoldFieldTable,
        before: &[(String, FoldFieldConfig)],
    ) -> Checked {
        let key = |part: &str| format!("field.{name}.{part}");
        for input in &field.from.0 {
            self.check_input_name(&key("from"), input)?;
        }
        let rule = field.rule;
        let is_of = matches!(rule, FoldRule::Fingerprint | FoldRule::Copy);
        let words = [
            ("column", field.column.is_some(), rule.takes_column()),
            ("of", !field.of.0.is_empty(), is_of),
            ("at", field.at.is_some(), rule == FoldRule::Copy),
            ("start", field.start.is_some(), rule == FoldRule::Status),
            ("move", !field.moves.is_empty(), rule == FoldRule::Status),
        ];
        if let Some((word, ..)) = words.iter().find(|(_, there, fits)| *there && !fits) {
            let what = format!("`{word}` says nothing to the rule `{}`", rule.as_str());
            return wrong(key(word), what, "leave it out");
        }
        match rule {
            FoldRule::Fingerprint if field.of.0.is_empty() || field.from.0.len() != 1 => wrong(
                key("of"),
                "a fingerprint is of named columns of one input",
                "{ rule = \"fingerprint\", from = \"list\", of = [\"price\", \"title\"] }",
            ),
            FoldRule::Copy => self.check_copy(name, field, before),
            FoldRule::Status => self.check_status(name, field, before),
            FoldRule::DaysAbsent | FoldRule::LastTouched if !field.from.0.is_empty() => wrong(
                key("from"),
                format!("`from` says nothing to the rule `{}`", rule.as_str()),
                "leave it out",
            ),
            _ => Ok(()),
        }
    }

    fn check_copy(
        &self,
        name: &str,
        field: &FoldFieldTable,
        before: &[(String, FoldFieldConfig)],
    ) -> Checked {
        let key = |part: &str| format!("field.{name}.{part}");
        let example = "{ rule = \"copy\", of = \"fingerprint\", at = \"detail\" }";
        let (Some(at), [of]) = (&field.at, &field.of.0[..]) else {
            return wrong(key("of"), "a copy is of one field, at one input", example);
        };
        self.check_input_name(&key("at"), at)?;
        check_earlier(&key("of"), of, before)
    }

    fn check_status(
        &self,
        name: &str,
        field: &FoldFieldTable,
        before: &[(String, FoldFieldConfig)],
    ) -> Checked {
        let key = |part: &str| format!("field.{name}.{part}");
        if field.start.is_none() {
            return wrong(
                key("start"),
                "an object has no first state",
                "start = \"open\"",
            );
        }
        let states = field.states();
        for one in &field.moves {
            for state in &one.from.0 {
                if !states.contains(&state.as_str()) {
                    let what = format!("no move leads to the state `{state}`");
                    return wrong(key("move"), what, nearest_hint(state, &states));
                }
            }
            let when = &one.when;
            for input in when.seen.iter().chain(&when.gone) {
                self.check_input_name(&key("move"), input)?;
            }
            if let Some(gone) = &when.gone
                && self
                    .from
                    .iter()
                    .any(|i| i.name() == gone && i.gone.is_none())
            {
                let what =
                    format!("the input `{gone}` does not tell which rows say that it is gone");
                let hint = "in the input: gone = { field = \"http_status\", is = [404, 410] }";
                return wrong(key("move"), what, hint);
            }
            if when.field.is_some() != when.is.is_some() {
                return wrong(
                    key("move"),
                    "`field` and `is` stand together",
                    "{ field = \"deal\", is = \"DEAL\" }",
                );
            }
            if let Some(field) = &when.field {
                check_earlier(&key("move"), field, before)?;
            }
            let counts_days =
                |field: &(String, FoldFieldConfig)| field.1.0.rule == FoldRule::DaysAbsent;
            if when.absent_days.is_some() && !before.iter().any(counts_days) {
                return wrong(
                    key("move"),
                    "no field counts the days of absence",
                    "days_absent = \"days_absent\"",
                );
            }
            if *when == WhenConfig::default() {
                return wrong(
                    key("move"),
                    "a move without a condition",
                    "when = { seen = \"list\" }",
                );
            }
        }
        Ok(())
    }

    fn check_ends(&self) -> Checked {
        let fields: Vec<&str> = self.field.0.iter().map(|(name, _)| name.as_str()).collect();
        for name in &self.watch {
            if !fields.contains(&name.as_str()) {
                return wrong(
                    "watch",
                    format!("there is no field `{name}`"),
                    nearest_hint(name, &fields),
                );
            }
        }
        if !(0.0..=1.0).contains(&self.max_vanished) {
            let what = format!("`{}` is no share", self.max_vanished);
            return wrong("max_vanished", what, "a number from 0 to 1, such as 0.5");
        }
        let Some(drop) = &self.drop else {
            return Ok(());
        };
        let Some((_, status)) = self.fields_of(FoldRule::Status).next() else {
            return wrong(
                "drop",
                "there is no field of the rule `status`",
                "declare one",
            );
        };
        if self.fields_of(FoldRule::LastTouched).next().is_none() {
            return wrong(
                "drop",
                "no field knows when an object was touched last",
                "last_touched = \"last_touched\"",
            );
        }
        let states = status.states();
        for state in &drop.status.0 {
            if !states.contains(&state.as_str()) {
                return wrong(
                    "drop.status",
                    format!("there is no state `{state}`"),
                    nearest_hint(state, &states),
                );
            }
        }
        Ok(())
    }
}

fn check_earlier(key: &str, name: &str, before: &[(String, FoldFieldConfig)]) -> Checked {
    if before.iter().any(|(field, _)| field == name) {
        return Ok(());
    }
    wrong(
        key,
        format!("there is no field `{name}` before this one"),
        "fields are worked out in the order they are written in",
    )
}

impl FoldFieldTable {
    /// The states of a status: where it begins, then where its moves lead.
    #[must_use]
    pub fn states(&self) -> Vec<&str> {
        let mut states: Vec<&str> = self.start.as_deref().into_iter().collect();
        for one in &self.moves {
            if !states.contains(&one.to.as_str()) {
                states.push(&one.to);
            }
        }
        states
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLD: &str = r#"
        key = ["id"]
        watch = ["price"]
        [[from]]
        dataset = "rent.list"
        presence = true
        [[from]]
        dataset = "rent.detail"
        gone = { field = "http_status", is = [404, 410] }
        [field]
        price = { from = ["detail", "list"] }
        days_absent = "days_absent"
        print = { rule = "fingerprint", from = "list", of = ["price"] }
        print_at_detail = { rule = "copy", of = "print", at = "detail" }
        touched = "last_touched"
        [field.status]
        rule = "status"
        start = "open"
        [[field.status.move]]
        to = "open"
        when = { seen = "list" }
        [[field.status.move]]
        from = "open"
        to = "gone"
        when = { gone = "detail" }
        [drop]
        status = "gone"
        untouched_days = 30
    "#;

    fn read(text: &str) -> Result<FoldConfig> {
        let config: FoldConfig = crate::config::parse_toml(text, "source.toml")?;
        config.check(&"house".parse()?, "rent", "source.toml")?;
        Ok(config)
    }

    #[test]
    fn fields_keep_their_order_and_states_follow_from_the_moves() {
        let fold = read(FOLD).unwrap();
        let names: Vec<&str> = fold.field.0.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(
            names,
            [
                "price",
                "days_absent",
                "print",
                "print_at_detail",
                "touched",
                "status"
            ]
        );
        assert_eq!(fold.field.0[5].1.0.states(), ["open", "gone"]);
        assert_eq!(fold.from[0].name(), "list");
        assert_eq!(fold.replay_days, 14);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_key() {
        for (from, to, key) in [
            ("key = [\"id\"]", "key = []", "fold.house.key"),
            ("key = [\"id\"]", "key = [\"event\"]", "fold.house.key"),
            ("rent.detail", "shop.detail", "fold.house.from.dataset"),
            (
                "[\"detail\", \"list\"]",
                "[\"details\"]",
                "fold.house.field.price.from",
            ),
            ("days_absent = \"days_absent\"", "", "fold.house.field"),
            ("presence = true", "", "fold.house.field"),
            (
                "of = \"print\"",
                "of = \"status\"",
                "fold.house.field.print_at_detail.of",
            ),
            (
                "when = { seen = \"list\" }",
                "when = { gone = \"list\" }",
                "fold.house.field.status.move",
            ),
            (
                "from = \"open\"",
                "from = \"shut\"",
                "fold.house.field.status.move",
            ),
            (
                "watch = [\"price\"]",
                "watch = [\"prise\"]",
                "fold.house.watch",
            ),
            ("touched = \"last_touched\"", "", "fold.house.drop"),
            (
                "status = \"gone\"",
                "status = \"went\"",
                "fold.house.drop.status",
            ),
            (
                "of = [\"price\"] }",
                "of = [\"price\"], start = \"x\" }",
                "fold.house.field.print.start",
            ),
        ] {
            let text = FOLD.replacen(from, to, 1);
            let error = read(&text).unwrap_err();
            let named = error.context().iter().any(|(k, v)| *k == "key" && v == key);
            assert!(named, "{from} -> {to}: {error:?}");
        }
    }
}
