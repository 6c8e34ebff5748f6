//! What one page may cost. Counted in steps, never in seconds, so that the same page has the same outcome on
//! every machine (PRS-2).

use std::cell::Cell;

/// Steps that a page may cost: some seconds.
pub(super) const MAX_STEPS: u64 = 3_000_000_000;
/// Bytes of values that a page may give.
pub(super) const MAX_OUTPUT_BYTES: u64 = 256 << 20;
/// Nodes of an HTML page.
pub(super) const MAX_NODES: usize = 4_000_000;
/// Levels of nested elements.
pub(super) const MAX_DEPTH: u32 = 1_000;
/// Values of a JSON text.
pub(super) const MAX_VALUES: u64 = 4_000_000;
/// Levels of a JSON text.
pub(super) const MAX_JSON_DEPTH: u64 = 127;
/// Levels of nested microdata items.
pub(super) const MAX_ITEM_DEPTH: u32 = 32;

/// Why a page as a whole is not parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageError {
    /// What kind of fault.
    pub(super) code: &'static str,
    /// Why.
    pub(super) reason: String,
}

impl PageError {
    pub(super) fn new(code: &'static str, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { code, reason }
    }
}

/// What is left of what a page may cost.
#[derive(Debug)]
pub(super) struct Budget {
    steps: Cell<u64>,
    output: Cell<u64>,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self {
            steps: Cell::new(MAX_STEPS),
            output: Cell::new(MAX_OUTPUT_BYTES),
        }
    }

    /// Takes so many steps.
    pub(super) fn spend(&self, steps: u64) -> Result<(), PageError> {
        match self.steps.get().checked_sub(steps) {
            Some(left) => {
                self.steps.set(left);
                Ok(())
            }
            None => Err(PageError::new(
                "too_costly",
                "the rules cost more on this page than a page may",
            )),
        }
    }

    /// Steps that were taken.
    #[cfg(test)]
    pub(super) fn spent(&self) -> u64 {
        MAX_STEPS - self.steps.get()
    }

    /// Takes so many bytes of values.
    pub(super) fn keep(&self, bytes: usize) -> Result<(), PageError> {
        // What lies around a value in memory costs, too.
        match self.output.get().checked_sub(bytes as u64 + 64) {
            Some(left) => {
                self.output.set(left);
                Ok(())
            }
            None => Err(PageError::new(
                "too_large",
                format!("the page gives more than {MAX_OUTPUT_BYTES} bytes of values"),
            )),
        }
    }
}
