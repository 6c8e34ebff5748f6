//! The pages of the site: from an address and a day to bytes, without any input but those.
//!
//! `scene` decides which page is made and with which status; `layout` is the frame of every HTML
//! page, `list` and `detail` what stands in it, `entrance` the pages without listings, `interface`
//! the JSON twin, `machine` what robots read. SITE-2: an announced total is the number of listings
//! over all pages, unless a fault says otherwise.

mod detail;
mod entrance;
mod interface;
mod layout;
mod list;
mod machine;
mod paging;
mod scene;
mod wording;

pub(crate) use scene::{Media, Rendered, Scene, refused, render};
