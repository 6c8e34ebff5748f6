//! What the short lines of `TERMINALS.jsonl` mean: what the captures of their requests say.

use std::collections::{BTreeSet, HashMap};

use crate::name::{CaptureId, RequestKey};
use crate::spec::{IndexRow, RunKey, TerminalLine, TerminalRecord, TerminalState};

/// What was asked for, by request and attempt.
pub(super) struct Asked<'a> {
    first: HashMap<(&'a RequestKey, u32), &'a IndexRow>,
    methods: &'a HashMap<CaptureId, String>,
    /// Captures whose URL is to go.
    erased: BTreeSet<&'a CaptureId>,
}

impl<'a> Asked<'a> {
    /// Of the captures in these rows; `methods` holds those that are not `GET`.
    pub(super) fn new(rows: &'a [IndexRow], methods: &'a HashMap<CaptureId, String>) -> Self {
        let first = rows.iter().filter(|row| row.hop == 0);
        Self {
            first: first
                .map(|row| ((&row.request_key, row.attempt), row))
                .collect(),
            methods,
            erased: BTreeSet::new(),
        }
    }

    /// As it is when these captures are erased.
    pub(super) fn without(mut self, erased: &'a BTreeSet<CaptureId>) -> Self {
        self.erased = erased.iter().collect();
        self
    }
}

/// Everything about how the request ended; `None` where the capture that says it is not there.
pub(super) fn terminal_record(
    line: &TerminalLine,
    run: &RunKey,
    asked: &Asked<'_>,
) -> Option<TerminalRecord> {
    let short = match line {
        TerminalLine::Full(terminal) => return Some(terminal.clone()),
        TerminalLine::Short(short) => short,
    };
    let row = asked.first.get(&(&short.request_key, short.attempts))?;
    let method = asked
        .methods
        .get(&row.capture_id)
        .map_or("GET", String::as_str);
    let url = match asked.erased.contains(&row.capture_id) {
        true => "",
        false => row.url.as_str(),
    };
    Some(TerminalRecord {
        request_key: short.request_key.clone(),
        stage: row.kind.clone(),
        method: method.to_owned(),
        url: url.to_owned(),
        state: TerminalState::Done,
        class: None,
        attempts: short.attempts,
        capture: Some(short.capture(run)),
        answer: Default::default(),
    })
}
