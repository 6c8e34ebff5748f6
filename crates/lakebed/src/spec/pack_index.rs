//! A row of a pack's index, and the Arrow columns of its Parquet file (docs/formats/rawpack.md).
//!
//! The index is derived: it can be made again from the pack alone, with the same rows.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use crate::name::{BodyHash, CaptureId, ContentHash, RequestKey, StageName};
use crate::spec::Truncated;
use crate::time::Instant;

/// Where a capture lies in a pack, and what is asked of it most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexRow {
    /// Its id.
    pub capture_id: CaptureId,
    /// The request it answers.
    pub request_key: RequestKey,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Which redirect.
    pub hop: u32,
    /// The kind of page.
    pub kind: StageName,
    /// The URL in sorted form, host first; empty where the document was erased.
    pub surt: String,
    /// The URL; empty where the document was erased.
    pub url: String,
    /// When it was fetched.
    pub fetched_at: Instant,
    /// HTTP status; `None` where no response came or it was erased.
    pub status: Option<u16>,
    /// The media type; `None` where the server named none.
    pub content_type: Option<String>,
    /// Whether the body is whole.
    pub truncated: Truncated,
    /// SHA-256 of the body; `None` where no response came or it was erased.
    pub body_sha256: Option<BodyHash>,
    /// Bytes of the body.
    pub body_len: u64,
    /// Whether an earlier line of the pack has the same body.
    pub is_duplicate: bool,
    /// Whether a terminal names it: then it is the one that is parsed.
    pub is_named: bool,
    /// Whether its document was erased.
    pub is_erased: bool,
    /// Number of the first frame it lies in, as in `m/<frame>.jsonl`.
    pub frame: u32,
    /// Where that frame begins in the file.
    pub frame_offset: u64,
    /// Bytes in the file of all frames it lies in: one read.
    pub frame_len: u64,
    /// How many frames these are.
    pub frame_count: u32,
    /// BLAKE3 of those bytes.
    pub frame_blake3: ContentHash,
    /// Where its line begins in the content of the frames.
    pub line_offset: u64,
    /// Bytes of the line, its end included.
    pub line_len: u64,
    /// Where its body begins in the content of the frames; `None` where there is none or an empty one.
    pub body_offset: Option<u64>,
}

impl IndexRow {
    /// What the rows of an index are sorted by.
    #[must_use]
    pub fn order(&self) -> (&str, Instant, &CaptureId) {
        (&self.surt, self.fetched_at, &self.capture_id)
    }
}

/// The columns of an index, in order. Numbers are signed, since other engines know no others.
#[must_use]
pub fn pack_index_schema() -> SchemaRef {
    let text = DataType::Utf8;
    let long = DataType::Int64;
    let int = DataType::Int32;
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let fields = [
        ("capture_id", DataType::FixedSizeBinary(16), false),
        ("request_key", DataType::FixedSizeBinary(16), false),
        ("attempt", int.clone(), false),
        ("hop", int.clone(), false),
        ("kind", text.clone(), false),
        ("surt", text.clone(), false),
        ("url", text.clone(), false),
        ("fetched_at", instant, false),
        ("status", int.clone(), true),
        ("content_type", text.clone(), true),
        ("truncated", text, false),
        ("body_sha256", DataType::FixedSizeBinary(32), true),
        ("body_len", long.clone(), false),
        ("is_duplicate", DataType::Boolean, false),
        ("is_named", DataType::Boolean, false),
        ("is_erased", DataType::Boolean, false),
        ("frame", int.clone(), false),
        ("frame_offset", long.clone(), false),
        ("frame_len", long.clone(), false),
        ("frame_count", int, false),
        ("frame_blake3", DataType::FixedSizeBinary(32), false),
        ("line_offset", long.clone(), false),
        ("line_len", long.clone(), false),
        ("body_offset", long, true),
    ];
    let fields = fields.map(|(name, kind, nullable)| Field::new(name, kind, nullable));
    Arc::new(Schema::new(fields.to_vec()))
}
