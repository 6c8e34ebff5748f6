//! How a path is compared with a pattern: octet by octet, after both are written the same way.

/// The form in which patterns and paths are compared: unreserved characters stand unescaped, other escapes
/// in capitals, and what is no ASCII is escaped. `*` and `$` stay.
pub(super) fn normalize(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let escaped = (byte == b'%')
            .then(|| escaped_byte(text.get(at + 1..at + 3)?))
            .flatten();
        match escaped {
            Some(value) if value.is_ascii_alphanumeric() || b"-._~".contains(&value) => {
                out.push(value);
                at += 3;
            }
            Some(value) => {
                out.extend_from_slice(format!("%{value:02X}").as_bytes());
                at += 3;
            }
            None if byte.is_ascii_graphic() => {
                out.push(byte);
                at += 1;
            }
            None => {
                out.extend_from_slice(format!("%{byte:02X}").as_bytes());
                at += 1;
            }
        }
    }
    out
}

fn escaped_byte(digits: &[u8]) -> Option<u8> {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Whether a path begins with what the pattern says. `*` stands for any octets; a `$` at the end of the
/// pattern for the end of the path, elsewhere for itself.
///
/// Each part between two stars is sought once, from left to right: no pattern costs more than its length
/// times that of the path.
pub(super) fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let (pattern, is_anchored) = match pattern.strip_suffix(b"$") {
        Some(rest) => (rest, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split(|b| *b == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&[u8]> = parts.collect();
    let last = if is_anchored { parts.pop() } else { None };
    for part in parts {
        match memchr::memmem::find(rest, part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    match (is_anchored, last) {
        (false, _) => true,
        (true, Some(last)) => rest.ends_with(last),
        (true, None) => rest.is_empty(),
    }
}
