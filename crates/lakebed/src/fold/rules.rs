//! The declared rules of a fold over the types of its inputs.
//!
//! A batch of an input's rows, as it is sorted and folded, has the columns
//!
//! ```text
//! key...   instant (null = unknown)   day (the row's business date)   gone (true = says no more)   columns...
//! ```

use std::sync::Arc;

use arrow_schema::FieldRef;

use crate::config::{
    FoldConfig, FoldFieldTable, FoldInputConfig, FoldRule, ScalarConfig, nearest_hint,
};
use crate::error::{Error, Result};
use crate::name::{ContentHash, DatasetRef, FoldName, Layer, SourceName};
use crate::registry::{is_reserved_name, origin_type};
use crate::spec::{FieldSpec, FieldType, SchemaSpec, arrow_schema};

/// Name of the version of the rules' meaning: it is part of their hash.
const RULES: &str = "fold/1";
/// The column of instants of rows that were parsed from pages.
const FETCHED_AT: &str = "_fetched_at";

/// A column that is read from an input.
#[derive(Debug, Clone, PartialEq)]
pub struct InputColumn {
    /// As the newest published version declares it.
    pub field: FieldSpec,
    /// Its type with the field ids of the input.
    pub stored: FieldRef,
}

/// An input.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRules {
    /// What rules call it.
    pub name: String,
    /// Where its rows are.
    pub dataset: DatasetRef,
    /// Whether its complete day says what is there.
    pub presence: bool,
    /// Whether it may have nothing of a day.
    pub optional: bool,
    /// The columns of the key, in its order.
    pub key: Vec<InputColumn>,
    /// The column of instants.
    pub instant: Option<InputColumn>,
    /// All others that rules look at.
    pub columns: Vec<InputColumn>,
    /// Which of `columns` says that an object is gone, by which values.
    pub gone: Option<(usize, Vec<ScalarConfig>)>,
}

impl InputRules {
    /// The first column after key, instant, day and mark of a batch.
    pub(super) fn offset(&self) -> usize {
        self.key.len() + 3
    }
}

/// A column of an input, by their places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) input: usize,
    /// Within [`InputRules::columns`].
    pub(super) column: usize,
}

/// A condition of a move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    Seen(usize),
    Gone(usize),
    Absent(i64),
    Field(usize, Vec<ScalarConfig>),
}

/// A move of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Move {
    /// States by number; empty = any.
    pub(super) from: Vec<usize>,
    pub(super) to: usize,
    pub(super) when: Vec<Condition>,
}

/// How a field is worked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    Newest(Vec<Place>),
    Sticky(Vec<Place>),
    First(Vec<Place>),
    Last(Vec<Place>),
    Count(Vec<usize>),
    DaysAbsent,
    FirstSeen(Vec<usize>),
    LastSeen(Vec<usize>),
    LastTouched,
    Fingerprint(usize, Vec<usize>),
    Copy {
        field: usize,
        input: usize,
    },
    Status {
        states: Vec<String>,
        moves: Vec<Move>,
    },
}

/// A field of the snapshot.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FieldRules {
    pub(super) name: String,
    pub(super) rule: Rule,
}

/// What leaves the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DropRules {
    /// Places of the fields of the state and of the last day with a row.
    pub(super) status: usize,
    pub(super) touched: usize,
    pub(super) states: Vec<usize>,
    pub(super) untouched_days: i32,
}

/// A fold over inputs of known types.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldRules {
    /// Whose it is.
    pub source: SourceName,
    /// Its name.
    pub name: FoldName,
    /// Its inputs.
    pub inputs: Vec<InputRules>,
    /// Days over which a gap is folded again.
    pub replay_days: u32,
    /// Share of the present objects that may vanish on one day.
    pub max_vanished: f64,
    pub(super) fields: Vec<FieldRules>,
    pub(super) watch: Vec<usize>,
    pub(super) drop: Option<DropRules>,
    /// The snapshot's columns, without ids of their own: the key, then the fields.
    pub(super) specs: Vec<FieldSpec>,
    pub(super) key_len: usize,
    hash: String,
}

impl FoldRules {
    /// Compiles the rules; `schema_of` answers the newest published version of an input.
    ///
    /// # Errors
    /// `InvalidInput` where an input lacks a column, or types do not go together.
    pub fn compile(
        source: &SourceName,
        name: &FoldName,
        config: &FoldConfig,
        schemas: &[SchemaSpec],
    ) -> Result<Self> {
        let mut compiler = Compiler {
            name,
            config,
            inputs: Vec::new(),
            fields: Vec::new(),
            specs: Vec::new(),
        };
        compiler.take_inputs(schemas)?;
        for (field, table) in &config.field.0 {
            if is_reserved_name(field) && origin_type(field).is_none() {
                return Err(Error::invalid(format!(
                    "fold `{name}`: the name `{field}` is reserved: every dataset has `dt`, `source` and `schema_version` from its place, and `_...` is Lakebed's own"
                ))
                .with("key", format!("fold.{name}.field.{field}"))
                .hint("give the field another name, and the column under `column`"));
            }
            let (rule, spec) = compiler.field(field, &table.0)?;
            compiler.fields.push(FieldRules {
                name: field.clone(),
                rule,
            });
            compiler.specs.push(spec);
        }
        let place = |name: &String| compiler.fields.iter().position(|f| f.name == *name);
        let watch = config.watch.iter().filter_map(place).collect();
        let drop = compiler.drop_rules();
        let hash = compiler.hash()?;
        Ok(Self {
            source: source.clone(),
            name: name.clone(),
            replay_days: config.replay_days,
            max_vanished: config.max_vanished,
            key_len: config.key.len(),
            watch,
            drop,
            hash,
            inputs: compiler.inputs,
            fields: compiler.fields,
            specs: compiler.specs,
        })
    }

    /// Names what the rules say of rows, and of which types: equal rules have equal hashes.
    #[must_use]
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The dataset of snapshots.
    pub fn snapshot(&self) -> Result<DatasetRef> {
        Ok(DatasetRef {
            layer: Layer::Feature,
            dataset: format!("{}.{}", self.source, self.name).parse()?,
        })
    }

    /// The dataset of events.
    pub fn events(&self) -> Result<DatasetRef> {
        Ok(DatasetRef {
            layer: Layer::Feature,
            dataset: format!("{}.{}_events", self.source, self.name).parse()?,
        })
    }

    /// The input that says what is there.
    #[must_use]
    pub fn presence(&self) -> Option<usize> {
        self.inputs.iter().position(|input| input.presence)
    }

    /// Columns of the key.
    #[must_use]
    pub fn key(&self) -> &[FieldSpec] {
        self.specs.get(..self.key_len).unwrap_or_default()
    }

    /// The place of a field among the columns of the snapshot, by rule order; `None` = there is none.
    pub(super) fn find_column(&self, name: &str) -> Option<usize> {
        self.specs.iter().position(|spec| spec.name == name)
    }

    /// The place of the field of days of absence among the fields.
    pub(super) fn absent_field(&self) -> Option<usize> {
        self.fields.iter().position(|f| f.rule == Rule::DaysAbsent)
    }
}

/// What is compiled so far.
struct Compiler<'a> {
    name: &'a FoldName,
    config: &'a FoldConfig,
    inputs: Vec<InputRules>,
    fields: Vec<FieldRules>,
    specs: Vec<FieldSpec>,
}

/// The field with nothing left that says how it is read from files.
fn plain(field: &FieldSpec, name: &str) -> FieldSpec {
    let mut spec = FieldSpec::new(field.id, name, field.field_type.clone());
    spec.values.clone_from(&field.values);
    spec.privacy = field.privacy;
    spec.doc.clone_from(&field.doc);
    spec.fields = field.fields.iter().map(|f| plain(f, &f.name)).collect();
    spec
}

/// Whether values of the two go into one column as they are.
pub(super) fn is_same_type(a: &FieldSpec, b: &FieldSpec) -> bool {
    let members = a.fields.len() == b.fields.len();
    let pairs = || a.fields.iter().zip(&b.fields);
    a.field_type == b.field_type
        && members
        && pairs().all(|(a, b)| a.name == b.name && is_same_type(a, b))
}

impl Compiler<'_> {
    fn wrong(&self, key: &str, what: impl Into<String>) -> Error {
        Error::invalid(format!("fold `{}`: {}", self.name, what.into()))
            .with("key", format!("fold.{}.{key}", self.name))
    }

    fn take_inputs(&mut self, schemas: &[SchemaSpec]) -> Result<()> {
        for (config, schema) in self.config.from.iter().zip(schemas) {
            let input = self.input(config, schema)?;
            for (at, column) in input.key.iter().enumerate() {
                match self.specs.get(at) {
                    None => self.specs.push(plain(&column.field, &column.field.name)),
                    Some(first) if is_same_type(first, &column.field) => {}
                    Some(first) => {
                        let (is, was) = (&column.field.field_type, &first.field_type);
                        let what = format!(
                            "`{}` is {is} in `{}`, and {was} in the first input",
                            first.name, schema.dataset
                        );
                        return Err(self
                            .wrong("key", what)
                            .hint("a key is of one type in all inputs"));
                    }
                }
            }
            self.inputs.push(input);
        }
        Ok(())
    }

    fn input(&self, config: &FoldInputConfig, schema: &SchemaSpec) -> Result<InputRules> {
        let mut key = Vec::new();
        for name in &self.config.key {
            let column = self.get_column(schema, name, "key")?;
            if !is_key_type(&column.field.field_type) {
                let what = format!("`{name}` is {}: no key", column.field.field_type);
                return Err(self
                    .wrong("key", what)
                    .hint("keys are string, int, bool, decimal, date, timestamp or enum"));
            }
            key.push(column);
        }
        let by = config.newest_by.as_deref();
        let instant = match by {
            Some(name) => Some(self.get_column(schema, name, "from.newest_by")?),
            None => column_of(schema, FETCHED_AT),
        };
        if let Some(column) = &instant
            && column.field.field_type != FieldType::Timestamp
        {
            let what = format!(
                "`{}` is {}, not timestamp",
                column.field.name, column.field.field_type
            );
            return Err(self.wrong("from.newest_by", what));
        }
        let mut input = InputRules {
            name: config.name().to_owned(),
            dataset: schema.dataset.clone(),
            presence: config.presence,
            optional: config.optional,
            key,
            instant,
            columns: Vec::new(),
            gone: None,
        };
        if let Some(gone) = &config.gone {
            let column = self.get_column(schema, &gone.field, "from.gone")?;
            check_scalars(&column.field, &gone.is.0)
                .map_err(|what| self.wrong("from.gone", what))?;
            input.gone = Some((0, gone.is.0.clone()));
            input.columns.push(column);
        }
        // Of all the columns, those that the rules name.
        for (field, table) in &self.config.field.0 {
            let own = table.0.column.as_deref().unwrap_or(field);
            let is_meant = table.0.from.0.is_empty() || table.0.from.0.contains(&input.name);
            let of_column = table.0.rule.takes_column().then_some(own);
            let hashed = match table.0.rule {
                FoldRule::Fingerprint => table.0.of.0.as_slice(),
                _ => &[],
            };
            for name in of_column
                .into_iter()
                .chain(hashed.iter().map(String::as_str))
            {
                let known = input.columns.iter().any(|c| c.field.name == name);
                if is_meant && !known {
                    input.columns.extend(column_of(schema, name));
                }
            }
        }
        Ok(input)
    }

    fn get_column(&self, schema: &SchemaSpec, name: &str, key: &str) -> Result<InputColumn> {
        column_of(schema, name).ok_or_else(|| {
            let names: Vec<&str> = schema.fields.iter().map(|f| f.name.as_str()).collect();
            self.wrong(key, format!("`{}` has no column `{name}`", schema.dataset))
                .hint(nearest_hint(name, &names))
        })
    }

    /// Numbers of the named inputs, or of all.
    fn numbers(&self, table: &FoldFieldTable) -> Vec<usize> {
        let named = table.from.0.iter();
        let find = |name: &String| self.inputs.iter().position(|i| i.name == *name);
        match table.from.0.is_empty() {
            true => (0..self.inputs.len()).collect(),
            false => named.filter_map(find).collect(),
        }
    }

    fn places(&self, field: &str, table: &FoldFieldTable) -> Result<(Vec<Place>, FieldSpec)> {
        let name = table.column.as_deref().unwrap_or(field);
        let mut places = Vec::new();
        let mut first: Option<&FieldSpec> = None;
        for input in self.numbers(table) {
            let of = &self.inputs[input];
            let Some(column) = of.columns.iter().position(|c| c.field.name == name) else {
                if table.from.0.is_empty() {
                    continue;
                }
                return Err(self
                    .wrong(
                        &format!("field.{field}"),
                        format!("`{}` has no column `{name}`", of.dataset),
                    )
                    .hint("name the column with `column`, or leave the input out of `from`"));
            };
            let spec = &of.columns[column].field;
            match first {
                Some(first) if !is_same_type(first, spec) => {
                    let (is, was) = (&spec.field_type, &first.field_type);
                    let what = format!(
                        "`{name}` is {is} in `{}`, and {was} in an input before",
                        of.dataset
                    );
                    return Err(self.wrong(&format!("field.{field}"), what).hint(
                        "one field is of one type: publish one version of both, or keep two fields",
                    ));
                }
                Some(_) => {}
                None => first = Some(spec),
            }
            places.push(Place { input, column });
        }
        let Some(first) = first else {
            return Err(self
                .wrong(
                    &format!("field.{field}"),
                    format!("no input has a column `{name}`"),
                )
                .hint("name the column with `column`, or the rule with `rule`"));
        };
        let mut spec = plain(first, field);
        // Whatever one of the inputs holds back is held back.
        for place in &places {
            let of = &self.inputs[place.input].columns[place.column].field;
            spec.privacy = spec.privacy.or(of.privacy);
            for value in &of.values {
                if !spec.values.contains(value) {
                    spec.values.push(value.clone());
                }
            }
        }
        Ok((places, spec))
    }

    fn field(&self, name: &str, table: &FoldFieldTable) -> Result<(Rule, FieldSpec)> {
        let of_type = |of: FieldType| FieldSpec::new(0, name, of);
        let numbers = || self.numbers(table);
        Ok(match table.rule {
            FoldRule::Newest | FoldRule::Sticky | FoldRule::First | FoldRule::Last => {
                let (places, spec) = self.places(name, table)?;
                let rule = match table.rule {
                    FoldRule::Sticky => Rule::Sticky(places),
                    FoldRule::First => Rule::First(places),
                    FoldRule::Last => Rule::Last(places),
                    _ => Rule::Newest(places),
                };
                (rule, spec)
            }
            FoldRule::Count => (Rule::Count(numbers()), of_type(FieldType::Int)),
            FoldRule::DaysAbsent => (Rule::DaysAbsent, of_type(FieldType::Int)),
            FoldRule::FirstSeen => (Rule::FirstSeen(numbers()), of_type(FieldType::Date)),
            FoldRule::LastSeen => (Rule::LastSeen(numbers()), of_type(FieldType::Date)),
            FoldRule::LastTouched => (Rule::LastTouched, of_type(FieldType::Date)),
            FoldRule::Fingerprint => {
                let input = numbers().first().copied().unwrap_or_default();
                let rule = Rule::Fingerprint(input, self.hashed(name, input, &table.of.0)?);
                (rule, of_type(FieldType::String))
            }
            FoldRule::Copy => {
                let of = table.of.0.first().map_or("", String::as_str);
                let field = self
                    .fields
                    .iter()
                    .position(|f| f.name == of)
                    .unwrap_or_default();
                let at = table.at.as_deref().unwrap_or_default();
                let input = self
                    .inputs
                    .iter()
                    .position(|i| i.name == at)
                    .unwrap_or_default();
                let spec = plain(&self.specs[self.config.key.len() + field], name);
                (Rule::Copy { field, input }, spec)
            }
            FoldRule::Status => self.status(name, table)?,
        })
    }

    fn hashed(&self, field: &str, input: usize, names: &[String]) -> Result<Vec<usize>> {
        let of = &self.inputs[input];
        let find = |name: &String| {
            let found = of.columns.iter().position(|c| c.field.name == *name);
            found.ok_or_else(|| {
                self.wrong(
                    &format!("field.{field}.of"),
                    format!("`{}` has no column `{name}`", of.dataset),
                )
            })
        };
        names.iter().map(find).collect()
    }

    fn status(&self, name: &str, table: &FoldFieldTable) -> Result<(Rule, FieldSpec)> {
        let states: Vec<String> = table.states().into_iter().map(str::to_owned).collect();
        let state = |s: &String| {
            states
                .iter()
                .position(|known| known == s)
                .unwrap_or_default()
        };
        let input = |name: &String| self.inputs.iter().position(|i| i.name == *name);
        let mut moves = Vec::new();
        for one in &table.moves {
            let mut when = Vec::new();
            when.extend(one.when.seen.as_ref().and_then(input).map(Condition::Seen));
            when.extend(one.when.gone.as_ref().and_then(input).map(Condition::Gone));
            when.extend(
                one.when
                    .absent_days
                    .map(|n| Condition::Absent(i64::from(n))),
            );
            if let (Some(field), Some(is)) = (&one.when.field, &one.when.is) {
                let place = self
                    .fields
                    .iter()
                    .position(|f| f.name == *field)
                    .unwrap_or_default();
                let spec = &self.specs[self.config.key.len() + place];
                check_scalars(spec, &is.0)
                    .map_err(|what| self.wrong(&format!("field.{name}.move"), what))?;
                when.push(Condition::Field(place, is.0.clone()));
            }
            moves.push(Move {
                from: one.from.0.iter().map(state).collect(),
                to: state(&one.to),
                when,
            });
        }
        let mut spec = FieldSpec::new(0, name, FieldType::Enum);
        spec.values.clone_from(&states);
        Ok((Rule::Status { states, moves }, spec))
    }

    fn drop_rules(&self) -> Option<DropRules> {
        let config = self.config.drop.as_ref()?;
        let is_status = |f: &FieldRules| matches!(f.rule, Rule::Status { .. });
        let status = self.fields.iter().position(is_status)?;
        let Rule::Status { states, .. } = &self.fields[status].rule else {
            return None;
        };
        let named = config.status.0.iter();
        Some(DropRules {
            status,
            touched: self
                .fields
                .iter()
                .position(|f| f.rule == Rule::LastTouched)?,
            states: named
                .filter_map(|s| states.iter().position(|k| k == s))
                .collect(),
            untouched_days: i32::try_from(config.untouched_days).unwrap_or(i32::MAX),
        })
    }

    /// What does not change a row is left out.
    fn hash(&self) -> Result<String> {
        let mut config = self.config.clone();
        (config.replay_days, config.max_vanished) = (0, 0.0);
        for input in &mut config.from {
            input.optional = false;
        }
        let text = |value: &dyn erased::Json| value.json();
        let mut hasher = blake3::Hasher::new();
        hasher.update(RULES.as_bytes());
        hasher.update(text(&config)?.as_bytes());
        for input in &self.inputs {
            hasher.update(input.dataset.to_string().as_bytes());
            for column in input.key.iter().chain(&input.columns).chain(&input.instant) {
                hasher.update(text(&plain(&column.field, &column.field.name))?.as_bytes());
            }
        }
        Ok(ContentHash::finish(&hasher).short().to_owned())
    }
}

/// JSON of whatever serializes.
mod erased {
    use crate::error::{Error, Result};

    pub(super) trait Json {
        fn json(&self) -> Result<String>;
    }

    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> Result<String> {
            serde_json::to_string(self)
                .map_err(|e| Error::internal("write the rules as JSON").caused_by(e))
        }
    }
}

fn column_of(schema: &SchemaSpec, name: &str) -> Option<InputColumn> {
    let field = schema.fields.iter().find(|f| f.name == name)?;
    let columns = arrow_schema(std::slice::from_ref(field));
    Some(InputColumn {
        field: field.clone(),
        stored: Arc::clone(columns.fields().first()?),
    })
}

fn is_key_type(of: &FieldType) -> bool {
    match of {
        FieldType::String
        | FieldType::Int
        | FieldType::Bool
        | FieldType::Decimal { .. }
        | FieldType::Date
        | FieldType::Timestamp
        | FieldType::Enum => true,
        FieldType::Float
        | FieldType::Json
        | FieldType::Bytes
        | FieldType::List(_)
        | FieldType::Map(_)
        | FieldType::Struct => false,
    }
}

/// Whether the column can have such values at all.
fn check_scalars(field: &FieldSpec, values: &[ScalarConfig]) -> std::result::Result<(), String> {
    for value in values {
        let fits = match (value, &field.field_type) {
            (ScalarConfig::Int(_), FieldType::Int) | (ScalarConfig::Bool(_), FieldType::Bool) => {
                true
            }
            (ScalarConfig::Text(_), FieldType::String) => true,
            (ScalarConfig::Text(text), FieldType::Enum) => field.values.contains(text),
            _ => false,
        };
        if !fits {
            let value = serde_json::to_string(value).unwrap_or_default();
            return Err(format!(
                "`{}` is {} and never {value}",
                field.name, field.field_type
            ));
        }
    }
    Ok(())
}
