//! Declared tokens: values that mean NULL, true or false. They match exactly.

use crate::spec::Token;

/// Tokens of one field and meaning.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    texts: Vec<String>,
    /// Number tokens by their own text.
    numbers: Vec<String>,
    /// Those with a fraction, for typed columns, which have no text.
    floats: Vec<f64>,
}

impl Tokens {
    pub(crate) fn new(tokens: &[Token]) -> Self {
        let mut all = Self::default();
        for token in tokens {
            match token {
                Token::Text(t) => all.texts.push(t.clone()),
                Token::Int(n) => all.numbers.push(n.to_string()),
                Token::Float(x) => {
                    all.numbers.push(token.text());
                    all.floats.push(*x);
                }
            }
        }
        all
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.numbers.is_empty()
    }

    /// Whether a text is one of the text tokens.
    #[inline]
    pub(crate) fn has_text(&self, text: &str) -> bool {
        self.texts.iter().any(|t| t == text)
    }

    /// Whether a number, by its own text, is one of the number tokens. (A token that would lose its
    /// text in TOML is refused when the schema is read.)
    #[inline]
    pub(crate) fn has_number(&self, text: &str) -> bool {
        self.numbers.iter().any(|t| t == text)
    }

    /// Whether a cell, which may be either, is a token.
    #[inline]
    pub(crate) fn has_cell(&self, text: &str) -> bool {
        self.has_text(text) || self.has_number(text)
    }

    /// Whether a float of a typed column is one of the number tokens, by value.
    pub(crate) fn has_float(&self, value: f64) -> bool {
        self.floats.contains(&value) || self.numbers.iter().any(|t| t.parse() == Ok(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_match_exactly_and_by_kind() {
        let t = Tokens::new(&[
            Token::Text("N/A".into()),
            Token::Text("0".into()),
            Token::Int(-1),
            Token::Float(9.5),
        ]);
        assert!(t.has_text("N/A") && !t.has_text("n/a") && !t.has_text("N/A "));
        assert!(!t.has_text("-1") && t.has_number("-1") && t.has_cell("-1"));
        assert!(!t.has_number("0") && t.has_cell("0"));
        assert!(!t.has_number("-1.0") && !t.has_number("9.50") && t.has_number("9.5"));
        assert!(t.has_float(-1.0) && t.has_float(9.5));
    }
}
