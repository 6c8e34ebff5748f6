//! How long a host is left alone whose `robots.txt` could not be read, and when that is taken for a no.
//!
//! RFC 9309, 2.3.1.4: what cannot be read forbids everything. One failed read may be a moment's trouble, so requests of the
//! host wait, and waiting costs them no attempt (QUE-6). Only after [`MAX_READS`] reads in a row failed do they die.

use std::time::Duration;

use crate::error::Result;
use crate::fetch::FailureClass;
use crate::queue::Queue;
use crate::spec::{RobotsContent, RobotsState};
use crate::time::Instant;

/// Reads in a row that may fail; behind the last one, everything is forbidden.
pub(super) const MAX_READS: u32 = 3;
/// The longest time until the next read, but for a `Retry-After`.
const MAX_PAUSE: Duration = Duration::from_secs(600);
/// A failure that is older says nothing of now, microseconds.
const FORGOTTEN_US: i64 = 3_600_000_000;
/// A name that is not known burdens no host: it is looked up again after this part of the time.
const DNS_PART: i64 = 10;

/// What was read now, with what was known before: which failure in a row it is, and until when it holds. All instants
/// are of the database's clock.
pub(super) fn counted(
    read: RobotsState,
    now: Instant,
    holds_us: i64,
    previous: Option<&RobotsState>,
) -> RobotsState {
    let Some(class) = failure_of(&read) else {
        return RobotsState {
            fetched_at: now,
            expires_at: later(now, holds_us),
            failed_reads: 0,
            ..read
        };
    };
    let failed_before = previous.filter(|p| {
        failure_of(p).is_some() && now.micros() < p.expires_at.micros().saturating_add(FORGOTTEN_US)
    });
    // Another process read it at the same moment: that is the same failure.
    if let Some(same) = failed_before.filter(|p| p.is_fresh(now)) {
        return same.clone();
    }
    let failed_reads = failed_before
        .map_or(0, |p| p.failed_reads)
        .saturating_add(1);
    let part = match class {
        FailureClass::Dns => holds_us / DNS_PART,
        _ => holds_us,
    };
    let doubled = part.saturating_mul(1_i64 << (failed_reads - 1).min(16));
    let most = i64::try_from(MAX_PAUSE.as_micros()).unwrap_or(i64::MAX);
    RobotsState {
        fetched_at: now,
        expires_at: later(now, doubled.min(most.max(part))),
        failed_reads,
        ..read
    }
}

fn later(now: Instant, us: i64) -> Instant {
    Instant::from_micros(now.micros().saturating_add(us.max(0)))
}

/// Why it could not be read; `None` where it could.
fn failure_of(state: &RobotsState) -> Option<FailureClass> {
    match &state.content {
        RobotsContent::Unreachable { class } => {
            Some(FailureClass::find(class).unwrap_or(FailureClass::RobotsUnreachable))
        }
        RobotsContent::Text { .. } | RobotsContent::Absent => None,
    }
}

/// What requests die of whose `robots.txt` could not be read; `None` while they wait for the next read.
pub(super) fn verdict(state: &RobotsState) -> Option<FailureClass> {
    let class = failure_of(state)?;
    match class {
        // The same request cannot go later either.
        class if !class.is_retryable() => Some(class),
        _ if state.failed_reads < MAX_READS => None,
        // There is no such host: its `robots.txt` is the least of it.
        FailureClass::Dns => Some(class),
        _ => Some(FailureClass::RobotsUnreachable),
    }
}

/// What stands in the way of a host, in words; `None` where its `robots.txt` could be read.
pub(super) fn told(origin: &str, state: &RobotsState) -> Option<String> {
    let class = failure_of(state)?;
    let (at, again) = (state.fetched_at, state.expires_at);
    Some(match class {
        FailureClass::Dns => format!(
            "the name of `{origin}` could not be resolved at {at} (dns); asked again after {again}"
        ),
        class => format!(
            "robots.txt of `{origin}` could not be read at {at} ({class}); asked again after {again}"
        ),
    })
}

/// What is known of the hosts of a run whose `robots.txt` could not be read when it was asked for last.
///
/// # Errors
/// Those of the queue.
pub async fn list_unread_robots(queue: &Queue, run_id: i64) -> Result<Vec<String>> {
    let lanes = queue.list_progress(run_id).await?;
    let mut hosts: Vec<String> = lanes.into_iter().map(|lane| lane.host).collect();
    hosts.sort();
    hosts.dedup();
    let mut lines = Vec::new();
    for host in hosts {
        let Some(record) = queue.find_host(&host).await? else {
            continue;
        };
        let texts = record.robots.and_then(|t| serde_json::from_str(&t).ok());
        let texts: std::collections::BTreeMap<String, RobotsState> = texts.unwrap_or_default();
        lines.extend(
            texts
                .iter()
                .filter_map(|(origin, state)| told(origin, state)),
        );
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000_000;

    fn failed(class: &str) -> RobotsState {
        RobotsState {
            fetched_at: Instant::from_micros(0),
            expires_at: Instant::from_micros(0),
            content: RobotsContent::Unreachable {
                class: class.to_owned(),
            },
            etag: None,
            last_modified: None,
            failed_reads: 0,
        }
    }

    #[test]
    fn three_reads_in_a_row_are_a_no_and_one_is_a_moment() {
        let mut now = Instant::from_micros(MINUTE);
        let mut known: Option<RobotsState> = None;
        let mut waits = Vec::new();
        for n in 1..=6 {
            let state = counted(failed("timeout_first_byte"), now, MINUTE, known.as_ref());
            assert_eq!(state.failed_reads, n);
            let dies = verdict(&state);
            assert_eq!(dies, (n >= 3).then_some(FailureClass::RobotsUnreachable));
            waits.push((state.expires_at.micros() - now.micros()) / MINUTE);
            now = state.expires_at;
            known = Some(state);
        }
        assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
        // One that could be read ends the row, and so does an hour.
        let text = RobotsState {
            content: RobotsContent::Absent,
            ..failed("")
        };
        let read = counted(text, now, MINUTE, known.as_ref());
        assert_eq!((read.failed_reads, verdict(&read)), (0, None));
        let much_later = Instant::from_micros(now.micros() + 120 * MINUTE);
        let again = counted(failed("http_503"), much_later, MINUTE, known.as_ref());
        assert_eq!(again.failed_reads, 1);
        // Two processes at the same moment met the same trouble.
        let same = counted(failed("http_503"), much_later, MINUTE, Some(&again));
        assert_eq!(same, again);
    }

    #[test]
    fn what_stands_in_the_way_is_told_as_it_is() {
        let now = Instant::from_micros(0);
        let refused = counted(failed("private_address"), now, MINUTE, None);
        assert_eq!(verdict(&refused), Some(FailureClass::PrivateAddress));
        let mut unknown = counted(failed("dns"), now, MINUTE, None);
        assert_eq!(unknown.expires_at.micros(), MINUTE / 10);
        unknown.failed_reads = 3;
        assert_eq!(verdict(&unknown), Some(FailureClass::Dns));
        let line = told("http://a.test", &unknown).unwrap();
        assert!(
            line.contains("the name of `http://a.test` could not be resolved at 1970-"),
            "{line}"
        );
        let slow = counted(failed("timeout_first_byte"), now, MINUTE, None);
        assert_eq!(
            told("http://a.test", &slow).unwrap(),
            "robots.txt of `http://a.test` could not be read at 1970-01-01T00:00:00.000000Z (timeout_first_byte); asked again after 1970-01-01T00:01:00.000000Z"
        );
    }
}
