//! In which encoding the text of a body is written.
//!
//! ```text
//! byte order mark > charset of Content-Type > meta element or XML declaration > valid UTF-8 > a guess
//! ```
//! The first three are the order of the WHATWG encoding and HTML standards. A guess is marked as one.

mod prescan;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8};

use crate::spec::{CharsetOrigin, CharsetSpec};

/// Most bytes that a guess looks at.
const GUESS_BYTES: usize = 64 * 1024;

/// The encoding of a body; `None` for a body that is no text.
///
/// `content_type` is the whole header value; `host` helps to tell encodings of neighbouring countries apart.
#[must_use]
pub fn charset_of(body: &[u8], content_type: Option<&str>, host: &str) -> Option<CharsetSpec> {
    let media = MediaType::of(content_type, body);
    if media == MediaType::Other {
        return None;
    }
    let found = |encoding: &'static Encoding, from| {
        Some(CharsetSpec {
            name: encoding.name().to_ascii_lowercase(),
            from,
        })
    };
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return found(encoding, CharsetOrigin::Bom);
    }
    if let Some(encoding) = content_type.and_then(charset_parameter) {
        return found(encoding, CharsetOrigin::Http);
    }
    let declared = match media {
        MediaType::Html | MediaType::Unknown => prescan::html(body),
        MediaType::Xml => prescan::xml(body),
        MediaType::Text | MediaType::Other => None,
    };
    if let Some(encoding) = declared {
        return found(encoding, CharsetOrigin::Meta);
    }
    found(guess(body, host), CharsetOrigin::Detected)
}

/// What kind of text a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MediaType {
    Html,
    Xml,
    Text,
    /// The server names no type, and the bytes look like text.
    Unknown,
    Other,
}

impl MediaType {
    fn of(content_type: Option<&str>, body: &[u8]) -> Self {
        let essence = content_type.map(essence).unwrap_or_default();
        match essence.as_str() {
            "" if looks_like_text(body) => Self::Unknown,
            "text/html" | "application/xhtml+xml" => Self::Html,
            "text/xml" | "application/xml" => Self::Xml,
            "application/json"
            | "application/javascript"
            | "application/x-javascript"
            | "application/ecmascript"
            | "application/x-ndjson"
            | "application/jsonl"
            | "application/x-www-form-urlencoded"
            | "application/csv" => Self::Text,
            other if other.ends_with("+xml") => Self::Xml,
            other if other.ends_with("+json") || other.starts_with("text/") => Self::Text,
            _ => Self::Other,
        }
    }
}

/// The media type of a header value: small letters, no parameters; empty for none.
#[must_use]
pub fn essence(content_type: &str) -> String {
    let text = content_type.split([';', ',']).next().unwrap_or_default();
    text.trim().to_ascii_lowercase()
}

fn looks_like_text(body: &[u8]) -> bool {
    let start = &body[..body.len().min(1024)];
    !start.is_empty() && (Encoding::for_bom(start).is_some() || !start.contains(&0))
}

/// The encoding of the parameter `charset`; `None` for none and for one that nobody knows.
fn charset_parameter(content_type: &str) -> Option<&'static Encoding> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        let label = value.trim().trim_matches(['"', '\'']);
        is_charset
            .then(|| Encoding::for_label(label.as_bytes()))
            .flatten()
    })
}

fn guess(body: &[u8], host: &str) -> &'static Encoding {
    // ISO-2022-JP is ASCII with escapes, so it is valid UTF-8, too.
    if std::str::from_utf8(body).is_ok() && memchr::memchr(0x1b, body).is_none() {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    detector.feed(&body[..body.len().min(GUESS_BYTES)], true);
    let tld = host
        .rsplit('.')
        .next()
        .filter(|tld| host.contains('.') && tld.bytes().all(|b| b.is_ascii_lowercase()));
    detector.guess(tld.map(str::as_bytes), Utf8Detection::Allow)
}

#[cfg(test)]
mod tests;
