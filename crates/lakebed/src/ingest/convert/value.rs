//! One value into one column, by the rule of its type. Lossless, or a fault.

use arrow_buffer::ArrowNativeType;
use base64::Engine as _;

use crate::ingest::convert::column::{Blobs, Bools, Column, Values};
use crate::ingest::convert::fault::FaultCode;
use crate::ingest::convert::moment::{
    self, MICROS_PER_DAY, MICROS_PER_SECOND, MomentTrouble, in_range,
};
use crate::ingest::convert::number::{
    NumberTrouble, float, int_from_number, int_from_text, is_number, scaled,
};
use crate::ingest::convert::pattern::Pattern;
use crate::ingest::convert::plan::{DecimalPlan, Kind, TimeFormat, TimestampPlan, ValuePlan};
use crate::ingest::convert::presence::Presence;
use crate::ingest::convert::refusal::{Refusal, write_compact};
use crate::ingest::convert::row::{Got, Row};
use crate::ingest::convert::texts::Texts;
use crate::ingest::convert::token::Tokens;
use crate::ingest::convert::trouble::{NAN_HINT, Trouble};
use crate::ingest::json::{Scanner, compact_into, mend_surrogates, unescape_into, unescaped};
use crate::ingest::raw::{NonFinite, Raw};

/// Where a text came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextOrigin {
    /// A JSON string, or a text of a typed input.
    Text,
    /// A CSV cell, which may be a number as well.
    Cell,
}

/// Presence of a text that is stored as text; looks no further than its first visible character.
#[inline]
pub(crate) fn text_presence(bytes: &[u8]) -> Presence {
    match bytes.first() {
        None => Presence::Empty,
        // No White_Space character begins with one of these (they begin with C2, E1, E2 or E3).
        Some(b'!'..=b'~' | 0xc3..=0xe0 | 0xe4..) => Presence::Present,
        Some(_) if is_blank(bytes) => Presence::Blank,
        Some(_) => Presence::Present,
    }
}

fn is_blank(mut bytes: &[u8]) -> bool {
    while let Some(first) = bytes.first() {
        let width = match first {
            0..=0x7f => 1,
            0x80..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0.. => 4,
        };
        let Some((head, rest)) = bytes.split_at_checked(width) else {
            return false;
        };
        let is_white = |c: &str| c.chars().all(char::is_whitespace);
        if !std::str::from_utf8(head).is_ok_and(is_white) {
            return false;
        }
        bytes = rest;
    }
    true
}

/// Presence of a value that is stored as JSON text.
fn json_presence(text: &str) -> Presence {
    match text {
        "[]" | "{}" => Presence::EmptyContainer,
        "\"\"" => Presence::Empty,
        _ => Presence::Present,
    }
}

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

    /// A JSON string with escapes.
    pub(crate) fn escaped_text(
        &mut self,
        plan: &'p ValuePlan,
        body: &str,
        column: &mut Column,
    ) -> Got {
        match (&plan.kind, &mut *column) {
            (Kind::Text { .. }, Column::Text(texts)) if plan.nulls.is_empty() => {
                let mut text = std::mem::take(&mut self.memory.text);
                text.clear();
                let met = unescape_into(body, &mut text);
                self.met.lone_surrogates += met.lone_surrogates;
                self.met.nuls += met.nuls;
                let got = self.push_text(texts, &text, text_presence(text.as_bytes()));
                self.memory.text = text;
                got
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
                let mut text = String::with_capacity(body.len());
                let met = unescape_into(body, &mut text);
                self.met.lone_surrogates += met.lone_surrogates;
                self.met.nuls += met.nuls;
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
            return match texts.push(text) {
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
            (Kind::Int, Column::Int(c)) => self.put(plan, text, c, int_from_text(text)),
            (Kind::Float, Column::Float(_)) => self.float_text(plan, text, column),
            (Kind::Decimal(d), Column::Decimal(c)) => {
                self.put(plan, text, c, decimal_text(d, text))
            }
            (Kind::Bool { .. }, Column::Bool(c)) => self.bool_text(plan, text, origin, c),
            (Kind::Date(formats), Column::Date(c)) => {
                self.put(plan, text, c, date_text(formats, text))
            }
            (Kind::Timestamp(timestamp), Column::Timestamp(c)) => {
                let read = self.timestamp_text(timestamp, text);
                self.put(plan, text, c, read)
            }
            (Kind::Enum(values), Column::Text(texts)) => {
                if !values.has(text) {
                    let refusal = Refusal::new(FaultCode::Enum, text, "is not one of the values");
                    return self.invalid(&refusal.hint("add the value in the next version"));
                }
                self.push_text(texts, text, text_presence(text.as_bytes()))
            }
            (Kind::Bytes, Column::Bytes(bytes)) => self.base64_text(text, bytes),
            (Kind::Json, Column::Text(texts)) => match origin {
                TextOrigin::Cell => self.json_cell(text, column),
                TextOrigin::Text => {
                    let raw = Raw::String {
                        body: text,
                        escaped: false,
                    };
                    self.json(&raw, texts)
                }
            },
            (Kind::List(_) | Kind::Map(_) | Kind::Struct(_), _) => {
                self.wrong_type(plan, text, "a text")
            }
            _ => self.foreign(),
        }
    }

    /// Stores a value that was read, or says why it was not.
    #[inline]
    pub(crate) fn put<T: ArrowNativeType, E: Into<Trouble>>(
        &mut self,
        plan: &ValuePlan,
        text: &str,
        column: &mut Values<T>,
        read: Result<T, E>,
    ) -> Got {
        match read {
            Ok(value) => {
                column.push(value);
                Got::Value(Presence::Present)
            }
            Err(trouble) => self.trouble(plan, text, trouble.into()),
        }
    }

    fn bool_text(
        &mut self,
        plan: &ValuePlan,
        text: &str,
        origin: TextOrigin,
        column: &mut Bools,
    ) -> Got {
        let Kind::Bool { yes, no } = &plan.kind else {
            return self.foreign();
        };
        let is = |word: &str, tokens: &Tokens| {
            text == word
                || match origin {
                    TextOrigin::Text => tokens.has_text(text),
                    TextOrigin::Cell => tokens.has_cell(text),
                }
        };
        if is("true", yes) {
            column.push(true);
        } else if is("false", no) {
            column.push(false);
        } else {
            let why = "is neither true nor false as declared";
            let refusal = Refusal::new(FaultCode::Format, text, why);
            return self.invalid(&refusal.hint("name it in `true_values` or `false_values`"));
        }
        Got::Value(Presence::Present)
    }

    fn base64_text(&mut self, text: &str, bytes: &mut Blobs) -> Got {
        let engine = &base64::engine::general_purpose::STANDARD;
        if engine.decode_vec(text, &mut bytes.data).is_err() {
            bytes.undo();
            let why = "is not standard base64 with padding";
            return self.invalid(&Refusal::new(FaultCode::Format, text, why));
        }
        match bytes.end() {
            Ok(()) if text.is_empty() => Got::Value(Presence::Empty),
            Ok(()) => Got::Value(Presence::Present),
            Err(e) => self.too_large(e),
        }
    }

    #[inline]
    pub(crate) fn push_text(&mut self, texts: &mut Texts, text: &str, presence: Presence) -> Got {
        match texts.push(text) {
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
                return self.trouble(plan, text, NumberTrouble::Format.into());
            }
            _ => return self.float(plan, text, column),
        };
        self.non_finite(plan, literal, column)
    }

    fn float(&mut self, plan: &ValuePlan, text: &str, column: &mut Column) -> Got {
        let Column::Float(c) = column else {
            return self.foreign();
        };
        self.put(plan, text, c, float(text))
    }

    /// A cell, or a text of a typed input, is JSON text for a json field.
    pub(crate) fn json_cell(&mut self, text: &str, column: &mut Column) -> Got {
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
            Ok(()) => self.push_text(texts, &out, json_presence(&out)),
            Err(trouble) => {
                self.refuse_inside(&trouble);
                Got::Invalid
            }
        };
        self.memory.text = out;
        got
    }

    /// A JSON value as its own minimal text.
    pub(crate) fn json(&mut self, raw: &Raw<'_>, texts: &mut Texts) -> Got {
        let mut out = std::mem::take(&mut self.memory.text);
        out.clear();
        let got = match write_compact(raw, &mut out) {
            Ok(()) => self.push_text(texts, &out, json_presence(&out)),
            Err(trouble) => {
                self.refuse_inside(&trouble);
                Got::Invalid
            }
        };
        self.memory.text = out;
        got
    }

    /// As [`Self::json`], for a record of which other readers see nothing but this text.
    pub(crate) fn whole_json(&mut self, raw: &Raw<'_>, texts: &mut Texts) -> Got {
        let mut out = std::mem::take(&mut self.memory.text);
        out.clear();
        let got = match write_compact(raw, &mut out) {
            Ok(()) => {
                let met = mend_surrogates(&mut out);
                self.met.lone_surrogates += met.lone_surrogates;
                self.met.nuls += met.nuls;
                self.push_text(texts, &out, json_presence(&out))
            }
            Err(trouble) => {
                self.refuse_inside(&trouble);
                Got::Invalid
            }
        };
        self.memory.text = out;
        got
    }

    pub(crate) fn timestamp_text(
        &mut self,
        plan: &'p TimestampPlan,
        text: &str,
    ) -> Result<i64, MomentTrouble> {
        let mut worst = MomentTrouble::Format;
        for format in &plan.formats {
            let read = match format {
                TimeFormat::Rfc3339 => moment::rfc3339(text),
                TimeFormat::Epoch(unit) => unit.of_text(text),
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
            (Kind::Int, Column::Int(c)) => self.put(plan, text, c, int_from_number(text)),
            (Kind::Float, Column::Float(_)) => self.float(plan, text, column),
            (Kind::Decimal(d), Column::Decimal(c)) => {
                self.put(plan, text, c, scaled(text, d.precision, d.scale))
            }
            (Kind::Text { lenient: true } | Kind::Json, Column::Text(texts)) => {
                self.push_text(texts, text, Presence::Present)
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
            (Kind::Timestamp(timestamp), Column::Timestamp(c)) => match timestamp.epoch() {
                Some(unit) => self.put(plan, text, c, unit.of_number(text)),
                None => self.wrong_type(plan, text, "a number"),
            },
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
            (Kind::Json, Column::Text(texts)) => self.push_text(texts, text, Presence::Present),
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
        // A field that declares `allow_nan` keeps it, whatever the default of the input's form.
        let keeps = plan.allow_nan && matches!(plan.kind, Kind::Float);
        let as_null = plan.nan_as_null.unwrap_or(self.nan_as_null && !keeps);
        if n == NonFinite::NaN && as_null {
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
}

#[inline]
pub(crate) fn null(column: &mut Column, presence: Presence) -> Got {
    column.push_null();
    Got::Null(presence)
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
