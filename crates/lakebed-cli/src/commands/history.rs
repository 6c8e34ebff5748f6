//! `history`: every row of one object, the oldest first.

use std::io::{self, IsTerminal};

use lakebed::Result;
use lakebed::time::BusinessDate;
use lakebed_query::ObjectKey;

use crate::args::RowsHistoryArgs;
use crate::commands::rows::{check_terminal, write_result};
use crate::commands::sql::{count_reads, engine};
use crate::context::{Context, Globals};
use crate::exit::Exit;

/// `lakebed history`
pub(crate) async fn history(args: RowsHistoryArgs, globals: &Globals<'_>) -> Result<Exit> {
    let day = |text: Option<String>| text.map(|t| t.parse::<BusinessDate>()).transpose();
    let object = ObjectKey {
        dataset: args.dataset.parse()?,
        key: args.key,
        dt_from: day(args.from)?,
        dt_to: day(args.to)?,
        changes_only: args.changes,
    };
    let on_terminal = args.output.is_none() && io::stdout().is_terminal();
    check_terminal(args.format, on_terminal)?;
    let context = Context::open(globals).await?;
    let engine = engine(&context)?;
    let result = engine.history(&object).await?;
    let (meter, to) = (result.meter(), args.output.as_deref());
    let rows = write_result(globals.printer, result, args.format, to).await?;
    for warning in meter.warnings() {
        globals.printer.warn(warning);
    }
    count_reads(&engine, globals.printer).await;
    if rows != Some(0) {
        return Ok(Exit::Done);
    }
    globals.printer.info(format!(
        "no row of {} has the key {}",
        object.dataset,
        object.key.join(", ")
    ));
    Ok(Exit::No)
}
