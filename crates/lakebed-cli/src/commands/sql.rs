//! stub
use crate::context::Globals;
use crate::exit::Exit;
use lakebed::{Error, Result};
pub(crate) async fn query(_: crate::args::SqlArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
