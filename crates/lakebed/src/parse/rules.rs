//! The rules of a source.
//!
//! PRS-1: they are read and checked as a whole before the first page.

use std::collections::BTreeSet;

use regex::Regex;

use crate::config::{CommandConfig, ItemConfig, PageConfig, ParseFollowConfig, SourceConfig};
use crate::error::{Error, Result};
use crate::name::{ContentHash, DatasetName, StageName};
use crate::parse::field::{At, Field, Scope, Shape, Source, read_each, read_field, read_fields};
use crate::parse::steps::Step;
use crate::spec::CaptureRecord;

/// Raised when equal rules give other rows than before.
const RULES_VERSION: u32 = 1;

/// What the pages of a source give.
#[derive(Debug, Clone)]
pub struct Rules {
    pub(super) pages: Vec<PageRule>,
    hash: ContentHash,
}

/// A kind of pages.
#[derive(Debug, Clone)]
pub(super) struct PageRule {
    pub(super) name: String,
    stage: Option<StageName>,
    url: Option<Regex>,
    status: Vec<u16>,
    pub(super) items: Vec<ItemRule>,
    pub(super) follows: Vec<FollowRule>,
    pub(super) command: Option<CommandConfig>,
}

/// Where to look one by one; absent = in the page as a whole.
pub(super) type Each = Option<(Source, Vec<Step>)>;

/// Records of one dataset.
#[derive(Debug, Clone)]
pub(super) struct ItemRule {
    pub(super) dataset: DatasetName,
    pub(super) each: Each,
    pub(super) min: u64,
    pub(super) key: Vec<String>,
    pub(super) fields: Vec<Field>,
}

/// Links that become requests.
#[derive(Debug, Clone)]
pub(super) struct FollowRule {
    pub(super) stage: StageName,
    pub(super) may_be_empty: bool,
    pub(super) each: Each,
    pub(super) url: Field,
    pub(super) priority: Option<i64>,
    pub(super) payload: Vec<Field>,
    pub(super) total: Option<Field>,
    pub(super) min_share: Option<f64>,
    pub(super) group: Option<String>,
}

impl Rules {
    /// Reads the rules of a source; `file` names it in errors.
    ///
    /// # Errors
    /// `NotFound` where it has none; `InvalidInput` with the key and what is wrong.
    pub fn read(source: &SourceConfig, file: &str) -> Result<Self> {
        let config = source.parse.as_ref().filter(|p| !p.page.is_empty());
        let config = config.ok_or_else(|| {
            Error::not_found(format!("source `{}` has no parse rules", source.name))
                .with("file", file)
                .hint("[[parse.page]] begins one: docs/parse.md")
        })?;
        let mut pages: Vec<PageRule> = Vec::new();
        for (n, page) in config.page.iter().enumerate() {
            let key = format!("parse.page[{}]", n + 1);
            let rule = read_page(
                page,
                n,
                source,
                &At {
                    file,
                    key: key.clone(),
                },
            )?;
            if pages.iter().any(|p| p.name == rule.name) {
                return Err(At {
                    file,
                    key: format!("{key}.name"),
                }
                .refuse(
                    format!("two pages are called `{}`", rule.name),
                    "name = \"...\"",
                ));
            }
            pages.push(rule);
        }
        let text = serde_json::to_vec(&config.page)
            .map_err(|e| Error::internal("write the rules as JSON").caused_by(e))?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("parse rules/{RULES_VERSION}\n{}\n", source.name).as_bytes());
        hasher.update(&text);
        let hash = ContentHash::finish(&hasher);
        Ok(Self { pages, hash })
    }

    /// Names the rules: equal rules give equal rows. Comments and layout do not count.
    #[must_use]
    pub fn hash(&self) -> &ContentHash {
        &self.hash
    }

    /// The names of the kinds of pages, in their order.
    #[must_use]
    pub fn page_names(&self) -> Vec<String> {
        self.pages.iter().map(|p| p.name.clone()).collect()
    }

    /// Every dataset that the rules and their commands give records of, sorted.
    #[must_use]
    pub fn datasets(&self) -> Vec<DatasetName> {
        let items = self.pages.iter().flat_map(|p| &p.items);
        let mut names: Vec<_> = items.map(|i| i.dataset.clone()).collect();
        let commands = self.pages.iter().filter_map(|p| p.command.as_ref());
        names.extend(commands.flat_map(|c| c.datasets.clone()));
        names.sort();
        names.dedup();
        names
    }

    /// The datasets that a kind of pages gives records of, by its name; none for a name that is not there.
    #[must_use]
    pub fn datasets_of(&self, page: &str) -> Vec<DatasetName> {
        let mut names = Vec::new();
        if let Some(page) = self.pages.iter().find(|p| p.name == page) {
            names.extend(page.items.iter().map(|i| i.dataset.clone()));
            names.extend(page.command.iter().flat_map(|c| c.datasets.clone()));
        }
        names.sort();
        names.dedup();
        names
    }

    /// Which kind of pages leads to which stage, where every run must have a link: (kind, stage of the pages or any, stage
    /// of the link). Kinds of pages that a stage alone does not tell say nothing here.
    #[must_use]
    pub fn links(&self) -> Vec<(&str, Option<StageName>, StageName)> {
        let told = |p: &&PageRule| p.url.is_none() && p.status.is_empty();
        let pages = self.pages.iter().filter(told);
        pages
            .flat_map(|page| {
                let needed = page.follows.iter().filter(|f| !f.may_be_empty);
                needed.map(|f| (page.name.as_str(), page.stage.clone(), f.stage.clone()))
            })
            .collect()
    }

    /// The kind of a page whose links are followed by rules, and the stages to which they lead. Of a kind of any stage,
    /// pages of the same stage aside: they are further pages of one list, and a list may have one.
    #[must_use]
    pub fn stages_from(&self, capture: &CaptureRecord) -> Option<(&str, BTreeSet<&StageName>)> {
        let page = self.page_of(capture)?;
        let stages = page.follows.iter().map(|f| &f.stage);
        let is_told = |stage: &&StageName| page.stage.is_some() || **stage != capture.kind;
        Some((&page.name, stages.filter(is_told).collect()))
    }

    /// Whether the page is of a kind whose links are followed.
    #[must_use]
    pub fn is_followed(&self, capture: &CaptureRecord) -> bool {
        self.page_of(capture).is_some_and(|page| {
            let by_command = page.command.as_ref().is_some_and(|c| c.follow);
            by_command || !page.follows.is_empty()
        })
    }

    /// The program that parses a page, and the name of its rule; `None` where the rules do it themselves.
    #[must_use]
    pub fn command_of(&self, capture: &CaptureRecord) -> Option<(&str, &CommandConfig)> {
        let page = self.page_of(capture)?;
        Some((&page.name, page.command.as_ref()?))
    }

    /// The first kind of pages that fits.
    pub(super) fn page_of(&self, capture: &CaptureRecord) -> Option<&PageRule> {
        self.pages.iter().find(|page| page.fits(capture))
    }
}

impl PageRule {
    fn fits(&self, capture: &CaptureRecord) -> bool {
        let Some(status) = capture.status else {
            return false;
        };
        let is_status = match self.status.is_empty() {
            true => (200..300).contains(&status),
            false => self.status.contains(&status),
        };
        is_status
            && self.stage.as_ref().is_none_or(|s| *s == capture.kind)
            && self.url.as_ref().is_none_or(|u| u.is_match(&capture.url))
    }

    /// Whether something looks into the page as HTML.
    pub(super) fn reads_html(&self) -> bool {
        let each = |e: &Each| e.as_ref().is_some_and(|(source, _)| is_html(source));
        let mut items = self.items.iter();
        let mut follows = self.follows.iter();
        items.any(|i| each(&i.each) || i.fields.iter().any(is_html_field))
            || follows.any(|f| {
                let fields = f.payload.iter().chain(&f.total);
                each(&f.each) || is_html(&f.url.source) || fields.into_iter().any(is_html_field)
            })
    }
}

/// Whether the field, or one inside of it, looks into HTML.
fn is_html_field(field: &Field) -> bool {
    let inner = match &field.shape {
        Shape::Object(fields) | Shape::Objects(fields) => fields.as_slice(),
        Shape::First | Shape::All | Shape::Join(_) | Shape::Parts | Shape::Exists => &[],
    };
    is_html(&field.source) || inner.iter().any(is_html_field)
}

fn is_html(source: &Source) -> bool {
    matches!(
        source,
        Source::Css(_) | Source::JsonLd(_) | Source::Microdata(_)
    )
}

fn read_page(page: &PageConfig, n: usize, source: &SourceConfig, at: &At<'_>) -> Result<PageRule> {
    if let (Some(stage), Some(crawl)) = (&page.stage, &source.crawl)
        && !crawl.stage.contains_key(stage)
    {
        let names: Vec<&str> = crawl.stage.keys().map(StageName::as_str).collect();
        let hint = format!("stages of the crawl are {}", names.join(", "));
        return Err(at
            .key("stage")
            .refuse(format!("there is no stage `{stage}`"), &hint));
    }
    check_status(page, at)?;
    let url = page.url_regex.as_deref().map(|text| {
        Regex::new(text).map_err(|e| {
            let why = e.to_string().lines().last().unwrap_or_default().to_owned();
            at.key("url_regex").refuse(
                format!("`{text}` is no regular expression: {why}"),
                "it is looked for anywhere in the URL: '/book/\\d+$'",
            )
        })
    });
    let is_empty = page.item.is_empty() && page.follow.is_empty();
    match (&page.command, is_empty) {
        (Some(command), true) if command.run.is_empty() => {
            return Err(at
                .key("command.run")
                .refuse("the command is empty", "run = [\"python3\", \"parse.py\"]"));
        }
        (Some(_), false) => {
            return Err(at.key("command").refuse(
                "a page is parsed by a command or by rules",
                "leave `item` and `follow` out, or make two pages of it",
            ));
        }
        (None, true) => {
            return Err(at.refuse(
                "the page gives nothing",
                "[[parse.page.item]] gives records",
            ));
        }
        (Some(_), true) | (None, false) => {}
    }
    let command = page.command.as_ref();
    let command = command.map(|c| read_command(c, source, at)).transpose()?;
    let place = (n + 1).to_string();
    let stage_name = page.stage.as_ref().map(StageName::as_str);
    let items = page.item.iter().enumerate();
    let follows = page.follow.iter().enumerate();
    Ok(PageRule {
        name: page
            .name
            .as_deref()
            .or(stage_name)
            .unwrap_or(&place)
            .to_owned(),
        stage: page.stage.clone(),
        url: url.transpose()?,
        status: page.status.clone(),
        items: items
            .map(|(n, item)| read_item(item, source, &at.key(&format!("item[{}]", n + 1))))
            .collect::<Result<_>>()?,
        follows: follows
            .map(|(n, follow)| read_follow(follow, source, &at.key(&format!("follow[{}]", n + 1))))
            .collect::<Result<_>>()?,
        command,
    })
}

fn check_status(page: &PageConfig, at: &At<'_>) -> Result<()> {
    match page.status.iter().find(|s| !(100..600).contains(*s)) {
        Some(status) => Err(at.key("status").refuse(
            format!("`{status}` is no status of a response"),
            "such as [200, 404]",
        )),
        None => Ok(()),
    }
}

/// A command with the datasets it gives.
fn read_command(
    command: &CommandConfig,
    source: &SourceConfig,
    at: &At<'_>,
) -> Result<CommandConfig> {
    let mut command = command.clone();
    if command.datasets.is_empty() {
        command.datasets.push(source.name.as_str().parse()?);
    }
    for (key, limit) in [
        ("page_timeout_s", command.page_timeout_s),
        ("memory_mib", command.memory_mib),
    ] {
        if limit == 0 {
            let key = at.key(&format!("command.{key}"));
            return Err(key.refuse(
                "a program needs more than nothing",
                "leave it out, or raise it",
            ));
        }
    }
    for dataset in &command.datasets {
        check_dataset(dataset, source, &at.key("command.datasets"))?;
    }
    Ok(command)
}

/// The place of `each`, and what is looked into.
fn read_scope(each: Option<&crate::config::FieldConfig>, at: &At<'_>) -> Result<(Each, Scope)> {
    Ok(match each {
        None => (None, Scope::Page),
        Some(each) => {
            let (source, steps, scope) = read_each(each, Scope::Page, &at.key("each"))?;
            (Some((source, steps)), scope)
        }
    })
}

fn check_dataset(dataset: &DatasetName, source: &SourceConfig, at: &At<'_>) -> Result<()> {
    if dataset.as_str().split('.').next() == Some(source.name.as_str()) {
        return Ok(());
    }
    Err(at.refuse(
        format!("dataset `{dataset}` does not belong to `{}`", source.name),
        &format!("`{0}`, or `{0}.<part>`", source.name),
    ))
}

fn read_item(item: &ItemConfig, source: &SourceConfig, at: &At<'_>) -> Result<ItemRule> {
    let dataset = match &item.dataset {
        Some(dataset) => dataset.clone(),
        None => source.name.as_str().parse()?,
    };
    check_dataset(&dataset, source, &at.key("dataset"))?;
    if item.field.is_empty() {
        return Err(at.refuse("the item has no field", "[parse.page.item.field]"));
    }
    let (each, scope) = read_scope(item.each.as_ref(), at)?;
    let names: Vec<&str> = item.field.0.iter().map(|(name, _)| name.as_str()).collect();
    if let Some(key) = item.key.iter().find(|k| !names.contains(&k.as_str())) {
        return Err(at.key("key").refuse(
            format!("there is no field `{key}`"),
            &crate::config::nearest_hint(key, &names),
        ));
    }
    Ok(ItemRule {
        dataset,
        each,
        min: item.min,
        key: item.key.clone(),
        fields: read_fields(&item.field, scope, &at.key("field"))?,
    })
}

fn read_follow(
    follow: &ParseFollowConfig,
    source: &SourceConfig,
    at: &At<'_>,
) -> Result<FollowRule> {
    if let Some(crawl) = source
        .crawl
        .as_ref()
        .filter(|c| !c.stage.contains_key(&follow.stage))
    {
        let names: Vec<&str> = crawl.stage.keys().map(StageName::as_str).collect();
        return Err(at.key("stage").refuse(
            format!("there is no stage `{}`", follow.stage),
            &format!("stages of the crawl are {}", names.join(", ")),
        ));
    }
    let (each, scope) = read_scope(follow.each.as_ref(), at)?;
    if follow.url.table.may_be_empty {
        return Err(at.key("url").refuse(
            "`may_be_empty` is told of the links as a whole",
            "write it beside `url`, not within",
        ));
    }
    let url = read_field("url", &follow.url, scope, &at.key("url"))?;
    if !matches!(url.shape, Shape::First) {
        return Err(at.key("url").refuse(
            "every match is a link",
            "leave `all`, `join`, `exists` and `field` out",
        ));
    }
    let total = follow.total.as_ref();
    Ok(FollowRule {
        stage: follow.stage.clone(),
        may_be_empty: follow.may_be_empty,
        each,
        url,
        priority: follow.priority,
        payload: read_fields(&follow.payload, scope, &at.key("payload"))?,
        total: total
            .map(|t| read_field("total", t, Scope::Page, &at.key("total")))
            .transpose()?,
        min_share: follow.min_share,
        group: follow.group.clone(),
    })
}
