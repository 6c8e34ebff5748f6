//! Every call of the interface: one table, from which calls are dispatched and the document is made.

use hyper::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::api::fail::{Code, Fail};
use crate::api::shape;

/// Which call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Document,
    RunStatus,
    RunCreate,
    RunSeeds,
    RunOpen,
    RunRequests,
    RunSeal,
    RunStop,
    RunResume,
    RunClose,
    WorkerJoin,
    WorkerHeartbeat,
    WorkerLeave,
    Claims,
    Finish,
    Turn,
}

/// What a call brings.
#[derive(Clone, Copy)]
pub(super) enum Brings {
    /// No body; one that comes is refused unless it is `{}`.
    Nothing,
    /// JSON of this shape.
    Json(fn(&mut SchemaGenerator) -> Schema),
    /// A finish: JSON, or JSON and bytes.
    Finish(fn(&mut SchemaGenerator) -> Schema),
}

/// One call.
pub(super) struct Route {
    pub(super) call: Call,
    pub(super) method: Method,
    /// Its path; `{name}` stands for one segment.
    pub(super) path: &'static str,
    /// Its name in generated clients.
    pub(super) name: &'static str,
    /// One sentence.
    pub(super) summary: &'static str,
    pub(super) brings: Brings,
    /// The shape of its answer; absent for the document itself.
    pub(super) answer: Option<fn(&mut SchemaGenerator) -> Schema>,
    /// Words it is refused with, beside those of every call.
    pub(super) codes: &'static [Code],
}

/// Words that every call may be refused with.
pub(super) const USUAL_CODES: &[Code] = &[
    Code::Unauthorized,
    Code::TooSlow,
    Code::TooLarge,
    Code::Internal,
    Code::Unavailable,
    Code::Busy,
];

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

macro_rules! run {
    ($rest:literal) => {
        concat!("/v1/runs/{source}/{date}/{run}", $rest)
    };
}

const READS: &[Code] = &[
    Code::BadJson,
    Code::WrongType,
    Code::Invalid,
    Code::NotFound,
];

/// All of them.
pub(super) const ROUTES: [Route; 16] = [
    Route {
        call: Call::Document,
        method: Method::GET,
        path: "/v1/openapi.json",
        name: "document",
        summary: "This document",
        brings: Brings::Nothing,
        answer: None,
        codes: &[],
    },
    Route {
        call: Call::RunStatus,
        method: Method::GET,
        path: run!(""),
        name: "runStatus",
        summary: "Where the run is, and what crawlers must know of its source",
        brings: Brings::Nothing,
        answer: Some(of::<shape::RunAnswer>),
        codes: &[Code::Invalid, Code::NotFound],
    },
    Route {
        call: Call::RunCreate,
        method: Method::PUT,
        path: run!(""),
        name: "createRun",
        summary: "Make the run, or find it as it is. May be repeated",
        brings: Brings::Nothing,
        answer: Some(of::<shape::RunAnswer>),
        codes: &[Code::Invalid, Code::NotFound],
    },
    Route {
        call: Call::RunSeeds,
        method: Method::POST,
        path: run!("/seeds"),
        name: "addSeeds",
        summary: "Add a batch of seeds. The same batch may be repeated",
        brings: Brings::Json(of::<shape::SeedsCall>),
        answer: Some(of::<shape::CountsAnswer>),
        codes: &[
            Code::BadJson,
            Code::WrongType,
            Code::Invalid,
            Code::NotFound,
            Code::WrongState,
            Code::SeedingBusy,
            Code::SeedingUnknown,
            Code::BatchMissing,
            Code::BatchDiffers,
            Code::Conflict,
        ],
    },
    Route {
        call: Call::RunOpen,
        method: Method::POST,
        path: run!("/open"),
        name: "openRun",
        summary: "End the seeding: crawlers may claim. May be repeated",
        brings: Brings::Json(of::<shape::OpenCall>),
        answer: Some(of::<shape::RunAnswer>),
        codes: &[
            Code::BadJson,
            Code::WrongType,
            Code::Invalid,
            Code::NotFound,
            Code::SeedsLost,
            Code::AlreadyOpen,
            Code::SeedingBusy,
            Code::SeedingUnknown,
            Code::Conflict,
        ],
    },
    Route {
        call: Call::RunRequests,
        method: Method::POST,
        path: run!("/requests"),
        name: "addRequests",
        summary: "Add requests that no page led to, while the run is open. May be repeated: what is there is a duplicate",
        brings: Brings::Json(of::<shape::RequestsCall>),
        answer: Some(of::<shape::CountsAnswer>),
        codes: &[
            Code::BadJson,
            Code::WrongType,
            Code::Invalid,
            Code::NotFound,
            Code::WrongState,
        ],
    },
    Route {
        call: Call::RunSeal,
        method: Method::POST,
        path: run!("/seal"),
        name: "sealRun",
        summary: "From now on only pages bring requests. May be repeated",
        brings: Brings::Nothing,
        answer: Some(of::<shape::RunAnswer>),
        codes: &[Code::NotFound, Code::WrongState],
    },
    Route {
        call: Call::RunStop,
        method: Method::POST,
        path: run!("/stop"),
        name: "stopRun",
        summary: "Stop the run: nothing is claimed any more, and it closes red. The first reason stays",
        brings: Brings::Json(of::<shape::StopCall>),
        answer: Some(of::<shape::RunAnswer>),
        codes: &[
            Code::BadJson,
            Code::WrongType,
            Code::NotFound,
            Code::WrongState,
        ],
    },
    Route {
        call: Call::RunResume,
        method: Method::POST,
        path: run!("/resume"),
        name: "resumeRun",
        summary: "Take a stop back",
        brings: Brings::Nothing,
        answer: Some(of::<shape::RunAnswer>),
        codes: &[Code::NotFound, Code::WrongState],
    },
    Route {
        call: Call::RunClose,
        method: Method::POST,
        path: run!("/close"),
        name: "closeRun",
        summary: "Seal the run, pack what came into the lake, and judge the books. May be repeated; takes as long as the packing",
        brings: Brings::Nothing,
        answer: Some(of::<shape::CloseAnswer>),
        codes: &[Code::NotFound, Code::WrongState, Code::Conflict],
    },
    Route {
        call: Call::WorkerJoin,
        method: Method::POST,
        path: run!("/workers"),
        name: "join",
        summary: "Join as a worker. One that starts again is another worker",
        brings: Brings::Json(of::<shape::WorkerCall>),
        answer: Some(of::<shape::WorkerAnswer>),
        codes: READS,
    },
    Route {
        call: Call::WorkerHeartbeat,
        method: Method::POST,
        path: run!("/workers/{worker}/heartbeat"),
        name: "heartbeat",
        summary: "Give a sign of life",
        brings: Brings::Nothing,
        answer: Some(of::<shape::HeartbeatAnswer>),
        codes: &[Code::NotFound, Code::WorkerLost],
    },
    Route {
        call: Call::WorkerLeave,
        method: Method::DELETE,
        path: run!("/workers/{worker}"),
        name: "leave",
        summary: "Leave: what the worker holds goes back, no attempt is counted",
        brings: Brings::Nothing,
        answer: Some(of::<shape::LeaveAnswer>),
        codes: &[Code::NotFound],
    },
    Route {
        call: Call::Claims,
        method: Method::POST,
        path: run!("/claims"),
        name: "claim",
        summary: "Claim requests. May take as long as reading a host's robots.txt. With `call`, may be repeated",
        brings: Brings::Json(of::<shape::ClaimsCall>),
        answer: Some(of::<shape::ClaimsAnswer>),
        codes: &[
            Code::BadJson,
            Code::WrongType,
            Code::Invalid,
            Code::NotFound,
            Code::WorkerLost,
            Code::WrongState,
        ],
    },
    Route {
        call: Call::Finish,
        method: Method::POST,
        path: run!("/requests/{request}/finish"),
        name: "finish",
        summary: "End a claim. Answered when its bytes are durable and its end is recorded. May be repeated",
        brings: Brings::Finish(of::<shape::FinishCall>),
        answer: Some(of::<shape::FinishAnswer>),
        codes: &[
            Code::BadJson,
            Code::BadFrame,
            Code::WrongType,
            Code::Invalid,
            Code::NotFound,
            Code::FenceLost,
            Code::FinishedOtherwise,
            Code::NoResponse,
            Code::NoBytes,
            Code::NotAnAnswer,
            Code::Truncated,
        ],
    },
    Route {
        call: Call::Turn,
        method: Method::POST,
        path: run!("/turns"),
        name: "turn",
        summary: "Ask before following a redirect: robots.txt and the host's next moment",
        brings: Brings::Json(of::<shape::TurnCall>),
        answer: Some(of::<shape::TurnAnswer>),
        codes: READS,
    },
];

/// What stood in the place of `{name}`.
pub(super) type Segments<'p> = Vec<(&'static str, &'p str)>;

/// The call of this method and path.
pub(super) fn find<'p>(
    method: &Method,
    path: &'p str,
) -> Result<(&'static Route, Segments<'p>), Fail> {
    static TABLE: [Route; 16] = ROUTES;
    let mut allowed: Vec<&str> = Vec::new();
    for route in &TABLE {
        if let Some(segments) = fit(route.path, path) {
            if route.method == *method {
                return Ok((route, segments));
            }
            allowed.push(route.method.as_str());
        }
    }
    if allowed.is_empty() {
        return Err(Fail::new(Code::NoRoute, "there is no such path")
            .hint("GET /v1/openapi.json lists them"));
    }
    let allow = allowed.join(", ");
    Err(Fail::new(Code::MethodNotAllowed, format!("this path takes {allow}")).with("allow", allow))
}

fn fit<'p>(template: &'static str, path: &'p str) -> Option<Segments<'p>> {
    let mut segments = Vec::new();
    let mut parts = path.split('/');
    for wanted in template.split('/') {
        let part = parts.next()?;
        match wanted.strip_prefix('{').and_then(|w| w.strip_suffix('}')) {
            Some(name) if !part.is_empty() => segments.push((name, part)),
            Some(_) => return None,
            None if wanted == part => {}
            None => return None,
        }
    }
    parts.next().is_none().then_some(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_by_method_and_segments() {
        let found = |method, path| {
            find(&method, path)
                .map(|(r, s)| (r.call, s))
                .map_err(|f| f.code)
        };
        let (call, segments) = found(Method::PUT, "/v1/runs/rentals/2026-11-30/day").unwrap();
        assert_eq!(call, Call::RunCreate);
        assert_eq!(
            segments,
            [
                ("source", "rentals"),
                ("date", "2026-11-30"),
                ("run", "day")
            ]
        );
        let (call, segments) = found(Method::POST, "/v1/runs/a/b/c/requests/17/finish").unwrap();
        assert_eq!((call, segments[3]), (Call::Finish, ("request", "17")));
        assert_eq!(
            found(Method::PATCH, "/v1/runs/a/b/c"),
            Err(Code::MethodNotAllowed)
        );
        for path in [
            "/",
            "",
            "/v1/runs/a/b",
            "/v1/runs/a/b/c/",
            "/v1/runs//b/c",
            "/v1/runs/a/b/c/seeds/x",
        ] {
            assert_eq!(found(Method::POST, path), Err(Code::NoRoute), "{path}");
        }
        assert_eq!(
            ROUTES.len(),
            ROUTES
                .iter()
                .map(|r| r.name)
                .collect::<std::collections::BTreeSet<_>>()
                .len()
        );
    }
}
