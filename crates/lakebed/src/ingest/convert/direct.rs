//! JSON values of the usual types, from their text straight into their columns.
//!
//! The type of the field is looked at first, and each type then reads what it expects. Where members
//! come in any order, one jump by the type is all that a processor cannot foresee; were the value read
//! first, its form, its length and the type would each be guessed anew. Whatever is written in another
//! way than expected goes the way of all values ([`Row::value`]), which tells its faults.

use crate::ingest::convert::column::Column;
use crate::ingest::convert::number::{short_float, short_scaled};
use crate::ingest::convert::plan::{Kind, ValuePlan};
use crate::ingest::convert::presence::Presence;
use crate::ingest::convert::row::{Got, Row};
use crate::ingest::convert::value::{null, text_presence};
use crate::ingest::json::{Scanner, SyntaxError};
use crate::ingest::raw::Raw;

const PRESENT: Got = Got::Value(Presence::Present);

impl<'p> Row<'p> {
    /// Converts the JSON value under the cursor.
    #[inline(always)]
    pub(crate) fn json_value(
        &mut self,
        plan: &'p ValuePlan,
        scanner: &mut Scanner<'_>,
        column: &mut Column,
    ) -> Result<Got, SyntaxError> {
        let first = scanner.skip_space();
        match (&plan.kind, &mut *column) {
            _ if !plan.nulls.is_empty() => {}
            (Kind::Text { .. }, Column::Text(texts)) if first == Some(b'"') => {
                let (body, escaped) = scanner.string()?;
                if escaped {
                    return Ok(self.escaped_text(plan, body, column));
                }
                return Ok(self.push_text(texts, body, text_presence(body.as_bytes())));
            }
            (Kind::Timestamp(timestamp), Column::Timestamp(c)) if first == Some(b'"') => {
                let (body, escaped) = scanner.string()?;
                if escaped {
                    return Ok(self.escaped_text(plan, body, column));
                }
                let read = self.timestamp_text(timestamp, body);
                return Ok(self.put(plan, body, c, read));
            }
            (Kind::Int, Column::Int(c)) => {
                if let Some(value) = scanner.take_int() {
                    c.push(value);
                    return Ok(PRESENT);
                }
            }
            (Kind::Float, Column::Float(c)) => {
                let before = scanner.offset();
                if let Some(value) = scanner.take_number().and_then(short_float) {
                    c.push(value);
                    return Ok(PRESENT);
                }
                scanner.seek(before);
            }
            (Kind::Decimal(d), Column::Decimal(c)) => {
                let before = scanner.offset();
                let read = scanner.take_number();
                if let Some(value) = read.and_then(|n| short_scaled(n, d.precision, d.scale)) {
                    c.push(value);
                    return Ok(PRESENT);
                }
                scanner.seek(before);
            }
            (Kind::Bool { .. }, Column::Bool(c)) => {
                if let Some(value) = scanner.take_bool() {
                    c.push(value);
                    return Ok(PRESENT);
                }
            }
            _ => {}
        }
        if scanner.take_null() {
            return Ok(null(column, Presence::Null));
        }
        if plan.is_nested {
            return self.json_nested(plan, scanner, column);
        }
        let mut raw = Raw::Null;
        scanner.value_into(&mut raw)?;
        Ok(self.value(plan, &raw, column))
    }
}
