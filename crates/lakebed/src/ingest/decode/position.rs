//! Physical lines of byte offsets, counted only when they are asked for.

/// Counts line breaks up to offsets that are asked for in growing order (others work, but slower).
#[derive(Debug)]
pub(super) struct LineCounter<'t> {
    bytes: &'t [u8],
    first_line: u64,
    at: usize,
    line: u64,
}

impl<'t> LineCounter<'t> {
    /// A counter of `bytes`, which begin on line `first_line`.
    pub(super) fn new(bytes: &'t [u8], first_line: u64) -> Self {
        Self {
            bytes,
            first_line,
            at: 0,
            line: first_line,
        }
    }

    /// The line on which the byte at `offset` stands.
    pub(super) fn line_at(&mut self, offset: usize) -> u64 {
        if offset < self.at {
            self.at = 0;
            self.line = self.first_line;
        }
        let end = offset.min(self.bytes.len());
        let breaks = memchr::memchr_iter(b'\n', &self.bytes[self.at..end]).count();
        self.line += u64::try_from(breaks).unwrap_or(0);
        self.at = end;
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_physical() {
        let mut lines = LineCounter::new(b"a\nb\n\nc", 10);
        assert_eq!(lines.line_at(0), 10);
        assert_eq!(lines.line_at(1), 10);
        assert_eq!(lines.line_at(2), 11);
        assert_eq!(lines.line_at(5), 13);
        assert_eq!(lines.line_at(2), 11);
        assert_eq!(lines.line_at(99), 13);
    }
}
