//! JSON arrays and objects into lists, maps and structs, element by element.

use crate::ingest::convert::column::{Column, Lists, Maps, Structs};
use crate::ingest::convert::fault::{FaultCode, Step};
use crate::ingest::convert::plan::{Kind, Level, ValuePlan};
use crate::ingest::convert::presence::Presence;
use crate::ingest::convert::refusal::Refusal;
use crate::ingest::convert::row::{Got, Row};
use crate::ingest::json::{Scanner, SyntaxError, find_duplicate};
use crate::ingest::raw::Raw;

impl<'p> Row<'p> {
    /// Converts the JSON value under the cursor; lists and structs are read where they stand.
    pub(crate) fn json_nested(
        &mut self,
        plan: &'p ValuePlan,
        scanner: &mut Scanner<'_>,
        column: &mut Column,
    ) -> Result<Got, SyntaxError> {
        match (&plan.kind, &mut *column, scanner.skip_space()) {
            (Kind::Struct(level), Column::Struct(c), Some(b'{')) => {
                self.json_struct(level, scanner, c)
            }
            (Kind::List(element), Column::List(c), Some(b'[')) => {
                self.json_list(element, scanner, c)
            }
            _ => {
                let raw = scanner.value()?;
                Ok(self.value(plan, &raw, column))
            }
        }
    }

    fn json_struct(
        &mut self,
        level: &'p Level,
        scanner: &mut Scanner<'_>,
        column: &mut Structs,
    ) -> Result<Got, SyntaxError> {
        let before = self.faults.len();
        let any = self.json_level(scanner, level, &mut column.children, false)?;
        if self.faults.len() > before {
            return Ok(Got::Invalid);
        }
        column.end();
        Ok(Got::Value(container(any)))
    }

    fn json_list(
        &mut self,
        element: &'p ValuePlan,
        scanner: &mut Scanner<'_>,
        column: &mut Lists,
    ) -> Result<Got, SyntaxError> {
        let before = self.faults.len();
        self.path.push(Step::Index(0));
        let mut index = 0;
        scanner.open_array()?;
        while scanner.next_element(index == 0)? {
            if let Some(step) = self.path.last_mut() {
                *step = Step::Index(index);
            }
            self.json_value(element, scanner, &mut column.elements)?;
            index += 1;
        }
        self.path.pop();
        if self.faults.len() > before {
            return Ok(Got::Invalid);
        }
        Ok(match column.end() {
            Ok(()) => Got::Value(container(index > 0)),
            Err(e) => self.too_large(e),
        })
    }

    /// What reading a text that was checked before came to; `depth` = of the path where it begins.
    fn checked(&mut self, read: Result<Got, SyntaxError>, depth: usize) -> Got {
        read.unwrap_or_else(|e| {
            self.path.truncate(depth);
            self.invalid(&Refusal::new(FaultCode::Syntax, "", e.what))
        })
    }

    pub(crate) fn object(&mut self, plan: &'p ValuePlan, text: &str, column: &mut Column) -> Got {
        match (&plan.kind, column) {
            (Kind::Struct(level), Column::Struct(c)) => {
                let depth = self.path.len();
                let read = self.json_struct(level, &mut Scanner::new(text), c);
                self.checked(read, depth)
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
                if let Err(e) = map.keys.push(&name) {
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
                let depth = self.path.len();
                let read = self.json_list(element, &mut Scanner::new(text), c);
                self.checked(read, depth)
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
