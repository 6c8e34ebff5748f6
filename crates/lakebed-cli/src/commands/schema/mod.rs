//! `schema ...`: the way of a version from files to its published number.
//!
//! | file | commands |
//! | --- | --- |
//! | `infer` | `infer`: what files say |
//! | `offer` | what a refused ingest offers |
//! | `propose` | `propose`: the next version as a file |
//! | `check` | `diff`, `check`: what differs, what is wrong |
//! | `publish` | `publish` |
//! | `show` | `list`, `show`, `history`: what is published |
//! | `view` | `view`: all versions as one table for another engine |

mod check;
mod infer;
mod offer;
mod propose;
mod publish;
mod show;
mod view;

pub(crate) use check::{check, diff};
pub(crate) use infer::infer;
pub(crate) use offer::{Offer, offer_next};
use propose::draft_next;
pub(crate) use propose::propose;
pub(crate) use publish::{publish, publish_file};
pub(crate) use show::{history, list, show};
pub(crate) use view::view;

/// Version of the JSON objects of these commands.
const ANSWER_FORMAT: u32 = 1;
