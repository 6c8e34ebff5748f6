//! A schema version compiled for conversion: which input member feeds which field, and by what rule.
//!
//! ```text
//! Level (the record, or a struct) -- fields: Vec<FieldPlan>          one per column
//!                                 \- input: ObjectPlan               what the input object looks like
//!                                      \- slots: Vec<Slot>           one per input member that is read
//!                                           |- targets: fields that read the member itself
//!                                           \- below: ObjectPlan     where JSON pointers go on inside it
//! ```
//!
//! Several fields may read one member (a `dual` group does so, see `dual`), and pointers of several
//! fields may meet below one member.

use std::collections::HashMap;

use arrow_schema::SchemaRef;
use foldhash::fast::FixedState;
use jiff::tz::TimeZone;

use crate::error::{Error, Result};
use crate::ingest::convert::cast::CastPlan;
use crate::ingest::convert::moment::EpochUnit;
use crate::ingest::convert::money::MoneyPlan;
use crate::ingest::convert::names::ShortNames;
use crate::ingest::convert::pattern::Pattern;
use crate::ingest::convert::token::Tokens;
use crate::ingest::json::{ShortKey, is_same};
use crate::registry::Cast;
use crate::spec::{
    Ambiguous, CastSpec, ChangeKind, FieldSpec, FieldType, ReadSpec, SCHEMALESS_VERSION,
    SchemaSpec, arrow_schema, arrow_type,
};

/// A schema version and its reading rules, compiled once per call and shared by all workers.
#[derive(Debug)]
pub struct Plan {
    schema: SchemaRef,
    pub(crate) specs: Vec<FieldSpec>,
    pub(crate) root: Level,
    pub(crate) sizes: Sizes,
    /// Whether the one field takes records whole.
    pub(crate) takes_whole: bool,
}

/// How many places of each kind a plan numbers; the state of a worker is indexed by them.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) objects: usize,
    pub(crate) slots: usize,
    pub(crate) fields: usize,
    pub(crate) zones: usize,
}

fn take(counter: &mut usize) -> usize {
    let id = *counter;
    *counter += 1;
    id
}

/// The record, or a struct in it.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) fields: Vec<FieldPlan>,
    pub(crate) input: ObjectPlan,
}

/// One field.
#[derive(Debug)]
pub(crate) struct FieldPlan {
    /// Number over all levels.
    pub(crate) id: usize,
    pub(crate) name: String,
    pub(crate) required: bool,
    pub(crate) personal: bool,
    /// Where the input carries it: one name, or the tokens of a pointer.
    pub(crate) from: Vec<String>,
    pub(crate) value: ValuePlan,
    /// What is tried where a value does not fit.
    pub(crate) cast: Option<Box<CastPlan>>,
}

/// An input object of which some members are read.
#[derive(Debug)]
pub(crate) struct ObjectPlan {
    /// Number over all levels.
    pub(crate) id: usize,
    pub(crate) slots: Vec<Slot>,
    /// The names are the schema's, so no input chooses what is in it: a fast hash does.
    names: HashMap<String, usize, FixedState>,
    /// Those that are short, once all are entered.
    short: ShortNames,
}

/// An input member that is read.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Number over all objects.
    pub(crate) id: usize,
    pub(crate) name: String,
    /// The name as JSON has it, between its quotes; empty where it could only be written with escapes.
    pub(crate) quoted: String,
    /// Fields of the level, by position, that read the member itself.
    pub(crate) targets: Vec<usize>,
    /// The field of the level, by position, where it is the only one that reads anything of the member.
    pub(crate) only: Option<usize>,
    /// Where they are a `dual` group: which of them, by position, tells the faults.
    pub(crate) lead: Option<usize>,
    /// What pointers read inside it.
    pub(crate) below: Option<Box<ObjectPlan>>,
}

/// A name between quotes, or nothing where JSON would have to escape it.
fn quoted(name: &str) -> String {
    let is_plain = |b: u8| b >= 0x20 && b != b'"' && b != b'\\';
    if name.bytes().all(is_plain) {
        format!("\"{name}\"")
    } else {
        String::new()
    }
}

impl ObjectPlan {
    fn new(sizes: &mut Sizes) -> Self {
        Self {
            id: take(&mut sizes.objects),
            slots: Vec::new(),
            names: HashMap::default(),
            short: ShortNames::new(std::iter::empty()),
        }
    }

    /// The slot of that key, by position.
    #[inline(always)]
    pub(crate) fn find_short(&self, key: ShortKey) -> Option<usize> {
        self.short.find(key)
    }

    /// Makes short names ready to be found.
    fn index_names(&mut self) {
        self.short = ShortNames::new(self.slots.iter().map(|s| s.name.as_str()));
        for below in self.slots.iter_mut().filter_map(|s| s.below.as_mut()) {
            below.index_names();
        }
    }

    /// The slot of that name, by position; `likely` is tried first.
    #[inline]
    pub(crate) fn find(&self, name: &str, likely: usize) -> Option<usize> {
        match self.slots.get(likely) {
            Some(slot) if is_same(name.as_bytes(), &slot.name) => Some(likely),
            _ => self.names.get(name).copied(),
        }
    }

    fn slot(&mut self, name: &str, sizes: &mut Sizes) -> usize {
        if let Some(at) = self.names.get(name) {
            return *at;
        }
        self.names.insert(name.to_owned(), self.slots.len());
        self.slots.push(Slot {
            id: take(&mut sizes.slots),
            name: name.to_owned(),
            quoted: quoted(name),
            targets: Vec::new(),
            only: None,
            lead: None,
            below: None,
        });
        self.slots.len() - 1
    }

    /// Marks the members that one field alone reads, and those that a `dual` group reads; the field
    /// without `dual` leads.
    fn mark_readers(&mut self, specs: &[FieldSpec]) {
        for slot in &mut self.slots {
            let is_dual = |t: &usize| {
                let change = specs.get(*t).and_then(|f| f.change);
                change == Some(ChangeKind::Dual)
            };
            if slot.targets.len() > 1 && slot.targets.iter().any(is_dual) {
                let plain = slot.targets.iter().find(|t| !is_dual(t));
                slot.lead = plain.or(slot.targets.first()).copied();
            }
            if let ([target], None) = (slot.targets.as_slice(), &slot.below) {
                // A value that may be cast is looked at twice, so it is read whole first.
                let has_cast = specs.get(*target).is_some_and(|f| f.cast.is_some());
                slot.only = (!has_cast).then_some(*target);
            }
            if let Some(below) = &mut slot.below {
                below.mark_readers(specs);
            }
        }
    }

    /// Enters a field that is read at `tokens`.
    fn enter(&mut self, tokens: &[String], target: usize, sizes: &mut Sizes) {
        let Some((name, rest)) = tokens.split_first() else {
            return;
        };
        let at = self.slot(name, sizes);
        let Some(slot) = self.slots.get_mut(at) else {
            return;
        };
        if rest.is_empty() {
            slot.targets.push(target);
            return;
        }
        let below = slot.below.get_or_insert_with(|| Box::new(Self::new(sizes)));
        below.enter(rest, target, sizes);
    }
}

/// How values of one type become a column's.
#[derive(Debug)]
pub(crate) struct ValuePlan {
    pub(crate) kind: Kind,
    /// Whether it is a list or a struct: JSON of these is read where it stands.
    pub(crate) is_nested: bool,
    /// Tokens that mean NULL.
    pub(crate) nulls: Tokens,
    pub(crate) allow_nan: bool,
    /// Absent = as the form of the input has it.
    pub(crate) nan_as_null: Option<bool>,
}

/// The rule of a type.
#[derive(Debug)]
pub(crate) enum Kind {
    Text { lenient: bool },
    Int,
    Float,
    Bool { yes: Tokens, no: Tokens },
    Decimal(DecimalPlan),
    Date(Vec<Pattern>),
    Timestamp(TimestampPlan),
    Enum(EnumPlan),
    Json,
    Bytes,
    List(Box<ValuePlan>),
    Map(Box<ValuePlan>),
    Struct(Box<Level>),
}

/// An exact decimal.
#[derive(Debug)]
pub(crate) struct DecimalPlan {
    pub(crate) precision: u8,
    pub(crate) scale: u8,
    pub(crate) money: Option<MoneyPlan>,
}

/// Declared texts.
#[derive(Debug)]
pub(crate) struct EnumPlan {
    values: Vec<String>,
    index: HashMap<String, ()>,
}

/// So many values are compared one by one.
const FEW_VALUES: usize = 8;

impl EnumPlan {
    fn new(values: &[String]) -> Self {
        Self {
            values: values.to_vec(),
            index: values.iter().map(|v| (v.clone(), ())).collect(),
        }
    }

    /// Whether the text is one of the values.
    #[inline]
    pub(crate) fn has(&self, text: &str) -> bool {
        if self.values.len() <= FEW_VALUES {
            self.values.iter().any(|v| v == text)
        } else {
            self.index.contains_key(text)
        }
    }
}

/// An instant.
#[derive(Debug)]
pub(crate) struct TimestampPlan {
    /// Tried in order; never empty.
    pub(crate) formats: Vec<TimeFormat>,
    pub(crate) zone: Option<ZonePlan>,
}

impl TimestampPlan {
    /// The epoch form, where one is declared.
    #[inline]
    pub(crate) fn epoch(&self) -> Option<EpochUnit> {
        self.formats.iter().find_map(|f| match f {
            TimeFormat::Epoch(unit) => Some(*unit),
            TimeFormat::Rfc3339 | TimeFormat::Pattern(_) => None,
        })
    }
}

/// The zone of texts without an offset.
#[derive(Debug)]
pub(crate) struct ZonePlan {
    /// Number over all fields.
    pub(crate) id: usize,
    pub(crate) zone: TimeZone,
    pub(crate) ambiguous: Ambiguous,
}

/// One declared form of an instant.
#[derive(Debug)]
pub(crate) enum TimeFormat {
    Rfc3339,
    Epoch(EpochUnit),
    Pattern(Pattern),
}

impl Plan {
    /// Compiles a schema version; `read` = its `[input]` table with the call's overrides. Version 0
    /// ([`SchemaSpec::schemaless`]) takes records whole.
    ///
    /// # Errors
    /// `InvalidInput` naming the field whose formats, zone, pointer or marks cannot be used.
    pub fn compile(schema: &SchemaSpec, read: &ReadSpec) -> Result<Self> {
        let mut compiler = Compiler {
            read,
            sizes: Sizes::default(),
        };
        let root = compiler.level(&schema.fields, false)?;
        Ok(Self {
            schema: arrow_schema(&schema.fields).into(),
            specs: schema.fields.clone(),
            root,
            sizes: compiler.sizes,
            takes_whole: schema.version == SCHEMALESS_VERSION,
        })
    }

    /// The columns of every batch decoded by this plan.
    #[must_use]
    pub fn arrow_schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

struct Compiler<'a> {
    read: &'a ReadSpec,
    sizes: Sizes,
}

impl Compiler<'_> {
    fn level(&mut self, specs: &[FieldSpec], personal: bool) -> Result<Level> {
        let mut input = ObjectPlan::new(&mut self.sizes);
        let mut fields = Vec::with_capacity(specs.len());
        // What one field says to be personal is so for every field that reads the same value.
        let secrets: Vec<_> = specs
            .iter()
            .filter(|f| f.is_personal())
            .filter_map(|f| input_tokens(f.input_name()).ok())
            .collect();
        for (position, spec) in specs.iter().enumerate() {
            let field = self
                .field(spec, personal, &secrets)
                .map_err(|e| e.with("field", &spec.name))?;
            input.enter(&field.from, position, &mut self.sizes);
            fields.push(field);
        }
        input.mark_readers(specs);
        input.index_names();
        Ok(Level { fields, input })
    }

    fn field(
        &mut self,
        spec: &FieldSpec,
        personal: bool,
        secrets: &[Vec<String>],
    ) -> Result<FieldPlan> {
        let from = input_tokens(spec.input_name())?;
        let personal = personal || secrets.contains(&from);
        Ok(FieldPlan {
            id: take(&mut self.sizes.fields),
            name: spec.name.clone(),
            required: spec.required,
            personal,
            from,
            value: self.value(spec, &spec.field_type, personal)?,
            cast: match &spec.cast {
                None => None,
                Some(cast) => Some(Box::new(self.cast(spec, cast, personal)?)),
            },
        })
    }

    fn cast(&mut self, spec: &FieldSpec, cast: &CastSpec, personal: bool) -> Result<CastPlan> {
        let read = cast.as_field(spec);
        let to_day = (&cast.from, &spec.field_type) == (&FieldType::Timestamp, &FieldType::Date);
        let zone = cast.time_zone.as_deref().filter(|_| to_day);
        Ok(CastPlan {
            value: self.value(&read, &cast.from, personal)?,
            column: arrow_type(&read, &cast.from),
            cast: Cast::to_field(&cast.from, spec),
            lossy: cast.lossy,
            zone: zone.map(crate::time::time_zone).transpose()?,
        })
    }

    fn value(&mut self, spec: &FieldSpec, of: &FieldType, personal: bool) -> Result<ValuePlan> {
        Ok(ValuePlan {
            kind: self.kind(spec, of, personal)?,
            is_nested: matches!(of, FieldType::List(_) | FieldType::Struct),
            nulls: Tokens::new(&spec.null_values),
            allow_nan: spec.allow_nan.or(self.read.allow_nan).unwrap_or(false),
            nan_as_null: spec.nan_as_null.or(self.read.nan_as_null),
        })
    }

    fn kind(&mut self, spec: &FieldSpec, of: &FieldType, personal: bool) -> Result<Kind> {
        Ok(match of {
            FieldType::String => Kind::Text {
                lenient: spec.lenient,
            },
            FieldType::Int => Kind::Int,
            FieldType::Float => Kind::Float,
            FieldType::Bool => Kind::Bool {
                yes: Tokens::new(&spec.true_values),
                no: Tokens::new(&spec.false_values),
            },
            FieldType::Decimal { precision, scale } => Kind::Decimal(DecimalPlan {
                precision: *precision,
                scale: *scale,
                money: spec.money.as_ref().map(MoneyPlan::compile).transpose()?,
            }),
            FieldType::Date => Kind::Date(date_formats(spec)?),
            FieldType::Timestamp => Kind::Timestamp(self.timestamp(spec)?),
            FieldType::Enum => Kind::Enum(EnumPlan::new(&spec.values)),
            FieldType::Json => Kind::Json,
            FieldType::Bytes => Kind::Bytes,
            FieldType::List(t) => Kind::List(Box::new(self.value(spec, t, personal)?)),
            FieldType::Map(t) => Kind::Map(Box::new(self.value(spec, t, personal)?)),
            FieldType::Struct => Kind::Struct(Box::new(self.level(&spec.fields, personal)?)),
        })
    }

    fn timestamp(&mut self, spec: &FieldSpec) -> Result<TimestampPlan> {
        let mut formats = Vec::new();
        let mut epochs = 0;
        for text in &spec.formats {
            formats.push(if text == "rfc3339" {
                TimeFormat::Rfc3339
            } else if let Some(unit) = EpochUnit::find(text) {
                epochs += 1;
                TimeFormat::Epoch(unit)
            } else {
                TimeFormat::Pattern(Pattern::compile(text)?)
            });
        }
        if epochs > 1 {
            return Err(
                Error::invalid("two epoch forms in one field cannot be told apart")
                    .hint("keep one of `epoch_s`, `epoch_ms`, `epoch_us`"),
            );
        }
        if formats.is_empty() {
            formats.push(TimeFormat::Rfc3339);
        }
        let zone = match &spec.time_zone {
            None => None,
            Some(name) => Some(ZonePlan {
                id: take(&mut self.sizes.zones),
                zone: crate::time::time_zone(name)?,
                ambiguous: spec.ambiguous.unwrap_or(Ambiguous::Reject),
            }),
        };
        let wall = |f: &TimeFormat| matches!(f, TimeFormat::Pattern(p) if !p.has_offset);
        if zone.is_none() && formats.iter().any(wall) {
            return Err(
                Error::invalid("a format without an offset needs `time_zone`")
                    .hint("say what the clock on the wall means, for example time_zone = \"Asia/Shanghai\""),
            );
        }
        Ok(TimestampPlan { formats, zone })
    }
}

fn date_formats(spec: &FieldSpec) -> Result<Vec<Pattern>> {
    let compile = |text: &String| {
        if text == "rfc3339" || EpochUnit::find(text).is_some() {
            return Err(
                Error::invalid(format!("`{text}` is a form of instants, not of dates"))
                    .hint("declare the field as `timestamp`"),
            );
        }
        let pattern = Pattern::compile(text)?;
        if pattern.has_time {
            return Err(Error::invalid(format!(
                "the format `{text}` reads a time of day, and a date cannot keep one"
            ))
            .hint("declare the field as `timestamp`"));
        }
        Ok(pattern)
    };
    spec.formats.iter().map(compile).collect()
}

/// A plain name, or the tokens of a JSON pointer.
fn input_tokens(from: &str) -> Result<Vec<String>> {
    let Some(pointer) = from.strip_prefix('/') else {
        return Ok(vec![from.to_owned()]);
    };
    pointer.split('/').map(|t| pointer_token(t, from)).collect()
}

fn pointer_token(token: &str, whole: &str) -> Result<String> {
    let mut out = String::with_capacity(token.len());
    let mut chars = token.chars();
    while let Some(c) = chars.next() {
        if c != '~' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('0') => out.push('~'),
            Some('1') => out.push('/'),
            _ => {
                return Err(Error::invalid(format!("`{whole}` is not a JSON pointer"))
                    .hint("in a pointer `~0` means `~` and `~1` means `/`"));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(fields: &str) -> Result<Plan> {
        let text = format!("dataset = \"clean/x\"\nversion = 1\n{fields}");
        Plan::compile(&toml::from_str(&text).unwrap(), &ReadSpec::default())
    }

    fn field(rest: &str) -> Result<Plan> {
        compile(&format!("[[field]]\nid = 1\nname = \"a\"\n{rest}"))
    }

    #[test]
    fn pointers_meet_below_one_member() {
        let plan = compile(
            "[[field]]\nid=1\nname=\"a\"\ntype=\"int\"\nfrom=\"/geo/lat\"\n\
             [[field]]\nid=2\nname=\"b\"\ntype=\"int\"\nfrom=\"/geo/x~1y\"\n\
             [[field]]\nid=3\nname=\"geo\"\ntype=\"json\"\n\
             [[field]]\nid=4\nname=\"c\"\ntype=\"int\"\nfrom=\"/geo/lat\"\n",
        )
        .unwrap();
        assert_eq!(plan.root.input.slots.len(), 1);
        let geo = &plan.root.input.slots[0];
        assert_eq!(geo.targets, [2]);
        let below = geo.below.as_ref().unwrap();
        let names: Vec<_> = below
            .slots
            .iter()
            .map(|s| (s.name.as_str(), s.targets.clone()))
            .collect();
        assert_eq!(names, [("lat", vec![0, 3]), ("x/y", vec![1])]);
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_the_field() {
        for bad in [
            "type=\"int\"\nfrom=\"/a~2\"",
            "type=\"timestamp\"\nformats=[\"epoch_s\",\"epoch_ms\"]",
            "type=\"timestamp\"\nformats=[\"%F %T\"]",
            "type=\"timestamp\"\nformats=[\"%F %T\"]\ntime_zone=\"Asia/Nowhere\"",
            "type=\"timestamp\"\nformats=[\"%H\"]\ntime_zone=\"UTC\"",
            "type=\"date\"\nformats=[\"rfc3339\"]",
            "type=\"date\"\nformats=[\"epoch_s\"]",
            "type=\"date\"\nformats=[\"%F %H\"]",
            "type=\"decimal(5,2)\"\nmoney={symbols=[\"\"]}",
            "type=\"list<timestamp>\"\nformats=[\"%F %T\"]",
        ] {
            let e = field(bad).map(|_| ()).unwrap_err();
            assert!(e.to_string().contains("(field `a`)"), "{bad}: {e}");
        }
        assert!(field("type=\"timestamp\"\nformats=[\"%F %T%z\"]").is_ok());
        assert!(field("type=\"list<timestamp>\"\nformats=[\"epoch_s\"]").is_ok());
    }
}
