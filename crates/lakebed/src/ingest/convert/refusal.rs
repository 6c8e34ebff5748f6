//! What the pending record has against itself: faults with their places, unknown fields, and the
//! members of `_extra`.

use std::borrow::Cow;

use crate::ingest::convert::drift::Evidence;
use crate::ingest::convert::evidence::observe;
use crate::ingest::convert::fault::{
    FaultCode, Step, excerpt, push_json_string, push_member, push_pointer, write_general_path,
    write_path, write_pointer,
};
use crate::ingest::convert::plan::{FieldPlan, Slot};
use crate::ingest::convert::presence::Presence;
use crate::ingest::convert::row::{Place, Row};
use crate::ingest::convert::typed;
use crate::ingest::json::{CompactTrouble, Key, compact_into, unescape_into};
use crate::ingest::raw::Raw;
use crate::spec::RejectReason;

/// One fault of the pending record.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: FaultCode,
    pub(crate) reason: RejectReason,
    /// The path without list indexes and map keys.
    pub(crate) place: String,
    pub(crate) sample: Option<String>,
    pub(crate) hint: Option<&'static str>,
}

/// An unknown field of the pending record.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) field: String,
    pub(crate) place: String,
    pub(crate) sample: Option<String>,
    pub(crate) evidence: Evidence,
}

/// A value's fault before it has its place.
pub(crate) struct Refusal<'t> {
    pub(crate) code: FaultCode,
    /// The value's text, shown unless the field is personal; empty = none.
    pub(crate) text: &'t str,
    /// What goes on after the value, such as "is not an int".
    pub(crate) why: &'t str,
    pub(crate) hint: Option<&'static str>,
}

impl<'t> Refusal<'t> {
    pub(crate) fn new(code: FaultCode, text: &'t str, why: &'t str) -> Self {
        Self {
            code,
            text,
            why,
            hint: None,
        }
    }

    pub(crate) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }
}

impl<'p> Row<'p> {
    #[cold]
    pub(crate) fn missing(&mut self, field: &FieldPlan) {
        let why = format!("the required field `{}` has no value", field.name);
        self.refuse(&Refusal::new(FaultCode::Missing, "", &why));
    }

    #[cold]
    pub(crate) fn duplicate(&mut self, name: &str, slot: &'p Slot, at: &Place<'p>) {
        let field = slot.targets.first().map(|t| &at.level.fields[*t]);
        if at.is_top {
            for target in &slot.targets {
                self.memory.kinds[*target] = Presence::Invalid;
            }
        }
        self.duplicate_key(name, field.filter(|_| at.is_top));
    }

    #[cold]
    pub(crate) fn duplicate_key(&mut self, name: &str, field: Option<&'p FieldPlan>) {
        let why = format!("the key `{name}` stands twice in one object");
        let known = field.or(self.top).map(|f| f.name.clone());
        let (mut path, mut place) = (String::new(), String::new());
        write_path(&mut path, &self.path);
        write_general_path(&mut place, &self.path);
        push_member(&mut path, name);
        push_member(&mut place, name);
        self.faults.push(Fault {
            code: FaultCode::DuplicateKey,
            reason: RejectReason {
                field: known.unwrap_or_else(|| name.to_owned()),
                path,
                code: FaultCode::DuplicateKey.as_str().to_owned(),
                reason: why,
            },
            place,
            sample: None,
            hint: Some(
                "the record has two values for one thing; correct the crawler that wrote it",
            ),
        });
    }

    /// A key that is stored (in a map or in `_extra`): what its escapes change is counted as in texts.
    pub(crate) fn stored_name<'k>(&mut self, key: Key<'k>) -> Cow<'k, str> {
        if !key.escaped {
            return Cow::Borrowed(key.body);
        }
        let mut out = String::with_capacity(key.body.len());
        let met = unescape_into(key.body, &mut out);
        self.met.lone_surrogates += met.lone_surrogates;
        self.met.nuls += met.nuls;
        Cow::Owned(out)
    }

    #[cold]
    pub(crate) fn unknown_json(&mut self, key: Key<'_>, raw: &Raw<'_>, is_top: bool) {
        let name = self.stored_name(key);
        let is_top = is_top && self.path.is_empty();
        self.unknown(&name, raw, is_top);
    }

    /// The name in `_extra`: top-level members by name, deeper ones by JSON pointer. Where a top-level
    /// name is spelled like a pointer that is there already (or the other way round), the later of the
    /// two is told apart: the name as a pointer, the pointer as a URI fragment.
    fn extra_name(&self, name: &str, pointer: String, is_top: bool) -> String {
        let field = if is_top {
            name.to_owned()
        } else {
            pointer.clone()
        };
        if !field.starts_with('/') {
            return field;
        }
        let mut key = String::new();
        push_json_string(&mut key, &field);
        key.push(':');
        match (self.extra.contains(&key), is_top) {
            (false, _) => field,
            (true, true) => pointer,
            (true, false) => format!("#{pointer}"),
        }
    }

    /// A member that the schema does not know, at the present path.
    #[cold]
    pub(crate) fn unknown(&mut self, name: &str, raw: &Raw<'_>, is_top: bool) {
        let mut pointer = String::new();
        write_pointer(&mut pointer, &self.path);
        push_pointer(&mut pointer, name);
        let field = self.extra_name(name, pointer, is_top);
        let mut place = String::new();
        write_general_path(&mut place, &self.path);
        push_member(&mut place, name);
        let mut text = String::new();
        let trouble = write_compact(raw, &mut text).err();
        if self.keep_unknown {
            push_json_string(&mut self.extra, &field);
            self.extra.push(':');
            self.extra.push_str(&text);
            self.extra.push(',');
        } else {
            let mut path = String::new();
            write_path(&mut path, &self.path);
            push_member(&mut path, name);
            self.faults.push(Fault {
                code: FaultCode::UnknownField,
                reason: RejectReason {
                    field: field.clone(),
                    path,
                    code: FaultCode::UnknownField.as_str().to_owned(),
                    reason: format!("the schema has no field for `{name}`"),
                },
                place: place.clone(),
                sample: None,
                hint: None,
            });
        }
        if let Some(trouble) = trouble {
            self.refuse_inside(&trouble);
        }
        let mut evidence = Evidence::default();
        observe(&mut evidence, raw);
        let sample = (!self.personal).then(|| excerpt(&text));
        self.notes.push(Note {
            field,
            place,
            sample,
            evidence,
        });
    }

    /// A fault inside a value that is kept as JSON text.
    #[cold]
    pub(crate) fn refuse_inside(&mut self, trouble: &CompactTrouble) {
        match trouble {
            CompactTrouble::Syntax(e) => {
                let why = format!("the value is not JSON: {e}");
                self.refuse(&Refusal::new(FaultCode::Syntax, "", &why));
            }
            CompactTrouble::Duplicate(key) => self.duplicate_key(&key.clone(), None),
            CompactTrouble::NonFinite(_) => {
                let why = "a NaN or infinity stands inside a value that is kept as JSON";
                self.refuse(&Refusal::new(FaultCode::Nan, "", why));
            }
        }
    }

    /// Notes a fault at the present path.
    #[cold]
    pub(crate) fn refuse(&mut self, refusal: &Refusal<'_>) {
        let (mut path, mut place) = (String::new(), String::new());
        write_path(&mut path, &self.path);
        write_general_path(&mut place, &self.path);
        let field = match (self.top, self.path.first()) {
            (Some(field), _) => field.name.clone(),
            (None, Some(Step::Member(name))) => (*name).to_owned(),
            (None, _) => String::new(),
        };
        let shown = !refusal.text.is_empty() && !self.personal;
        let reason = match (refusal.text.is_empty(), shown) {
            (true, _) => refusal.why.to_owned(),
            (false, true) => format!("`{}` {}", excerpt(refusal.text), refusal.why),
            (false, false) => format!("the value {}", refusal.why),
        };
        self.faults.push(Fault {
            code: refusal.code,
            reason: RejectReason {
                field,
                path,
                code: refusal.code.as_str().to_owned(),
                reason,
            },
            place,
            sample: shown.then(|| excerpt(refusal.text)),
            hint: refusal.hint,
        });
    }
}

/// The value as minimal JSON text.
pub(crate) fn write_compact(raw: &Raw<'_>, out: &mut String) -> Result<(), CompactTrouble> {
    match raw {
        Raw::Absent | Raw::Null => out.push_str("null"),
        Raw::Bool(true) => out.push_str("true"),
        Raw::Bool(false) => out.push_str("false"),
        Raw::Number(text) => out.push_str(text),
        Raw::NonFinite(n) => {
            out.push_str("null");
            return Err(CompactTrouble::NonFinite(*n));
        }
        Raw::String { body, .. } => {
            out.push('"');
            out.push_str(body);
            out.push('"');
        }
        Raw::Object(text) | Raw::Array(text) => {
            let start = out.len();
            if let Err(trouble) = compact_into(text, out) {
                out.truncate(start);
                out.push_str("null");
                return Err(trouble);
            }
        }
        Raw::Cell { text, .. } => push_json_string(out, text),
        Raw::Native(value) => {
            if let Some(n) = typed::write_value(out, value) {
                return Err(CompactTrouble::NonFinite(n));
            }
        }
    }
    Ok(())
}
