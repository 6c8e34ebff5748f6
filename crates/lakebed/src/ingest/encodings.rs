//! How each leaf column is encoded and compressed, chosen by a sample: the first rows in order.
//!
//! ```text
//! few distinct values        dictionary                              zstd LEVEL
//! many: integers, instants   DELTA_BINARY_PACKED                     zstd LEVEL
//! many: shared beginnings    DELTA_BYTE_ARRAY                        zstd QUICK_LEVEL, or LEVEL
//! many: other texts, bytes   DELTA_LENGTH_BYTE_ARRAY                   where that saves enough
//! ```
//!
//! A dictionary of values that are nearly all different costs a hash each and makes the file larger.
//! Compressing texts is the dearest step of an ingest, and how much a higher level saves depends on
//! them: between a few hundredths of a percent and a tenth. So both are tried on the sample.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use parquet::basic::Encoding;

/// The level of zstd, unless a lower one does as well.
pub(super) const LEVEL: i32 = 3;
/// The lower one that is tried.
const QUICK_LEVEL: i32 = 2;
/// Hundredths of a column's bytes that the higher level must save.
const WORTH_PERCENT: usize = 2;
/// Rows looked at.
const SAMPLE_ROWS: usize = 4096;
/// Bytes of them that are compressed on trial: those of a page.
const SAMPLE_BYTES: usize = 128 * 1024;
/// Digits of the decimals that Parquet stores as integers.
const MAX_INT_PRECISION: u8 = 18;

/// How a leaf column is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafChoice {
    /// Few distinct values, or nothing known: a dictionary, with the writer's own way back.
    Dictionary,
    /// Many distinct values: no dictionary.
    Encoded {
        /// In its place.
        encoding: Encoding,
        /// Of zstd.
        level: i32,
    },
}

/// One choice a leaf, in the order Parquet counts leaves.
pub(super) fn choose_leaves(schema: &SchemaRef, sample: &[RecordBatch]) -> Vec<LeafChoice> {
    let mut choices = Vec::new();
    for (i, field) in schema.fields().iter().enumerate() {
        let arrays: Vec<ArrayRef> = sample.iter().map(|b| b.column(i).clone()).collect();
        push_leaves(field.data_type(), &arrays, &mut choices);
    }
    choices
}

fn push_leaves(data_type: &DataType, arrays: &[ArrayRef], into: &mut Vec<LeafChoice>) {
    match data_type {
        DataType::Struct(fields) => {
            for (i, field) in fields.iter().enumerate() {
                let column = |a: &ArrayRef| a.as_struct().column(i).clone();
                let children: Vec<ArrayRef> = arrays.iter().map(column).collect();
                push_leaves(field.data_type(), &children, into);
            }
        }
        DataType::List(field) => {
            let values = |a: &ArrayRef| a.as_list::<i32>().values().clone();
            let children: Vec<ArrayRef> = arrays.iter().map(values).collect();
            push_leaves(field.data_type(), &children, into);
        }
        DataType::Map(entries, _) => {
            let of_map = |a: &ArrayRef| -> ArrayRef { Arc::new(a.as_map().entries().clone()) };
            let children: Vec<ArrayRef> = arrays.iter().map(of_map).collect();
            push_leaves(entries.data_type(), &children, into);
        }
        leaf => into.push(choose_leaf(leaf, arrays)),
    }
}

fn choose_leaf(data_type: &DataType, arrays: &[ArrayRef]) -> LeafChoice {
    match data_type {
        DataType::Utf8 => {
            let texts = arrays.iter().flat_map(|a| a.as_string::<i32>().iter());
            choose_bytes(texts.flatten().map(str::as_bytes))
        }
        DataType::Binary => {
            let blobs = arrays.iter().flat_map(|a| a.as_binary::<i32>().iter());
            choose_bytes(blobs.flatten())
        }
        DataType::Int64 => choose_fixed::<Int64Type>(arrays),
        DataType::Timestamp(_, _) => choose_fixed::<TimestampMicrosecondType>(arrays),
        // Wider ones are no integers in Parquet.
        DataType::Decimal128(precision, _) if *precision <= MAX_INT_PRECISION => {
            choose_fixed::<Decimal128Type>(arrays)
        }
        _ => LeafChoice::Dictionary,
    }
}

/// Whether so many different values are too many for a dictionary.
fn is_varied(distinct: usize, seen: usize) -> bool {
    seen >= 256 && distinct * 2 > seen
}

fn choose_fixed<T: ArrowPrimitiveType<Native: Ord>>(arrays: &[ArrayRef]) -> LeafChoice {
    let values = arrays.iter().flat_map(|a| a.as_primitive::<T>().iter());
    let mut distinct = BTreeSet::new();
    let mut seen = 0;
    for value in values.flatten().take(SAMPLE_ROWS) {
        distinct.insert(value);
        seen += 1;
    }
    if !is_varied(distinct.len(), seen) {
        return LeafChoice::Dictionary;
    }
    LeafChoice::Encoded {
        encoding: Encoding::DELTA_BINARY_PACKED,
        level: LEVEL,
    }
}

fn choose_bytes<'a>(values: impl Iterator<Item = &'a [u8]>) -> LeafChoice {
    let values: Vec<&[u8]> = values.take(SAMPLE_ROWS).collect();
    let distinct: BTreeSet<&[u8]> = values.iter().copied().collect();
    if !is_varied(distinct.len(), values.len()) {
        return LeafChoice::Dictionary;
    }
    let before = std::iter::once(&[][..]).chain(values.iter().copied());
    let shared: Vec<usize> = values
        .iter()
        .zip(before)
        .map(|(value, before)| {
            let same = value.iter().zip(before).take_while(|(a, b)| a == b);
            same.count()
        })
        .collect();
    let total: usize = values.iter().map(|v| v.len()).sum();
    // Shared beginnings, as URLs have them.
    let is_delta = shared.iter().sum::<usize>() * 3 > total;
    let mut page = Vec::with_capacity(SAMPLE_BYTES);
    for (value, shared) in values.iter().zip(shared) {
        if page.len() >= SAMPLE_BYTES {
            break;
        }
        page.extend_from_slice(
            value
                .get(if is_delta { shared } else { 0 }..)
                .unwrap_or(value),
        );
    }
    LeafChoice::Encoded {
        encoding: if is_delta {
            Encoding::DELTA_BYTE_ARRAY
        } else {
            // Lengths and texts apart: both compress better than mixed, and faster.
            Encoding::DELTA_LENGTH_BYTE_ARRAY
        },
        level: choose_level(&page),
    }
}

/// The level for pages like this one.
fn choose_level(page: &[u8]) -> i32 {
    let size = |level| zstd::bulk::compress(page, level).map(|packed| packed.len());
    match (size(QUICK_LEVEL), size(LEVEL)) {
        (Ok(quick), Ok(full)) if full * 100 > quick * (100 - WORTH_PERCENT) => QUICK_LEVEL,
        _ => LEVEL,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Decimal128Array, Int64Array, StringArray};

    use super::*;

    fn encoding(array: ArrayRef) -> Option<Encoding> {
        match choose_leaf(&array.data_type().clone(), &[array]) {
            LeafChoice::Dictionary => None,
            LeafChoice::Encoded { encoding, .. } => Some(encoding),
        }
    }

    fn texts(text: impl Fn(usize) -> String) -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..1000).map(text)))
    }

    /// Numbers without a pattern.
    fn scattered(n: usize) -> usize {
        n.wrapping_mul(2_654_435_761) % 99_999_989
    }

    #[test]
    fn values_that_repeat_get_a_dictionary_and_others_none() {
        let decimals = |n: i128, precision| -> ArrayRef {
            let values = (0..1000).map(|i| i % n);
            let array = Decimal128Array::from_iter_values(values);
            Arc::new(array.with_precision_and_scale(precision, 2).unwrap())
        };
        assert_eq!(encoding(texts(|i| format!("city {}", i % 9))), None);
        assert_eq!(
            encoding(texts(|i| format!("https://example.org/listing/{i}"))),
            Some(Encoding::DELTA_BYTE_ARRAY)
        );
        assert_eq!(
            encoding(texts(|i| scattered(i).to_string())),
            Some(Encoding::DELTA_LENGTH_BYTE_ARRAY)
        );
        let packed = Some(Encoding::DELTA_BINARY_PACKED);
        assert_eq!(encoding(decimals(1000, 12)), packed);
        assert_eq!(encoding(decimals(7, 12)), None);
        // Not an integer in Parquet.
        assert_eq!(encoding(decimals(1000, 20)), None);
        let ids = Int64Array::from_iter_values(0..1000);
        assert_eq!(encoding(Arc::new(ids)), packed);
    }

    /// Numbers below a limit, always the same ones.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
            self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap() % limit
        }
    }

    #[test]
    fn the_higher_level_is_taken_where_it_saves_something() {
        let mut random = Random(1);
        // Digits hold nothing that a longer search could find.
        let digits: String = (0..14_000)
            .map(|_| random.below(1_000_000_000).to_string())
            .collect();
        assert_eq!(choose_level(digits.as_bytes()), QUICK_LEVEL);
        let syllables = [
            "ka", "to", "mi", "ren", "shu", "lo", "ve", "an", "der", "is",
        ];
        let mut word = || -> String {
            let length = 2 + random.below(3);
            (0..length)
                .map(|_| syllables[random.below(syllables.len())])
                .collect()
        };
        let words: Vec<String> = (0..3000).map(|_| word()).collect();
        // Some words are more frequent than others, as in any language.
        let prose: Vec<&str> = (0..14_000)
            .map(|_| {
                let rank = (random.below(3000), random.below(3000), random.below(3000));
                words[rank.0.min(rank.1).min(rank.2)].as_str()
            })
            .collect();
        assert_eq!(choose_level(prose.join(" ").as_bytes()), LEVEL);
    }
}
