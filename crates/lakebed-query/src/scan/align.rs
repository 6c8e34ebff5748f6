//! A file's column in the form of the table's: nested members are matched by field id.
//!
//! Members the file lacks are NULL, members the table does not know are dropped, and the buffers of
//! all else are shared, not copied. Scalars are cast, which only widens them (spec allows no more
//! under one id); a value that does not fit is an error.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Fields};
use arrow::error::ArrowError;

use super::columns::{field_id, plain, plain_type};

/// `array`, whose type carries field ids, as the type `to`, which carries them too; the result's
/// type carries none.
pub(crate) fn align(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    match (array.data_type(), to) {
        (DataType::Struct(_), DataType::Struct(members)) => {
            Ok(Arc::new(align_struct(array.as_struct(), members)?))
        }
        (DataType::List(_), DataType::List(item)) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            let values = align(&values, item.data_type())?;
            Ok(Arc::new(ListArray::try_new(
                plain(item),
                offsets,
                values,
                nulls,
            )?))
        }
        (DataType::Map(_, _), DataType::Map(entries, _)) => {
            let DataType::Struct(members) = entries.data_type() else {
                return Err(ArrowError::SchemaError(
                    "a map's entries are not a struct".to_owned(),
                ));
            };
            let (_, offsets, pairs, nulls, sorted) = array.as_map().clone().into_parts();
            let pairs = align_struct(&pairs, members)?;
            Ok(Arc::new(MapArray::try_new(
                plain(entries),
                offsets,
                pairs,
                nulls,
                sorted,
            )?))
        }
        (from, to) if from == to => Ok(Arc::clone(array)),
        (_, to) => {
            let options = CastOptions {
                safe: false,
                ..CastOptions::default()
            };
            cast_with_options(array, &plain_type(to), &options)
        }
    }
}

fn align_struct(array: &StructArray, members: &Fields) -> Result<StructArray, ArrowError> {
    let columns = members
        .iter()
        .map(|member| match position(array.fields(), member) {
            Some(i) => align(array.column(i), member.data_type()),
            None => Ok(new_null_array(&plain_type(member.data_type()), array.len())),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let fields: Fields = members.iter().map(|m| plain(m)).collect();
    StructArray::try_new_with_length(fields, columns, array.nulls().cloned(), array.len())
}

/// Where the file's fields hold the one with the id of `wanted`.
pub(super) fn position(fields: &Fields, wanted: &Field) -> Option<usize> {
    let id = field_id(wanted)?;
    fields.iter().position(|f| field_id(f) == Some(id))
}

/// Whether a file's type can be read as the table's at all.
pub(crate) fn can_align(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Struct(a), DataType::Struct(b)) => b.iter().all(|member| {
            position(a, member).is_none_or(|i| can_align(a[i].data_type(), member.data_type()))
        }),
        (DataType::List(a), DataType::List(b)) => can_align(a.data_type(), b.data_type()),
        (DataType::Map(a, _), DataType::Map(b, _)) => can_align(a.data_type(), b.data_type()),
        (a, b) => a.is_nested() == b.is_nested() && arrow::compute::can_cast_types(a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringArray};
    use arrow::datatypes::FieldRef;
    use lakebed::spec::{FieldSpec, arrow_schema};

    fn column(members: &[(u32, &str, &str)]) -> FieldRef {
        let mut f = FieldSpec::new(1, "who", "struct".parse().unwrap());
        f.fields = members
            .iter()
            .map(|&(id, name, kind)| FieldSpec::new(id, name, kind.parse().unwrap()))
            .collect();
        arrow_schema(&[f]).fields()[0].clone()
    }

    #[test]
    fn members_swap_names_without_swapping_values() {
        let file = column(&[(2, "a", "int"), (3, "b", "int"), (5, "old", "int")]);
        let table = column(&[(3, "a", "int"), (2, "b", "int"), (4, "new", "string")]);
        let DataType::Struct(fields) = file.data_type() else {
            panic!()
        };
        let ints = |v: i64| Arc::new(Int64Array::from(vec![v])) as ArrayRef;
        let array: ArrayRef = Arc::new(
            StructArray::try_new(fields.clone(), vec![ints(1), ints(2), ints(9)], None).unwrap(),
        );
        let got = align(&array, table.data_type()).unwrap();
        assert_eq!(got.data_type(), &plain_type(table.data_type()));
        let got = got.as_struct();
        let int = |i: usize| {
            got.column(i)
                .as_primitive::<arrow::datatypes::Int64Type>()
                .value(0)
        };
        assert_eq!((int(0), int(1)), (2, 1));
        assert!(got.column(2).as_any().is::<StringArray>());
        assert!(got.column(2).is_null(0));
    }

    #[test]
    fn what_does_not_widen_is_refused() {
        assert!(!can_align(
            column(&[(2, "a", "int")]).data_type(),
            &DataType::Int64
        ));
        assert!(!can_align(
            column(&[(2, "a", "list<int>")]).data_type(),
            column(&[(2, "a", "int")]).data_type()
        ));
        assert!(can_align(
            &DataType::Decimal128(12, 2),
            &DataType::Decimal128(20, 4)
        ));
    }
}
