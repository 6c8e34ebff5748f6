//! Declared date and time formats: strptime texts, compiled once, read strictly.
//!
//! | field | reads |
//! | --- | --- |
//! | `%Y` `%y` | four digits; two digits (69 to 99 = 19xx, 00 to 68 = 20xx) |
//! | `%m` `%d` `%H` `%I` `%M` `%S` | one or two digits |
//! | `%j` | day of the year, one to three digits |
//! | `%b` `%B` | English month, short or long, any case |
//! | `%p` | AM or PM, any case; goes with `%I` |
//! | `%f` `%.f` | fraction digits; the same with its point, or nothing |
//! | `%z` | `+08:00`, `+0800`, `+08` or `Z` |
//! | `%F` `%T` | `%Y-%m-%d`, `%H:%M:%S` |
//! | `%%`, anything else | itself, exactly (`年` too; blanks are not stretched) |
//!
//! Which texts are sound is `registry`'s to say: what it takes at publication is read here, and
//! nothing else is. A format without a time of day means midnight.

use crate::error::{Error, Result};
use crate::ingest::convert::moment::{
    MICROS_PER_DAY, MICROS_PER_SECOND, MomentTrouble, day_number, fraction,
};
use crate::registry::{FormatClass, classify_format};

/// One part of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Literal(String),
    Year,
    ShortYear,
    Month,
    MonthName,
    Day,
    DayOfYear,
    Hour,
    Hour12,
    Minute,
    Second,
    HalfDay,
    Fraction,
    PointFraction,
    Offset,
}

/// A compiled format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern {
    items: Vec<Item>,
    /// Whether it reads an offset from UTC.
    pub(crate) has_offset: bool,
    /// Whether it reads a time of day, or a part of one.
    pub(crate) has_time: bool,
}

/// What a text said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Microseconds since 1970-01-01T00:00:00 of the wall.
    pub(crate) wall: i64,
    /// Seconds east of UTC, where the text said so.
    pub(crate) offset: Option<i32>,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

impl Pattern {
    /// Compiles a format that is a strptime text.
    pub(crate) fn compile(text: &str) -> Result<Self> {
        match classify_format(text) {
            Ok(FormatClass::Strptime { offset, time }) => Ok(Self {
                items: items(text)?,
                has_offset: offset,
                has_time: time,
            }),
            Ok(FormatClass::Rfc3339 | FormatClass::Epoch) => {
                Err(Error::invalid(format!("`{text}` is no strptime text")))
            }
            Err(why) => Err(Error::invalid(format!("the format {why}"))),
        }
    }

    /// Reads a whole text.
    pub(crate) fn read(&self, text: &str) -> Result<Reading, MomentTrouble> {
        let mut cursor = Cursor { text, at: 0 };
        let mut parts = Parts::default();
        for item in &self.items {
            parts.read(item, &mut cursor)?;
        }
        if cursor.at != text.len() {
            return Err(MomentTrouble::Format);
        }
        parts.reading()
    }
}

/// The parts of a sound format.
fn items(text: &str) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    let mut rest = text;
    while let Some((literal, spec)) = rest.split_once('%') {
        push_literal(literal, &mut items);
        let (name, after) = match spec.strip_prefix(".f") {
            Some(after) => (".f", after),
            None => spec.split_at(spec.chars().next().map_or(0, char::len_utf8)),
        };
        rest = after;
        items.push(match name {
            "Y" => Item::Year,
            "y" => Item::ShortYear,
            "m" => Item::Month,
            "b" | "B" => Item::MonthName,
            "d" => Item::Day,
            "j" => Item::DayOfYear,
            "H" => Item::Hour,
            "I" => Item::Hour12,
            "M" => Item::Minute,
            "S" => Item::Second,
            "p" => Item::HalfDay,
            "f" => Item::Fraction,
            ".f" => Item::PointFraction,
            "z" => Item::Offset,
            "F" => {
                push_joined([Item::Year, Item::Month, Item::Day], "-", &mut items);
                continue;
            }
            "T" => {
                push_joined([Item::Hour, Item::Minute, Item::Second], ":", &mut items);
                continue;
            }
            "%" => {
                push_literal("%", &mut items);
                continue;
            }
            other => {
                let what = format!("format `{text}`: nothing reads `%{other}`");
                return Err(Error::internal(what));
            }
        });
    }
    push_literal(rest, &mut items);
    Ok(items)
}

fn push_joined(parts: [Item; 3], between: &str, items: &mut Vec<Item>) {
    for (i, part) in parts.into_iter().enumerate() {
        if i > 0 {
            push_literal(between, items);
        }
        items.push(part);
    }
}

fn push_literal(text: &str, items: &mut Vec<Item>) {
    if text.is_empty() {
        return;
    }
    if let Some(Item::Literal(last)) = items.last_mut() {
        last.push_str(text);
    } else {
        items.push(Item::Literal(text.to_owned()));
    }
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl Cursor<'_> {
    #[inline]
    fn rest(&self) -> &[u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// `least` to `most` digits, as many as there are.
    #[inline]
    fn digits(&mut self, least: usize, most: usize) -> Result<u32, MomentTrouble> {
        let mut value = 0;
        let mut count = 0;
        for b in self.rest().iter().take(most) {
            if !b.is_ascii_digit() {
                break;
            }
            value = value * 10 + u32::from(b - b'0');
            count += 1;
        }
        if count < least {
            return Err(MomentTrouble::Format);
        }
        self.at += count;
        Ok(value)
    }

    /// One of `names`, whole or its first three letters, in any case; counted from 1.
    fn name(&mut self, names: &[&str]) -> Result<u32, MomentTrouble> {
        let rest = self.rest();
        let starts = |word: &str| {
            rest.get(..word.len())
                .is_some_and(|r| r.eq_ignore_ascii_case(word.as_bytes()))
        };
        for (number, name) in (1..).zip(names) {
            let length = if starts(name) {
                name.len()
            } else if starts(&name[..3]) {
                3
            } else {
                continue;
            };
            self.at += length;
            return Ok(number);
        }
        Err(MomentTrouble::Format)
    }

    fn offset(&mut self) -> Result<i32, MomentTrouble> {
        let sign = match self.rest().first() {
            Some(b'Z') => {
                self.at += 1;
                return Ok(0);
            }
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Err(MomentTrouble::Format),
        };
        self.at += 1;
        let hours = self.digits(2, 2)?;
        let minutes = match self.rest().first() {
            Some(b':') => {
                self.at += 1;
                self.digits(2, 2)?
            }
            Some(b) if b.is_ascii_digit() => self.digits(2, 2)?,
            _ => 0,
        };
        if hours > 23 || minutes > 59 {
            return Err(MomentTrouble::Range);
        }
        let seconds = i32::try_from(hours * 3600 + minutes * 60).unwrap_or(0);
        Ok(sign * seconds)
    }
}

#[derive(Default)]
struct Parts {
    year: u32,
    month: u32,
    day: u32,
    day_of_year: Option<u32>,
    hour: u32,
    hour12: Option<u32>,
    afternoon: bool,
    minute: u32,
    second: u32,
    micros: i64,
    offset: Option<i32>,
}

impl Parts {
    #[inline]
    fn read(&mut self, item: &Item, cursor: &mut Cursor<'_>) -> Result<(), MomentTrouble> {
        match item {
            Item::Literal(text) => {
                if !cursor.rest().starts_with(text.as_bytes()) {
                    return Err(MomentTrouble::Format);
                }
                cursor.at += text.len();
            }
            Item::Year => self.year = cursor.digits(4, 4)?,
            Item::ShortYear => {
                let year = cursor.digits(2, 2)?;
                self.year = if year >= 69 { 1900 + year } else { 2000 + year };
            }
            Item::Month => self.month = cursor.digits(1, 2)?,
            Item::MonthName => self.month = cursor.name(&MONTHS)?,
            Item::Day => self.day = cursor.digits(1, 2)?,
            Item::DayOfYear => self.day_of_year = Some(cursor.digits(1, 3)?),
            Item::Hour => self.hour = cursor.digits(1, 2)?,
            Item::Hour12 => self.hour12 = Some(cursor.digits(1, 2)?),
            Item::Minute => self.minute = cursor.digits(1, 2)?,
            Item::Second => self.second = cursor.digits(1, 2)?,
            Item::HalfDay => self.afternoon = cursor.half_day()?,
            Item::Fraction => self.fraction(cursor)?,
            Item::PointFraction => {
                if cursor.rest().first() == Some(&b'.') {
                    cursor.at += 1;
                    self.fraction(cursor)?;
                }
            }
            Item::Offset => self.offset = Some(cursor.offset()?),
        }
        Ok(())
    }

    fn fraction(&mut self, cursor: &mut Cursor<'_>) -> Result<(), MomentTrouble> {
        let (micros, digits) = fraction(cursor.rest())?;
        self.micros = micros;
        cursor.at += digits;
        Ok(())
    }

    fn day_number(&self) -> Option<i32> {
        match self.day_of_year {
            None => day_number(self.year, self.month, self.day),
            Some(of_year) => {
                let first = day_number(self.year, 1, 1)?;
                let last = day_number(self.year, 12, 31)?;
                let day = first + i32::try_from(of_year).ok()? - 1;
                (first..=last).contains(&day).then_some(day)
            }
        }
    }

    fn reading(self) -> Result<Reading, MomentTrouble> {
        let day = self.day_number().ok_or(MomentTrouble::Range)?;
        let hour = match self.hour12 {
            None => self.hour,
            Some(hour @ 1..=12) => hour % 12 + if self.afternoon { 12 } else { 0 },
            Some(_) => return Err(MomentTrouble::Range),
        };
        if hour > 23 || self.minute > 59 || self.second > 59 {
            return Err(MomentTrouble::Range);
        }
        let seconds = i64::from(hour * 3600 + self.minute * 60 + self.second);
        Ok(Reading {
            wall: i64::from(day) * MICROS_PER_DAY + seconds * MICROS_PER_SECOND + self.micros,
            offset: self.offset,
        })
    }
}

impl Cursor<'_> {
    fn half_day(&mut self) -> Result<bool, MomentTrouble> {
        let word = self.rest().get(..2).ok_or(MomentTrouble::Format)?;
        let afternoon = if word.eq_ignore_ascii_case(b"PM") {
            true
        } else if word.eq_ignore_ascii_case(b"AM") {
            false
        } else {
            return Err(MomentTrouble::Format);
        };
        self.at += 2;
        Ok(afternoon)
    }
}

#[cfg(test)]
mod tests {
    use super::MomentTrouble::{Format, Precision, Range};
    use super::*;

    fn read(format: &str, text: &str) -> Result<String, MomentTrouble> {
        let reading = Pattern::compile(format).unwrap().read(text)?;
        let wall = crate::time::Instant::from_micros(reading.wall).to_string();
        let wall = wall
            .trim_end_matches('Z')
            .trim_end_matches(".000000")
            .to_owned();
        Ok(match reading.offset {
            None => wall,
            Some(offset) => format!("{wall} {offset}"),
        })
    }

    #[test]
    fn formats_read_what_they_say() {
        for (format, text, wanted) in [
            (
                "%Y-%m-%d %H:%M:%S",
                "2024-05-20 08:00:00",
                "2024-05-20T08:00:00",
            ),
            ("%Y-%m-%d %H:%M:%S", "2024-5-2 8:0:0", "2024-05-02T08:00:00"),
            ("%d/%m/%Y %H:%M", "20/05/2024 08:00", "2024-05-20T08:00:00"),
            ("%Y年%m月%d日", "2024年5月20日", "2024-05-20T00:00:00"),
            (
                "%Y年%m月%d日 %H时%M分",
                "2024年12月02日 23时05分",
                "2024-12-02T23:05:00",
            ),
            ("%Y%m%d", "20240520", "2024-05-20T00:00:00"),
            ("%m/%d/%y", "1/2/68", "2068-01-02T00:00:00"),
            ("%m/%d/%y", "1/2/69", "1969-01-02T00:00:00"),
            ("%b %d, %Y", "May 20, 2024", "2024-05-20T00:00:00"),
            ("%d %B %Y", "1 SEPTEMBER 2024", "2024-09-01T00:00:00"),
            ("%Y-%j", "2024-366", "2024-12-31T00:00:00"),
            ("%F %I:%M %p", "2024-05-20 12:30 am", "2024-05-20T00:30:00"),
            ("%F %I:%M %p", "2024-05-20 12:30 PM", "2024-05-20T12:30:00"),
            ("%F %I:%M %p", "2024-05-20 1:30 PM", "2024-05-20T13:30:00"),
            (
                "%FT%T.%f",
                "2024-05-20T08:00:00.5",
                "2024-05-20T08:00:00.500000",
            ),
            (
                "%FT%T%.f%z",
                "2024-05-20T08:00:00+0800",
                "2024-05-20T08:00:00 28800",
            ),
            (
                "%FT%T%.f%z",
                "2024-05-20T08:00:00.25-01:30",
                "2024-05-20T08:00:00.250000 -5400",
            ),
            ("%FT%T%z", "2024-05-20T08:00:00Z", "2024-05-20T08:00:00 0"),
            ("%FT%H:%M %%", "2024-05-20T08:09 %", "2024-05-20T08:09:00"),
        ] {
            assert_eq!(read(format, text), Ok(wanted.to_owned()), "{format} {text}");
        }
    }

    #[test]
    fn formats_refuse_all_else() {
        for (format, text, wanted) in [
            ("%Y-%m-%d", "24-05-20", Format),
            ("%Y-%m-%d", "2024-005-20", Format),
            ("%Y-%m-%d", "2024-05-20 ", Format),
            ("%Y-%m-%d", " 2024-05-20", Format),
            ("%Y-%m-%d", "2024-05-", Format),
            ("%Y-%m-%d", "２０２４-05-20", Format),
            ("%Y-%m-%d", "2024-02-30", Range),
            ("%Y-%m-%d", "0000-01-01", Range),
            ("%Y-%m-%d", "2024-13-01", Range),
            ("%F  %H", "2024-05-20 08", Format),
            ("%F %H", "2024-05-20 24", Range),
            ("%F %T", "2024-05-20 08:60:00", Range),
            ("%F %T", "2024-05-20 08:00:60", Range),
            ("%F %I %p", "2024-05-20 13 PM", Range),
            ("%F %I %p", "2024-05-20 0 AM", Range),
            ("%F %I %p", "2024-05-20 1 XM", Format),
            ("%d %b %Y", "20 Mai 2024", Format),
            ("%Y-%j", "2023-366", Range),
            ("%Y-%j", "2023-0", Range),
            ("%F %T.%f", "2024-05-20 08:00:00.", Format),
            ("%F %T.%f", "2024-05-20 08:00:00.1234567", Precision),
            ("%F %T%.f", "2024-05-20 08:00:00.", Format),
            ("%F %H%z", "2024-05-20 08+8", Format),
            ("%F %H%z", "2024-05-20 08+24:00", Range),
            ("%F %H%z", "2024-05-20 08+08:60", Range),
            ("%F %H%z", "2024-05-20 08z", Format),
            ("%F %H%z", "2024-05-20 08", Format),
        ] {
            assert_eq!(read(format, text), Err(wanted), "{format} {text}");
        }
    }

    #[test]
    fn formats_that_cannot_be_read_are_refused() {
        for bad in [
            "",
            "%H:%M",
            "%Y-%m",
            "%d %b",
            "%Y-%m-%d %M",
            "%Y-%m-%d %I",
            "%F %p",
            "%F %H %p",
            "%Y %y %m %d",
            "%F %d",
            "%Q",
            "%F %s",
            "%Z %F",
            "%F %",
            "%F %S",
            "%F %T %I %p",
            "%F %j",
            "%F.%f",
            "日",
            "%F%z",
            "rfc3339",
            "epoch_s",
        ] {
            assert!(Pattern::compile(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_publication_takes_is_what_is_read() {
        // Surroundings in which each directive is sound somewhere.
        let around = [
            ("", "-%m-%d"),
            ("%Y-", "-%d"),
            ("%Y-%m-", ""),
            ("%Y ", ""),
            ("", ""),
            ("", " %H"),
            ("%F ", ""),
            ("%F ", " %p"),
            ("%F %I ", ""),
            ("%F %H:", ""),
            ("%F %H:%M:", ""),
            ("%F %T", ""),
        ];
        let mut known = Vec::new();
        for c in (' '..='~').chain(['年', '\u{a0}']) {
            for dot in ["", ".", ":", "-", "_"] {
                for (before, after) in around {
                    let text = format!("{before}%{dot}{c}{after}");
                    let taken = classify_format(&text).is_ok();
                    assert_eq!(Pattern::compile(&text).is_ok(), taken, "{text}");
                    let name = format!("%{dot}{c}");
                    if taken && !known.contains(&name) {
                        known.push(name);
                    }
                }
            }
        }
        let documented = "%Y %m %d %H %M %S %y %f %.f %b %B %p %I %z %j %T %F %%".split(' ');
        let mut documented: Vec<&str> = documented.collect();
        documented.sort_unstable();
        known.sort_unstable();
        assert_eq!(known, documented);
        assert!(
            include_str!("../../../../../docs/formats/schema.md")
                .contains("`%Y %m %d %H %M %S %y %f %.f %b %B %p %I %z %j %T %F %%`")
        );
    }
}
