//! `pack`: raw day packs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::args::FormatArgs;

/// `lakebed pack`
#[derive(Debug, Subcommand)]
pub(crate) enum PackCommand {
    /// Make one pack of the parts of a run and commit it to the lake
    Seal(PackSealArgs),
    /// The captures of a pack
    List(PackListArgs),
    /// The body of a capture, or of a request's newest one
    Cat(PackCatArgs),
    /// Read every byte of a pack and compare it with its digests
    Verify(PackVerifyArgs),
    /// Save every frame of a damaged pack or part but the damaged ones
    Repair(PackRepairArgs),
    /// Write a pack as WARC, WACZ or CDXJ
    Export(PackExportArgs),
    /// Write the responses of a WARC as a part of a run
    Import(PackImportArgs),
    /// Write a pack without the documents of some captures
    Erase(PackEraseArgs),
}

/// Which run of a source.
#[derive(Debug, Clone, Args)]
pub(crate) struct PackRunArgs {
    /// The source
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: String,
    /// Business date, YYYY-MM-DD
    #[arg(long, value_name = "D")]
    pub(crate) date: String,
    /// The run of that date
    #[arg(long, value_name = "NAME", default_value = "day")]
    pub(crate) run: String,
}

/// How a pack is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileArg {
    /// Level 9, one document by some 400 kB
    Std,
    /// Level 19, frames of 16 MiB
    Deep,
}

/// `lakebed pack seal`
#[derive(Debug, Args)]
pub(crate) struct PackSealArgs {
    /// The run.
    #[command(flatten)]
    pub(crate) run: PackRunArgs,
    /// The folder of its parts
    #[arg(long, value_name = "DIR")]
    pub(crate) parts: PathBuf,
    /// How each request ended, a JSON line each
    #[arg(long, value_name = "FILE")]
    pub(crate) terminals: PathBuf,
    /// How the pack is compressed
    #[arg(long, value_enum, default_value = "std")]
    pub(crate) profile: ProfileArg,
    /// The date is complete with this run
    #[arg(long)]
    pub(crate) complete: bool,
    /// Add to a date that is sealed; it is open then
    #[arg(long)]
    pub(crate) late: bool,
    /// Why, for the commit log
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed pack list`
#[derive(Debug, Args)]
pub(crate) struct PackListArgs {
    /// The pack
    #[arg(value_name = "PACK")]
    pub(crate) pack: PathBuf,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed pack cat`
#[derive(Debug, Args)]
pub(crate) struct PackCatArgs {
    /// The pack
    #[arg(value_name = "PACK")]
    pub(crate) pack: PathBuf,
    /// A capture id or a request key
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
    /// The capture as JSON, without its body
    #[arg(long)]
    pub(crate) head: bool,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed pack verify`
#[derive(Debug, Args)]
pub(crate) struct PackVerifyArgs {
    /// The pack
    #[arg(value_name = "PACK")]
    pub(crate) pack: PathBuf,
    /// Write the index beside it anew, if the pack is whole
    #[arg(long)]
    pub(crate) reindex: bool,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed pack repair`
#[derive(Debug, Args)]
pub(crate) struct PackRepairArgs {
    /// The damaged pack or part; it stays as it is
    #[arg(value_name = "PACK")]
    pub(crate) pack: PathBuf,
    /// The file to write, which must not exist
    #[arg(long, value_name = "FILE")]
    pub(crate) output_file: PathBuf,
    /// The source, where the pack does not say it any more
    #[arg(long, value_name = "SOURCE", requires = "date")]
    pub(crate) source: Option<String>,
    /// Its business date
    #[arg(long, value_name = "D", requires = "source")]
    pub(crate) date: Option<String>,
    /// Its run
    #[arg(long, value_name = "NAME", default_value = "day")]
    pub(crate) run: String,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed pack export`
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("target").required(true).args(["warc", "wacz"])))]
pub(crate) struct PackExportArgs {
    /// The pack
    #[arg(value_name = "PACK")]
    pub(crate) pack: PathBuf,
    /// Write a WARC; packed, where the name ends with `.gz`
    #[arg(long, value_name = "FILE")]
    pub(crate) warc: Option<PathBuf>,
    /// Write a WACZ
    #[arg(long, value_name = "FILE")]
    pub(crate) wacz: Option<PathBuf>,
    /// Write the index of the WARC, too
    #[arg(long, value_name = "FILE", requires = "warc")]
    pub(crate) cdxj: Option<PathBuf>,
    /// Write a body as often as it was fetched
    #[arg(long)]
    pub(crate) no_revisit: bool,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed pack import`
#[derive(Debug, Args)]
pub(crate) struct PackImportArgs {
    /// The WARC, packed or plain
    #[arg(value_name = "WARC")]
    pub(crate) warc: PathBuf,
    /// The run.
    #[command(flatten)]
    pub(crate) run: PackRunArgs,
    /// The folder of its parts
    #[arg(long, value_name = "DIR")]
    pub(crate) parts: PathBuf,
    /// Write how each request ended to this file, for `pack seal`
    #[arg(long, value_name = "FILE")]
    pub(crate) terminals: PathBuf,
    /// The kind of pages that do not say theirs
    #[arg(long, value_name = "KIND", default_value = "page")]
    pub(crate) kind: String,
    /// Bytes of a body at most once it is unpacked
    #[arg(long, value_name = "BYTES", default_value_t = 256 << 20)]
    pub(crate) max_body_bytes: u64,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}

/// `lakebed pack erase`
#[derive(Debug, Args)]
pub(crate) struct PackEraseArgs {
    /// The pack; it stays as it is
    #[arg(value_name = "PACK")]
    pub(crate) pack: PathBuf,
    /// The captures
    #[arg(value_name = "CAPTURE", required = true)]
    pub(crate) captures: Vec<String>,
    /// The file to write, which must not exist
    #[arg(long, value_name = "FILE")]
    pub(crate) output_file: PathBuf,
    /// Output.
    #[command(flatten)]
    pub(crate) output: FormatArgs,
}
