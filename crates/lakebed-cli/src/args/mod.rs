//! Raw arguments: what stands on the command line, before anything is checked against the lake.
//!
//! One file per command group. These types hold texts and switches only; `commands` turns them
//! into checked options. What does not belong here: opening files, reading configuration, defaults
//! that depend on the project.

mod catalog;
mod correct;
mod crawl;
mod dataset;
mod demo;
mod demo_site;
mod derive;
mod flow;
mod fold;
mod global;
mod govern;
mod ingest;
mod pack;
mod parse;
mod project;
mod queue;
mod root;
mod schema;
mod serve;
mod shadow;
mod source;
mod sql;

pub(crate) use catalog::{CatalogCommand, CatalogRebuildArgs, PartitionsArgs};
pub(crate) use correct::{CorrectArgs, RollbackArgs, SwitchArgs, SwitchHowArgs};
pub(crate) use crawl::{CrawlArgs, CrawlCloseArgs, CrawlCommand, CrawlResumeArgs, CrawlStopArgs};
pub(crate) use dataset::{AbandonArgs, LogArgs, RejectsArgs, ReopenArgs, SealArgs};
pub(crate) use demo::DemoArgs;
pub(crate) use demo_site::DemoSiteArgs;
pub(crate) use derive::{DeriveArgs, LineageArgs};
pub(crate) use flow::{DatesArgs, FlowArgs, FlowStatusArgs, FlowWatchArgs, RunFlowArgs};
pub(crate) use fold::{FoldArgs, SeedArgs};
pub(crate) use global::{FormatArgs, GlobalArgs, TextFormat, asks_for_json};
pub(crate) use govern::AuditArgs;
pub(crate) use ingest::{IngestArgs, KeepAs, LoadArg, MismatchArg, ProvenanceArg};
pub(crate) use pack::{
    PackCatArgs, PackCommand, PackEraseArgs, PackExportArgs, PackImportArgs, PackListArgs,
    PackRepairArgs, PackRunArgs, PackSealArgs, PackVerifyArgs, ProfileArg,
};
pub(crate) use parse::ParseArgs;
pub(crate) use project::{ConfigCommand, ConfigShowArgs, InitArgs};
pub(crate) use queue::{
    QueueCommand, QueueListArgs, QueuePruneArgs, QueueRetryArgs, QueueStatusArgs, QueueWatchArgs,
    RunArgs, StateArg,
};
pub(crate) use root::{Cli, Command};
pub(crate) use schema::{
    CheckArgs, DiffArgs, HistoryArgs, InferArgs, ListArgs, ProposeArgs, PublishArgs, ReadArgs,
    SchemaCommand, ShowArgs, ViewArgs,
};
pub(crate) use serve::ServeArgs;
pub(crate) use shadow::{ShadowArgs, ShadowStage};
pub(crate) use source::{
    ClassArg, SourceAddArgs, SourceCommand, SourceNewArgs, SourceSampleArgs, SourceShowArgs,
    SourceTestArgs,
};
pub(crate) use sql::{RowsHistoryArgs, SqlArgs, SqlFormat};
