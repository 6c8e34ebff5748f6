//! The date that a crawl is stored as, held against the day that it is: pages are those of now, whatever the date says.

use lakebed::config::{Project, Settings};
use lakebed::spec::RunKey;
use lakebed::time::{BusinessDate, Instant, time_zone};
use lakebed::{Error, Result};

/// Before a crawl begins: what a person should know of its date, if anything.
///
/// Tomorrow is let pass, for a zone ahead of the project's may be there already. A past date is let pass too, since a
/// simulated site or an archive shows that day now; no program can tell these from a mistake.
///
/// # Errors
/// `InvalidInput` for a date behind tomorrow: no page of it is there yet.
pub(crate) fn check_date(
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
