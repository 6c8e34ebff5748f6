//! `+`, `-` and `*` of integers fail where the result has no place in their type, and those of decimals where it has more
//! digits than any decimal.
//!
//! DataFusion wraps around without a word: a number that is wrong by 2^64 would be stored as if it were one. So once types
//! are coerced, these go through functions that look. Sums of `SUM` still wrap around: docs/sql.md.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Datum};
use arrow::compute::kernels::numeric::{add, mul, sub};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type,
};
use arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::utils::take_function_args;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use lakebed::Error;

use crate::analyze::map_expressions;

/// The rule; it comes after types are coerced.
#[derive(Debug)]
pub(crate) struct CheckedIntegers {
    functions: [Arc<ScalarUDF>; 3],
}

impl CheckedIntegers {
    /// The rule.
    pub(crate) fn new() -> Self {
        Self {
            functions: Calculation::ALL.map(|calculation| {
                Arc::new(ScalarUDF::new_from_impl(Checked {
                    calculation,
                    signature: Signature::any(2, Volatility::Immutable),
                }))
            }),
        }
    }

    fn check(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        if let Expr::Negative(inner) = &expr
            && let Ok(of) = inner.get_type(schema)
            && of.is_signed_integer()
        {
            let zero = Expr::Literal(ScalarValue::new_zero(&of)?, None);
            let sides = vec![zero, inner.as_ref().clone()];
            return Ok(Transformed::yes(self.functions[1].call(sides)));
        }
        let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &expr else {
            return Ok(Transformed::no(expr));
        };
        let Some(place) = Calculation::ALL.iter().position(|c| c.operator() == *op) else {
            return Ok(Transformed::no(expr));
        };
        // A type that cannot be told is reported where it is needed.
        let (Ok(one), Ok(other)) = (left.get_type(schema), right.get_type(schema)) else {
            return Ok(Transformed::no(expr));
        };
        let is_of_integers = one == other && one.is_integer();
        // Sums of decimals have a digit more than their sides, where there is one left.
        let is_of_decimals = one.is_decimal() && other.is_decimal();
        let is_full = || expr.get_type(schema).is_ok_and(|of| is_full_decimal(&of));
        if !(is_of_integers || is_of_decimals && is_full()) {
            return Ok(Transformed::no(expr));
        }
        let sides = vec![left.as_ref().clone(), right.as_ref().clone()];
        Ok(Transformed::yes(self.functions[place].call(sides)))
    }
}

impl AnalyzerRule for CheckedIntegers {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        map_expressions(plan, |expr, schema| self.check(expr, schema))
    }

    fn name(&self) -> &'static str {
        "checked_integers"
    }
}

/// What is calculated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Calculation {
    Add,
    Subtract,
    Multiply,
}

impl Calculation {
    const ALL: [Self; 3] = [Self::Add, Self::Subtract, Self::Multiply];

    const fn operator(self) -> Operator {
        match self {
            Self::Add => Operator::Plus,
            Self::Subtract => Operator::Minus,
            Self::Multiply => Operator::Multiply,
        }
    }

    fn of(self, one: &dyn Datum, other: &dyn Datum) -> Result<ArrayRef> {
        let done = match self {
            Self::Add => add(one, other),
            Self::Subtract => sub(one, other),
            Self::Multiply => mul(one, other),
        };
        match done {
            Ok(result) => self.check_digits(result),
            Err(ArrowError::ArithmeticOverflow(what)) => {
                let what = what.trim_start_matches("Overflow happened on: ");
                Err(no_place(what, &one.get().0.data_type().to_string()))
            }
            Err(other) => Err(other.into()),
        }
    }

    /// Refuses decimals with more digits than their type has: as bits, they have a place there.
    fn check_digits(self, result: ArrayRef) -> Result<ArrayRef> {
        let checked = match result.data_type() {
            DataType::Decimal128(digits, _) => result
                .as_primitive::<Decimal128Type>()
                .validate_decimal_precision(*digits),
            DataType::Decimal256(digits, _) => result
                .as_primitive::<Decimal256Type>()
                .validate_decimal_precision(*digits),
            _ => Ok(()),
        };
        match checked {
            Ok(()) => Ok(result),
            Err(_) => {
                let what = self.operator().to_string();
                Err(no_place(&what, &result.data_type().to_string()))
            }
        }
    }
}

fn no_place(what: &str, of: &str) -> DataFusionError {
    let error = Error::invalid(format!("the result of `{what}` has no place in {of}"))
        .hint(match of.starts_with("Decimal") {
            true => "there is no longer decimal: fewer digits behind the point, or CAST(... AS DOUBLE) where the last digits do not count",
            false => "calculate with a larger type: CAST(... AS BIGINT), or CAST(... AS DECIMAL(38, 0))",
        });
    DataFusionError::External(Box::new(error))
}

/// Whether there is no decimal with more digits.
fn is_full_decimal(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Decimal128(DECIMAL128_MAX_PRECISION, _)
            | DataType::Decimal256(DECIMAL256_MAX_PRECISION, _)
    )
}

/// `a + b`, `a - b` or `a * b` of integers of one type, or of decimals.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    calculation: Calculation,
    signature: Signature,
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &'static str {
        match self.calculation {
            Calculation::Add => "checked_add",
            Calculation::Subtract => "checked_subtract",
            Calculation::Multiply => "checked_multiply",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [one, other] => {
                BinaryTypeCoercer::new(one, &self.calculation.operator(), other).get_result_type()
            }
            _ => Ok(DataType::Int64),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let of = |one: &dyn Datum, other: &dyn Datum| self.calculation.of(one, other);
        Ok(match take_function_args(self.name(), args.args)? {
            [ColumnarValue::Array(one), ColumnarValue::Array(other)] => {
                ColumnarValue::Array(of(&one, &other)?)
            }
            [ColumnarValue::Array(one), ColumnarValue::Scalar(other)] => {
                ColumnarValue::Array(of(&one, &other.to_scalar()?)?)
            }
            [ColumnarValue::Scalar(one), ColumnarValue::Array(other)] => {
                ColumnarValue::Array(of(&one.to_scalar()?, &other)?)
            }
            [ColumnarValue::Scalar(one), ColumnarValue::Scalar(other)] => {
                let result = of(&one.to_scalar()?, &other.to_scalar()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
            }
        })
    }
}
