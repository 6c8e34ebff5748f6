//! The catalog from the lake alone: everything is cleared, then logs and published schemas are read.

use crate::catalog::Catalog;
use crate::catalog::sync::{SyncReport, bind, sync_all};
use crate::error::Result;
use crate::store::Lake;

/// Clears the catalog and fills it from the lake. Sources are not in the lake: the caller puts them.
///
/// `full` ignores checkpoints and reads every log from record 1. The catalog has a row for each record,
/// which no checkpoint holds, so both ways read all records. A rebuild that dies leaves a catalog that the next sync completes.
pub async fn rebuild(lake: &Lake, catalog: &dyn Catalog, _full: bool) -> Result<Vec<SyncReport>> {
    bind(lake, catalog).await?;
    catalog.clear().await?;
    sync_all(lake, catalog).await
}
