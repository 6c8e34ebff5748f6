//! `length` of texts that are views: counted where they stand.
//!
//! DataFusion's own looks at every byte several times. A text of up to 12 bytes, which four Chinese
//! characters fill, lies within its view: its characters are counted by a few operations on one number.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, StringViewArray};
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::functions::unicode::character_length;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// Bytes that lie in a view itself.
const INLINE_BYTES: u32 = 12;
/// The lowest bit of each byte of the text in a view, whose first four bytes are the length.
const LOW_BITS: u128 = 0x0101_0101_0101_0101_0101_0101 << 32;

/// A number that adds up the bytes of another one.
const EACH_BYTE: u64 = 0x0101_0101_0101_0101;

/// `character_length`, by other names `length` and `char_length`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TextLength {
    inner: Arc<ScalarUDF>,
}

impl TextLength {
    /// DataFusion's function, but for views.
    pub(crate) fn new() -> Self {
        Self {
            inner: character_length(),
        }
    }
}

impl ScalarUDFImpl for TextLength {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let [ColumnarValue::Array(texts)] = args.args.as_slice()
            && let Some(texts) = texts.as_string_view_opt()
        {
            let lengths: ArrayRef = Arc::new(count_characters(texts));
            return Ok(ColumnarValue::Array(lengths));
        }
        self.inner.invoke_with_args(args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

/// The characters of each text, which has less than 2^31 bytes.
fn count_characters(texts: &StringViewArray) -> Int32Array {
    let views = texts.views().iter().enumerate();
    let counts: Vec<i32> = views
        .map(|(i, view)| match bytes_of(*view) {
            bytes @ ..=INLINE_BYTES => characters(bytes, continuing(*view)),
            _ if texts.is_null(i) => 0,
            bytes => {
                let text = texts.value(i).as_bytes();
                let continuing = text.iter().filter(|byte| is_continuing(**byte)).count();
                characters(bytes, u32::try_from(continuing).unwrap_or(bytes))
            }
        })
        .collect();
    Int32Array::new(counts.into(), texts.nulls().cloned())
}

/// The length that stands in the first four bytes of a view.
fn bytes_of(view: u128) -> u32 {
    u32::try_from(view & u128::from(u32::MAX)).unwrap_or(u32::MAX)
}

fn characters(bytes: u32, continuing: u32) -> i32 {
    i32::try_from(bytes.saturating_sub(continuing)).unwrap_or(i32::MAX)
}

/// Whether a byte of UTF-8 goes on with the character before it: `10xxxxxx`.
fn is_continuing(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// How many bytes of the text within a view are such; what follows a short text is zero.
fn continuing(view: u128) -> u32 {
    let bits = (view >> 7) & !(view >> 6) & LOW_BITS;
    // At most twelve bits, one a byte: their sum is the highest byte of the product. To count the bits of a number
    // takes longer on a processor of which nothing is known.
    let bytes = bits.to_le_bytes();
    let halves = bytes.as_chunks::<8>().0.iter();
    let sums = halves.map(|half| {
        let [sum, ..] = u64::from_le_bytes(*half)
            .wrapping_mul(EACH_BYTE)
            .to_be_bytes();
        u32::from(sum)
    });
    sums.sum()
}

#[cfg(test)]
mod tests {
    use datafusion::common::config::ConfigOptions;

    use super::*;

    #[test]
    fn characters_are_counted_as_the_standard_library_does() {
        let long = "臺北市信義區忠孝東路五段".to_owned();
        let texts = [
            "",
            "a",
            "é",
            "台北市",
            "上海",
            "𠮷野家",
            "123456789012",
            "台北市信",
            "台北市信a",
            "éééééé",
            "👩‍👩‍👧",
            &long,
            "a longer text, of letters alone",
            "\u{80}\u{7ff}\u{800}\u{ffff}",
        ];
        let with_null: Vec<Option<&str>> = texts.iter().map(|t| Some(*t)).chain([None]).collect();
        let array: ArrayRef = Arc::new(StringViewArray::from(with_null.clone()));
        // A slice has its views elsewhere.
        for (from, length) in [(0, array.len()), (3, 8)] {
            let sliced = array.slice(from, length);
            let counted = count_characters(sliced.as_string_view());
            let wanted: Int32Array = with_null[from..from + length]
                .iter()
                .map(|t| t.map(|t| i32::try_from(t.chars().count()).unwrap()))
                .collect();
            assert_eq!(counted, wanted);
        }
    }

    #[test]
    fn other_types_go_to_the_function_itself() {
        let function = TextLength::new();
        let texts: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["台北", "x"]));
        let field = Arc::new(arrow::datatypes::Field::new("t", DataType::Utf8, true));
        let args = ScalarFunctionArgs {
            args: vec![ColumnarValue::Array(texts)],
            arg_fields: vec![field],
            number_rows: 2,
            return_field: Arc::new(arrow::datatypes::Field::new("n", DataType::Int32, true)),
            config_options: Arc::new(ConfigOptions::default()),
        };
        let ColumnarValue::Array(lengths) = function.invoke_with_args(args).unwrap() else {
            panic!("one row");
        };
        assert_eq!(
            lengths
                .as_primitive::<arrow::datatypes::Int32Type>()
                .values(),
            &[2, 1]
        );
    }
}
