//! Two implementations of a stage over the same inputs, day by day, before one takes the place of the other.
//!
//! | part | what it does |
//! | --- | --- |
//! | `record` | what was found, kept by date; what all dates of two implementations say |
//! | `item` | an item, compared |
//! | `pages`, `page` | parse: the packs of a date, and one page, by two sets of rules |
//! | `fold` | a day's fold by two sets of rules |
//! | `derived` | the rows of two queries |
//! | `shell`, `files` | the commands of a shell stage, and the files that they left |
//! | `tables` | two sorted tables, row against row |
//!
//! SHD-1: a shadow run reads packs and datasets and writes beside them: no dataset, no stamp and no queue knows of it. Equal
//! implementations and inputs give equal records, and a date whose record is of them is not read again.

mod derived;
mod files;
mod fold;
mod item;
mod page;
mod pages;
mod record;
mod shell;
mod tables;

pub use derived::{check_shadow_key, shadow_derived, shadow_key};
pub use fold::ShadowFold;
pub use pages::ShadowRules;
pub use record::{
    ShadowBegun, ShadowDate, ShadowOptions, ShadowPair, ShadowSummary, Shadowed, summarize_shadow,
};
pub use shell::ShadowShell;
pub use tables::ShadowTable;
