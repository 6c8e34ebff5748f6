//! A path within a lake: `/`-separated segments, relative, without `.` and `..`.

use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// What Hive readers expect to be escaped in a path segment; non-ASCII is always escaped.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'\'')
    .add(b'*')
    .add(b'/')
    .add(b':')
    .add(b'=')
    .add(b'?')
    .add(b'\\')
    .add(b'{')
    .add(b'}')
    .add(b'[')
    .add(b']')
    .add(b'^')
    .add(b'<')
    .add(b'>')
    .add(b'|')
    .add(b' ');

/// A relative path within a lake.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StorePath(String);

impl StorePath {
    /// The checked path; the empty path is the root.
    pub fn new(text: impl Into<String>) -> Result<Self> {
        let text = text.into();
        let bad = text.contains(['\\', '\0'])
            || (!text.is_empty()
                && text
                    .split('/')
                    .any(|s| s.is_empty() || s == "." || s == ".."));
        if bad {
            return Err(Error::invalid(format!(
                "`{text}` is not a path within a lake"
            )));
        }
        Ok(Self(text))
    }

    /// A path made of constants and checked names; crate-internal, where nothing can be wrong.
    pub(crate) fn from_checked(text: String) -> Self {
        debug_assert!(Self::new(text.clone()).is_ok(), "unchecked path `{text}`");
        Self(text)
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// This path with one more segment; the segment is escaped as Hive readers expect.
    #[must_use]
    pub fn child(&self, segment: &str) -> Self {
        let mut path = String::with_capacity(self.0.len() + 1 + segment.len());
        path.push_str(&self.0);
        if !path.is_empty() {
            path.push('/');
        }
        match segment {
            "." => path.push_str("%2E"),
            ".." => path.push_str("%2E%2E"),
            _ => path.extend(utf8_percent_encode(segment, ESCAPED)),
        }
        Self(path)
    }

    /// This path followed by another one.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        match (self.0.is_empty(), other.0.is_empty()) {
            (true, _) => other.clone(),
            (_, true) => self.clone(),
            _ => Self(format!("{}/{}", self.0, other.0)),
        }
    }

    /// The folder it lies in; the root for a single segment.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self(self.0.rsplit_once('/').map_or("", |(p, _)| p).to_owned())
    }

    /// The last segment, unescaped.
    #[must_use]
    pub fn file_name(&self) -> String {
        let last = self.0.rsplit_once('/').map_or(self.0.as_str(), |(_, n)| n);
        percent_decode_str(last).decode_utf8_lossy().into_owned()
    }

    /// The rest of this path below `folder`; `None` when it lies elsewhere.
    #[must_use]
    pub fn below(&self, folder: &Self) -> Option<&str> {
        if folder.0.is_empty() {
            return Some(&self.0);
        }
        self.0.strip_prefix(&folder.0)?.strip_prefix('/')
    }
}

impl fmt::Display for StorePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for StorePath {
    type Error = Error;
    fn try_from(text: String) -> Result<Self> {
        Self::new(text)
    }
}

impl From<StorePath> for String {
    fn from(value: StorePath) -> Self {
        value.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_within_the_lake() {
        for bad in ["/a", "a/", "a//b", "..", "a/../b", "a\\b", "./a"] {
            assert!(StorePath::new(bad).is_err(), "{bad}");
        }
        let root = StorePath::new("").unwrap();
        assert_eq!(root.child("..").as_str(), "%2E%2E");
        assert_eq!(root.child("a/b=c 微").as_str(), "a%2Fb%3Dc%20%E5%BE%AE");
        assert_eq!(root.child("a/b=c 微").file_name(), "a/b=c 微");
    }

    #[test]
    fn below_needs_a_whole_segment() {
        let p = StorePath::new("clean/ab/x").unwrap();
        assert_eq!(p.below(&StorePath::new("clean/a").unwrap()), None);
        assert_eq!(p.below(&StorePath::new("clean/ab").unwrap()), Some("x"));
        assert_eq!(p.below(&StorePath::new("").unwrap()), Some("clean/ab/x"));
    }
}
