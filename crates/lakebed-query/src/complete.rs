//! What may stand at a place of an unfinished query: tables, columns, functions, keywords.
//!
//! An unfinished text cannot be parsed, so its tokens are looked at: a word after FROM or JOIN is a
//! table, a word with a dot is a table or a column of an alias, any other may be a column of the
//! tables that the whole text names. The catalog is taken as it stands; whoever asks freshens it.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::execution::FunctionRegistry;
use datafusion::sql::sqlparser::ast::Ident;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Word};
use lakebed::Result;
use lakebed::name::DatasetRef;

use crate::engine::QueryEngine;
use crate::script::{Rest, read_tokens};
use crate::statement::{
    DEFAULT_SCHEMA, DatasetTable, NamedTable, SYSTEM_SCHEMA, named_table, sql_name,
};
use crate::system::SystemTable;

/// Keywords worth completing; the parser knows a thousand more.
const KEYWORDS: [&str; 74] = [
    "ALL",
    "AND",
    "ANY",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "CAST",
    "CROSS",
    "CUBE",
    "CURRENT_DATE",
    "DATE",
    "DECIMAL",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "ELSE",
    "END",
    "ESCAPE",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "EXTRACT",
    "FALSE",
    "FILTER",
    "FIRST",
    "FROM",
    "FULL",
    "GROUP",
    "GROUPING",
    "HAVING",
    "ILIKE",
    "IN",
    "INNER",
    "INTERSECT",
    "INTERVAL",
    "IS",
    "JOIN",
    "LAST",
    "LEFT",
    "LIKE",
    "LIMIT",
    "NATURAL",
    "NOT",
    "NULL",
    "NULLS",
    "OFFSET",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "QUALIFY",
    "RANGE",
    "RIGHT",
    "ROLLUP",
    "ROWS",
    "SELECT",
    "SETS",
    "SHOW",
    "SIMILAR",
    "TABLES",
    "THEN",
    "TIMESTAMP",
    "TRUE",
    "UNION",
    "UNNEST",
    "USING",
    "VALUES",
    "WHEN",
    "WHERE",
    "WITH",
];
/// The table function of the past.
const PAST: &str = "as_of";

/// What may stand at a place of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The byte at which the word begins that is replaced.
    pub start: usize,
    /// What may stand there, best first.
    pub candidates: Vec<String>,
}

/// A table as the text names it.
struct Mention {
    table: NamedTable,
    /// What its columns may be written behind: the alias, else the name's last part.
    alias: String,
}

/// The word before the cursor.
struct Place<'a> {
    start: usize,
    word: &'a str,
    /// The cursor is in a text.
    in_text: bool,
    /// The tokens before the word, without blanks.
    before: Vec<Token>,
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '"')
}

fn solid_tokens(text: &str) -> Vec<Token> {
    let (tokens, _) = read_tokens(text);
    let tokens = tokens.into_iter().map(|t| t.token);
    tokens
        .filter(|t| !matches!(t, Token::Whitespace(_) | Token::EOF))
        .collect()
}

fn place_of(text: &str, at: usize) -> Place<'_> {
    let head = &text[..at];
    let (_, broken) = read_tokens(head);
    let quoted = head.rfind('\'').filter(|_| broken == Some(Rest::Open));
    let start = match quoted {
        Some(quote) => quote + 1,
        None => head
            .char_indices()
            .rev()
            .take_while(|(_, c)| is_word_char(*c))
            .last()
            .map_or(at, |(i, _)| i),
    };
    Place {
        start,
        word: &head[start..],
        in_text: quoted.is_some(),
        before: solid_tokens(&head[..quoted.unwrap_or(start)]),
    }
}

fn is_keyword(token: Option<&Token>, wanted: &[Keyword]) -> bool {
    matches!(token, Some(Token::Word(w)) if w.quote_style.is_none() && wanted.contains(&w.keyword))
}

/// Whether a table's name comes next.
fn wants_table(before: &[Token]) -> bool {
    let table = [
        Keyword::FROM,
        Keyword::JOIN,
        Keyword::DESCRIBE,
        Keyword::TABLE,
    ];
    if is_keyword(before.last(), &table) {
        return true;
    }
    // `FROM a, b`: the last keyword before the comma is FROM, and no bracket is open.
    let mut depth = 0_i32;
    for (i, token) in before.iter().enumerate().rev() {
        match token {
            Token::Comma if i + 1 == before.len() => {}
            _ if i + 1 == before.len() => return false,
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            _ if depth > 0 => {}
            Token::Word(w) if w.quote_style.is_none() && w.keyword == Keyword::FROM => return true,
            Token::Word(_) | Token::Period | Token::Comma => {}
            _ => return false,
        }
    }
    false
}

/// The identifiers of `a.b.c` from `at` on, and where they end.
fn dotted(tokens: &[Token], at: usize) -> (Vec<&Word>, usize) {
    let (mut parts, mut next) = (Vec::new(), at);
    while let Some(Token::Word(word)) = tokens.get(next) {
        parts.push(word);
        next += 1;
        if tokens.get(next) != Some(&Token::Period) {
            break;
        }
        next += 1;
    }
    (parts, next)
}

fn folded(word: &Word) -> String {
    match word.quote_style {
        Some(_) => word.value.clone(),
        None => word.value.to_lowercase(),
    }
}

fn reference(parts: &[&Word]) -> Option<TableReference> {
    let names: Vec<String> = parts.iter().map(|w| folded(w)).collect();
    match names.as_slice() {
        [table] => Some(TableReference::bare(table.as_str())),
        [schema, table] => Some(TableReference::partial(schema.as_str(), table.as_str())),
        [catalog, schema, table] => Some(TableReference::full(
            catalog.as_str(),
            schema.as_str(),
            table.as_str(),
        )),
        _ => None,
    }
}

/// The word that renames what ends before `at`, if there is one.
fn alias_at(tokens: &[Token], at: usize) -> Option<String> {
    let at = at + usize::from(is_keyword(tokens.get(at), &[Keyword::AS]));
    match tokens.get(at) {
        Some(Token::Word(w)) if w.quote_style.is_some() || !is_ours(&w.value) => Some(folded(w)),
        _ => None,
    }
}

/// The dataset of `as_of('clean.weibo', ...)` that begins at `at`, and where its brackets end.
fn past_at(tokens: &[Token], at: usize) -> Option<(DatasetRef, usize)> {
    match tokens.get(at..at + 3)? {
        [
            Token::Word(w),
            Token::LParen,
            Token::SingleQuotedString(name),
        ] if w.value.eq_ignore_ascii_case(PAST) => {
            let close = tokens[at..].iter().position(|t| *t == Token::RParen)?;
            Some((name.replacen('.', "/", 1).parse().ok()?, at + close + 1))
        }
        _ => None,
    }
}

/// Every table that stands behind FROM, JOIN, DESCRIBE or a comma.
fn mentions(tokens: &[Token]) -> Vec<Mention> {
    let mut found = Vec::new();
    for at in 1..tokens.len() {
        let opens = [
            Keyword::FROM,
            Keyword::JOIN,
            Keyword::DESCRIBE,
            Keyword::TABLE,
        ];
        let behind = is_keyword(tokens.get(at - 1), &opens) || tokens[at - 1] == Token::Comma;
        if !behind {
            continue;
        }
        if let Some((dataset, end)) = past_at(tokens, at) {
            let name = dataset.dataset.as_str().to_owned();
            found.push(Mention {
                table: NamedTable::Dataset(DatasetTable::new(dataset)),
                alias: alias_at(tokens, end).unwrap_or(name),
            });
            continue;
        }
        let (parts, end) = dotted(tokens, at);
        let Some(reference) = reference(&parts) else {
            continue;
        };
        found.push(Mention {
            alias: alias_at(tokens, end).unwrap_or_else(|| reference.table().to_owned()),
            table: named_table(&reference),
        });
    }
    found
}

fn is_ours(word: &str) -> bool {
    KEYWORDS.iter().any(|k| k.eq_ignore_ascii_case(word))
}

/// A name as it must be written: in quotes where it would be read as something else.
fn written(name: &str) -> String {
    let plain = name.chars().enumerate().all(|(i, c)| {
        c == '_' || (c.is_alphabetic() && c.to_lowercase().eq([c])) || (i > 0 && c.is_ascii_digit())
    });
    if plain && !is_ours(name) {
        return name.to_owned();
    }
    Ident::with_quote('"', name).to_string()
}

fn begins_with(candidate: &str, word: &str) -> bool {
    let plain = |text: &str| text.replace('"', "").to_lowercase();
    plain(candidate).starts_with(&plain(word))
}

impl QueryEngine {
    /// Every table's name as it is written in SQL: datasets first, then those of the catalog.
    pub async fn list_tables(&self) -> Result<Vec<String>> {
        let trace = Arc::default();
        let maker = self.maker(&trace);
        let datasets = maker.list_datasets().await?;
        let views: Vec<DatasetRef> = maker
            .latest_views(&datasets)
            .into_iter()
            .map(|(_, _, view)| view)
            .collect();
        let mut names: Vec<String> = datasets.iter().chain(&views).map(sql_name).collect();
        names.sort();
        names.extend(SystemTable::ALL.map(|t| format!("{SYSTEM_SCHEMA}.{}", t.as_str())));
        Ok(names)
    }

    /// What may stand before the byte `at` of an unfinished text.
    pub async fn complete(&self, text: &str, at: usize) -> Result<Completion> {
        let place = place_of(text, at);
        let tables = self.list_tables().await?;
        let candidates = if place.in_text {
            self.in_text(&place, tables)
        } else if wants_table(&place.before) {
            tables_like(&place, tables)
        } else {
            self.anywhere(text, &place, tables).await?
        };
        let mut seen = BTreeSet::new();
        Ok(Completion {
            start: place.start,
            candidates: candidates
                .into_iter()
                .filter(|c| seen.insert(c.clone()))
                .collect(),
        })
    }

    /// Datasets in `as_of('...`; nothing in any other text.
    fn in_text(&self, place: &Place<'_>, tables: Vec<String>) -> Vec<String> {
        let [.., Token::Word(function), Token::LParen] = place.before.as_slice() else {
            return Vec::new();
        };
        if !function.value.eq_ignore_ascii_case(PAST) {
            return Vec::new();
        }
        let of_catalog = format!("{SYSTEM_SCHEMA}.");
        let datasets = tables.into_iter().filter(|t| !t.starts_with(&of_catalog));
        datasets.filter(|t| begins_with(t, place.word)).collect()
    }

    async fn anywhere(
        &self,
        text: &str,
        place: &Place<'_>,
        tables: Vec<String>,
    ) -> Result<Vec<String>> {
        let mentioned = mentions(&solid_tokens(text));
        if let Some((alias, _)) = place.word.rsplit_once('.') {
            let mut found = Vec::new();
            let plain = alias.replace('"', "").to_lowercase();
            for mention in mentioned.iter().filter(|m| m.alias.to_lowercase() == plain) {
                let columns = self.column_names(&mention.table).await?;
                found.extend(columns.iter().map(|c| format!("{alias}.{}", written(c))));
            }
            found.extend(tables);
            found.retain(|c| begins_with(c, place.word));
            return Ok(found);
        }
        let mut found = Vec::new();
        for mention in &mentioned {
            let columns = self.column_names(&mention.table).await?;
            found.extend(columns.iter().map(|c| written(c)));
        }
        if !place.word.is_empty() {
            let small = place.word.chars().all(|c| !c.is_uppercase());
            let keyword = |k: &&str| {
                if small {
                    k.to_lowercase()
                } else {
                    (*k).to_owned()
                }
            };
            found.extend(KEYWORDS.iter().map(keyword));
            let functions = self.state().udfs().into_iter().chain(self.state().udafs());
            let mut functions: Vec<String> = functions.map(|f| format!("{f}(")).collect();
            functions.sort();
            found.extend(functions);
            found.extend(tables);
        }
        found.retain(|c| begins_with(c, place.word));
        Ok(found)
    }

    async fn column_names(&self, table: &NamedTable) -> Result<Vec<String>> {
        match table {
            NamedTable::Dataset(table) => self.dataset_columns(&table.dataset).await,
            NamedTable::System(t) => Ok(t.column_names()),
            NamedTable::Information | NamedTable::Unknown(_) => Ok(Vec::new()),
        }
    }
}

/// Tables whose name, or name without its layer, begins with the word.
fn tables_like(place: &Place<'_>, tables: Vec<String>) -> Vec<String> {
    let default = format!("{DEFAULT_SCHEMA}.");
    let mut found: Vec<String> = tables
        .into_iter()
        .filter(|t| {
            begins_with(t, place.word)
                || t.strip_prefix(&default)
                    .is_some_and(|bare| begins_with(bare, place.word))
        })
        .collect();
    let past = format!("{PAST}('");
    if begins_with(&past, place.word) {
        found.push(past);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<(String, String)> {
        let shown = |m: Mention| match m.table {
            NamedTable::Dataset(d) => (sql_name(&d.dataset), m.alias),
            NamedTable::System(t) => (t.as_str().to_owned(), m.alias),
            other => (format!("{other:?}"), m.alias),
        };
        mentions(&solid_tokens(text))
            .into_iter()
            .map(shown)
            .collect()
    }

    #[test]
    fn tables_of_an_unfinished_text_are_found() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            named("SELECT x. FROM clean.a x JOIN lake.files AS f ON "),
            [pair("clean.a", "x"), pair("files", "f")]
        );
        assert_eq!(
            named("SELECT * FROM as_of('clean.a', 7) old WHERE "),
            [pair("clean.a", "old")]
        );
        assert_eq!(named("SELECT FROM W WHERE 'open"), [pair("clean.w", "w")]);
        assert_eq!(named("DESCRIBE clean.w.c"), [pair("clean.w.c", "c")]);
    }

    #[test]
    fn a_table_is_wanted_where_one_can_stand() {
        let wants = |text: &str| wants_table(&solid_tokens(text));
        assert!(wants("SELECT * FROM"));
        assert!(wants("SELECT * FROM clean.a x,"));
        assert!(wants("SELECT (SELECT a FROM b), c FROM d JOIN"));
        assert!(!wants("SELECT a,"));
        assert!(!wants("SELECT f(a,"));
        assert!(!wants("SELECT * FROM a WHERE"));
        assert!(!wants(""));
    }

    #[test]
    fn the_word_before_the_cursor_is_found() {
        let place = place_of("SELECT 熱, a.b", "SELECT 熱, a.b".len());
        assert_eq!((place.word, place.in_text), ("a.b", false));
        let text = "SELECT * FROM as_of('clean.w";
        let place = place_of(text, text.len());
        assert_eq!((place.word, place.in_text), ("clean.w", true));
        assert_eq!(place_of("SELECT ", 7).word, "");
    }

    #[test]
    fn names_are_quoted_where_they_must_be() {
        assert_eq!(written("標題"), "標題");
        assert_eq!(written("order"), "\"order\"");
        assert_eq!(written("createdAt"), "\"createdAt\"");
        assert_eq!(written("a b"), "\"a b\"");
        assert_eq!(written("_extra"), "_extra");
    }
}
