//! WACZ 1.1.1: a ZIP with the WARC, its index, the list of pages and their checksums.

use std::io::{Seek, Write};

use serde_json::json;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::error::{Error, Result};
use crate::pack::reader::PackReader;
use crate::pack::warc::cdxj::write_cdxj;
use crate::pack::warc::export::{WarcExport, WarcOptions, export_warc};

/// The WARC within the archive.
const WARC_NAME: &str = "data.warc.gz";

/// Writes a pack as WACZ; the answer is that of its WARC.
///
/// # Errors
/// `CorruptData` where the pack is damaged; `Unavailable` where `out` cannot be written.
pub fn export_wacz<W: Write + Seek>(
    reader: &PackReader,
    out: W,
    revisits: bool,
) -> Result<WarcExport> {
    let mut archive = Archive {
        zip: ZipWriter::new(out),
        resources: Vec::new(),
    };
    let options = WarcOptions {
        gzip: true,
        revisits,
        filename: WARC_NAME.to_owned(),
    };
    let mut export = archive.file(&format!("archive/{WARC_NAME}"), |out| {
        export_warc(reader, out, &options)
    })?;
    let mut index = Vec::new();
    write_cdxj(&mut export.entries, &mut index)?;
    archive.bytes("indexes/index.cdxj", &index)?;
    archive.bytes("pages/pages.jsonl", pages(&export).as_bytes())?;
    // The latest response, not the time of the export: that would differ each time.
    let latest = export.entries.iter().map(|e| e.timestamp.as_str()).max();
    let created = latest.map_or_else(|| "1970-01-01T00:00:00Z".to_owned(), rfc3339);
    let package = json!({
        "profile": "data-package",
        "wacz_version": "1.1.1",
        "created": created,
        "software": concat!("lakebed ", env!("CARGO_PKG_VERSION")),
        "resources": archive.resources,
    });
    archive.bytes("datapackage.json", format!("{package:#}\n").as_bytes())?;
    archive.zip.finish().map_err(failed)?;
    Ok(export)
}

fn failed(e: zip::result::ZipError) -> Error {
    Error::unavailable(format!("write the WACZ: {e}")).caused_by(e)
}

/// `20261130123456` as `2026-11-30T12:34:56Z`.
fn rfc3339(digits: &str) -> String {
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    let (date, time) = (
        [part(0, 4), part(4, 6), part(6, 8)].join("-"),
        [part(8, 10), part(10, 12), part(12, 14)].join(":"),
    );
    format!("{date}T{time}Z")
}

fn pages(export: &WarcExport) -> String {
    let head = json!({"format": "json-pages-1.0", "id": "pages", "title": "All Pages"});
    let mut text = format!("{head}\n");
    for entry in export.entries.iter().filter(|e| e.is_page) {
        let page = json!({
            "id": entry.capture_id,
            "url": entry.url,
            "ts": rfc3339(&entry.timestamp),
        });
        text.push_str(&format!("{page}\n"));
    }
    text
}

struct Archive<W: Write + Seek> {
    zip: ZipWriter<W>,
    resources: Vec<serde_json::Value>,
}

impl<W: Write + Seek> Archive<W> {
    /// Stores what `write` writes, and notes its checksum.
    fn file<T>(
        &mut self,
        path: &str,
        write: impl FnOnce(&mut dyn Write) -> Result<T>,
    ) -> Result<T> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .last_modified_time(DateTime::default())
            .large_file(true);
        self.zip.start_file(path, options).map_err(failed)?;
        let mut out = Hashed {
            out: &mut self.zip,
            hasher: Sha256::new(),
            bytes: 0,
        };
        let done = write(&mut out)?;
        let hex: String = out
            .hasher
            .finalize()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let name = path.rsplit('/').next().unwrap_or(path);
        self.resources.push(json!({
            "name": name,
            "path": path,
            "hash": format!("sha256:{hex}"),
            "bytes": out.bytes,
        }));
        Ok(done)
    }

    fn bytes(&mut self, path: &str, bytes: &[u8]) -> Result<()> {
        self.file(path, |out| {
            out.write_all(bytes)
                .map_err(|e| Error::io("write the WACZ", path, e))
        })
    }
}

struct Hashed<'a, W> {
    out: &'a mut W,
    hasher: Sha256,
    bytes: u64,
}

impl<W: Write> Write for Hashed<'_, W> {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        let n = self.out.write(buf)?;
        self.hasher.update(&buf[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
