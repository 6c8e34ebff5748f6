//! Questions about inputs that the index answers: what a commit asks, however many there are.

use std::collections::BTreeSet;

use crate::log::state::{DatasetState, InputState, Partition};
use crate::name::{BatchLabel, ContentHash};
use crate::spec::PartitionKey;
use crate::time::BusinessDate;

/// An input with its partition.
type Found<'a> = (&'a PartitionKey, &'a Partition, &'a InputState);

impl DatasetState {
    fn resolve(&self, (key, at): (PartitionKey, usize)) -> Option<Found<'_>> {
        let (key, partition) = self.partitions().get_key_value(&key)?;
        Some((key, partition, partition.inputs.get(at)?))
    }

    /// Inputs of a date with this content, in partitions of any state, in the order of `partitions`.
    pub fn inputs_with(
        &self,
        dt: BusinessDate,
        content: &ContentHash,
    ) -> impl Iterator<Item = (&PartitionKey, &Partition, &InputState)> {
        self.inputs
            .with_content(content, (dt, dt))
            .filter_map(|entry| self.resolve(entry))
            .filter(move |(_, _, i)| i.spec.content == *content)
    }

    /// Inputs with this content that readers see of the date.
    pub fn visible_with(
        &self,
        dt: BusinessDate,
        content: &ContentHash,
    ) -> impl Iterator<Item = (&PartitionKey, &InputState)> {
        self.inputs_with(dt, content)
            .filter(|(_, p, _)| p.is_visible())
            .map(|(k, _, i)| (k, i))
    }

    /// Inputs under this label that readers see of the date.
    pub fn visible_labelled(
        &self,
        dt: BusinessDate,
        batch: &BatchLabel,
    ) -> impl Iterator<Item = (&PartitionKey, &InputState)> {
        self.inputs
            .with_batch(batch, dt)
            .filter_map(|entry| self.resolve(entry))
            .filter(move |(_, p, i)| p.is_visible() && i.spec.batch.as_ref() == Some(batch))
            .map(|(k, _, i)| (k, i))
    }

    /// Whether an input under this label was committed of the date and readers see none of it any more: it was retired,
    /// or another revision took its place.
    #[must_use]
    pub fn is_label_past(&self, dt: BusinessDate, batch: &BatchLabel) -> bool {
        let all = self.inputs.with_batch(batch, dt);
        let mut all = all.filter_map(|entry| self.resolve(entry));
        let is_known = all.any(|(_, _, i)| i.spec.batch.as_ref() == Some(batch));
        is_known && self.visible_labelled(dt, batch).next().is_none()
    }

    /// Every date of which readers see an input with this content, in order.
    #[must_use]
    pub fn dates_with(&self, content: &ContentHash) -> BTreeSet<BusinessDate> {
        let all = (BusinessDate::MIN, BusinessDate::MAX);
        self.inputs
            .with_content(content, all)
            .filter_map(|entry| self.resolve(entry))
            .filter(|(_, p, i)| p.is_visible() && i.spec.content == *content)
            .map(|(key, _, _)| key.dt)
            .collect()
    }
}
