//! What a worker keeps from chunk to chunk: columns with their capacity, learned member order,
//! looked-up zone ranges, buffers.

use crate::error::Result;
use crate::ingest::convert::column::Column;
use crate::ingest::convert::plan::Plan;
use crate::ingest::convert::presence::Presence;
use crate::ingest::convert::texts::Texts;
use crate::ingest::convert::zone::ZoneCache;

/// The state of one worker for one plan.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) columns: Vec<Column>,
    pub(crate) extra: Texts,
    pub(crate) kinds: Vec<Presence>,
    /// Number of the object in which a slot, or the level in which a field, was met last.
    pub(crate) seen_slots: Vec<u64>,
    pub(crate) seen_fields: Vec<u64>,
    pub(crate) stamp: u64,
    /// Position of the slot that followed a slot last time; the first one of an object.
    pub(crate) next_slot: Vec<usize>,
    pub(crate) first_slot: Vec<usize>,
    /// How many objects are to be read before keys are guessed again.
    pub(crate) guess_pauses: Vec<u32>,
    pub(crate) zones: Vec<ZoneCache>,
    /// Buffers of JSON texts and of typed numbers.
    pub(crate) text: String,
    pub(crate) number: String,
}

impl Memory {
    pub(crate) fn new(plan: &Plan) -> Result<Self> {
        let schema = plan.arrow_schema();
        let columns: Result<Vec<_>> = schema
            .fields()
            .iter()
            .take(plan.specs.len())
            .map(|f| Column::new(f.data_type()))
            .collect();
        Ok(Self {
            columns: columns?,
            extra: Texts::new(),
            kinds: vec![Presence::Absent; plan.specs.len()],
            seen_slots: vec![0; plan.sizes.slots],
            seen_fields: vec![0; plan.sizes.fields],
            stamp: 0,
            next_slot: vec![0; plan.sizes.slots],
            first_slot: vec![0; plan.sizes.objects],
            guess_pauses: vec![0; plan.sizes.objects],
            zones: vec![ZoneCache::default(); plan.sizes.zones],
            text: String::new(),
            number: String::new(),
        })
    }

    /// A number that no object or level before had.
    #[inline]
    pub(crate) fn next_stamp(&mut self) -> u64 {
        self.stamp += 1;
        self.stamp
    }
}
