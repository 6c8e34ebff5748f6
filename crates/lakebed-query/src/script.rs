//! A text of several statements, cut at its semicolons.
//!
//! The engine's own tokenizer decides what a semicolon is: one in a text, a quoted name or a comment
//! ends nothing. What does not belong here: parsing, running.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

/// A text, cut into its statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script<'a> {
    /// Statements that a semicolon ends, without it; empty ones are left out.
    pub statements: Vec<&'a str>,
    /// What comes after the last semicolon.
    pub rest: &'a str,
    /// What the rest is.
    pub rest_is: Rest,
}

/// What comes after the last semicolon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// Blanks and comments.
    Nothing,
    /// A statement without its semicolon.
    Begun,
    /// It ends inside a text, a quoted name or a comment.
    Open,
    /// It holds what cannot be read; the parser tells what.
    Unreadable,
}

/// Tokens up to the first that cannot be read, and what that one makes of the rest.
pub(crate) fn read_tokens(text: &str) -> (Vec<TokenWithSpan>, Option<Rest>) {
    let mut tokens = Vec::new();
    let read =
        Tokenizer::new(&GenericDialect {}, text).tokenize_with_location_into_buf(&mut tokens);
    match read {
        Ok(()) => (tokens, None),
        Err(e) => {
            let is_open = e.message.contains("Unterminated") || e.message.contains("EOF");
            (
                tokens,
                Some(if is_open {
                    Rest::Open
                } else {
                    Rest::Unreadable
                }),
            )
        }
    }
}

/// Finds bytes by line and column; asked in rising order, it walks over the text once.
pub(crate) struct Offsets<'a> {
    text: &'a str,
    at: usize,
    line: u64,
    column: u64,
}

impl<'a> Offsets<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            line: 1,
            column: 1,
        }
    }

    /// The byte at which the location lies.
    pub(crate) fn byte(&mut self, location: Location) -> usize {
        while (self.line, self.column) < (location.line, location.column) {
            let Some(c) = self.text[self.at..].chars().next() else {
                break;
            };
            self.at += c.len_utf8();
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.at
    }
}

/// Cuts a text at the semicolons between its statements.
#[must_use]
pub fn split_script(text: &str) -> Script<'_> {
    let (tokens, broken) = read_tokens(text);
    let mut offsets = Offsets::new(text);
    let mut statements = Vec::new();
    let (mut begin, mut says) = (0, false);
    for token in &tokens {
        match token.token {
            Token::SemiColon => {
                let end = offsets.byte(token.span.start);
                if says {
                    statements.push(text[begin..end].trim());
                }
                begin = offsets.byte(token.span.end);
                says = false;
            }
            Token::Whitespace(_) | Token::EOF => {}
            _ => says = true,
        }
    }
    Script {
        statements,
        rest: text[begin..].trim(),
        rest_is: broken.unwrap_or(if says { Rest::Begun } else { Rest::Nothing }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_between_statements_cut() {
        let text =
            "SELECT ';' AS \"a;b\" -- ; no\n; /* ; */ SELECT '熱''搜;', $$;$$;;\n ; SELECT 3";
        let script = split_script(text);
        assert_eq!(
            script.statements,
            [
                "SELECT ';' AS \"a;b\" -- ; no",
                "/* ; */ SELECT '熱''搜;', $$;$$"
            ]
        );
        assert_eq!(script.rest, "SELECT 3");
        assert_eq!(script.rest_is, Rest::Begun);
    }

    #[test]
    fn a_text_without_its_end_is_open() {
        for open in ["SELECT 'a;", "SELECT \"a;", "SELECT 1 /* ;", "SELECT $$;"] {
            let script = split_script(open);
            assert!(script.statements.is_empty(), "{open}");
            assert_eq!(script.rest_is, Rest::Open, "{open}");
            assert_eq!(script.rest, open);
        }
        let comment = split_script("SELECT 1; -- done\n");
        assert_eq!(comment.rest_is, Rest::Nothing);
        assert_eq!(comment.statements, ["SELECT 1"]);
        assert_eq!(split_script("").statements.len(), 0);
    }

    #[test]
    fn what_cannot_be_read_is_left_to_the_parser() {
        let script = split_script("SELECT 1; SELECT U&'\\zzzz';");
        assert_eq!(script.statements, ["SELECT 1"]);
        assert_eq!(script.rest, "SELECT U&'\\zzzz';");
        assert_ne!(script.rest_is, Rest::Nothing);
        assert_ne!(script.rest_is, Rest::Begun);
    }
}
