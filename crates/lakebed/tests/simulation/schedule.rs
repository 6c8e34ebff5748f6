//! Who runs: an actor runs alone until its next call of the store, where it may be put to sleep while
//! others go on. One thread drives all, so the order of steps follows from the seed alone.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

/// Whether an actor waits at a call of the store.
#[derive(Debug, Default)]
struct Turn {
    asleep: AtomicBool,
}

tokio::task_local! {
    /// Set for an actor's own task alone: what it spawns runs on without sleeping.
    static TURN: Arc<Turn>;
}

/// A call of the store: the actor that runs waits here until it is woken.
pub(crate) async fn may_sleep() {
    let Ok(turn) = TURN.try_with(Arc::clone) else {
        return;
    };
    turn.asleep.store(true, Ordering::SeqCst);
    poll_fn(|_| {
        if turn.asleep.load(Ordering::SeqCst) {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

/// Work in the middle of which its actor can be put to sleep.
pub(crate) struct Work<T> {
    turn: Arc<Turn>,
    future: Pin<Box<dyn Future<Output = T>>>,
}

impl<T> Work<T> {
    pub(crate) fn new(future: impl Future<Output = T> + 'static) -> Self
    where
        T: 'static,
    {
        let turn = Arc::new(Turn::default());
        Self {
            future: Box::pin(TURN.scope(Arc::clone(&turn), future)),
            turn,
        }
    }

    /// Runs up to the next call of the store; `None` = it sleeps there.
    pub(crate) async fn step(&mut self) -> Option<T> {
        self.turn.asleep.store(false, Ordering::SeqCst);
        poll_fn(|cx| match self.future.as_mut().poll(cx) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending if self.turn.asleep.load(Ordering::SeqCst) => Poll::Ready(None),
            // It waits for something else, such as the catalog: nobody else runs meanwhile.
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Runs up to `calls` calls of the store; `None` = it sleeps.
    pub(crate) async fn run(&mut self, calls: u64) -> Option<T> {
        for _ in 0..calls {
            if let Some(answer) = self.step().await {
                return Some(answer);
            }
        }
        None
    }
}

#[tokio::test]
async fn work_sleeps_at_each_call_and_goes_on() {
    let mut work = Work::new(async {
        may_sleep().await;
        // A spawned task does not sleep.
        tokio::spawn(may_sleep()).await.unwrap();
        may_sleep().await;
        7
    });
    assert_eq!(work.step().await, None);
    assert_eq!(work.step().await, None);
    assert_eq!(work.step().await, Some(7));
}
