//! The story, in order: what an owner does with what is delivered, and what comes of it.

use lakebed::ingest::{IngestOutcome, IngestReport};
use lakebed::{Error, ErrorKind, Result};

use crate::args::DemoArgs;
use crate::context::Globals;
use crate::demo::delivery::{DAYS, Delivery, DemoSource, Oddity, deliveries};
use crate::demo::stage::Stage;
use crate::demo::{finale, live};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::progress::Bar;
use crate::table::{cell_text, count};

/// `lakebed demo`
pub(crate) async fn run(args: DemoArgs, globals: &Globals<'_>) -> Result<Exit> {
    if !args.files {
        return live::tell(&args, globals);
    }
    let printer = globals.printer;
    let dir = args.dir.or_else(|| globals.project.clone());
    let began = printer.now();
    let mut stage = Stage::build(dir, globals).await?;
    let bar = Bar::steps(printer, "days", u64::from(DAYS));
    for day in 1..=DAYS {
        for delivery in deliveries(day)? {
            let rows = take(&mut stage, &delivery).await?;
            bar.advance(0, rows.0, rows.1);
        }
        bar.advance(1, 0, 0);
    }
    drop(bar);
    finale::show(&stage).await?;
    let seconds = (printer.now().micros() - began.micros()) / 1_000_000;
    printer.line(format!("Done in {seconds} s."))?;
    Ok(Exit::Done)
}

/// What the owner does with a delivery; answers rows stored and records rejected.
async fn take(stage: &mut Stage<'_>, delivery: &Delivery) -> Result<(u64, u64)> {
    let file = stage.receive(delivery)?;
    let report = match delivery.oddity {
        Oddity::None => ordinary(stage, delivery, &file).await?,
        Oddity::Retry => retry(stage, delivery, &file).await?,
        Oddity::CutOff => return cut_off(stage, delivery, &file).await,
        Oddity::Late => late(stage, delivery, &file).await?,
        Oddity::NoData => return no_data(stage, delivery, &file).await,
    };
    stage.count(delivery, &report);
    if report.rejected > 0 && stage.is_first_reject(delivery, &report) {
        tell_rejects(stage.printer(), delivery, &report)?;
    }
    Ok((report.rows, report.rejected))
}

/// A day like any other, unless the site has changed.
async fn ordinary(stage: &mut Stage<'_>, delivery: &Delivery, file: &str) -> Result<IngestReport> {
    let request = stage.request(delivery, file)?;
    let report = stage.ingest(&request).await?;
    let Some(refusal) = report.refusal() else {
        return Ok(report);
    };
    let printer = stage.printer();
    title(
        printer,
        delivery,
        "the site has changed, and the day is refused",
    )?;
    command(printer, delivery, file, "")?;
    tell_error(printer, &refusal)?;
    let version = stage.publish_offer(&request).await?;
    printer.line(format!(
        "   The next version was offered as a file. Reviewed, renamed, published:\n   $ lakebed schema publish {} {version}",
        request.dataset
    ))?;
    let report = stage.ingest(&request).await?;
    expect(
        report.outcome == IngestOutcome::Committed,
        "the day fits now",
    )?;
    printer.line(format!(
        "   The day again: {} under version {version}; older days stay as they are.\n",
        count(report.rows, "row")
    ))?;
    Ok(report)
}

/// The same bytes once more: nothing is written.
async fn retry(stage: &mut Stage<'_>, delivery: &Delivery, file: &str) -> Result<IngestReport> {
    let request = stage.request(delivery, file)?;
    let before = stage.count_files()?;
    let report = stage.ingest(&request).await?;
    let same = report.outcome == IngestOutcome::AlreadyThere && stage.count_files()? == before;
    expect(same, "a retry writes nothing")?;
    let printer = stage.printer();
    title(
        printer,
        delivery,
        "a retry delivers the same file under another name",
    )?;
    command(printer, delivery, file, "")?;
    printer.line(
        "   Already there, nothing written: an input is known by its bytes, not by its name.\n",
    )?;
    Ok(report)
}

/// Half a file: refused whole, mended by the whole file.
async fn cut_off(stage: &mut Stage<'_>, delivery: &Delivery, file: &str) -> Result<(u64, u64)> {
    let request = stage.request(delivery, file)?;
    let before = stage.count_files()?;
    let outcome = stage.ingest(&request).await;
    let error = expect_error(outcome, ErrorKind::CorruptData)?;
    expect(stage.count_files()? == before, "half a file writes nothing")?;
    let printer = stage.printer();
    title(printer, delivery, "a transfer broke off")?;
    command(printer, delivery, file, "")?;
    tell_error(printer, &error)?;
    printer.line("   Nothing of it is visible; the whole file comes next and is stored.\n")?;
    Ok((0, 0))
}

/// After the seal: refused, then added on purpose.
async fn late(stage: &mut Stage<'_>, delivery: &Delivery, file: &str) -> Result<IngestReport> {
    let mut request = stage.request(delivery, file)?;
    let outcome = stage.ingest(&request).await;
    let error = expect_error(outcome, ErrorKind::PreconditionFailed)?;
    let printer = stage.printer();
    title(
        printer,
        delivery,
        "a sweep arrives after the date was sealed",
    )?;
    command(printer, delivery, file, " --complete")?;
    tell_error(printer, &error)?;
    request.late = true;
    let report = stage.ingest(&request).await?;
    expect(
        report.complete,
        "the late sweep is stored and the date sealed again",
    )?;
    command(printer, delivery, file, " --complete --late")?;
    printer.line(format!(
        "   {} added, the date is sealed again.\n",
        count(report.rows, "row")
    ))?;
    Ok(report)
}

/// The interface gave nothing: red, not an empty green day.
async fn no_data(stage: &mut Stage<'_>, delivery: &Delivery, file: &str) -> Result<(u64, u64)> {
    let request = stage.request(delivery, file)?;
    let error = match stage.ingest(&request).await {
        Err(error) => error,
        Ok(_) => return Err(missed("a day without data is refused")),
    };
    let printer = stage.printer();
    title(
        printer,
        delivery,
        "the interface answered, but without data",
    )?;
    command(printer, delivery, file, "")?;
    tell_error(printer, &error)?;
    printer.line("   The day stays missing, and everybody can see that it is.\n")?;
    Ok((0, 0))
}

fn tell_rejects(printer: &Printer, delivery: &Delivery, report: &IngestReport) -> Result<()> {
    title(
        printer,
        delivery,
        "some records do not fit, the others are stored",
    )?;
    for item in report.drift.items() {
        printer.line(format!(
            "   {} x {}: {}",
            item.count,
            cell_text(&item.path),
            cell_text(&item.reason)
        ))?;
    }
    printer.line(format!(
        "   {} stored, {} into quarantine with their reasons.\n",
        count(report.rows, "row"),
        count(report.rejected, "record")
    ))
}

fn title(printer: &Printer, delivery: &Delivery, text: &str) -> Result<()> {
    printer.line(format!(
        "Day {}, {} ({}): {text}.",
        delivery.day,
        delivery.source.name(),
        delivery.date
    ))
}

fn command(printer: &Printer, delivery: &Delivery, file: &str, more: &str) -> Result<()> {
    let policy = match delivery.source {
        DemoSource::HotTopics => "",
        DemoSource::Rentals | DemoSource::Shop => " --on-mismatch quarantine",
    };
    let name = std::path::Path::new(file)
        .file_name()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    printer.line(format!(
        "   $ lakebed ingest clean/{} inbox/{}/{name} --date {}{policy}{more}",
        delivery.source.name(),
        delivery.date,
        delivery.date
    ))
}

/// An error as the command would tell it, indented.
fn tell_error(printer: &Printer, error: &Error) -> Result<()> {
    for line in crate::failure::error_text(error, false).lines() {
        printer.line(format!("   {line}"))?;
    }
    Ok(())
}

fn expect_error(outcome: Result<IngestReport>, kind: ErrorKind) -> Result<Error> {
    match outcome {
        Err(error) if error.kind() == kind => Ok(error),
        Err(error) => Err(error),
        Ok(_) => Err(missed("the delivery is refused")),
    }
}

/// The demo tells nothing that is not so.
fn expect(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(missed(what)) }
}

fn missed(what: &str) -> Error {
    Error::internal(format!("the demo expected that {what}"))
        .hint("this is a fault of the program; please report it")
}
