//! The rows of a query, to stdout or into a file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use lakebed::{Error, Result};
use lakebed_query::{QueryResult, write_csv, write_json, write_parquet, write_table};

use crate::args::SqlFormat;
use crate::printer::Printer;
use crate::table::count;

/// Refuses what a terminal cannot show.
pub(crate) fn check_terminal(format: SqlFormat, on_terminal: bool) -> Result<()> {
    match format {
        SqlFormat::Parquet if on_terminal => {
            Err(Error::invalid("Parquet does not go to a terminal")
                .hint("add `--output FILE`, or take another `--format`"))
        }
        SqlFormat::Parquet | SqlFormat::Table | SqlFormat::Json | SqlFormat::Csv => Ok(()),
    }
}

/// Rows to stdout or into a file, and how many; absent where the reader of stdout went away.
pub(crate) async fn write_result(
    printer: &Printer,
    result: QueryResult,
    format: SqlFormat,
    output: Option<&Path>,
) -> Result<Option<u64>> {
    let Some(path) = output else {
        return to_stdout(printer, result, format).await;
    };
    let rows = to_file(path, result, format).await?;
    printer.info(format!(
        "wrote {} to {}",
        count(rows, "row"),
        path.display()
    ));
    Ok(Some(rows))
}

/// Writes rows in the format asked for; returns how many.
pub(crate) async fn write_rows(
    result: QueryResult,
    format: SqlFormat,
    out: &mut (dyn Write + Send),
) -> Result<u64> {
    match format {
        SqlFormat::Table => write_table(result, out).await,
        SqlFormat::Json => write_json(result, out).await,
        SqlFormat::Csv => write_csv(result, out).await,
        SqlFormat::Parquet => write_parquet(result, out).await,
    }
}

/// Rows to stdout, and how many; a reader that goes away ends the query, not the command.
async fn to_stdout(
    printer: &Printer,
    result: QueryResult,
    format: SqlFormat,
) -> Result<Option<u64>> {
    let mut out = StdoutData(printer);
    match write_rows(result, format, &mut out).await {
        Err(_) if printer.is_closed() => Ok(None),
        Err(error) => Err(error),
        Ok(rows) => {
            printer.debug(count(rows, "row"));
            Ok(Some(rows))
        }
    }
}

/// The printer's data stream as a `Write`.
struct StdoutData<'a>(&'a Printer);

impl Write for StdoutData<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.bytes(bytes).map_err(io::Error::other)?;
        if self.0.is_closed() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Rows into a file, whole or not at all: an older file of that name stays until the new one is whole.
async fn to_file(path: &Path, result: QueryResult, format: SqlFormat) -> Result<u64> {
    let failed = |e: io::Error| Error::io("write the file", path.display(), e);
    let mut name = path
        .file_name()
        .ok_or_else(|| Error::invalid(format!("`{}` is not a file name", path.display())))?
        .to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let temp = path.with_file_name(name);
    let mut out = BufWriter::new(File::create(&temp).map_err(failed)?);
    let written = write_rows(result, format, &mut out).await;
    let finished = written.and_then(|rows| {
        out.flush().map_err(failed)?;
        out.get_ref().sync_all().map_err(failed)?;
        fs::rename(&temp, path).map_err(failed)?;
        Ok(rows)
    });
    if finished.is_err() {
        // What failed is told; a rest that cannot be removed, too, tells nothing new.
        drop(fs::remove_file(&temp));
    }
    finished
}
