//! A simulation of many programs on one lake: random histories against a plain model, and every write
//! with a fault at every call of the store. A failing history prints its seed:
//!
//! ```text
//! LAKEBED_SIMULATION_SEED=4711 cargo nextest run -p lakebed --test simulation histories
//! LAKEBED_SIMULATION_HISTORIES=100000 cargo nextest run -p lakebed --test simulation histories
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `random` | numbers that follow from a seed |
//! | `schedule` | who runs, and who sleeps at which call of the store |
//! | `faulty` | a store that fails on order |
//! | `model` | what a dataset must hold |
//! | `witness` | what lies on the disk, read without the code under test |
//! | `judge` | the records, answers and folders of a dataset against the model |
//! | `world`, `operation` | a lake and the commands |
//! | `court` | what must hold where nobody writes |
//! | `history` | one random history |
//! | `scene` | a lake that is copied for every try |
//! | `faults` | every write with a fault at every call |
//! | `races` | a command that sleeps at each of its calls while others run |

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test ends where it cannot go on"
)]

mod court;
mod faults;
mod faulty;
mod history;
mod judge;
mod model;
mod operation;
mod races;
mod random;
mod scene;
mod schedule;
mod witness;
mod world;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Histories of a run, where the environment says nothing else.
const HISTORIES: u64 = 1000;
/// Failing histories after which a run ends.
const MAX_FAILURES: usize = 3;

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap())
}

/// Runs the history of a seed.
fn live(seed: u64) -> Result<Vec<String>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    catch_unwind(AssertUnwindSafe(|| runtime.block_on(history::live(seed))))
        .unwrap_or_else(|_| Err(format!("seed {seed}: a panic, printed above")))
}

/// What many histories came to.
#[derive(Default)]
struct Sum {
    failures: Vec<String>,
    /// How often each operation was committed, each call was struck.
    met: BTreeMap<String, u64>,
}

fn live_all(first: u64, last: u64) -> Sum {
    let next = AtomicU64::new(first);
    let sum = Mutex::new(Sum::default());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed > last || sum.lock().unwrap().failures.len() >= MAX_FAILURES {
                        return;
                    }
                    let lived = live(seed);
                    let mut sum = sum.lock().unwrap();
                    match lived {
                        Err(what) => sum.failures.push(what),
                        Ok(met) => {
                            for name in met {
                                let name = name.split(' ').next().unwrap_or_default();
                                *sum.met.entry(name.to_owned()).or_default() += 1;
                            }
                        }
                    }
                }
            });
        }
    });
    sum.into_inner().unwrap()
}

/// Many programs on one lake give what one after the other would have given.
#[test]
fn histories_agree_with_the_model() {
    let seed = from_environment("LAKEBED_SIMULATION_SEED");
    let count = from_environment("LAKEBED_SIMULATION_HISTORIES").unwrap_or(HISTORIES);
    let sum = match seed {
        Some(seed) => live_all(seed, seed),
        None => live_all(1, count),
    };
    assert!(sum.failures.is_empty(), "{}", sum.failures.join("\n\n"));
    // Histories in which nothing happens agree with everything.
    if seed.is_none() && count >= HISTORIES {
        for name in [
            "append", "correct", "switch", "seal", "reopen", "abandon", "PutOnce", "Replace",
            "MoveFile", "Delete", "List",
        ] {
            assert!(sum.met.contains_key(name), "no `{name}` in {:?}", sum.met);
        }
    }
}

#[test]
fn a_seed_gives_the_same_history_again() {
    for seed in [5, 6, 7] {
        assert_eq!(live(seed).unwrap(), live(seed).unwrap());
    }
}
