//! One value into one column, by the rule of its type. Lossless, or a fault.

use base64::Engine as _;

use crate::ingest::convert::column::{Column, Texts, TooLarge};
use crate::ingest::convert::fault::{FaultCode, Step};
use crate::ingest::convert::moment::{
    self, MICROS_PER_DAY, MICROS_PER_SECOND, MomentTrouble, in_range,
};
use crate::ingest::convert::number::{
    NumberTrouble, float, int_from_number, int_from_text, is_number, scaled,
};
use crate::ingest::convert::pattern::Pattern;
use crate::ingest::convert::plan::{DecimalPlan, Kind, TimeFormat, TimestampPlan, ValuePlan};
use crate::ingest::convert::presence::Presence;
use crate::ingest::convert::row::{Got, Refusal, Row, write_compact};
use crate::ingest::json::{Scanner, compact_into, find_duplicate, unescape_into, unescaped};
use crate::ingest::raw::{NonFinite, Raw};

/// Where a text came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextOrigin {
    /// A JSON string, or a text of a typed input.
    Text,
    /// A CSV cell, which may be a number as well.
    Cell,
}

/// Presence of a text that is stored as text.
#[inline]
fn text_presence(bytes: &[u8]) -> Presence {
    match bytes.first() {
        None => Presence::Empty,
        Some(b'!'..=b'~') => Presence::Present,
        Some(_) => match std::str::from_utf8(bytes) {
            Ok(text) if text.chars().all(char::is_whitespace) => Presence::Blank,
            _ => Presence::Present,
        },
    }
}

/// Presence of a value that is stored as JSON text.
fn json_presence(text: &str) -> Presence {
    match text {
        "[]" | "{}" => Presence::EmptyContainer,
        "\"\"" => Presence::Empty,
        _ => Presence::Present,
    }
}

/// The type in words, for reasons.
fn article(kind: &Kind) -> &'static str {
    match kind {
        Kind::Text { .. } => "a string",
        Kind::Int => "an int",
        Kind::Float => "a float",
        Kind::Bool { .. } => "a bool",
        Kind::Decimal(_) => "a decimal",
        Kind::Date(_) => "a date",
        Kind::Timestamp(_) => "a timestamp",
        Kind::Enum(_) => "an enum",
        Kind::Json => "json",
        Kind::Bytes => "bytes",
        Kind::List(_) => "a list",
        Kind::Map(_) => "a map",
        Kind::Struct(_) => "a struct",
    }
}

const INT_RANGE_HINT: &str = "ids up to 18446744073709551615 are declared `decimal(20,0)`";
const FRACTION_HINT: &str = "declare more fraction digits, or `float` where rounding is meant";
const NAN_HINT: &str =
    "`allow_nan = true` stores it in a float field, `nan_as_null = true` stores NULL for NaN";
const LENIENT_HINT: &str = "`lenient = true` takes numbers into a string field by their own text";
const WALL_HINT: &str =
    "declare `formats` and `time_zone` for times without an offset, or deliver RFC 3339 with one";

impl<'p> Row<'p> {
    /// Converts `raw` into `column`.
    #[inline]
    pub(crate) fn value(&mut self, plan: &'p ValuePlan, raw: &Raw<'_>, column: &mut Column) -> Got {
        match raw {
            Raw::String {
                body,
                escaped: false,
            } => self.text(plan, body, TextOrigin::Text, column),
            Raw::String { body, .. } => self.escaped_text(plan, body, column),
            Raw::Number(text) => self.number(plan, text, column),
            Raw::Null => null(column, Presence::Null),
            Raw::Absent => null(column, Presence::Absent),
            Raw::Cell {
                text: "",
                quoted: false,
            } => null(column, Presence::Null),
            Raw::Cell { text, .. } => self.text(plan, text, TextOrigin::Cell, column),
            Raw::Bool(value) => self.bool(plan, *value, column),
            Raw::NonFinite(n) => self.non_finite(plan, *n, column),
            Raw::Object(text) => self.object(plan, text, column),
            Raw::Array(text) => self.array(plan, text, column),
            Raw::Native(value) => self.native(plan, value, column),
        }
    }

    /// A fault of the value at the present path.
    #[cold]
    pub(crate) fn invalid(&mut self, refusal: &Refusal<'_>) -> Got {
        self.refuse(refusal);
        Got::Invalid
    }

    #[cold]
    pub(crate) fn wrong_type(&mut self, plan: &ValuePlan, text: &str, what: &str) -> Got {
        let wanted = article(&plan.kind);
        let why = if text.is_empty() {
            format!("{what} stands where {wanted} is declared")
        } else {
            format!("is {what}, not {wanted}")
        };
        let mut refusal = Refusal::new(FaultCode::Type, text, &why);
        if let (Kind::Text { .. }, "a number") = (&plan.kind, what) {
            refusal = refusal.hint(LENIENT_HINT);
        }
        self.invalid(&refusal)
    }

    /// A column of another type than the plan's: cannot be, as both follow from one schema.
    #[cold]
    fn foreign(&mut self) -> Got {
        let why = "the column does not have the field's type";
        self.invalid(&Refusal::new(FaultCode::Type, "", why))
    }

    #[cold]
    pub(crate) fn too_large(&mut self, _too_large: TooLarge) -> Got {
        let why = "the value is larger than a column can hold (2 GiB)";
        self.invalid(&Refusal::new(FaultCode::Range, "", why))
    }

    #[cold]
    pub(crate) fn number_trouble(&mut self, plan: &ValuePlan, text: &str, t: NumberTrouble) -> Got {
        let is_int = matches!(plan.kind, Kind::Int);
        let name = article(&plan.kind);
        let (code, why, hint) = match t {
            NumberTrouble::Format => (FaultCode::Format, format!("is not {name}"), None),
            NumberTrouble::Range if is_int => {
                let why = "is outside the range of a 64-bit int".to_owned();
                (FaultCode::Range, why, Some(INT_RANGE_HINT))
            }
            NumberTrouble::Range => (
                FaultCode::Range,
                format!("is too large for {}", words(plan)),
                None,
            ),
            NumberTrouble::Precision if is_int => (
                FaultCode::Precision,
                "has a fraction, so it is not an int".to_owned(),
                None,
            ),
            NumberTrouble::Precision => (
                FaultCode::Precision,
                format!("has more digits than {} holds exactly", words(plan)),
                Some(FRACTION_HINT),
            ),
        };
        let mut refusal = Refusal::new(code, text, &why);
        refusal.hint = hint;
        self.invalid(&refusal)
    }

    #[cold]
    pub(crate) fn moment_trouble(&mut self, plan: &ValuePlan, text: &str, t: MomentTrouble) -> Got {
        let name = article(&plan.kind);
        let (code, why, hint) = match t {
            MomentTrouble::Format => {
                let hint = matches!(plan.kind, Kind::Timestamp(_)).then_some(WALL_HINT);
                (
                    FaultCode::Format,
                    format!("is not {name} as declared"),
                    hint,
                )
            }
            MomentTrouble::Range => (
                FaultCode::Range,
                format!("is no possible {}", &name[2..]),
                None,
            ),
            MomentTrouble::Precision if matches!(plan.kind, Kind::Date(_)) => {
                let hint = Some("declare the field as `timestamp` to keep the time");
                (
                    FaultCode::Precision,
                    "has a time of day, so it is not a date".to_owned(),
                    hint,
                )
            }
            MomentTrouble::Precision => (
                FaultCode::Precision,
                "has a part smaller than a microsecond".to_owned(),
                None,
            ),
            MomentTrouble::Gap => (
                FaultCode::Range,
                "is a wall time that the zone's clocks skipped".to_owned(),
                Some("check `time_zone`, or deliver times with an offset"),
            ),
            MomentTrouble::Fold => (
                FaultCode::Range,
                "is a wall time that the zone's clocks showed twice".to_owned(),
                Some(
                    "declare `ambiguous = \"earlier\"` or `\"later\"`, or deliver times with an offset",
                ),
            ),
        };
        let mut refusal = Refusal::new(code, text, &why);
        refusal.hint = hint;
        self.invalid(&refusal)
    }

    /// A JSON string with escapes.
    fn escaped_text(&mut self, plan: &'p ValuePlan, body: &str, column: &mut Column) -> Got {
        match (&plan.kind, &mut *column) {
            (Kind::Text { .. }, Column::Text(texts)) if plan.nulls.is_empty() => {
                let met = unescape_into(body, &mut texts.data);
                self.met.lone_surrogates += met.lone_surrogates;
                self.met.nuls += met.nuls;
                let begin = texts.begin();
                let presence = text_presence(&texts.data[begin..]);
                match texts.end() {
                    Ok(()) => Got::Value(presence),
                    Err(e) => self.too_large(e),
                }
            }
            (Kind::Json, Column::Text(texts)) => {
                let raw = Raw::String {
                    body,
                    escaped: true,
                };
                let text = unescaped(body, true);
                if plan.nulls.has_text(&text) {
                    return null(column, Presence::Sentinel);
                }
                self.json(&raw, texts)
            }
            _ => {
                let mut out = Vec::with_capacity(body.len());
                let met = unescape_into(body, &mut out);
                self.met.lone_surrogates += met.lone_surrogates;
                self.met.nuls += met.nuls;
                let text = String::from_utf8(out).unwrap_or_default();
                self.text(plan, &text, TextOrigin::Text, column)
            }
        }
    }

    /// A text whose escapes are resolved.
    #[inline]
    pub(crate) fn text(
        &mut self,
        plan: &'p ValuePlan,
        text: &str,
        origin: TextOrigin,
        column: &mut Column,
    ) -> Got {
        if !plan.nulls.is_empty() {
            let is_token = match origin {
                TextOrigin::Text => plan.nulls.has_text(text),
                TextOrigin::Cell => plan.nulls.has_cell(text),
            };
            if is_token {
                return null(column, Presence::Sentinel);
            }
        }
        if let (Kind::Text { .. }, Column::Text(texts)) = (&plan.kind, &mut *column) {
            return match texts.push(text.as_bytes()) {
                Ok(()) => Got::Value(text_presence(text.as_bytes())),
                Err(e) => self.too_large(e),
            };
        }
        if text.is_empty() && origin == TextOrigin::Cell {
            return null(column, Presence::Empty);
        }
        self.typed_text(plan, text, origin, column)
    }

    /// A text into a column of another type than string.
    fn typed_text(
        &mut self,
        plan: &'p ValuePlan,
        text: &str,
        origin: TextOrigin,
        column: &mut Column,
    ) -> Got {
        match (&plan.kind, &mut *column) {
            (Kind::Int, Column::Int(c)) => match int_from_text(text) {
                Ok(value) => {
                    c.push(value);
                    Got::Value(Presence::Present)
                }
                Err(trouble) => self.number_trouble(plan, text, trouble),
            },
            (Kind::Float, Column::Float(_)) => self.float_text(plan, text, column),
            (Kind::Decimal(decimal), Column::Decimal(c)) => match decimal_text(decimal, text) {
                Ok(value) => {
                    c.push(value);
                    Got::Value(Presence::Present)
                }
                Err(trouble) => self.number_trouble(plan, text, trouble),
            },
            (Kind::Bool { yes, no }, Column::Bool(c)) => {
                let is = |word: &str, tokens: &super::token::Tokens| {
                    text == word
                        || match origin {
                            TextOrigin::Text => tokens.has_text(text),
                            TextOrigin::Cell => tokens.has_cell(text),
                        }
                };
                if is("true", yes) {
                    c.push(true);
                } else if is("false", no) {
                    c.push(false);
                } else {
                    let why = "is neither true nor false as declared";
                    let refusal = Refusal::new(FaultCode::Format, text, why);
                    return self
                        .invalid(&refusal.hint("name it in `true_values` or `false_values`"));
                }
                Got::Value(Presence::Present)
            }
            (Kind::Date(formats), Column::Date(c)) => match date_text(formats, text) {
                Ok(day) => {
                    c.push(day);
                    Got::Value(Presence::Present)
                }
                Err(trouble) => self.moment_trouble(plan, text, trouble),
            },
            (Kind::Timestamp(timestamp), Column::Timestamp(c)) => {
                match self.timestamp_text(timestamp, text) {
                    Ok(micros) => {
                        c.push(micros);
                        Got::Value(Presence::Present)
                    }
                    Err(trouble) => self.moment_trouble(plan, text, trouble),
                }
            }
            (Kind::Enum(values), Column::Text(texts)) => {
                if !values.has(text) {
                    let refusal = Refusal::new(FaultCode::Enum, text, "is not one of the values");
                    return self.invalid(&refusal.hint("add the value in the next version"));
                }
                self.push_text(texts, text.as_bytes(), text_presence(text.as_bytes()))
            }
            (Kind::Bytes, Column::Bytes(bytes)) => {
                let engine = &base64::engine::general_purpose::STANDARD;
                if engine.decode_vec(text, &mut bytes.data).is_err() {
                    bytes.undo();
                    let why = "is not standard base64 with padding";
                    return self.invalid(&Refusal::new(FaultCode::Format, text, why));
                }
                let empty = text.is_empty();
                match bytes.end() {
                    Ok(()) if empty => Got::Value(Presence::Empty),
                    Ok(()) => Got::Value(Presence::Present),
                    Err(e) => self.too_large(e),
                }
            }
            (Kind::Json, Column::Text(texts)) => match origin {
                TextOrigin::Cell => self.json_cell(plan, text, column),
                TextOrigin::Text => self.json(
                    &Raw::String {
                        body: text,
                        escaped: false,
                    },
                    texts,
                ),
            },
            (Kind::List(_) | Kind::Map(_) | Kind::Struct(_), _) => {
                self.wrong_type(plan, text, "a text")
            }
            _ => self.foreign(),
        }
    }

    fn push_text(&mut self, texts: &mut Texts, bytes: &[u8], presence: Presence) -> Got {
        match texts.push(bytes) {
            Ok(()) => Got::Value(presence),
            Err(e) => self.too_large(e),
        }
    }

    fn float_text(&mut self, plan: &ValuePlan, text: &str, column: &mut Column) -> Got {
        let literal = match text {
            "NaN" => NonFinite::NaN,
            "Infinity" => NonFinite::Infinity,
            "-Infinity" => NonFinite::NegInfinity,
            _ if !is_number(text) => {
                return self.number_trouble(plan, text, NumberTrouble::Format);
            }
            _ => return self.float(plan, text, column),
        };
        self.non_finite(plan, literal, column)
    }

    fn float(&mut self, plan: &ValuePlan, text: &str, column: &mut Column) -> Got {
        let Column::Float(c) = column else {
            return self.foreign();
        };
        match float(text) {
            Ok(value) => {
                c.push(value);
                Got::Value(Presence::Present)
            }
            Err(trouble) => self.number_trouble(plan, text, trouble),
        }
    }

    /// A cell, or a text of a typed input, is JSON text for a json field.
    pub(crate) fn json_cell(&mut self, plan: &ValuePlan, text: &str, column: &mut Column) -> Got {
        let Column::Text(texts) = column else {
            return self.foreign();
        };
        let mut scanner = Scanner::new(text);
        let whole = scanner.value().is_ok() && scanner.skip_space().is_none();
        if !whole {
            let why = "is not a JSON value";
            return self.invalid(&Refusal::new(FaultCode::Format, text, why));
        }
        if text.trim() == "null" {
            return null(column, Presence::Null);
        }
        let mut out = std::mem::take(&mut self.memory.text);
        out.clear();
        let got = match compact_into(text, &mut out) {
            Ok(()) => self.push_text(texts, out.as_bytes(), json_presence(&out)),
            Err(trouble) => {
                self.refuse_inside(&trouble);
                Got::Invalid
            }
        };
        self.memory.text = out;
        let _same_for_all = plan;
        got
    }

    /// A JSON value as its own minimal text.
    pub(crate) fn json(&mut self, raw: &Raw<'_>, texts: &mut Texts) -> Got {
        let mut out = std::mem::take(&mut self.memory.text);
        out.clear();
        let got = match write_compact(raw, &mut out) {
            Ok(()) => self.push_text(texts, out.as_bytes(), json_presence(&out)),
            Err(trouble) => {
                self.refuse_inside(&trouble);
                Got::Invalid
            }
        };
        self.memory.text = out;
        got
    }

    fn timestamp_text(
        &mut self,
        plan: &'p TimestampPlan,
        text: &str,
    ) -> Result<i64, MomentTrouble> {
        let mut worst = MomentTrouble::Format;
        for format in &plan.formats {
            let read = match format {
                TimeFormat::Rfc3339 => moment::rfc3339(text),
                TimeFormat::Epoch(unit) => unit.from_text(text),
                TimeFormat::Pattern(pattern) => self.pattern(plan, pattern, text),
            };
            match read {
                Ok(micros) => return Ok(micros),
                Err(MomentTrouble::Format) => {}
                // The first format whose shape fits tells best what is wrong.
                Err(trouble) if worst == MomentTrouble::Format => worst = trouble,
                Err(_) => {}
            }
        }
        Err(worst)
    }

    fn pattern(
        &mut self,
        plan: &TimestampPlan,
        pattern: &Pattern,
        text: &str,
    ) -> Result<i64, MomentTrouble> {
        let reading = pattern.read(text)?;
        match reading.offset {
            Some(seconds) => in_range(reading.wall - i64::from(seconds) * MICROS_PER_SECOND),
            None => self.wall_time(plan, reading.wall),
        }
    }

    /// A wall time of the field's zone.
    pub(crate) fn wall_time(
        &mut self,
        plan: &TimestampPlan,
        wall: i64,
    ) -> Result<i64, MomentTrouble> {
        let zone = plan.zone.as_ref().ok_or(MomentTrouble::Format)?;
        let cache = self
            .memory
            .zones
            .get_mut(zone.id)
            .ok_or(MomentTrouble::Format)?;
        cache.instant(&zone.zone, wall, zone.ambiguous)
    }

    /// A JSON number (or an integer or decimal of a typed input) by its own text.
    #[inline]
    pub(crate) fn number(&mut self, plan: &'p ValuePlan, text: &str, column: &mut Column) -> Got {
        if !plan.nulls.is_empty() && plan.nulls.has_number(text) {
            return null(column, Presence::Sentinel);
        }
        match (&plan.kind, &mut *column) {
            (Kind::Int, Column::Int(c)) => match int_from_number(text) {
                Ok(value) => {
                    c.push(value);
                    Got::Value(Presence::Present)
                }
                Err(trouble) => self.number_trouble(plan, text, trouble),
            },
            (Kind::Float, Column::Float(_)) => self.float(plan, text, column),
            (Kind::Decimal(d), Column::Decimal(c)) => match scaled(text, d.precision, d.scale) {
                Ok(value) => {
                    c.push(value);
                    Got::Value(Presence::Present)
                }
                Err(trouble) => self.number_trouble(plan, text, trouble),
            },
            (Kind::Text { lenient: true } | Kind::Json, Column::Text(texts)) => {
                self.push_text(texts, text.as_bytes(), Presence::Present)
            }
            (Kind::Bool { yes, no }, Column::Bool(c)) => {
                if yes.has_cell(text) {
                    c.push(true);
                } else if no.has_cell(text) {
                    c.push(false);
                } else {
                    return self.wrong_type(plan, text, "a number");
                }
                Got::Value(Presence::Present)
            }
            (Kind::Timestamp(timestamp), Column::Timestamp(c)) => {
                let unit = timestamp.formats.iter().find_map(|f| match f {
                    TimeFormat::Epoch(unit) => Some(*unit),
                    TimeFormat::Rfc3339 | TimeFormat::Pattern(_) => None,
                });
                let Some(unit) = unit else {
                    return self.wrong_type(plan, text, "a number");
                };
                match unit.from_number(text) {
                    Ok(micros) => {
                        c.push(micros);
                        Got::Value(Presence::Present)
                    }
                    Err(trouble) => self.moment_trouble(plan, text, trouble),
                }
            }
            (
                Kind::Text { lenient: false }
                | Kind::Date(_)
                | Kind::Enum(_)
                | Kind::Bytes
                | Kind::List(_)
                | Kind::Map(_)
                | Kind::Struct(_),
                _,
            ) => self.wrong_type(plan, text, "a number"),
            _ => self.foreign(),
        }
    }

    fn bool(&mut self, plan: &'p ValuePlan, value: bool, column: &mut Column) -> Got {
        let text = if value { "true" } else { "false" };
        match (&plan.kind, column) {
            (Kind::Bool { .. }, Column::Bool(c)) => {
                c.push(value);
                Got::Value(Presence::Present)
            }
            (Kind::Json, Column::Text(texts)) => {
                self.push_text(texts, text.as_bytes(), Presence::Present)
            }
            _ => self.wrong_type(plan, text, "a bool"),
        }
    }

    /// NaN or an infinity, as a literal, a text or a typed value.
    pub(crate) fn non_finite(
        &mut self,
        plan: &ValuePlan,
        n: NonFinite,
        column: &mut Column,
    ) -> Got {
        let (value, text) = match n {
            NonFinite::NaN => (f64::NAN, "NaN"),
            NonFinite::Infinity => (f64::INFINITY, "Infinity"),
            NonFinite::NegInfinity => (f64::NEG_INFINITY, "-Infinity"),
        };
        // An infinity is a value, not a missing one: only NaN may become NULL.
        if n == NonFinite::NaN && plan.nan_as_null.unwrap_or(self.nan_as_null) {
            return null(column, Presence::Nan);
        }
        match (&plan.kind, column) {
            (Kind::Float, Column::Float(c)) if plan.allow_nan => {
                c.push(value);
                Got::Value(Presence::Nan)
            }
            _ => {
                let refusal = Refusal::new(FaultCode::Nan, text, "is not accepted here");
                self.invalid(&refusal.hint(NAN_HINT))
            }
        }
    }

    fn object(&mut self, plan: &'p ValuePlan, text: &str, column: &mut Column) -> Got {
        match (&plan.kind, column) {
            (Kind::Struct(level), Column::Struct(c)) => {
                let mut scanner = Scanner::new(text);
                let before = self.faults.len();
                match self.json_level(&mut scanner, level, &mut c.children, false) {
                    Err(e) => self.invalid(&Refusal::new(FaultCode::Syntax, "", e.what)),
                    Ok(_) if self.faults.len() > before => Got::Invalid,
                    Ok(any) => {
                        c.end();
                        Got::Value(container(any))
                    }
                }
            }
            (Kind::Map(value), Column::Map(c)) => {
                let before = self.faults.len();
                let any = match self.map_entries(value, text, c) {
                    Ok(any) => any,
                    Err(got) => return got,
                };
                if self.faults.len() > before {
                    return Got::Invalid;
                }
                match c.end() {
                    Ok(()) => Got::Value(container(any)),
                    Err(e) => self.too_large(e),
                }
            }
            (Kind::Json, Column::Text(texts)) => self.json(&Raw::Object(text), texts),
            _ => self.wrong_type(plan, "", "an object"),
        }
    }

    fn map_entries(
        &mut self,
        value: &'p ValuePlan,
        text: &str,
        map: &mut super::column::Maps,
    ) -> Result<bool, Got> {
        let mut scanner = Scanner::new(text);
        let mut keys = Vec::new();
        let mut walk = |row: &mut Self| -> Result<bool, crate::ingest::json::SyntaxError> {
            scanner.open_object()?;
            let mut first = true;
            while let Some(key) = scanner.next_key(first)? {
                first = false;
                let raw = scanner.value()?;
                let name = unescaped(key.body, key.escaped);
                if let Err(e) = map.keys.push(name.as_bytes()) {
                    row.too_large(e);
                    return Ok(true);
                }
                row.path.push(Step::Key(name.clone().into_owned()));
                row.value(value, &raw, &mut map.values);
                row.path.pop();
                keys.push(name);
            }
            Ok(!first)
        };
        let any = match walk(self) {
            Ok(any) => any,
            Err(e) => return Err(self.invalid(&Refusal::new(FaultCode::Syntax, "", e.what))),
        };
        if let Some(name) = find_duplicate(&mut keys) {
            let name = name.to_owned();
            self.duplicate_key(&name, None);
        }
        Ok(any)
    }

    fn array(&mut self, plan: &'p ValuePlan, text: &str, column: &mut Column) -> Got {
        match (&plan.kind, column) {
            (Kind::List(element), Column::List(c)) => {
                let mut scanner = Scanner::new(text);
                let before = self.faults.len();
                let depth = self.path.len();
                self.path.push(Step::Index(0));
                let mut index = 0;
                let mut walk = |row: &mut Self| {
                    scanner.open_array()?;
                    while scanner.next_element(index == 0)? {
                        let raw = scanner.value()?;
                        if let Some(step) = row.path.last_mut() {
                            *step = Step::Index(index);
                        }
                        row.value(element, &raw, &mut c.elements);
                        index += 1;
                    }
                    Ok(())
                };
                let walked: Result<(), crate::ingest::json::SyntaxError> = walk(self);
                self.path.truncate(depth);
                if let Err(e) = walked {
                    return self.invalid(&Refusal::new(FaultCode::Syntax, "", e.what));
                }
                if self.faults.len() > before {
                    return Got::Invalid;
                }
                match c.end() {
                    Ok(()) => Got::Value(container(index > 0)),
                    Err(e) => self.too_large(e),
                }
            }
            (Kind::Json, Column::Text(texts)) => self.json(&Raw::Array(text), texts),
            _ => self.wrong_type(plan, "", "an array"),
        }
    }
}

#[inline]
pub(crate) fn null(column: &mut Column, presence: Presence) -> Got {
    column.push_null();
    Got::Null(presence)
}

pub(crate) fn container(any: bool) -> Presence {
    if any {
        Presence::Present
    } else {
        Presence::EmptyContainer
    }
}

/// The type with its parameters, for reasons.
fn words(plan: &ValuePlan) -> String {
    match &plan.kind {
        Kind::Decimal(d) => format!("decimal({},{})", d.precision, d.scale),
        Kind::Float => "a 64-bit float".to_owned(),
        other => article(other).to_owned(),
    }
}

fn decimal_text(decimal: &DecimalPlan, text: &str) -> Result<i128, NumberTrouble> {
    match &decimal.money {
        None if is_number(text) => scaled(text, decimal.precision, decimal.scale),
        None => Err(NumberTrouble::Format),
        Some(money) => {
            let mut plain = String::with_capacity(text.len());
            if !money.plain(text, &mut plain) {
                return Err(NumberTrouble::Format);
            }
            scaled(&plain, decimal.precision, decimal.scale)
        }
    }
}

/// A date by its formats, or by the default where none is declared.
fn date_text(formats: &[Pattern], text: &str) -> Result<i32, MomentTrouble> {
    if formats.is_empty() {
        return moment::date(text);
    }
    let mut worst = MomentTrouble::Format;
    for format in formats {
        match format.read(text).and_then(|r| whole_day(r.wall)) {
            Ok(day) => return Ok(day),
            Err(MomentTrouble::Format) => {}
            Err(trouble) if worst == MomentTrouble::Format => worst = trouble,
            Err(_) => {}
        }
    }
    Err(worst)
}

/// The day of a wall time that is midnight.
pub(crate) fn whole_day(wall: i64) -> Result<i32, MomentTrouble> {
    if wall.rem_euclid(MICROS_PER_DAY) != 0 {
        return Err(MomentTrouble::Precision);
    }
    i32::try_from(wall.div_euclid(MICROS_PER_DAY)).map_err(|_| MomentTrouble::Range)
}
