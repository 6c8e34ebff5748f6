//! `shadow`: whether another implementation of a stage gives the same for the same inputs, and since how many days.

mod derived;
mod tell;

use std::path::Path;

use lakebed::config::{SourceConfig, StageKind};
use lakebed::flow::{
    Declared, ShadowFold, ShadowOptions, ShadowPair, ShadowRules, ShadowShell, Shadowed, WHOLE_DAY,
    summarize_shadow,
};
use lakebed::spec::{ShadowDay, ShadowVerdict};
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};

use crate::args::{ShadowArgs, ShadowStage, TextFormat};
use crate::commands::crawl::stop_signal;
use crate::commands::fold::fold_name;
use crate::commands::parse::{Ruled, dates_of, source_beside};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::progress::IngestProgress;
use derived::ShadowQueries;
use tell::{MissingDate, ShadowAnswer, tell_day, tell_summary};

/// Version of the JSON answer.
const ANSWER_FORMAT: u32 = 1;
/// Folder of records in the project.
const FOLDER: &str = "shadow";
/// Bytes of an input's rows that a fold holds in memory.
const MEMORY_BYTES: usize = 1 << 30;

/// Two implementations of a stage.
enum Both<'a> {
    Parse(Box<(Ruled, Ruled)>),
    Fold(Box<ShadowFold>),
    Derive(Box<ShadowQueries<'a>>),
    Shell(Box<ShadowShell>),
}

/// `lakebed shadow`
pub(crate) async fn run(args: ShadowArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dates = dates_of(&args.date)?;
    let context = Context::open(globals).await?;
    let source = context.project().load_source(&args.source.parse()?)?;
    let both = Both::open((&args, dates[0]), (&context, &source), globals).await?;
    let options = ShadowOptions {
        kept: context.project().root().join(FOLDER),
        ignored: args.ignore.clone(),
        threads: None,
        memory_bytes: MEMORY_BYTES,
    };
    let printer = globals.printer;
    let (mut days, mut missing) = (Vec::new(), Vec::new());
    for date in dates {
        let title = format!("{} {date}", source.name);
        let progress = IngestProgress::new(printer, &title);
        let done = both.compare((&context, date), &options, &progress).await;
        drop(progress);
        match done.map_err(|e| e.with("date", date))? {
            Shadowed::Compared(day) => {
                if printer.format() == TextFormat::Text {
                    tell_day(&day, globals)?;
                }
                days.push(day);
            }
            Shadowed::Missing(reason) => {
                printer.warn(format!("{date} is not compared: {reason}"));
                missing.push(MissingDate { date, reason });
            }
        }
    }
    let summary = summarize_shadow(&options.kept, &both.pair()?)?;
    let answer = ShadowAnswer {
        format: ANSWER_FORMAT,
        pass: all_agree(&days) && missing.is_empty(),
        safe: summary.equal_in_a_row >= args.safe_after,
        safe_after: args.safe_after,
        missing: &missing,
        dates: &days,
        summary: &summary,
    };
    match printer.format() {
        TextFormat::Json => printer.json(&answer)?,
        TextFormat::Text => tell_summary(&answer, (args.stage, source.name.as_str()), globals)?,
    }
    Ok(if answer.pass { Exit::Done } else { Exit::No })
}

fn all_agree(days: &[ShadowDay]) -> bool {
    days.iter().all(|d| d.verdict == ShadowVerdict::Agree)
}

impl<'a> Both<'a> {
    async fn open(
        (args, date): (&ShadowArgs, BusinessDate),
        (context, source): (&'a Context<'a>, &SourceConfig),
        globals: &Globals<'_>,
    ) -> Result<Self> {
        let name = args.name.as_deref();
        Ok(match args.stage {
            ShadowStage::Parse => {
                refuse_name(name)?;
                let old = Ruled::open(&source.name, globals)?;
                let new = Ruled::open(&source.name, globals)?.beside(&args.with)?;
                Self::Parse(Box::new((old, new)))
            }
            ShadowStage::Fold => {
                let new = source_beside(&source.name, &args.with)?;
                let file = args.with.display().to_string();
                let name = fold_name(source, name)?;
                let both = (source, (&new, file.as_str()));
                Self::Fold(Box::new(
                    ShadowFold::open(context.lake(), both, &name).await?,
                ))
            }
            ShadowStage::Derive => {
                let new = source_beside(&source.name, &args.with)?;
                let both = (source, (&new, args.with.as_path()));
                Self::Derive(Box::new(ShadowQueries::open(context, both, name)?))
            }
            ShadowStage::Shell => {
                let new = source_beside(&source.name, &args.with)?;
                let both = (source, (&new, args.with.as_path()));
                Self::Shell(Box::new(open_shell(context, both, (name, date))?))
            }
        })
    }

    fn pair(&self) -> Result<ShadowPair> {
        match self {
            Self::Parse(both) => rules_of(both, &both.0.folder()).pair(),
            Self::Fold(both) => Ok(both.pair().clone()),
            Self::Derive(both) => Ok(both.pair().clone()),
            Self::Shell(both) => Ok(both.pair().clone()),
        }
    }

    async fn compare(
        &self,
        (context, date): (&Context<'_>, BusinessDate),
        options: &ShadowOptions,
        progress: &IngestProgress<'_>,
    ) -> Result<Shadowed> {
        match self {
            Self::Parse(both) => {
                let folder = both.0.folder();
                let rules = rules_of(both, &folder);
                rules.compare(context.lake(), date, options, progress).await
            }
            Self::Fold(both) => both.compare(date, options, progress),
            Self::Derive(both) => both.compare(date, options).await,
            Self::Shell(both) => both.compare(date, options).await,
        }
    }
}

fn rules_of<'a>(both: &'a (Ruled, Ruled), folder: &'a Path) -> ShadowRules<'a> {
    ShadowRules {
        source: &both.0.source.name,
        old: &both.0.rules,
        new: &both.1.rules,
        folder,
    }
}

/// The shell stage that is meant, as both files declare it.
fn open_shell(
    context: &Context<'_>,
    (old, new): (&SourceConfig, (&SourceConfig, &Path)),
    (given, date): (Option<&str>, BusinessDate),
) -> Result<ShadowShell> {
    let (project, lake) = (context.project(), context.lake());
    let stages = old.flow.iter().flat_map(|flow| &flow.stage);
    let shells = stages.filter(|stage| stage.kind == StageKind::Shell);
    let names: Vec<&str> = shells
        .map(|stage| stage.name.as_ref().map_or("shell", |name| name.as_str()))
        .collect();
    let name = match (given, names.as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, []) => {
            return Err(
                Error::not_found(format!("`{}` has no shell stage", old.name)).hint(
                    "a table [[flow.stage]] with kind = \"shell\" declares one: docs/flow.md",
                ),
            );
        }
        (None, names) => {
            return Err(
                Error::invalid(format!("`{}` has several shell stages", old.name))
                    .hint(format!("name one with `--name`: {}", names.join(", "))),
            );
        }
    };
    let both = (
        Declared::read(project, old)?,
        Declared::read_of(project, new.0, new.1)?,
    );
    let root = std::path::absolute(project.root())
        .map_err(|e| Error::io("find the folder", project.root().display(), e))?;
    let run = WHOLE_DAY.parse()?;
    ShadowShell::open((lake, &root), both, (name, date, &run), stop_signal()?)
}

fn refuse_name(name: Option<&str>) -> Result<()> {
    match name {
        None => Ok(()),
        Some(_) => Err(Error::invalid(
            "`--name` says which fold, query or shell stage, and this is parse",
        )
        .hint("leave it out, or name the stage: `lakebed shadow SOURCE fold --name NAME`")),
    }
}
