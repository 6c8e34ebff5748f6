//! What a page shows of other items: cards beside its own, such as the newest, the dearest, what goes with it.

use std::collections::{BTreeSet, HashMap, HashSet};

use ego_tree::NodeId;
use scraper::ElementRef;
use url::Url;

use crate::parse::draft::links::{shape_of, without_fragment};
use crate::parse::draft::seen::{Seen, text_in};

/// Other items that a page shows, at least: one alone may be the next.
const MIN_OTHERS: usize = 2;
/// Characters of a card, at most; what is longer tells of the page itself, too.
const MAX_CARD_CHARS: usize = 200;

/// The cards of other items, the largest elements that are of one of them alone.
pub(super) fn cards(page: &Seen<'_>, all: &HashSet<String>) -> HashSet<NodeId> {
    let own = without_fragment(&page.url);
    let shape = shape_of(&page.url);
    let is_told = |url: &Url| all.contains(&without_fragment(url));
    // Of `goods.php?id=7` the query says which item, and `brand.php?id=7` is none.
    let base = |url: &str| url.split('?').next().map(str::to_owned);
    let by_query = all.len() > 1 && all.iter().all(|url| base(url) == base(&own));
    // Below the root of a site anything may stand beside its items.
    let says_item = shape.contains('#') || shape.matches('/').count() > 1 || shape.contains('=');
    let target = |link: &ElementRef<'_>| {
        let href = link.value().attr("href")?.trim();
        let url = page.base().join(href).ok()?;
        let is_item = match by_query {
            true => url.path() == page.url.path(),
            false => shape_of(&url) == shape && (says_item || is_told(&url)),
        };
        Some(without_fragment(&url)).filter(|url| is_item && *url != own)
    };
    let links = page.select("a[href]").into_iter();
    let links: Vec<(ElementRef<'_>, String)> = links
        .filter_map(|link| Some((link, target(&link)?)))
        .collect();
    let targets: BTreeSet<&String> = links.iter().map(|(_, url)| url).collect();
    if targets.len() < MIN_OTHERS {
        return HashSet::new();
    }
    let mut within: HashMap<NodeId, BTreeSet<&String>> = HashMap::new();
    for (link, url) in &links {
        for around in link.ancestors() {
            within.entry(around.id()).or_default().insert(url);
        }
    }
    let card_of = |(link, _): &(ElementRef<'_>, String)| {
        let is_of_one =
            |e: &ElementRef<'_>| within.get(&e.id()).is_some_and(|urls| urls.len() == 1);
        let above = link.ancestors().filter_map(ElementRef::wrap);
        let around = above.take_while(|e| is_of_one(e) && is_small(*e)).last();
        around.unwrap_or(*link).id()
    };
    links.iter().map(card_of).collect()
}

/// Whether it may be a card: short, and without what an item's own page has.
fn is_small(element: ElementRef<'_>) -> bool {
    let is_own = |e: ElementRef<'_>| matches!(e.value().name(), "h1" | "table" | "dl" | "body");
    !element.descendent_elements().any(is_own) && text_in(element).chars().count() <= MAX_CARD_CHARS
}
