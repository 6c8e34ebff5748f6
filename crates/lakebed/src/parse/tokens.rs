//! The text of a page as the tokens of HTML: what pages are made of is read here, all else by the tokenizer of
//! html5ever.
//!
//! ```text
//! text, character references, tags, the inside of script, style, title, textarea    -> here
//! comments, doctypes, CDATA, escaped scripts, what ends in the middle, NUL           -> html5ever, for that piece
//!                                        both -> TreeBuilder of html5ever -> sink
//! ```
//! The tokenizer of html5ever looks at each character through cells and queues, for pages that come in pieces. A page
//! that is whole can be cut at `<` and `&`.
//!
//! PRS-5: the tree is that of html5ever, to which the tests compare it; how text is cut into tokens is no matter of it. Two
//! things are as the standard says, and not as there: a `U+FEFF` behind a script stays, and the line feed that begins a
//! `pre` goes, however it is written.

use std::borrow::Cow;
use std::cell::Cell;

use html5ever::data::{C1_REPLACEMENTS, NAMED_ENTITIES};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::{RawKind, State};
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use html5ever::tree_builder::{TreeBuilder, TreeSink};
use html5ever::{Attribute, LocalName, QualName, TokenizerResult, ns};

/// Longest name of a character reference, and more.
const MAX_NAME_BYTES: usize = 40;

/// Feeds the whole text of a page to the builder; `check` is asked after each tag whether to go on.
pub(super) fn feed<Sink: TreeSink, E>(
    text: &str,
    builder: &TreeBuilder<Sink::Handle, Sink>,
    check: impl Fn() -> Result<(), E>,
) -> Result<(), E> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines: Cow<'_, str> = match memchr::memchr(b'\r', text.as_bytes()) {
        Some(_) => text.replace("\r\n", "\n").replace('\r', "\n").into(),
        None => text.into(),
    };
    let mut feeder = Feeder {
        whole: StrTendril::from_slice(&lines),
        text: &lines,
        at: 0,
        builder,
        check,
    };
    let has_nul = memchr::memchr(0, lines.as_bytes()).is_some();
    while has_nul && feeder.at < lines.len() {
        if feeder.leave(None, None)? {
            return Ok(());
        }
    }
    feeder.run()
}

struct Feeder<'t, Sink: TreeSink, Check> {
    text: &'t str,
    /// The same, for tokens that share its bytes.
    whole: StrTendril,
    /// How far it was read.
    at: usize,
    builder: &'t TreeBuilder<Sink::Handle, Sink>,
    check: Check,
}

/// Whether the text has ended, and the builder was told so.
type Ended = bool;

impl<Sink: TreeSink, E, Check: Fn() -> Result<(), E>> Feeder<'_, Sink, Check> {
    fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    fn run(&mut self) -> Result<(), E> {
        while let Some(n) = memchr::memchr2(b'<', b'&', &self.bytes()[self.at..]) {
            self.emit_to(self.at + n);
            let is_ended = match self.bytes()[self.at] {
                b'&' => {
                    self.reference(self.text.len());
                    false
                }
                _ => self.markup()?,
            };
            if is_ended {
                return Ok(());
            }
        }
        self.emit_to(self.text.len());
        let _ended = self.builder.process_token(Token::EOFToken, 1);
        self.builder.end();
        Ok(())
    }

    /// The text up to there as a token.
    fn emit_to(&mut self, end: usize) {
        if end > self.at {
            let text = self.part(self.at, end);
            let _goes_on = self.builder.process_token(Token::CharacterTokens(text), 1);
            self.at = end;
        }
    }

    fn part(&self, from: usize, to: usize) -> StrTendril {
        let offset = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        self.whole
            .try_subtendril(offset(from), offset(to - from))
            .unwrap_or_else(|_| StrTendril::from_slice(&self.text[from..to]))
    }

    /// What begins with `<`.
    fn markup(&mut self) -> Result<Ended, E> {
        let bytes = self.bytes();
        let second = bytes.get(self.at + 1).copied().unwrap_or(b' ');
        let (kind, name_at) = match second {
            b'/' => (TagKind::EndTag, self.at + 2),
            _ => (TagKind::StartTag, self.at + 1),
        };
        let is_tag = bytes.get(name_at).is_some_and(u8::is_ascii_alphabetic);
        if is_tag {
            return match self.tag(kind, name_at) {
                Some((tag, end)) => {
                    self.at = end;
                    self.emit_tag(tag)
                }
                None => self.leave(None, None),
            };
        }
        if matches!(second, b'!' | b'?' | b'/') {
            return self.leave(None, None);
        }
        self.emit_to(self.at + 1);
        Ok(false)
    }

    fn emit_tag(&mut self, tag: Tag) -> Result<Ended, E> {
        let name = tag.name.clone();
        let next = self.builder.process_token(Token::TagToken(tag), 1);
        (self.check)()?;
        match next {
            TokenSinkResult::Continue
            | TokenSinkResult::Script(_)
            | TokenSinkResult::EncodingIndicator(_) => Ok(false),
            TokenSinkResult::Plaintext => {
                self.emit_to(self.text.len());
                Ok(false)
            }
            TokenSinkResult::RawData(kind) => self.raw(kind, &name),
        }
    }

    /// The inside of an element whose text ends with its end tag alone.
    fn raw(&mut self, kind: RawKind, name: &str) -> Result<Ended, E> {
        let end = self.end_of_raw(name);
        let inside = &self.text[self.at..end];
        match kind {
            RawKind::Rcdata => {
                while let Some(n) = memchr::memchr(b'&', &self.bytes()[self.at..end]) {
                    self.emit_to(self.at + n);
                    self.reference(end);
                }
            }
            RawKind::Rawtext => {}
            RawKind::ScriptData if !inside.contains("<!--") => {}
            RawKind::ScriptData | RawKind::ScriptDataEscaped(_) => {
                return self.leave(Some(State::RawData(kind)), Some(name.to_owned()));
            }
        }
        self.emit_to(end);
        Ok(false)
    }

    /// Where the end tag of that name begins; the end of the text where there is none.
    fn end_of_raw(&self, name: &str) -> usize {
        let bytes = self.bytes();
        let mut from = self.at;
        while let Some(n) = memchr::memchr(b'<', &bytes[from..]) {
            let at = from + n;
            let behind = at + 2 + name.len();
            let is_end = bytes.get(at + 1) == Some(&b'/')
                && bytes
                    .get(at + 2..behind)
                    .is_some_and(|b| b.eq_ignore_ascii_case(name.as_bytes()))
                && bytes
                    .get(behind)
                    .is_some_and(|b| is_space(*b) || matches!(b, b'/' | b'>'));
            if is_end {
                return at;
            }
            from = at + 1;
        }
        bytes.len()
    }

    /// The tag whose name begins there, and where the text goes on; `None` where the text ends before.
    fn tag(&self, kind: TagKind, name_at: usize) -> Option<(Tag, usize)> {
        let bytes = self.bytes();
        let mut at = name_at
            + find(&bytes[name_at..], |b| {
                is_space(b) || matches!(b, b'/' | b'>')
            })?;
        let mut tag = Tag {
            kind,
            name: local_name(&self.text[name_at..at]),
            self_closing: false,
            attrs: Vec::new(),
            had_duplicate_attributes: false,
        };
        loop {
            at += find(&bytes[at..], |b| !is_space(b))?;
            match bytes[at] {
                b'>' => return Some((tag, at + 1)),
                b'/' => {
                    at += 1;
                    if *bytes.get(at)? == b'>' {
                        tag.self_closing = true;
                        return Some((tag, at + 1));
                    }
                }
                _ => at = self.attribute(at, &mut tag)?,
            }
        }
    }

    /// The attribute that begins there; answers where the text goes on.
    fn attribute(&self, begin: usize, tag: &mut Tag) -> Option<usize> {
        let bytes = self.bytes();
        // A name may begin with `=`.
        let is_end = |b| is_space(b) || matches!(b, b'/' | b'>' | b'=');
        let mut at = begin + 1 + find(&bytes[begin + 1..], is_end)?;
        let name = local_name(&self.text[begin..at]);
        let behind = at + find(&bytes[at..], |b| !is_space(b))?;
        let mut value = StrTendril::new();
        if bytes[behind] == b'=' {
            at = behind + 1;
            at += find(&bytes[at..], |b| !is_space(b))?;
            match bytes[at] {
                quote @ (b'"' | b'\'') => {
                    let end = at + 1 + memchr::memchr(quote, &bytes[at + 1..])?;
                    value = self.value(at + 1, end);
                    at = end + 1;
                }
                b'>' => {}
                _ => {
                    let end = at + find(&bytes[at..], |b| is_space(b) || b == b'>')?;
                    value = self.value(at, end);
                    at = end;
                }
            }
        }
        match tag.attrs.iter().any(|a| a.name.local == name) {
            true => tag.had_duplicate_attributes = true,
            false => tag.attrs.push(Attribute {
                name: QualName::new(None, ns!(), name),
                value,
            }),
        }
        Some(at)
    }

    /// The value of an attribute, its references resolved.
    fn value(&self, from: usize, to: usize) -> StrTendril {
        let text = &self.text[from..to];
        if memchr::memchr(b'&', text.as_bytes()).is_none() {
            return self.part(from, to);
        }
        let mut value = StrTendril::new();
        let mut rest = text;
        while let Some(n) = memchr::memchr(b'&', rest.as_bytes()) {
            value.push_slice(&rest[..n]);
            let (found, used) = read_reference(&rest[n..], true);
            found.push_to(&mut value);
            rest = &rest[n + used..];
        }
        value.push_slice(rest);
        value
    }

    /// The reference that begins here, as text; nothing beyond `end` belongs to it.
    fn reference(&mut self, end: usize) {
        let (found, used) = read_reference(&self.text[self.at..end], false);
        let mut text = StrTendril::new();
        found.push_to(&mut text);
        let _goes_on = self.builder.process_token(Token::CharacterTokens(text), 1);
        self.at += used;
    }

    /// Leaves what follows to html5ever, until it is between tags again.
    fn leave(&mut self, state: Option<State>, last: Option<String>) -> Result<Ended, E> {
        let between = Cell::new(false);
        let sink = Watched {
            builder: self.builder,
            between: &between,
        };
        let options = TokenizerOpts {
            initial_state: state,
            last_start_tag_name: last,
            discard_bom: false,
            ..TokenizerOpts::default()
        };
        let tokenizer = Tokenizer::new(sink, options);
        let queue = BufferQueue::default();
        while self.at < self.text.len() {
            let next = memchr::memchr(b'>', &self.bytes()[self.at..]);
            let end = next.map_or(self.text.len(), |n| self.at + n + 1);
            between.set(false);
            queue.push_back(self.part(self.at, end));
            // A script that has ended stops it; nothing is run here.
            while !matches!(tokenizer.feed(&queue), TokenizerResult::Done) {}
            self.at = end;
            (self.check)()?;
            if next.is_some() && between.get() {
                return Ok(false);
            }
        }
        tokenizer.end();
        Ok(true)
    }
}

/// Hands tokens on, and notes whether the last one leaves the tokenizer between tags.
struct Watched<'t, Sink: TreeSink> {
    builder: &'t TreeBuilder<Sink::Handle, Sink>,
    between: &'t Cell<bool>,
}

impl<Sink: TreeSink> TokenSink for Watched<'_, Sink> {
    type Handle = Sink::Handle;

    fn process_token(&self, token: Token, line: u64) -> TokenSinkResult<Sink::Handle> {
        let ends_with_tag = match &token {
            Token::TagToken(_) | Token::CommentToken(_) | Token::DoctypeToken(_) => Some(true),
            Token::CharacterTokens(_) | Token::NullCharacterToken | Token::EOFToken => Some(false),
            Token::ParseError(_) => None,
        };
        let next = self.builder.process_token(token, line);
        let is_plain = !matches!(
            next,
            TokenSinkResult::RawData(_) | TokenSinkResult::Plaintext
        );
        if let Some(ends) = ends_with_tag {
            self.between.set(ends && is_plain);
        }
        next
    }

    fn end(&self) {
        self.builder.end();
    }

    fn adjusted_current_node_present_but_not_in_html_namespace(&self) -> bool {
        self.builder
            .adjusted_current_node_present_but_not_in_html_namespace()
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b' ')
}

fn find(bytes: &[u8], is: impl Fn(u8) -> bool) -> Option<usize> {
    bytes.iter().position(|b| is(*b))
}

fn local_name(text: &str) -> LocalName {
    match text.bytes().any(|b| b.is_ascii_uppercase()) {
        true => LocalName::from(text.to_ascii_lowercase()),
        false => LocalName::from(text),
    }
}

/// What a reference stands for.
enum Reference {
    /// Itself: it is none.
    Ampersand,
    Char(char),
    Named(u32, u32),
}

impl Reference {
    fn push_to(&self, text: &mut StrTendril) {
        let code = |n: u32| char::from_u32(n).unwrap_or('\u{fffd}');
        match self {
            Self::Ampersand => text.push_char('&'),
            Self::Char(c) => text.push_char(*c),
            Self::Named(first, second) => {
                text.push_char(code(*first));
                if *second != 0 {
                    text.push_char(code(*second));
                }
            }
        }
    }
}

/// The reference at the beginning of the text, which is a `&`, and how many bytes belong to it.
fn read_reference(text: &str, in_attribute: bool) -> (Reference, usize) {
    let bytes = text.as_bytes();
    match bytes.get(1) {
        Some(b'#') => read_number(bytes).unwrap_or((Reference::Ampersand, 1)),
        Some(b) if b.is_ascii_alphanumeric() => {
            read_name(text, in_attribute).unwrap_or((Reference::Ampersand, 1))
        }
        _ => (Reference::Ampersand, 1),
    }
}

/// `&#` and what follows.
fn read_number(bytes: &[u8]) -> Option<(Reference, usize)> {
    let (base, begin) = match bytes.get(2) {
        Some(b'x' | b'X') => (16, 3),
        _ => (10, 2),
    };
    let mut number = 0_u32;
    let mut at = begin;
    while let Some(digit) = bytes.get(at).and_then(|b| char::from(*b).to_digit(base)) {
        number = number.saturating_mul(base).saturating_add(digit);
        at += 1;
    }
    if at == begin {
        return None;
    }
    let replaced = number.checked_sub(0x80).and_then(|n| {
        let n = usize::try_from(n).ok()?;
        C1_REPLACEMENTS.get(n).copied().flatten()
    });
    let c = match (number, replaced) {
        (0, _) => '\u{fffd}',
        (_, Some(c)) => c,
        (n, None) => char::from_u32(n).unwrap_or('\u{fffd}'),
    };
    let has_end = bytes.get(at) == Some(&b';');
    Some((Reference::Char(c), at + usize::from(has_end)))
}

/// `&` and a name: the longest one that is known.
fn read_name(text: &str, in_attribute: bool) -> Option<(Reference, usize)> {
    let bytes = text.as_bytes();
    let mut longest = None;
    for end in 2..=bytes.len().min(MAX_NAME_BYTES) {
        if !(bytes[end - 1].is_ascii_alphanumeric() || bytes[end - 1] == b';') {
            break;
        }
        match NAMED_ENTITIES.get(&text[1..end]) {
            Some((0, _)) => {}
            Some((first, second)) => longest = Some((Reference::Named(*first, *second), end)),
            None => break,
        }
    }
    let (found, end) = longest?;
    let is_open = bytes[end - 1] != b';';
    let next = bytes.get(end);
    let goes_on = next.is_some_and(|b| *b == b'=' || b.is_ascii_alphanumeric());
    // Addresses have such parameters: `?a=1&copy=2`.
    (!(in_attribute && is_open && goes_on)).then_some((found, end))
}

#[cfg(test)]
mod tests {
    use html5ever::tree_builder::TreeBuilderOpts;
    use proptest::prelude::*;
    use scraper::{Html, HtmlTreeSink};

    use super::*;

    /// What pages are made of, and what breaks them.
    const PARTS: &[&str] = &[
        "<",
        "<p",
        "</p>",
        ">",
        "/",
        " ",
        "a",
        "=",
        "'",
        "\"",
        "&",
        "&amp;",
        "&amp",
        "&am",
        "&notit;",
        "&not",
        "&#",
        "&#x",
        "&#x41;",
        "&#65",
        "&#0;",
        "&#x80;",
        "&#1114112;",
        "<!--",
        "-->",
        "--",
        "!",
        "<!doctype html>",
        "<!DOCTYPE",
        "<![CDATA[",
        "]]>",
        "<script>",
        "</script>",
        "</script ",
        "<style>",
        "</style>",
        "<title>",
        "</title>",
        "</TITLE/>",
        "<textarea>",
        "</textarea>",
        "<pre>",
        "\n",
        "\r",
        "\r\n",
        "\t",
        "\u{c}",
        "<svg>",
        "</svg>",
        "<math>",
        "<mi>",
        "<table>",
        "<tr>",
        "<td>",
        "x",
        "列",
        "<b>",
        "</b>",
        "<i>",
        "</i>",
        "<a href=",
        "<a href='x?a=1&copy=2&amp;b'>",
        "<?php",
        "</",
        "</ ",
        "<plaintext>",
        "<xmp>",
        "</xmp>",
        "<noscript>",
        "<iframe>",
        "</iframe>",
        "<select>",
        "<option>",
        "<template>",
        "</template>",
        "<body class=x>",
        "<html lang=y>",
        "<frameset>",
        "<br/>",
        "</br>",
        "<input type=hidden>",
        "&CounterClockwiseContourIntegral;",
        "&acE;",
        "G=B",
        "H=C",
        "\0",
        "SCRIPT",
        "<ScRiPt>",
        "<!-",
        "<!>",
        "<!x>",
        "&;",
        "&a;",
        "&x=",
        "<x=y>",
        "<=",
        "<p =x>",
        "<p/x/>",
        "<p a=b/>",
        " a",
        " b='c'",
        " d=\"e&lt;f\"",
        " g=h&lt",
        " g=&ltx",
        "<meta charset=big5>",
    ];

    /// The tree by the tokens of this file, and by those of html5ever.
    fn both(text: &str) -> (String, String) {
        let sink = HtmlTreeSink::new(Html::new_document());
        let builder = TreeBuilder::new(sink, TreeBuilderOpts::default());
        feed(text, &builder, || Ok::<(), ()>(())).unwrap();
        let own = builder.sink.finish();
        let theirs = Html::parse_document(text);
        (format!("{:?}", own.tree), format!("{:?}", theirs.tree))
    }

    #[test]
    fn every_part_alone_and_in_pairs_makes_the_same_tree() {
        for first in PARTS {
            for second in PARTS {
                for text in [
                    format!("{first}{second}"),
                    format!("<table><tr><td>{first} {second}>x</td>"),
                    format!("<script>{first}{second}</script>x"),
                    format!("<svg>{first}{second}</svg>"),
                ] {
                    let (own, theirs) = both(&text);
                    assert_eq!(own, theirs, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn what_the_standard_says_and_html5ever_does_not() {
        let (own, theirs) = both("<script></script>\u{feff}x");
        assert!(
            own.contains("\\u{feff}x") && !theirs.contains("feff"),
            "{own}"
        );
        let (own, theirs) = both("<pre>&#10x");
        assert!(
            !own.contains("\\nx") && theirs.contains("\\nx"),
            "{own} {theirs}"
        );
        let (own, _) = both("\u{feff}<p>a\u{feff}b");
        assert!(own.contains("a\\u{feff}b"), "{own}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn any_page_makes_the_same_tree(parts in prop::collection::vec(prop::sample::select(PARTS), 1..16)) {
            let text = parts.concat();
            let (own, theirs) = both(&text);
            prop_assert_eq!(own, theirs, "{:?}", text);
        }
    }
}
