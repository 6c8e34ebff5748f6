//! Kill points: named steps of a write at which a test lets the process die.
//!
//! In debug builds `LAKEBED_KILL_POINT=<name>` (or `<name>:<n>` for the n-th time it is reached)
//! ends the process there as `kill -9` would: nothing is flushed, nothing is cleaned up. In release
//! builds the calls are empty. Every name is listed here, so that a test can walk through all.

/// Every kill point, in the order a write reaches them.
pub const KILL_POINTS: [&str; 55] = [
    "pack.part_created",
    "pack.frame_written",
    "pack.frame_durable",
    "pack.torn_kept",
    "pack.torn_cut",
    "pack.staged",
    "pack.before_commit",
    "pack.parts_checked",
    "pack.part_deleted",
    "parse.gathered",
    "parse.one_stored",
    "ingest.before_stage",
    "ingest.stage_created",
    "ingest.first_row_group",
    "ingest.rows_written",
    "ingest.file_durable",
    "ingest.rejects_durable",
    "ingest.before_commit",
    "late.success_removed",
    "log.temp_written",
    "log.linked",
    "log.committed",
    "checkpoint.before_put",
    "checkpoint.put",
    "move.before",
    "move.one_moved",
    "move.done",
    "switch.before_commit",
    "switch.committed",
    "switch.one_out",
    "switch.all_out",
    "switch.one_in",
    "switch.all_in",
    "switch.ended",
    "seal.before_commit",
    "seal.committed",
    "success.temp_written",
    "success.one_written",
    "publish.before_put",
    "publish.put",
    "sync.before_apply",
    "sync.in_transaction",
    "sync.applied",
    "repair.abandoned",
    "fold.staged",
    "fold.events_committed",
    "fold.snapshot_committed",
    "seed.plan_written",
    "flow.turn_taken",
    "flow.stage_begun",
    "flow.stage_ended",
    "flow.before_stamp",
    "flow.stamped",
    "derive.rows_written",
    "derive.stored",
];

/// Dies here if the environment names this point.
#[cfg(debug_assertions)]
pub fn kill_point(name: &'static str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicI64, Ordering};
    static TARGET: OnceLock<Option<String>> = OnceLock::new();
    static LEFT: AtomicI64 = AtomicI64::new(i64::MIN);

    debug_assert!(
        KILL_POINTS.contains(&name),
        "kill point `{name}` is not listed"
    );
    let target = TARGET.get_or_init(|| {
        let text = std::env::var("LAKEBED_KILL_POINT").ok()?;
        let (point, nth) = match text.rsplit_once(':') {
            Some((point, nth)) => (point.to_owned(), nth.parse().unwrap_or(1)),
            None => (text, 1),
        };
        LEFT.store(nth, Ordering::SeqCst);
        Some(point)
    });
    if target.as_deref() == Some(name) && LEFT.fetch_sub(1, Ordering::SeqCst) == 1 {
        std::process::abort();
    }
}

/// How often a test wants a checkpoint, whatever the log's length: `LAKEBED_CHECKPOINT_EVERY=<records>`
/// in debug builds; `None` = as the rule says.
#[cfg(debug_assertions)]
pub fn checkpoint_every() -> Option<u64> {
    let text = std::env::var("LAKEBED_CHECKPOINT_EVERY").ok()?;
    text.parse().ok().filter(|every| *every > 0)
}

/// Never in release builds.
#[cfg(not(debug_assertions))]
pub fn checkpoint_every() -> Option<u64> {
    None
}

/// How many records of a sync a test wants in one transaction: `LAKEBED_SYNC_BATCH=<records>` in debug
/// builds; `None` = as many as the rule says.
#[cfg(debug_assertions)]
pub fn sync_batch() -> Option<usize> {
    let text = std::env::var("LAKEBED_SYNC_BATCH").ok()?;
    text.parse().ok().filter(|records| *records > 0)
}

/// Never in release builds.
#[cfg(not(debug_assertions))]
pub fn sync_batch() -> Option<usize> {
    None
}

/// Nothing in release builds.
#[cfg(not(debug_assertions))]
pub fn kill_point(_name: &'static str) {}
