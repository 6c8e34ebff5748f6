//! An item of a stage, compared: what both implementations gave for it.

use serde::Serialize;
use serde_json::Value;

use crate::parse::Difference;

/// What became of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ItemVerdict {
    Agree,
    Changed,
    OnlyOld,
    OnlyNew,
}

/// An item, compared.
#[derive(Debug, Serialize)]
pub(super) struct Compared {
    /// `page`, `record <dataset>`, `link <stage>`, `total`; `row <dataset>`, `event <dataset>`; `file`.
    pub(super) kind: String,
    /// Which one.
    pub(super) key: String,
    pub(super) verdict: ItemVerdict,
    /// Where it differs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) differences: Vec<Difference>,
}

impl Compared {
    /// One that only one of both has; `value` is all of it.
    pub(super) fn one_sided(
        (kind, key): (String, String),
        verdict: ItemVerdict,
        value: Value,
    ) -> Self {
        let (expected, found) = match verdict {
            ItemVerdict::OnlyNew => (None, Some(value)),
            ItemVerdict::Agree | ItemVerdict::Changed | ItemVerdict::OnlyOld => (Some(value), None),
        };
        let difference = Difference {
            path: "$".to_owned(),
            expected,
            found,
        };
        Self {
            kind,
            key,
            verdict,
            differences: vec![difference],
        }
    }
}

/// The key for people: the second of a key is `key #2`, the first without one `#1`.
pub(super) fn shown_key(key: &str, number: usize) -> String {
    match (key, number) {
        ("", number) => format!("#{}", number + 1),
        (key, 0) => key.to_owned(),
        (key, number) => format!("{key} #{}", number + 1),
    }
}
