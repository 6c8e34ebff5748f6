//! What to try where DataFusion cannot do a thing with a struct, a list, a map or a date.

/// What DataFusion says, by a part of its text, and what helps; the first that fits counts.
const HINTS: [(&str, &str); 10] = [
    (
        "Date32 and Utf8 in LIKE",
        "a pattern is matched with a text: `CAST(dt AS VARCHAR) LIKE '2024-03-%'`",
    ),
    (
        "unnest() can only be applied",
        "`unnest(x)` makes rows of a list and columns of a struct; for a map, write `unnest(map_entries(x))`",
    ),
    (
        "table function 'unnest'",
        "write `unnest(x)` among the selected columns, as in `SELECT k, unnest(x) AS item FROM t`",
    ),
    (
        "logical expression OuterReferenceColumn",
        "a list of each row is unnested among the selected columns, as in `SELECT k, unnest(x) AS item FROM t`",
    ),
    (
        "not found in struct",
        "`DESCRIBE` with the table's name shows the members of its structs",
    ),
    (
        "Cannot access field",
        "`x['name']` is a member of a struct or an entry of a map, `x[1]` the first item of a list",
    ),
    (
        "Invalid comparison operation: Int64 == Utf8",
        "the keys of a map are texts, as in `x['1']`",
    ),
    ("Struct(", NESTED),
    ("List(", NESTED),
    ("Map(", NESTED),
];

const NESTED: &str =
    "name a member (`x['name']`) or an item (`x[1]`), or take the JSON text: `CAST(x AS VARCHAR)`";

/// The hint for what DataFusion says of such values; `None` where it speaks of none.
pub(crate) fn nested_hint(text: &str) -> Option<&'static str> {
    HINTS
        .iter()
        .find(|(part, _)| text.contains(part))
        .map(|(_, hint)| *hint)
}
