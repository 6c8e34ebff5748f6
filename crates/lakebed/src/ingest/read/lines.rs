//! JSON lines: a record unit ends at a line break.

/// Finds the last line break.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    /// After the last line break of the window.
    cut: usize,
}

impl LineSplitter {
    /// Looks at the bytes from `from` on; the position up to which whole lines lie.
    pub(super) fn scan(&mut self, buf: &[u8], from: usize) -> usize {
        if let Some(at) = memchr::memrchr(b'\n', &buf[from..]) {
            self.cut = from + at + 1;
        }
        self.cut
    }

    /// The first `at` bytes were handed on.
    pub(super) fn forget(&mut self, at: usize) {
        self.cut = self.cut.saturating_sub(at);
    }
}
