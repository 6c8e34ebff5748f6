//! JSON arrays and objects into lists, maps and structs, element by element.

use crate::ingest::convert::column::{Column, Maps};
use crate::ingest::convert::fault::{FaultCode, Step};
use crate::ingest::convert::plan::{Kind, ValuePlan};
use crate::ingest::convert::presence::Presence;
use crate::ingest::convert::refusal::Refusal;
use crate::ingest::convert::row::{Got, Row};
use crate::ingest::json::{Scanner, SyntaxError, find_duplicate};
use crate::ingest::raw::Raw;

impl<'p> Row<'p> {
    pub(crate) fn object(&mut self, plan: &'p ValuePlan, text: &str, column: &mut Column) -> Got {
        match (&plan.kind, column) {
            (Kind::Struct(level), Column::Struct(c)) => {
                let mut scanner = Scanner::new(text);
                let before = self.faults.len();
                match self.json_level(&mut scanner, level, &mut c.children, false) {
                    Err(e) => self.invalid(&Refusal::new(FaultCode::Syntax, "", e.what)),
                    Ok(_) if self.faults.len() > before => Got::Invalid,
                    Ok(any) => {
                        c.end();
                        Got::Value(container(any))
                    }
                }
            }
            (Kind::Map(value), Column::Map(c)) => {
                let before = self.faults.len();
                let any = match self.map_entries(value, text, c) {
                    Ok(any) => any,
                    Err(got) => return got,
                };
                if self.faults.len() > before {
                    return Got::Invalid;
                }
                match c.end() {
                    Ok(()) => Got::Value(container(any)),
                    Err(e) => self.too_large(e),
                }
            }
            (Kind::Json, Column::Text(texts)) => self.json(&Raw::Object(text), texts),
            _ => self.wrong_type(plan, "", "an object"),
        }
    }

    fn map_entries(
        &mut self,
        value: &'p ValuePlan,
        text: &str,
        map: &mut Maps,
    ) -> Result<bool, Got> {
        let mut scanner = Scanner::new(text);
        let mut keys = Vec::new();
        let mut walk = |row: &mut Self| -> Result<bool, SyntaxError> {
            scanner.open_object()?;
            let mut first = true;
            while let Some(key) = scanner.next_key(first)? {
                first = false;
                let raw = scanner.value()?;
                let name = row.stored_name(key);
                if let Err(e) = map.keys.push(name.as_bytes()) {
                    row.too_large(e);
                    return Ok(true);
                }
                row.path.push(Step::Key(name.clone().into_owned()));
                row.value(value, &raw, &mut map.values);
                row.path.pop();
                keys.push(name);
            }
            Ok(!first)
        };
        let any = match walk(self) {
            Ok(any) => any,
            Err(e) => return Err(self.invalid(&Refusal::new(FaultCode::Syntax, "", e.what))),
        };
        if let Some(name) = find_duplicate(&mut keys) {
            let name = name.to_owned();
            self.duplicate_key(&name, None);
        }
        Ok(any)
    }

    pub(crate) fn array(&mut self, plan: &'p ValuePlan, text: &str, column: &mut Column) -> Got {
        match (&plan.kind, column) {
            (Kind::List(element), Column::List(c)) => {
                let mut scanner = Scanner::new(text);
                let before = self.faults.len();
                let depth = self.path.len();
                self.path.push(Step::Index(0));
                let mut index = 0;
                let mut walk = |row: &mut Self| {
                    scanner.open_array()?;
                    while scanner.next_element(index == 0)? {
                        let raw = scanner.value()?;
                        if let Some(step) = row.path.last_mut() {
                            *step = Step::Index(index);
                        }
                        row.value(element, &raw, &mut c.elements);
                        index += 1;
                    }
                    Ok(())
                };
                let walked: Result<(), SyntaxError> = walk(self);
                self.path.truncate(depth);
                if let Err(e) = walked {
                    return self.invalid(&Refusal::new(FaultCode::Syntax, "", e.what));
                }
                if self.faults.len() > before {
                    return Got::Invalid;
                }
                match c.end() {
                    Ok(()) => Got::Value(container(index > 0)),
                    Err(e) => self.too_large(e),
                }
            }
            (Kind::Json, Column::Text(texts)) => self.json(&Raw::Array(text), texts),
            _ => self.wrong_type(plan, "", "an array"),
        }
    }
}

/// Presence of a list, map or struct that is there.
pub(crate) fn container(any: bool) -> Presence {
    if any {
        Presence::Present
    } else {
        Presence::EmptyContainer
    }
}
