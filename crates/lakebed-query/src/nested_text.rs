//! `CAST(<list, struct or map> AS VARCHAR)` is the value as JSON, the same JSON that results carry.
//!
//! DataFusion has no cast from nested types to text and refuses the query. The rule replaces such a
//! cast by a function over our own writer of values; NULL stays NULL.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use crate::output::plain_text;

/// The rule that writes nested values as JSON where they are cast to text.
#[derive(Debug)]
pub(crate) struct NestedText;

impl AnalyzerRule for NestedText {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let schema = merge_schema(&node.inputs());
            let names = NamePreserver::new(&node);
            let changed = node.map_expressions(|expr| {
                let name = names.save(&expr);
                let changed = expr.transform_up(|e| replace_cast(e, &schema))?;
                Ok(changed.update_data(|e| name.restore(e)))
            })?;
            changed.map_data(LogicalPlan::recompute_schema)
        })
        .map(|t| t.data)
    }

    fn name(&self) -> &'static str {
        "nested_text"
    }
}

fn replace_cast(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (inner, target) = match &expr {
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            (expr, field.data_type())
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let to_text = matches!(
        target,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    );
    // A type that is not known yet is not ours to judge: the planner says what is wrong.
    let is_nested = inner.get_type(schema).is_ok_and(|t| t.is_nested());
    if !to_text || !is_nested {
        return Ok(Transformed::no(expr));
    }
    let json = ScalarUDF::new_from_impl(JsonText {
        signature: Signature::any(1, Volatility::Immutable),
    });
    let call = ScalarFunction::new_udf(Arc::new(json), vec![(**inner).clone()]);
    Ok(Transformed::yes(Expr::ScalarFunction(call)))
}

/// The function: a nested value as one line of JSON.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonText {
    signature: Signature,
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
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(array) = arrays.first() else {
            return Err(DataFusionError::Internal(
                "json_text takes one value".to_owned(),
            ));
        };
        let mut texts = StringBuilder::new();
        for row in 0..array.len() {
            let text =
                plain_text(&**array, row).map_err(|e| DataFusionError::External(Box::new(e)))?;
            texts.append_option(text);
        }
        let texts: ArrayRef = Arc::new(texts.finish());
        Ok(ColumnarValue::Array(texts))
    }
}
