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
//! | `links` | links of a page that are followed |

mod drive;
mod gate;
mod links;
mod seeds;
mod task;
mod worker;

pub use drive::{CrawlPlan, crawl_run, parts_folder, seed_run};
pub use gate::Hosts;
pub use links::{LinkRules, Page};
pub use seeds::{SeedPlan, read_seeds};
pub use worker::{CrawlWatch, WorkerEnd, WorkerOptions, WorkerStats};
