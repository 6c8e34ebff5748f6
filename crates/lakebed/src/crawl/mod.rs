//! A crawl: seeds into the queue, workers that claim, fetch, put into pack parts and finish, and its closing.
//!
//! Here the queue, the fetcher and the packs meet; none of them knows the others.
//!
//! | file | what it does |
//! | --- | --- |
//! | `seeds` | a plan as lines |
//! | `drive` | everything that is configured; seeding; one process's part of a run |
//! | `worker` | claims, tasks, finishes, heartbeat |
//! | `task` | one claim from its moment to its end |
//! | `gate` | `robots.txt` and the turn of a host before every hop |
//! | `follow`, `links` | the follow-ups of a page, by the parse rules or by `follow` of its stage |
//! | `desk`, `told` | claims and finishes of crawlers of somebody else |
//! | `sample` | a few pages for whoever writes rules, never part of a day |
//! | `patience` | how long a host waits whose `robots.txt` could not be read |
//! | `close`, `statistics` | the pack, the closing, and what is told of it |

mod close;
mod desk;
mod drive;
mod follow;
mod gate;
mod links;
mod outside;
mod patience;
mod sample;
mod seeds;
mod statistics;
mod task;
mod told;
mod worker;

pub use close::{Closed, Packed, close_run, pack_run};
pub use desk::{Desk, DeskHold, FinishReport, ToldEnd, ToldFinish, ToldLinks, ToldOutcome};
pub use drive::{CrawlPlan, crawl_run, parts_folder, seed_run};
pub use gate::{Hosts, Turn};
pub use links::{LinkRules, Page};
pub use outside::{LostOptions, accept_run, lose_responses};
pub use patience::list_unread_robots;
pub use sample::{Sampled, is_sample, name_sample, sample_config, sample_run};
pub use seeds::{SeedPlan, SeedSpec, read_seeds, seed_request};
pub use statistics::{PackStatistics, RUN_STATISTICS_FORMAT, RunStatistics};
pub use told::ToldResponse;
pub use worker::{CrawlWatch, WorkerEnd, WorkerOptions, WorkerStats};
