//! A strict JSON check, byte by byte, without recursion: any nesting depth costs one bit a level.
//!
//! It serves to tell forms apart and to walk documents. The literals NaN, Infinity and -Infinity
//! pass (whether a field takes them is decided later); UTF-8 and escaped surrogates are not looked at.
//! Values of records are checked again by the decoder, with their positions.

/// What a byte meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The value goes on (or has not begun).
    More,
    /// The byte ended the value.
    Done,
    /// The value had ended before this byte, which is not used up.
    DoneBefore,
    /// No JSON.
    Bad,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A value must come, or the array may close.
    Value(Close),
    /// A key must come; after `{` the object may close.
    Key {
        may_close: bool,
    },
    Colon,
    /// After a value inside a container.
    After,
    Text {
        key: bool,
    },
    Escape {
        key: bool,
    },
    Hex {
        key: bool,
        left: u8,
    },
    Number(Number),
    Literal {
        text: &'static [u8],
        at: usize,
    },
}

/// Whether an array may close where a value is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Close {
    Never,
    /// After `[`.
    Empty,
    /// After a comma, where that is tolerated.
    AfterComma,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    Minus,
    Zero,
    Int,
    Dot,
    Fraction,
    Exp,
    ExpSign,
    ExpInt,
}

/// The check of one value.
#[derive(Debug, Clone)]
pub(super) struct Checker {
    state: State,
    /// One bit a level: set for an object.
    levels: Vec<u64>,
    depth: usize,
    tolerant: bool,
    trailing_commas: u64,
}

impl Checker {
    /// A check of the next value.
    pub(super) fn new() -> Self {
        Self {
            state: State::Value(Close::Never),
            levels: Vec::new(),
            depth: 0,
            tolerant: false,
            trailing_commas: 0,
        }
    }

    /// A check that lets an array end with a comma, and counts that.
    pub(super) fn tolerant() -> Self {
        Self {
            tolerant: true,
            ..Self::new()
        }
    }

    /// Arrays that ended with a comma.
    pub(super) fn trailing_commas(&self) -> u64 {
        self.trailing_commas
    }

    /// Whether nothing but white space has come.
    pub(super) fn is_fresh(&self) -> bool {
        self.depth == 0 && self.state == State::Value(Close::Never)
    }

    /// Whether the value may end with the input: a number or literal at the top.
    pub(super) fn ends_with_input(&self) -> bool {
        self.depth == 0
            && match self.state {
                State::Number(n) => n.is_whole(),
                State::Literal { text, at } => at == text.len(),
                State::Value(_)
                | State::Key { .. }
                | State::Colon
                | State::After
                | State::Text { .. }
                | State::Escape { .. }
                | State::Hex { .. } => false,
            }
    }

    fn push(&mut self, object: bool) {
        let (word, bit) = (self.depth / 64, self.depth % 64);
        if word == self.levels.len() {
            self.levels.push(0);
        }
        if object {
            self.levels[word] |= 1 << bit;
        } else {
            self.levels[word] &= !(1 << bit);
        }
        self.depth += 1;
    }

    fn in_object(&self) -> bool {
        self.depth > 0 && {
            let top = self.depth - 1;
            self.levels[top / 64] & (1 << (top % 64)) != 0
        }
    }

    /// A value has ended with the byte at hand.
    fn value_done(&mut self) -> Step {
        self.state = State::After;
        if self.depth == 0 {
            Step::Done
        } else {
            Step::More
        }
    }

    fn go(&mut self, state: State) -> Step {
        self.state = state;
        Step::More
    }

    fn close(&mut self) -> Step {
        self.depth -= 1;
        self.value_done()
    }

    /// Takes the next byte.
    pub(super) fn feed(&mut self, byte: u8) -> Step {
        match self.state {
            State::Text { key } => match byte {
                b'"' if key => self.go(State::Colon),
                b'"' => self.value_done(),
                b'\\' => self.go(State::Escape { key }),
                0..=0x1f => Step::Bad,
                _ => Step::More,
            },
            State::Escape { key } => match byte {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                    self.go(State::Text { key })
                }
                b'u' => self.go(State::Hex { key, left: 4 }),
                _ => Step::Bad,
            },
            State::Hex { key, left } if byte.is_ascii_hexdigit() => self.go(if left == 1 {
                State::Text { key }
            } else {
                State::Hex {
                    key,
                    left: left - 1,
                }
            }),
            State::Hex { .. } => Step::Bad,
            State::Number(number) => self.number(number, byte),
            State::Literal { text, at } => self.literal(text, at, byte),
            State::Value(_) | State::Key { .. } | State::Colon | State::After
                if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') =>
            {
                Step::More
            }
            State::Value(close) => self.value(close, byte),
            State::Key { may_close } => match byte {
                b'"' => self.go(State::Text { key: true }),
                b'}' if may_close => self.close(),
                _ => Step::Bad,
            },
            State::Colon if byte == b':' => self.go(State::Value(Close::Never)),
            State::Colon => Step::Bad,
            State::After => self.after(byte),
        }
    }

    fn after(&mut self, byte: u8) -> Step {
        if self.depth == 0 {
            return Step::DoneBefore;
        }
        match (byte, self.in_object()) {
            (b',', true) => self.go(State::Key { may_close: false }),
            (b',', false) => self.go(State::Value(if self.tolerant {
                Close::AfterComma
            } else {
                Close::Never
            })),
            (b'}', true) | (b']', false) => self.close(),
            _ => Step::Bad,
        }
    }

    fn value(&mut self, close: Close, byte: u8) -> Step {
        let literal = |text| State::Literal { text, at: 1 };
        match byte {
            b'{' => {
                self.push(true);
                self.go(State::Key { may_close: true })
            }
            b'[' => {
                self.push(false);
                self.go(State::Value(Close::Empty))
            }
            b']' if close != Close::Never => {
                self.trailing_commas += u64::from(close == Close::AfterComma);
                self.close()
            }
            b'"' => self.go(State::Text { key: false }),
            b'-' => self.go(State::Number(Number::Minus)),
            b'0' => self.go(State::Number(Number::Zero)),
            b'1'..=b'9' => self.go(State::Number(Number::Int)),
            b't' => self.go(literal(b"true")),
            b'f' => self.go(literal(b"false")),
            b'n' => self.go(literal(b"null")),
            b'N' => self.go(literal(b"NaN")),
            b'I' => self.go(literal(b"Infinity")),
            _ => Step::Bad,
        }
    }

    /// The byte after a value that had no end mark of its own.
    fn bare_end(&mut self, byte: u8) -> Step {
        self.state = State::After;
        if self.depth > 0 && matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            return Step::More;
        }
        self.after(byte)
    }

    fn literal(&mut self, text: &'static [u8], at: usize, byte: u8) -> Step {
        if at == text.len() {
            return self.bare_end(byte);
        }
        if text[at] != byte {
            return Step::Bad;
        }
        self.go(State::Literal { text, at: at + 1 })
    }

    fn number(&mut self, number: Number, byte: u8) -> Step {
        let next = match (number, byte) {
            (Number::Minus, b'0') => Number::Zero,
            (Number::Minus, b'1'..=b'9') | (Number::Int, b'0'..=b'9') => Number::Int,
            (Number::Minus, b'I') => {
                return self.go(State::Literal {
                    text: b"Infinity",
                    at: 1,
                });
            }
            (Number::Zero | Number::Int, b'.') => Number::Dot,
            (Number::Dot | Number::Fraction, b'0'..=b'9') => Number::Fraction,
            (Number::Zero | Number::Int | Number::Fraction, b'e' | b'E') => Number::Exp,
            (Number::Exp, b'+' | b'-') => Number::ExpSign,
            (Number::Exp | Number::ExpSign | Number::ExpInt, b'0'..=b'9') => Number::ExpInt,
            (Number::Zero, b'0'..=b'9') => return Step::Bad,
            _ if number.is_whole() => return self.bare_end(byte),
            _ => return Step::Bad,
        };
        self.go(State::Number(next))
    }
}

impl Number {
    fn is_whole(self) -> bool {
        match self {
            Self::Zero | Self::Int | Self::Fraction | Self::ExpInt => true,
            Self::Minus | Self::Dot | Self::Exp | Self::ExpSign => false,
        }
    }
}
