//! A catalog that belongs to another lake (CAT-3): whoever meets it says the same.

use crate::error::Error;
use crate::name::LakeId;

/// The error; nothing was changed.
pub(super) fn foreign_catalog(location: &str, bound: &str, lake: &LakeId) -> Error {
    Error::corrupt("the catalog belongs to another lake")
        .with("catalog", location)
        .with("catalog's lake", bound)
        .with("this lake", lake)
        .with("invariant", "CAT-3")
        .hint("check `lake` and `catalog` in lakebed.toml: each lake has its own catalog; nothing was changed")
        .hint("a catalog that nobody needs: name another file as `catalog`, then `lakebed catalog rebuild`")
}
