//! `current_date` (`today()`): the business date of now, in the lake's time zone.
//!
//! DataFusion's own is that of UTC: before eight in the morning a lake in Taipei would be asked for
//! yesterday.

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use lakebed::time::BusinessDate;

/// The function of one query.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Today {
    signature: Signature,
    aliases: Vec<String>,
    day: i32,
}

impl Today {
    /// A function that says `day`.
    pub(crate) fn new(day: BusinessDate) -> Self {
        Self {
            signature: Signature::nullary(Volatility::Stable),
            aliases: vec!["today".to_owned()],
            day: day.days(),
        }
    }

    fn value(&self) -> ScalarValue {
        ScalarValue::Date32(Some(self.day))
    }
}

impl ScalarUDFImpl for Today {
    fn name(&self) -> &'static str {
        "current_date"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Date32)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(self.value()))
    }

    /// A literal from the start: files are skipped by it.
    fn simplify(&self, _: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(ExprSimplifyResult::Simplified(Expr::Literal(
            self.value(),
            None,
        )))
    }
}
