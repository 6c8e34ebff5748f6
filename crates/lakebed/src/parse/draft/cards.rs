//! The links of a list that lead to its items: those that stand one in a card, in a row of others.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ego_tree::NodeId;
use scraper::ElementRef;

use crate::parse::draft::links::{Link, is_pager, without_fragment};
use crate::parse::draft::seen::{Seen, candidates, classes, quoted, text_in};

/// Links to items, at least.
const MIN_ITEMS: usize = 2;
/// Ways through the cards of one list, at most: with a picture, sold out, made in the old way.
const MAX_PATHS: usize = 3;
/// Classes of cards that somebody paid for, as words of them.
const PAID: [&str; 6] = ["ad", "ads", "advert", "sponsor", "sponsored", "promo"];

/// A link in its card.
struct InCard<'p> {
    page: usize,
    link: &'p Link<'p>,
    container: ElementRef<'p>,
    /// The elements from the card to the link.
    way: Vec<ElementRef<'p>>,
}

/// The cards of containers that are made alike.
struct Group<'p> {
    shapes: BTreeSet<&'p str>,
    links: Vec<InCard<'p>>,
}

impl Group<'_> {
    fn urls(&self) -> BTreeSet<String> {
        let urls = self.links.iter().map(|l| without_fragment(&l.link.url));
        urls.collect()
    }

    /// Letters of the first link that has any: a title before a picture.
    fn words(&self) -> usize {
        let words = self
            .links
            .iter()
            .map(|l| text_in(l.link.element).chars().count());
        words.take(MIN_ITEMS).max().unwrap_or(0)
    }
}

/// The selectors of the links that most look like items, all of which count.
pub(super) fn items(pages: &[Seen<'_>], links: &[Vec<Link<'_>>]) -> Option<Vec<String>> {
    let mut groups = groups_of(pages, links);
    groups.retain(|group| group.urls().len() >= MIN_ITEMS);
    groups.sort_by_key(|group| std::cmp::Reverse((group.urls().len(), group.words())));
    groups.into_iter().find_map(|mut group| {
        let alone = group.shapes.clone();
        add_other_shapes(&mut group, pages, links);
        let whole = selectors(&group, pages, links);
        whole.or_else(|| {
            // What is made otherwise may be an advertisement that does not say so.
            group
                .links
                .retain(|l| alone.contains(l.link.shape.as_str()));
            group.shapes = alone;
            selectors(&group, pages, links)
        })
    })
}

/// Links to pages of the site that may be items.
fn candidates_of<'p>(page: &Seen<'_>, links: &'p [Link<'p>]) -> Vec<&'p Link<'p>> {
    let good = |l: &&Link<'_>| l.is_content && !is_pager(&l.url, &page.url);
    links.iter().filter(good).collect()
}

/// A card is the largest element around a link that has no link of its kind to something else.
fn groups_of<'p>(pages: &[Seen<'_>], links: &'p [Vec<Link<'p>>]) -> Vec<Group<'p>> {
    let mut groups: BTreeMap<(&str, String), Group<'p>> = BTreeMap::new();
    for (n, (page, links)) in pages.iter().zip(links).enumerate() {
        let links = candidates_of(page, links);
        let mut within: HashMap<(NodeId, &str), BTreeSet<String>> = HashMap::new();
        for link in &links {
            for around in link.element.ancestors() {
                let urls = within.entry((around.id(), &link.shape)).or_default();
                urls.insert(without_fragment(&link.url));
            }
        }
        for link in links {
            let is_alone = |e: &ElementRef<'_>| {
                let urls = within.get(&(e.id(), link.shape.as_str()));
                urls.is_none_or(|urls| urls.len() == 1)
            };
            let mut way = vec![link.element];
            let mut above = link.element.ancestors().filter_map(ElementRef::wrap);
            let container = above.find(|e| {
                let is_in_card = is_alone(e);
                if is_in_card {
                    way.push(*e);
                }
                !is_in_card
            });
            let Some(container) = container else {
                continue;
            };
            way.reverse();
            let group = groups.entry((&link.shape, kind_of(container)));
            let group = group.or_insert_with(|| Group {
                shapes: BTreeSet::from([link.shape.as_str()]),
                links: Vec::new(),
            });
            group.links.push(InCard {
                page: n,
                link,
                container,
                way,
            });
        }
    }
    groups.into_values().collect()
}

/// What containers of one kind have in common: their own classes, and the tags and ids around them.
fn kind_of(container: ElementRef<'_>) -> String {
    let around = || container.ancestors().filter_map(ElementRef::wrap);
    // A body of rows has no name: its table has.
    let is_body = container.value().name() == "tbody";
    let table = around().next().filter(|_| is_body);
    let own: BTreeSet<&str> = classes(table.unwrap_or(container)).collect();
    let own: Vec<&str> = own.into_iter().collect();
    let told = |e: ElementRef<'_>| {
        let value = e.value();
        format!("{}#{}", value.name(), value.id().unwrap_or_default())
    };
    let around: Vec<String> = std::iter::once(container)
        .chain(around())
        .map(told)
        .collect();
    format!("{}<{}", own.join("."), around.join("<"))
}

/// Cards between those of the group that lead to pages with addresses of another kind: each to one that no other card
/// leads to.
fn add_other_shapes<'p>(group: &mut Group<'p>, pages: &[Seen<'_>], links: &'p [Vec<Link<'p>>]) {
    let mut added: Vec<InCard<'p>> = Vec::new();
    for (n, (page, links)) in pages.iter().zip(links).enumerate() {
        let own = || group.links.iter().filter(|l| l.page == n);
        let tags: BTreeSet<&str> = own()
            .filter_map(card_of)
            .map(|e| e.value().name())
            .collect();
        let told: HashSet<NodeId> = own().filter_map(card_of).map(|e| e.id()).collect();
        let containers: BTreeMap<NodeId, ElementRef<'p>> =
            own().map(|l| (l.container.id(), l.container)).collect();
        let links = candidates_of(page, links);
        let times = |url: &str| {
            let same = links.iter().filter(|l| without_fragment(&l.url) == url);
            let cards: HashSet<Option<NodeId>> = same
                .map(|l| l.element.ancestors().find(|a| told.contains(&a.id())))
                .map(|card| card.map(|c| c.id()))
                .collect();
            cards.len()
        };
        for container in containers.values() {
            let cards = container.child_elements().filter(|card| {
                !told.contains(&card.id()) && tags.contains(card.value().name()) && !is_paid(*card)
            });
            for card in cards {
                let inner = links
                    .iter()
                    .filter(|l| l.element.ancestors().any(|a| a.id() == card.id()));
                let inner: Vec<&&Link<'p>> = inner
                    .filter(|l| times(&without_fragment(&l.url)) == 1)
                    .collect();
                let urls: BTreeSet<String> =
                    inner.iter().map(|l| without_fragment(&l.url)).collect();
                if urls.len() != 1 {
                    continue;
                }
                added.extend(inner.into_iter().map(|link| InCard {
                    page: n,
                    link,
                    container: *container,
                    way: way_from(card, link.element),
                }));
            }
        }
    }
    // One alone is an article, or somebody's advertisement.
    let mut urls: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for link in added.iter().map(|l| l.link) {
        let of_shape = urls.entry(&link.shape).or_default();
        of_shape.insert(without_fragment(&link.url));
    }
    added.retain(|l| {
        let of_shape = urls.get(l.link.shape.as_str());
        of_shape.is_some_and(|urls| urls.len() >= MIN_ITEMS)
    });
    group
        .shapes
        .extend(added.iter().map(|l| l.link.shape.as_str()));
    group.links.extend(added);
}

fn card_of<'p>(link: &InCard<'p>) -> Option<ElementRef<'p>> {
    link.way.first().copied()
}

fn is_paid(card: ElementRef<'_>) -> bool {
    let mut words = card
        .value()
        .classes()
        .flat_map(|class| class.split(['-', '_']));
    words.any(|word| PAID.contains(&word.to_ascii_lowercase().as_str()))
}

/// The elements from the card to the link.
fn way_from<'p>(card: ElementRef<'p>, link: ElementRef<'p>) -> Vec<ElementRef<'p>> {
    let above = link.ancestors().filter_map(ElementRef::wrap);
    let mut way = vec![link];
    for element in above {
        way.push(element);
        if element.id() == card.id() {
            break;
        }
    }
    way.reverse();
    way
}

/// Selectors that find a link to each item, and no other link: a class, else the address, else the way from the
/// container.
fn selectors(
    group: &Group<'_>,
    pages: &[Seen<'_>],
    links: &[Vec<Link<'_>>],
) -> Option<Vec<String>> {
    let first = group.links.first()?;
    let longest = group
        .links
        .iter()
        .max_by_key(|l| text_in(l.link.element).chars().count().min(60))?;
    let check = Check::new(group, pages, links);
    let is_right = |css: &String| check.is_right(css);
    let named = |link: &InCard<'_>| {
        let all = candidates(link.link.element).into_iter();
        all.filter(|css| css.contains(['.', '#']))
            .collect::<Vec<_>>()
    };
    let one = |css: String| vec![css];
    if let Some(css) = [longest, first].into_iter().flat_map(named).find(is_right) {
        return Some(one(css));
    }
    if let Some(css) = [longest, first]
        .into_iter()
        .flat_map(named)
        .find_map(|css| check.without_paid(&css))
    {
        return Some(one(css));
    }
    let by_address: Option<Vec<String>> = group
        .shapes
        .iter()
        .map(|shape| address_part(group, shape).map(|part| format!("a[href*={}]", quoted(&part))))
        .collect();
    if let Some(all) = by_address.filter(|all| is_right(&all.join(", "))) {
        return Some(all);
    }
    for has_place in [false, true] {
        let ways = ways(group, has_place);
        for base in candidates(first.container) {
            let all: Vec<String> = ways.iter().map(|way| format!("{base} > {way}")).collect();
            if !all.is_empty() && is_right(&all.join(", ")) {
                return Some(all);
            }
        }
    }
    candidates(longest.link.element)
        .into_iter()
        .find(is_right)
        .map(one)
}

/// What a selector of this group must find.
struct Check<'c, 'p> {
    group: &'c Group<'p>,
    pages: &'c [Seen<'p>],
    /// The links that it may choose, page by page.
    may: Vec<HashMap<NodeId, String>>,
    urls: BTreeSet<String>,
}

impl<'c, 'p> Check<'c, 'p> {
    fn new(group: &'c Group<'p>, pages: &'c [Seen<'p>], links: &'c [Vec<Link<'p>>]) -> Self {
        let may = pages.iter().zip(links).map(|(page, links)| {
            let good = candidates_of(page, links).into_iter();
            let good = good.filter(|l| group.shapes.contains(l.shape.as_str()));
            good.map(|l| (l.element.id(), without_fragment(&l.url)))
                .collect()
        });
        Self {
            may: may.collect(),
            urls: group.urls(),
            pages,
            group,
        }
    }

    fn is_right(&self, css: &str) -> bool {
        let mut found = BTreeSet::new();
        for (page, may) in self.pages.iter().zip(&self.may) {
            for element in page.select(css) {
                match may.get(&element.id()) {
                    Some(url) => found.insert(url.clone()),
                    None => return false,
                };
            }
        }
        self.urls.is_subset(&found)
    }

    /// The selector without what stands under a class that no card of the group has.
    fn without_paid(&self, css: &str) -> Option<String> {
        let wrong = self.pages.iter().zip(&self.may).find_map(|(page, may)| {
            let mut chosen = page.select(css).into_iter();
            chosen.find(|e| !may.contains_key(&e.id()))
        })?;
        let own: HashSet<&str> = self
            .group
            .links
            .iter()
            .flat_map(|l| l.way.iter().flat_map(|e| e.value().classes()))
            .collect();
        let around = wrong.ancestors().filter_map(ElementRef::wrap);
        let mut names = around.flat_map(|e| classes(e)).filter(|c| !own.contains(c));
        names.find_map(|class| {
            let css = format!("{css}:not(.{class} *)");
            self.is_right(&css).then_some(css)
        })
    }
}

/// The ways from the containers to the links, as selectors: as few as lead to every item.
fn ways(group: &Group<'_>, has_place: bool) -> Vec<String> {
    let mut by_way: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for link in &group.links {
        let way: Vec<String> = link.way.iter().map(|e| step_of(*e, has_place)).collect();
        let urls = by_way.entry(way.join(" > ")).or_default();
        urls.insert(without_fragment(&link.link.url));
    }
    let mut left = group.urls();
    let mut chosen = Vec::new();
    while !left.is_empty() && chosen.len() < MAX_PATHS {
        let gain = |urls: &BTreeSet<String>| urls.intersection(&left).count();
        let Some((way, urls)) = by_way
            .iter()
            .max_by_key(|(way, urls)| (gain(urls), std::cmp::Reverse(way.len())))
        else {
            break;
        };
        if gain(urls) == 0 {
            break;
        }
        chosen.push(way.clone());
        left = left.difference(urls).cloned().collect();
    }
    chosen
}

/// An element by its tag; with its place among the cells of a row.
fn step_of(element: ElementRef<'_>, has_place: bool) -> String {
    let tag = element.value().name();
    let before = element.prev_siblings().filter_map(ElementRef::wrap);
    let before = before.filter(|e| e.value().name() == tag).count();
    match has_place && tag == "td" {
        true => format!("td:nth-of-type({})", before + 1),
        false => tag.to_owned(),
    }
}

/// A part of the address that all links of a shape have.
fn address_part(group: &Group<'_>, shape: &str) -> Option<String> {
    let (path, names) = shape.split_once('?')?;
    if names.is_empty() {
        let mut parts = path.split('/').filter(|p| !p.is_empty());
        parts.next_back()?;
        let folder = parts.rfind(|p| !p.contains(['*', '#']))?;
        return Some(format!("/{folder}/"));
    }
    // A script whose query names the item: `item.php?`.
    let links = group.links.iter().filter(|l| l.link.shape == shape);
    let scripts: BTreeSet<&str> = links
        .filter_map(|l| l.link.url.path().rsplit('/').next())
        .collect();
    let script = scripts
        .first()
        .filter(|s| scripts.len() == 1 && !s.is_empty())?;
    Some(format!("{script}?"))
}
