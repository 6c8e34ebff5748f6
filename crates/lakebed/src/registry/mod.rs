//! Schema versions: read, checked, compared, published, listed.
//!
//! A version is a TOML file that a team reviews in git; publishing puts it as
//! `_lake/schema/<layer>/<dataset>/vN.json`, once. docs/formats/schema.md is the reference.
//!
//! ```text
//! vN.toml --parse--> SchemaSpec --validate--> sound by itself
//!                        |  check_evolution   sound after the published versions
//!                        v
//!                     publish --put-if-absent--> vN.json --list_published--> ingest, SQL, catalog
//!                                                           merge_columns    all versions as one table,
//!                                                                            old types cast by `cast`
//!                                                           write_view       the same for other engines
//! ```
//!
//! REG-1: a number is published once; who comes second with other content is told what differs.
//! REG-2: published numbers of a dataset run 1..n without a hole.
//! REG-3: an id keeps its place, and its type but for widening, over all versions; it is never reused.
//! REG-4: at one level a column name of files belongs to one id over all versions.
//!
//! How a value is converted is `ingest`'s business; reading TOML text is `config`'s.

mod cast;
mod diff;
mod evolution;
mod evolution_fields;
mod evolution_keys;
mod evolution_types;
mod format_text;
mod history;
mod merged;
mod parse;
mod past;
mod problem;
mod propose;
mod publish;
mod render;
mod reserved;
mod tree;
mod validate;
mod validate_change;
mod validate_field;
mod view;

pub(crate) use cast::widens;
pub use cast::{Cast, CastClass, Scalar, cast_class};
pub use diff::{FieldChange, FieldLine, Rename, Retype, SchemaDiff, diff};
pub use evolution::{Evolution, check_evolution};
pub(crate) use format_text::{FormatClass, classify as classify_format};
pub use history::{FieldEvent, FieldEventKind, FieldHistory, history};
pub use merged::{
    COMMIT_COLUMN, ColumnSource, DT_COLUMN, FILE_COLUMN, MergedColumn, OldField, ROW_COLUMN,
    VERSION_COLUMN, field_id, merge_columns, retyped_ids,
};
pub use parse::{check_place, load, parse};
pub use problem::{Problem, ProblemCode, refuse};
pub use propose::{
    AddedField, Proposal, column_name, nearest_field, next_free_id, propose_first, propose_next,
};
pub use publish::{PublishOptions, PublishOutcome, get, latest, list_published, publish};
pub use render::render_toml;
pub use reserved::{is_reserved_name, origin_type};
pub use tree::{FieldAt, list_fields};
pub use validate::{input_path, validate};
pub use view::{Engine, ViewColumn, ViewRequest, ViewStatement, write_lines_view, write_view};
