//! What was found, on its way to fields: each once, under a name of its own, run over the pages.

use std::collections::{HashMap, HashSet};

use ego_tree::NodeId;

use crate::config::{
    FieldConfig, FieldMap, FieldTable, ItemConfig, PageConfig, ParseConfig, SourceConfig,
    StepConfig,
};
use crate::name::SourceName;
use crate::parse::draft::forms;
use crate::parse::draft::names;
use crate::parse::draft::places::Place;
use crate::parse::draft::seen::{Seen, collapsed};
use crate::parse::draft::written::DraftedField;
use crate::parse::page::parse_page;
use crate::parse::rules::Rules;
use crate::spec::Datum;

/// Fields that are run.
const MAX_DRAFTED: usize = 120;
/// Fields of a draft; of more, those stay that most pages have.
const MAX_FIELDS: usize = 40;
/// Of so many pages on, a field that fewer than this share of them has is left out, unless its name is known.
const MANY_PAGES: usize = 12;
const MIN_SHARE: usize = 8;
/// Characters of a sample beside another.
const MAX_SAMPLE_CHARS: usize = 20;

/// A field that is not run yet.
struct Drafting {
    name: String,
    /// What it is called where others are called so, too.
    called: String,
    table: FieldTable,
    /// The number of the way that found it.
    way: usize,
    /// Where its text stands; empty where it is none.
    places: Vec<Place>,
}

/// Gathers fields.
pub(super) struct Builder<'s> {
    pages: &'s [Seen<'s>],
    zone: &'s str,
    fields: Vec<Drafting>,
    /// How many ways of looking there were.
    way: usize,
    /// Elements whose text is in a field, page by page.
    taken: Vec<HashSet<NodeId>>,
}

impl<'s> Builder<'s> {
    pub(super) fn new(pages: &'s [Seen<'s>], zone: &'s str) -> Self {
        Self {
            pages,
            zone,
            fields: Vec::new(),
            way: 0,
            taken: pages.iter().map(|_| HashSet::new()).collect(),
        }
    }

    /// What comes now was found in another way than what came before.
    pub(super) fn begin_way(&mut self) {
        self.way += 1;
    }

    /// A field of a text. `texts`: what it gives, page by page, before it is cleaned; the form of its values follows
    /// from them.
    pub(super) fn add(&mut self, name: &str, table: FieldTable, texts: &[String]) {
        self.add_from(name, table, texts, &[]);
    }

    /// The same, of a text that stands in these places.
    pub(super) fn add_from(
        &mut self,
        name: &str,
        table: FieldTable,
        texts: &[String],
        places: &[Place],
    ) {
        let steps = forms::of(name, texts, self.zone);
        let mut table = table;
        let is_clean = |t: &String| *t == collapsed(t);
        // A part of a collapsed text is one.
        let is_done = table.clean.first() == Some(&StepConfig::Collapse);
        let needs_none = is_done || table.join.is_none();
        if steps == [StepConfig::Collapse] && texts.iter().all(is_clean) && needs_none {
            self.put_from(name, table, texts, places);
            return;
        }
        table.clean.extend(steps);
        self.put_from(name, table, texts, places);
    }

    /// A field as it is.
    pub(super) fn put(&mut self, name: &str, table: FieldTable, texts: &[String]) {
        self.put_from(name, table, texts, &[]);
    }

    /// The same, of these places; instead of the field that has all of them but the last.
    pub(super) fn put_from(
        &mut self,
        name: &str,
        table: FieldTable,
        texts: &[String],
        places: &[Place],
    ) {
        let before = places.split_last().map_or(&[][..], |(_, before)| before);
        let is_grown = |f: &&mut Drafting| f.called == name && f.places == before;
        if !before.is_empty()
            && let Some(field) = self.fields.iter_mut().find(is_grown)
        {
            (field.table, field.places) = (table, places.to_vec());
            return;
        }
        let is_empty = texts.iter().all(|t| t.trim().is_empty());
        if is_empty || self.fields.len() >= MAX_DRAFTED {
            return;
        }
        let is_free = |name: &String| self.fields.iter().all(|f| f.name != *name);
        let numbered = (2..).map(|n| format!("{name}_{n}"));
        let free = std::iter::once(name.to_owned())
            .chain(numbered)
            .find(is_free);
        self.fields.push(Drafting {
            name: free.unwrap_or_default(),
            called: name.to_owned(),
            table,
            way: self.way,
            places: places.to_vec(),
        });
    }

    /// The place with those of a field that is called so and that it goes with, they first; else it alone.
    pub(super) fn joined(
        &self,
        name: &str,
        place: Place,
        goes_with: impl Fn(&[Place], &Place) -> bool,
    ) -> Vec<Place> {
        let is_same = |f: &&Drafting| {
            f.called == name && !f.places.is_empty() && goes_with(&f.places, &place)
        };
        let before = self.fields.iter().find(is_same);
        let before = before.map_or(&[][..], |field| &field.places);
        [before, &[place]].concat()
    }

    /// Notes that the elements which a selector finds are told.
    pub(super) fn take(&mut self, css: &str) {
        for (page, taken) in self.pages.iter().zip(&mut self.taken) {
            for element in page.select(css) {
                taken.extend(element.descendants().map(|node| node.id()));
            }
        }
    }

    /// The same without what stands in them: that may be a field of its own.
    pub(super) fn take_alone(&mut self, css: &str) {
        for (page, taken) in self.pages.iter().zip(&mut self.taken) {
            taken.extend(page.select(css).iter().map(|element| element.id()));
        }
    }

    /// Notes that an element of a page is told, whatever stands in it.
    pub(super) fn take_one(&mut self, page: usize, id: NodeId) {
        if let Some(taken) = self.taken.get_mut(page) {
            taken.insert(id);
        }
    }

    /// Whether there is a field that is called so.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.called == name)
    }

    pub(super) fn zone(&self) -> &str {
        self.zone
    }

    pub(super) fn is_taken(&self, page: usize, id: NodeId) -> bool {
        self.taken
            .get(page)
            .is_some_and(|taken| taken.contains(&id))
    }

    /// The fields that give on the pages what they were drafted for; the first one is the key.
    pub(super) fn finish(self, source: &SourceName) -> Vec<DraftedField> {
        let mut fields = self.fields;
        // What is at fault is taken as the text that it is, then left out: both once for each field.
        for _ in 0..=2 * fields.len() {
            let Some(bad) = first_fault(source, &fields, self.pages) else {
                break;
            };
            let Some(at) = fields.iter().position(|field| field.name == bad) else {
                return Vec::new();
            };
            let plain = fields.get_mut(at).map(|field| &mut field.table);
            let plain = plain.filter(|table| {
                table.clean.len() > 1 || table.clean.first() != Some(&StepConfig::Collapse)
            });
            match plain {
                Some(table)
                    if table.each.is_none()
                        && table.json_ld.is_none()
                        && !table.clean.is_empty() =>
                {
                    table.clean = vec![StepConfig::Collapse];
                }
                _ => {
                    fields.remove(at);
                }
            }
        }
        let given = match run(source, &fields, self.pages) {
            Some(given) => given,
            None => return Vec::new(),
        };
        let (fields, given) = one_of_a_name(fields, given);
        most_common(told_once(fields, &given), self.pages.len())
    }
}

/// Of two fields that are called alike and agree wherever both have a value, the one that more pages have: JSON-LD of some
/// pages beside what stands on all.
fn one_of_a_name(
    fields: Vec<Drafting>,
    given: Vec<Vec<Option<String>>>,
) -> (Vec<Drafting>, Vec<Vec<Option<String>>>) {
    let mut fields = fields;
    let mut given = given;
    let value = |given: &[Vec<Option<String>>], page: usize, n: usize| {
        given
            .get(page)
            .and_then(|record| record.get(n).cloned().flatten())
    };
    let pages = given.len();
    let mut later = fields.len();
    while later > 0 {
        later -= 1;
        let Some((name, called)) = fields
            .get(later)
            .map(|f| (f.name.clone(), f.called.clone()))
        else {
            break;
        };
        let is_first = |f: &Drafting| f.name == called && name != called;
        let Some(first) = fields.iter().position(is_first) else {
            continue;
        };
        let both = (0..pages).map(|page| (value(&given, page, first), value(&given, page, later)));
        let both: Vec<_> = both.collect();
        let agree = both.iter().filter(|(a, b)| a.is_some() && a == b).count();
        let differ = both
            .iter()
            .filter(|(a, b)| a.is_some() && b.is_some() && a != b)
            .count();
        let of_first = both.iter().filter(|(a, _)| a.is_some()).count();
        let of_later = both.iter().filter(|(_, b)| b.is_some()).count();
        if agree == 0 || differ > 0 {
            continue;
        }
        let gone = if of_later > of_first { first } else { later };
        if gone == first
            && let Some(field) = fields.get_mut(later)
        {
            field.name = called;
        }
        fields.remove(gone);
        for record in given.iter_mut().filter(|record| record.len() > gone) {
            record.remove(gone);
        }
        later = later.min(fields.len());
    }
    (fields, given)
}

/// The fields that gave something, those without which another way found alike.
fn told_once(fields: Vec<Drafting>, given: &[Vec<Option<String>>]) -> Vec<DraftedField> {
    let mut told: HashMap<Vec<Option<String>>, (String, usize)> = HashMap::new();
    let mut drafted = Vec::new();
    for (n, field) in fields.into_iter().enumerate() {
        let Drafting {
            name, table, way, ..
        } = field;
        let values = given.iter().map(|record| record.get(n).cloned().flatten());
        let values: Vec<Option<String>> = values.collect();
        let (first, other_way) = match told.get(&values) {
            Some((first, way_of_first)) => (Some(first), *way_of_first != way),
            None => (None, false),
        };
        // Short values of one page are equal by chance, unless they are called alike.
        let says_much = given.len() > 1
            || values.iter().flatten().any(|v| v.chars().count() > 3)
            || first.is_some_and(|first| name.starts_with(first.as_str()));
        let on_pages = values.iter().flatten().count();
        if on_pages == 0 || (other_way && says_much) {
            continue;
        }
        told.entry(values.clone()).or_insert((name.clone(), way));
        drafted.push(DraftedField {
            name,
            config: FieldConfig {
                is_short: false,
                table,
            },
            sample: sample_of(values.into_iter().flatten()),
            on_pages,
        });
    }
    drafted
}

/// The fields that enough pages have, in their order.
fn most_common(fields: Vec<DraftedField>, pages: usize) -> Vec<DraftedField> {
    let is_rare = |field: &DraftedField| pages >= MANY_PAGES && field.on_pages * MIN_SHARE < pages;
    let is_known = |field: &DraftedField| names::is_known(field.name.trim_end_matches(is_number));
    let mut fields = fields;
    fields.retain(|field| is_known(field) || !is_rare(field));
    let mut ranks: Vec<(bool, usize, usize)> = fields
        .iter()
        .enumerate()
        .map(|(n, field)| (!is_known(field), pages - field.on_pages.min(pages), n))
        .collect();
    ranks.sort_unstable();
    let best: HashSet<usize> = ranks.iter().take(MAX_FIELDS).map(|(_, _, n)| *n).collect();
    let fields = fields.into_iter().enumerate();
    fields
        .filter(|(n, _)| best.contains(n))
        .map(|(_, field)| field)
        .collect()
}

/// What tells a name from the same one before it.
fn is_number(c: char) -> bool {
    c.is_ascii_digit() || c == '_'
}

/// The first value; behind it the first one with words where that has a number, or a number where that has none:
/// `庫存 1 件 / 已售完`.
fn sample_of(mut values: impl Iterator<Item = String>) -> String {
    let is_short = |text: &str| text.chars().count() <= MAX_SAMPLE_CHARS;
    let has_digit = |text: &str| text.chars().any(|c| c.is_ascii_digit());
    let first = values.next().unwrap_or_default();
    let other = values.find(|other| is_short(other) && has_digit(other) != has_digit(&first));
    match other.filter(|_| is_short(&first)) {
        Some(other) => format!("{first} / {other}"),
        None => first,
    }
}

fn rules_of(source: &SourceName, fields: &[Drafting]) -> Option<Rules> {
    let fields = fields.iter().map(|field| {
        let config = FieldConfig {
            is_short: false,
            table: field.table.clone(),
        };
        (field.name.clone(), config)
    });
    let mut config = SourceConfig::parse(source, "class = \"log\"\n", "draft").ok()?;
    config.parse = Some(ParseConfig {
        max_reject_share: 0.0,
        page: vec![PageConfig {
            name: None,
            stage: None,
            url_regex: None,
            status: Vec::new(),
            item: vec![ItemConfig {
                dataset: None,
                each: None,
                min: 0,
                key: Vec::new(),
                field: FieldMap(fields.collect()),
            }],
            follow: Vec::new(),
            command: None,
        }],
    });
    Rules::read(&config, "draft").ok()
}

/// The first field at fault on any page.
fn first_fault(source: &SourceName, fields: &[Drafting], pages: &[Seen<'_>]) -> Option<String> {
    let Some(rules) = rules_of(source, fields) else {
        // A rule that cannot be read: alone, each says whether it is the one.
        let mut fields = fields.iter();
        let bad = fields.find(|field| rules_of(source, std::slice::from_ref(*field)).is_none());
        return bad.map(|field| field.name.clone());
    };
    pages.iter().find_map(|page| {
        let parsed = parse_page(&rules, &page.input);
        let fault = parsed.rejects.first()?.faults.first()?.path.clone();
        let fault = fault.trim_start_matches("$.");
        let mut names: Vec<&String> = fields.iter().map(|field| &field.name).collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        names
            .into_iter()
            .find(|name| fault.starts_with(name.as_str()))
            .cloned()
    })
}

/// What the fields give, page by page; `None` = no value.
fn run(
    source: &SourceName,
    fields: &[Drafting],
    pages: &[Seen<'_>],
) -> Option<Vec<Vec<Option<String>>>> {
    let rules = rules_of(source, fields)?;
    let records = pages.iter().map(|page| {
        let parsed = parse_page(&rules, &page.input);
        let record = parsed.records.first().map(|r| r.record.clone());
        let Some(Datum::Object(members)) = record else {
            return Vec::new();
        };
        members
            .into_iter()
            .map(|(_, value)| shown(&value))
            .collect()
    });
    Some(records.collect())
}

/// A value for people: a text without quotes; `None` where there is none.
fn shown(value: &Datum) -> Option<String> {
    match value {
        Datum::Null => None,
        Datum::List(values) if values.is_empty() => None,
        Datum::Text(text) => (!text.is_empty()).then(|| text.clone()),
        other => Some(other.to_json()),
    }
}
