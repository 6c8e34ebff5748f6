//! The walk over one record: its members into columns, its faults, its unknown fields.
//!
//! A record is pending until it is settled: its values stand in the columns, its presence kinds,
//! faults and notes stand here. Settling either counts it as a row or cuts every column back.

use std::borrow::Cow;

use crate::ingest::convert::column::Column;
use crate::ingest::convert::fault::{FaultCode, Step};
use crate::ingest::convert::memory::Memory;
use crate::ingest::convert::plan::{FieldPlan, Level, ObjectPlan, Plan, Slot};
use crate::ingest::convert::presence::Presence;
use crate::ingest::convert::refusal::{Fault, Note, Refusal};
use crate::ingest::convert::typed;
use crate::ingest::json::{Key, Scanner, SyntaxError, Unescaped, find_duplicate, unescaped};
use crate::ingest::native::NativeValue;
use crate::ingest::raw::Raw;

/// What became of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Got {
    /// It was stored.
    Value(Presence),
    /// NULL was stored.
    Null(Presence),
    /// It is at fault; what the column holds for it is to be cut off.
    Invalid,
}

/// The pending record and all it needs.
pub(crate) struct Row<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) memory: Memory,
    /// Whether unknown fields are stored in `_extra` instead of being faults.
    pub(crate) keep_unknown: bool,
    /// Whether NaN is NULL where nothing is declared.
    pub(crate) nan_as_null: bool,
    pub(crate) faults: Vec<Fault>,
    pub(crate) notes: Vec<Note>,
    /// Members of `_extra` so far, each followed by a comma.
    pub(crate) extra: String,
    pub(crate) met: Unescaped,
    pub(crate) path: Vec<Step<'p>>,
    /// The top-level field whose value is being converted.
    pub(crate) top: Option<&'p FieldPlan>,
    /// Whether the present field is personal.
    pub(crate) personal: bool,
}

impl<'p> Row<'p> {
    pub(crate) fn new(
        plan: &'p Plan,
        memory: Memory,
        keep_unknown: bool,
        nan_as_null: bool,
    ) -> Self {
        Self {
            plan,
            memory,
            keep_unknown,
            nan_as_null,
            faults: Vec::new(),
            notes: Vec::new(),
            extra: String::new(),
            met: Unescaped::default(),
            path: Vec::new(),
            top: None,
            personal: false,
        }
    }

    /// Forgets what the last record left here.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.faults.clear();
        self.notes.clear();
        self.extra.clear();
        self.path.clear();
        self.met = Unescaped::default();
        self.top = None;
        self.personal = false;
    }

    /// Converts the JSON object under the cursor; on a syntax error the record is half done.
    #[inline]
    pub(crate) fn json_record(&mut self, scanner: &mut Scanner<'_>) -> Result<(), SyntaxError> {
        self.begin();
        let plan = self.plan;
        if plan.takes_whole {
            return self.whole_record(scanner);
        }
        let mut columns = std::mem::take(&mut self.memory.columns);
        let done = self.json_level(scanner, &plan.root, &mut columns, true);
        self.memory.columns = columns;
        done.map(|_| ())
    }

    /// The JSON object under the cursor as it is, but for white space, into the one column there is.
    fn whole_record(&mut self, scanner: &mut Scanner<'_>) -> Result<(), SyntaxError> {
        let raw = scanner.value()?;
        let mut columns = std::mem::take(&mut self.memory.columns);
        self.top = self.plan.root.fields.first();
        let got = match columns.first_mut() {
            Some(Column::Text(texts)) => self.whole_json(&raw, texts),
            Some(_) | None => Got::Invalid,
        };
        self.top = None;
        self.memory.columns = columns;
        if let Some(kind) = self.memory.kinds.first_mut() {
            *kind = match got {
                Got::Value(kind) | Got::Null(kind) => kind,
                Got::Invalid => Presence::Invalid,
            };
        }
        Ok(())
    }

    /// Converts an object as `level`; returns whether it has any member.
    pub(crate) fn json_level(
        &mut self,
        scanner: &mut Scanner<'_>,
        level: &'p Level,
        columns: &mut [Column],
        is_top: bool,
    ) -> Result<bool, SyntaxError> {
        let stamp = self.memory.next_stamp();
        let at = Place {
            level,
            stamp,
            is_top,
            strict: true,
        };
        let any = self.json_members(scanner, &level.input, at, columns)?;
        self.fill_absent(level, stamp, columns, is_top);
        Ok(any)
    }

    /// The members of the object under the cursor; returns whether there are any.
    fn json_members(
        &mut self,
        scanner: &mut Scanner<'_>,
        object: &'p ObjectPlan,
        at: Place<'p>,
        columns: &mut [Column],
    ) -> Result<bool, SyntaxError> {
        scanner.open_object()?;
        let stamp = self.memory.next_stamp();
        let mut unknown: Vec<Cow<'_, str>> = Vec::new();
        let mut likely = self.memory.first_slot[object.id];
        let mut guesses = Guesses::begin(&mut self.memory.guess_pauses[object.id]);
        let mut previous = None;
        let mut first = true;
        loop {
            let guess = guesses
                .on
                .then(|| self.take_likely(scanner, object, likely, first));
            let slot = if let Some(Some(slot)) = guess {
                guesses.right += 1;
                slot
            } else {
                guesses.wrong += 1;
                match next_member(scanner, object, first)? {
                    Member::Known(position) => {
                        match previous {
                            Some(slot) => self.memory.next_slot[slot] = position,
                            None => self.memory.first_slot[object.id] = position,
                        }
                        &object.slots[position]
                    }
                    Member::Unknown(key) => {
                        first = false;
                        let raw = scanner.value()?;
                        unknown.push(unescaped(key.body, key.escaped));
                        if at.strict {
                            self.unknown_json(key, &raw, at.is_top);
                        }
                        continue;
                    }
                    Member::None => break,
                }
            };
            first = false;
            previous = Some(slot.id);
            likely = self.memory.next_slot[slot.id];
            self.json_member(slot, scanner, (&at, stamp), columns)?;
        }
        guesses.end(&mut self.memory.guess_pauses[object.id]);
        if let Some(name) = find_duplicate(&mut unknown) {
            let name = name.to_owned();
            self.duplicate_key(&name, None);
        }
        Ok(!first)
    }

    /// Steps over the next key if it is the one that followed last time, or the one after that: a member
    /// may be missing now and then.
    #[inline(always)]
    fn take_likely(
        &self,
        scanner: &mut Scanner<'_>,
        object: &'p ObjectPlan,
        likely: usize,
        first: bool,
    ) -> Option<&'p Slot> {
        let slot = object.slots.get(likely)?;
        if scanner.take_key(first, &slot.quoted) {
            return Some(slot);
        }
        let after = object.slots.get(self.memory.next_slot[slot.id])?;
        scanner.take_key(first, &after.quoted).then_some(after)
    }

    /// The value of one member that is read; `stamp` is the number of the object that it stands in.
    #[inline(always)]
    fn json_member(
        &mut self,
        slot: &'p Slot,
        scanner: &mut Scanner<'_>,
        (at, stamp): (&Place<'p>, u64),
        columns: &mut [Column],
    ) -> Result<(), SyntaxError> {
        let seen = &mut self.memory.seen_slots[slot.id];
        if *seen == stamp {
            scanner.value()?;
            self.duplicate(&slot.name, slot, at);
            return Ok(());
        }
        *seen = stamp;
        let Some(target) = slot.only else {
            let raw = scanner.value()?;
            self.slot(slot, &raw, at, columns);
            return Ok(());
        };
        let field = &at.level.fields[target];
        self.memory.seen_fields[field.id] = at.stamp;
        self.path.push(Step::Member(&slot.name));
        if at.is_top {
            self.top = Some(field);
        }
        let outer = std::mem::replace(&mut self.personal, field.personal);
        let got = self.json_value(&field.value, scanner, &mut columns[target])?;
        let kind = self.kind(field, got);
        self.personal = outer;
        if at.is_top {
            self.memory.kinds[target] = kind;
            self.top = None;
        }
        self.path.pop();
        Ok(())
    }

    /// One member that is read, into every field that reads it.
    #[inline]
    pub(crate) fn slot(
        &mut self,
        slot: &'p Slot,
        raw: &Raw<'_>,
        at: &Place<'p>,
        columns: &mut [Column],
    ) {
        self.path.push(Step::Member(&slot.name));
        if let Some(lead) = slot.lead {
            self.dual(slot, lead, raw, at, columns);
        } else {
            self.each(slot, raw, at, columns);
        }
        if slot.below.is_some() {
            self.below(slot, raw, at, columns);
        }
        if at.is_top {
            self.top = None;
        }
        self.path.pop();
    }

    /// One value into every field that reads it, none of which may refuse it.
    #[inline]
    fn each(&mut self, slot: &'p Slot, raw: &Raw<'_>, at: &Place<'p>, columns: &mut [Column]) {
        for target in &slot.targets {
            let field = &at.level.fields[*target];
            self.memory.seen_fields[field.id] = at.stamp;
            if at.is_top {
                self.top = Some(field);
            }
            let kind = self.field(field, raw, &mut columns[*target]);
            if at.is_top {
                self.memory.kinds[*target] = kind;
            }
        }
    }

    /// A field's value and whether it may be missing.
    #[inline]
    fn field(&mut self, field: &'p FieldPlan, raw: &Raw<'_>, column: &mut Column) -> Presence {
        let outer = std::mem::replace(&mut self.personal, field.personal);
        let got = self.field_value(field, raw, column);
        let kind = self.kind(field, got);
        self.personal = outer;
        kind
    }

    /// What a field counts for what became of its value.
    #[inline(always)]
    fn kind(&mut self, field: &FieldPlan, got: Got) -> Presence {
        match got {
            Got::Value(kind) => kind,
            Got::Null(_) if field.required => {
                self.missing(field);
                Presence::Invalid
            }
            Got::Null(kind) => kind,
            Got::Invalid => Presence::Invalid,
        }
    }

    /// A field's value by its rule, and through its cast where it has one.
    #[inline]
    pub(crate) fn field_value(
        &mut self,
        field: &'p FieldPlan,
        raw: &Raw<'_>,
        column: &mut Column,
    ) -> Got {
        match &field.cast {
            None => self.value(&field.value, raw, column),
            Some(cast) => self.value_or_cast(&field.value, cast, raw, column),
        }
    }

    /// What pointers read inside the value of `slot`.
    fn below(&mut self, slot: &'p Slot, raw: &Raw<'_>, at: &Place<'p>, columns: &mut [Column]) {
        let Some(below) = &slot.below else {
            return;
        };
        let at = Place {
            level: at.level,
            stamp: at.stamp,
            is_top: at.is_top,
            strict: slot.targets.is_empty(),
        };
        match raw {
            Raw::Absent | Raw::Null | Raw::Cell { text: "", .. } => {}
            Raw::Object(text) => {
                let mut scanner = Scanner::new(text);
                // The text was checked; were it wrong, the record would be at fault, not half read.
                if let Err(e) = self.json_members(&mut scanner, below, at, columns) {
                    self.refuse(&Refusal::new(FaultCode::Syntax, "", e.what));
                }
            }
            Raw::Array(text) => self.below_array(below, text, &at, columns),
            Raw::Native(NativeValue::Nested { array, row }) => {
                if let Some(members) = typed::TypedRow::inside(array, *row) {
                    self.typed_members(&members, below, &at, columns);
                } else {
                    self.unknown_here(raw, at.strict);
                }
            }
            Raw::Bool(_)
            | Raw::Number(_)
            | Raw::NonFinite(_)
            | Raw::String { .. }
            | Raw::Cell { .. }
            | Raw::Native(_) => self.unknown_here(raw, at.strict),
        }
    }

    /// A value of which only the inside is read, and that has none.
    fn unknown_here(&mut self, raw: &Raw<'_>, strict: bool) {
        if !strict {
            return;
        }
        if let Some(Step::Member(name)) = self.path.pop() {
            let is_top = self.path.is_empty();
            self.unknown(name, raw, is_top);
            self.path.push(Step::Member(name));
        }
    }

    fn below_array(
        &mut self,
        below: &'p ObjectPlan,
        text: &str,
        at: &Place<'p>,
        columns: &mut [Column],
    ) {
        let mut scanner = Scanner::new(text);
        if scanner.open_array().is_err() {
            return;
        }
        let mut index = 0;
        while let Ok(true) = scanner.next_element(index == 0) {
            let Ok(raw) = scanner.value() else {
                return;
            };
            let name = index.to_string();
            match below.find(&name, index) {
                Some(position) => self.slot(&below.slots[position], &raw, at, columns),
                None if at.strict => self.unknown(&name, &raw, false),
                None => {}
            }
            index += 1;
        }
    }

    /// The columns of a typed record or struct.
    pub(crate) fn typed_level(
        &mut self,
        members: &typed::TypedRow<'_>,
        level: &'p Level,
        columns: &mut [Column],
        is_top: bool,
    ) {
        let stamp = self.memory.next_stamp();
        let at = Place {
            level,
            stamp,
            is_top,
            strict: true,
        };
        self.typed_members(members, &level.input, &at, columns);
        self.fill_absent(level, stamp, columns, is_top);
    }

    fn typed_members(
        &mut self,
        members: &typed::TypedRow<'_>,
        object: &'p ObjectPlan,
        at: &Place<'p>,
        columns: &mut [Column],
    ) {
        let stamp = self.memory.next_stamp();
        let mut likely = self.memory.first_slot[object.id];
        let mut previous = None;
        let mut buffer = std::mem::take(&mut self.memory.number);
        for (name, array) in members.iter() {
            let raw = typed::raw(array, members.row, &mut buffer);
            let Some(position) = object.find(name, likely) else {
                if at.strict && raw != Raw::Null {
                    self.unknown(name, &raw, at.is_top && self.path.is_empty());
                }
                continue;
            };
            if position != likely {
                match previous {
                    Some(slot) => self.memory.next_slot[slot] = position,
                    None => self.memory.first_slot[object.id] = position,
                }
            }
            let slot = &object.slots[position];
            previous = Some(slot.id);
            likely = self.memory.next_slot[slot.id];
            if self.memory.seen_slots[slot.id] == stamp {
                self.duplicate(&slot.name, slot, at);
                continue;
            }
            self.memory.seen_slots[slot.id] = stamp;
            self.slot(slot, &raw, at, columns);
        }
        self.memory.number = buffer;
    }

    /// NULL for every field of the level that was not met.
    #[inline]
    pub(crate) fn fill_absent(
        &mut self,
        level: &'p Level,
        stamp: u64,
        columns: &mut [Column],
        is_top: bool,
    ) {
        for (position, field) in level.fields.iter().enumerate() {
            if self.memory.seen_fields[field.id] == stamp {
                continue;
            }
            columns[position].push_null();
            let mut kind = Presence::Absent;
            if field.required {
                kind = Presence::Invalid;
                if is_top {
                    self.top = Some(field);
                }
                let depth = self.path.len();
                self.path.extend(field.from.iter().map(|n| Step::Member(n)));
                self.missing(field);
                self.path.truncate(depth);
                if is_top {
                    self.top = None;
                }
            }
            if is_top {
                self.memory.kinds[position] = kind;
            }
        }
    }
}

/// After an object whose keys were guessed wrong more often than right, so many are read without guesses.
const GUESS_PAUSE: u32 = 31;

/// Guesses of the keys of one object.
struct Guesses {
    on: bool,
    right: usize,
    /// Keys that were not guessed.
    wrong: usize,
}

impl Guesses {
    fn begin(pause: &mut u32) -> Self {
        let on = *pause == 0;
        *pause = pause.saturating_sub(1);
        Self {
            on,
            right: 0,
            wrong: 0,
        }
    }

    fn end(&self, pause: &mut u32) {
        // The end of the object is no key, and counts as wrong.
        if self.on && self.wrong > self.right + 1 {
            *pause = GUESS_PAUSE;
        }
    }
}

/// What follows in an object.
enum Member<'a> {
    /// A member that is read, its key passed: the slot by position.
    Known(usize),
    /// Another one, its key passed.
    Unknown(Key<'a>),
    /// Nothing: the object is passed.
    None,
}

#[inline(always)]
fn next_member<'a>(
    scanner: &mut Scanner<'a>,
    object: &ObjectPlan,
    first: bool,
) -> Result<Member<'a>, SyntaxError> {
    if let Some((key, end)) = scanner.short_key(first)
        && let Some(position) = object.find_short(key)
    {
        scanner.seek(end);
        return Ok(Member::Known(position));
    }
    other_member(scanner, object, first)
}

/// As [`next_member`], for any key.
fn other_member<'a>(
    scanner: &mut Scanner<'a>,
    object: &ObjectPlan,
    first: bool,
) -> Result<Member<'a>, SyntaxError> {
    let Some(key) = scanner.next_key(first)? else {
        return Ok(Member::None);
    };
    Ok(
        match object.find(&unescaped(key.body, key.escaped), usize::MAX) {
            Some(position) => Member::Known(position),
            None => Member::Unknown(key),
        },
    )
}

/// Where members are being read.
#[derive(Clone, Copy)]
pub(crate) struct Place<'p> {
    pub(crate) level: &'p Level,
    /// Number of the level's instance.
    pub(crate) stamp: u64,
    pub(crate) is_top: bool,
    /// Whether members that nobody reads are unknown fields here.
    pub(crate) strict: bool,
}
