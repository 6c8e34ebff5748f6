//! Seeds: a plan as lines, each a URL or a JSON object.
//!
//! ```text
//! https://rent.example/list?city=1
//! {"url": "https://rent.example/api", "stage": "list", "method": "POST", "body": "{\"page\": 1}"}
//! ```
//! Blank lines and lines that begin with `#` are no seeds. Every other line counts as announced; a wrong one is
//! an error that names it, since a seed that is skipped is a page that is missing.

use serde::Deserialize;

use crate::config::CrawlConfig;
use crate::crawl::links::request;
use crate::error::{Error, Result};
use crate::name::{ContentHash, StageName};
use crate::queue::NewRequest;
use crate::spec::{CanonicalUrl, QueryOrder};

/// A plan that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedPlan {
    /// What it asks for.
    pub seeds: Vec<NewRequest>,
    /// Lines that lead out of the source.
    pub out_of_scope: u64,
    /// BLAKE3 of its text.
    pub hash: ContentHash,
}

impl SeedPlan {
    /// Seeds of the plan, in scope or not.
    #[must_use]
    pub fn announced(&self) -> u64 {
        self.seeds.len() as u64 + self.out_of_scope
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SeedLine {
    url: String,
    stage: Option<StageName>,
    method: Option<String>,
    body: Option<String>,
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
    carry: Option<serde_json::Value>,
    priority: Option<i64>,
    group: Option<String>,
}

/// Reads a plan; `name` names it in errors.
///
/// # Errors
/// `InvalidInput` for a line that is no seed, with its number.
pub fn read_seeds(config: &CrawlConfig, text: &str, name: &str) -> Result<SeedPlan> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut plan = SeedPlan {
        seeds: Vec::new(),
        out_of_scope: 0,
        hash: ContentHash::of(text.as_bytes()),
    };
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let seed = read_seed(config, line).map_err(|e| e.with("file", name).with("line", i + 1))?;
        match seed {
            Some(seed) => plan.seeds.push(seed),
            None => plan.out_of_scope += 1,
        }
    }
    Ok(plan)
}

fn read_seed(config: &CrawlConfig, line: &str) -> Result<Option<NewRequest>> {
    let seed = if line.starts_with('{') {
        serde_json::from_str(line)
            .map_err(|e| Error::invalid(format!("`{line}` is no seed: {e}")))?
    } else {
        SeedLine {
            url: line.to_owned(),
            stage: None,
            method: None,
            body: None,
            headers: Default::default(),
            carry: None,
            priority: None,
            group: None,
        }
    };
    let stage = match &seed.stage {
        Some(stage) if !config.stage.contains_key(stage) => {
            let names: Vec<&str> = config.stage.keys().map(StageName::as_str).collect();
            return Err(Error::invalid(format!("there is no stage `{stage}`"))
                .hint(format!("stages are {}", names.join(", "))));
        }
        Some(stage) => stage,
        None => config.default_stage()?,
    };
    let url = CanonicalUrl::parse(&seed.url, QueryOrder::Kept)?;
    if !config.has_host(url.host()) {
        return Ok(None);
    }
    let mut new = request(config, stage, &url, seed.group);
    new.method = seed.method.unwrap_or(new.method).to_ascii_uppercase();
    new.body = seed.body.map(String::into_bytes);
    new.headers = seed.headers.into_iter().collect();
    new.carry = seed.carry.map(|c| c.to_string());
    new.priority = seed.priority.unwrap_or(new.priority);
    Ok(Some(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(stages: &str) -> CrawlConfig {
        let text = format!("user_agent = 'test/1'\nhosts = ['a.test']\n{stages}");
        crate::config::parse_toml(&text, "source.toml").unwrap()
    }

    #[test]
    fn lines_are_urls_or_objects() {
        let text = "\u{feff}# the plan\nhttp://A.test/列表\n\n{\"url\": \"http://a.test/api\", \"method\": \"post\", \"body\": \"{}\", \
            \"headers\": {\"Accept\": \"application/json\"}, \"carry\": {\"頁\": 1}, \"priority\": 3}\r\nhttp://b.test/\n";
        let plan = read_seeds(&config("[stage.list]\npriority = 7"), text, "seeds.txt").unwrap();
        assert_eq!(
            (plan.announced(), plan.out_of_scope, plan.seeds.len()),
            (3, 1, 2)
        );
        assert_eq!(plan.seeds[0].url, "http://a.test/%E5%88%97%E8%A1%A8");
        assert_eq!((plan.seeds[0].priority, plan.seeds[1].priority), (7, 3));
        assert_eq!(plan.seeds[1].method, "POST");
        assert_eq!(plan.seeds[1].carry.as_deref(), Some("{\"頁\":1}"));
    }

    #[test]
    fn a_wrong_line_is_named() {
        let two = config("[stage.list]\n[stage.detail]");
        for (line, part) in [
            ("http://a.test/x", "names no stage"),
            (
                "{\"url\": \"http://a.test/x\", \"stage\": \"lost\"}",
                "no stage `lost`",
            ),
            (
                "{\"url\": \"http://a.test/x\", \"stage\": \"list\", \"prio\": 1}",
                "unknown field",
            ),
            ("{\"stage\": \"list\"}", "missing field"),
            ("{\"url\": \"ftp://a.test/x\", \"stage\": \"list\"}", "ftp"),
        ] {
            let error = read_seeds(&two, &format!("\n{line}"), "seeds.txt").unwrap_err();
            assert!(error.message().contains(part), "{error}");
            assert!(
                error
                    .context()
                    .iter()
                    .any(|(k, v)| *k == "line" && v == "2"),
                "{error:?}"
            );
        }
    }
}
