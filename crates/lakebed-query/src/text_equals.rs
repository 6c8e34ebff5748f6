//! `text = 'x'` over texts that are views: a number is compared where the text is short.
//!
//! Arrow compares a view step by step (length, beginning, rest), and the processor guesses wrong at each step where
//! rows differ. A text of up to 12 bytes is its view: one comparison of 16 bytes tells. Of a longer one the
//! view tells length and beginning, which is enough for most rows that differ.
//!
//! The rule comes last: what a scan prunes by, or evaluates while it reads, is said before and stays as it was.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch, StringViewArray};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Literal};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};

/// Bytes that lie in a view itself.
const INLINE_BYTES: usize = 12;
/// Of a view, the length and the first four bytes of the text.
const BEGINNING: u128 = u64::MAX as u128;

/// The rule.
#[derive(Debug)]
pub(crate) struct TextEquality;

impl PhysicalOptimizerRule for TextEquality {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(filter) = node.downcast_ref::<FilterExec>() else {
                return Ok(Transformed::no(node));
            };
            let schema = filter.input().schema();
            let predicate = Arc::clone(filter.predicate());
            let compared = predicate.transform_up(|expr| {
                Ok(match TextEquals::of(&expr, &schema) {
                    Some(equals) => Transformed::yes(Arc::new(equals) as Arc<dyn PhysicalExpr>),
                    None => Transformed::no(expr),
                })
            })?;
            if !compared.transformed {
                return Ok(Transformed::no(node));
            }
            let filter = FilterExecBuilder::from(filter).with_predicate(compared.data);
            Ok(Transformed::yes(Arc::new(filter.build()?)))
        })
        .map(|done| done.data)
    }

    fn name(&self) -> &'static str {
        "text_equality"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A comparison with a text that is the same for all rows.
#[derive(Debug, Clone)]
struct TextEquals {
    /// The comparison as it was: what it is called, and what it is where the texts are no views.
    inner: Arc<dyn PhysicalExpr>,
    /// What is compared.
    texts: Arc<dyn PhysicalExpr>,
    /// What it is compared with.
    wanted: Arc<str>,
    /// Whether it is `<>`.
    negated: bool,
}

impl TextEquals {
    /// What to put in the place of a comparison; `None` where there is nothing to put.
    fn of(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Option<Self> {
        let comparison = expr.downcast_ref::<BinaryExpr>()?;
        let negated = match comparison.op() {
            Operator::Eq => false,
            Operator::NotEq => true,
            _ => return None,
        };
        let (left, right) = (comparison.left(), comparison.right());
        let (texts, wanted) = match (text_of(left), text_of(right)) {
            (None, Some(wanted)) => (left, wanted),
            (Some(wanted), None) => (right, wanted),
            _ => return None,
        };
        let is_view = texts.data_type(schema).ok()? == DataType::Utf8View;
        is_view.then(|| Self {
            inner: Arc::clone(expr),
            texts: Arc::clone(texts),
            wanted: wanted.into(),
            negated,
        })
    }

    fn compare(&self, texts: &StringViewArray) -> BooleanArray {
        let view = view_of(&self.wanted);
        let views = texts.views();
        let equal = match self.wanted.len() {
            ..=INLINE_BYTES => bits(views, |_, v| (v == view) != self.negated),
            _ => bits(views, |i, v| {
                let begins_alike = (v ^ view) & BEGINNING == 0;
                // What a null stands for may be any view: it is not looked at.
                let equal = begins_alike && texts.is_valid(i) && texts.value(i) == &*self.wanted;
                equal != self.negated
            }),
        };
        BooleanArray::new(equal, texts.nulls().cloned())
    }
}

/// A text that stands in the query.
fn text_of(expr: &Arc<dyn PhysicalExpr>) -> Option<&str> {
    match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::Utf8View(text) => text.as_deref(),
        _ => None,
    }
}

/// The view of a text; of a long one the beginning alone means something.
fn view_of(text: &str) -> u128 {
    let one = StringViewArray::from(vec![text]);
    one.views().first().copied().unwrap_or_default()
}

/// A bit for each view.
fn bits(views: &[u128], is_set: impl Fn(usize, u128) -> bool) -> BooleanBuffer {
    let words = views.chunks(64).enumerate().map(|(n, views)| {
        let views = views.iter().enumerate();
        views.fold(0_u64, |word, (i, view)| {
            word | u64::from(is_set(64 * n + i, *view)) << i
        })
    });
    let words: Vec<u64> = words.collect();
    BooleanBuffer::new(Buffer::from_vec(words), 0, views.len())
}

impl PartialEq for TextEquals {
    fn eq(&self, other: &Self) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for TextEquals {}

impl Hash for TextEquals {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl fmt::Display for TextEquals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl PhysicalExpr for TextEquals {
    fn data_type(&self, input_schema: &Schema) -> Result<DataType> {
        self.inner.data_type(input_schema)
    }

    fn nullable(&self, input_schema: &Schema) -> Result<bool> {
        self.inner.nullable(input_schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if let ColumnarValue::Array(texts) = self.texts.evaluate(batch)?
            && let Some(texts) = texts.as_string_view_opt()
        {
            return Ok(ColumnarValue::Array(Arc::new(self.compare(texts))));
        }
        self.inner.evaluate(batch)
    }

    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        self.inner.return_field(input_schema)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        self.inner.children()
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        // What it becomes is planned no more: the comparison itself does.
        Arc::clone(&self.inner).with_new_children(children)
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, StringArray};
    use arrow::datatypes::Field;
    use datafusion::physical_expr::expressions::{binary, col, lit};

    use super::*;

    const LONG: &str = "臺北市信義區忠孝東路五段";

    fn texts() -> ArrayRef {
        let some = [
            Some("台北市"),
            None,
            Some(""),
            Some(LONG),
            Some("台北市信"),
            Some("123456789012"),
            Some("1234567890123"),
            Some("臺北市信義區忠孝東路四段"),
            Some("台北"),
        ];
        let many: Vec<_> = some.into_iter().cycle().take(200).collect();
        Arc::new(StringViewArray::from(many))
    }

    /// The comparison as the engine has it, and as the rule makes it.
    fn both(
        (schema, op, wanted): (&Schema, Operator, &str),
        turned: bool,
    ) -> (Arc<dyn PhysicalExpr>, Option<TextEquals>) {
        let literal = lit(ScalarValue::Utf8View(Some(wanted.to_owned())));
        let column = col("t", schema).unwrap();
        let (left, right) = match turned {
            true => (literal, column),
            false => (column, literal),
        };
        let plain = binary(left, op, right, schema).unwrap();
        let ours = TextEquals::of(&plain, schema);
        (plain, ours)
    }

    #[test]
    fn it_is_what_the_comparison_itself_is() {
        let schema = Arc::new(Schema::new(vec![Field::new("t", DataType::Utf8View, true)]));
        let texts = texts();
        for (from, length) in [(0, 200), (3, 131), (64, 64), (7, 0)] {
            // A slice has its views elsewhere.
            let column = texts.slice(from, length);
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
            for wanted in ["台北市", "", LONG, "123456789012", "1234567890123", "x"] {
                for op in [Operator::Eq, Operator::NotEq] {
                    for turned in [false, true] {
                        let (plain, ours) = both((&schema, op, wanted), turned);
                        let ours = ours.unwrap().evaluate(&batch).unwrap();
                        let plain = plain.evaluate(&batch).unwrap();
                        let rows = |value: ColumnarValue| value.into_array(length).unwrap();
                        assert_eq!(&rows(ours), &rows(plain), "{op} {wanted} {from}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_view_is_left_to_the_engine() {
        let of = |data_type: DataType| Schema::new(vec![Field::new("t", data_type, true)]);
        let views = of(DataType::Utf8View);
        assert!(both((&views, Operator::Lt, "x"), false).1.is_none());
        let null = lit(ScalarValue::Utf8View(None));
        let null = binary(col("t", &views).unwrap(), Operator::Eq, null, &views).unwrap();
        assert!(TextEquals::of(&null, &views).is_none());
        // A file may give something else than was planned.
        let (plain, ours) = both((&views, Operator::Eq, "x"), false);
        let one = ColumnarValue::Scalar(ScalarValue::Utf8View(Some("x".to_owned())));
        let equals = TextEquals {
            texts: lit(ScalarValue::Utf8View(Some("x".to_owned()))),
            ..ours.unwrap()
        };
        let batch = RecordBatch::try_new(Arc::new(views), vec![texts()]).unwrap();
        assert_eq!(
            equals.texts.evaluate(&batch).unwrap().data_type(),
            one.data_type()
        );
        let rows = |value: ColumnarValue| value.into_array(200).unwrap();
        assert_eq!(
            &rows(equals.evaluate(&batch).unwrap()),
            &rows(plain.evaluate(&batch).unwrap())
        );
        assert!(StringArray::from(vec!["x"]).len() == 1);
    }
}
