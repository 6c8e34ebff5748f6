//! `schema infer | propose | diff | check | publish | list | show | history | view`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use lakebed::registry::Engine;

use crate::args::FormatArgs;

/// `lakebed schema ...`
#[derive(Debug, Subcommand)]
pub(crate) enum SchemaCommand {
    /// What files say of every field: types, presence, samples; decides nothing
    Infer(InferArgs),
    /// Write the next version as a file to review: from FILES, or a copy of the newest version
    Propose(ProposeArgs),
    /// What differs between two versions; exits 1 when something does
    Diff(DiffArgs),
    /// Check version files against each other and against what is published, for CI
    Check(CheckArgs),
    /// Take the version's number for ever; from then on data may be stored under it
    Publish(PublishArgs),
    /// Published versions
    List(ListArgs),
    /// One version: the newest published one unless a number is given
    Show(ShowArgs),
    /// Since when a field exists and how it changed
    History(HistoryArgs),
    /// The SQL statement that reads all versions as one table in another engine
    View(ViewArgs),
}

/// How files are read where it is not the default; also options of `ingest`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ReadArgs {
    /// JSON pointer to the records of a document, for example /data/items
    #[arg(long, value_name = "PTR")]
    pub(crate) records: Option<String>,
    /// Encoding of the files (a WHATWG label: gbk, big5, utf-8); a byte order mark beats it
    #[arg(long, value_name = "LABEL")]
    pub(crate) encoding: Option<String>,
    /// Delimiter of CSV files: one ASCII character, or `tab`
    #[arg(long, value_name = "CHAR")]
    pub(crate) delimiter: Option<String>,
}

/// `lakebed schema infer`
#[derive(Debug, Args)]
pub(crate) struct InferArgs {
    /// The dataset, for example clean/wechat
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// Files or globs; `-` = standard input
    #[arg(value_name = "FILES", required = true)]
    pub(crate) files: Vec<String>,
    /// Reading.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed schema propose`
#[derive(Debug, Args)]
pub(crate) struct ProposeArgs {
    /// The dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// Files or globs the version is made from; without any: a copy of the newest version to edit
    #[arg(value_name = "FILES")]
    pub(crate) files: Vec<String>,
    /// Write the file here, `-` = standard output [default: sources/SOURCE/schemas/NAME/vN.toml]
    #[arg(long = "output", value_name = "FILE")]
    pub(crate) output_file: Option<PathBuf>,
    /// Reading.
    #[command(flatten)]
    pub(crate) read: ReadArgs,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed schema diff`
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// A version number or a version file
    #[arg(value_name = "A")]
    pub(crate) from: String,
    /// A version number or a version file
    #[arg(value_name = "B")]
    pub(crate) to: String,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed schema check`
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The dataset [default: all]
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed schema publish`
#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    /// The dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// The version number
    #[arg(value_name = "VERSION")]
    pub(crate) version: u32,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed schema list`
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// The dataset [default: all]
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed schema show`
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// The version number [default: the newest published]
    #[arg(value_name = "VERSION")]
    pub(crate) version: Option<u32>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed schema history`
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// The field: its name, or a path such as author.name
    #[arg(value_name = "FIELD")]
    pub(crate) field: String,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// An engine of `schema view`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArg {
    /// DuckDB.
    Duckdb,
    /// Trino, over a table of its Hive connector.
    Trino,
    /// Apache Spark.
    Spark,
    /// ClickHouse.
    Clickhouse,
}

impl EngineArg {
    /// The engine.
    pub(crate) fn engine(self) -> Engine {
        match self {
            Self::Duckdb => Engine::DuckDb,
            Self::Trino => Engine::Trino,
            Self::Spark => Engine::Spark,
            Self::Clickhouse => Engine::ClickHouse,
        }
    }
}

/// `lakebed schema view`
#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    /// The dataset
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// The engine that will read
    #[arg(long, value_enum, value_name = "ENGINE")]
    pub(crate) engine: EngineArg,
    /// Print CREATE OR REPLACE VIEW of this name, parts separated by dots [default: the query alone]
    #[arg(long, value_name = "VIEW")]
    pub(crate) name: Option<String>,
    /// The lake as the engine sees it, without the layer [default: the lake's folder]
    #[arg(long, value_name = "URL_OR_FOLDER")]
    pub(crate) location: Option<String>,
    /// Trino's table over the dataset's folder; a comment says how to register it
    #[arg(long, value_name = "TABLE", required_if_eq("engine", "trino"))]
    pub(crate) table: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
