//! Raw day packs: what was fetched, in one `.tar.zst` that any tar reads and that gives one document by one
//! ranged read (docs/formats/rawpack.md).
//!
//! ```text
//!  captures -> PartWriter / SharedPart      parts of the run's folder, frames made durable one by one
//!                    |
//!              open_parts                   after a crash: torn tails are cut and kept
//!                    |
//!     terminals -> plan_pack -> commit_pack one sorted pack and its index, one record of `raw/<source>`
//!                                   |
//!                               PackReader  get, replay, verify, repair, erase, export
//! ```
//!
//! `tar`, `frame`, `content` are the format from the inside out; `walk` reads frames in their order; `source`
//! is where bytes come from, `scan` the one pass that index, verification, repair and erasure share.

mod beside;
mod commit;
mod content;
mod digest;
mod durable;
mod encode;
mod erase;
mod frame;
mod index;
mod part;
mod part_shared;
mod parts;
mod reader;
mod release;
mod repair;
#[cfg(test)]
mod samples;
mod scan;
mod seal;
mod source;
mod spool;
mod tail;
mod tar;
mod terminals;
mod walk;
mod warc;

pub use beside::{index_beside, index_path, save_pack};
pub use commit::{CommitOptions, PackReport, commit_pack, has_pack, raw_dataset};
pub use content::body_hash;
pub use erase::{EraseOutcome, erase_captures};
pub use index::{PackIndex, write_index};
pub use part::{PartOptions, PartWriter, Receipt};
pub use part_shared::{SharedPart, SharedPartOptions};
pub use parts::{OpenParts, Part, PartCapture, TornTail, open_parts};
pub use reader::{Capture, PackReader};
pub use release::{PartsOutcome, ReleaseOptions, done_in_lake, release_parts};
pub use repair::{RepairOutcome, repair_pack};
pub use scan::{PackDamage, PackScan, scan_pack};
pub use seal::{PackPlan, SealStats, find_lost, plan_pack};
pub use source::{FileSource, MemorySource, ReadAt};
pub use warc::{
    CdxEntry, ImportOptions, WarcExport, WarcImport, WarcOptions, export_wacz, export_warc,
    import_warc, write_cdxj,
};
