//! The fields of a version as one flat list, parents before their members.

use crate::spec::FieldSpec;

/// A field with its place.
#[derive(Debug, Clone)]
pub struct FieldAt<'a> {
    /// The field.
    pub field: &'a FieldSpec,
    /// Dotted path of names from the top: `author.name`.
    pub path: String,
    /// Id of the struct field it is a member of; `None` at the top level.
    pub parent: Option<u32>,
    /// 0 at the top level.
    pub depth: usize,
}

/// Every field at every depth, in the order of the file.
#[must_use]
pub fn list_fields(fields: &[FieldSpec]) -> Vec<FieldAt<'_>> {
    let mut list = Vec::new();
    let mut stack: Vec<FieldAt<'_>> = Vec::new();
    push_members(&mut stack, fields, None);
    while let Some(at) = stack.pop() {
        push_members(&mut stack, &at.field.fields, Some(&at));
        list.push(at);
    }
    list
}

fn push_members<'a>(
    stack: &mut Vec<FieldAt<'a>>,
    fields: &'a [FieldSpec],
    parent: Option<&FieldAt<'a>>,
) {
    for field in fields.iter().rev() {
        stack.push(FieldAt {
            field,
            path: parent.map_or_else(
                || field.name.clone(),
                |p| format!("{}.{}", p.path, field.name),
            ),
            parent: parent.map(|p| p.field.id),
            depth: parent.map_or(0, |p| p.depth + 1),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::FieldType;

    #[test]
    fn members_follow_their_parent_in_order() {
        let mut a = FieldSpec::new(1, "作者", FieldType::Struct);
        a.fields = vec![
            FieldSpec::new(2, "名", FieldType::String),
            FieldSpec::new(3, "x", FieldType::Int),
        ];
        let fields = [a, FieldSpec::new(4, "b", FieldType::Int)];
        let list: Vec<_> = list_fields(&fields)
            .into_iter()
            .map(|f| (f.path, f.parent, f.depth))
            .collect();
        assert_eq!(
            list,
            [
                ("作者".to_owned(), None, 0),
                ("作者.名".to_owned(), Some(1), 1),
                ("作者.x".to_owned(), Some(1), 1),
                ("b".to_owned(), None, 0),
            ]
        );
    }
}
