//! Why a value does not fit its field, in words and with advice.

use crate::ingest::convert::column::TooLarge;
use crate::ingest::convert::fault::FaultCode;
use crate::ingest::convert::moment::MomentTrouble;
use crate::ingest::convert::number::NumberTrouble;
use crate::ingest::convert::plan::{Kind, ValuePlan};
use crate::ingest::convert::refusal::Refusal;
use crate::ingest::convert::row::{Got, Row};

/// Why a text or number was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    Number(NumberTrouble),
    Moment(MomentTrouble),
}

impl From<NumberTrouble> for Trouble {
    fn from(trouble: NumberTrouble) -> Self {
        Self::Number(trouble)
    }
}

impl From<MomentTrouble> for Trouble {
    fn from(trouble: MomentTrouble) -> Self {
        Self::Moment(trouble)
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

/// The type with its parameters, for reasons.
pub(crate) fn words(plan: &ValuePlan) -> String {
    match &plan.kind {
        Kind::Decimal(d) => format!("decimal({},{})", d.precision, d.scale),
        Kind::Float => "a 64-bit float".to_owned(),
        other => article(other).to_owned(),
    }
}

const INT_RANGE_HINT: &str = "ids up to 18446744073709551615 are declared `decimal(20,0)`";
const FRACTION_HINT: &str = "declare more fraction digits, or `float` where rounding is meant";
pub(crate) const NAN_HINT: &str =
    "`allow_nan = true` stores it in a float field, `nan_as_null = true` stores NULL for NaN";
const LENIENT_HINT: &str = "`lenient = true` takes numbers into a string field by their own text";
const WALL_HINT: &str =
    "declare `formats` and `time_zone` for times without an offset, or deliver RFC 3339 with one";

impl Row<'_> {
    /// A value that was not read.
    #[cold]
    pub(crate) fn trouble(&mut self, plan: &ValuePlan, text: &str, trouble: Trouble) -> Got {
        match trouble {
            Trouble::Number(trouble) => self.number_trouble(plan, text, trouble),
            Trouble::Moment(trouble) => self.moment_trouble(plan, text, trouble),
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
    pub(crate) fn foreign(&mut self) -> Got {
        let why = "the column does not have the field's type";
        self.invalid(&Refusal::new(FaultCode::Type, "", why))
    }

    #[cold]
    pub(crate) fn too_large(&mut self, _too_large: TooLarge) -> Got {
        let why = "the value is larger than a column can hold (2 GiB)";
        self.invalid(&Refusal::new(FaultCode::Range, "", why))
    }

    #[cold]
    fn number_trouble(&mut self, plan: &ValuePlan, text: &str, t: NumberTrouble) -> Got {
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
    fn moment_trouble(&mut self, plan: &ValuePlan, text: &str, t: MomentTrouble) -> Got {
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
}
