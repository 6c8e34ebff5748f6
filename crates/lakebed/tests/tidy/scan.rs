//! A scanner of Rust source that tells code from comments, strings and characters.
//!
//! It knows just enough of the language for the rules: it never parses, it only makes sure that a
//! brace in a string or a `crate::` in a comment is not taken for code.

/// An identifier or a single other character of code, with its line from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

impl Token {
    pub(crate) fn is(&self, text: &str) -> bool {
        self.text == text
    }

    pub(crate) fn is_name(&self) -> bool {
        self.text.starts_with(is_name_start)
    }
}

fn is_name_start(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn is_name_part(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    line: usize,
}

/// The tokens of code in `source`; comments, texts, characters and lifetimes give none.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let mut scanner = Scanner {
        chars: source.chars().collect(),
        at: 0,
        line: 1,
    };
    let mut found = Vec::new();
    while let Some(c) = scanner.peek(0) {
        if c == '/' && scanner.peek(1) == Some('/') {
            scanner.skip_line();
        } else if c == '/' && scanner.peek(1) == Some('*') {
            scanner.skip_block_comment();
        } else if c == '"' {
            scanner.skip_text();
        } else if c == '\'' {
            scanner.skip_character_or_lifetime();
        } else if c.is_numeric() {
            scanner.skip_number();
        } else if is_name_start(c) {
            found.extend(scanner.name());
        } else {
            let line = scanner.line;
            scanner.step();
            if !c.is_whitespace() {
                found.push(Token {
                    text: c.to_string(),
                    line,
                });
            }
        }
    }
    found
}

impl Scanner {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn step(&mut self) {
        if self.peek(0) == Some('\n') {
            self.line += 1;
        }
        self.at += 1;
    }

    fn skip_line(&mut self) {
        while self.peek(0).is_some_and(|c| c != '\n') {
            self.step();
        }
    }

    fn skip_block_comment(&mut self) {
        let mut depth = 0;
        while let Some(c) = self.peek(0) {
            let next = self.peek(1);
            if c == '/' && next == Some('*') {
                depth += 1;
                self.step();
            } else if c == '*' && next == Some('/') {
                depth -= 1;
                self.step();
            }
            self.step();
            if depth == 0 {
                return;
            }
        }
    }

    fn skip_text(&mut self) {
        self.step();
        while let Some(c) = self.peek(0) {
            self.step();
            match c {
                '\\' => self.step(),
                '"' => return,
                _ => {}
            }
        }
    }

    fn skip_raw_text(&mut self, hashes: usize) {
        for _ in 0..=hashes {
            self.step();
        }
        while let Some(c) = self.peek(0) {
            self.step();
            if c == '"' && (0..hashes).all(|i| self.peek(i) == Some('#')) {
                for _ in 0..hashes {
                    self.step();
                }
                return;
            }
        }
    }

    fn skip_character_or_lifetime(&mut self) {
        self.step();
        if self.peek(0) == Some('\\') {
            self.step();
            self.step();
            while self.peek(0).is_some_and(|c| c != '\'') {
                self.step();
            }
            self.step();
        } else if self.peek(1) == Some('\'') {
            self.step();
            self.step();
        } else {
            while self.peek(0).is_some_and(is_name_part) {
                self.step();
            }
        }
    }

    fn skip_number(&mut self) {
        while self.peek(0).is_some_and(is_name_part) {
            self.step();
        }
    }

    /// The name here; `None` when it is the prefix of a text or a character.
    fn name(&mut self) -> Option<Token> {
        let (start, line) = (self.at, self.line);
        while self.peek(0).is_some_and(is_name_part) {
            self.step();
        }
        let text: String = self.chars[start..self.at].iter().collect();
        let hashes = (0..).take_while(|i| self.peek(*i) == Some('#')).count();
        let quoted = self.peek(hashes) == Some('"');
        match text.as_str() {
            "r" | "br" | "cr" if quoted => {
                self.skip_raw_text(hashes);
                None
            }
            "b" | "c" if quoted && hashes == 0 => {
                self.skip_text();
                None
            }
            "b" if self.peek(0) == Some('\'') => {
                self.skip_character_or_lifetime();
                None
            }
            // `r#type` is the name `type`, which the next round reads.
            "r" if hashes == 1 => {
                self.step();
                None
            }
            _ => Some(Token { text, line }),
        }
    }
}

/// Index of the bracket that closes the one at `open`; the last token when none does.
pub(crate) fn closing(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0_usize;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return i;
                }
            }
            _ => {}
        }
    }
    tokens.len().saturating_sub(1)
}

/// Whether the tokens from `at` on read `texts`.
pub(crate) fn reads(tokens: &[Token], at: usize, texts: &[&str]) -> bool {
    texts
        .iter()
        .enumerate()
        .all(|(i, text)| tokens.get(at + i).is_some_and(|t| t.is(text)))
}

/// A `#[cfg(test)] mod name` with the range of its tokens; the body is absent for `mod name;`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TestModule {
    pub(crate) name: String,
    pub(crate) first: usize,
    pub(crate) last: usize,
    pub(crate) inline: bool,
}

/// Every test module of a file.
pub(crate) fn test_modules(tokens: &[Token]) -> Vec<TestModule> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !reads(tokens, at, &["#", "[", "cfg", "(", "test", ")", "]"]) {
            at += 1;
            continue;
        }
        let first = at;
        at += 7;
        // Further attributes and a visibility may stand between.
        while reads(tokens, at, &["#", "["]) {
            at = closing(tokens, at + 1) + 1;
        }
        if reads(tokens, at, &["pub"]) {
            at += 1;
            if reads(tokens, at, &["("]) {
                at = closing(tokens, at) + 1;
            }
        }
        if !reads(tokens, at, &["mod"]) {
            continue;
        }
        let Some(name) = tokens.get(at + 1) else {
            break;
        };
        let inline = reads(tokens, at + 2, &["{"]);
        let last = if inline {
            closing(tokens, at + 2)
        } else {
            at + 2
        };
        found.push(TestModule {
            name: name.text.clone(),
            first,
            last,
            inline,
        });
        at = last + 1;
    }
    found
}

/// The tokens outside test modules.
pub(crate) fn production(tokens: &[Token]) -> Vec<Token> {
    let tests = test_modules(tokens);
    tokens
        .iter()
        .enumerate()
        .filter(|(i, _)| !tests.iter().any(|t| (t.first..=t.last).contains(i)))
        .map(|(_, token)| token.clone())
        .collect()
}

#[test]
fn code_is_told_from_texts_and_comments() {
    let source = r####"
// crate::line { '"
/* crate::block /* nested { */ still " */
let a = "crate::text { \" }";
let b = r##"raw " }"# { "##;
let c = ['{', '\'', '\u{7d}', b'}', b'\\'];
let d = b"bytes }" ; let e = br#"raw }"#; let f = c"text }";
fn g<'life>(x: &'life str) -> 'life {}
let r#type = 0x7b_u8 + 1.5e3;
"####;
    let found = tokens(source);
    let text: Vec<&str> = found.iter().map(|t| t.text.as_str()).collect();
    assert!(!text.contains(&"crate"), "{text:?}");
    let count = |wanted: &str| text.iter().filter(|t| **t == wanted).count();
    assert_eq!((count("{"), count("}")), (1, 1), "{text:?}");
    assert_eq!(count("let"), 7);
    assert_eq!(count("type"), 1);
    let g = found.iter().find(|t| t.is("g")).unwrap();
    assert_eq!(g.line, 8);
}

#[test]
fn test_modules_are_found_with_their_bodies() {
    let source = "fn a() {}\n#[cfg(test)]\n#[allow(x)]\npub(crate) mod tests {\n fn b() { let s = \"}\"; }\n}\n#[cfg(test)]\nmod suite;\n#[cfg(test)]\nfn c() {}\nfn d() {}";
    let found = tokens(source);
    let modules = test_modules(&found);
    let names: Vec<_> = modules
        .iter()
        .map(|m| (m.name.as_str(), m.inline))
        .collect();
    assert_eq!(names, [("tests", true), ("suite", false)]);
    let left: Vec<_> = production(&found)
        .into_iter()
        .filter(|t| t.text.len() == 1 && t.is_name())
        .map(|t| t.text)
        .collect();
    assert_eq!(left, ["a", "c", "d"]);
}
