//! `crawl close`: the books of a run are judged, and what they say is told with what goes on from it.

use lakebed::Result;
use lakebed::config::Settings;
use lakebed::crawl::{self, Closed, CrawlPlan, LostOptions, PackStatistics, Packed};
use lakebed::pack::PackReport;
use lakebed::queue::{Acceptance, Breach, BreachKind, Queue, RunBooks, RunRecord, RunState};
use lakebed::spec::{RunKey, TerminalRecord};
use serde::Serialize;

use crate::args::{CrawlCloseArgs, TextFormat};
use crate::commands::closing::{SAME, after_run, holder_steps, next_steps};
use crate::commands::crawl_plan::open;
use crate::commands::queue::get_run;
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::failure::error_parts;
use crate::printer::Printer;
use crate::table::{count, message_text};

/// Version of the JSON object of this file.
const ANSWER_FORMAT: u32 = 1;

/// `lakebed crawl close`
pub(crate) async fn close(args: &CrawlCloseArgs, globals: &Globals<'_>) -> Result<Exit> {
    let (_, plan, queue) = open(&args.run, None, globals).await?;
    let run = get_run(&queue, &plan.run).await?;
    if let Some(note) = args.note.as_deref().filter(|_| args.accept) {
        return accept(&queue, (plan, run), note, globals).await;
    }
    if args.lost {
        let options = LostOptions {
            no_parts: args.no_parts,
        };
        return lose_responses(&queue, (&plan, &run), options, globals).await;
    }
    let _expired = queue.expire_run(run.id).await?;
    if args.give_up {
        // What a worker held that was killed has not ended by itself.
        let _reaped = queue.reap().await?;
        let given_up = queue.give_up_run(run.id).await?;
        let what = count(given_up, "request");
        globals.printer.info(format!("{what} given up"));
    }
    close_run(&queue, &plan, &run, (args.give_up, globals)).await
}

/// `lakebed crawl close --accept`: of the run that goes on with what died, where there is one.
async fn accept(
    queue: &Queue,
    (plan, run): (CrawlPlan, RunRecord),
    note: &str,
    globals: &Globals<'_>,
) -> Result<Exit> {
    let (plan, run) = go_on_with_successor(queue, plan, run, globals).await?;
    let settings = Settings::load(&globals.find_project()?, &globals.layers())?;
    let by = settings.user.value.as_deref();
    let pack = async |terminals| pack_run(&plan, terminals, globals).await;
    let context = Context::open(globals).await?;
    let of = (&plan, context.lake());
    let closed = crawl::accept_run(queue, of, run.id, (by, note), pack).await?;
    tell_closed(&closed, globals)?;
    let of = format!("{} --date {}", plan.run.source, plan.run.date);
    globals.printer.hint(format!(
        "`lakebed run {of}` goes on; where a fold must not take for vanished what was not seen, `lakebed run {of} --to-stage parse` and then `lakebed fold {of} --partial` come before"
    ));
    Ok(exit_of(&closed))
}

/// `lakebed crawl close --lost`
async fn lose_responses(
    queue: &Queue,
    (plan, run): (&CrawlPlan, &RunRecord),
    options: LostOptions,
    globals: &Globals<'_>,
) -> Result<Exit> {
    let pack = async |terminals| pack_run(plan, terminals, globals).await;
    let context = Context::open(globals).await?;
    let of = (plan, context.lake());
    let (lost, closed) = crawl::lose_responses(queue, of, run, options, pack).await?;
    globals.printer.info(match lost {
        0 => "every response is there: none is lost".to_owned(),
        n => format!("{} died of a lost response", count(n, "request")),
    });
    tell_end(queue, &closed, (false, globals)).await
}

/// A closed run whose dead requests are tried again goes on in that run: what it says is the answer.
pub(super) async fn go_on_with_successor(
    queue: &Queue,
    mut plan: CrawlPlan,
    mut run: RunRecord,
    globals: &Globals<'_>,
) -> Result<(CrawlPlan, RunRecord)> {
    while run.state == RunState::Closed
        && let Some(next) = queue.find_successor(run.id).await?
    {
        let what = format!(
            "`{}` is closed; what died is tried again in `{}`",
            run.key, next.key.run
        );
        globals.printer.info(what);
        // Beside the folder of the first run.
        let name = format!("{}.{}", next.key.date, next.key.run);
        plan = CrawlPlan {
            parts: plan.parts.with_file_name(name),
            run: next.key.clone(),
            ..plan
        };
        run = next;
    }
    Ok((plan, run))
}

async fn pack_run(
    plan: &CrawlPlan,
    terminals: Vec<TerminalRecord>,
    globals: &Globals<'_>,
) -> Result<PackReport> {
    let context = Context::open(globals).await?;
    let by = context.by(Some(plan.run.run.clone()), None);
    let (lake, catalog) = (context.lake(), context.catalog());
    let report = crawl::pack_run(lake, &*catalog, by, plan, terminals).await?;
    context.follow_log(&report.dataset).await;
    Ok(report)
}

/// Closes the run with its pack, and tells what there is to tell.
pub(super) async fn close_run(
    queue: &Queue,
    plan: &CrawlPlan,
    run: &RunRecord,
    (gives_up, globals): (bool, &Globals<'_>),
) -> Result<Exit> {
    let pack = async |terminals| pack_run(plan, terminals, globals).await;
    let closed = crawl::close_run(queue, plan, run.id, pack).await?;
    tell_end(queue, &closed, (gives_up, globals)).await
}

/// The closing, what is to be said beside it, and how it ends the call.
async fn tell_end(
    queue: &Queue,
    closed: &Closed,
    (gives_up, globals): (bool, &Globals<'_>),
) -> Result<Exit> {
    tell_closed(closed, globals)?;
    match &closed.packed {
        // What it names stands in the closing.
        Packed::Refused(error) => {
            let run = &closed.run.key;
            globals
                .printer
                .warn(format!("the pack of `{run}` was refused: {error}"));
            error.hints().iter().for_each(|h| globals.printer.hint(h));
        }
        Packed::Done(report) => report.warnings.iter().for_each(|w| globals.printer.warn(w)),
        Packed::None => {}
    }
    let unread = ["robots_unreachable", "dns"];
    if unread
        .iter()
        .any(|c| closed.books.dead_classes.contains_key(*c))
    {
        for line in crawl::list_unread_robots(queue, closed.run.id).await? {
            globals.printer.warn(line);
        }
    }
    tell_steps(queue, closed, (gives_up, globals)).await
}

/// What goes on from a closing, and how it ends the call.
async fn tell_steps(
    queue: &Queue,
    closed: &Closed,
    (gives_up, globals): (bool, &Globals<'_>),
) -> Result<Exit> {
    let has = |kind| closed.closing.breaches.iter().any(|b| b.kind == kind);
    if has(BreachKind::Unfinished) {
        let holders = queue.list_holders(closed.run.id).await?;
        let gives_up = has(BreachKind::Stopped).then_some(gives_up);
        for step in holder_steps(&closed.run.key, &holders, gives_up) {
            globals.printer.hint(step);
        }
    }
    let key = &closed.run.key;
    let runs = queue.list_runs_of(&key.source, key.date).await?;
    for step in next_steps(key, (&closed.closing, &closed.books), SAME, &runs) {
        globals.printer.hint(step);
    }
    let exit = exit_of(closed);
    if exit == Exit::Done {
        match after_run(queue, &closed.run.key).await {
            Ok(lines) => lines.iter().for_each(|line| globals.printer.hint(line)),
            // The run is closed all the same.
            Err(e) => globals
                .printer
                .warn(format!("what comes next is not known: {e}")),
        }
    }
    Ok(exit)
}

#[derive(Serialize)]
struct CloseAnswer<'a> {
    format: u32,
    run: &'a RunKey,
    state: &'static str,
    pass: bool,
    breaches: &'a [Breach],
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted: Option<&'a Acceptance>,
    books: &'a RunBooks,
    #[serde(skip_serializing_if = "Option::is_none")]
    pack: Option<&'a PackStatistics>,
    /// Why the pack was refused, as this call found it.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<serde_json::Value>,
}

fn tell_closed(closed: &Closed, globals: &Globals<'_>) -> Result<()> {
    let answer = CloseAnswer {
        format: ANSWER_FORMAT,
        run: &closed.run.key,
        state: closed.run.state.as_str(),
        pass: closed.closing.pass,
        breaches: &closed.closing.breaches,
        accepted: closed.closing.accepted.as_ref(),
        books: &closed.books,
        pack: closed.pack.as_ref(),
        refused: match &closed.packed {
            Packed::Refused(error) => Some(error_parts(error)),
            Packed::Done(_) | Packed::None => None,
        },
    };
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&answer),
        TextFormat::Text => tell_closing(globals.printer, &answer),
    }
}

/// The exit code of a closing: the first reason, or that the pack was refused; 0 where a person took it as it is.
pub(crate) fn exit_of(closed: &Closed) -> Exit {
    if closed.closing.accepted.is_some() {
        return Exit::Done;
    }
    let first = closed.closing.breaches.first();
    // Whatever else is wrong with the run, nothing of it can be read.
    match (&closed.packed, first) {
        (Packed::Refused(_), _) => Exit::Red(BreachKind::MissingCapture),
        (_, Some(breach)) if breach.is_refused_pack() => Exit::Red(BreachKind::MissingCapture),
        (Packed::Done(_) | Packed::None, Some(breach)) => Exit::Red(breach.kind),
        (Packed::Done(_) | Packed::None, None) => Exit::Done,
    }
}

fn tell_closing(printer: &Printer, answer: &CloseAnswer<'_>) -> Result<()> {
    let books = answer.books;
    let state = |name: &str| books.states.get(name).copied().unwrap_or(0);
    let verdict = match (answer.pass, answer.accepted) {
        (true, _) => "green",
        (false, Some(_)) => "red, accepted",
        (false, None) => "red",
    };
    printer.line(format!(
        "{}: {}, {verdict}: {} done, {} dead, {} in {}",
        answer.run,
        answer.state,
        state("done"),
        state("dead"),
        count(books.failures, "failed attempt"),
        count(books.attempts, "attempt")
    ))?;
    if let Some(pack) = answer.pack {
        printer.line(format!("  {}", pack.pack))?;
    }
    if answer.pass && answer.books.seeds.announced == 0 {
        printer.line("  the plan is empty: there was nothing to fetch")?;
    }
    if let Some(accepted) = answer.accepted {
        let by = accepted.by.as_deref().unwrap_or("somebody");
        let what = format!("  accepted by {by} at {}: {}", accepted.at, accepted.note);
        printer.line(message_text(&what))?;
    }
    for breach in answer.breaches {
        printer.line(format!("  {}", message_text(&breach.message)))?;
        for sample in &breach.samples {
            printer.line(format!("    {}", message_text(sample)))?;
        }
    }
    Ok(())
}
