//! The one public error type. It lies at the bottom of the crate and imports nothing of it.
//!
//! A kind says what the reader must do; the message is a lowercase fragment that fits after
//! "failed to" or "error:", values in backticks; context pairs name file, line, path; advice goes
//! into hints. A source error is kept, its text is printed once, as a cause.

use std::fmt;

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the reader of an error must do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorKind {
    /// An argument, a configuration or a schema file is wrong: correct it and call again.
    InvalidInput,
    /// The named thing does not exist: check the name.
    NotFound,
    /// The name or number is taken by something else.
    AlreadyExists,
    /// Somebody else changed the same thing meanwhile: look and call again.
    Conflict,
    /// The data or the state of the lake forbids it: the answer is no.
    PreconditionFailed,
    /// A disk, a server or a file could not be used, or a file is of a newer format than this program
    /// knows: mend it, or install the newer program, and call again.
    Unavailable,
    /// Stored or handed bytes are not what they must be: nothing was guessed.
    CorruptData,
    /// A declared limit would be passed.
    LimitExceeded,
    /// A fault of this program.
    Internal,
}

impl ErrorKind {
    /// Every kind, for exhaustive tables and tests.
    pub const ALL: [Self; 9] = [
        Self::InvalidInput,
        Self::NotFound,
        Self::AlreadyExists,
        Self::Conflict,
        Self::PreconditionFailed,
        Self::Unavailable,
        Self::CorruptData,
        Self::LimitExceeded,
        Self::Internal,
    ];

    /// The stable name used in JSON output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid_input",
            Self::NotFound => "not_found",
            Self::AlreadyExists => "already_exists",
            Self::Conflict => "conflict",
            Self::PreconditionFailed => "precondition_failed",
            Self::Unavailable => "unavailable",
            Self::CorruptData => "corrupt_data",
            Self::LimitExceeded => "limit_exceeded",
            Self::Internal => "internal",
        }
    }
}

type Source = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    context: Vec<(&'static str, String)>,
    details: Vec<String>,
    hints: Vec<String>,
    source: Option<Source>,
    retryable: bool,
}

/// An error with its kind, message, context pairs, hints and source.
#[derive(Debug)]
pub struct Error(Box<Inner>);

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident => $kind:ident),* $(,)?) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $name(message: impl Into<String>) -> Self { Self::new(ErrorKind::$kind, message) })*
    };
}

impl Error {
    /// An error of the given kind; the message is a lowercase fragment.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            context: Vec::new(),
            details: Vec::new(),
            hints: Vec::new(),
            source: None,
            retryable: false,
        }))
    }

    constructors! {
        /// See [`ErrorKind::InvalidInput`].
        invalid => InvalidInput,
        /// See [`ErrorKind::NotFound`].
        not_found => NotFound,
        /// See [`ErrorKind::AlreadyExists`].
        already_exists => AlreadyExists,
        /// See [`ErrorKind::Conflict`].
        conflict => Conflict,
        /// See [`ErrorKind::PreconditionFailed`].
        precondition => PreconditionFailed,
        /// See [`ErrorKind::Unavailable`].
        unavailable => Unavailable,
        /// See [`ErrorKind::CorruptData`].
        corrupt => CorruptData,
        /// See [`ErrorKind::LimitExceeded`].
        limit => LimitExceeded,
        /// See [`ErrorKind::Internal`].
        internal => Internal,
    }

    /// A failed call of the operating system on `path`; `action` reads like "read the file".
    #[must_use]
    pub fn io(action: &str, path: impl fmt::Display, source: std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        let path = path.to_string();
        let (kind, hint) = match source.kind() {
            Io::NotFound => (ErrorKind::NotFound, None),
            Io::PermissionDenied | Io::ReadOnlyFilesystem => (
                ErrorKind::Unavailable,
                Some("check who owns the folder and whether it may be written"),
            ),
            Io::StorageFull | Io::QuotaExceeded => (
                ErrorKind::Unavailable,
                Some("free some space and call again: nothing half written is visible"),
            ),
            _ => (ErrorKind::Unavailable, None),
        };
        let mut error = Self::new(kind, format!("{action} `{path}`: {source}"));
        error.0.source = Some(Box::new(source));
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    /// Adds a context pair, such as `("line", "12")`.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.0.context.push((key, value.to_string()));
        self
    }

    /// Adds one line of detail: one of the several things that are wrong.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.details.push(detail.into());
        self
    }

    /// Adds one line of advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hints.push(hint.into());
        self
    }

    /// Keeps the error that caused this one.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Source>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// Marks the error as one that may pass when the same call is made again.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.0.retryable = true;
        self
    }

    /// What the reader must do.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message alone, without context and hints.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Context pairs in the order they were added.
    #[must_use]
    pub fn context(&self) -> &[(&'static str, String)] {
        &self.0.context
    }

    /// Whether it names this invariant.
    #[must_use]
    pub fn is_about(&self, invariant: &str) -> bool {
        let mut named = self.0.context.iter();
        named.any(|(key, value)| *key == "invariant" && value == invariant)
    }

    /// Lines of detail, printed below the message.
    #[must_use]
    pub fn details(&self) -> &[String] {
        &self.0.details
    }

    /// Lines of advice.
    #[must_use]
    pub fn hints(&self) -> &[String] {
        &self.0.hints
    }

    /// Whether the same call may succeed later without any change.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.0.retryable
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        for (i, (key, value)) in self.0.context.iter().enumerate() {
            write!(f, "{}{key} `{value}`", if i == 0 { " (" } else { ", " })?;
        }
        if !self.0.context.is_empty() {
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|s| s as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_has_message_then_context() {
        let e = Error::corrupt("read the record")
            .with("file", "a.json")
            .with("line", 3);
        assert_eq!(e.to_string(), "read the record (file `a.json`, line `3`)");
        assert_eq!(e.kind(), ErrorKind::CorruptData);
    }

    #[test]
    fn a_full_disk_is_unavailable_with_a_hint() {
        let e = Error::io(
            "write the file",
            "x",
            std::io::ErrorKind::StorageFull.into(),
        );
        assert_eq!(e.kind(), ErrorKind::Unavailable);
        assert_eq!(e.hints().len(), 1);
    }

    #[test]
    fn kind_names_are_distinct() {
        let mut names: Vec<_> = ErrorKind::ALL.iter().map(|k| k.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ErrorKind::ALL.len());
    }
}
