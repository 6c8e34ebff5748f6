//! Strict JSON (RFC 8259) over text that is UTF-8 already, keeping every value's own text.
//!
//! | file | what |
//! | --- | --- |
//! | `scanner` | tokens and values by their text; nested values are checked without recursion; usual keys and values in one pass |
//! | `strings` | resolving escapes |
//! | `mend` | lone surrogates in a text that is kept |
//! | `compact` | minimal white space, duplicate keys, NaN inside a value |
//!
//! Beyond the RFC the literals `NaN`, `Infinity` and `-Infinity` are recognised, so that the record
//! around them can be named instead of the file; whether they are accepted is the field's business.
//! Lone surrogates in escapes are legal text here and become U+FFFD when resolved.
//!
//! What does not belong here: what a value means for a field (`convert`).

mod compact;
mod mend;
mod scanner;
mod strings;

pub(crate) use compact::find_duplicate;
pub use compact::{CompactTrouble, compact_into};
pub(crate) use mend::mend_surrogates;
pub use scanner::{Key, Scanner, SyntaxError};
pub(crate) use scanner::{ShortKey, ShortNumber, is_same};
pub use strings::{Unescaped, unescape_into, unescaped};
