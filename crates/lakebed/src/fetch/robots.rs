//! `robots.txt` by RFC 9309: which paths of an origin a crawler stays away from.
//!
//! FET-6: where `robots.txt` cannot be read, nothing is allowed; where it can be, the longest rule decides,
//! and of two as long the one that allows.
//!
//! ```text
//! User-agent: a      \  one group: agents in a row, then rules; groups of one agent are merged;
//! User-agent: b       | other lines (Sitemap, Crawl-delay, unknown ones) do not end it
//! Disallow: /x       /
//! ```
//! What does not belong here: fetching it (`fetcher`), and where its text is kept ([`RobotsState`]).

mod matching;

use std::time::Duration;

use crate::spec::{CanonicalUrl, RobotsContent, RobotsState};

/// Most bytes of a `robots.txt` that are read; rules behind them do not count.
pub(super) const MAX_ROBOTS_BYTES: u64 = 500 * 1024;

/// What `robots.txt` says to one URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RobotsVerdict {
    /// It may be fetched.
    Allowed,
    /// It may not.
    Disallowed,
    /// Not until `robots.txt` can be read.
    Unreachable,
}

/// The rules that apply to one crawler at one origin.
#[derive(Debug, Clone, PartialEq)]
pub struct RobotsRules {
    rules: Vec<Rule>,
    crawl_delay: Option<f64>,
    is_unreachable: bool,
}

/// A path pattern in the form that paths are compared in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    allows: bool,
    pattern: Vec<u8>,
}

/// Lines between two lists of agents.
#[derive(Debug, Default)]
struct Group {
    agents: Vec<Agent>,
    rules: Vec<Rule>,
}

/// An agent of a group. `Crawl-delay` is for those that stand above it.
#[derive(Debug)]
struct Agent {
    token: String,
    crawl_delay: Option<f64>,
}

impl RobotsRules {
    /// The rules of a text for the crawler with this product token, whatever its case.
    #[must_use]
    pub fn parse(text: &str, token: &str) -> Self {
        let groups = groups(text);
        let of = |wanted: &str| -> Vec<(&Group, &Agent)> {
            let pairs = groups
                .iter()
                .flat_map(|g| g.agents.iter().map(move |a| (g, a)));
            pairs
                .filter(|(_, a)| a.token.eq_ignore_ascii_case(wanted))
                .collect()
        };
        let own = of(token);
        let chosen = if own.is_empty() { of("*") } else { own };
        Self {
            rules: chosen
                .iter()
                .flat_map(|(group, _)| group.rules.iter().cloned())
                .collect(),
            crawl_delay: (chosen.iter().filter_map(|(_, agent)| agent.crawl_delay))
                .reduce(f64::max),
            is_unreachable: false,
        }
    }

    /// The rules of what is stored of an origin. Whether it is still fresh is the caller's question.
    #[must_use]
    pub fn of(state: &RobotsState, token: &str) -> Self {
        match &state.content {
            RobotsContent::Text { text } => Self::parse(text, token),
            RobotsContent::Absent => Self::parse("", token),
            RobotsContent::Unreachable { .. } => Self {
                is_unreachable: true,
                ..Self::parse("", token)
            },
        }
    }

    /// Whether a URL of the origin may be fetched. `/robots.txt` itself always may.
    #[must_use]
    pub fn verdict(&self, url: &CanonicalUrl) -> RobotsVerdict {
        let target = url.path_and_query();
        if target == "/robots.txt" {
            return RobotsVerdict::Allowed;
        }
        if self.is_unreachable {
            return RobotsVerdict::Unreachable;
        }
        let path = matching::normalize(target.as_bytes());
        let longest = (self.rules.iter())
            .filter(|rule| matching::matches(&rule.pattern, &path))
            .max_by_key(|rule| (rule.pattern.len(), rule.allows));
        match longest {
            Some(rule) if !rule.allows => RobotsVerdict::Disallowed,
            _ => RobotsVerdict::Allowed,
        }
    }

    /// `Crawl-delay`, which is no part of the RFC and widely meant, at most `max`; `None` if there is none
    /// or it is no number.
    #[must_use]
    pub fn crawl_delay(&self, max: Duration) -> Option<Duration> {
        let seconds = self.crawl_delay?;
        Some(Duration::try_from_secs_f64(seconds).map_or(max, |delay| delay.min(max)))
    }
}

fn groups(text: &str) -> Vec<Group> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut groups: Vec<Group> = Vec::new();
    let mut lists_agents = false;
    for line in text.split(['\r', '\n']) {
        let Some((key, value)) = key_and_value(line) else {
            continue;
        };
        if key.eq_ignore_ascii_case("user-agent") {
            if !lists_agents {
                groups.push(Group::default());
            }
            lists_agents = true;
            if let Some(group) = groups.last_mut() {
                group.agents.push(Agent {
                    token: agent_token(value),
                    crawl_delay: None,
                });
            }
            continue;
        }
        // Rules before the first agent are nobody's.
        let Some(group) = groups.last_mut() else {
            continue;
        };
        let allows = key.eq_ignore_ascii_case("allow");
        if allows || key.eq_ignore_ascii_case("disallow") {
            lists_agents = false;
            // An empty rule says nothing: "Disallow:" allows everything.
            if !value.is_empty() {
                let pattern = matching::normalize(value.as_bytes());
                group.rules.push(Rule { allows, pattern });
            }
        } else if key.eq_ignore_ascii_case("crawl-delay") {
            let seconds = value
                .parse::<f64>()
                .ok()
                .filter(|s| s.is_finite() && *s >= 0.0);
            for agent in &mut group.agents {
                agent.crawl_delay = seconds.or(agent.crawl_delay);
            }
        }
    }
    groups
}

/// Key and value of a line without its comment; `None` for a line that is none.
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let line = line.split('#').next().unwrap_or_default();
    let (key, value) = line.split_once(':')?;
    Some((key.trim(), value.trim()))
}

/// The product token of an agent line: `*`, or its leading letters, `-` and `_`.
fn agent_token(value: &str) -> String {
    if value == "*" || value.starts_with("* ") {
        return "*".to_owned();
    }
    value
        .chars()
        .take_while(|c| c.is_ascii_alphabetic() || matches!(c, '-' | '_'))
        .collect()
}

#[cfg(test)]
mod tests;
