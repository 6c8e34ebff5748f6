//! How a source is crawled: `[crawl]` of its `source.toml`, which the team shares, and `[crawl]` of
//! `lakebed.local.toml`, which stays on this machine: rates, proxies and thresholds against blocking reach no
//! log, manifest, pack or report.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::name::StageName;

/// The table `[crawl]` of a `source.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CrawlConfig {
    /// Who asks; sent with every request. Names the crawler and how to reach its people.
    pub user_agent: String,
    /// Hosts that belong to the source, `rent.example`, or `*.rent.example` for all below it. What leads
    /// elsewhere is counted as out of scope.
    pub hosts: Vec<String>,
    /// File of seeds beside `source.toml`, a line each: a URL, or a JSON object.
    pub seeds: Option<String>,
    /// Command that prints such lines instead; it runs in the source's folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seed_command: Vec<String>,
    /// Stage of seeds that name none; needed where there are several stages.
    pub seed_stage: Option<StageName>,
    /// Whether a run claims to see everything of the source.
    #[serde(default)]
    pub coverage: CoverageConfig,
    /// Requests that a run must have at least.
    #[serde(default = "one")]
    pub min_requests: u64,
    /// Requests that must be done at least.
    #[serde(default = "one")]
    pub min_done: u64,
    /// Share of the requests that may be dead, 0 to 1.
    #[serde(default = "max_dead_share")]
    pub max_dead_share: f64,
    /// Minutes after which what is left of a run dies; absent for never.
    pub deadline_minutes: Option<u32>,
    /// Failed attempts after which a request is dead.
    #[serde(default = "max_failures")]
    pub max_failures: u32,
    /// Statuses beside 2xx that are an answer, such as 404 where "gone" is data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept_statuses: Vec<u16>,
    /// Largest body, MiB, encodings removed.
    #[serde(default = "max_body_mib")]
    pub max_body_mib: u32,
    /// Networks or hosts that may be reached although they are not of the public internet, such as
    /// `127.0.0.0/8` or `intranet.example`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_private: Vec<String>,
    /// Whether cookies are kept, for the source as a whole.
    #[serde(default)]
    pub cookies: bool,
    /// Whether packs keep the values of the cookies that responses set.
    #[serde(default)]
    pub record_set_cookie: bool,
    /// The stages, by name.
    #[serde(default)]
    pub stage: BTreeMap<StageName, StageConfig>,
}

fn one() -> u64 {
    1
}

fn max_dead_share() -> f64 {
    0.05
}

fn max_failures() -> u32 {
    5
}

fn max_body_mib() -> u32 {
    64
}

/// What a run claims to have seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CoverageConfig {
    /// Everything.
    #[default]
    Full,
    /// A part.
    Partial,
}

/// The table `[crawl.stage.<name>]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StageConfig {
    /// Within what a request is unique.
    #[serde(default)]
    pub key_scope: ScopeConfig,
    /// Smaller is sooner, within a host.
    #[serde(default)]
    pub priority: i64,
    /// Links of its pages that are followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub follow: Vec<FollowConfig>,
}

/// Within what the requests of a stage are unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeConfig {
    /// The run: each sweep of a day asks again.
    #[default]
    Run,
    /// The source and date: a later sweep of the day does not ask again.
    Date,
}

/// A rule of `follow`: which links lead where.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FollowConfig {
    /// The stage of what they lead to.
    pub stage: StageName,
    /// CSS selector of elements; their `href` (or the attribute after `::attr(...)`) is the link.
    pub css: String,
    /// Whether all pages of a run may be without such a link; else the closing is red.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_be_empty: bool,
    /// CSS selector of an element whose text holds how many links of this rule there are over all pages of
    /// the list (the first number in it); the closing is red where fewer came.
    pub total: Option<String>,
    /// Name of the group that `total` counts; `{url}` is the page's URL without its query. Default:
    /// the stage and that URL.
    pub group: Option<String>,
}

/// The table `[crawl]` of `lakebed.local.toml`: the usual limits, and those of a source or host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrawlLocal {
    /// `[crawl.usual]`: limits of all sources.
    #[serde(default)]
    pub usual: CrawlLimits,
    /// By source.
    #[serde(default)]
    pub source: BTreeMap<String, CrawlLimits>,
    /// By host.
    #[serde(default)]
    pub host: BTreeMap<String, HostLimits>,
}

/// Limits of this machine's configuration; what is absent is as usual.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrawlLimits {
    /// Requests under way in one process.
    pub workers: Option<u32>,
    /// Milliseconds between the beginnings of two requests to a host, over all workers.
    pub pause_ms: Option<u32>,
    /// Requests under way to a host, over all workers.
    pub places: Option<u32>,
    /// Pause before a second attempt, milliseconds; doubled with each failure.
    pub backoff_ms: Option<u32>,
    /// Seconds after which a `robots.txt` that could not be read is asked for again; doubled with each failure in a row.
    pub robots_retry_s: Option<u32>,
    /// Seconds that a whole fetch may take.
    pub timeout_s: Option<u32>,
    /// Seconds after which a silent worker has lost its requests.
    pub lease_s: Option<u32>,
    /// How many of the last requests the circuit breaker looks at.
    pub breaker_window: Option<u32>,
    /// Percent of them in trouble that stop the run.
    pub breaker_percent: Option<u32>,
    /// `http://`, `socks5://` or `socks5h://` URL of a proxy.
    pub proxy: Option<String>,
}

/// Limits of one host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostLimits {
    /// Milliseconds between the beginnings of two requests.
    pub pause_ms: Option<u32>,
    /// Requests under way.
    pub places: Option<u32>,
}

impl CrawlLocal {
    /// The limits of a source: its own before the usual ones.
    #[must_use]
    pub fn limits(&self, source: &str) -> CrawlLimits {
        let own = self.source.get(source).cloned().unwrap_or_default();
        let usual = &self.usual;
        CrawlLimits {
            workers: own.workers.or(usual.workers),
            pause_ms: own.pause_ms.or(usual.pause_ms),
            places: own.places.or(usual.places),
            backoff_ms: own.backoff_ms.or(usual.backoff_ms),
            robots_retry_s: own.robots_retry_s.or(usual.robots_retry_s),
            timeout_s: own.timeout_s.or(usual.timeout_s),
            lease_s: own.lease_s.or(usual.lease_s),
            breaker_window: own.breaker_window.or(usual.breaker_window),
            breaker_percent: own.breaker_percent.or(usual.breaker_percent),
            proxy: own.proxy.or_else(|| usual.proxy.clone()),
        }
    }
}

impl CrawlConfig {
    /// Checks what the types cannot say.
    pub(super) fn check(&self, file: &str) -> Result<()> {
        let refuse = |key: &str, what: String, hint: &str| {
            Err(Error::invalid(what)
                .with("file", file)
                .with("key", format!("crawl.{key}"))
                .hint(hint))
        };
        if self.hosts.is_empty() {
            return refuse(
                "hosts",
                "no host belongs to the source".to_owned(),
                "hosts = [\"rent.example\"]",
            );
        }
        if self.seeds.is_some() && !self.seed_command.is_empty() {
            return refuse(
                "seeds",
                "both a file and a command of seeds".to_owned(),
                "leave one of them out",
            );
        }
        if self.stage.is_empty() {
            return refuse(
                "stage",
                "the crawl has no stage".to_owned(),
                "[crawl.stage.list] declares one",
            );
        }
        if !(0.0..=1.0).contains(&self.max_dead_share) {
            let what = format!("`{}` is no share", self.max_dead_share);
            return refuse("max_dead_share", what, "a number from 0 to 1, such as 0.05");
        }
        let named = self.seed_stage.iter().map(|s| ("seed_stage".to_owned(), s));
        let followed = self.stage.iter().flat_map(|(name, stage)| {
            stage
                .follow
                .iter()
                .map(move |rule| (format!("stage.{name}.follow"), &rule.stage))
        });
        for (key, stage) in named.chain(followed) {
            if !self.stage.contains_key(stage) {
                let names: Vec<&str> = self.stage.keys().map(StageName::as_str).collect();
                let what = format!("there is no stage `{stage}`");
                return refuse(&key, what, &format!("stages are {}", names.join(", ")));
            }
        }
        Ok(())
    }

    /// The stage of a seed that names none.
    ///
    /// # Errors
    /// `InvalidInput` where several could be meant.
    pub fn default_stage(&self) -> Result<&StageName> {
        let only = (self.stage.len() == 1)
            .then(|| self.stage.keys().next())
            .flatten();
        self.seed_stage.as_ref().or(only).ok_or_else(|| {
            Error::invalid("a seed names no stage, and there are several")
                .hint("set `seed_stage` in the table [crawl], or write seeds as {\"stage\": ..., \"url\": ...}")
        })
    }

    /// Whether the host belongs to the source.
    #[must_use]
    pub fn has_host(&self, host: &str) -> bool {
        self.hosts
            .iter()
            .any(|pattern| match pattern.strip_prefix("*.") {
                Some(parent) => {
                    host == parent || host.strip_suffix(parent).is_some_and(|h| h.ends_with('.'))
                }
                None => host == pattern,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Result<CrawlConfig> {
        let config: CrawlConfig = crate::config::parse_toml(text, "source.toml")?;
        config.check("source.toml").map(|()| config)
    }

    const SMALL: &str = "user_agent = \"test/1 (+mailto:a@b.example)\"\nhosts = [\"*.rent.example\", \"img.example\"]\n[stage.list]\n";

    #[test]
    fn hosts_belong_by_name_or_below_a_star() {
        let config = config(SMALL).unwrap();
        for (host, belongs) in [
            ("rent.example", true),
            ("www.rent.example", true),
            ("notrent.example", false),
            ("img.example", true),
            ("a.img.example", false),
        ] {
            assert_eq!(config.has_host(host), belongs, "{host}");
        }
        assert_eq!(config.default_stage().unwrap().as_str(), "list");
    }

    #[test]
    fn what_cannot_be_is_refused_by_key() {
        for (text, key) in [
            (
                SMALL.replace("[\"*.rent.example\", \"img.example\"]", "[]"),
                "crawl.hosts",
            ),
            (
                format!("seed_stage = \"detail\"\n{SMALL}"),
                "crawl.seed_stage",
            ),
            (
                format!("max_dead_share = 1.5\n{SMALL}"),
                "crawl.max_dead_share",
            ),
            (
                format!("{SMALL}follow = [{{ stage = \"detail\", css = \"a\" }}]\n"),
                "crawl.stage.list.follow",
            ),
        ] {
            let error = config(&text).unwrap_err();
            assert!(
                error.context().iter().any(|(_, v)| v == key),
                "{text}: {error:?}"
            );
        }
        assert!(config("user_agent = \"a\"\nhosts = [\"a\"]\nrate = 5\n[stage.list]").is_err());
    }

    #[test]
    fn a_source_has_limits_of_its_own() {
        let text = "[usual]\npause_ms = 500\nworkers = 4\n[source.rentals]\npause_ms = 2000\n[host.\"a.example\"]\nplaces = 3\n";
        let local: CrawlLocal = crate::config::parse_toml(text, "lakebed.local.toml").unwrap();
        assert_eq!(
            (
                local.limits("rentals").pause_ms,
                local.limits("rentals").workers
            ),
            (Some(2000), Some(4))
        );
        assert_eq!(local.limits("other").pause_ms, Some(500));
        assert_eq!(local.host["a.example"].places, Some(3));
    }
}
