//! `--records`, `--encoding`, `--delimiter`: how files are read, for `ingest` and `schema` alike.

use lakebed::spec::ReadSpec;
use lakebed::{Error, Result};

use crate::args::ReadArgs;

/// Reading rules of the call.
pub(crate) fn read_spec(args: &ReadArgs) -> Result<ReadSpec> {
    let delimiter = match args.delimiter.as_deref() {
        Some("tab" | "\\t") => Some("\t".to_owned()),
        Some(text) if text.len() != 1 => {
            return Err(Error::invalid(format!("`{text}` is not a delimiter"))
                .hint("one ASCII character such as `;`, or the word `tab`"));
        }
        other => other.map(str::to_owned),
    };
    Ok(ReadSpec {
        records: args.records.clone(),
        encoding: args.encoding.clone(),
        delimiter,
        ..ReadSpec::default()
    })
}
