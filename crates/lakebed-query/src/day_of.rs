//! `CAST(instant AS DATE)` by one division.
//!
//! Arrow goes over calendar and time zone for each row, which took half the time of a query that groups by
//! days. A stored instant is microseconds of UTC, whose days all have the same length.
//!
//! The rule comes last among the optimizer's, and looks at what is computed alone (projections, aggregates): what
//! filters and scans are pruned by stays as it was.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Date32Array, TimestampMicrosecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::utils::take_function_args;
use datafusion::common::{DFSchema, internal_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::sort_properties::ExprProperties;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

const MICROS_OF_DAY: i64 = 86_400_000_000;
/// Days from 1970 beyond which Arrow has no date, roughly; it is asked itself.
const FAR_DAYS: u32 = 95_000_000;

/// The rule.
#[derive(Debug)]
pub(crate) struct DayOfInstants {
    function: Arc<ScalarUDF>,
}

impl DayOfInstants {
    /// The rule.
    pub(crate) fn new() -> Self {
        let function = DayOf {
            signature: Signature::any(1, Volatility::Immutable),
        };
        Self {
            function: Arc::new(ScalarUDF::new_from_impl(function)),
        }
    }

    fn divide(&self, expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
        match expr {
            Expr::Cast(Cast { expr, field })
                if *field.data_type() == DataType::Date32
                    && expr.get_type(schema).is_ok_and(|of| is_instant(&of)) =>
            {
                Transformed::yes(self.function.call(vec![*expr]))
            }
            other => Transformed::no(other),
        }
    }
}

impl OptimizerRule for DayOfInstants {
    fn name(&self) -> &str {
        "day_of_instants"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        if !matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_)) {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let divided = expr.transform_up(|e| Ok(self.divide(e, &schema)))?;
            Ok(divided.update_data(|e| name.restore(e)))
        })
    }
}

/// Whether it is the type of stored instants.
fn is_instant(of: &DataType) -> bool {
    matches!(of, DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if &**zone == "UTC")
}

/// The day of an instant, in UTC.
#[derive(Debug, PartialEq, Eq, Hash)]
struct DayOf {
    signature: Signature,
}

impl ScalarUDFImpl for DayOf {
    fn name(&self) -> &'static str {
        "day_of"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Date32)
    }

    /// As of a cast: what is known of the instant holds of its day.
    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [instant] = args.arg_fields else {
            return internal_err!("`day_of` takes one argument");
        };
        let day = instant.as_ref().clone().with_data_type(DataType::Date32);
        Ok(Arc::new(day))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [instants] = take_function_args(self.name(), args.args)?;
        match &instants {
            ColumnarValue::Array(array) => match array.as_primitive_opt() {
                Some(instants) => Ok(ColumnarValue::Array(days_of(instants)?)),
                None => instants.cast_to(&DataType::Date32, None),
            },
            ColumnarValue::Scalar(_) => instants.cast_to(&DataType::Date32, None),
        }
    }

    fn preserves_lex_ordering(&self, _: &[ExprProperties]) -> Result<bool> {
        Ok(true)
    }
}

fn days_of(instants: &TimestampMicrosecondArray) -> Result<ArrayRef> {
    // As microseconds, 64 bits hold fewer days than 32 do.
    let days: Date32Array = instants
        .unary(|micros| i32::try_from(micros.div_euclid(MICROS_OF_DAY)).unwrap_or(i32::MAX));
    let is_far = |day: &i32| day.unsigned_abs() > FAR_DAYS;
    match days
        .values()
        .iter()
        .fold(false, |far, day| far | is_far(day))
    {
        true => Ok(cast(instants, &DataType::Date32)?),
        false => Ok(Arc::new(days)),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Array;
    use arrow::datatypes::Date32Type;

    use super::*;

    const DAY: i64 = MICROS_OF_DAY;

    fn instants(micros: &[Option<i64>]) -> TimestampMicrosecondArray {
        TimestampMicrosecondArray::from(micros.to_vec()).with_timezone("UTC")
    }

    #[test]
    fn a_day_is_what_arrow_says() {
        let micros = [
            0,
            -1,
            1,
            DAY - 1,
            DAY,
            -DAY,
            -DAY - 1,
            // The first and the last of four digits.
            -62_135_596_800_000_000,
            253_402_300_799_999_999,
            i64::from(FAR_DAYS) * DAY,
            -i64::from(FAR_DAYS) * DAY,
        ];
        let some: Vec<Option<i64>> = micros.into_iter().map(Some).chain([None]).collect();
        let array = instants(&some);
        for (from, length) in [(0, array.len()), (2, 4)] {
            let slice = array.slice(from, length);
            let wanted = cast(&slice, &DataType::Date32).unwrap();
            assert_eq!(&days_of(&slice).unwrap(), &wanted);
        }
    }

    #[test]
    fn an_instant_that_has_no_day_is_refused_as_arrow_does() {
        for micros in [i64::MAX, i64::MIN] {
            let array = instants(&[Some(micros)]);
            assert!(cast(&array, &DataType::Date32).is_err());
            assert!(days_of(&array).is_err());
        }
        // What a null stands for does not count.
        let values = vec![i64::MAX, 5].into();
        let nulls = vec![false, true].into();
        let array = TimestampMicrosecondArray::new(values, Some(nulls)).with_timezone("UTC");
        let days = days_of(&array).unwrap();
        let days = days.as_primitive::<Date32Type>();
        assert_eq!((days.is_null(0), days.value(1)), (true, 0));
    }

    #[test]
    fn instants_of_other_zones_and_units_are_left_to_arrow() {
        let zoned = |unit, zone: &str| DataType::Timestamp(unit, Some(zone.into()));
        assert!(is_instant(&zoned(TimeUnit::Microsecond, "UTC")));
        assert!(!is_instant(&zoned(TimeUnit::Microsecond, "Asia/Taipei")));
        assert!(!is_instant(&zoned(TimeUnit::Second, "UTC")));
        assert!(!is_instant(&DataType::Timestamp(
            TimeUnit::Microsecond,
            None
        )));
    }
}
