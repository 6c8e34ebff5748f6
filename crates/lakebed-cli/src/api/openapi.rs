//! The document of the interface (OpenAPI 3.1), made of the table of calls and the types of their shapes.
//!
//! `docs/openapi.json` is this document; a test compares (`LAKEBED_UPDATE_DOCS=1` writes it anew).

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::api::fail::{Code, FailShape};
use crate::api::framed::FRAMED;
use crate::api::route::{Brings, ROUTES, Route, USUAL_CODES};

const ABOUT: &str = "The queue and the raw packs of Lakebed for crawlers of any language: seed a run, claim requests, bring \
    responses back, close. docs/api.md tells the way of a crawl and how bytes are sent.";
const FRAMED_ABOUT: &str = "The JSON of the call (`FinishCall`) in one line, a line feed, then the bodies of its responses, one behind the \
    other, each as long as its `body_bytes`.";

/// The whole document.
pub(super) fn document() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|s| s.definitions_path = "/components/schemas".into());
    let mut generator = SchemaGenerator::new(settings);
    let fail = generator.subschema_for::<FailShape>();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in &ROUTES {
        let method = route.method.as_str().to_ascii_lowercase();
        let operation = operation(route, &mut generator, &fail.clone().to_value());
        paths
            .entry(route.path)
            .or_default()
            .insert(method, operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lakebed",
            "version": "1",
            "summary": "Crawl queue and raw packs",
            "description": ABOUT,
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:8790"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": generator.take_definitions(true),
        },
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator, fail: &Value) -> Value {
    let mut operation = Map::new();
    operation.insert("operationId".into(), route.name.into());
    operation.insert("summary".into(), route.summary.into());
    let parameters: Vec<Value> = route
        .path
        .split('/')
        .filter_map(|s| s.strip_prefix('{')?.strip_suffix('}'))
        .map(
            |name| json!({"name": name, "in": "path", "required": true, "schema": parameter(name)}),
        )
        .collect();
    if !parameters.is_empty() {
        operation.insert("parameters".into(), parameters.into());
    }
    let content = match route.brings {
        Brings::Nothing => None,
        Brings::Json(of) => Some(json!({"application/json": {"schema": of(generator)}})),
        Brings::Finish(of) => Some(json!({
            "application/json": {"schema": of(generator)},
            FRAMED: {"schema": {"description": FRAMED_ABOUT, "contentMediaType": FRAMED}},
        })),
    };
    if let Some(content) = content {
        operation.insert(
            "requestBody".into(),
            json!({"required": true, "content": content}),
        );
    }
    let schema = match route.answer {
        Some(of) => of(generator).to_value(),
        None => json!({"type": "object"}),
    };
    let mut responses = Map::new();
    responses.insert(
        "200".into(),
        json!({"description": "Done", "content": {"application/json": {"schema": schema}}}),
    );
    let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    let mut codes: Vec<Code> = route.codes.iter().chain(USUAL_CODES).copied().collect();
    codes.sort();
    for code in codes {
        let words = by_status.entry(code.status().as_u16()).or_default();
        words.push(code.as_str());
    }
    for (status, words) in by_status {
        let told = words.iter().map(|w| format!("`{w}`"));
        let description = told.collect::<Vec<_>>().join(", ");
        responses.insert(
            status.to_string(),
            json!({"description": description, "content": {"application/json": {"schema": fail}}}),
        );
    }
    operation.insert("responses".into(), responses.into());
    Value::Object(operation)
}

fn parameter(name: &str) -> Value {
    match name {
        "date" => json!({"type": "string", "format": "date"}),
        "request" => json!({"type": "integer", "format": "int64"}),
        _ => json!({"type": "string"}),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_document_is_up_to_date() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let text = serde_json::to_string_pretty(&document()).unwrap() + "\n";
        if std::env::var_os("LAKEBED_UPDATE_DOCS").is_some() {
            std::fs::write(&page, &text).unwrap();
        }
        assert!(
            std::fs::read_to_string(&page).unwrap_or_default() == text,
            "docs/openapi.json is stale: LAKEBED_UPDATE_DOCS=1 cargo test -p lakebed-cli the_document_is_up_to_date"
        );
    }

    #[test]
    fn the_document_holds_together() {
        let document = document();
        let text = document.to_string();
        let mut names = 0;
        for part in text.split("\"#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(
                document["components"]["schemas"].get(name).is_some(),
                "{name}"
            );
            names += 1;
        }
        assert!(names > 40, "{names}");
        let call = &document["components"]["schemas"]["FinishCall"];
        assert_eq!(call["additionalProperties"], false);
        assert_eq!(call["required"], json!(["worker", "attempt", "end"]));
    }
}
