//! Values of typed inputs into columns: the same rules, by exact value.

use std::ops::Range;

use arrow_array::{Array, ArrayRef};

use crate::ingest::convert::column::{Column, Lists, Maps, TooLarge};
use crate::ingest::convert::container::container;
use crate::ingest::convert::fault::{FaultCode, Step};
use crate::ingest::convert::moment::{self, EpochUnit, MomentTrouble, in_range};
use crate::ingest::convert::number::{NumberTrouble, scaled_from_float};
use crate::ingest::convert::plan::{Kind, ValuePlan};
use crate::ingest::convert::presence::Presence;
use crate::ingest::convert::refusal::Refusal;
use crate::ingest::convert::row::{Got, Row};
use crate::ingest::convert::typed;
use crate::ingest::convert::value::{TextOrigin, null, whole_day};
use crate::ingest::json::find_duplicate;
use crate::ingest::native::NativeValue;
use crate::ingest::raw::Raw;

impl<'p> Row<'p> {
    /// Converts a typed value.
    pub(crate) fn native(
        &mut self,
        plan: &'p ValuePlan,
        value: &NativeValue<'_>,
        column: &mut Column,
    ) -> Got {
        if let (Kind::Json, false) = (&plan.kind, matches!(value, NativeValue::Text(_))) {
            let Column::Text(texts) = column else {
                return self.wrong_type(plan, "", "a value");
            };
            return self.json(&Raw::Native(*value), texts);
        }
        match value {
            NativeValue::Text(text) => self.native_text(plan, text, column),
            NativeValue::Float(x) => self.native_float(plan, *x, column),
            NativeValue::Date(day) => match (&plan.kind, column) {
                (Kind::Date(_), Column::Date(c)) if moment::day_in_range(*day) => {
                    c.push(*day);
                    Got::Value(Presence::Present)
                }
                (Kind::Date(_), Column::Date(_)) => {
                    self.trouble(plan, &day.to_string(), MomentTrouble::Range.into())
                }
                _ => self.wrong_type(plan, &moment::date_text(i64::from(*day)), "a date"),
            },
            NativeValue::Instant(micros) => match (&plan.kind, column) {
                (Kind::Timestamp(_), Column::Timestamp(c)) => match in_range(*micros) {
                    Ok(micros) => {
                        c.push(micros);
                        Got::Value(Presence::Present)
                    }
                    Err(t) => self.trouble(plan, &micros.to_string(), t.into()),
                },
                _ => self.wrong_type(plan, &moment::wall_text(*micros), "a timestamp"),
            },
            NativeValue::WallTime(micros) => self.native_wall(plan, *micros, column),
            NativeValue::Nanos(nanos) => {
                let text = moment::wall_text(nanos.div_euclid(1000));
                match plan.kind {
                    Kind::Date(_) | Kind::Timestamp(_) => {
                        self.trouble(plan, &text, MomentTrouble::Precision.into())
                    }
                    _ => self.wrong_type(plan, &text, "a timestamp"),
                }
            }
            NativeValue::Bytes(bytes) => match (&plan.kind, column) {
                (Kind::Bytes, Column::Bytes(c)) => match c.push(bytes) {
                    Ok(()) if bytes.is_empty() => Got::Value(Presence::Empty),
                    Ok(()) => Got::Value(Presence::Present),
                    Err(e) => self.too_large(e),
                },
                _ => self.wrong_type(plan, "", "bytes"),
            },
            NativeValue::Other(array) => {
                let what = format!("a value of the Arrow type `{}`", array.data_type());
                self.wrong_type(plan, "", &what)
            }
            NativeValue::Nested { array, row } => self.native_nested(plan, array, *row, column),
        }
    }

    fn native_text(&mut self, plan: &'p ValuePlan, text: &str, column: &mut Column) -> Got {
        let nuls = memchr::memchr_iter(0, text.as_bytes()).count();
        self.met.nuls += u64::try_from(nuls).unwrap_or(0);
        if let Kind::Json = plan.kind {
            if plan.nulls.has_text(text) {
                return null(column, Presence::Sentinel);
            }
            return self.json_cell(text, column);
        }
        self.text(plan, text, TextOrigin::Text, column)
    }

    fn native_wall(&mut self, plan: &'p ValuePlan, wall: i64, column: &mut Column) -> Got {
        let done = match (&plan.kind, &mut *column) {
            (Kind::Timestamp(timestamp), Column::Timestamp(c)) => {
                if timestamp.zone.is_none() {
                    let text = moment::wall_text(wall);
                    let why = "is a wall time, and the field has no `time_zone`";
                    let refusal = Refusal::new(FaultCode::Format, &text, why);
                    return self.invalid(&refusal.hint(
                        "declare what the clock on the wall means, such as time_zone = \"Asia/Shanghai\"",
                    ));
                }
                self.wall_time(timestamp, wall).map(|micros| c.push(micros))
            }
            (Kind::Date(_), Column::Date(c)) => match whole_day(wall) {
                Ok(day) if moment::day_in_range(day) => {
                    c.push(day);
                    Ok(())
                }
                Ok(_) => Err(MomentTrouble::Range),
                Err(trouble) => Err(trouble),
            },
            _ => return self.wrong_type(plan, &moment::wall_text(wall), "a timestamp"),
        };
        match done {
            Ok(()) => Got::Value(Presence::Present),
            Err(trouble) => self.trouble(plan, &moment::wall_text(wall), trouble.into()),
        }
    }

    fn native_float(&mut self, plan: &'p ValuePlan, x: f64, column: &mut Column) -> Got {
        if !plan.nulls.is_empty() && plan.nulls.has_float(x) {
            return null(column, Presence::Sentinel);
        }
        let text = typed::float_text(x);
        let done = match (&plan.kind, &mut *column) {
            (Kind::Float, Column::Float(c)) => {
                c.push(x);
                Ok(())
            }
            (Kind::Int, Column::Int(c)) => scaled_from_float(x, 19, 0)
                .and_then(|n| i64::try_from(n).map_err(|_| NumberTrouble::Range))
                .map(|n| c.push(n)),
            (Kind::Decimal(d), Column::Decimal(c)) => {
                scaled_from_float(x, d.precision, d.scale).map(|n| c.push(n))
            }
            (Kind::Text { lenient: true }, Column::Text(c)) => match c.push(&text) {
                Ok(()) => Ok(()),
                Err(e) => return self.too_large(e),
            },
            (Kind::Bool { yes, no }, Column::Bool(c)) => {
                if yes.has_float(x) {
                    c.push(true);
                } else if no.has_float(x) {
                    c.push(false);
                } else {
                    return self.wrong_type(plan, &text, "a number");
                }
                Ok(())
            }
            (Kind::Timestamp(timestamp), Column::Timestamp(c)) => {
                let Some(unit) = timestamp.epoch() else {
                    return self.wrong_type(plan, &text, "a number");
                };
                return match epoch_from_float(unit, x) {
                    Ok(micros) => {
                        c.push(micros);
                        Got::Value(Presence::Present)
                    }
                    Err(trouble) => self.trouble(plan, &text, trouble.into()),
                };
            }
            _ => return self.wrong_type(plan, &text, "a number"),
        };
        match done {
            Ok(()) => Got::Value(Presence::Present),
            Err(trouble) => self.trouble(plan, &text, trouble.into()),
        }
    }

    fn native_nested(
        &mut self,
        plan: &'p ValuePlan,
        array: &ArrayRef,
        row: usize,
        column: &mut Column,
    ) -> Got {
        let before = self.faults.len();
        let any = match (&plan.kind, &mut *column) {
            (Kind::List(element), Column::List(c)) => {
                let Some((values, range)) = typed::elements(array, row) else {
                    return self.wrong_type(plan, "", "a struct or map");
                };
                self.native_elements(element, values, range, c)
            }
            (Kind::Map(value), Column::Map(c)) => {
                let Some((keys, values, range)) = typed::entries(array, row) else {
                    return self.wrong_type(plan, "", "a struct or list");
                };
                self.native_entries(value, (keys, values), range, c)
            }
            (Kind::Struct(level), Column::Struct(c)) => {
                let Some(members) = typed::TypedRow::inside(array, row) else {
                    return self.wrong_type(plan, "", "a list or map");
                };
                self.typed_level(&members, level, &mut c.children, false);
                c.end();
                Ok(members.iter().next().is_some())
            }
            _ => return self.wrong_type(plan, "", "a nested value"),
        };
        match any {
            Err(e) => self.too_large(e),
            Ok(_) if self.faults.len() > before => Got::Invalid,
            Ok(any) => Got::Value(container(any)),
        }
    }

    fn native_elements(
        &mut self,
        element: &'p ValuePlan,
        values: &ArrayRef,
        range: Range<usize>,
        list: &mut Lists,
    ) -> Result<bool, TooLarge> {
        let any = !range.is_empty();
        let mut buffer = String::new();
        for (index, at) in range.enumerate() {
            self.path.push(Step::Index(index));
            let raw = typed::raw(values, at, &mut buffer);
            self.value(element, &raw, &mut list.elements);
            self.path.pop();
        }
        list.end()?;
        Ok(any)
    }

    fn native_entries(
        &mut self,
        value: &'p ValuePlan,
        (keys, values): (&ArrayRef, &ArrayRef),
        range: Range<usize>,
        map: &mut Maps,
    ) -> Result<bool, TooLarge> {
        let any = !range.is_empty();
        let mut buffer = String::new();
        let mut names = Vec::with_capacity(range.len());
        for at in range {
            let name = typed::key_text(keys, at);
            map.keys.push(&name)?;
            self.path.push(Step::Key(name.clone()));
            let raw = typed::raw(values, at, &mut buffer);
            self.value(value, &raw, &mut map.values);
            self.path.pop();
            names.push(std::borrow::Cow::Owned(name));
        }
        if let Some(name) = find_duplicate(&mut names) {
            let name = name.to_owned();
            self.duplicate_key(&name, None);
        }
        map.end()?;
        Ok(any)
    }
}

/// An instant that is exactly the float.
fn epoch_from_float(unit: EpochUnit, x: f64) -> Result<i64, MomentTrouble> {
    let (scale, unit) = match unit {
        EpochUnit::Seconds => (6, EpochUnit::Micros),
        EpochUnit::Millis | EpochUnit::Micros => (0, unit),
    };
    let units = scaled_from_float(x, 25, scale).map_err(|t| match t {
        NumberTrouble::Format => MomentTrouble::Format,
        NumberTrouble::Range => MomentTrouble::Range,
        NumberTrouble::Precision => MomentTrouble::Precision,
    })?;
    unit.instant(i64::try_from(units).map_err(|_| MomentTrouble::Range)?)
}
