//! CDXJ: a line a response, sorted by URL and time, that says where it lies in a WARC.

use std::io::Write;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::spec::CaptureRecord;
use crate::time::Instant;

/// A response in a WARC.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CdxEntry {
    /// The URL in sorted form.
    pub surt: String,
    /// When, as 14 digits, UTC.
    pub timestamp: String,
    /// The capture.
    pub capture_id: String,
    pub(super) json: String,
    pub(super) url: String,
    pub(super) is_page: bool,
}

#[derive(Serialize)]
struct Json<'a> {
    url: &'a str,
    mime: &'a str,
    status: String,
    digest: &'a str,
    length: String,
    offset: String,
    filename: &'a str,
}

/// Where a record lies.
pub(super) struct Place<'a> {
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) filename: &'a str,
    pub(super) is_revisit: bool,
}

impl CdxEntry {
    pub(super) fn new(capture: &CaptureRecord, digest: &str, place: &Place<'_>) -> Result<Self> {
        let media = capture.content_type.as_deref().unwrap_or("unk");
        let json = Json {
            url: &capture.url,
            mime: match place.is_revisit {
                true => "warc/revisit",
                false => media,
            },
            status: capture.status.unwrap_or(0).to_string(),
            digest,
            length: place.length.to_string(),
            offset: place.offset.to_string(),
            filename: place.filename,
        };
        let json = serde_json::to_string(&json)
            .map_err(|e| Error::internal("write a line of CDXJ").caused_by(e))?;
        Ok(Self {
            surt: crate::spec::surt(&capture.url),
            timestamp: timestamp(capture.fetched_at),
            capture_id: capture.capture_id.to_string(),
            json,
            url: capture.url.clone(),
            is_page: media == "text/html" && capture.status == Some(200),
        })
    }
}

/// The 14 digits of an instant.
fn timestamp(at: Instant) -> String {
    let text = at.to_string();
    text.chars().filter(char::is_ascii_digit).take(14).collect()
}

/// Writes the entries, which it sorts.
///
/// # Errors
/// `Unavailable` where `out` cannot be written.
pub fn write_cdxj(entries: &mut [CdxEntry], mut out: impl Write) -> Result<()> {
    entries.sort();
    for entry in entries {
        let (surt, timestamp, json) = (&entry.surt, &entry.timestamp, &entry.json);
        writeln!(out, "{surt} {timestamp} {json}")
            .map_err(|e| Error::io("write the CDXJ", "the index", e))?;
    }
    Ok(())
}
