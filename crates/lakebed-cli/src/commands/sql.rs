//! `sql`: a query, its rows to stdout or into a file, and with `--stats` what it cost; several from
//! standard input, one after the other; from a terminal, the prompt.

use std::io::{self, IsTerminal, Read};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lakebed::catalog::{self, Catalog, SchemaRow};
use lakebed::config::SourceConfig;
use lakebed::name::DatasetRef;
use lakebed::store::Lake;
use lakebed::time::{BusinessDate, time_zone};
use lakebed::{Error, Result};
use lakebed_query::{
    Freshen, QueryEngine, QueryMeter, QueryOptions, QueryStats, Rest, split_script,
};

use crate::args::{SqlArgs, SqlFormat};
use crate::commands::rows::{check_terminal, write_result};
use crate::context::{Context, Globals, put_sources};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::prompt::{self, PromptOptions};
use crate::table::{count, size};

/// A call, resolved.
struct SqlOptions {
    asked: Asked,
    format: SqlFormat,
    output: Option<PathBuf>,
    stats: bool,
}

/// What is to be answered.
enum Asked {
    /// One statement, from the command line.
    Query(String),
    /// Any number of them, from standard input.
    Script(String),
    /// What comes from a terminal.
    Prompt,
}

impl Asked {
    fn resolve(query: Option<String>) -> Result<Self> {
        match query {
            Some(text) if text != "-" => Ok(Self::Query(text)),
            None if io::stdin().is_terminal() => Ok(Self::Prompt),
            Some(_) | None => {
                let mut text = String::new();
                io::stdin()
                    .read_to_string(&mut text)
                    .map_err(|e| Error::io("read", "standard input", e))?;
                Ok(Self::Script(text))
            }
        }
    }
}

impl SqlOptions {
    fn resolve(args: SqlArgs) -> Result<Self> {
        let options = Self {
            asked: Asked::resolve(args.query)?,
            format: args.format,
            output: args.output,
            stats: args.stats,
        };
        let to_prompt = matches!(options.asked, Asked::Prompt);
        if to_prompt && options.output.is_some() {
            return Err(Error::invalid("a prompt writes to no file")
                .hint("`lakebed sql QUERY --output FILE` does"));
        }
        let on_terminal = to_prompt || (options.output.is_none() && io::stdout().is_terminal());
        check_terminal(options.format, on_terminal)?;
        Ok(options)
    }

    /// The statements in their order; a text that says nothing is one, which the engine refuses.
    fn statements(&self) -> Result<Vec<&str>> {
        let text = match &self.asked {
            Asked::Query(text) => return Ok(vec![text]),
            Asked::Script(text) => text,
            Asked::Prompt => return Ok(Vec::new()),
        };
        let script = split_script(text);
        let mut statements = script.statements;
        if script.rest_is != Rest::Nothing || statements.is_empty() {
            statements.push(script.rest);
        }
        let whole = self.output.is_some() || self.format == SqlFormat::Parquet;
        if statements.len() > 1 && whole {
            let n = statements.len();
            return Err(
                Error::invalid(format!("{n} statements do not go into one file"))
                    .hint("call once for each statement, or take `--format json`, `csv` or `table` on standard output"),
            );
        }
        Ok(statements)
    }
}

/// `lakebed sql`
pub(crate) async fn query(args: SqlArgs, globals: &Globals<'_>) -> Result<Exit> {
    let options = SqlOptions::resolve(args)?;
    let statements = options.statements()?;
    let context = Context::open(globals).await?;
    let engine = engine(&context)?;
    if matches!(options.asked, Asked::Prompt) {
        let shown = PromptOptions {
            format: options.format,
            timing: options.stats,
        };
        return prompt::run(engine, shown, globals.printer).await;
    }
    let answered = answer_all(&engine, statements, &options, globals.printer).await;
    count_reads(&engine, globals.printer).await;
    answered.map(|()| Exit::Done)
}

async fn answer_all(
    engine: &QueryEngine,
    statements: Vec<&str>,
    options: &SqlOptions,
    printer: &Printer,
) -> Result<()> {
    for (i, statement) in statements.into_iter().enumerate() {
        if i > 0 && options.format == SqlFormat::Table {
            printer.bytes(b"\n")?;
        }
        answer(engine, statement, options, printer).await?;
    }
    Ok(())
}

/// What is said at the end of the engine's use: the catalog learns what was read.
pub(crate) async fn count_reads(engine: &QueryEngine, printer: &Printer) {
    if let Err(e) = engine.count_reads().await {
        printer.warn(format!("reads were not counted: {e}"));
    }
}

/// Answers one statement.
async fn answer(
    engine: &QueryEngine,
    text: &str,
    options: &SqlOptions,
    printer: &Printer,
) -> Result<()> {
    let result = engine.sql(text).await?;
    for table in &result.stats().tables {
        printer.debug(format!(
            "{}: {} of {} read, {}",
            table.table,
            table.files_read,
            count(table.files_considered, "file"),
            size(table.bytes)
        ));
    }
    let (meter, stats) = (result.meter(), result.stats().clone());
    let rows = write_result(printer, result, options.format, options.output.as_deref()).await?;
    for warning in meter.warnings() {
        printer.warn(warning);
    }
    if options.stats {
        printer.stderr(&query_cost(&meter, &stats, rows));
    }
    Ok(())
}

/// What a query cost, one `name value` a line; `rows` is absent where not all were taken.
pub(crate) fn query_cost(meter: &QueryMeter, stats: &QueryStats, rows: Option<u64>) -> String {
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
            queue: Some(context.settings().queue.value.clone()),
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
    async fn freshen(&self, dataset: &DatasetRef) -> Result<Vec<SchemaRow>> {
        catalog::follow(&self.lake, &*self.catalog, dataset).await
    }

    async fn freshen_all(&self) -> Result<()> {
        catalog::sync_all(&self.lake, &*self.catalog).await?;
        put_sources(&*self.catalog, &self.sources).await
    }
}
