//! A struct, list or map cast to a text is its JSON, as the JSON output writes it.
//!
//! DataFusion refuses such a cast, or writes its own notation. So once types are coerced, what is
//! cast goes through a function that turns it into JSON text. Casts of all else stay as they are:
//! files are pruned by them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::utils::take_function_args;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use lakebed::Error;

use crate::analyze::map_expressions;
use crate::output::plain_text;

/// The rule that makes casts of nested values to texts yield JSON.
#[derive(Debug)]
pub(crate) struct NestedText {
    function: Arc<ScalarUDF>,
}

impl NestedText {
    /// The rule.
    pub(crate) fn new() -> Self {
        Self {
            function: Arc::new(ScalarUDF::new_from_impl(JsonText::new())),
        }
    }

    fn text_of_nested(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let (from, to) = match &expr {
            Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
                (expr.get_type(schema), field.data_type())
            }
            _ => return Ok(Transformed::no(expr)),
        };
        // A type that cannot be told is reported where it is needed.
        if !to.is_string() || !from.is_ok_and(|from| from.is_nested()) {
            return Ok(Transformed::no(expr));
        }
        let as_json = |inner: Box<Expr>| Box::new(self.function.call(vec![*inner]));
        Ok(match expr {
            Expr::Cast(Cast { expr, field }) => {
                let expr = as_json(expr);
                Transformed::yes(Expr::Cast(Cast { expr, field }))
            }
            Expr::TryCast(TryCast { expr, field }) => {
                let expr = as_json(expr);
                Transformed::yes(Expr::TryCast(TryCast { expr, field }))
            }
            other => Transformed::no(other),
        })
    }
}

impl AnalyzerRule for NestedText {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        map_expressions(plan, |expr, schema| self.text_of_nested(expr, schema))
    }

    fn name(&self) -> &'static str {
        "nested_text"
    }
}

/// `json_text(value)`: the JSON text of a value; NULL stays NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonText {
    signature: Signature,
}

impl JsonText {
    fn new() -> Self {
        Self {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for JsonText {
    fn name(&self) -> &'static str {
        "json_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = take_function_args(self.name(), args.args)?;
        Ok(match value {
            ColumnarValue::Array(array) => ColumnarValue::Array(json_texts(&*array)?),
            ColumnarValue::Scalar(scalar) => {
                let text = json_texts(&*scalar.to_array()?)?;
                ColumnarValue::Scalar(ScalarValue::try_from_array(&text, 0)?)
            }
        })
    }
}

fn json_texts(array: &dyn Array) -> Result<ArrayRef> {
    let external = |e: Error| DataFusionError::External(Box::new(e));
    let mut texts = StringBuilder::new();
    let mut room = usize::try_from(i32::MAX).unwrap_or(usize::MAX);
    for row in 0..array.len() {
        let text = plain_text(array, row).map_err(external)?;
        room = room
            .checked_sub(text.as_ref().map_or(0, String::len))
            .ok_or_else(|| {
                external(
                    Error::limit("cast nested values to texts: a batch holds more than 2 GiB")
                        .hint("select the members that are wanted, as in `x['member']`"),
                )
            })?;
        texts.append_option(text);
    }
    Ok(Arc::new(texts.finish()))
}
