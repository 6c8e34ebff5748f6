//! Refusals: the one table from what happened to the status and the word that a crawler branches on.

use hyper::StatusCode;
use lakebed::{Error, ErrorKind};
use schemars::JsonSchema;
use serde::Serialize;

/// What a call is refused with. The body is always [`FailShape`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fail {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) hints: Vec<String>,
    pub(super) context: Vec<(String, String)>,
}

/// A refusal as it is sent.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Refusal")]
pub(super) struct FailShape {
    /// Version of this shape: 1.
    format: u32,
    /// What is wrong.
    error: FailText,
}

/// What is wrong with a call.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RefusalText")]
struct FailText {
    /// The word to branch on.
    code: Code,
    /// One sentence for a person.
    message: String,
    /// Advice, a line each; may be empty.
    hints: Vec<String>,
    /// Values by name, such as `path`: the place in the call, `seeds[3].url`.
    context: std::collections::BTreeMap<String, String>,
    /// Whether the same call may succeed later without any change.
    retryable: bool,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $status:ident),* $(,)?) => {
        /// The words of refusals.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub(super) enum Code { $($(#[$doc])* $name),* }

        impl Code {
            /// All of them.
            pub(super) const ALL: &[Self] = &[$(Self::$name),*];

            /// The word.
            pub(super) fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }

            /// The status of its answers.
            pub(super) fn status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status),* }
            }
        }
    };
}

codes! {
    /// The body is no JSON of the call's shape; `context.path` says where.
    BadJson = "bad_json", BAD_REQUEST,
    /// The bytes behind the call are not those it announces.
    BadFrame = "bad_frame", BAD_REQUEST,
    /// No token, or another one.
    Unauthorized = "unauthorized", UNAUTHORIZED,
    /// There is no such path.
    NoRoute = "no_route", NOT_FOUND,
    /// The run, worker or request does not exist.
    NotFound = "not_found", NOT_FOUND,
    /// The path takes other methods.
    MethodNotAllowed = "method_not_allowed", METHOD_NOT_ALLOWED,
    /// The body did not come within its time.
    TooSlow = "too_slow", REQUEST_TIMEOUT,
    /// The claim is not this worker's any more: drop what it led to and go on.
    FenceLost = "fence_lost", CONFLICT,
    /// The claim was finished before, with another end: that one stands.
    FinishedOtherwise = "finished_otherwise", CONFLICT,
    /// The worker was silent for longer than its lease: its claims went back; join again.
    WorkerLost = "worker_lost", CONFLICT,
    /// The run is not in a state that allows the call.
    WrongState = "wrong_state", CONFLICT,
    /// The run is open already, and with another plan.
    AlreadyOpen = "already_open", CONFLICT,
    /// Another planner seeds the run.
    SeedingBusy = "seeding_busy", CONFLICT,
    /// This seeding is not the one that goes on: begin with batch 0 under a new name.
    SeedingUnknown = "seeding_unknown", CONFLICT,
    /// A batch before this one is missing.
    BatchMissing = "batch_missing", CONFLICT,
    /// This batch came before with other seeds.
    BatchDiffers = "batch_differs", CONFLICT,
    /// The plan announced other seeds than came.
    SeedsLost = "seeds_lost", CONFLICT,
    /// Somebody else changed the same thing meanwhile.
    Conflict = "conflict", CONFLICT,
    /// A limit would be passed.
    TooLarge = "too_large", PAYLOAD_TOO_LARGE,
    /// The body has another media type.
    WrongType = "wrong_type", UNSUPPORTED_MEDIA_TYPE,
    /// A value is not what it must be; `context.path` says which.
    Invalid = "invalid", UNPROCESSABLE_ENTITY,
    /// A success without a response.
    NoResponse = "no_response", UNPROCESSABLE_ENTITY,
    /// A success without bytes.
    NoBytes = "no_bytes", UNPROCESSABLE_ENTITY,
    /// A success with a status that is no answer of this source.
    NotAnAnswer = "not_an_answer", UNPROCESSABLE_ENTITY,
    /// A success whose body is not whole.
    Truncated = "truncated", UNPROCESSABLE_ENTITY,
    /// A fault of this program, or damaged files.
    Internal = "internal", INTERNAL_SERVER_ERROR,
    /// The database or the disk is away, or this process ends: call again.
    Unavailable = "unavailable", SERVICE_UNAVAILABLE,
    /// Too many bodies at once: call again.
    Busy = "busy", SERVICE_UNAVAILABLE,
}

impl Code {
    /// Whether the same call may succeed later.
    pub(super) fn is_retryable(self) -> bool {
        matches!(
            self,
            Self::TooSlow | Self::SeedingBusy | Self::Conflict | Self::Unavailable | Self::Busy
        )
    }
}

impl Fail {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hints: Vec::new(),
            context: Vec::new(),
        }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(super) fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.context.push((key.to_owned(), value.to_string()));
        self
    }

    /// The refusal of a value at this place of the call.
    pub(super) fn invalid(path: &str, message: impl Into<String>) -> Self {
        Self::new(Code::Invalid, message).with("path", path)
    }

    /// As [`From`], with another word for what the state forbids.
    pub(super) fn of(error: &Error, conflict: Code) -> Self {
        let mut fail = Self::from_error(error);
        if matches!(fail.code, Code::Conflict | Code::WrongState) {
            fail.code = conflict;
        }
        fail
    }

    fn from_error(error: &Error) -> Self {
        let named = error.context().iter().find(|(key, _)| *key == "code");
        let named = named.and_then(|(_, word)| Code::ALL.iter().find(|c| c.as_str() == word));
        let code = match (error.kind(), named) {
            (_, Some(code)) => *code,
            (ErrorKind::InvalidInput, None) => Code::Invalid,
            (ErrorKind::NotFound, None) => Code::NotFound,
            (ErrorKind::AlreadyExists | ErrorKind::Conflict, None) => Code::Conflict,
            (ErrorKind::PreconditionFailed, None) => Code::WrongState,
            (ErrorKind::LimitExceeded, None) => Code::TooLarge,
            (ErrorKind::Unavailable, None) => Code::Unavailable,
            (ErrorKind::CorruptData | ErrorKind::Internal, None) => Code::Internal,
        };
        let context = error.context().iter().filter(|(key, _)| *key != "code");
        Self {
            code,
            message: error.message().to_owned(),
            hints: error.hints().to_vec(),
            context: context.map(|(k, v)| ((*k).to_owned(), v.clone())).collect(),
        }
    }

    /// As it is sent.
    pub(super) fn shape(&self) -> FailShape {
        FailShape {
            format: 1,
            error: FailText {
                code: self.code,
                message: self.message.clone(),
                hints: self.hints.clone(),
                context: self.context.iter().cloned().collect(),
                retryable: self.code.is_retryable(),
            },
        }
    }
}

impl From<Error> for Fail {
    fn from(error: Error) -> Self {
        Self::from_error(&error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_error_has_its_status() {
        let expected = [
            (ErrorKind::InvalidInput, 422),
            (ErrorKind::NotFound, 404),
            (ErrorKind::AlreadyExists, 409),
            (ErrorKind::Conflict, 409),
            (ErrorKind::PreconditionFailed, 409),
            (ErrorKind::Unavailable, 503),
            (ErrorKind::CorruptData, 500),
            (ErrorKind::LimitExceeded, 413),
            (ErrorKind::Internal, 500),
        ];
        assert_eq!(expected.map(|(kind, _)| kind), ErrorKind::ALL);
        for (kind, status) in expected {
            let fail = Fail::from(Error::new(kind, "x"));
            assert_eq!(fail.code.status().as_u16(), status, "{kind:?}");
        }
        let named = Error::precondition("x").with("code", "no_bytes");
        assert_eq!(Fail::from(named).code, Code::NoBytes);
    }

    #[test]
    fn words_are_those_of_the_shape() {
        for code in Code::ALL {
            let told = serde_json::to_value(code).unwrap();
            assert_eq!(told, code.as_str());
        }
    }
}
