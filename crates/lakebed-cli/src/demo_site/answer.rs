//! From a page to an answer: caching headers, 304, gzip, redirects, and what faults do to bodies.

use bytes::Bytes;
use flate2::write::GzEncoder;
use flate2::{Compress, Compression, Crc, FlushCompress};
use hyper::HeaderMap;
use hyper::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
    HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, VARY,
};
use lakebed::{Error, Result};
use std::io::Write as _;

use crate::demo_site::body::{Segment, total};
use crate::demo_site::charset;
use crate::demo_site::fault::{CharsetFault, Pacing};
use crate::demo_site::http_date::HttpTime;
use crate::demo_site::page::{Media, Rendered};

/// Bodies smaller than this are not compressed.
const MIN_GZIP: usize = 256;
/// What one repeated block of a bomb unpacks to.
const BOMB_BLOCK: u64 = 1 << 20;
/// What fills a body up, as a comment that HTML and nothing else ignores.
const FILLER: &[u8] = b"<!-- nothing to see here, and a lot of it .................... -->\n";

/// Status, headers and body of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// HTTP status.
    pub(crate) status: u16,
    /// Headers in the order they are sent.
    pub(crate) headers: Vec<(HeaderName, String)>,
    /// The body.
    pub(crate) segments: Vec<Segment>,
    /// Bytes after which the connection breaks.
    pub(crate) cut: Option<u64>,
}

impl Answer {
    /// A page without caching.
    pub(crate) fn plain(page: Rendered) -> Self {
        let charset = declared(page.media, None);
        let mut answer = Self::bare(page.status);
        answer.header(CONTENT_TYPE, content_type(page.media, charset));
        answer.header(CACHE_CONTROL, "no-store".to_owned());
        answer.segments = segments(page.bytes);
        answer.measured()
    }

    /// No body.
    pub(crate) fn bare(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            segments: Vec::new(),
            cut: None,
        }
    }

    /// Adds a header.
    pub(crate) fn header(&mut self, name: HeaderName, value: String) {
        self.headers.push((name, value));
    }

    /// Says how long the body is.
    fn measured(mut self) -> Self {
        let length = total(&self.segments).to_string();
        self.header(CONTENT_LENGTH, length);
        self
    }
}

/// The answer with a page: 304 where the client has it, gzip where it takes it.
pub(crate) fn answer(
    page: Rendered,
    asked: &HeaderMap,
    charset: Option<CharsetFault>,
    pacing: &Pacing,
) -> Result<Answer> {
    let tag = blake3::hash(&page.bytes).to_hex();
    let gzip = accepts_gzip(asked) && page.bytes.len() >= MIN_GZIP && pacing.fill.is_none();
    let tag = match gzip {
        true => format!("\"{}-gz\"", &tag[..20]),
        false => format!("\"{}\"", &tag[..20]),
    };
    let mut caching = vec![
        (ETAG, tag.clone()),
        (VARY, "Accept-Encoding".to_owned()),
        (
            CACHE_CONTROL,
            "public, max-age=0, must-revalidate".to_owned(),
        ),
    ];
    if let Some(at) = page.modified {
        caching.push((LAST_MODIFIED, at.to_string()));
    }
    if page.status == 200 && is_known(asked, &tag, page.modified) {
        let mut answer = Answer::bare(304);
        answer.headers = caching;
        return Ok(answer);
    }
    let mut answer = Answer::bare(page.status);
    let charset = declared(page.media, charset);
    answer.header(CONTENT_TYPE, content_type(page.media, charset));
    if page.status == 200 {
        answer.headers.extend(caching);
    }
    if let Some(bytes) = pacing.bomb {
        answer.header(CONTENT_ENCODING, "gzip".to_owned());
        answer.segments = bomb(bytes)?;
    } else if gzip {
        answer.header(CONTENT_ENCODING, "gzip".to_owned());
        answer.segments = segments(packed(&page.bytes)?);
    } else {
        answer.segments = segments(page.bytes);
    }
    if let Some(bytes) = pacing.fill {
        fill(&mut answer.segments, bytes);
    }
    let mut answer = answer.measured();
    answer.cut = pacing
        .cut_percent
        .map(|percent| total(&answer.segments) * u64::from(percent) / 100);
    Ok(answer)
}

fn segments(bytes: Vec<u8>) -> Vec<Segment> {
    if bytes.is_empty() {
        return Vec::new();
    }
    vec![Segment::once(bytes)]
}

fn declared(media: Media, charset: Option<CharsetFault>) -> Option<&'static str> {
    match media {
        Media::Html => charset::declared_in_header(charset),
        Media::Text => Some("utf-8"),
        Media::Json | Media::Xml | Media::Svg => None,
    }
}

fn content_type(media: Media, charset: Option<&str>) -> String {
    let media = match media {
        Media::Html => "text/html",
        Media::Json => "application/json",
        Media::Text => "text/plain",
        Media::Xml => "application/xml",
        Media::Svg => "image/svg+xml",
    };
    match charset {
        Some(charset) => format!("{media}; charset={charset}"),
        None => media.to_owned(),
    }
}

/// Whether the client has this state of the page. A tag counts before a time (RFC 9110, 13.2.2).
fn is_known(asked: &HeaderMap, tag: &str, modified: Option<HttpTime>) -> bool {
    let mut tags = asked
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .map(|t| t.trim().trim_start_matches("W/"))
        .peekable();
    if tags.peek().is_some() {
        return tags.any(|t| t == tag || t == "*");
    }
    let since = asked
        .get(IF_MODIFIED_SINCE)
        .and_then(|v| v.to_str().ok())
        .and_then(HttpTime::parse);
    matches!((since, modified), (Some(since), Some(at)) if at <= since)
}

fn accepts_gzip(asked: &HeaderMap) -> bool {
    asked
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let refused = parts.any(|p| {
                p.strip_prefix("q=")
                    .is_some_and(|q| q.parse() == Ok(0.0_f32))
            });
            (name.eq_ignore_ascii_case("gzip") || name == "*") && !refused
        })
}

fn packed(bytes: &[u8]) -> Result<Vec<u8>> {
    let failed = |e| Error::internal("compress a page").caused_by(e);
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 3), Compression::fast());
    encoder.write_all(bytes).map_err(failed)?;
    encoder.finish().map_err(failed)
}

/// Fills a body up with comments to exactly `bytes`; a larger one stays as it is.
fn fill(segments: &mut Vec<Segment>, bytes: u64) {
    let missing = bytes.saturating_sub(total(segments));
    let unit = FILLER.repeat(1024);
    let unit_len = u64::try_from(unit.len()).unwrap_or(u64::MAX);
    let (times, rest) = (missing / unit_len, missing % unit_len);
    let unit = Bytes::from(unit);
    if times > 0 {
        segments.push(Segment {
            bytes: unit.clone(),
            times,
        });
    }
    if rest > 0 {
        let rest = usize::try_from(rest).unwrap_or(0).min(unit.len());
        segments.push(Segment::once(unit.slice(..rest)));
    }
}

/// A gzip stream of `bytes` blanks.
///
/// One block of blanks is compressed with a full flush, after which the compressor knows nothing of
/// what came before: the block may be repeated, and only the trailer must be computed for the whole.
fn bomb(bytes: u64) -> Result<Vec<Segment>> {
    let (times, rest) = (bytes / BOMB_BLOCK, bytes % BOMB_BLOCK);
    let mut crc = Crc::new();
    let mut segments = vec![Segment::once(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255][..])];
    for (len, times) in [(BOMB_BLOCK, times), (rest, u64::from(rest > 0))] {
        if times == 0 {
            continue;
        }
        let blanks = vec![b' '; usize::try_from(len).unwrap_or(0)];
        let mut block_crc = Crc::new();
        block_crc.update(&blanks);
        for _ in 0..times {
            crc.combine(&block_crc);
        }
        segments.push(Segment {
            bytes: flushed(&blanks)?.into(),
            times,
        });
    }
    let mut tail = vec![0x03, 0x00];
    tail.extend(crc.sum().to_le_bytes());
    let size = u32::try_from(bytes % (1 << 32)).unwrap_or(0);
    tail.extend(size.to_le_bytes());
    segments.push(Segment::once(tail));
    Ok(segments)
}

fn flushed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(bytes.len() / 100 + 1024);
    let mut compress = Compress::new(Compression::best(), false);
    compress
        .compress_vec(bytes, &mut out, FlushCompress::Full)
        .map_err(|e| Error::internal("compress a bomb").caused_by(e))?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    fn joined(segments: &[Segment]) -> Vec<u8> {
        segments
            .iter()
            .flat_map(|s| s.bytes.repeat(usize::try_from(s.times).unwrap()))
            .collect()
    }

    #[test]
    fn a_bomb_is_one_valid_gzip_stream() {
        for size in [0, 1, BOMB_BLOCK - 1, BOMB_BLOCK, 5 * BOMB_BLOCK + 77] {
            let bytes = joined(&bomb(size).unwrap());
            let mut out = Vec::new();
            GzDecoder::new(&bytes[..]).read_to_end(&mut out).unwrap();
            assert_eq!(u64::try_from(out.len()).unwrap(), size);
            assert!(out.iter().all(|b| *b == b' '));
            assert!(
                size < 1000 || bytes.len() * 100 < out.len(),
                "{}",
                bytes.len()
            );
        }
    }

    #[test]
    fn a_body_is_filled_to_the_byte() {
        for size in [0_u64, 3, 100, 70_000, 1_000_000] {
            let mut body = segments(b"abc".to_vec());
            fill(&mut body, size);
            assert_eq!(total(&body), size.max(3));
        }
    }

    #[test]
    fn gzip_is_sent_to_whom_takes_it() {
        let asks = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, value.parse().unwrap());
            accepts_gzip(&headers)
        };
        assert!(asks("gzip") && asks("br, GZIP;q=0.5") && asks("*"));
        assert!(!asks("gzip;q=0, br") && !asks("gzip; q=0.0") && !asks("identity"));
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn a_tag_counts_before_a_time() {
        let at = HttpTime::parse("Sun, 06 Nov 1994 08:49:37 GMT");
        let knows = |tag: Option<&str>, since: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(tag) = tag {
                headers.insert(IF_NONE_MATCH, tag.parse().unwrap());
            }
            if let Some(since) = since {
                headers.insert(IF_MODIFIED_SINCE, since.parse().unwrap());
            }
            is_known(&headers, "\"a\"", at)
        };
        assert!(knows(Some("\"x\", W/\"a\""), None) && knows(Some("*"), None));
        assert!(!knows(Some("\"x\""), Some("Sun, 06 Nov 1994 08:49:37 GMT")));
        assert!(knows(None, Some("Sun, 06 Nov 1994 08:49:37 GMT")));
        assert!(!knows(None, Some("Sun, 06 Nov 1994 08:49:36 GMT")));
        assert!(!knows(None, Some("yesterday")) && !knows(None, None));
    }
}
