//! Seeds: a plan as lines, each a URL or a JSON object.
//!
//! ```text
//! https://rent.example/list?city=1
//! {"url": "https://rent.example/api", "stage": "list", "method": "POST", "body": "{\"page\": 1}"}
//! ```
//! Blank lines and lines that begin with `#` are no seeds. Every other line counts as announced; a wrong one is
//! an error that names it, since a seed that is skipped is a page that is missing.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::config::CrawlConfig;
use crate::crawl::links::request;
use crate::error::{Error, Result};
use crate::name::{ContentHash, StageName};
use crate::queue::{NewRequest, planned_hash};
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
    /// Whether a planner made it: what the source must have at least does not count then, and it may be empty.
    pub planned: bool,
}

impl SeedPlan {
    /// Seeds of the plan, in scope or not.
    #[must_use]
    pub fn announced(&self) -> u64 {
        self.seeds.len() as u64 + self.out_of_scope
    }

    /// How the queue names it.
    #[must_use]
    pub fn queue_hash(&self) -> String {
        match self.planned {
            true => planned_hash(&self.hash),
            false => self.hash.to_string(),
        }
    }
}

/// A request as a plan, or another crawler, names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeedSpec {
    /// Absolute; relative to its page where it was found on one.
    pub url: String,
    /// Absent for the one that seeds have.
    pub stage: Option<StageName>,
    /// Absent for GET.
    pub method: Option<String>,
    /// Absent for none; part of what makes it another request.
    pub body: Option<String>,
    /// Headers of its own.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Given back with its claim; any JSON.
    pub carry: Option<serde_json::Value>,
    /// Smaller is sooner; absent for that of its stage.
    pub priority: Option<i64>,
    /// Counted under this name.
    pub group: Option<String>,
    /// Why a planner asks for it; for people.
    pub reason: Option<String>,
    /// The object it is of, as a planner names it; for people.
    pub key: Option<serde_json::Value>,
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
        planned: false,
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
        SeedSpec {
            url: line.to_owned(),
            ..SeedSpec::default()
        }
    };
    seed_request(config, seed)
}

/// The request of a seed; `None` where it leads out of the source.
///
/// # Errors
/// `InvalidInput` for a stage that is not declared and for what is no URL.
pub fn seed_request(config: &CrawlConfig, seed: SeedSpec) -> Result<Option<NewRequest>> {
    let url = CanonicalUrl::parse(&seed.url, QueryOrder::Kept)?;
    request_to(config, seed, &url)
}

/// As [`seed_request`], for a link found at `page`: what is no URL to fetch leads out of the source, too.
///
/// # Errors
/// `InvalidInput` for a stage that is not declared.
pub(super) fn link_request(
    config: &CrawlConfig,
    link: SeedSpec,
    page: &CanonicalUrl,
) -> Result<Option<NewRequest>> {
    match page.join(&link.url, QueryOrder::Kept) {
        Ok(url) => request_to(config, link, &url),
        Err(_) => stage_of(config, link.stage.as_ref()).map(|_| None),
    }
}

fn stage_of<'c>(config: &'c CrawlConfig, named: Option<&'c StageName>) -> Result<&'c StageName> {
    match named {
        Some(stage) if !config.stage.contains_key(stage) => {
            let names: Vec<&str> = config.stage.keys().map(StageName::as_str).collect();
            Err(Error::invalid(format!("there is no stage `{stage}`"))
                .hint(format!("stages are {}", names.join(", "))))
        }
        Some(stage) => Ok(stage),
        None => config.default_stage(),
    }
}

fn request_to(
    config: &CrawlConfig,
    seed: SeedSpec,
    url: &CanonicalUrl,
) -> Result<Option<NewRequest>> {
    let stage = stage_of(config, seed.stage.as_ref())?;
    if !config.has_host(url.host()) {
        return Ok(None);
    }
    let mut new = request(config, stage, url, seed.group);
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
