//! What is read of a dataset before it is its turn: the records after a position, and what goes in with them.
//!
//! ```text
//! look (all records, what they say in the end) -> read ahead (footers of the next batches) -> apply
//! ```

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::catalog::wanted::{Future, Prepared, brings_back};
use crate::error::Result;
use crate::log::{LogWalk, LoggedRecord};
use crate::name::DatasetRef;
use crate::spec::LogPosition;
use crate::store::Lake;

/// Records held in memory at most; of more, batches are read a second time.
const FEW_RECORDS: usize = 4096;
/// Batches that wait to be applied, beside the one that is being read.
const WAITING: usize = 1;

/// The records after a position, and what they say in the end.
pub(super) struct Ahead {
    pub(super) from: LogPosition,
    /// Number of the last one.
    pub(super) last: u64,
    pub(super) future: Arc<Future>,
    /// All of them where they are few, and what goes in with them; a long log is read twice rather than held.
    pub(super) few: Option<(Arc<Vec<LoggedRecord>>, ReadAhead)>,
}

impl Ahead {
    pub(super) async fn look(lake: &Lake, dataset: &DatasetRef, from: LogPosition) -> Result<Self> {
        let mut future = Future::default();
        let (mut last, mut few) = (from.number, Some(Vec::new()));
        let mut walk = walk_from(lake, dataset, &from).await?;
        loop {
            let batch = walk.next_batch().await?;
            let Some(newest) = batch.last() else {
                break;
            };
            last = newest.record.number;
            batch.iter().for_each(|logged| future.note(logged));
            few = few.filter(|few| few.len() < FEW_RECORDS);
            if let Some(few) = &mut few {
                few.extend(batch);
            }
        }
        let future = Arc::new(future);
        let few = few.map(|records| {
            let records = Arc::new(records);
            let read = ReadAhead::begin(lake, &records, &future, 0);
            (records, read)
        });
        Ok(Self {
            from,
            last,
            future,
            few,
        })
    }
}

/// A walk over what follows the position.
pub(super) async fn walk_from(
    lake: &Lake,
    dataset: &DatasetRef,
    from: &LogPosition,
) -> Result<LogWalk> {
    if from.number == 0 {
        LogWalk::whole(lake, dataset, from.clone()).await
    } else {
        LogWalk::after(lake, dataset, from.clone()).await
    }
}

/// Reads what goes in with the next records, batch by batch, before it is their turn.
pub(super) struct ReadAhead {
    batches: mpsc::Receiver<Prepared>,
    /// Ends with this.
    _reader: JoinSet<()>,
}

impl ReadAhead {
    /// Begins with the record at `from`.
    pub(super) fn begin(
        lake: &Lake,
        records: &Arc<Vec<LoggedRecord>>,
        future: &Arc<Future>,
        from: usize,
    ) -> Self {
        let (to, batches) = mpsc::channel(WAITING);
        let (lake, records) = (lake.clone(), Arc::clone(records));
        let (future, mut at) = (Arc::clone(future), from);
        let mut reader = JoinSet::new();
        if at < records.len() {
            reader.spawn(async move {
                while let Some(rest) = records.get(at..) {
                    // What comes back into sight is known to the catalog alone, once it stands there. And what
                    // is missing or wrong now may not be so in its turn.
                    if rest.first().is_none_or(|next| brings_back(&next.record)) {
                        return;
                    }
                    let read = Prepared::read(&lake, None, rest, &future).await;
                    let Some(prepared) = read.ok().filter(|p| p.stop.is_none()) else {
                        return;
                    };
                    at += prepared.stats.len();
                    if to.send(prepared).await.is_err() {
                        return;
                    }
                }
            });
        }
        Self {
            batches,
            _reader: reader,
        }
    }

    /// The next batch; `None` = it must be read in its turn, and whatever follows too.
    pub(super) async fn next(&mut self) -> Option<Prepared> {
        self.batches.recv().await
    }
}
