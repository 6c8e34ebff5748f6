//! Text tables aligned by what a terminal shows: a CJK character takes two columns.
//!
//! TBL-1: no cell can move the cursor or break a row: control characters are shown as escapes,
//! because cells hold what strangers' sites sent. What does not belong here: colours, wrapping.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

/// On which side a column is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Texts.
    Left,
    /// Numbers.
    Right,
}

/// A table: a header and rows of equal length.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns; a name that begins with `#` is a column of numbers.
    pub(crate) fn new<S: AsRef<str>>(columns: impl IntoIterator<Item = S>) -> Self {
        let columns = columns
            .into_iter()
            .map(|c| match c.as_ref().strip_prefix('#') {
                Some(name) => (name.to_owned(), Align::Right),
                None => (c.as_ref().to_owned(), Align::Left),
            })
            .collect();
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    /// Adds a row; missing cells are empty.
    pub(crate) fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows
            .push(cells.into_iter().map(|c| cell_text(c.as_ref())).collect());
    }

    /// Whether it has no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The text: a header line, then a line a row; two blanks between columns, none at the end.
    pub(crate) fn render(&self) -> String {
        let mut widths: Vec<usize> = self.columns.iter().map(|(n, _)| display_width(n)).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(display_width(cell));
            }
        }
        let header: Vec<String> = self.columns.iter().map(|(n, _)| n.clone()).collect();
        let mut text = String::new();
        for row in std::iter::once(&header).chain(&self.rows) {
            let mut line = String::new();
            for (i, ((_, align), width)) in self.columns.iter().zip(&widths).enumerate() {
                let cell = row.get(i).map_or("", String::as_str);
                let fill = width.saturating_sub(display_width(cell));
                if i > 0 {
                    line.push_str("  ");
                }
                match align {
                    Align::Left => line.push_str(cell),
                    Align::Right => {}
                }
                line.extend(std::iter::repeat_n(' ', fill));
                match align {
                    Align::Left => {}
                    Align::Right => line.push_str(cell),
                }
            }
            text.push_str(line.trim_end_matches(' '));
            text.push('\n');
        }
        text
    }
}

/// Columns of a terminal that the text takes.
pub(crate) fn display_width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// The text with control and direction-changing characters shown as escapes.
pub(crate) fn cell_text(text: &str) -> String {
    escape(text, |_| false)
}

/// As [`cell_text`], but line breaks stay: for messages of several lines.
pub(crate) fn message_text(text: &str) -> String {
    escape(text, |c| c == '\n')
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> String {
    if !text.chars().any(|c| is_unsafe(c) && !keep(c)) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if keep(c) || !is_unsafe(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => match write!(out, "\\u{{{:x}}}", u32::from(c)) {
                // Writing to a String cannot fail.
                Ok(()) | Err(_) => {}
            },
        }
    }
    out
}

/// Characters that move the cursor, hide text or turn its direction.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// A number with a thin mark every three digits: `1234567` is `1,234,567`.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A count with its noun: `1 row`, `2 rows`.
pub(crate) fn count(n: u64, noun: &str) -> String {
    let plural = match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        Some(_) | None => format!("{noun}s"),
    };
    format!("{} {}", grouped(n), if n == 1 { noun } else { &plural })
}

/// Bytes for people: `512 B`, `1.5 KiB`, `20.0 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut tenths = u128::from(bytes) * 10 / 1024;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        if tenths < 10_240 {
            break;
        }
        tenths /= 1024;
        unit = next;
    }
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cjk_takes_two_columns() {
        let mut t = Table::new(["word", "#heat"]);
        t.row(["颱風", "1200"]);
        t.row(["rain", "5"]);
        assert_eq!(t.render(), "word  heat\n颱風  1200\nrain     5\n");
    }

    /// Attacks TBL-1.
    #[test]
    fn cells_cannot_move_the_cursor() {
        let mut t = Table::new(["a"]);
        t.row(["x\u{1b}[2J\ny\u{202e}z\t"]);
        assert_eq!(t.render(), "a\nx\\u{1b}[2J\\ny\\u{202e}z\\t\n");
        assert_eq!(message_text("a\nb\u{7}"), "a\nb\\u{7}");
    }

    #[test]
    fn short_rows_are_filled_and_lines_have_no_tail() {
        let mut t = Table::new(["a", "b"]);
        t.row(["1"]);
        assert_eq!(t.render(), "a  b\n1\n");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(count(1, "row"), "1 row");
        assert_eq!(count(2000, "row"), "2,000 rows");
        assert_eq!(count(2, "day"), "2 days");
        assert_eq!(count(2, "entry"), "2 entries");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(20 * 1024 * 1024), "20.0 MiB");
        assert_eq!(size(u64::MAX), "16383.9 PiB");
    }
}
