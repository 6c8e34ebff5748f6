//! The story of the demo, step by step.

use lakebed::{Error, Result};

use crate::args::DemoArgs;
use crate::context::Globals;
use crate::exit::Exit;

/// `lakebed demo`
pub(crate) async fn run(_args: DemoArgs, _globals: &Globals<'_>) -> Result<Exit> {
    Err(Error::internal("todo"))
}
