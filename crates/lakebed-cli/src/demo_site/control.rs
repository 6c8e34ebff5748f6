//! Steering a running site: `/_control/...`, from the machine itself only.
//!
//! ```text
//! GET  /_control/stats     the numbers                     POST /_control/reset    forget them, and tries
//! GET  /_control/faults    {"faults": [...]}               POST /_control/faults   {"faults": [...]}
//! GET  /_control/date      {"date": "..."}                 POST /_control/date     {"date": "..."}
//! ```

use std::net::IpAddr;

use hyper::Method;
use lakebed::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::demo_site::answer::Answer;
use crate::demo_site::fault::FaultSpec;
use crate::demo_site::page::Rendered;
use crate::demo_site::site::{Orders, Site};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultOrder {
    faults: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DateOrder {
    date: String,
}

/// Answers a request that steers the site.
pub(crate) fn control(site: &Site, method: &Method, path: &str, body: &[u8]) -> Answer {
    let post = *method == Method::POST;
    let outcome = match (path, post) {
        ("stats", false) => json_of(&site.journal.stats()),
        ("faults", false) => Ok(faults(&site.orders())),
        ("faults", true) => set_faults(site, body),
        ("date", false) => Ok(json!({"date": site.orders().date.to_string()})),
        ("date", true) => set_date(site, body),
        ("reset", true) => {
            site.memory.clear();
            site.journal.reset();
            Ok(json!({"reset": true}))
        }
        _ => return told(404, &json!({"error": "no such control"})),
    };
    match outcome {
        Ok(value) => told(200, &value),
        Err(error) => {
            let hints = error.hints();
            told(400, &json!({"error": error.message(), "hints": hints}))
        }
    }
}

/// Whether whoever asks from there may steer the site.
pub(crate) fn may_steer(peer: IpAddr) -> bool {
    peer.to_canonical().is_loopback()
}

/// The answer to somebody who may not steer.
pub(crate) fn forbidden() -> Answer {
    told(
        403,
        &json!({"error": "only the machine itself may steer the site"}),
    )
}

fn told(status: u16, value: &Value) -> Answer {
    Answer::plain(Rendered::json(status, value))
}

fn json_of(value: &impl Serialize) -> Result<Value> {
    serde_json::to_value(value)
        .map_err(|e| Error::internal("write the numbers as JSON").caused_by(e))
}

fn faults(orders: &Orders) -> Value {
    let texts: Vec<&str> = orders.faults.iter().map(|f| f.text.as_str()).collect();
    json!({ "faults": texts })
}

fn set_faults(site: &Site, body: &[u8]) -> Result<Value> {
    let order: FaultOrder = serde_json::from_slice(body).map_err(|e| unread(&e))?;
    let faults = order.faults.iter().map(|text| FaultSpec::parse(text));
    let faults = faults.collect::<Result<Vec<_>>>()?;
    let orders = site.change(|orders| Orders { faults, ..orders });
    site.memory.clear();
    Ok(self::faults(&orders))
}

fn set_date(site: &Site, body: &[u8]) -> Result<Value> {
    let order: DateOrder = serde_json::from_slice(body).map_err(|e| unread(&e))?;
    let date = order.date.parse()?;
    let orders = site.change(|orders| Orders { date, ..orders });
    Ok(json!({"date": orders.date.to_string()}))
}

fn unread(error: &serde_json::Error) -> Error {
    Error::invalid(format!("the body is no order: {error}"))
        .hint("for example {\"faults\": [\"flaky:30:2\"]} or {\"date\": \"2026-12-01\"}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_machine_itself_may_steer() {
        for (peer, may) in [
            ("127.0.0.1", true),
            ("127.8.9.1", true),
            ("::1", true),
            ("::ffff:127.0.0.1", true),
            ("10.0.0.1", false),
            ("0.0.0.0", false),
            ("::ffff:192.168.1.2", false),
            ("2001:db8::1", false),
        ] {
            assert_eq!(may_steer(peer.parse().unwrap()), may, "{peer}");
        }
        assert_eq!(forbidden().status, 403);
    }
}
