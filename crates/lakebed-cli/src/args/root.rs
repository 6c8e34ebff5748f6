//! The root of the command line: `lakebed <noun> <verb>`.

use clap::{Parser, Subcommand};

use crate::args::{
    AbandonArgs, AuditArgs, CatalogCommand, ConfigCommand, CorrectArgs, CrawlArgs, DemoArgs,
    DemoSiteArgs, DeriveArgs, FlowArgs, FlowStatusArgs, FlowWatchArgs, FoldArgs, GlobalArgs,
    IngestArgs, InitArgs, LineageArgs, LogArgs, PackCommand, ParseArgs, PartitionsArgs,
    QueueCommand, RejectsArgs, ReopenArgs, RollbackArgs, RowsHistoryArgs, RunFlowArgs,
    SchemaCommand, SealArgs, SeedArgs, ServeArgs, ShadowArgs, SourceCommand, SqlArgs, SwitchArgs,
};

/// Dated, versioned, checked tables out of what crawlers fetch.
#[derive(Debug, Parser)]
#[command(
    name = "lakebed",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 done, 1 the answer is no, 2 usage or configuration, 3 could not evaluate, 4 operational failure."
)]
pub(crate) struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Every command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a project and its lake; safe to call again
    Init(InitArgs),
    /// The project's configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// The crawled sites and interfaces
    #[command(subcommand)]
    Source(SourceCommand),
    /// Schema versions: infer, propose, diff, check, publish
    #[command(subcommand)]
    Schema(SchemaCommand),
    /// Do everything that is to be done for a date: crawl, parse, seal, fold, derive, as the sources declare
    Run(RunFlowArgs),
    /// Which stages of which dates are done, missing, STALE, red or running, and why
    Status(FlowStatusArgs),
    /// Follow a source and date: stages, requests, and what happens to its runs
    Watch(FlowWatchArgs),
    /// The stages of a source, their order and their command lines
    Flow(FlowArgs),
    /// Seed a run of a source, fetch it politely, and close it; several processes may do so at once
    Crawl(CrawlArgs),
    /// The request queue
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Serve the queue and the packs to other programs, over HTTP
    Serve(ServeArgs),
    /// Store files as rows of a dataset, in one commit
    Ingest(IngestArgs),
    /// Records that did not pass, with their reasons
    Rejects(RejectsArgs),
    /// Replace a date by the rows of other files; the old ones are kept for a rollback
    Correct(CorrectArgs),
    /// Show another revision of a date to readers
    Switch(SwitchArgs),
    /// Take the last correction of a date back
    Rollback(RollbackArgs),
    /// Declare a date of a dataset complete
    Seal(SealArgs),
    /// Take the seal from a date
    Reopen(ReopenArgs),
    /// Forbid an unfinished attempt to commit
    Abandon(AbandonArgs),
    /// Raw day packs: what was fetched
    #[command(subcommand)]
    Pack(PackCommand),
    /// What the rules of a source give for its pages
    Parse(ParseArgs),
    /// Compare other rules, queries or programs with those there are, over the same inputs, day by day
    Shadow(ShadowArgs),
    /// What is known of each object, from the snapshot of the day before and the rows of the date, and what happened
    Fold(FoldArgs),
    /// Plan which objects are fetched in detail, from the snapshot of the day before and the list of the date
    Seed(SeedArgs),
    /// Make the rows of derived datasets by the queries of a source
    Derive(DeriveArgs),
    /// What a date was made from and what was made from it; of a row, the pages it came from
    Lineage(LineageArgs),
    /// Commits of a dataset, oldest first
    Log(LogArgs),
    /// The SQL catalog, an index that can be rebuilt from the lake
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// Partitions that readers see
    Partitions(PartitionsArgs),
    /// Query the lake
    Sql(SqlArgs),
    /// All rows of one object, the oldest first
    History(RowsHistoryArgs),
    /// Compare log, catalog, `_SUCCESS` files and folders
    Audit(AuditArgs),
    /// Live through five days of a site that runs on this machine, from its pages to tables
    Demo(DemoArgs),
    /// Run a site of an invented rental market to crawl: it changes from day to day and misbehaves on order
    DemoSite(DemoSiteArgs),
}
