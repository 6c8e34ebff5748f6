//! stub
use crate::context::Globals;
use crate::exit::Exit;
use lakebed::{Error, Result};
pub(crate) async fn audit(_: &crate::args::AuditArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
