//! How a type of one version becomes the type of the table: the expression tree of a view.
//!
//! Members are found by field id. A value is passed through where nothing in it differs.

use arrow_schema::{DataType, Field, Fields};

use crate::registry::field_id;

/// What is done with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    /// Nothing.
    Same,
    /// It is cast to the wider type.
    Cast,
    /// A struct is built anew: for each member of the table, in order, how to get it.
    Struct(Vec<Option<MemberShape>>),
    /// The elements of a list are.
    List(Box<Shape>),
    /// The values of a map are.
    Map(Box<Shape>),
}

/// Where a member comes from; a member that the version lacks has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MemberShape {
    /// Its name in that version.
    pub(super) name: String,
    /// What is done with it.
    pub(super) shape: Shape,
}

/// The field of `fields` that is `wanted` by its id.
pub(super) fn find_by_id<'a>(
    fields: impl IntoIterator<Item = &'a Field>,
    wanted: &Field,
) -> Option<&'a Field> {
    let id = field_id(wanted)?;
    fields.into_iter().find(|f| field_id(f) == Some(id))
}

/// The field of `fields` that has the name; case does not count, since it does not for engines.
pub(super) fn find_by_name<'a>(
    fields: impl IntoIterator<Item = &'a Field>,
    name: &str,
) -> Option<&'a Field> {
    let name = name.to_lowercase();
    fields.into_iter().find(|f| f.name().to_lowercase() == name)
}

/// The value of a map's entries, which are key and value.
pub(super) fn map_value(entries: &Field) -> Option<&Field> {
    match entries.data_type() {
        DataType::Struct(members) => members.get(1).map(AsRef::as_ref),
        _ => None,
    }
}

/// How a value of a version's type `from` becomes one of the table's type `to`. The engine holds it
/// as `held`: of the same names, but maybe with members of other versions beside them.
pub(super) fn shape_of(from: &DataType, held: &DataType, to: &DataType) -> Shape {
    if is_same(held, to) {
        return Shape::Same;
    }
    match (from, held, to) {
        (DataType::Struct(a), DataType::Struct(h), DataType::Struct(b)) => {
            Shape::Struct(b.iter().map(|m| member_shape(a, h, m)).collect())
        }
        (DataType::List(a), DataType::List(h), DataType::List(b)) => {
            let element = shape_of(a.data_type(), h.data_type(), b.data_type());
            Shape::List(Box::new(element))
        }
        (DataType::Map(a, _), DataType::Map(h, _), DataType::Map(b, _)) => {
            match (map_value(a), map_value(h), map_value(b)) {
                (Some(a), Some(h), Some(b)) => Shape::Map(Box::new(shape_of(
                    a.data_type(),
                    h.data_type(),
                    b.data_type(),
                ))),
                _ => Shape::Cast,
            }
        }
        _ => Shape::Cast,
    }
}

fn member_shape(from: &Fields, held: &Fields, wanted: &Field) -> Option<MemberShape> {
    let member = find_by_id(from.iter().map(AsRef::as_ref), wanted)?;
    let known = find_by_name(held.iter().map(AsRef::as_ref), member.name());
    let held = known.map_or(member.data_type(), Field::data_type);
    Some(MemberShape {
        name: member.name().clone(),
        shape: shape_of(member.data_type(), held, wanted.data_type()),
    })
}

/// Whether two types have the same names in the same order; ids and other metadata do not count.
pub(super) fn is_same(a: &DataType, b: &DataType) -> bool {
    let fields =
        |a: &Field, b: &Field| a.name() == b.name() && is_same(a.data_type(), b.data_type());
    match (a, b) {
        (DataType::Struct(a), DataType::Struct(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| fields(a, b))
        }
        (DataType::List(a), DataType::List(b)) | (DataType::Map(a, _), DataType::Map(b, _)) => {
            fields(a, b)
        }
        (a, b) => a == b,
    }
}
