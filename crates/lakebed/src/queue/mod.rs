//! The request queue: every request of a run, from pending to done or dead, in a database of its own.
//!
//! The only mutable state of a crawl (P3). One table of requests serves many workers on SQLite, PostgreSQL
//! and MySQL/MariaDB; the clock is the database's, never a worker's.
//!
//! | file | what it does | invariant |
//! | --- | --- | --- |
//! | `state` | states of requests and runs, their legal moves | QUE-1 |
//! | `request` | what goes in and comes out | |
//! | `run` | create, seed, open, seal, stop | QUE-3 |
//! | `enqueue` | idempotent by (scope, key), counted | QUE-3 |
//! | `claim` | ready requests under a lease, hosts within their limits | QUE-2 |
//! | `known_lane` | the same by one statement, where the lane of the claim before has more | QUE-2 |
//! | `finish` | fenced ends, follow-ups in the same transaction | QUE-2, QUE-4 |
//! | `plain_finish` | the same by one statement, for successes that bring nothing along | QUE-2 |
//! | `whole_finish` | a batch of those, all or none, without a look before | QUE-2 |
//! | `worker` | heartbeats; claims of the silent go back | QUE-2 |
//! | `deadline` | what is left at the deadline dies | |
//! | `books`, `links`, `closing`, `verdict` | what is counted of a run, the rule that it balances, what that found | QUE-5 |
//! | `retry` | what died once more, in a run after it | QUE-3 |
//! | `family`, `accept` | ends over a run and its retries; a red closing that a person takes as it is | QUE-5 |
//! | `prune` | families of closed runs go, as a whole | QUE-7 |
//! | `host` | moments, blocks and `robots.txt` of a host for all workers | |
//! | `lease` | what one process at a time may do, by name | FLW-4 |
//! | `event`, `list`, `look`, `holders` | what people and other programs see | |
//! | `run_row`, `tally`, `cell`, `mark` | steps they share; what a process remembers | |
//! | `db` | the small interface over three databases | |
//!
//! | id | what holds |
//! | --- | --- |
//! | QUE-1 | moves as the tables of legal moves say, the expected state in the `WHERE`, the rows counted |
//! | QUE-2 | a claim has one worker, and its finish counts once |
//! | QUE-3 | a run opens only with every announced seed accounted for |
//! | QUE-4 | follow-ups enter with the success that led to them, or not at all |
//! | QUE-5 | a run closes green only when its books balance |
//! | QUE-6 | limits and blocks of a host hold over all workers; waiting costs no attempt |
//! | QUE-7 | a run that is pruned goes with its family in one move; what is left of its rows is read by nobody |
//!
//! What does not belong here: fetching, the bytes of responses, and rates, which are local configuration.

mod accept;
mod books;
mod cell;
mod claim;
mod closing;
mod db;
mod deadline;
mod enqueue;
mod event;
mod family;
mod finish;
mod holders;
mod host;
mod known_lane;
mod lease;
mod links;
mod list;
mod look;
mod lost;
mod mark;
mod open;
mod plain_finish;
mod prune;
mod request;
mod retry;
mod run;
mod run_row;
mod state;
#[cfg(test)]
mod suite;
mod tally;
mod verdict;
mod whole_finish;
mod worker;

pub use books::{RunBooks, StageBooks};
pub use claim::{ClaimOptions, ClaimOutcome, HostLimit, HostLimits};
pub use closing::{ClosingRules, StageLink};
pub use event::EventRecord;
pub use family::FamilyBooks;
pub use holders::HolderRecord;
pub use host::HostRecord;
pub use lease::{LeaseHolder, LeaseOutcome, LeaseRecord};
pub use links::{LinkBooks, LinksBefore};
pub use list::{LaneProgress, RequestFilter, RequestRecord, WorkerRecord};
pub use look::HeldRequest;
pub use lost::RESPONSE_LOST;
pub use open::{Queue, QueueOptions};
pub use request::{
    Claim, Coverage, DoneSpec, EnqueueStats, Expectation, Finish, FinishKind, FinishOutcome,
    KeyScope, LinkSeen, NewRequest, RunRecord, planned_hash,
};
pub use run::RunOptions;
pub use state::{RequestState, RunState};
pub use verdict::{Acceptance, Breach, BreachKind, ClosingRecord, closing_of};
pub use worker::{Heartbeat, ReapStats, Worker};
