//! Real scraped data, its whole way: every drift event its README names is refused or versioned,
//! and the totals of every set are those of its README.
//!
//! | file | set | what it is hard by |
//! | --- | --- | --- |
//! | `weibo` | weibo-hot-zh | fields that appear between two hours, `1910000000.0000002` |
//! | `hot_hub` | website-hot-hub-zh | eight sources, invisible characters, `1,886` |
//! | `github_trending` | github-trending-zh | nested, members that appear inside a struct |
//! | `regioni`, `province` | italy-covid19 | `;`, Latin-1, a column without a name, renames for a day, `08`, `NA` |
//! | `csse` | csse-covid19 | twelve headers, the wrong file published twice, `1529.0` |
//!
//! The small tests of each file tell an owner's story through the binary: the day before a drift,
//! the refusal, the next version, the day itself. The `whole_set` tests store every file of a set
//! through the library in one process, then ask the binary what the lake holds.
//!
//! What the lake must hold is counted here by readers of our own (`data`), never by Lakebed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of these tests fail the test that calls them"
)]

mod bulk;
mod csse;
mod data;
mod draft;
mod github_trending;
mod hot_hub;
mod province;
mod regioni;
mod story;
mod weibo;
