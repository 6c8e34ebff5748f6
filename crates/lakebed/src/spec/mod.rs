//! Pure data of everything that is written to disk or SQL, versioned, without any I/O.
//!
//! | file | what it describes | format page |
//! | --- | --- | --- |
//! | `lake` | `lake.json` | docs/formats/lake.md |
//! | `record` | a record of a commit log | docs/formats/log.md |
//! | `partition` | partition key, state, `_SUCCESS` | docs/formats/log.md |
//! | `schema` | a schema version, as TOML and as published JSON | docs/formats/schema.md |
//! | `schemaless` | data without a schema: JSON lines | docs/formats/jsonl.md |
//! | `columns` | the Arrow and Parquet columns of a schema version | docs/formats/parquet.md |
//! | `capture` | a response without its body, in a pack | docs/formats/rawpack.md |
//! | `charset` | in which encoding a body is written | |
//! | `parsed` | what the parse rules give for a page: rows, follow-ups, rejects | docs/parse.md |
//! | `canonical_url` | the one spelling of a URL | |
//! | `robots` | the `robots.txt` of an origin, as a host table keeps it | |
//! | `surt` | the sort form of a URL, key of indexes | docs/formats/rawpack.md |
//! | `pack`, `pack_seek`, `pack_index` | heads, names and tail of a pack; a row of its index | docs/formats/rawpack.md |
//! | `terminal` | how a request ended, in a pack | docs/formats/rawpack.md |
//! | `stamp` | that a stage of a flow is done, and for what | docs/formats/stamp.md |
//! | `derived` | what a derived commit read | docs/formats/log.md |
//! | `reject` | a line of a rejects file | docs/formats/rejects.md |

mod canonical_url;
mod capture;
mod charset;
mod checkpoint;
mod columns;
mod derived;
mod lake;
mod pack;
mod pack_gave;
mod pack_index;
mod pack_seek;
mod pack_short;
mod parsed;
mod partition;
mod record;
mod reject;
mod robots;
mod schema;
mod schemaless;
mod shadow;
mod stamp;
mod surt;
mod tagged;
mod terminal;

pub use canonical_url::{CanonicalUrl, MAX_URL_BYTES, QueryOrder};
pub use capture::{
    CaptureRecord, CharsetOrigin, CharsetSpec, RawText, RunKey, Truncated, capture_id, request_key,
    twin_id,
};
pub use charset::{charset_of, essence};
pub use checkpoint::{CHECKPOINT_FORMAT, CHECKPOINT_KEY, CheckpointHead};
pub use columns::{
    EXTRA_COLUMN, EXTRA_FIELD_ID, FIELD_ID_KEY, MAX_FIELD_ID, SOURCE_COLUMN, SOURCE_FIELD_ID,
    arrow_schema, arrow_type,
};
pub use derived::{ReadRange, parent_text};
pub use lake::{LAKE_FORMAT, LakeSpec};
pub use pack::{
    ErasedCapture, LONE_BODY_BYTES, MAX_BODY_BYTES, MAX_FRAME_BYTES, MAX_SHARED_LINES_BYTES,
    MAX_WINDOW_LOG, PACK_FORMAT, PACK_HEAD_NAME, PACK_INDEX_SUFFIX, PACK_RULES, PACK_SUFFIX,
    PART_FORMAT, PackFileName, PackHead, PackKind, PackLine, PackProfile, PackTrailer,
    TAR_END_BYTES, TERMINALS_NAME, body_member_name, lines_member_name, parse_body_member_name,
    parse_lines_member_name,
};
pub use pack_gave::{DatasetCounts, PackCounts, PackGave};
pub use pack_index::{IndexRow, pack_index_schema};
pub use pack_seek::{
    PADDING_MAGIC, SEEK_FOOTER_BYTES, SEEK_FOOTER_MAGIC, SEEK_TABLE_MAGIC, SKIPPABLE_HEAD_BYTES,
    SeekRow, TRAILER_MAGIC, decode_seek_table, decode_trailer, encode_seek_table, encode_trailer,
    padding, seek_table_bytes,
};
pub use pack_short::{ShortTerminal, TerminalLine, full_line, short_line};
pub use parsed::{Datum, FollowUp, PageExpectation, PageFault, PageRecord, PageReject, ParsedPage};
pub use partition::{PartitionKey, PartitionState, SuccessFile, SuccessSpec};
pub use record::{
    Action, By, DataFileSpec, FileFormat, InputSpec, JoinedAppend, LoadKind, LogPosition,
    Operation, ParentSpec, Provenance, RECORD_FORMAT, RECORD_MIN_READER, Record, RejectsFileSpec,
    Requirement, min_reader,
};
pub use reject::{PAGE_FORM, RejectReason, RejectRecord};
pub use robots::{RobotsContent, RobotsState};
pub use schema::{
    Ambiguous, CastSpec, ChangeKind, DatasetClass, FieldSpec, FieldType, InputFormat, Lifecycle,
    Lossy, MoneySpec, PUBLISHED_FORMAT, Privacy, PublishedSchema, ReadSpec, RemovedField,
    SchemaSpec, Token,
};
pub use schemaless::{JSON_COLUMN, SCHEMALESS_VERSION};
pub use shadow::{SHADOW_FORMAT, ShadowCounts, ShadowDay, ShadowVerdict};
pub use stamp::{STAMP_FORMAT, StampFile, StampScope, StampSpec};
pub use surt::surt;
pub use terminal::{Answer, BodyMark, TerminalRecord, TerminalState};
