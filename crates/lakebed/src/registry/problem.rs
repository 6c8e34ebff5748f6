//! What may be wrong with a schema version, as values, so that all of it is told at once.

use serde::{Serialize, Serializer};

use crate::error::{Error, Result};
use crate::spec::SchemaSpec;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal),* $(,)?) => {
        /// Kind of a problem.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ProblemCode { $($(#[$doc])* $name),* }

        impl ProblemCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The stable name in output.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }
        }
    };
}

codes! {
    /// Version, base or id numbers that cannot be.
    BadNumber = "bad_number",
    /// An id stands twice in the version.
    DuplicateId = "duplicate_id",
    /// A name that no column can have.
    BadName = "bad_name",
    /// A name that belongs to Lakebed.
    ReservedName = "reserved_name",
    /// Two names of one level that are equal, or differ only by case.
    NameCollision = "name_collision",
    /// Two fields of one level read one input name.
    InputCollision = "input_collision",
    /// A key that does not fit the field's type, or lacks for it.
    KeyMisfit = "key_misfit",
    /// Tokens that stand twice or contradict each other.
    TokenConflict = "token_conflict",
    /// A date or timestamp format that is not known or not sound.
    BadFormat = "bad_format",
    /// A time zone that is missing or unknown.
    BadTimeZone = "bad_time_zone",
    /// Enum values that are missing, empty or doubled.
    BadEnum = "bad_enum",
    /// Money marks that cannot be told apart.
    BadMoney = "bad_money",
    /// A JSON pointer that is none.
    BadPointer = "bad_pointer",
    /// A key of `[input]` that is wrong.
    BadInput = "bad_input",
    /// Structs nested too deep, or a version without fields.
    BadShape = "bad_shape",
    /// The file lies at another place than its dataset and version say.
    WrongPlace = "wrong_place",
    /// The number is published with other content.
    NumberTaken = "number_taken",
    /// A number was left out.
    NumberGap = "number_gap",
    /// `base` is not the newest published version.
    StaleBase = "stale_base",
    /// An id that another field had.
    IdReused = "id_reused",
    /// A field moved into or out of a struct.
    FieldMoved = "field_moved",
    /// A name changed under an id without `renamed_from`, or with a wrong one.
    NameChanged = "name_changed",
    /// A name that another id had.
    NameReused = "name_reused",
    /// A field is gone and not listed in `removed`.
    FieldDropped = "field_dropped",
    /// An entry of `removed` that removes nothing.
    BadRemoved = "bad_removed",
    /// An enum value is gone or moved.
    EnumShrunk = "enum_shrunk",
    /// A type changed under an id.
    TypeChanged = "type_changed",
    /// Something but an addition in a dataset of `evolution = "add_only"`.
    NotAnAddition = "not_an_addition",
    /// Allowed, and worth a look.
    Note = "note",
}

impl Serialize for ProblemCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One thing that is wrong with a version, or worth a look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Its kind.
    pub code: ProblemCode,
    /// Dotted path of the field; absent where the version itself is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// A lowercase fragment, values in backticks.
    pub message: String,
    /// Advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Problem {
    /// A problem of the version itself.
    pub(crate) fn new(code: ProblemCode, message: impl Into<String>) -> Self {
        Self {
            code,
            field: None,
            message: message.into(),
            hint: None,
        }
    }

    /// A problem of the field at `path`.
    pub(crate) fn at(code: ProblemCode, path: &str, message: impl Into<String>) -> Self {
        Self {
            field: Some(path.to_owned()),
            ..Self::new(code, message)
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether it stands in nobody's way.
    #[must_use]
    pub fn is_note(&self) -> bool {
        self.code == ProblemCode::Note
    }

    /// One line: the field where there is one, then the message.
    #[must_use]
    pub fn line(&self) -> String {
        match &self.field {
            Some(field) => format!("field `{field}`: {}", self.message),
            None => self.message.clone(),
        }
    }
}

/// An error that tells every problem; `Ok` where there are only notes.
///
/// `file` is where the version was read from, as far as known.
pub fn refuse(spec: &SchemaSpec, problems: &[Problem], file: Option<&str>) -> Result<()> {
    let mut real = problems.iter().filter(|p| !p.is_note());
    let Some(first) = real.next() else {
        return Ok(());
    };
    let rest: Vec<&Problem> = real.collect();
    let what = format!(
        "version {} of `{}` cannot be published: {}",
        spec.version,
        spec.dataset,
        first.line()
    );
    let mut error = if first.code == ProblemCode::NumberTaken {
        Error::conflict(what)
    } else {
        Error::invalid(what)
    }
    .with("code", first.code.as_str());
    if let Some(file) = file {
        error = error.with("file", file);
    }
    if let Some(hint) = &first.hint {
        error = error.hint(hint.clone());
    }
    for problem in rest {
        let hint = problem
            .hint
            .as_ref()
            .map_or_else(String::new, |h| format!(" ({h})"));
        error = error.hint(format!("also: {}{hint}", problem.line()));
    }
    Err(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct() {
        let mut names: Vec<_> = ProblemCode::ALL.iter().map(|c| c.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ProblemCode::ALL.len());
    }

    #[test]
    fn notes_refuse_nothing_and_every_problem_is_told() {
        let spec: SchemaSpec = toml::from_str("dataset = \"clean/a\"\nversion = 2\n").unwrap();
        let note = Problem::at(ProblemCode::Note, "a", "is required now");
        assert!(refuse(&spec, std::slice::from_ref(&note), None).is_ok());
        let problems = [
            note,
            Problem::at(ProblemCode::IdReused, "b", "id `3` was `c`").hint("take id `9`"),
            Problem::new(ProblemCode::StaleBase, "base is stale"),
        ];
        let e = refuse(&spec, &problems, Some("v2.toml")).unwrap_err();
        assert!(e.to_string().contains("field `b`: id `3` was `c`"), "{e}");
        assert!(e.to_string().contains("file `v2.toml`"), "{e}");
        assert_eq!(e.hints(), ["take id `9`", "also: base is stale"]);
    }
}
