//! Several fields that read one input member: what `change = "dual"` means for a value.
//!
//! The newest of them decides. Where it takes the value, an older field that does not is NULL and
//! counts as invalid; where it does not, the record is at fault as ever.

use crate::ingest::convert::column::Column;
use crate::ingest::convert::presence::Presence;
use crate::ingest::convert::row::{Place, Row};
use crate::ingest::raw::Raw;

/// How far a record's faults, notes and `_extra` reached.
#[derive(Debug, Clone, Copy)]
struct Mark {
    faults: usize,
    notes: usize,
    extra: usize,
}

/// What a field that does not take the value left behind.
struct Failure {
    target: usize,
    rows: usize,
    from: Mark,
    to: Mark,
}

impl<'p> Row<'p> {
    fn mark(&self) -> Mark {
        Mark {
            faults: self.faults.len(),
            notes: self.notes.len(),
            extra: self.extra.len(),
        }
    }

    /// One value into every field of `targets`, none or several.
    pub(super) fn shared(
        &mut self,
        targets: &'p [usize],
        raw: &Raw<'_>,
        at: &Place<'p>,
        columns: &mut [Column],
    ) {
        let newest = targets.iter().max_by_key(|t| at.level.fields[**t].dual);
        let mut is_taken = false;
        let mut failures = Vec::new();
        for target in targets {
            let rows = columns[*target].len();
            let from = self.mark();
            let kind = self.target(*target, raw, at, columns);
            if kind != Presence::Invalid {
                is_taken |= Some(target) == newest && at.level.fields[*target].dual.is_some();
            } else {
                failures.push(Failure {
                    target: *target,
                    rows,
                    from,
                    to: self.mark(),
                });
            }
        }
        if is_taken {
            // From the last one on, so that the marks of the others hold.
            for failure in failures.into_iter().rev() {
                self.forgive(&failure, columns);
            }
        }
    }

    fn forgive(&mut self, failure: &Failure, columns: &mut [Column]) {
        let Failure { from, to, .. } = failure;
        self.faults.drain(from.faults..to.faults);
        self.notes.drain(from.notes..to.notes);
        self.extra.replace_range(from.extra..to.extra, "");
        let column = &mut columns[failure.target];
        column.truncate(failure.rows);
        column.push_null();
    }
}
