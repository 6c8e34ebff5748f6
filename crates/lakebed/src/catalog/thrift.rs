//! As much of Thrift's compact protocol as it takes to walk the footer of a Parquet file: what is not wanted
//! is passed over, texts and bytes are borrowed, nothing is allocated.
//!
//! The bytes are somebody's: every length is checked, nesting ends somewhere.

/// How deep lists and structs may nest in what is passed over; footers nest five deep.
const MAX_DEPTH: u32 = 32;

/// What was read, or why it could not be. The reason is a byte: every number of a footer goes through this.
pub(super) type Read<T> = std::result::Result<T, Damage>;

/// Why a footer cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Damage {
    EndsEarly,
    EndlessNumber,
    UnknownType,
    FieldNumber,
    NoStructs,
    NoSchema,
    SchemaNotFirst,
    NoRows,
    NegativeRows,
    NoGroups,
    NoColumns,
    OtherColumns,
    NegativeNulls,
    NoOrder,
    TwoOrders,
    OtherOrders,
    ShortBound,
}

impl Damage {
    /// In words.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::EndsEarly => "it ends early, or nests too deep",
            Self::EndlessNumber => "it holds a number that does not end",
            Self::UnknownType => "it holds a type that does not exist",
            Self::FieldNumber => "it holds a field whose number cannot be",
            Self::NoStructs => "it holds a list of something else",
            Self::NoSchema => "it has no schema",
            Self::SchemaNotFirst => "its schema does not come first",
            Self::NoRows => "it, or a row group of it, has no number of rows",
            Self::NegativeRows => "a row group has negative rows",
            Self::NoGroups => "it has no row groups",
            Self::NoColumns => "a row group has no columns",
            Self::OtherColumns => "a row group has other columns than its schema",
            Self::NegativeNulls => "a column has negative nulls",
            Self::NoOrder => "the order of a column is none",
            Self::TwoOrders => "a column has two orders",
            Self::OtherOrders => "it has orders of other columns than its schema",
            Self::ShortBound => "a bound is too short for its type",
        }
    }
}

/// The type of a field or of the elements of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    True = 1,
    False,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Set,
    Map,
    Struct,
    Uuid,
}

impl Kind {
    #[inline]
    fn of(nibble: u8) -> Read<Self> {
        Ok(match nibble {
            1 => Self::True,
            2 => Self::False,
            3 => Self::Byte,
            4 => Self::I16,
            5 => Self::I32,
            6 => Self::I64,
            7 => Self::Double,
            8 => Self::Binary,
            9 => Self::List,
            10 => Self::Set,
            11 => Self::Map,
            12 => Self::Struct,
            13 => Self::Uuid,
            _ => return Err(Damage::UnknownType),
        })
    }
}

/// What is left to be read.
#[derive(Debug, Clone)]
pub(super) struct Thrift<'a> {
    rest: &'a [u8],
}

impl<'a> Thrift<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// How many bytes are left.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    fn byte(&mut self) -> Read<u8> {
        let (first, rest) = self.rest.split_first().ok_or(Damage::EndsEarly)?;
        self.rest = rest;
        Ok(*first)
    }

    #[inline]
    fn take(&mut self, length: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(Damage::EndsEarly)?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn varint(&mut self) -> Read<u64> {
        // Most numbers are small.
        let first = self.byte()?;
        if first & 0x80 == 0 {
            return Ok(u64::from(first));
        }
        self.long_varint(first)
    }

    fn long_varint(&mut self, first: u8) -> Read<u64> {
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Damage::EndlessNumber)
    }

    /// A number of any width.
    pub(super) fn int(&mut self) -> Read<i64> {
        let zigzag = self.varint()?;
        Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    /// A text or bytes.
    pub(super) fn binary(&mut self) -> Read<&'a [u8]> {
        let length = self.varint()?;
        self.take(usize::try_from(length).map_err(|_| Damage::EndsEarly)?)
    }

    /// The next field of a struct, after the one with the id `last`; `None` at its end.
    #[inline]
    pub(super) fn field(&mut self, last: i16) -> Read<Option<(i16, Kind)>> {
        let head = self.byte()?;
        if head & 0xf == 0 {
            return Ok(None);
        }
        let id = match head >> 4 {
            0 => i16::try_from(self.int()?).ok(),
            delta => last.checked_add(i16::from(delta)),
        };
        let id = id.ok_or(Damage::FieldNumber)?;
        Ok(Some((id, Kind::of(head & 0xf)?)))
    }

    /// The head of a list or a set: the type of its elements, and how many there are.
    pub(super) fn list(&mut self) -> Read<(Kind, usize)> {
        let (kind, count) = self.list_head()?;
        Ok((Kind::of(kind)?, count))
    }

    fn list_head(&mut self) -> Read<(u8, usize)> {
        let head = self.byte()?;
        // Some writers leave the type of an empty list out.
        if head == 0 {
            return Ok((Kind::Byte as u8, 0));
        }
        let count = match head >> 4 {
            15 => usize::try_from(self.varint()?).map_err(|_| Damage::EndsEarly)?,
            count => usize::from(count),
        };
        // An element is a byte at least.
        if count > self.rest.len() {
            return Err(Damage::EndsEarly);
        }
        Ok((head & 0xf, count))
    }

    /// Passes over a field of this type.
    #[inline]
    pub(super) fn skip(&mut self, kind: Kind) -> Read<()> {
        self.rest = after(self.rest, kind as u8, MAX_DEPTH).ok_or(Damage::EndsEarly)?;
        Ok(())
    }
}

/// What follows a field of this type, a nibble; `None` where it does not end, or nests too deep. By value, from
/// slice to slice, and as small as it can be: most of a footer is passed over.
fn after(rest: &[u8], kind: u8, depth: u32) -> Option<&[u8]> {
    match kind {
        // A truth stands in the field's head.
        1 | 2 => Some(rest),
        3 => rest.get(1..),
        4..=6 => after_varint(rest),
        7 => rest.get(8..),
        8 => after_binary(rest),
        9 | 10 => after_list(rest, depth.checked_sub(1)?),
        11 => after_map(rest, depth.checked_sub(1)?),
        12 => after_struct(rest, depth.checked_sub(1)?),
        13 => rest.get(16..),
        _ => None,
    }
}

#[inline]
fn after_varint(mut rest: &[u8]) -> Option<&[u8]> {
    for _ in 0..10 {
        let (byte, after) = rest.split_first()?;
        rest = after;
        if byte & 0x80 == 0 {
            return Some(rest);
        }
    }
    None
}

#[inline]
fn after_binary(rest: &[u8]) -> Option<&[u8]> {
    let mut thrift = Thrift::new(rest);
    thrift.binary().ok()?;
    Some(thrift.rest)
}

fn after_struct(mut rest: &[u8], depth: u32) -> Option<&[u8]> {
    loop {
        let (head, after_head) = rest.split_first()?;
        rest = after_head;
        if head & 0xf == 0 {
            return Some(rest);
        }
        if head >> 4 == 0 {
            rest = after_varint(rest)?;
        }
        rest = after(rest, head & 0xf, depth)?;
    }
}

fn after_list(rest: &[u8], depth: u32) -> Option<&[u8]> {
    let mut thrift = Thrift::new(rest);
    let (kind, count) = thrift.list_head().ok()?;
    let mut rest = thrift.rest;
    for _ in 0..count {
        rest = after_element(rest, kind, depth)?;
    }
    Some(rest)
}

/// In a list a truth is a byte.
#[inline]
fn after_element(rest: &[u8], kind: u8, depth: u32) -> Option<&[u8]> {
    match kind {
        1 | 2 => rest.get(1..),
        _ => after(rest, kind, depth),
    }
}

fn after_map(rest: &[u8], depth: u32) -> Option<&[u8]> {
    let mut thrift = Thrift::new(rest);
    let count = thrift.varint().ok()?;
    if count == 0 {
        return Some(thrift.rest);
    }
    let kinds = thrift.byte().ok()?;
    let mut rest = thrift.rest;
    for _ in 0..count {
        rest = after_element(rest, kinds >> 4, depth)?;
        rest = after_element(rest, kinds & 0xf, depth)?;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_read() {
        let mut thrift = Thrift::new(&[0x01, 0xfe, 0xff, 0x03, 0x02, b'a', b'b']);
        assert_eq!(thrift.int(), Ok(-1));
        assert_eq!(thrift.int(), Ok(32_767));
        assert_eq!(thrift.binary(), Ok(&b"ab"[..]));
        assert_eq!(thrift.left(), 0);
        let least = [[0xff; 9].as_slice(), &[0x01]].concat();
        assert_eq!(Thrift::new(&least).int(), Ok(i64::MIN));
        for wrong in [&[][..], &[0xff; 11], &[0x05, b'a']] {
            assert!(Thrift::new(wrong).binary().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn all_that_a_struct_may_hold_is_passed_over() {
        let held = [
            &[0x11, 0x12, 0x13, 7, 0x14, 2, 0x15, 2, 0x16, 2][..],
            &[0x17, 1, 2, 3, 4, 5, 6, 7, 8, 0x18, 1, b'a'],
            // Lists of truths, of numbers, of nothing, of 16 bytes.
            &[0x19, 0x21, 1, 2, 0x1a, 0x15, 4, 0x19, 0x00, 0x19, 0xf3, 16],
            &[0; 16],
            // Maps, one of them empty; a struct within a struct; a field number by itself.
            &[0x1b, 0, 0x1b, 1, 0x85, 1, b'k', 2, 0x1c, 0x1c, 0, 0],
            &[0x05, 0xc8, 0x01, 2, 0],
            b"rest",
        ]
        .concat();
        let mut thrift = Thrift::new(&held);
        assert_eq!(thrift.skip(Kind::Struct), Ok(()));
        assert_eq!(thrift.left(), 4);
        // Cut anywhere, it is an error.
        for length in 0..held.len() - 4 {
            assert!(Thrift::new(&held[..length]).skip(Kind::Struct).is_err());
        }
    }

    #[test]
    fn what_never_ends_is_an_error() {
        assert!(Thrift::new(&[0x19; 4096]).skip(Kind::List).is_err());
        assert!(Thrift::new(&[0x1c; 4096]).skip(Kind::Struct).is_err());
        // A list of more elements than there are bytes.
        let endless = [0xf3, 0xff, 0xff, 0xff, 0xff, 0x07, 0, 0];
        assert!(Thrift::new(&endless).skip(Kind::List).is_err());
        assert!(Thrift::new(&[0x1e, 0]).skip(Kind::Struct).is_err());
    }
}
