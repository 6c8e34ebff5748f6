//! The head of a response as a WARC must have it, and back.
//!
//! In a pack the body has its content encodings removed, its head is that of the wire. A reader of a WARC
//! takes the head at its word, so headers that are no longer true get the prefix `X-Crawler-`, and the
//! true length is added as the last one.

use crate::spec::CaptureRecord;

const PREFIX: &[u8] = b"X-Crawler-";
/// Headers that may be untrue of the body as it is kept.
const UNTRUE: [&str; 3] = ["content-encoding", "transfer-encoding", "content-length"];

/// Head and body of a response as they lie in the block of a record.
pub(super) fn to_block(capture: &CaptureRecord, body: &[u8]) -> Vec<u8> {
    let head = &capture.response_head.0;
    let mut block = Vec::with_capacity(head.len() + body.len() + 64);
    let mut lines = head.split_inclusive(|b| *b == b'\n').peekable();
    match lines.next() {
        Some(first) => block.extend(first_line(first)),
        None => {
            let status = capture.status.unwrap_or(0);
            block.extend(format!("HTTP/1.1 {status}\r\n").as_bytes());
        }
    }
    for line in lines.filter(|line| !line.trim_ascii().is_empty()) {
        if is_untrue(line) {
            block.extend(PREFIX);
        }
        block.extend(line);
    }
    block.extend(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
    block.extend(body);
    block
}

/// Readers know HTTP/1 alone.
fn first_line(line: &[u8]) -> Vec<u8> {
    let rest = line
        .strip_prefix(b"HTTP/2.0")
        .or_else(|| line.strip_prefix(b"HTTP/2"));
    let rest = rest.or_else(|| line.strip_prefix(b"HTTP/3"));
    match rest {
        Some(rest) => [b"HTTP/1.1", rest].concat(),
        None => line.to_vec(),
    }
}

fn is_untrue(line: &[u8]) -> bool {
    let colon = line.iter().position(|b| *b == b':').unwrap_or(0);
    let name = line[..colon].trim_ascii();
    UNTRUE
        .iter()
        .any(|u| name.eq_ignore_ascii_case(u.as_bytes()))
}

/// Where the head of a block ends: behind its empty line; all of it where it has none.
pub(super) fn head_len(block: &[u8]) -> usize {
    let mut at = 0;
    for line in block.split_inclusive(|b| *b == b'\n') {
        at += line.len();
        if line.trim_ascii().is_empty() {
            return at;
        }
    }
    block.len()
}

/// The head as it came over the wire, of one that [`to_block`] wrote.
pub(super) fn restore_head(head: &[u8], http_version: Option<&str>) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = head.split_inclusive(|b| *b == b'\n').collect();
    // The empty line and the length that was added.
    lines.truncate(lines.len().saturating_sub(2));
    let mut restored = Vec::with_capacity(head.len());
    for (n, line) in lines.into_iter().enumerate() {
        let version = http_version.filter(|v| n == 0 && !v.starts_with("HTTP/1"));
        match (version, line.strip_prefix(b"HTTP/1.1")) {
            (Some(version), Some(rest)) => {
                restored.extend(version.as_bytes());
                restored.extend(rest);
            }
            _ => restored.extend(line.strip_prefix(PREFIX).unwrap_or(line)),
        }
    }
    restored.extend(b"\r\n");
    restored
}

/// The value of a header; of several, the last.
pub(super) fn header<'h>(head: &'h [u8], name: &str) -> Option<&'h str> {
    let lines = head
        .split(|b| *b == b'\n')
        .filter_map(|line| std::str::from_utf8(line).ok());
    let mut pairs = lines.filter_map(|line| line.split_once(':'));
    let found = pairs.rfind(|(n, _)| n.trim().eq_ignore_ascii_case(name));
    found.map(|(_, value)| value.trim())
}
