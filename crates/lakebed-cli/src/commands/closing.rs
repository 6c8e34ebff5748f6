//! What goes on from a closing that is red: the command lines, for the reasons that it has.

use lakebed::Result;
use lakebed::crawl::is_sample;
use lakebed::name::{RunName, SourceName};
use lakebed::queue::{
    Breach, BreachKind, ClosingRecord, HolderRecord, Queue, RunBooks, RunRecord, RunState,
};
use lakebed::spec::RunKey;
use lakebed::time::BusinessDate;

/// What a retry of dead requests may mend: whatever else is wrong stays so.
const MENDED: [BreachKind; 5] = [
    BreachKind::Stopped,
    BreachKind::AllDead,
    BreachKind::TooFew,
    BreachKind::TooManyDead,
    BreachKind::ShortGroup,
];
/// What a sweep may bring.
const LACKS: [BreachKind; 4] = [
    BreachKind::Unbalanced,
    BreachKind::TooFew,
    BreachKind::ShortGroup,
    BreachKind::NoLinks,
];

/// What a person calls again who has just called it.
pub(super) const SAME: &str = "the same command";

/// The steps that a person has; none where the closing is good. `again` names the command that goes on afterwards, `runs`
/// are those of the date.
pub(super) fn next_steps(
    run: &RunKey,
    (closing, books): (&ClosingRecord, &RunBooks),
    again: &str,
    runs: &[RunRecord],
) -> Vec<String> {
    if closing.is_good() {
        return Vec::new();
    }
    let RunKey { source, date, run } = run;
    let state = |name: &str| books.states.get(name).copied().unwrap_or(0);
    let (done, dead) = match &books.family {
        Some(family) => (family.done, family.dead()),
        None => (state("done"), state("dead")),
    };
    let of = match run.as_str() {
        "day" => format!("{source} --date {date}"),
        run => format!("{source} --date {date} --run {run}"),
    };
    let next = next_name(run.as_str(), runs);
    let has = |kinds: &[BreachKind]| closing.breaches.iter().any(|b| kinds.contains(&b.kind));
    if has(&[BreachKind::Unfinished]) {
        // Of a run that was stopped, who holds the rest is told beside it.
        return match has(&[BreachKind::Stopped]) {
            true => Vec::new(),
            false => vec![format!(
                "`lakebed crawl {of}` goes on with what is left; after `lakebed crawl stop {of} --reason TEXT`, `lakebed crawl close {of} --give-up` ends it"
            )],
        };
    }
    let mut steps = Vec::new();
    let is_mended = |breach: &Breach| MENDED.contains(&breach.kind) && !breach.is_refused_pack();
    let retried = dead > 0 && closing.breaches.iter().any(is_mended);
    if retried {
        steps.push(format!(
            "`lakebed queue retry {of} --as {next}` tries the {dead} dead again; {again} then goes on with that run, and both are judged together"
        ));
    }
    steps.extend(seal_again((source, date), closing, again));
    steps.extend(lose((source, date, run), closing));
    if has(&[BreachKind::NoLinks]) {
        steps.push(format!(
            "`lakebed parse {source} --try URL` shows which links the rules find on such a page; mend `follow` first"
        ));
    }
    if has(&LACKS) && done > 0 {
        let next = match retried {
            true => next_name(&next, runs),
            false => next,
        };
        steps.push(format!(
            "`lakebed run {source} --date {date} --run {next}` is a sweep: it fetches the seeds anew, beside this run, which a person then accepts as below"
        ));
    }
    if done > 0 && closing.lacks_pack().is_none() {
        steps.push(format!(
            "`lakebed crawl close {of} --accept --note TEXT` takes it as it is, and {again} then goes on"
        ));
    }
    if steps.is_empty() {
        steps.push(format!(
            "mend the seeds: `lakebed queue prune --source {source} --before {}` forgets this run (and all closed ones before it), and {again} begins anew",
            date.plus_days(1)
        ));
    }
    steps
}

/// How the pack of the run, or of one that it goes back to, is tried again where it was refused.
fn seal_again(
    (source, date): (&SourceName, &BusinessDate),
    closing: &ClosingRecord,
    again: &str,
) -> Option<String> {
    let refused = closing.breaches.iter().find(|b| b.is_refused_pack())?;
    Some(match refused.of_run() {
        None => format!("{again} tries to seal the pack again, whenever it is called"),
        Some(name) => format!(
            "`lakebed crawl close {source} --date {date} --run {name}` tries to seal the pack of `{name}` again; {again} then sees whether that was all"
        ),
    })
}

/// How responses that no part has are given up.
fn lose(
    (source, date, run): (&SourceName, &BusinessDate, &RunName),
    closing: &ClosingRecord,
) -> Option<String> {
    let run = closing.lacks_pack()?.of_run().unwrap_or(run.as_str());
    Some(format!(
        "`lakebed crawl close {source} --date {date} --run {run} --lost` ends as dead what is in no part because it is gone for good, and seals the rest; then `lakebed queue retry` fetches it anew"
    ))
}

/// Who holds the requests of a run that cannot end for them, and what ends that; `gives_up` = whether this call does, `None`
/// for a run that was not stopped.
pub(super) fn holder_steps(
    run: &RunKey,
    holders: &[HolderRecord],
    gives_up: Option<bool>,
) -> Vec<String> {
    let of_run = || holders.iter().filter(|holder| holder.run == *run);
    let seconds = |us: i64| us.max(0).unsigned_abs().div_ceil(1_000_000);
    let told = |holder: &HolderRecord| {
        let held = match holder.requests {
            1 => "1 request is".to_owned(),
            n => format!("{n} requests are"),
        };
        format!(
            "{held} held at `{}` by `{}`, {}; where that is gone, its lease ends in {} s",
            holder.host,
            holder.label,
            holder.heard(),
            seconds(holder.lease_left_us)
        )
    };
    let mut steps: Vec<String> = of_run().map(told).collect();
    let last = of_run().map(|holder| seconds(holder.lease_left_us)).max();
    let RunKey { source, date, run } = run;
    let of = format!("{source} --date {date} --run {run}");
    steps.extend(gives_up.map(|gives_up| match (gives_up, last) {
        (true, Some(last)) => format!("in {} s at most, {SAME} ends the run", last + 1),
        (true, None) => format!("{SAME} ends what went back meanwhile"),
        (false, _) => format!(
            "`lakebed crawl close {of} --give-up` ends the run as it is, `lakebed crawl resume {of}` lets it go on"
        ),
    }));
    steps
}

/// What has to come after a run that ended well: where another run of its date is still red, that is not ended by it.
pub(super) async fn after_run(queue: &Queue, run: &RunKey) -> Result<Vec<String>> {
    let runs = queue.list_runs_of(&run.source, run.date).await?;
    let RunKey { source, date, .. } = run;
    let mut lines = Vec::new();
    let is_of_day = |r: &&RunRecord| r.successor_of.is_none() && !is_sample(r);
    for first in runs.iter().filter(is_of_day) {
        let family = family_of(first, &runs);
        let newest = family.last().copied().unwrap_or(first);
        let name = &first.key.run;
        let of = match name.as_str() {
            "day" => format!("{source} --date {date}"),
            name => format!("{source} --date {date} --run {name}"),
        };
        let is_own = newest.key == *run;
        let Some(closing) = closing_of(newest) else {
            continue;
        };
        if closing.is_good() {
            if is_own && newest.id != first.id {
                lines.push(format!(
                    "`{}` answers for `{name}`: `lakebed run {of}` goes on with both",
                    run.run
                ));
            }
        } else if !is_own {
            let books = queue.read_books(newest.id).await?;
            lines.push(still_red((first, &of), run, (&closing, &books), &runs));
        }
    }
    Ok(lines)
}

/// A red run beside one that ended well.
fn still_red(
    (first, of): (&RunRecord, &str),
    run: &RunKey,
    (closing, books): (&ClosingRecord, &RunBooks),
    runs: &[RunRecord],
) -> String {
    let RunKey { source, date, .. } = run;
    let done = books.family.as_ref().map(|family| family.done);
    let done = done.or_else(|| books.states.get("done").copied());
    let red = format!(
        "the run `{}` of {source} {date} is still red",
        first.key.run
    );
    if done.unwrap_or(0) > 0 && closing.lacks_pack().is_none() {
        return format!(
            "{red}, and `{}` does not end that: `lakebed crawl close {of} --accept --note TEXT` takes it as it is, then `lakebed run {of}` once more goes on with the rows of both",
            run.run
        );
    }
    let again = format!("`lakebed run {of}`");
    let mut steps = next_steps(&first.key, (closing, books), &again, runs);
    match steps.is_empty() {
        true => red,
        false => format!("{red}: {}", steps.remove(0)),
    }
}

/// A run and those that tried again what died in it: the last one answers for all.
pub(super) fn family_of<'a>(first: &'a RunRecord, runs: &'a [RunRecord]) -> Vec<&'a RunRecord> {
    let mut family = vec![first];
    let mut newest = first;
    let next = |id: i64| runs.iter().rev().find(|r| r.successor_of == Some(id));
    while let Some(run) = next(newest.id) {
        family.push(run);
        newest = run;
    }
    family
}

/// How a run was closed; `None` = it is not.
pub(super) fn closing_of(run: &RunRecord) -> Option<ClosingRecord> {
    let closing = run
        .closing
        .as_deref()
        .filter(|_| run.state == RunState::Closed)?;
    serde_json::from_str(closing).ok()
}

/// A name for a run that comes after this one and that no run has: `day`, `day-2`, `day-3`.
fn next_name(run: &str, runs: &[RunRecord]) -> String {
    let mut name = count_on(run);
    while runs.iter().any(|run| run.key.run.as_str() == name) {
        name = count_on(&name);
    }
    name
}

/// The name that comes after this one, whether a run has it or not.
///
/// # Errors
/// `InvalidInput` where there is no longer one.
pub(super) fn next_of(run: &RunName) -> Result<RunName> {
    count_on(run.as_str()).parse()
}

fn count_on(run: &str) -> String {
    let counted = run.rsplit_once('-');
    let counted = counted.and_then(|(stem, n)| Some((stem, n.parse::<u32>().ok()?)));
    let (stem, n) = match counted {
        Some((stem, n)) if n < u32::MAX => (stem, n),
        _ => (run, 1),
    };
    format!("{stem}-{}", n + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_further_runs_are_counted() {
        for (run, next) in [
            ("day", "day-2"),
            ("day-2", "day-3"),
            ("day-detail", "day-detail-2"),
        ] {
            assert_eq!(next_name(run, &[]), next);
        }
    }
}
