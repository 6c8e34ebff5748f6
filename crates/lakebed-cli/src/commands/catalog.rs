//! stub
use crate::context::Globals;
use crate::exit::Exit;
use lakebed::{Error, Result};
pub(crate) async fn status(_: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
pub(crate) async fn sync(_: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
pub(crate) async fn rebuild(_: &crate::args::CatalogRebuildArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
pub(crate) async fn partitions(_: &crate::args::PartitionsArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
