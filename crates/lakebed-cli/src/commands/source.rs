//! stub
use crate::context::Globals;
use crate::exit::Exit;
use lakebed::{Error, Result};
pub(crate) async fn add(_: crate::args::SourceAddArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
pub(crate) fn list(_: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
pub(crate) async fn show(_: &crate::args::SourceShowArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
