//! What the three databases write differently. A statement is written once with `?` for parameters and
//! these words in braces: `{now}` (the database's clock, microseconds since the epoch), `{int}` (the
//! 64-bit type in a cast), `{lock}` (take the row locks, wait), `{skip}` (take them, pass over rows
//! that another transaction holds), `{ended_at}` (the column to write the end of a request into) and `{not_ended}` (what
//! stands there before).
//!
//! Statements whose shape differs (claim, insert, finish) stand side by side in the file of their step.

use std::fmt::Write as _;

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// SQLite 3.42 or newer (the built-in one).
    Sqlite,
    /// PostgreSQL 15 or newer.
    Postgres,
    /// MariaDB 10.6 or newer, MySQL 8.
    Mysql,
}

impl Dialect {
    /// Its name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MySQL/MariaDB",
        }
    }

    /// The clock of the database in microseconds since the epoch. It runs on within a transaction.
    fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
            Self::Postgres => "CAST(extract(epoch from clock_timestamp()) * 1000000 AS BIGINT)",
            Self::Mysql => "CAST(unix_timestamp(sysdate(6)) * 1000000 AS SIGNED)",
        }
    }

    fn word(self, word: &str) -> Option<&'static str> {
        let text = match (word, self) {
            ("now", _) => self.now(),
            ("int", Self::Sqlite) => "INTEGER",
            ("int", Self::Postgres) => "BIGINT",
            ("int", Self::Mysql) => "SIGNED",
            ("ended_at", Self::Mysql) => "kept_ended_at",
            ("ended_at", _) => "ended_at",
            ("not_ended", Self::Mysql) => "0",
            ("not_ended", _) => "NULL",
            ("lock" | "skip", Self::Sqlite) => "",
            ("lock", _) => "FOR UPDATE",
            ("skip", _) => "FOR UPDATE SKIP LOCKED",
            _ => return None,
        };
        Some(text)
    }

    /// The statement as this database wants it. Braces around other words stay as they are.
    pub(crate) fn sql(self, template: &str) -> String {
        let mut out = String::with_capacity(template.len() + 64);
        let mut number = 0;
        let mut rest = template;
        while let Some(at) = rest.find(['{', '?']) {
            out.push_str(&rest[..at]);
            if rest.as_bytes()[at] == b'?' {
                number += 1;
                rest = &rest[at + 1..];
                match self {
                    // Writing into a String cannot fail.
                    Self::Postgres => write!(out, "${number}").unwrap_or_default(),
                    Self::Sqlite | Self::Mysql => out.push('?'),
                }
                continue;
            }
            let end = rest[at..].find('}').map_or(rest.len(), |n| at + n + 1);
            let word = rest[at + 1..end].trim_end_matches('}');
            match self.word(word) {
                Some(text) => out.push_str(text),
                None => out.push_str(&rest[at..end]),
            }
            rest = &rest[end..];
        }
        out.push_str(rest);
        out
    }
}

/// `n` times the group `(?, ?)` of `columns` parameters, separated by commas.
pub(crate) fn groups(n: usize, columns: usize) -> String {
    let group = format!("({})", vec!["?"; columns].join(", "));
    vec![group.as_str(); n].join(", ")
}

/// Splits into pieces of 128, 64, ... 1, so that few different statements are prepared.
pub(crate) fn pieces<T>(mut items: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        if items.is_empty() {
            return None;
        }
        let size = (1 << items.len().ilog2()).min(128);
        let (piece, rest) = items.split_at(size);
        items = rest;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_words_are_written_for_each() {
        let template = "SELECT ? + {now}, '{}' FROM t WHERE a = ? {skip}";
        assert!(
            Dialect::Postgres
                .sql(template)
                .contains("a = $2 FOR UPDATE SKIP LOCKED")
        );
        assert!(
            Dialect::Mysql
                .sql(template)
                .ends_with("a = ? FOR UPDATE SKIP LOCKED")
        );
        assert!(
            Dialect::Sqlite
                .sql(template)
                .ends_with("'{}' FROM t WHERE a = ? ")
        );
        assert_eq!(groups(2, 3), "(?, ?, ?), (?, ?, ?)");
    }

    #[test]
    fn pieces_hold_everything_in_order() {
        for n in [0_usize, 1, 2, 3, 127, 128, 129, 500] {
            let all: Vec<usize> = (0..n).collect();
            let back: Vec<usize> = pieces(&all).flatten().copied().collect();
            assert_eq!(back, all);
            assert!(pieces(&all).all(|p| p.len().is_power_of_two() && p.len() <= 128));
        }
    }
}
