//! From the parsed command line to the command's function.

use lakebed::Result;

use crate::api;
use crate::args::{
    CatalogCommand, Cli, Command, ConfigCommand, CrawlArgs, CrawlCommand, PackCommand,
    QueueCommand, SchemaCommand, SourceCommand, SqlFormat, TextFormat,
};
use crate::commands::{
    catalog, crawl, crawl_close, dataset, derive, flow, fold, govern, history, ingest, lineage,
    log, pack, parse, project, prune, queue, rejects, revision, schema, shadow, source, sql,
};
use crate::context::Globals;
use crate::demo;
use crate::demo_site;
use crate::exit::Exit;
use crate::printer::Printer;

/// Runs the command.
pub(crate) async fn run(cli: Cli, printer: &Printer) -> Result<Exit> {
    let globals = Globals::resolve(cli.global, printer)?;
    let globals = &globals;
    match cli.command {
        Command::Init(args) => project::init(args, globals).await,
        Command::Config(ConfigCommand::Show(args)) => project::show(&args, globals),
        Command::Source(command) => match command {
            SourceCommand::New(args) => source::new(args, globals).await,
            SourceCommand::Add(args) => source::add(args, globals).await,
            SourceCommand::List(_) => source::list(globals),
            SourceCommand::Show(args) => source::show(&args, globals).await,
            SourceCommand::Test(args) => source::test(&args, globals).await,
            SourceCommand::Sample(args) => source::sample(args, globals).await,
        },
        Command::Schema(command) => run_schema(command, globals).await,
        Command::Run(args) => flow::run(args, globals).await,
        Command::Status(args) => flow::status(&args, globals).await,
        Command::Watch(args) => flow::watch(&args, globals).await,
        Command::Flow(args) => flow::show(&args, globals),
        Command::Crawl(args) => run_crawl(args, globals).await,
        Command::Queue(command) => run_queue(command, globals).await,
        Command::Serve(args) => api::run(args, globals).await,
        Command::Ingest(args) => ingest::ingest(args, globals).await,
        Command::Rejects(args) => rejects::list(&args, globals).await,
        Command::Correct(args) => revision::correct(args, globals).await,
        Command::Switch(args) => revision::switch(args, globals).await,
        Command::Rollback(args) => revision::rollback(args, globals).await,
        Command::Seal(args) => dataset::seal(args, globals).await,
        Command::Reopen(args) => dataset::reopen(args, globals).await,
        Command::Abandon(args) => dataset::abandon(args, globals).await,
        Command::Pack(command) => pack::run(command, globals).await,
        Command::Parse(args) => parse::run(args, globals).await,
        Command::Shadow(args) => shadow::run(args, globals).await,
        Command::Fold(args) => fold::fold(args, globals).await,
        Command::Seed(args) => fold::seed(args, globals).await,
        Command::Derive(args) => derive::derive(args, globals).await,
        Command::Lineage(args) => lineage::lineage(args, globals).await,
        Command::Log(args) => log::log(&args, globals).await,
        Command::Catalog(command) => match command {
            CatalogCommand::Status(_) => catalog::status(globals).await,
            CatalogCommand::Sync(_) => catalog::sync(globals).await,
            CatalogCommand::Rebuild(args) => catalog::rebuild(&args, globals).await,
        },
        Command::Partitions(args) => catalog::partitions(&args, globals).await,
        Command::Sql(args) => sql::query(args, globals).await,
        Command::History(args) => history::history(args, globals).await,
        Command::Audit(args) => govern::audit(&args, globals).await,
        Command::Demo(args) => demo::run(args, globals).await,
        Command::DemoSite(args) => demo_site::run(args, globals).await,
    }
}

async fn run_schema(command: SchemaCommand, globals: &Globals<'_>) -> Result<Exit> {
    match command {
        SchemaCommand::Infer(args) => schema::infer(&args, globals).await,
        SchemaCommand::Propose(args) => schema::propose(&args, globals).await,
        SchemaCommand::Diff(args) => schema::diff(&args, globals).await,
        SchemaCommand::Check(args) => schema::check(&args, globals).await,
        SchemaCommand::Publish(args) => schema::publish(&args, globals).await,
        SchemaCommand::List(args) => schema::list(&args, globals).await,
        SchemaCommand::Show(args) => schema::show(&args, globals).await,
        SchemaCommand::History(args) => schema::history(&args, globals).await,
        SchemaCommand::View(args) => schema::view(&args, globals).await,
    }
}

async fn run_crawl(args: CrawlArgs, globals: &Globals<'_>) -> Result<Exit> {
    match &args.command {
        Some(CrawlCommand::Close(args)) => crawl_close::close(args, globals).await,
        Some(CrawlCommand::Stop(args)) => crawl::stop(args, globals).await,
        Some(CrawlCommand::Resume(args)) => crawl::resume(args, globals).await,
        None => crawl::run(args, globals).await,
    }
}

async fn run_queue(command: QueueCommand, globals: &Globals<'_>) -> Result<Exit> {
    match command {
        QueueCommand::Status(args) => queue::status(&args, globals).await,
        QueueCommand::List(args) => queue::list(&args, globals).await,
        QueueCommand::Retry(args) => queue::retry(&args, globals).await,
        QueueCommand::Watch(args) => queue::watch(&args, globals).await,
        QueueCommand::Prune(args) => prune::prune(&args, globals).await,
    }
}

fn error_format(rows: SqlFormat) -> TextFormat {
    match rows {
        SqlFormat::Json => TextFormat::Json,
        SqlFormat::Table | SqlFormat::Csv | SqlFormat::Parquet => TextFormat::Text,
    }
}

fn format_of_pack(command: &PackCommand) -> TextFormat {
    match command {
        PackCommand::Seal(args) => args.output.format,
        PackCommand::List(args) => args.output.format,
        PackCommand::Cat(args) => args.output.format,
        PackCommand::Verify(args) => args.output.format,
        PackCommand::Repair(args) => args.output.format,
        PackCommand::Export(args) => args.output.format,
        PackCommand::Import(args) => args.output.format,
        PackCommand::Erase(args) => args.output.format,
    }
}

/// The format that the command's errors are told in, too.
pub(crate) fn format_of(command: &Command) -> TextFormat {
    match command {
        Command::Init(args) => args.output.format,
        Command::Config(ConfigCommand::Show(args)) => args.output.format,
        Command::Source(command) => match command {
            SourceCommand::New(args) => args.output.format,
            SourceCommand::Test(args) => args.output.format,
            SourceCommand::Sample(args) => args.output.format,
            SourceCommand::Add(args) => args.output.format,
            SourceCommand::List(args) => args.output.format,
            SourceCommand::Show(args) => args.output.format,
        },
        Command::Schema(command) => match command {
            SchemaCommand::Infer(args) => args.output.format,
            SchemaCommand::Propose(args) => args.output.format,
            SchemaCommand::Diff(args) => args.output.format,
            SchemaCommand::Check(args) => args.output.format,
            SchemaCommand::Publish(args) => args.output.format,
            SchemaCommand::List(args) => args.output.format,
            SchemaCommand::Show(args) => args.output.format,
            SchemaCommand::History(args) => args.output.format,
            SchemaCommand::View(args) => args.output.format,
        },
        Command::Run(args) => args.output.format,
        Command::Status(args) => args.output.format,
        Command::Watch(args) => args.output.format,
        Command::Flow(args) => args.output.format,
        Command::Derive(args) => args.output.format,
        Command::Lineage(args) => args.output.format,
        Command::Crawl(args) => match &args.command {
            Some(CrawlCommand::Close(args)) => args.output.format,
            Some(CrawlCommand::Stop(args)) => args.output.format,
            Some(CrawlCommand::Resume(args)) => args.output.format,
            None => args.output.format,
        },
        Command::Queue(command) => match command {
            QueueCommand::Status(args) => args.output.format,
            QueueCommand::List(args) => args.output.format,
            QueueCommand::Retry(args) => args.output.format,
            QueueCommand::Watch(args) => args.output.format,
            QueueCommand::Prune(args) => args.output.format,
        },
        Command::Serve(args) => args.output.format,
        Command::Ingest(args) => args.output.format,
        Command::Rejects(args) => args.output.format,
        Command::Correct(args) => args.output.format,
        Command::Switch(args) => args.how.output.format,
        Command::Rollback(args) => args.how.output.format,
        Command::Seal(args) => args.output.format,
        Command::Reopen(args) => args.output.format,
        Command::Abandon(args) => args.output.format,
        Command::Pack(command) => format_of_pack(command),
        Command::Parse(args) => args.output.format,
        Command::Shadow(args) => args.output.format,
        Command::Fold(args) => args.output.format,
        Command::Seed(args) => args.output.format,
        Command::Log(args) => args.output.format,
        Command::Catalog(command) => match command {
            CatalogCommand::Status(args) => args.output.format,
            CatalogCommand::Sync(args) => args.output.format,
            CatalogCommand::Rebuild(args) => args.output.format,
        },
        Command::Partitions(args) => args.output.format,
        Command::Sql(args) => error_format(args.format),
        Command::History(args) => error_format(args.format),
        Command::Audit(args) => args.output.format,
        Command::Demo(_) => TextFormat::Text,
        Command::DemoSite(args) => args.output.format,
    }
}
