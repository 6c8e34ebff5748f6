//! What the queue knows of a crawl that is a stage: how it was closed, what a person said of it, what was tried again.

use lakebed::flow::{Judged, Standing};
use lakebed::queue::RunRecord;
use lakebed::spec::RunKey;

use crate::commands::closing::{closing_of, family_of};

/// The crawl of that name and the runs that tried again what died in it, the newest last.
pub(super) fn family_in<'r>(crawled: &'r [RunRecord], name: &str) -> Vec<&'r RunRecord> {
    let first = crawled.iter().find(|run| run.key.run.as_str() == name);
    first.map_or_else(Vec::new, |first| family_of(first, crawled))
}

/// A crawl is told by its closings, where it has any: the queue knows better than a log why one is red, what a person said
/// of it, and what was tried again since.
pub(super) fn judged_with_closings(judged: Judged, family: &[&RunRecord]) -> Judged {
    let Some((newest, earlier)) = family.split_last() else {
        return judged;
    };
    let closing = closing_of(newest);
    let closings = family.iter().rev().filter_map(|run| closing_of(run));
    let accepted = closings.into_iter().find_map(|closing| closing.accepted);
    let accepted = accepted.map(|accepted| format!("accepted: {}", accepted.note));
    let breach = closing
        .as_ref()
        .filter(|closing| closing.accepted.is_none())
        .and_then(|closing| closing.breaches.first())
        .map(|breach| format!("closed red: {}", breach.message));
    let RunKey { source, date, run } = &newest.key;
    let retried = match (earlier.is_empty(), &closing, &breach) {
        (true, ..) => None,
        (_, None, _) => Some(format!(
            "`{run}`, which tries again what died, has not ended: `lakebed crawl {source} --date {date} --run {run}`"
        )),
        (_, _, Some(breach)) => Some(format!("`{run}`, which tried again what died, {breach}")),
        _ => Some(format!("what died was tried again as `{run}`")),
    };
    let joined = |parts: [Option<String>; 2]| {
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        parts.join("; ")
    };
    let (standing, why) = match judged.standing {
        Standing::Done => (Standing::Done, joined([accepted, retried])),
        Standing::Missing | Standing::Red => match (closing, breach) {
            (_, Some(breach)) => (Standing::Red, breach),
            (None, _) if retried.is_some() => (Standing::Missing, joined([accepted, retried])),
            (Some(_), None) if accepted.is_some() || retried.is_some() => {
                let goes_on = Some("`lakebed run` goes on".to_owned());
                (Standing::Missing, joined([accepted.or(retried), goes_on]))
            }
            _ => return judged,
        },
        _ => return judged,
    };
    Judged { standing, why }
}
