//! The `cast_old` strategy: values of another form, cast to the type that the field keeps.
//!
//! ```text
//! value --the field's own rule--> stored
//!         | does not fit
//!         v
//!       read as `cast.from` --cast--> stored | a loss that is not declared: a mismatch
//! ```
//!
//! A value that neither takes is told once, by the fault of the field's own rule.

use jiff::tz::TimeZone;

use crate::ingest::convert::column::Column;
use crate::ingest::convert::fault::FaultCode;
use crate::ingest::convert::moment::MICROS_PER_SECOND;
use crate::ingest::convert::plan::ValuePlan;
use crate::ingest::convert::presence::Presence;
use crate::ingest::convert::row::{Got, Row};
use crate::ingest::convert::trouble::words;
use crate::ingest::raw::Raw;
use crate::registry::{Cast, Scalar};
use crate::spec::Lossy;

/// How another form of a value becomes the field's type.
#[derive(Debug)]
pub(crate) struct CastPlan {
    /// How that form is read.
    pub(crate) value: ValuePlan,
    /// The type of its column.
    pub(crate) column: arrow_schema::DataType,
    /// What becomes of it.
    pub(crate) cast: Cast,
    /// What may be lost.
    pub(crate) lossy: Option<Lossy>,
    /// In which zone an instant has its day.
    pub(crate) zone: Option<TimeZone>,
}

const LOSSY_HINT: &str =
    "`lossy` in the field's `cast` declares what may be lost: `truncate` or `round`";

impl CastPlan {
    fn apply<'a>(&self, value: Scalar<'a>) -> Option<Scalar<'a>> {
        let value = match (value, &self.zone) {
            (Scalar::Timestamp(micros), Some(zone)) => Scalar::Timestamp(wall(micros, zone)?),
            (value, _) => value,
        };
        self.cast.apply(value, self.lossy)
    }
}

/// What the clock on the wall shows, as if it were UTC.
fn wall(micros: i64, zone: &TimeZone) -> Option<i64> {
    let instant = jiff::Timestamp::from_microsecond(micros).ok()?;
    let offset = i64::from(zone.to_offset(instant).seconds());
    micros.checked_add(offset * MICROS_PER_SECOND)
}

impl<'p> Row<'p> {
    /// Converts a value by the field's own rule, else through the cast.
    pub(crate) fn value_or_cast(
        &mut self,
        own: &'p ValuePlan,
        cast: &'p CastPlan,
        raw: &Raw<'_>,
        column: &mut Column,
    ) -> Got {
        let (rows, faults, met) = (column.len(), self.faults.len(), self.met);
        let got = self.value(own, raw, column);
        if got != Got::Invalid {
            return got;
        }
        column.truncate(rows);
        let told = self.faults.split_off(faults);
        self.met = met;
        let why = match self.cast_value(cast, raw, column) {
            Ok(got) => {
                return got;
            }
            Err(why) => why,
        };
        column.truncate(rows);
        self.faults.truncate(faults);
        self.faults.extend(told);
        if let Some(fault) = self.faults.get_mut(faults) {
            fault.reason.reason.push_str("; ");
            fault.reason.reason.push_str(&why);
            if cast.lossy.is_none() && fault.code != FaultCode::Range {
                fault.hint = Some(LOSSY_HINT);
            }
        }
        Got::Invalid
    }

    /// Reads the value in its other form and stores what it is cast to, or says why not.
    fn cast_value(
        &mut self,
        plan: &'p CastPlan,
        raw: &Raw<'_>,
        column: &mut Column,
    ) -> Result<Got, String> {
        let form = words(&plan.value);
        let mut read = Column::new(&plan.column).map_err(|e| e.to_string())?;
        match self.value(&plan.value, raw, &mut read) {
            Got::Invalid => return Err(format!("nor is it {form}")),
            Got::Null(presence) => {
                column.push_null();
                return Ok(Got::Null(presence));
            }
            Got::Value(_) => {}
        }
        let value = read.last_scalar().and_then(|value| plan.apply(value));
        let stored = value.map(|value| column.push_scalar(value));
        match stored {
            Some(Ok(true)) => Ok(Got::Value(Presence::Present)),
            Some(Err(too_large)) => Ok(self.too_large(too_large)),
            Some(Ok(false)) | None => Err(match plan.lossy {
                None => format!("it is {form} that cannot be cast without loss"),
                Some(_) => format!("it is {form} that the type cannot hold"),
            }),
        }
    }
}
