//! Before a run is made: its date, held against the day that it is, for pages are those of now, whatever the date says; and
//! its name, for what is fetched under one that the lake knows could never be sealed.

use lakebed::config::{Project, Settings};
use lakebed::name::RunName;
use lakebed::pack::has_pack;
use lakebed::queue::Queue;
use lakebed::spec::RunKey;
use lakebed::store::Lake;
use lakebed::time::{BusinessDate, Instant, time_zone};
use lakebed::{Error, Result};

use crate::commands::closing::next_of;
use crate::context::open_lake;

/// Before a run is made that the queue does not know: what a person should know of its date, if anything.
///
/// Tomorrow is let pass, for a zone ahead of the project's may be there already. A past date is let pass too, since a
/// simulated site or an archive shows that day now; no program can tell these from a mistake.
///
/// # Errors
/// `InvalidInput` for a date behind tomorrow: no page of it is there yet. `PreconditionFailed` where the lake has a pack of
/// a run of that name.
pub(crate) async fn check_new_run(
    (project, settings, queue): (&Project, &Settings, &Queue),
    run: &RunKey,
    now: Instant,
) -> Result<Option<String>> {
    let said = check_date(project, settings, run, now)?;
    check_name(&open_lake(settings).await?, queue, run).await?;
    Ok(said)
}

/// # Errors
/// `PreconditionFailed` where the lake has a pack of a run of that name: the queue forgot the run, or is a new one.
pub(super) async fn check_name(lake: &Lake, queue: &Queue, run: &RunKey) -> Result<()> {
    if !has_pack(lake, run).await? {
        return Ok(());
    }
    let mut taken = queue.list_runs_of(&run.source, run.date).await?;
    let taken: Vec<RunName> = taken.drain(..).map(|run| run.key.run).collect();
    let mut free = run.clone();
    while free.run == run.run || taken.contains(&free.run) || has_pack(lake, &free).await? {
        free.run = next_of(&free.run)?;
    }
    let RunKey {
        source,
        date,
        run: name,
    } = run;
    Err(Error::precondition(format!(
        "the lake has the pack of a run `{run}` already: what is fetched under that name once more would stay out of it"
    ))
    .hint("the queue does not know the run any more: it was pruned, or the queue is a new one")
    .hint(format!(
        "`{}` is a free name for what is fetched beside that pack; `lakebed pack list {source}` shows what the lake has of `{name}` on {date}",
        free.run
    )))
}

fn check_date(
    project: &Project,
    settings: &Settings,
    run: &RunKey,
    now: Instant,
) -> Result<Option<String>> {
    let own = project.load_source(&run.source)?.time_zone;
    let name = own.as_deref().unwrap_or(&settings.time_zone.value);
    let today = BusinessDate::of(now, &time_zone(name)?);
    judge(run.date, today, now)
}

fn judge(date: BusinessDate, today: BusinessDate, now: Instant) -> Result<Option<String>> {
    if date > today.plus_days(1) {
        return Err(Error::invalid(format!(
            "{date} is not here yet: today is {today}, and pages of now are no pages of that day"
        ))
        .hint("`--date` is the day of which the pages are; check the year"));
    }
    Ok((date < today.plus_days(-1))
        .then(|| format!("the pages are those of now ({now}), stored as {date}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crawl_is_of_today_or_says_that_it_is_not() {
        let now: Instant = "2026-12-01T04:00:00Z".parse().unwrap();
        let day = |text: &str| text.parse::<BusinessDate>().unwrap();
        let said = |date: &str| judge(day(date), day("2026-12-01"), now);
        for near in ["2026-11-30", "2026-12-01", "2026-12-02"] {
            assert_eq!(said(near).unwrap(), None, "{near}");
        }
        let past = said("2026-11-29").unwrap().unwrap();
        assert_eq!(
            past,
            "the pages are those of now (2026-12-01T04:00:00.000000Z), stored as 2026-11-29"
        );
        for far in ["2026-12-03", "2027-05-01"] {
            assert!(said(far).is_err(), "{far}");
        }
    }
}
