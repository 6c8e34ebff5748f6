//! stub
use crate::context::Globals;
use crate::exit::Exit;
use lakebed::{Error, Result};
pub(crate) async fn ingest(_: crate::args::IngestArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
