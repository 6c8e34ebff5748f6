//! Pages that are kept with what the rules must give for them: `sources/<source>/fixtures/<name>.html` (or
//! `.json`, `.xml`, `.txt`) and `<name>.expected.json` beside it.
//!
//! ```json
//! { "format": 1, "page": { "url", "stage", "status", "fetched_at", "charset", "headers" }, "gives": { ... } }
//! ```
//! `gives` is what [`parse_with`] gives, without what names the response.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::name::{CaptureId, RequestKey, SourceName, StageName};
use crate::parse::command::parse_with;
use crate::parse::page::PageInput;
use crate::parse::rules::Rules;
use crate::spec::{
    CaptureRecord, CharsetOrigin, CharsetSpec, ParsedPage, RawText, RunKey, Truncated, essence,
};
use crate::time::Instant;

/// Version of the file.
const FIXTURE_FORMAT: u32 = 1;
/// What the name of an expectation ends with.
pub const EXPECTED_SUFFIX: &str = ".expected.json";

/// What must come of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixture {
    format: u32,
    /// The response, without its body.
    pub page: FixturePage,
    /// What the rules give.
    pub gives: Value,
}

/// A response as a fixture tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixturePage {
    /// Where it was found.
    pub url: String,
    /// The stage of its request.
    pub stage: StageName,
    /// HTTP status.
    pub status: u16,
    /// When it was fetched.
    pub fetched_at: Instant,
    /// The encoding of its text; absent = as its bytes tell.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub charset: Option<String>,
    /// Headers of the response, a line each; absent for none.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub headers: Vec<String>,
}

impl FixturePage {
    /// What a fixture keeps of a response. Of its headers, only what says how the body is read: others may
    /// hold what must not lie in a repository.
    #[must_use]
    pub fn of(capture: &CaptureRecord) -> Self {
        Self {
            url: capture.url.clone(),
            stage: capture.kind.clone(),
            status: capture.status.unwrap_or(0),
            fetched_at: capture.fetched_at,
            charset: capture.charset.as_ref().map(|c| c.name.clone()),
            headers: capture
                .content_type
                .iter()
                .map(|t| format!("Content-Type: {t}"))
                .collect(),
        }
    }

    /// The response of a page called `name`.
    #[must_use]
    pub fn capture(&self, name: &str, body: &[u8]) -> CaptureRecord {
        let head = format!(
            "HTTP/1.1 {}\r\n{}\r\n\r\n",
            self.status,
            self.headers.join("\r\n")
        );
        let content_type = self.headers.iter().find_map(|h| {
            let (name, value) = h.split_once(':')?;
            name.eq_ignore_ascii_case("content-type")
                .then(|| essence(value))
        });
        CaptureRecord {
            capture_id: CaptureId::of(name.as_bytes()),
            request_key: RequestKey::of(name.as_bytes()),
            attempt: 1,
            hop: 0,
            kind: self.stage.clone(),
            method: "GET".to_owned(),
            url: self.url.clone(),
            fetched_at: self.fetched_at,
            status: Some(self.status),
            http_version: None,
            remote_ip: None,
            request_head: RawText::default(),
            request_body: None,
            response_head: RawText(head.into_bytes()),
            content_type,
            charset: self.charset.as_ref().map(|name| CharsetSpec {
                name: name.clone(),
                from: CharsetOrigin::Http,
            }),
            removed_encodings: Vec::new(),
            wire_len: body.len() as u64,
            body_len: body.len() as u64,
            body_sha256: None,
            truncated: Truncated::None,
            error: None,
        }
    }

    /// What the rules give for the page called `name`; programs run in `folder`.
    ///
    /// # Errors
    /// Where a program cannot be started.
    pub fn parse(
        &self,
        rules: &Rules,
        folder: &Path,
        (source, name): (&SourceName, &str),
        body: &[u8],
    ) -> Result<ParsedPage> {
        let run = RunKey {
            source: source.clone(),
            date: "2000-01-01".parse()?,
            run: "fixture".parse()?,
        };
        let capture = self.capture(name, body);
        let input = PageInput {
            run: &run,
            capture: &capture,
            body,
        };
        parse_with(rules, folder, &input)
    }
}

impl Fixture {
    /// The fixture of a page that gave this.
    pub fn of(page: FixturePage, parsed: &ParsedPage) -> Result<Self> {
        Ok(Self {
            format: FIXTURE_FORMAT,
            page,
            gives: gives(parsed)?,
        })
    }

    /// Reads the text of an expectation.
    ///
    /// # Errors
    /// `InvalidInput` where it is none, or of a newer format.
    pub fn parse(text: &str, file: &str) -> Result<Self> {
        let fixture: Self = serde_json::from_str(text).map_err(|e| {
            Error::invalid(format!("read the expectation of a fixture: {e}")).with("file", file)
        })?;
        if fixture.format > FIXTURE_FORMAT {
            return Err(
                Error::invalid(format!("fixtures of format {}", fixture.format))
                    .with("file", file)
                    .hint("a newer program wrote it: install that one"),
            );
        }
        Ok(fixture)
    }

    /// Its text.
    pub fn to_text(&self) -> Result<String> {
        serde_json::to_string_pretty(self)
            .map(|mut text| {
                text.push('\n');
                text
            })
            .map_err(|e| Error::internal("write a fixture as JSON").caused_by(e))
    }
}

/// What a page gave, without what names the response.
pub fn gives(parsed: &ParsedPage) -> Result<Value> {
    let mut value = serde_json::to_value(parsed)
        .map_err(|e| Error::internal("write a parsed page as JSON").caused_by(e))?;
    if let Some(members) = value.as_object_mut() {
        for name in ["capture_id", "request_key", "url"] {
            members.shift_remove(name);
        }
    }
    Ok(value)
}

/// A place where two values differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// JSON path, such as `$.records[0].record.price`.
    pub path: String,
    /// What was expected; absent where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    /// What came; absent where nothing did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<Value>,
}

/// Every place where two values differ, the innermost ones.
#[must_use]
pub fn differences(expected: &Value, found: &Value) -> Vec<Difference> {
    let mut into = Vec::new();
    compare(Some(expected), Some(found), "$", &mut into);
    into
}

fn compare(
    expected: Option<&Value>,
    found: Option<&Value>,
    path: &str,
    into: &mut Vec<Difference>,
) {
    match (expected, found) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let others = b.keys().filter(|name| !a.contains_key(*name));
            for name in a.keys().chain(others) {
                compare(a.get(name), b.get(name), &format!("{path}.{name}"), into);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for n in 0..a.len().max(b.len()) {
                compare(a.get(n), b.get(n), &format!("{path}[{n}]"), into);
            }
        }
        (expected, found) if expected == found => {}
        (expected, found) => into.push(Difference {
            path: path.to_owned(),
            expected: expected.cloned(),
            found: found.cloned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_are_named_where_they_are() {
        let (a, b) = (
            json!({"r": [{"p": "1", "q": 2}, {"p": "3"}], "x": 1}),
            json!({"r": [{"p": "2", "q": 2}], "y": null}),
        );
        let paths: Vec<String> = differences(&a, &b).into_iter().map(|d| d.path).collect();
        assert_eq!(paths, ["$.r[0].p", "$.r[1]", "$.x", "$.y"]);
        assert_eq!(differences(&a, &a), []);
    }
}
