//! `sql`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `lakebed sql`
#[derive(Debug, Args)]
pub(crate) struct SqlArgs {
    /// The query, for example "SELECT dt, count(*) FROM clean.wechat GROUP BY dt"; `-` = from standard input
    /// [default: standard input, which may hold several, each ended by `;`; on a terminal, a prompt]
    #[arg(value_name = "QUERY")]
    pub(crate) query: Option<String>,
    /// Form of the rows
    #[arg(long, value_enum, default_value_t = SqlFormat::Table)]
    pub(crate) format: SqlFormat,
    /// Write the rows to a file, whole or not at all [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// After the rows, say on standard error what the query cost: one line `name value` each
    #[arg(long)]
    pub(crate) stats: bool,
}

/// `lakebed history`
#[derive(Debug, Args)]
pub(crate) struct RowsHistoryArgs {
    /// The dataset; source.toml declares its key
    #[arg(value_name = "DATASET")]
    pub(crate) dataset: String,
    /// The object: one value for each column of the key, in the declared order
    #[arg(value_name = "KEY", required = true, allow_negative_numbers = true)]
    pub(crate) key: Vec<String>,
    /// First business date, YYYY-MM-DD [default: the first there is]
    #[arg(long, value_name = "D")]
    pub(crate) from: Option<String>,
    /// Last business date, included [default: the last there is]
    #[arg(long, value_name = "D")]
    pub(crate) to: Option<String>,
    /// Leave out rows that say what the row before them said
    #[arg(long)]
    pub(crate) changes: bool,
    /// Form of the rows
    #[arg(long, value_enum, default_value_t = SqlFormat::Table)]
    pub(crate) format: SqlFormat,
    /// Write the rows to a file, whole or not at all [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Form of the rows of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SqlFormat {
    /// Aligned text.
    Table,
    /// One array of objects, one row a line.
    Json,
    /// Comma-separated with a header line.
    Csv,
    /// Apache Parquet.
    Parquet,
}
