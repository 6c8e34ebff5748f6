//! stub
use crate::context::Globals;
use crate::exit::Exit;
use lakebed::{Error, Result};
pub(crate) async fn init(_: crate::args::InitArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
pub(crate) fn show(_: &crate::args::ConfigShowArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
