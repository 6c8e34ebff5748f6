//! Parse: pages in, records, follow-ups and rejects out, by the rules of a `source.toml` (docs/parse.md).
//!
//! ```text
//! [parse] of source.toml -> Rules::read            every selector, path and step is read before any page
//! capture + body + Rules -> parse_page -> ParsedPage   a pure function, bounded in time and memory
//! ```
//!
//! | part | what it knows |
//! | --- | --- |
//! | `rules`, `field` | the rules as they were declared, read and checked |
//! | `columns` | the columns of a schema that follow from them |
//! | `page` | what they give for one page |
//! | `css`, `select`, `html`, `tokens` | selectors of Scrapy's users over a tree with limits |
//! | `json`, `structured` | JSONPath; JSON-LD and microdata |
//! | `steps`, `numbers` | what is done to a value |
//! | `command` | pages that a program of the user's parses |
//! | `fixture` | pages that are kept with what they must give |
//! | `filled` | which fields of records have a value at all |
//! | `draft` | a first version of the rules, out of pages |
//! | `budget` | what one page may cost |
//!
//! What does not belong here: packs, the queue, datasets. Who has a page calls.

mod budget;
mod columns;
mod command;
mod css;
mod draft;
mod field;
mod filled;
mod fixture;
mod html;
mod json;
mod numbers;
mod page;
mod rules;
mod select;
mod steps;
mod structured;
#[cfg(test)]
mod tests;
mod tokens;

pub use command::{CommandParser, parse_with};
pub use draft::{Draft, DraftLine, draft_fields, draft_links, page_block, put_page};
pub use filled::{EmptyField, Filled};
pub use fixture::{Difference, EXPECTED_SUFFIX, Fixture, FixturePage, differences, gives};
pub(crate) use html::read_html;
pub use page::{PageInput, parse_page, whole_page};
pub use rules::Rules;
pub(crate) use select::Selector;
