//! One dataset as a table: its columns over all schema versions, and the plan that reads its files.
//!
//! ```text
//! catalog rows -> columns (merge by field id) -> prune (which files) -> source (DataSourceExec)
//!                 adapt + align (a file's columns become the table's) <- reader (bytes, stage folder)
//! ```
//!
//! Where only columns are wanted that are constant in a file, `constants` makes the rows from the
//! catalog's, and `per_file` is the table that has one row a file.
//!
//! QRY-1: a file that may hold a matching row is in the plan; no file is found by listing.
//! QRY-2: a column of a file is found by its field id, never by its name.
//! QRY-3: a number answered from the catalog is marked exact only where it equals what reading gives.
//! QRY-4: what is skipped inside a file holds no matching row either, NaN counted above all numbers.

mod adapt;
mod align;
mod bounds;
mod columns;
mod constants;
mod footers;
mod lines;
mod member;
mod per_file;
mod prune;
mod reader;
mod retype;
mod row_filter;
mod selectivity;
mod source;
mod table;
mod views;

pub(crate) use columns::{
    FieldColumn, KnownColumns, ORIGIN_COLUMNS, OnDemand, RANK_COLUMN, TableColumns,
};
pub(crate) use footers::Footers;
pub(crate) use per_file::{PerFileTable, ROWS_COLUMN};
pub(crate) use reader::ReadLog;
pub(crate) use source::LakeSource;
pub(crate) use table::{LakeTable, ScanNote, ScanTrace, TableInput};
pub(crate) use views::without_views;
