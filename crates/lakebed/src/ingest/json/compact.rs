//! A checked value written with minimal white space; duplicate keys and NaN inside it are found on
//! the way. Works without recursion, in time near the length of the value.

use std::borrow::Cow;

use crate::ingest::json::scanner::{Scanner, SyntaxError};
use crate::ingest::json::strings::unescaped;
use crate::ingest::raw::{NonFinite, Raw};

/// Why a well-formed value is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactTrouble {
    /// The text is not JSON after all.
    Syntax(SyntaxError),
    /// A key twice in one object.
    Duplicate(String),
    /// NaN or an infinity.
    NonFinite(NonFinite),
}

impl From<SyntaxError> for CompactTrouble {
    fn from(e: SyntaxError) -> Self {
        Self::Syntax(e)
    }
}

/// Up to so many keys are compared pairwise; more are sorted.
const PAIRWISE: usize = 12;

/// A key that stands twice in `keys`; their order is lost.
pub(crate) fn find_duplicate<'k>(keys: &'k mut [Cow<'_, str>]) -> Option<&'k str> {
    if keys.len() <= PAIRWISE {
        let twice = |i: &usize| keys[..*i].contains(&keys[*i]);
        let i = (1..keys.len()).find(twice)?;
        return Some(&keys[i]);
    }
    keys.sort_unstable();
    let i = (1..keys.len()).find(|i| keys[*i] == keys[i - 1])?;
    Some(&keys[i])
}

/// Where an open container began.
struct Open {
    is_object: bool,
    first_key: usize,
}

/// Appends `text`, one JSON value, to `out` with minimal white space: digits, escapes and key order
/// as they are. On trouble `out` holds a part of the value.
pub fn compact_into(text: &str, out: &mut String) -> Result<(), CompactTrouble> {
    let mut scanner = Scanner::new(text);
    let mut open: Vec<Open> = Vec::new();
    let mut keys: Vec<Cow<'_, str>> = Vec::new();
    'value: loop {
        match scanner.skip_space() {
            Some(b'{') => {
                scanner.open_object()?;
                out.push('{');
                open.push(Open {
                    is_object: true,
                    first_key: keys.len(),
                });
                if next_member(&mut scanner, true, &mut keys, out)? {
                    continue 'value;
                }
                out.push('}');
                open.pop();
            }
            Some(b'[') => {
                scanner.open_array()?;
                out.push('[');
                open.push(Open {
                    is_object: false,
                    first_key: keys.len(),
                });
                if scanner.next_element(true)? {
                    continue 'value;
                }
                out.push(']');
                open.pop();
            }
            _ => {
                let start = scanner.offset();
                if let Raw::NonFinite(n) = scanner.value()? {
                    return Err(CompactTrouble::NonFinite(n));
                }
                out.push_str(&text[start..scanner.offset()]);
            }
        }
        while let Some(container) = open.last() {
            if container.is_object {
                if next_member(&mut scanner, false, &mut keys, out)? {
                    continue 'value;
                }
                out.push('}');
                if let Some(key) = find_duplicate(&mut keys[container.first_key..]) {
                    return Err(CompactTrouble::Duplicate(key.to_owned()));
                }
                keys.truncate(container.first_key);
            } else {
                if scanner.next_element(false)? {
                    out.push(',');
                    continue 'value;
                }
                out.push(']');
            }
            open.pop();
        }
        break;
    }
    if scanner.skip_space().is_some() {
        return Err(CompactTrouble::Syntax(SyntaxError {
            at: scanner.offset(),
            what: "expected the end of the value",
        }));
    }
    Ok(())
}

fn next_member<'a>(
    scanner: &mut Scanner<'a>,
    first: bool,
    keys: &mut Vec<Cow<'a, str>>,
    out: &mut String,
) -> Result<bool, SyntaxError> {
    let Some(key) = scanner.next_key(first)? else {
        return Ok(false);
    };
    if !first {
        out.push(',');
    }
    out.push('"');
    out.push_str(key.body);
    out.push_str("\":");
    keys.push(unescaped(key.body, key.escaped));
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compact(text: &str) -> Result<String, CompactTrouble> {
        let mut out = String::new();
        compact_into(text, &mut out).map(|()| out)
    }

    #[test]
    fn white_space_goes_and_all_else_stays() {
        for (given, wanted) in [
            (
                " { \"b\" : 1.10 ,\n\"a\": [ 1 , 2.50 , \"x y\" ] } ",
                r#"{"b":1.10,"a":[1,2.50,"x y"]}"#,
            ),
            ("[ ]", "[]"),
            ("[{ },[ ] , null,true]", "[{},[],null,true]"),
            (r#""\u00e9 \/""#, r#""\u00e9 \/""#),
            ("-0.0E+10", "-0.0E+10"),
            ("12345678901234567890", "12345678901234567890"),
        ] {
            assert_eq!(compact(given).unwrap(), wanted);
        }
    }

    #[test]
    fn duplicates_are_found_at_any_depth_after_unescaping() {
        let twice = |key: &str| Err(CompactTrouble::Duplicate(key.to_owned()));
        assert_eq!(compact(r#"{"a":1,"\u0061":1}"#), twice("a"));
        assert_eq!(compact(r#"[[{"x":{"k":1,"l":2,"k":1}}]]"#), twice("k"));
        assert!(compact(r#"{"a":{"a":{"a":1}},"b":{"a":1}}"#).is_ok());
        let many = |last: &str| {
            let all: Vec<String> = (0..1000).map(|i| format!("\"k{i}\":{i}")).collect();
            format!("{{{},\"{last}\":0}}", all.join(","))
        };
        assert_eq!(compact(&many("k500")), twice("k500"));
        assert!(compact(&many("k1000")).is_ok());
    }

    #[test]
    fn nan_inside_is_found() {
        let nan = CompactTrouble::NonFinite(NonFinite::NegInfinity);
        assert_eq!(compact("[1,{\"a\":-Infinity}]"), Err(nan));
        assert!(matches!(compact("1 2"), Err(CompactTrouble::Syntax(_))));
        assert!(matches!(compact(""), Err(CompactTrouble::Syntax(_))));
    }

    #[test]
    fn depth_is_no_trouble() {
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(compact(&deep).unwrap(), deep);
        let deep = format!("{}1{}", "{\"a\":".repeat(300_000), "}".repeat(300_000));
        assert_eq!(compact(&deep).unwrap(), deep);
    }
}
