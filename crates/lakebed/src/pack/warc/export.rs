//! A pack as WARC: per response a request and a response record, or a revisit behind its original.
//!
//! Record ids are made of capture ids, and nothing is written that is not in the pack: two exports of a
//! pack are equal byte by byte. What a WARC has no field for stands as JSON in `Lakebed-Capture`, so that
//! an import gives the same capture back.

use std::collections::HashMap;
use std::io::Write;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::name::{BodyHash, CaptureId};
use crate::pack::reader::{Capture, PackReader};
use crate::pack::warc::cdxj::{CdxEntry, Place};
use crate::pack::warc::http::{head_len, to_block};
use crate::pack::warc::record::WarcRecord;
use crate::spec::{CaptureRecord, RawText, Truncated};

/// Field of a record that carries a capture without its heads.
pub(super) const CAPTURE_FIELD: &str = "Lakebed-Capture";
/// Profile of a revisit of the same body.
const REVISIT_PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// How a WARC is written.
#[derive(Debug, Clone)]
pub struct WarcOptions {
    /// Whether each record is a gzip member.
    pub gzip: bool,
    /// Whether a body that was written before is referred to; else it is written again.
    pub revisits: bool,
    /// The file's name, for its `warcinfo` and its index.
    pub filename: String,
}

/// What was written.
#[derive(Debug, Default)]
pub struct WarcExport {
    /// Records, the `warcinfo` among them.
    pub records: u64,
    /// Responses, revisits among them.
    pub responses: u64,
    /// Revisits.
    pub revisits: u64,
    /// Attempts without a response: a WARC has no record for them.
    pub skipped: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Where each response lies.
    pub entries: Vec<CdxEntry>,
}

/// Writes all responses of a pack, in its order.
///
/// # Errors
/// `CorruptData` where the pack is damaged; `Unavailable` where `out` cannot be written.
pub fn export_warc(
    reader: &PackReader,
    out: &mut dyn Write,
    options: &WarcOptions,
) -> Result<WarcExport> {
    let mut export = Export {
        out,
        options,
        done: WarcExport::default(),
        originals: HashMap::new(),
    };
    export.info(reader)?;
    for capture in reader.replay() {
        export.capture(&capture?)?;
    }
    Ok(export.done)
}

struct Original {
    record_id: String,
    url: String,
    date: String,
}

struct Export<'a> {
    out: &'a mut dyn Write,
    options: &'a WarcOptions,
    done: WarcExport,
    originals: HashMap<BodyHash, Original>,
}

/// The id of a record of the capture, always the same.
fn record_id(of: &str, what: &str) -> String {
    let name = format!("lakebed:{what}:{of}");
    format!(
        "<urn:uuid:{}>",
        Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes())
    )
}

/// SHA-256 as the fields of digests have it.
fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    format!("sha256:{hex}")
}

fn field(name: &str, value: impl ToString) -> (String, String) {
    (name.to_owned(), value.to_string())
}

impl Export<'_> {
    fn write(&mut self, record: &WarcRecord) -> Result<u64> {
        let bytes = record.to_bytes(self.options.gzip)?;
        self.out
            .write_all(&bytes)
            .map_err(|e| Error::io("write the WARC", &self.options.filename, e))?;
        self.done.records += 1;
        self.done.bytes += bytes.len() as u64;
        Ok(bytes.len() as u64)
    }

    fn info(&mut self, reader: &PackReader) -> Result<()> {
        let scan_first = reader.replay().next().transpose()?;
        let date = scan_first.map_or_else(
            || "1970-01-01T00:00:00Z".to_owned(),
            |c| c.capture.fetched_at.to_string(),
        );
        let content = &reader.trailer().content;
        let block = format!(
            "software: lakebed {}\r\nformat: WARC File Format 1.1\r\ndescription: rawpack/1 {content}\r\n",
            env!("CARGO_PKG_VERSION")
        );
        self.write(&WarcRecord {
            fields: vec![
                field("WARC-Type", "warcinfo"),
                field("WARC-Record-ID", record_id(content.as_str(), "warcinfo")),
                field("WARC-Date", date),
                field("WARC-Filename", &self.options.filename),
                field("Content-Type", "application/warc-fields"),
            ],
            block: block.into_bytes(),
        })?;
        Ok(())
    }

    fn capture(&mut self, capture: &Capture) -> Result<()> {
        let Capture { capture, body } = capture;
        let Some(hash) = &capture.body_sha256 else {
            self.done.skipped += 1;
            return Ok(());
        };
        let original = self
            .originals
            .get(hash)
            .filter(|_| self.options.revisits && !body.is_empty());
        let is_revisit = original.is_some();
        let mut block = to_block(capture, body);
        let id = record_id(capture.capture_id.as_str(), "response");
        let payload = format!("sha256:{hash}");
        let mut fields = self.fields(
            capture,
            &id,
            if is_revisit { "revisit" } else { "response" },
        )?;
        if let Some(original) = original {
            fields.push(field("WARC-Profile", REVISIT_PROFILE));
            fields.push(field("WARC-Refers-To", &original.record_id));
            fields.push(field("WARC-Refers-To-Target-URI", &original.url));
            fields.push(field("WARC-Refers-To-Date", &original.date));
            block.truncate(head_len(&block));
        }
        fields.push(field("WARC-Payload-Digest", &payload));
        fields.push(field("WARC-Block-Digest", digest(&block)));
        fields.push(field("Content-Type", "application/http; msgtype=response"));
        let offset = self.done.bytes;
        let length = self.write(&WarcRecord { fields, block })?;
        self.done.responses += 1;
        self.done.revisits += u64::from(is_revisit);
        let place = Place {
            offset,
            length,
            filename: &self.options.filename,
            is_revisit,
        };
        self.done
            .entries
            .push(CdxEntry::new(capture, &payload, &place)?);
        if !is_revisit {
            let original = Original {
                record_id: id.clone(),
                url: capture.url.clone(),
                date: capture.fetched_at.to_string(),
            };
            self.originals.insert(hash.clone(), original);
        }
        self.request(capture, &id)
    }

    fn fields(
        &self,
        capture: &CaptureRecord,
        id: &str,
        kind: &str,
    ) -> Result<Vec<(String, String)>> {
        let rest = CaptureRecord {
            request_head: RawText::default(),
            request_body: capture.request_body.as_ref().map(|_| RawText::default()),
            response_head: RawText::default(),
            ..capture.clone()
        };
        let rest = serde_json::to_string(&rest)
            .map_err(|e| Error::internal("write a capture as JSON").caused_by(e))?;
        let mut fields = vec![
            field("WARC-Type", kind),
            field("WARC-Record-ID", id),
            field("WARC-Date", capture.fetched_at),
            field("WARC-Target-URI", &capture.url),
        ];
        if let Some(address) = &capture.remote_ip {
            fields.push(field("WARC-IP-Address", address));
        }
        match capture.truncated {
            Truncated::None => {}
            Truncated::Length => fields.push(field("WARC-Truncated", "length")),
            Truncated::Time => fields.push(field("WARC-Truncated", "time")),
            Truncated::Disconnect => fields.push(field("WARC-Truncated", "disconnect")),
        }
        fields.push(field(CAPTURE_FIELD, rest));
        Ok(fields)
    }

    fn request(&mut self, capture: &CaptureRecord, response: &str) -> Result<()> {
        if capture.request_head.0.is_empty() {
            return Ok(());
        }
        let mut block = capture.request_head.0.clone();
        block.extend(capture.request_body.iter().flat_map(|body| &body.0));
        let of: &CaptureId = &capture.capture_id;
        self.write(&WarcRecord {
            fields: vec![
                field("WARC-Type", "request"),
                field("WARC-Record-ID", record_id(of.as_str(), "request")),
                field("WARC-Date", capture.fetched_at),
                field("WARC-Target-URI", &capture.url),
                field("WARC-Concurrent-To", response),
                field("WARC-Block-Digest", digest(&block)),
                field("Content-Type", "application/http; msgtype=request"),
            ],
            block,
        })?;
        Ok(())
    }
}
