//! One page by its rules: a pure function from a response to records, follow-ups, expectations and rejects.
//!
//! PRS-2: the outcome depends on the capture, its body and the rules alone. PRS-3: what a rule matches is a
//! record or a reject with its reasons, never nothing.

mod follow;

use std::cell::OnceCell;
use std::fmt;

use serde_json::Value;
use url::Url;

use crate::config::PageValue;
use crate::parse::budget::{Budget, PageError};
use crate::parse::css::{CssPath, Take, Within};
use crate::parse::field::{Field, Shape, Source};
use crate::parse::html::Dom;
use crate::parse::json::JsonDoc;
use crate::parse::rules::{Each, ItemRule, PageRule, Rules};
use crate::parse::steps::{Step, Surroundings, Trouble, clean};
use crate::parse::structured::{json_ld, microdata, of_type};
use crate::spec::{
    CanonicalUrl, CaptureRecord, CharsetOrigin, CharsetSpec, Datum, PageFault, PageRecord,
    PageReject, ParsedPage, QueryOrder, RunKey, charset_of,
};

/// A response that is parsed.
#[derive(Debug, Clone, Copy)]
pub struct PageInput<'a> {
    /// The run that fetched it.
    pub run: &'a RunKey,
    /// The response.
    pub capture: &'a CaptureRecord,
    /// Its body, content encodings removed.
    pub body: &'a [u8],
}

/// What the rules give for the page. A page that cannot be parsed as a whole is one reject.
#[must_use]
pub fn parse_page(rules: &Rules, input: &PageInput<'_>) -> ParsedPage {
    let mut parsed = ParsedPage::of(input.capture);
    let Some(rule) = rules.page_of(input.capture) else {
        return parsed;
    };
    parsed.page = Some(rule.name.clone());
    if !input.capture.truncated.is_none() {
        parsed.rejects = vec![whole_page("truncated", "the body is not whole".to_owned())];
        return parsed;
    }
    let whole = Page::open(rule, input).and_then(|page| {
        for item in &rule.items {
            page.item(item, &mut parsed)?;
        }
        for follow in &rule.follows {
            page.follow(follow, &mut parsed)?;
        }
        Ok(())
    });
    if let Err(error) = whole {
        // What was read until then would look like all there is.
        parsed.records.clear();
        parsed.follow_ups.clear();
        parsed.expectations.clear();
        parsed.other_links = 0;
        parsed.rejects = vec![whole_page(error.code, error.reason)];
    }
    parsed
}

/// The reject of a page as a whole.
#[must_use]
pub fn whole_page(code: &str, reason: String) -> PageReject {
    PageReject {
        dataset: None,
        item: None,
        faults: vec![PageFault {
            code: code.to_owned(),
            path: "$".to_owned(),
            reason,
        }],
        record: Datum::Null,
    }
}

/// The text of a body: as the capture says it is written, else as its bytes do.
pub(super) fn text_of<'a>(input: &PageInput<'a>) -> std::borrow::Cow<'a, str> {
    let told = input.capture.charset.clone().or_else(|| {
        let host = CanonicalUrl::parse(&input.capture.url, QueryOrder::Kept);
        let host = host.as_ref().map_or("", CanonicalUrl::host);
        let header = header(input.capture, "content-type");
        charset_of(input.body, header.as_deref(), host)
    });
    let charset = told.unwrap_or(CharsetSpec {
        name: "utf-8".to_owned(),
        from: CharsetOrigin::Detected,
    });
    charset.text(input.body)
}

/// The first header of that name.
fn header(capture: &CaptureRecord, name: &str) -> Option<String> {
    let head = String::from_utf8_lossy(&capture.response_head.0);
    let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    lines
        .find(|(n, _)| n.trim().eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim().to_owned())
}

/// A page while it is parsed: what is made of its body is made once, when it is wanted.
struct Page<'a> {
    input: PageInput<'a>,
    text: std::borrow::Cow<'a, str>,
    url: Url,
    canonical: CanonicalUrl,
    base: Url,
    dom: OnceCell<Dom>,
    json: OnceCell<JsonDoc>,
    json_ld: OnceCell<Vec<JsonDoc>>,
    budget: Budget,
}

/// What is looked into.
#[derive(Clone, Copy)]
enum Look<'p> {
    Page,
    Element(Within<'p>),
    Json(&'p JsonDoc, &'p Value),
}

/// Matches that are looked into one by one.
enum Looks<'p> {
    Own,
    Elements(Within<'p>, Vec<scraper::ElementRef<'p>>),
    Json(Vec<(&'p JsonDoc, &'p Value)>),
    Docs(Vec<JsonDoc>),
}

/// The way to a value within a record.
struct Way<'w> {
    above: Option<&'w Self>,
    step: WayStep<'w>,
}

enum WayStep<'w> {
    Name(&'w str),
    Index(usize),
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.above {
            Some(above) => above.fmt(f)?,
            None => f.write_str("$")?,
        }
        match self.step {
            WayStep::Name(name) => write!(f, ".{name}"),
            WayStep::Index(n) => write!(f, "[{n}]"),
        }
    }
}

fn fault(code: &str, way: &Way<'_>, reason: String) -> PageFault {
    PageFault {
        code: code.to_owned(),
        path: way.to_string(),
        reason,
    }
}

impl<'a> Page<'a> {
    fn open(rule: &PageRule, input: &PageInput<'a>) -> Result<Self, PageError> {
        let bad = |e: String| PageError::new("no_url", format!("the page's own address: {e}"));
        let address = &input.capture.url;
        let url = Url::parse(address).map_err(|e| bad(e.to_string()))?;
        let mut page = Self {
            input: *input,
            text: text_of(input),
            base: url.clone(),
            url,
            canonical: CanonicalUrl::parse(address, QueryOrder::Kept)
                .map_err(|e| bad(e.to_string()))?,
            dom: OnceCell::new(),
            json: OnceCell::new(),
            json_ld: OnceCell::new(),
            budget: Budget::new(),
        };
        if rule.reads_html() {
            let within = page.within()?;
            if !within.dom.has_base {
                return Ok(page);
            }
            let base = CssPath::parse("base[href]::attr(href)")
                .map_err(|e| PageError::new("no_url", e.to_string()))?;
            let href = base.texts(within, 1, &page.budget)?;
            if let Some(base) = href.first().and_then(|h| page.url.join(h.trim()).ok()) {
                page.base = base;
            }
        }
        Ok(page)
    }

    fn within(&self) -> Result<Within<'_>, PageError> {
        if self.dom.get().is_none() {
            // Of two that make it at once, both are equal.
            drop(self.dom.set(Dom::parse(&self.text)?));
        }
        let dom = self.dom.get().map(Within::page);
        dom.ok_or_else(|| PageError::new("internal", "the page was not read"))
    }

    fn body_json(&self) -> Result<&JsonDoc, PageError> {
        if self.json.get().is_none() {
            drop(self.json.set(JsonDoc::parse(&self.text)?));
        }
        let doc = self.json.get();
        doc.ok_or_else(|| PageError::new("internal", "the page was not read"))
    }

    fn linked_data(&self) -> Result<&[JsonDoc], PageError> {
        if self.json_ld.get().is_none() {
            drop(self.json_ld.set(json_ld(self.within()?, &self.budget)?));
        }
        Ok(self.json_ld.get().map_or(&[], Vec::as_slice))
    }

    fn around(&self) -> Surroundings<'_> {
        Surroundings {
            base: &self.base,
            budget: &self.budget,
        }
    }

    /// The records of an item.
    fn item(&self, item: &ItemRule, parsed: &mut ParsedPage) -> Result<(), PageError> {
        let (mut place, mut good) = (0, 0);
        self.for_each(&item.each, |look| {
            let mut faults = Vec::new();
            let record = self.object(&item.fields, look, None, &mut faults)?;
            let key = match faults.is_empty() {
                true => key_of(item, &record, &mut faults),
                false => Datum::Null,
            };
            match faults.is_empty() {
                true => {
                    good += 1;
                    parsed.records.push(PageRecord {
                        dataset: item.dataset.clone(),
                        record: with_origin(record, key, &self.input),
                    });
                }
                false => parsed.rejects.push(PageReject {
                    dataset: Some(item.dataset.clone()),
                    item: Some(place),
                    faults,
                    record,
                }),
            }
            place += 1;
            Ok(())
        })?;
        if good < item.min {
            let reason = format!(
                "{good} records of `{}`, and at least {} must be",
                item.dataset, item.min
            );
            return Err(PageError::new("too_few", reason));
        }
        Ok(())
    }

    /// Calls `then` for each place that is looked into.
    fn for_each(
        &self,
        each: &Each,
        mut then: impl FnMut(Look<'_>) -> Result<(), PageError>,
    ) -> Result<(), PageError> {
        let Some((source, steps)) = each else {
            return then(Look::Page);
        };
        let looks = self.looks(source, steps, Look::Page, usize::MAX)?;
        self.visit(&looks, Look::Page, |_, look| then(look))
    }

    fn visit<'p>(
        &'p self,
        looks: &'p Looks<'p>,
        own: Look<'p>,
        mut then: impl FnMut(usize, Look<'p>) -> Result<(), PageError>,
    ) -> Result<(), PageError> {
        match looks {
            Looks::Own => then(0, own),
            Looks::Elements(within, elements) => {
                for (n, element) in elements.iter().enumerate() {
                    then(n, Look::Element(within.part(*element, &self.budget)?))?;
                }
                Ok(())
            }
            Looks::Json(values) => {
                let mut values = values.iter().enumerate();
                values.try_for_each(|(n, (doc, value))| then(n, Look::Json(doc, value)))
            }
            Looks::Docs(docs) => {
                let mut docs = docs.iter().enumerate();
                docs.try_for_each(|(n, doc)| then(n, Look::Json(doc, doc.root())))
            }
        }
    }

    /// What a source finds to look into.
    fn looks<'p>(
        &'p self,
        source: &Source,
        steps: &[Step],
        look: Look<'p>,
        limit: usize,
    ) -> Result<Looks<'p>, PageError> {
        match (source, look) {
            (Source::Own, _) => Ok(Looks::Own),
            (Source::Css(css), Look::Page) if css.take == Take::Element => {
                self.elements(css, self.within()?, limit)
            }
            (Source::Css(css), Look::Element(within)) if css.take == Take::Element => {
                self.elements(css, within, limit)
            }
            (Source::Json(query), Look::Json(doc, value)) if steps.is_empty() => {
                let found = query.find(doc, value, &self.budget)?;
                Ok(Looks::Json(
                    found.into_iter().take(limit).map(|v| (doc, v)).collect(),
                ))
            }
            (Source::Json(query), Look::Page) if steps.is_empty() => {
                let doc = self.body_json()?;
                let found = query.find(doc, doc.root(), &self.budget)?;
                Ok(Looks::Json(
                    found.into_iter().take(limit).map(|v| (doc, v)).collect(),
                ))
            }
            (Source::JsonLd(wanted), Look::Page) if steps.is_empty() => {
                let docs = self.linked_data()?.iter();
                let found =
                    docs.flat_map(|doc| of_type(doc, wanted).into_iter().map(move |v| (doc, v)));
                Ok(Looks::Json(found.take(limit).collect()))
            }
            (Source::Microdata(wanted), Look::Page) if steps.is_empty() => {
                let mut docs = microdata(self.within()?, wanted, &self.budget)?;
                docs.truncate(limit);
                Ok(Looks::Docs(docs))
            }
            _ => {
                let mut docs = Vec::new();
                for value in self.values(source, look, limit)? {
                    let values = clean(steps, value, self.around()).map_err(|e| match e {
                        Trouble::Page(error) => error,
                        Trouble::Value { code, reason } => PageError::new(code, reason),
                    })?;
                    for value in values {
                        docs.push(JsonDoc::parse(&value.to_json())?);
                    }
                }
                docs.truncate(limit);
                Ok(Looks::Docs(docs))
            }
        }
    }

    fn elements<'p>(
        &self,
        css: &CssPath,
        within: Within<'p>,
        limit: usize,
    ) -> Result<Looks<'p>, PageError> {
        let found = css.elements(within, &self.budget)?;
        Ok(Looks::Elements(within, found.take(limit).collect()))
    }

    /// The matches of a source as values, `limit` at most.
    fn values(
        &self,
        source: &Source,
        look: Look<'_>,
        limit: usize,
    ) -> Result<Vec<Datum>, PageError> {
        let texts = |texts: Vec<String>| texts.into_iter().map(Datum::Text).collect();
        let one = |text: Option<String>| Ok(text.map(Datum::Text).into_iter().collect());
        match source {
            Source::Css(css) => {
                let within = match look {
                    Look::Element(within) => within,
                    Look::Page | Look::Json(..) => self.within()?,
                };
                css.texts(within, limit, &self.budget).map(texts)
            }
            Source::Json(query) => {
                let (doc, value) = match look {
                    Look::Json(doc, value) => (doc, value),
                    Look::Page | Look::Element(_) => {
                        let doc = self.body_json()?;
                        (doc, doc.root())
                    }
                };
                let found = query.find(doc, value, &self.budget)?.into_iter();
                // JSON null is no value.
                let found = found.filter(|v| !v.is_null()).take(limit);
                found.map(|v| doc.datum(v, &self.budget)).collect()
            }
            Source::JsonLd(_) | Source::Microdata(_) => {
                let looks = self.looks(source, &[], look, limit)?;
                let mut values = Vec::new();
                self.visit(&looks, look, |_, look| {
                    if let Look::Json(doc, value) = look {
                        values.push(doc.datum(value, &self.budget)?);
                    }
                    Ok(())
                })?;
                Ok(values)
            }
            Source::Page(value) => Ok(self.page_value(*value)),
            Source::Query(name) => {
                let found = self.url.query_pairs().filter(|(n, _)| n == name);
                Ok(texts(
                    found.take(limit).map(|(_, v)| v.into_owned()).collect(),
                ))
            }
            Source::Path(place) => one(path_part(&self.url, *place)),
            Source::Header(name) => one(header(self.input.capture, name)),
            Source::Value(value) => Ok(vec![value.clone()]),
            Source::Own => Ok(Vec::new()),
        }
    }

    fn page_value(&self, value: PageValue) -> Vec<Datum> {
        let capture = self.input.capture;
        let value = match value {
            PageValue::Url => Some(Datum::Text(capture.url.clone())),
            PageValue::Status => capture.status.map(|s| Datum::Number(s.to_string())),
            PageValue::FetchedAt => Some(Datum::Text(capture.fetched_at.to_string())),
            PageValue::Stage => Some(Datum::Text(capture.kind.to_string())),
            PageValue::Body => Some(Datum::Text(self.text.to_string())),
        };
        value.into_iter().collect()
    }

    fn object(
        &self,
        fields: &[Field],
        look: Look<'_>,
        above: Option<&Way<'_>>,
        faults: &mut Vec<PageFault>,
    ) -> Result<Datum, PageError> {
        let mut members = Vec::with_capacity(fields.len() + 3);
        for field in fields {
            let way = Way {
                above,
                step: WayStep::Name(&field.name),
            };
            members.push((field.name.clone(), self.field(field, look, &way, faults)?));
        }
        Ok(Datum::Object(members))
    }

    /// The value of a field; what is wrong with it goes to `faults`.
    fn field(
        &self,
        field: &Field,
        look: Look<'_>,
        way: &Way<'_>,
        faults: &mut Vec<PageFault>,
    ) -> Result<Datum, PageError> {
        let before = faults.len();
        let value = match &field.shape {
            Shape::Object(fields) | Shape::Objects(fields) => {
                self.objects(field, fields, look, (way, faults))?
            }
            Shape::Exists => Datum::Bool(self.is_there(field, look)?),
            Shape::First | Shape::All | Shape::Join(_) | Shape::Parts => {
                self.plain(field, look, way, faults)?
            }
        };
        let value = match value {
            Datum::Null => field.default.clone(),
            value => value,
        };
        let is_missing = match &value {
            Datum::Null => true,
            Datum::Text(text) => text.chars().all(char::is_whitespace),
            Datum::List(items) => items.is_empty(),
            Datum::Bool(_) | Datum::Number(_) | Datum::Object(_) => false,
        };
        if field.is_required && is_missing && faults.len() == before {
            faults.push(fault("required", way, "there is no value".to_owned()));
        }
        Ok(value)
    }

    fn is_there(&self, field: &Field, look: Look<'_>) -> Result<bool, PageError> {
        if let Source::Css(css) = &field.source
            && css.take == Take::Element
        {
            let within = match look {
                Look::Element(within) => within,
                Look::Page | Look::Json(..) => self.within()?,
            };
            return Ok(css.elements(within, &self.budget)?.next().is_some());
        }
        Ok(!self.values(&field.source, look, 1)?.is_empty())
    }

    fn plain(
        &self,
        field: &Field,
        look: Look<'_>,
        way: &Way<'_>,
        faults: &mut Vec<PageFault>,
    ) -> Result<Datum, PageError> {
        let is_one = matches!(field.shape, Shape::First | Shape::Parts);
        let limit = if is_one { 1 } else { usize::MAX };
        let mut values = self.values(&field.source, look, limit)?;
        if let Shape::Join(between) = &field.shape
            && !values.is_empty()
        {
            let texts: Vec<String> = values.iter().map(plain_text).collect();
            values = vec![Datum::Text(texts.join(between))];
        }
        let mut found = Vec::new();
        for value in values {
            match clean(&field.steps, value, self.around()) {
                Ok(values) => found.extend(values),
                Err(Trouble::Page(error)) => return Err(error),
                Err(Trouble::Value { code, reason }) => faults.push(fault(code, way, reason)),
            }
        }
        let has_split = field.steps.iter().any(|s| matches!(s, Step::Split(_)));
        Ok(match &field.shape {
            Shape::All | Shape::Parts => Datum::List(found),
            Shape::Join(_) if has_split => Datum::List(found),
            _ => found.into_iter().next().unwrap_or(Datum::Null),
        })
    }

    fn objects(
        &self,
        field: &Field,
        fields: &[Field],
        look: Look<'_>,
        (way, faults): (&Way<'_>, &mut Vec<PageFault>),
    ) -> Result<Datum, PageError> {
        let is_list = matches!(field.shape, Shape::Objects(_));
        let limit = if is_list { usize::MAX } else { 1 };
        let looks = self.looks(&field.source, &field.steps, look, limit)?;
        let mut found = Vec::new();
        self.visit(&looks, look, |n, inner| {
            let here = Way {
                above: Some(way),
                step: WayStep::Index(n),
            };
            let above = if is_list { &here } else { way };
            found.push(self.object(fields, inner, Some(above), faults)?);
            Ok(())
        })?;
        Ok(match is_list {
            true => Datum::List(found),
            false => found.into_iter().next().unwrap_or(Datum::Null),
        })
    }
}

/// A record with where it comes from.
pub(super) fn with_origin(record: Datum, key: Datum, input: &PageInput<'_>) -> Datum {
    let Datum::Object(mut members) = record else {
        return record;
    };
    let RunKey { source, date, run } = input.run;
    let raw = format!("{source}/{date}/{run}/{}", input.capture.capture_id);
    let fetched_at = input.capture.fetched_at.to_string();
    members.push(("_raw".to_owned(), Datum::Text(raw)));
    members.push(("_key".to_owned(), key));
    members.push(("_fetched_at".to_owned(), Datum::Text(fetched_at)));
    Datum::Object(members)
}

/// A value within a joined text.
fn plain_text(value: &Datum) -> String {
    match value.scalar_text() {
        Some(text) => text.to_owned(),
        None => value.to_json(),
    }
}

/// What names the object: the text of the one key, or a JSON list of several.
fn key_of(item: &ItemRule, record: &Datum, faults: &mut Vec<PageFault>) -> Datum {
    let mut texts = Vec::new();
    for name in &item.key {
        let value = record.get(name).and_then(Datum::scalar_text);
        match value.filter(|t| !t.trim().is_empty()) {
            Some(text) => texts.push(text.to_owned()),
            None => {
                let step = WayStep::Name(name);
                let way = Way { above: None, step };
                faults.push(fault("key", &way, "a key needs one value".to_owned()));
            }
        }
    }
    match texts.len() {
        0 => Datum::Null,
        1 => Datum::Text(texts.remove(0)),
        _ => Datum::Text(Datum::List(texts.into_iter().map(Datum::Text).collect()).to_json()),
    }
}

/// A part of the path, decoded: from 1, or from the end where negative.
fn path_part(url: &Url, place: i32) -> Option<String> {
    let mut parts: Vec<&str> = url.path_segments()?.collect();
    // Behind a slash at the end there is no part.
    parts.pop_if(|last| last.is_empty());
    let from_end = usize::try_from(place.unsigned_abs()).ok()?;
    let at = match place > 0 {
        true => from_end.checked_sub(1)?,
        false => parts.len().checked_sub(from_end)?,
    };
    let part = parts.get(at).filter(|p| !p.is_empty())?;
    Some(
        percent_encoding::percent_decode_str(part)
            .decode_utf8_lossy()
            .into_owned(),
    )
}
