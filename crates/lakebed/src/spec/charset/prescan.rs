//! Looks for the encoding that a page declares in its own first bytes: the algorithm "prescan a byte stream
//! to determine its encoding" of the HTML standard, and the declaration of XML.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// How far it looks, as the standard says.
const PRESCAN_BYTES: usize = 1024;

/// The encoding that an HTML page declares.
pub(super) fn html(body: &[u8]) -> Option<&'static Encoding> {
    let bytes = &body[..body.len().min(PRESCAN_BYTES)];
    if let Some(encoding) = xml(body) {
        return Some(encoding);
    }
    let mut scan = Scan { bytes, at: 0 };
    while scan.at < bytes.len() {
        let rest = &bytes[scan.at..];
        if rest.starts_with(b"<!--") {
            // The two hyphens of the end may be those of the beginning.
            let end = memchr::memmem::find(&rest[2..], b"-->")?;
            scan.at += 2 + end + 3;
        } else if starts_meta(rest) {
            scan.at += 5;
            if let Some(encoding) = scan.meta() {
                return Some(encoding);
            }
        } else if starts_tag(rest) {
            scan.skip_until(|b| b.is_ascii_whitespace() || b == b'>');
            while scan.attribute().is_some() {}
            scan.at += 1;
        } else if rest.starts_with(b"<!") || rest.starts_with(b"</") || rest.starts_with(b"<?") {
            scan.skip_until(|b| b == b'>');
            scan.at += 1;
        } else {
            scan.at += 1;
        }
    }
    None
}

fn starts_meta(rest: &[u8]) -> bool {
    rest.len() > 5
        && rest[..5].eq_ignore_ascii_case(b"<meta")
        && (rest[5].is_ascii_whitespace() || rest[5] == b'/')
}

fn starts_tag(rest: &[u8]) -> bool {
    let name = match rest {
        [b'<', b'/', name, ..] | [b'<', name, ..] => name,
        _ => return false,
    };
    name.is_ascii_alphabetic()
}

/// The encoding that an XML declaration names.
pub(super) fn xml(body: &[u8]) -> Option<&'static Encoding> {
    let bytes = &body[..body.len().min(PRESCAN_BYTES)];
    if bytes.starts_with(&[b'<', 0, b'?', 0]) {
        return Some(UTF_16LE);
    }
    if bytes.starts_with(&[0, b'<', 0, b'?']) {
        return Some(UTF_16BE);
    }
    let declaration = bytes.strip_prefix(b"<?xml")?;
    let end = memchr::memchr(b'>', declaration)?;
    let declaration = &declaration[..end];
    let at = memchr::memmem::find(declaration, b"encoding")? + b"encoding".len();
    let value = declaration[at..]
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let (quote, value) = value.split_first()?;
    let end = memchr::memchr(*quote, value).filter(|_| matches!(quote, b'"' | b'\''))?;
    Encoding::for_label(&value[..end]).map(readable_as_ascii)
}

/// A declaration that could be read cannot be true if it says UTF-16.
fn readable_as_ascii(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == UTF_16BE || encoding == UTF_16LE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    }
}

struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Name and value of an attribute, in small letters.
type Attribute = (Vec<u8>, Vec<u8>);

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_until(&mut self, stop: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(|b| !stop(b)) {
            self.at += 1;
        }
    }

    /// The encoding of a `meta` element whose attributes begin here.
    fn meta(&mut self) -> Option<&'static Encoding> {
        let (mut seen, mut has_pragma, mut needs_pragma) = (Vec::<Vec<u8>>::new(), false, None);
        let mut charset = None;
        while let Some((name, value)) = self.attribute() {
            if seen.contains(&name) {
                continue;
            }
            match name.as_slice() {
                b"http-equiv" => has_pragma |= value == b"content-type",
                b"content" if charset.is_none() => {
                    if let Some(encoding) = from_content(&value) {
                        charset = Some(encoding);
                        needs_pragma = Some(true);
                    }
                }
                b"charset" => {
                    charset = Encoding::for_label(&value);
                    needs_pragma = Some(false);
                }
                _ => {}
            }
            seen.push(name);
        }
        let usable = match needs_pragma {
            Some(true) => has_pragma,
            Some(false) => true,
            None => false,
        };
        charset.filter(|_| usable).map(readable_as_ascii)
    }

    /// The next attribute of a tag; `None` at its end.
    fn attribute(&mut self) -> Option<Attribute> {
        self.skip_until(|b| !b.is_ascii_whitespace() && b != b'/');
        if self.peek()? == b'>' {
            return None;
        }
        let mut name = Vec::new();
        loop {
            match self.peek()? {
                b'=' if !name.is_empty() => break,
                b'/' | b'>' => return Some((name, Vec::new())),
                b if b.is_ascii_whitespace() => {
                    self.skip_until(|b| !b.is_ascii_whitespace());
                    if self.peek()? != b'=' {
                        return Some((name, Vec::new()));
                    }
                    break;
                }
                b => name.push(b.to_ascii_lowercase()),
            }
            self.at += 1;
        }
        self.at += 1;
        self.skip_until(|b| !b.is_ascii_whitespace());
        let quote = self.peek()?;
        let mut value = Vec::new();
        if quote == b'"' || quote == b'\'' {
            self.at += 1;
            while self.peek()? != quote {
                value.push(self.peek()?.to_ascii_lowercase());
                self.at += 1;
            }
            self.at += 1;
            return Some((name, value));
        }
        while !matches!(self.peek()?, b'>') && !self.peek()?.is_ascii_whitespace() {
            value.push(self.peek()?.to_ascii_lowercase());
            self.at += 1;
        }
        Some((name, value))
    }
}

/// The encoding in the value of a `content` attribute, such as `text/html; charset=big5`.
fn from_content(value: &[u8]) -> Option<&'static Encoding> {
    let mut rest = value;
    loop {
        let at = memchr::memmem::find(rest, b"charset")? + b"charset".len();
        rest = rest[at..].trim_ascii_start();
        if let Some(after) = rest.strip_prefix(b"=") {
            rest = after.trim_ascii_start();
            break;
        }
    }
    let label = match rest.first()? {
        quote @ (b'"' | b'\'') => {
            let inner = &rest[1..];
            &inner[..memchr::memchr(*quote, inner)?]
        }
        _ => {
            let end = rest
                .iter()
                .position(|b| b.is_ascii_whitespace() || *b == b';');
            &rest[..end.unwrap_or(rest.len())]
        }
    };
    Encoding::for_label(label)
}
