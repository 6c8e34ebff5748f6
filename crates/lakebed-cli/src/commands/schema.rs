//! stub
use crate::context::Globals;
use crate::exit::Exit;
use lakebed::{Error, Result};
pub(crate) async fn infer(_: &crate::args::InferArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
pub(crate) async fn propose(_: &crate::args::ProposeArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
pub(crate) async fn diff(_: &crate::args::DiffArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
pub(crate) async fn check(_: &crate::args::CheckArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
pub(crate) async fn publish(_: &crate::args::PublishArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
pub(crate) async fn list(_: &crate::args::ListArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
pub(crate) async fn show(_: &crate::args::ShowArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
pub(crate) async fn history(_: &crate::args::HistoryArgs, _: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
