//! What goes on from a closing that is red: the command lines, for the reasons that it has.

use lakebed::queue::{BreachKind, ClosingRecord, RunBooks};
use lakebed::spec::RunKey;

/// The steps that a person has; none where the closing is good.
pub(super) fn next_steps(run: &RunKey, closing: &ClosingRecord, books: &RunBooks) -> Vec<String> {
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
    let next = next_name(run.as_str());
    let has = |kinds: &[BreachKind]| closing.breaches.iter().any(|b| kinds.contains(&b.kind));
    if has(&[BreachKind::Unfinished]) {
        return vec![format!(
            "`lakebed crawl {of}` goes on with what is left; after `lakebed crawl stop {of} --reason TEXT`, `lakebed crawl close {of} --give-up` ends it"
        )];
    }
    let mut steps = Vec::new();
    if dead > 0 {
        steps.push(format!(
            "`lakebed queue retry {of} --as {next}` tries the {dead} dead again; the same command then goes on with that run, and both are judged together"
        ));
    }
    let lacks = [
        BreachKind::Unbalanced,
        BreachKind::TooFew,
        BreachKind::ShortGroup,
        BreachKind::NoLinks,
    ];
    if has(&[BreachKind::NoLinks]) {
        steps.push(format!(
            "`lakebed parse {source} --try URL` shows which links the rules find on such a page; mend `follow` first"
        ));
    }
    if has(&lacks) && done > 0 {
        steps.push(format!(
            "`lakebed run {source} --date {date} --run {next}` is a sweep: it fetches the seeds anew, beside this run, which a person then accepts as below"
        ));
    }
    if done > 0 {
        steps.push(format!(
            "`lakebed crawl close {of} --accept --note TEXT` takes it as it is, and the same command then goes on"
        ));
    }
    if steps.is_empty() {
        steps.push(format!(
            "mend the seeds: `lakebed queue prune --source {source} --before {}` forgets this run (and all closed ones before it), and the same command begins anew",
            date.plus_days(1)
        ));
    }
    steps
}

/// A name for a run that comes after this one: `day`, `day-2`, `day-3`.
fn next_name(run: &str) -> String {
    let counted = run.rsplit_once('-');
    match counted.and_then(|(stem, n)| Some((stem, n.parse::<u32>().ok()?))) {
        Some((stem, n)) => format!("{stem}-{}", n.saturating_add(1)),
        None => format!("{run}-2"),
    }
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
            assert_eq!(next_name(run), next);
        }
    }
}
