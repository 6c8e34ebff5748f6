//! The `dual` strategy: one input value into every field of a group, by each field's own rules.
//!
//! ```text
//! each field converts --> takes (a value, or NULL by rule) | does not take
//!   none takes       the record is at fault, told once, under the group's leading field
//!   some takes       what did not take stores NULL and counts `invalid`: neither reject nor drift
//!                    then `required` is asked of each field by itself
//! ```
//!
//! A value that is not taken leaves nothing in its column, in `_extra` or in the drift.

use crate::ingest::convert::column::Column;
use crate::ingest::convert::fault::FaultCode;
use crate::ingest::convert::plan::{FieldPlan, Slot};
use crate::ingest::convert::presence::Presence;
use crate::ingest::convert::refusal::{Fault, Note, Refusal};
use crate::ingest::convert::row::{Got, Place, Row};
use crate::ingest::convert::trouble::words;
use crate::ingest::json::Unescaped;
use crate::ingest::raw::Raw;

/// What converting the value for one field of the group came to.
struct Attempt {
    got: Got,
    faults: Vec<Fault>,
    notes: Vec<Note>,
    extra: String,
    met: Unescaped,
}

impl Attempt {
    fn takes(&self) -> bool {
        !matches!(self.got, Got::Invalid)
    }
}

/// The items from `at` on, without an allocation where there are none.
fn cut<T>(items: &mut Vec<T>, at: usize) -> Vec<T> {
    items.drain(at..).collect()
}

impl<'p> Row<'p> {
    /// One member into the fields of a group, of which `lead` tells the faults.
    pub(crate) fn dual(
        &mut self,
        slot: &'p Slot,
        lead: usize,
        raw: &Raw<'_>,
        at: &Place<'p>,
        columns: &mut [Column],
    ) {
        let mut attempts = Vec::with_capacity(slot.targets.len());
        for target in &slot.targets {
            let field = &at.level.fields[*target];
            self.memory.seen_fields[field.id] = at.stamp;
            attempts.push(self.attempt(field, raw, at.is_top, &mut columns[*target]));
        }
        let taken = attempts.iter().any(Attempt::takes);
        if taken {
            self.keep_aside(&mut attempts);
        }
        for (target, attempt) in slot.targets.iter().zip(attempts) {
            let field = &at.level.fields[*target];
            if at.is_top {
                self.top = Some(field);
            }
            let kind = match attempt.got {
                _ if !taken => {
                    if *target == lead {
                        self.refuse_group(slot, lead, at, attempt);
                    }
                    Presence::Invalid
                }
                Got::Value(kind) => kind,
                Got::Null(_) if field.required => {
                    self.missing(field);
                    Presence::Invalid
                }
                Got::Null(kind) => kind,
                Got::Invalid => {
                    if field.required {
                        self.missing_by_fault(field, &attempt.faults);
                    }
                    Presence::Invalid
                }
            };
            if at.is_top {
                self.memory.kinds[*target] = kind;
            }
        }
    }

    /// Converts the value for one field; NULL stands in the column where it is not taken.
    fn attempt(
        &mut self,
        field: &'p FieldPlan,
        raw: &Raw<'_>,
        is_top: bool,
        column: &mut Column,
    ) -> Attempt {
        if is_top {
            self.top = Some(field);
        }
        let rows = column.len();
        let (faults, notes, extra) = (self.faults.len(), self.notes.len(), self.extra.len());
        let met = std::mem::take(&mut self.met);
        let outer = std::mem::replace(&mut self.personal, field.personal);
        let got = self.field_value(field, raw, column);
        self.personal = outer;
        if got == Got::Invalid {
            column.truncate(rows);
            column.push_null();
        }
        Attempt {
            got,
            faults: cut(&mut self.faults, faults),
            notes: cut(&mut self.notes, notes),
            extra: self.extra.split_off(extra),
            met: std::mem::replace(&mut self.met, met),
        }
    }

    /// Keeps what the value left beside its columns: unknown members of the field that knows most
    /// of them (what it does not know is all that is stored nowhere), characters counted once.
    fn keep_aside(&mut self, attempts: &mut [Attempt]) {
        let (mut surrogates, mut nuls) = (0, 0);
        for attempt in attempts.iter().filter(|a| a.takes()) {
            surrogates = attempt.met.lone_surrogates.max(surrogates);
            nuls = attempt.met.nuls.max(nuls);
        }
        self.met.lone_surrogates += surrogates;
        self.met.nuls += nuls;
        let takers = attempts.iter_mut().filter(|a| a.takes());
        if let Some(best) = takers.min_by_key(|a| a.notes.len()) {
            self.notes.append(&mut best.notes);
            self.extra.push_str(&best.extra);
        }
    }

    /// No field takes the value: the faults of the leading one, and what else was tried.
    #[cold]
    fn refuse_group(&mut self, slot: &Slot, lead: usize, at: &Place<'p>, attempt: Attempt) {
        let mut faults = attempt.faults;
        if let Some(first) = faults.first_mut() {
            let others = slot.targets.iter().filter(|t| **t != lead);
            let tried: Vec<_> = others
                .map(|t| &at.level.fields[*t])
                .map(|f| format!("`{}` ({})", f.name, words(&f.value)))
                .collect();
            let more = format!("; no field takes it, tried as well: {}", tried.join(", "));
            first.reason.reason.push_str(&more);
        }
        self.faults.append(&mut faults);
        self.notes.extend(attempt.notes);
    }

    /// A required field that is NULL because the value does not fit it, though another field took it.
    #[cold]
    fn missing_by_fault(&mut self, field: &FieldPlan, faults: &[Fault]) {
        let cause = faults.first().map_or("", |f| f.reason.reason.as_str());
        let why = format!("the required field `{}` has no value: {cause}", field.name);
        self.refuse(&Refusal::new(FaultCode::Missing, "", &why));
    }
}
