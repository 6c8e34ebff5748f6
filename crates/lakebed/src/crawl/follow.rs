//! The follow-ups of a page: by the parse rules of the source where they say which links are followed, else by
//! `follow` of the stage.
//!
//! ```text
//! [[parse.page.follow]]          -> parse_page -> follow-ups with priority, payload and group; totals
//! [crawl.stage.*] follow         -> LinkRules  -> links
//! ```
//! Both for one stage cannot be declared.
//!
//! CRL-1: what the rules reject of such a page may have cost a link, and nobody knows which: it becomes an
//! expectation that nothing fulfils, so that the run closes red.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::CrawlConfig;
use crate::crawl::links::{LinkRules, Page, group_name, request, rule_of_kind, rule_of_stage};
use crate::error::{Error, Result};
use crate::fetch::{BreakerSample, Capture};
use crate::name::StageName;
use crate::parse::{CommandParser, PageInput, Rules, parse_page};
use crate::queue::{DoneSpec, Expectation, LinkSeen, NewRequest};
use crate::spec::{
    BodyMark, CanonicalUrl, CaptureRecord, Datum, FollowUp, ParsedPage, QueryOrder, RunKey,
};

/// Bodies longer than this are looked through on a thread of their own.
const INLINE_BYTES: usize = 256 * 1024;

/// Finds the follow-ups of a run's pages.
#[derive(Debug, Clone)]
pub(super) struct Follower {
    run: RunKey,
    config: Arc<CrawlConfig>,
    links: Arc<LinkRules>,
    rules: Option<Arc<Rules>>,
    /// The source's folder: commands run there.
    folder: PathBuf,
    /// Programs that wait for their next page, by the name of their rule.
    idle: Arc<Mutex<BTreeMap<String, Vec<CommandParser>>>>,
    /// Whether requests of other stages than the page's come in an order that says nothing.
    is_spread: bool,
}

/// A success with its follow-ups, and what the page says to the breaker.
pub(super) struct Followed {
    pub(super) done: DoneSpec,
    /// `None` = nothing beyond that it came.
    pub(super) sample: Option<BreakerSample>,
}

impl Follower {
    /// By what is configured for the run.
    ///
    /// # Errors
    /// `InvalidInput` for a selector that is none.
    pub(super) fn new(
        run: &RunKey,
        config: &CrawlConfig,
        (rules, folder): (Option<&Arc<Rules>>, &Path),
    ) -> Result<Self> {
        Ok(Self {
            run: run.clone(),
            config: Arc::new(config.clone()),
            links: Arc::new(LinkRules::new(config)?),
            rules: rules.cloned(),
            folder: folder.to_owned(),
            idle: Arc::default(),
            is_spread: false,
        })
    }

    /// Of what a page of another stage leads to, a few are to tell of all: they come in an order that says nothing, the same
    /// each time, instead of the first of the first page.
    #[must_use]
    pub(super) fn spread(self) -> Self {
        Self {
            is_spread: true,
            ..self
        }
    }

    /// A success that this capture answers.
    ///
    /// # Errors
    /// Where a program that parses pages cannot be started.
    pub(super) async fn follow(&self, stage: &StageName, capture: &Capture) -> Result<Followed> {
        let record = &capture.record;
        let by_rules = self
            .rules
            .as_ref()
            .filter(|rules| rules.is_followed(record));
        let is_command = by_rules.is_some_and(|rules| rules.command_of(record).is_some());
        if capture.body.len() <= INLINE_BYTES && !is_command {
            return self.look(stage, capture);
        }
        let (own, stage, capture) = (self.clone(), stage.clone(), capture.clone());
        let looked = tokio::task::spawn_blocking(move || own.look(&stage, &capture)).await;
        looked.map_err(|e| Error::internal("look through a page").caused_by(e))?
    }

    fn look(&self, stage: &StageName, capture: &Capture) -> Result<Followed> {
        let record = &capture.record;
        let rules = self
            .rules
            .as_ref()
            .filter(|rules| rules.is_followed(record));
        let (followed, sample) = match rules {
            Some(rules) => {
                let parsed = self.parse(rules, capture)?;
                let is_command = rules.command_of(record).is_some();
                let is_rejected = parsed.is_rejected();
                let lost = match is_command {
                    // What a program rejects may be anything; a page that it could not read is one lost.
                    true => u64::from(is_rejected),
                    false => parsed.lost_links(),
                };
                let is_barren = lost > 0 && parsed.follow_ups.is_empty();
                let sample = is_barren.then_some(BreakerSample::Trouble);
                (self.done_of(parsed, lost), sample)
            }
            None => (self.links_of(stage, capture), None),
        };
        let mut followed = followed;
        let others = followed.children.iter_mut();
        for child in others.filter(|child| self.is_spread && child.stage != *stage) {
            child.priority = spread_of(&child.url);
        }
        let done = DoneSpec {
            capture: Some(record.capture_id.clone()),
            status: record.status,
            body: record.body_sha256.as_ref().and_then(BodyMark::of),
            links: self.links_seen(stage, record, &followed.children),
            ..followed
        };
        Ok(Followed { done, sample })
    }

    /// The rules that looked for links on the page, and whether each found one.
    pub(super) fn links_seen(
        &self,
        stage: &StageName,
        record: &CaptureRecord,
        children: &[NewRequest],
    ) -> Vec<LinkSeen> {
        let seen = |rule: String, to: &StageName| LinkSeen {
            rule,
            is_hit: children.iter().any(|child| child.stage == *to),
        };
        let rules = self.rules.as_ref().filter(|r| r.is_followed(record));
        if let Some((kind, stages)) = rules.and_then(|rules| rules.stages_from(record)) {
            let told = stages.into_iter();
            return told.map(|to| seen(rule_of_kind(kind, to), to)).collect();
        }
        let declared = self.config.stage.get(stage).map(|s| s.follow.as_slice());
        let stages: BTreeSet<&StageName> = declared
            .unwrap_or_default()
            .iter()
            .map(|f| &f.stage)
            .collect();
        let told = stages.into_iter();
        told.map(|to| seen(rule_of_stage(stage, to), to)).collect()
    }

    fn parse(&self, rules: &Rules, capture: &Capture) -> Result<ParsedPage> {
        let input = PageInput {
            run: &self.run,
            capture: &capture.record,
            body: &capture.body,
        };
        let Some((name, config)) = rules.command_of(&capture.record) else {
            return Ok(parse_page(rules, &input));
        };
        let idle = self.idle().get_mut(name).and_then(Vec::pop);
        let mut parser = idle.unwrap_or_else(|| CommandParser::new(config, &self.folder));
        let parsed = parser.parse(name, &input)?;
        self.idle().entry(name.to_owned()).or_default().push(parser);
        Ok(parsed)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<CommandParser>>> {
        // What is inside is whole after every statement.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the rules found, as requests.
    fn done_of(&self, parsed: ParsedPage, mut lost: u64) -> DoneSpec {
        let mut done = DoneSpec {
            announced: parsed.follow_ups.len() as u64 + parsed.other_links,
            ..DoneSpec::default()
        };
        for found in parsed.follow_ups {
            if !self.config.stage.contains_key(&found.stage) {
                lost += 1;
                continue;
            }
            done.children.extend(self.request_of(found));
        }
        for told in parsed.expectations {
            done.expects.push(Expectation {
                group: group_name(&told.group),
                expected: told.at_least.unwrap_or(told.expected),
            });
        }
        if lost > 0 {
            done.expects.push(Expectation {
                group: group_name(&format!("links that the rules reject on {}", parsed.url)),
                expected: lost,
            });
        }
        done
    }

    /// `None` where it leads out of the source.
    fn request_of(&self, found: FollowUp) -> Option<NewRequest> {
        let url = CanonicalUrl::parse(&found.url, QueryOrder::Kept).ok()?;
        if !self.config.has_host(url.host()) {
            return None;
        }
        let mut new = request(&self.config, &found.stage, &url, found.group);
        new.priority = found.priority.unwrap_or(new.priority);
        new.carry = found.payload.as_ref().map(Datum::to_json);
        Some(new)
    }

    /// The links that `follow` of the stage names.
    fn links_of(&self, stage: &StageName, capture: &Capture) -> DoneSpec {
        let record = &capture.record;
        let text = record.charset.as_ref().map(|charset| {
            let encoding = encoding_rs::Encoding::for_label(charset.name.as_bytes())
                .unwrap_or(encoding_rs::UTF_8);
            encoding.decode(&capture.body).0
        });
        match CanonicalUrl::parse(&record.url, QueryOrder::Kept) {
            Ok(url) => self.links.follow(&Page {
                stage,
                url: &url,
                text: text.as_deref(),
            }),
            Err(_) => DoneSpec::default(),
        }
    }
}

/// Where a request stands among others, by its address alone; 0 to 65,535.
fn spread_of(url: &str) -> i64 {
    let [one, other, ..] = *blake3::hash(url.as_bytes()).as_bytes();
    i64::from(u16::from_be_bytes([one, other]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SourceConfig;
    use crate::name::RequestKey;
    use crate::spec::{CharsetOrigin, CharsetSpec, RawText, Truncated, capture_id};
    use crate::time::Instant;

    const SOURCE: &str = r#"class = "log"
[crawl]
user_agent = "test/1"
hosts = ["a.test"]
stage.list.priority = 5
stage.detail.priority = 7
[[parse.page]]
stage = "list"
[[parse.page.follow]]
stage = "detail"
each = "li"
url = "a::attr(href)"
priority = -2
payload.price = { css = "b::text", clean = ["int"], required = true }
total = { css = "i::text", clean = ["int"] }
min_share = 0.9
[[parse.page.follow]]
stage = "list"
url = "a.next::attr(href)"
"#;

    async fn follow(url: &str, html: &str) -> Followed {
        let source: crate::name::SourceName = "shop".parse().unwrap();
        let config = SourceConfig::parse(&source, SOURCE, "source.toml").unwrap();
        let rules = Arc::new(Rules::read(&config, "source.toml").unwrap());
        let run = RunKey {
            source,
            date: "2026-11-30".parse().unwrap(),
            run: "day".parse().unwrap(),
        };
        let key = RequestKey::of(url.as_bytes());
        let capture = Capture {
            record: CaptureRecord {
                capture_id: capture_id(&run, &key, 1, 0),
                request_key: key,
                attempt: 1,
                hop: 0,
                kind: "list".parse().unwrap(),
                method: "GET".to_owned(),
                url: url.to_owned(),
                fetched_at: Instant::from_micros(0),
                status: Some(200),
                http_version: None,
                remote_ip: None,
                request_head: RawText::default(),
                request_body: None,
                response_head: RawText::default(),
                content_type: None,
                charset: Some(CharsetSpec {
                    name: "utf-8".to_owned(),
                    from: CharsetOrigin::Detected,
                }),
                removed_encodings: Vec::new(),
                wire_len: 0,
                body_len: html.len() as u64,
                body_sha256: None,
                truncated: Truncated::None,
                error: None,
            },
            body: html.to_owned().into(),
        };
        let by = (Some(&rules), Path::new(""));
        let follower = Follower::new(&run, &config.crawl.unwrap(), by).unwrap();
        follower
            .follow(&"list".parse().unwrap(), &capture)
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_request_has_what_the_rule_says_and_else_what_its_stage_says() {
        let html = "<i>21</i><li><a href=/d/1>1</a><b>10</b><li><a href=http://b.test/>2</a><b>20</b>\
                    <li><a href=mailto:x@y>m</a><b>30</b><a class=next href='?page=2'>n</a>";
        let followed = follow("http://a.test/list?page=1", html).await;
        let done = followed.done;
        assert_eq!(followed.sample, None);
        // One leads elsewhere, one is no address: announced, and out of scope.
        assert_eq!((done.announced, done.children.len()), (5, 3));
        let first = &done.children[0];
        assert_eq!(
            (first.url.as_str(), first.priority),
            ("http://a.test/d/1", -2)
        );
        assert_eq!(first.carry.as_deref(), Some("{\"price\":10}"));
        assert_eq!(first.group.as_deref(), Some("detail http://a.test/list"));
        let next = done.children.last().unwrap();
        assert_eq!(
            (next.priority, next.carry.as_deref(), &next.group),
            (5, None, &None)
        );
        let expected = Expectation {
            group: "detail http://a.test/list".to_owned(),
            expected: 18,
        };
        assert_eq!(done.expects, [expected]);
    }

    #[tokio::test]
    async fn what_the_rules_reject_is_expected_and_never_comes() {
        let followed = follow("http://a.test/list", "<li><a href=/d/1>1</a><b>ten</b>").await;
        assert_eq!(followed.done.children, []);
        assert_eq!(followed.sample, Some(BreakerSample::Trouble));
        let told = &followed.done.expects[0];
        assert_eq!(told.expected, 1);
        assert_eq!(
            told.group,
            "links that the rules reject on http://a.test/list"
        );
        // A name that is too long for the queue is cut, and still one of its own.
        let long = |n: u8| format!("http://a.test/{}{n}", "列".repeat(200));
        let mut groups = Vec::new();
        for n in [1, 2] {
            let followed = follow(&long(n), "<li><a href=/d/1>1</a><b>ten</b>").await;
            groups.push(followed.done.expects[0].group.clone());
        }
        assert!(groups.iter().all(|g| g.len() <= 255), "{groups:?}");
        assert_ne!(groups[0], groups[1]);
    }
}
