//! Items through several threads, and what comes of them in their order.
//!
//! ```text
//! items -> (seq, item) -> workers -> (seq, done) -> taken in order
//!    ^------------- tokens: so many on their way at most ---------+
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};

/// Hands the items to `threads` workers, and what they make of them to `take`, in the order of the items.
///
/// # Errors
/// The first one by order: of the items, the work or the taking.
pub(super) fn in_order<T: Send, D: Send>(
    threads: usize,
    items: impl Iterator<Item = Result<T>> + Send,
    work: impl Fn(T) -> Result<D> + Sync,
    take: impl FnMut(D) -> Result<()>,
) -> Result<()> {
    let places = threads.max(1) + 1;
    let (work_in, work_out) = sync_channel::<(u64, Result<T>)>(1);
    let (done_in, done_out) = sync_channel::<(u64, Result<D>)>(places);
    let (token_in, tokens) = sync_channel::<()>(places);
    for _ in 0..places {
        let full = |_| Error::internal("the channel has no room for its tokens");
        token_in.try_send(()).map_err(full)?;
    }
    let (work_out, stopped) = (Mutex::new(work_out), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for (seq, item) in (0..).zip(items) {
                if tokens.recv().is_err() || work_in.send((seq, item)).is_err() {
                    return;
                }
            }
        });
        for _ in 0..threads.max(1) {
            let (done, work_out, stopped, work) = (done_in.clone(), &work_out, &stopped, &work);
            scope.spawn(move || run(work_out, &done, stopped, work));
        }
        drop(done_in);
        let taken = collect(&done_out, &token_in, take);
        if taken.is_err() {
            stopped.store(true, Ordering::SeqCst);
        }
        // Whoever waits for a token or a place is let go.
        drop((token_in, done_out));
        taken
    })
}

/// A worker; after a failure the items are only drained, so that nobody waits for a place.
fn run<T, D>(
    items: &Mutex<Receiver<(u64, Result<T>)>>,
    done: &SyncSender<(u64, Result<D>)>,
    stopped: &AtomicBool,
    work: &impl Fn(T) -> Result<D>,
) {
    loop {
        let next = items.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((seq, item)) = next else {
            return;
        };
        if stopped.load(Ordering::SeqCst) {
            continue;
        }
        if done.send((seq, item.and_then(work))).is_err() {
            stopped.store(true, Ordering::SeqCst);
        }
    }
}

fn collect<D>(
    done: &Receiver<(u64, Result<D>)>,
    tokens: &SyncSender<()>,
    mut take: impl FnMut(D) -> Result<()>,
) -> Result<()> {
    let mut waiting = BTreeMap::new();
    let mut next = 0;
    for (seq, item) in done {
        waiting.insert(seq, item);
        while let Some(item) = waiting.remove(&next) {
            take(item?)?;
            next += 1;
            // Nobody may be left who wants one.
            let _has_ended = tokens.try_send(()).is_err();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_the_first_failure_ends_it() {
        for threads in [1, 2, 5] {
            let mut taken = Vec::new();
            let items = (0..500_u64).map(Ok);
            in_order(
                threads,
                items,
                |n| Ok(n * 2),
                |n| {
                    taken.push(n);
                    Ok(())
                },
            )
            .unwrap();
            assert_eq!(taken, (0..500).map(|n| n * 2).collect::<Vec<_>>());
            let fails = |n: u64| match n {
                77 => Err(Error::invalid("77")),
                n => Ok(n),
            };
            let error = in_order(threads, (0..500_u64).map(Ok), fails, |_| Ok(())).unwrap_err();
            assert_eq!(error.message(), "77");
            let error = in_order(threads, (0..500_u64).map(fails), Ok, |_| Ok(())).unwrap_err();
            assert_eq!(error.message(), "77");
            let refuses = |n: u64| fails(n).map(|_| ());
            let error = in_order(threads, (0..500_u64).map(Ok), Ok, refuses).unwrap_err();
            assert_eq!(error.message(), "77");
        }
    }
}
