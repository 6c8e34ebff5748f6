//! Lone surrogates in a text that is kept as it is written: no reader could make a character of them,
//! and some refuse the whole file for one.

use crate::ingest::json::strings::{Unescaped, hex4};

const REPLACEMENT: &str = "fffd";

/// Replaces the escapes of lone surrogates in a checked JSON text by that of U+FFFD; all else stays as
/// it is written. Answers how many there were, and how many NUL characters.
pub(crate) fn mend_surrogates(text: &mut String) -> Unescaped {
    let mut met = Unescaped::default();
    let mut lone = Vec::new();
    let bytes = text.as_bytes();
    let unit = |at: usize| {
        let escape = bytes.get(at..at + 6)?;
        escape.strip_prefix(b"\\u").and_then(hex4)
    };
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', bytes.get(at..).unwrap_or_default()) {
        let escape = at + found;
        at = escape + 2;
        match unit(escape) {
            Some(0xd800..=0xdbff) if matches!(unit(escape + 6), Some(0xdc00..=0xdfff)) => {
                at = escape + 12;
            }
            Some(0xd800..=0xdfff) => lone.push(escape + 2),
            Some(0) => met.nuls += 1,
            Some(_) | None => {}
        }
    }
    for digits in lone {
        met.lone_surrogates += 1;
        text.replace_range(digits..digits + REPLACEMENT.len(), REPLACEMENT);
    }
    met
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_alone_change() {
        for (given, wanted, lone) in [
            (r#"{"a":"x\ud83d"}"#, r#"{"a":"x\ufffd"}"#, 1),
            (r#"{"\udE00":1}"#, r#"{"\ufffd":1}"#, 1),
            (r#"["\ud83d\ude00"]"#, r#"["\ud83d\ude00"]"#, 0),
            (r#"["\ud83d\ud83d\ude00"]"#, r#"["\ufffd\ud83d\ude00"]"#, 1),
            (r#"["\\ud83d","\\\ud83d"]"#, r#"["\\ud83d","\\\ufffd"]"#, 1),
            (r#"["\n\u6E56 湖"]"#, r#"["\n\u6E56 湖"]"#, 0),
        ] {
            let mut text = given.to_owned();
            assert_eq!(mend_surrogates(&mut text).lone_surrogates, lone, "{given}");
            assert_eq!(text, wanted);
        }
        assert_eq!(mend_surrogates(&mut r#"["\u0000"]"#.to_owned()).nuls, 1);
    }
}
