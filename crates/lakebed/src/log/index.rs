//! Where inputs are found by content and by batch label, without a walk over their date (`lookup`).
//!
//! Derived from the partitions alone: equal folds have equal indexes. An entry holds the first eight
//! bytes of a hash; whoever looks compares the whole afterwards.

use std::collections::BTreeSet;

use crate::name::{BatchLabel, ContentHash};
use crate::spec::{InputSpec, PartitionKey};
use crate::time::BusinessDate;

/// Beginning of a hash, partition, place among its inputs.
type Entry = (u64, PartitionKey, usize);

/// The inputs of a dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InputIndex {
    contents: BTreeSet<Entry>,
    batches: BTreeSet<Entry>,
}

impl InputIndex {
    /// Notes an input that has the place `at` in its partition.
    pub(super) fn insert(&mut self, key: PartitionKey, at: usize, input: &InputSpec) {
        self.contents.insert((beginning(&input.content), key, at));
        if let Some(batch) = &input.batch {
            self.batches.insert((batch_beginning(batch), key, at));
        }
    }

    /// Places that may hold an input with this content, on dates from one to the other, in order.
    pub(super) fn with_content(
        &self,
        content: &ContentHash,
        dates: (BusinessDate, BusinessDate),
    ) -> impl Iterator<Item = (PartitionKey, usize)> {
        entries(&self.contents, beginning(content), dates)
    }

    /// Places that may hold an input under this label, in order.
    pub(super) fn with_batch(
        &self,
        batch: &BatchLabel,
        dt: BusinessDate,
    ) -> impl Iterator<Item = (PartitionKey, usize)> {
        entries(&self.batches, batch_beginning(batch), (dt, dt))
    }
}

fn beginning(hash: &ContentHash) -> u64 {
    u64::from_str_radix(hash.short(), 16).unwrap_or(0)
}

fn batch_beginning(batch: &BatchLabel) -> u64 {
    beginning(&ContentHash::of(batch.as_str().as_bytes()))
}

fn entries(
    index: &BTreeSet<Entry>,
    begins: u64,
    (from, to): (BusinessDate, BusinessDate),
) -> impl Iterator<Item = (PartitionKey, usize)> {
    let first = PartitionKey {
        dt: from,
        schema_version: 0,
        revision: 0,
    };
    let last = PartitionKey {
        dt: to,
        schema_version: u32::MAX,
        revision: u32::MAX,
    };
    index
        .range((begins, first, 0)..=(begins, last, usize::MAX))
        .map(|(_, key, at)| (*key, *at))
}
