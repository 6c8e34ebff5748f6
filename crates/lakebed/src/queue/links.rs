//! Which rules of a run led from its pages to others: counted with the finish of each page, whether what it leads to is new,
//! known from the seeds, or from another run of the date.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::error::Result;
use crate::queue::cell::unsigned;
use crate::queue::db::{Dialect, Fault, Tx, values};
use crate::queue::family::listed;
use crate::queue::run_row::{RUNS, get_run, run_of};
use crate::queue::verdict::closing_of;
use crate::queue::{Coverage, Finish, FinishKind};
use crate::spec::RunKey;

/// Earlier runs that are looked through for one whose pages had such links.
const MAX_BEFORE: i64 = 30;

/// Pages on which a rule looked for links.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LinkBooks {
    /// Pages that it was for.
    pub pages: u64,
    /// Those of them that had such a link within the source.
    pub hits: u64,
    /// Of a rule without a hit: how it was in the last run of this name that ended well; absent where none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<LinksBefore>,
}

/// How a rule did in an earlier run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinksBefore {
    /// The run.
    pub run: RunKey,
    /// Pages that had such a link.
    pub hits: u64,
}

/// Adds what accepted finishes say of the rules of their pages.
pub(super) async fn put_links<'a>(
    tx: &mut Tx,
    (run_id, worker_id): (i64, i64),
    accepted: impl Iterator<Item = &'a Finish>,
) -> Result<(), Fault> {
    let mut counts: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for finish in accepted {
        let FinishKind::Done(done) = &finish.end else {
            continue;
        };
        for link in &done.links {
            let (pages, hits) = counts.entry(&link.rule).or_default();
            *pages += 1;
            *hits += i64::from(link.is_hit);
        }
    }
    let sql = match tx.dialect() {
        Dialect::Mysql => {
            "INSERT INTO queue_link (run_id, rule, worker_id, pages, hits) VALUES (?, ?, ?, ?, ?) \
             ON DUPLICATE KEY UPDATE pages = pages + VALUES(pages), hits = hits + VALUES(hits)"
        }
        Dialect::Sqlite | Dialect::Postgres => {
            "INSERT INTO queue_link AS k (run_id, rule, worker_id, pages, hits) VALUES (?, ?, ?, ?, ?) \
             ON CONFLICT (run_id, rule, worker_id) DO UPDATE SET pages = k.pages + excluded.pages, hits = k.hits + excluded.hits"
        }
    };
    for (rule, (pages, hits)) in counts {
        tx.execute(sql, values![run_id, rule, worker_id, pages, hits])
            .await?;
    }
    Ok(())
}

/// The rules of a family of runs, and how those without a hit did before.
pub(super) async fn count_links(
    tx: &mut Tx,
    family: &[i64],
) -> Result<BTreeMap<String, LinkBooks>, Fault> {
    let mut links = links_of(tx, family).await?;
    look_before(tx, family, &mut links).await?;
    Ok(links)
}

/// Pages by stage that announced how many requests there are.
pub(super) async fn count_announcing(
    tx: &mut Tx,
    family: &[i64],
) -> Result<BTreeMap<String, u64>, Fault> {
    let sql = format!(
        "SELECT l.stage, count(DISTINCT e.request_id) FROM queue_expectation e \
         JOIN queue_request_state s ON s.run_id = e.run_id AND s.id = e.request_id \
         JOIN queue_lane l ON l.id = s.lane_id WHERE e.run_id IN ({}) GROUP BY l.stage",
        listed(family)
    );
    let mut announcing = BTreeMap::new();
    for row in tx.rows(&sql, &[]).await? {
        announcing.insert(row.text(0)?, unsigned(row.int(1)?));
    }
    Ok(announcing)
}

async fn links_of(tx: &mut Tx, runs: &[i64]) -> Result<BTreeMap<String, LinkBooks>, Fault> {
    let sql = format!(
        "SELECT rule, CAST(sum(pages) AS {{int}}), CAST(sum(hits) AS {{int}}) FROM queue_link \
         WHERE run_id IN ({}) GROUP BY rule",
        listed(runs)
    );
    let mut links = BTreeMap::new();
    for row in tx.rows(&sql, &[]).await? {
        let counted = LinkBooks {
            pages: unsigned(row.int(1)?),
            hits: unsigned(row.int(2)?),
            before: None,
        };
        links.insert(row.text(0)?, counted);
    }
    Ok(links)
}

/// A rule without a hit is compared with the last run of this name that ended well and had pages for it. A run that claims
/// to see only a part is not compared: another one may have been of more.
async fn look_before(
    tx: &mut Tx,
    family: &[i64],
    links: &mut BTreeMap<String, LinkBooks>,
) -> Result<(), Fault> {
    let is_barren = |(rule, link): (&String, &LinkBooks)| (link.hits == 0).then(|| rule.clone());
    let mut barren: BTreeSet<String> = links.iter().filter_map(is_barren).collect();
    let Some(first) = family.first() else {
        return Ok(());
    };
    let first = get_run(tx, *first).await?;
    if barren.is_empty() || first.coverage == Coverage::Partial {
        return Ok(());
    }
    let sql = format!(
        "{RUNS} AND source = ? AND run = ? AND state = 3 AND successor_of IS NULL AND id < ? ORDER BY id DESC LIMIT ?"
    );
    let key = &first.key;
    let args = values![key.source.as_str(), key.run.as_str(), first.id, MAX_BEFORE];
    for row in tx.rows(&sql, args).await? {
        let run = run_of(&row)?;
        if run.is_planned() != first.is_planned() || !closing_of(&run)?.is_good() {
            continue;
        }
        let there = links_of(tx, &[run.id]).await?;
        for (rule, counted) in there.into_iter().filter(|(_, c)| c.pages > 0) {
            if barren.remove(&rule)
                && let Some(link) = links.get_mut(&rule)
            {
                link.before = Some(LinksBefore {
                    run: run.key.clone(),
                    hits: counted.hits,
                });
            }
        }
        if barren.is_empty() {
            break;
        }
    }
    Ok(())
}
