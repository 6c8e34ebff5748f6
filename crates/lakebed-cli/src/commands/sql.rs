//! `sql` and `history`: a query, its rows to stdout or into a file, and with `--stats` what it cost.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lakebed::catalog::{self, Catalog};
use lakebed::config::SourceConfig;
use lakebed::name::DatasetRef;
use lakebed::store::Lake;
use lakebed::time::{BusinessDate, time_zone};
use lakebed::{Error, Result};
use lakebed_query::{
    Freshen, ObjectKey, QueryEngine, QueryMeter, QueryOptions, QueryResult, QueryStats, write_csv,
    write_json, write_parquet, write_table,
};

use crate::args::{RowsHistoryArgs, SqlArgs, SqlFormat};
use crate::context::{Context, Globals, put_sources};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::table::{count, size};

/// A query, resolved.
struct SqlOptions {
    query: String,
    format: SqlFormat,
    output: Option<PathBuf>,
    stats: bool,
}

impl SqlOptions {
    fn resolve(args: SqlArgs) -> Result<Self> {
        let query = if args.query == "-" {
            let mut text = String::new();
            io::stdin()
                .read_to_string(&mut text)
                .map_err(|e| Error::io("read", "standard input", e))?;
            text
        } else {
            args.query
        };
        check_terminal(args.format, args.output.as_deref())?;
        Ok(Self {
            query,
            format: args.format,
            output: args.output,
            stats: args.stats,
        })
    }
}

/// `lakebed sql`
pub(crate) async fn query(args: SqlArgs, globals: &Globals<'_>) -> Result<Exit> {
    let options = SqlOptions::resolve(args)?;
    let context = Context::open(globals).await?;
    let result = engine(&context)?.sql(&options.query).await?;
    for warning in result.warnings() {
        globals.printer.warn(warning);
    }
    for table in &result.stats().tables {
        globals.printer.debug(format!(
            "{}: {} of {} read, {}",
            table.table,
            table.files_read,
            count(table.files_considered, "file"),
            size(table.bytes)
        ));
    }
    let (meter, stats) = (result.meter(), result.stats().clone());
    let rows = write(globals, result, options.format, options.output.as_deref()).await?;
    if options.stats {
        globals.printer.stderr(&cost(&meter, &stats, rows));
    }
    Ok(Exit::Done)
}

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
    check_terminal(args.format, args.output.as_deref())?;
    let context = Context::open(globals).await?;
    let result = engine(&context)?.history(&object).await?;
    for warning in result.warnings() {
        globals.printer.warn(warning);
    }
    let rows = write(globals, result, args.format, args.output.as_deref()).await?;
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

fn check_terminal(format: SqlFormat, output: Option<&Path>) -> Result<()> {
    if format == SqlFormat::Parquet && output.is_none() && io::stdout().is_terminal() {
        return Err(Error::invalid("Parquet does not go to a terminal")
            .hint("add `--output FILE`, or take another `--format`"));
    }
    Ok(())
}

/// Rows to stdout or into a file, and how many; absent where the reader of stdout went away.
async fn write(
    globals: &Globals<'_>,
    result: QueryResult,
    format: SqlFormat,
    output: Option<&Path>,
) -> Result<Option<u64>> {
    let Some(path) = output else {
        return to_stdout(globals.printer, result, format).await;
    };
    let rows = to_file(path, result, format).await?;
    globals.printer.info(format!(
        "wrote {} to {}",
        count(rows, "row"),
        path.display()
    ));
    Ok(Some(rows))
}

/// What a query cost, one `name value` a line; `rows` is absent where not all were taken.
fn cost(meter: &QueryMeter, stats: &QueryStats, rows: Option<u64>) -> String {
    let ms = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1000.0);
    let mut lines = vec![
        ("planning_ms", ms(meter.planning())),
        ("execution_ms", ms(meter.execution())),
        ("files_considered", stats.files_considered().to_string()),
        ("files_read", stats.files_read().to_string()),
    ];
    lines.extend(rows.map(|n| ("rows", n.to_string())));
    lines.push(("bytes_read", meter.bytes_read().to_string()));
    lines
        .into_iter()
        .map(|(name, value)| format!("{name} {value}\n"))
        .collect()
}

/// The query engine over the context's lake, whose catalog follows the logs before each query.
pub(crate) fn engine(context: &Context<'_>) -> Result<QueryEngine> {
    let workers = context
        .settings()
        .threads
        .value
        .and_then(|n| usize::try_from(n).ok())
        .and_then(NonZeroUsize::new);
    let lake = context.lake();
    let zone = time_zone(&lake.spec().time_zone)?;
    let sources = context.project().list_sources()?;
    let freshen = FollowLog {
        lake: lake.clone(),
        catalog: context.catalog(),
        sources: sources.clone(),
    };
    QueryEngine::new(
        lake.clone(),
        context.catalog(),
        QueryOptions {
            workers,
            freshen: Some(Arc::new(freshen)),
            sources,
            access_day: Some(BusinessDate::of(lake.clock().now(), &zone)),
        },
    )
}

/// Lets the catalog follow the logs of the datasets that a query names.
#[derive(Debug)]
struct FollowLog {
    lake: Lake,
    catalog: Arc<dyn Catalog>,
    sources: Vec<SourceConfig>,
}

#[async_trait]
impl Freshen for FollowLog {
    async fn freshen(&self, dataset: &DatasetRef) -> Result<()> {
        // `sync` binds a new catalog to the lake, so it comes first.
        catalog::sync(&self.lake, &*self.catalog, dataset).await?;
        catalog::sync_schemas(&self.lake, &*self.catalog, dataset).await
    }

    async fn freshen_all(&self) -> Result<()> {
        catalog::sync_all(&self.lake, &*self.catalog).await?;
        put_sources(&*self.catalog, &self.sources).await
    }
}

/// Writes rows in the format asked for; returns how many.
async fn write_rows(
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
