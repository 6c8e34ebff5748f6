//! Links of a page that are followed, by the rules of its stage.
//!
//! Pure: a capture's body in, follow-up requests out. What a rule finds twice on a page is one link. A link
//! that leads out of the source, or is no address, is announced and out of scope.

use std::collections::BTreeSet;

use scraper::Html;

use crate::config::{CrawlConfig, ScopeConfig};
use crate::error::{Error, Result};
use crate::name::{ContentHash, StageName};
use crate::parse::{Selector, read_html};
use crate::queue::{DoneSpec, Expectation, KeyScope, NewRequest};
use crate::spec::{CanonicalUrl, QueryOrder};

/// Longest name of a group in the queue.
const MAX_GROUP_BYTES: usize = 255;

/// The rules of all stages, with their selectors read.
#[derive(Debug, Clone)]
pub struct LinkRules {
    config: CrawlConfig,
    rules: Vec<(StageName, LinkRule)>,
}

#[derive(Debug, Clone)]
struct LinkRule {
    stage: StageName,
    selector: Selector,
    attribute: String,
    total: Option<Selector>,
    group: Option<String>,
}

/// A page whose links are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Page<'a> {
    /// Its stage.
    pub stage: &'a StageName,
    /// Where it was found, redirects followed: links are relative to it.
    pub url: &'a CanonicalUrl,
    /// Its text; absent for what is no text.
    pub text: Option<&'a str>,
}

impl LinkRules {
    /// Reads the selectors.
    ///
    /// # Errors
    /// `InvalidInput` for one that is none.
    pub fn new(config: &CrawlConfig) -> Result<Self> {
        let mut rules = Vec::new();
        for (stage, declared) in &config.stage {
            for rule in &declared.follow {
                let key = format!("crawl.stage.{stage}.follow");
                let (css, attribute) = split_attribute(&rule.css);
                rules.push((
                    stage.clone(),
                    LinkRule {
                        stage: rule.stage.clone(),
                        selector: selector(css, &key)?,
                        attribute: attribute.to_owned(),
                        total: rule
                            .total
                            .as_deref()
                            .map(|css| selector(css, &key))
                            .transpose()?,
                        group: rule.group.clone(),
                    },
                ));
            }
        }
        Ok(Self {
            config: config.clone(),
            rules,
        })
    }

    /// The follow-ups of a page and what it says there must be.
    #[must_use]
    pub fn follow(&self, page: &Page<'_>) -> DoneSpec {
        let mut done = DoneSpec::default();
        let mut rules = self
            .rules
            .iter()
            .filter(|(stage, _)| stage == page.stage)
            .peekable();
        let Some(text) = page.text.filter(|_| rules.peek().is_some()) else {
            return done;
        };
        let html = match read_html(text) {
            Ok(html) => html,
            // What it links to nobody knows (CRL-1).
            Err(why) => {
                let group = format!("links of {}: {why}", page.url.as_str());
                done.expects.push(lost_link(&group));
                return done;
            }
        };
        let base = base_of(&html, page.url);
        for (_, rule) in rules {
            self.apply(rule, page, &html, &base, &mut done);
        }
        done
    }

    fn apply(
        &self,
        rule: &LinkRule,
        page: &Page<'_>,
        html: &Html,
        base: &CanonicalUrl,
        done: &mut DoneSpec,
    ) {
        let total = rule
            .total
            .as_ref()
            .and_then(|selector| first_number(html, selector));
        let group = (rule.total.is_some() || rule.group.is_some()).then(|| group_of(rule, page));
        let mut seen = BTreeSet::new();
        for element in rule.selector.select(html) {
            let Some(link) = element.value().attr(&rule.attribute).map(str::trim) else {
                continue;
            };
            if link.starts_with('#') || !seen.insert(link.to_owned()) {
                continue;
            }
            done.announced += 1;
            // What is no address, or not of this source, is announced and not brought.
            let Ok(url) = base.join(link, QueryOrder::Kept) else {
                continue;
            };
            if self.config.has_host(url.host()) {
                done.children
                    .push(request(&self.config, &rule.stage, &url, group.clone()));
            }
        }
        if let (Some(expected), Some(group)) = (total, group) {
            let group = group_name(&group);
            done.expects.push(Expectation { group, expected });
        }
    }
}

/// A `GET` of the stage, as its configuration says.
pub(super) fn request(
    config: &CrawlConfig,
    stage: &StageName,
    url: &CanonicalUrl,
    group: Option<String>,
) -> NewRequest {
    let declared = config.stage.get(stage).cloned().unwrap_or_default();
    NewRequest {
        priority: declared.priority,
        group: group.as_deref().map(group_name),
        scope: match declared.key_scope {
            ScopeConfig::Run => KeyScope::Run,
            ScopeConfig::Date => KeyScope::Date,
        },
        ..NewRequest::get(stage.clone(), url.as_str())
    }
}

/// An expectation that nothing fulfils: a link that was there is lost, so the run closes red.
fn lost_link(group: &str) -> Expectation {
    let group = group_name(group);
    Expectation { group, expected: 1 }
}

/// The name of the rules that lead from a kind of pages to a stage.
pub(super) fn rule_of_kind(kind: &str, to: &StageName) -> String {
    group_name(&format!("page {kind} > {to}"))
}

/// The name of the rules of a stage's `follow` that lead to a stage.
pub(super) fn rule_of_stage(from: &StageName, to: &StageName) -> String {
    group_name(&format!("stage {from} > {to}"))
}

/// The name under which requests are counted: as it was told, or, where that is too long for the queue, its beginning and
/// a hash of all of it.
pub(super) fn group_name(told: &str) -> String {
    if told.len() <= MAX_GROUP_BYTES {
        return told.to_owned();
    }
    let hash = ContentHash::of(told.as_bytes());
    let end = told.floor_char_boundary(MAX_GROUP_BYTES - 17);
    format!("{} {}", &told[..end], hash.short())
}

fn selector(css: &str, key: &str) -> Result<Selector> {
    Selector::parse(css)
        .map_err(|e| Error::invalid(format!("`{css}` is no CSS selector: {e}")).with("key", key))
}

/// `a.item::attr(data-url)` is the selector `a.item` and the attribute `data-url`.
fn split_attribute(css: &str) -> (&str, &str) {
    let split = css
        .split_once("::attr(")
        .and_then(|(css, rest)| Some((css, rest.strip_suffix(')')?)));
    split.unwrap_or((css, "href"))
}

/// What relative links of the page are relative to.
fn base_of(html: &Html, url: &CanonicalUrl) -> CanonicalUrl {
    let base = Selector::parse("base[href]").ok();
    let href = base.and_then(|s| {
        s.select(html)
            .next()?
            .value()
            .attr("href")
            .map(str::to_owned)
    });
    href.and_then(|h| url.join(&h, QueryOrder::Kept).ok())
        .unwrap_or_else(|| url.clone())
}

/// The first number in the text of the first such element: `共 1,042 筆` is 1042.
fn first_number(html: &Html, selector: &Selector) -> Option<u64> {
    let text: String = selector.select(html).next()?.text().collect();
    let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, ',' | '\u{ff0c}' | '_'))
        .unwrap_or(digits.len());
    let number: String = digits[..end].chars().filter(char::is_ascii_digit).collect();
    number.parse().ok()
}

fn group_of(rule: &LinkRule, page: &Page<'_>) -> String {
    let url = page.url.as_str().split('?').next().unwrap_or_default();
    match &rule.group {
        Some(name) => name.replace("{url}", url),
        None => format!("{} {url}", rule.stage),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "
        user_agent = 'test/1'
        hosts = ['a.test']
        [stage.detail]
        key_scope = 'date'
        [stage.list]
        follow = [
            { stage = 'detail', css = 'a.item', total = '.total' },
            { stage = 'list', css = 'a[data-next]::attr(data-next)' },
            { stage = 'list', css = 'a:contains(下一頁)' },
        ]";

    #[test]
    fn a_link_is_known_by_its_text() {
        let done = follow("<a href='?page=2'><b>下一</b>頁 »</a><a href='?page=0'>上一頁</a>");
        let urls: Vec<_> = done.children.iter().map(|c| c.url.as_str()).collect();
        let here = CanonicalUrl::parse("http://a.test/list/台北?page=2", QueryOrder::Kept);
        assert_eq!(urls, [here.unwrap().as_str()]);
    }

    fn follow(html: &str) -> DoneSpec {
        let config: CrawlConfig = crate::config::parse_toml(CONFIG, "source.toml").unwrap();
        let rules = LinkRules::new(&config).unwrap();
        let url = CanonicalUrl::parse("http://a.test/list/台北?page=1", QueryOrder::Kept).unwrap();
        rules.follow(&Page {
            stage: &"list".parse().unwrap(),
            url: &url,
            text: Some(html),
        })
    }

    #[test]
    fn links_are_followed_by_their_rules() {
        let done = follow(
            "<p class=total>共 1,042 筆</p><a class=item href='/d/1'>1</a><a class='item big' href='../d/2?x=1#top'>2</a>\
             <a class=item href='/d/1'>again</a><a class=item href='#top'>top</a><a href='/about'>about</a>\
             <a class=item href='http://b.test/d/3'>elsewhere</a><a class=item href='mailto:x@y'>mail</a>\
             <a data-next='?page=2'>next</a>",
        );
        let urls: Vec<&str> = done.children.iter().map(|c| c.url.as_str()).collect();
        assert_eq!(
            urls,
            [
                "http://a.test/d/1",
                "http://a.test/d/2?x=1",
                "http://a.test/list/%E5%8F%B0%E5%8C%97?page=2"
            ]
        );
        assert_eq!(done.announced, 5);
        assert_eq!(
            (done.children[0].scope, done.children[2].scope),
            (KeyScope::Date, KeyScope::Run)
        );
        let group = "detail http://a.test/list/%E5%8F%B0%E5%8C%97";
        assert_eq!(
            done.expects,
            [Expectation {
                group: group.into(),
                expected: 1042
            }]
        );
        assert_eq!(done.children[0].group.as_deref(), Some(group));
        assert_eq!(done.children[2].group, None);
    }

    #[test]
    fn a_base_element_moves_links() {
        let done = follow("<base href='/other/'><a class=item href='x'>x</a>");
        assert_eq!(done.children[0].url, "http://a.test/other/x");
    }

    #[test]
    fn rubbish_gives_no_links() {
        for html in ["", "<", "<a class=item>", "\u{0}<a class=item href>"] {
            let done = follow(html);
            assert!(
                done.children.len() <= 1 && done.expects.is_empty(),
                "{html:.20}"
            );
        }
        // What is too deep to look through may have had links.
        let deep = "<div>".repeat(200_000) + "<a class=item href=x>";
        let done = follow(&deep);
        assert_eq!((done.announced, done.children.len()), (0, 0));
        assert_eq!(done.expects.len(), 1);
        assert!(
            done.expects[0].group.contains("nested deeper"),
            "{:?}",
            done.expects
        );
        let bad = CONFIG.replace("a.item", "a..item");
        let config: CrawlConfig = crate::config::parse_toml(&bad, "source.toml").unwrap();
        assert!(
            LinkRules::new(&config)
                .unwrap_err()
                .message()
                .contains("a..item")
        );
    }
}
