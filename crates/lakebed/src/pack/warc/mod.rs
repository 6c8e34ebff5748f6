//! WARC, WACZ and CDXJ: packs for the tools of web archives, and their files into parts.
//!
//! `record` writes and reads single records, `http` turns a capture's head into that of a WARC and back,
//! `export` walks over a pack, `import` over a WARC, `wacz` puts an export and its index (`cdxj`) into a ZIP.

mod cdxj;
mod export;
mod http;
mod import;
mod record;
mod wacz;

pub use cdxj::{CdxEntry, write_cdxj};
pub use export::{WarcExport, WarcOptions, export_warc};
pub use import::{ImportOptions, WarcImport, import_warc};
pub use wacz::export_wacz;

#[cfg(test)]
mod tests;
