//! `fold` and `seed`.

use std::path::PathBuf;

use lakebed::config::{Project, SourceConfig};
use lakebed::flow::{
    FoldOptions, FoldOutcome, FoldRefusal, FoldReport, FoldedDay, SeedAnswer, SeedOptions,
    SeedReport, explain_seed, fold_date, plan_seeds, write_schemas,
};
use lakebed::fold::{PlannedKey, Verdict};
use lakebed::name::{FoldName, RunName};
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{FoldArgs, SeedArgs, TextFormat};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::failure::report_as;
use crate::progress::IngestProgress;
use crate::table::count;

/// Version of the JSON answers.
const ANSWER_FORMAT: u32 = 1;

fn bytes(mib: u32) -> usize {
    usize::try_from(mib)
        .unwrap_or(usize::MAX)
        .saturating_mul(1 << 20)
}

/// The fold that is meant.
pub(super) fn fold_name(source: &SourceConfig, given: Option<&str>) -> Result<FoldName> {
    let names: Vec<&FoldName> = source.folds.keys().collect();
    match (given, names.as_slice()) {
        (Some(name), _) => name.parse(),
        (None, [only]) => Ok((*only).clone()),
        (None, []) => Err(Error::not_found(format!("`{}` has no fold", source.name))
            .hint("a table [fold.NAME] in its source.toml declares one (docs/fold.md)")),
        (None, names) => {
            let names: Vec<&str> = names.iter().map(|n| n.as_str()).collect();
            Err(
                Error::invalid(format!("`{}` has several folds", source.name))
                    .hint(format!("name one with `--name`: {}", names.join(", "))),
            )
        }
    }
}

fn folder(project: &Project, what: &str, source: &SourceConfig) -> PathBuf {
    project.root().join(what).join(source.name.as_str())
}

fn refuse(refusal: &FoldRefusal, globals: &Globals<'_>) -> Exit {
    let exit = Exit::Unfit(refusal.kind);
    report_as(globals.printer, &refusal.error, exit)
}

/// `lakebed fold`
pub(crate) async fn fold(args: FoldArgs, globals: &Globals<'_>) -> Result<Exit> {
    let context = Context::open(globals).await?;
    let source = context.project().load_source(&args.source.parse()?)?;
    let name = fold_name(&source, args.name.as_deref())?;
    let Some(date) = &args.date else {
        return schemas(&context, (&source, &name), globals).await;
    };
    let date: BusinessDate = date.parse()?;
    let options = FoldOptions {
        folder: folder(context.project(), "fold", &source),
        from: args.from.as_deref().map(str::parse).transpose()?,
        provisional: args.provisional,
        cold_start: args.cold_start,
        partial: args.partial,
        complete: args.complete,
        allow_vanished: args.allow_vanished,
        by: context.by(None, args.note.clone()),
        threads: args.threads,
        memory_bytes: bytes(args.memory),
    };
    let progress = IngestProgress::new(globals.printer, &format!("{}.{name} {date}", source.name));
    let catalog = context.catalog();
    let answer = fold_date(
        (context.lake(), &*catalog),
        (&source, &name),
        date,
        &options,
        &progress,
    );
    let answer = answer.await?;
    drop(progress);
    tell_fold(&answer.report, globals)?;
    Ok(match &answer.refusal {
        None => Exit::Done,
        Some(refusal) => refuse(refusal, globals),
    })
}

async fn schemas(
    context: &Context<'_>,
    (source, name): (&SourceConfig, &FoldName),
    globals: &Globals<'_>,
) -> Result<Exit> {
    let written = write_schemas(context.lake(), context.project(), source, name).await?;
    let printer = globals.printer;
    match printer.format() {
        TextFormat::Json => printer.json(&serde_json::json!({
            "format": ANSWER_FORMAT,
            "schemas": written,
        }))?,
        TextFormat::Text => {
            for schema in &written {
                match &schema.file {
                    None => printer.line(format!(
                        "{}: version {} is published",
                        schema.dataset, schema.version
                    ))?,
                    Some(file) => {
                        let what = if schema.written {
                            "written"
                        } else {
                            "there already"
                        };
                        printer.line(format!(
                            "{}: version {}, {what}: {}",
                            schema.dataset,
                            schema.version,
                            file.display()
                        ))?;
                        printer.hint(format!(
                            "`lakebed schema publish {} {}` publishes it",
                            schema.dataset, schema.version
                        ));
                    }
                }
            }
        }
    }
    Ok(Exit::Done)
}

fn tell_fold(report: &FoldReport, globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    match printer.format() {
        TextFormat::Json => printer.json(report)?,
        TextFormat::Text => report
            .days
            .iter()
            .try_for_each(|day| tell_day(day, globals))?,
    }
    report.warnings.iter().for_each(|w| printer.warn(w));
    Ok(())
}

fn tell_day(day: &FoldedDay, globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    let what = match day.outcome {
        FoldOutcome::Folded => "folded",
        FoldOutcome::Revised => "folded anew, as a revision",
        FoldOutcome::Provisional => "provisional",
        FoldOutcome::AlreadyThere => {
            return printer.line(format!("{}: there already ({})", day.date, day.label));
        }
    };
    let partial = if day.complete {
        ""
    } else {
        ", without a complete list"
    };
    printer.line(format!(
        "{}: {what}{partial}: {}, {} appeared, {} changed, {} vanished, {} returned, {} dropped",
        day.date,
        count(day.keys, "object"),
        day.appeared,
        count(day.changed, "value"),
        day.vanished,
        day.returned,
        day.dropped,
    ))?;
    for input in &day.inputs {
        let late = match input.late {
            0 => String::new(),
            late => format!(", {late} late"),
        };
        printer.line(format!(
            "  {}: {}{late}",
            input.input,
            count(input.rows, "row")
        ))?;
        if input.without_key > 0 {
            printer.warn(format!(
                "{} of `{}` have no key and were left out",
                count(input.without_key, "row"),
                input.input
            ));
        }
    }
    match &day.file {
        Some(file) => printer.line(format!("  {file}")),
        None => Ok(()),
    }
}

/// `lakebed seed`
pub(crate) async fn seed(args: SeedArgs, globals: &Globals<'_>) -> Result<Exit> {
    let context = Context::open(globals).await?;
    let source = context.project().load_source(&args.source.parse()?)?;
    let date: BusinessDate = args.date.parse()?;
    let options = SeedOptions {
        folder: folder(context.project(), "seed", &source),
        run: args.run.parse::<RunName>()?,
        replace: args.replace,
        threads: args.threads,
        memory_bytes: bytes(args.memory),
    };
    let lake = context.lake();
    match &args.explain {
        Some(key) => match explain_seed(lake, &source, date, (key, &options)).await? {
            SeedAnswer::Refused(refusal) => Ok(refuse(&refusal, globals)),
            SeedAnswer::Done(planned) => tell_key(&planned, date, globals).map(|()| Exit::Done),
        },
        None => match plan_seeds(lake, &source, date, &options).await? {
            SeedAnswer::Refused(refusal) => Ok(refuse(&refusal, globals)),
            SeedAnswer::Done(report) => tell_plan(&report, globals).map(|()| Exit::Done),
        },
    }
}

fn tell_plan(report: &SeedReport, globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    let head = &report.head;
    if printer.format() == TextFormat::Json {
        return printer.json(report);
    }
    let list = |counts: &std::collections::BTreeMap<String, u64>| {
        let texts: Vec<String> = counts.iter().map(|(why, n)| format!("{n} {why}")).collect();
        texts.join(", ")
    };
    let there = if report.up_to_date {
        ", there already"
    } else {
        ""
    };
    printer.line(format!(
        "{}: {}{there}: {}",
        head.date,
        count(head.requests, "request"),
        list(&head.reasons)
    ))?;
    printer.line(format!("  skipped: {}", list(&head.skipped)))?;
    printer.line(format!("  {}", report.file.display()))?;
    if report.without_url > 0 {
        printer.warn(format!(
            "{} without an address are not fetched: a value that it is made of is null",
            count(report.without_url, "object")
        ));
    }
    Ok(())
}

#[derive(Serialize)]
struct ExplainAnswer<'a> {
    format: u32,
    date: BusinessDate,
    #[serde(flatten)]
    planned: &'a PlannedKey,
}

fn tell_key(planned: &PlannedKey, date: BusinessDate, globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    if printer.format() == TextFormat::Json {
        return printer.json(&ExplainAnswer {
            format: ANSWER_FORMAT,
            date,
            planned,
        });
    }
    let verdict = serde_json::to_value(planned.verdict).unwrap_or_default();
    let why = verdict["reason"].as_str().unwrap_or_default().to_owned();
    let what = match planned.verdict {
        Verdict::Request(_) => "fetched",
        Verdict::Skip(_) => "not fetched",
    };
    printer.line(format!("{} on {date}: {what}, {why}", planned.key))?;
    let yes = |is: bool| if is { "yes" } else { "no" };
    let text = |of: Option<String>| of.unwrap_or_else(|| "-".to_owned());
    printer.line(format!("  in the list of {date}: {}", yes(planned.listed)))?;
    printer.line(format!(
        "  in the snapshot of {}: {}",
        date.plus_days(-1),
        yes(planned.known)
    ))?;
    printer.line(format!(
        "  days absent: {}",
        text(planned.days_absent.map(|n| n.to_string()))
    ))?;
    printer.line(format!("  state: {}", text(planned.state.clone())))?;
    printer.line(format!(
        "  details came last: {}",
        text(planned.detailed.map(|d| d.to_string()))
    ))?;
    printer.line(format!(
        "  old from: {}",
        text(planned.stale_from.map(|d| d.to_string()))
    ))?;
    if let Some((then, now)) = &planned.fingerprints {
        printer.line(format!("  fingerprint then: {}", text(then.clone())))?;
        printer.line(format!("  fingerprint now: {}", text(now.clone())))?;
    }
    printer.line(format!("  url: {}", text(planned.url.clone())))
}
