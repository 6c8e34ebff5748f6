//! What a list says of how many items there are: `共 64 件商品`, `128 results`.

use std::collections::BTreeSet;

use regex::Regex;
use scraper::ElementRef;

use crate::parse::draft::seen::{Seen, candidates, collapsed, quoted, text_in};

/// Characters of a text that tells it.
const MAX_CHARS: usize = 60;
/// How it is said; the first group is the number.
const WORDS: [&str; 7] = [
    r"找到了? ?(\d[\d,]*) ?[件個个筆笔条條本部套間间項项种種款台張张则則]",
    r"[共计計] ?(\d[\d,]*) ?[件個个筆笔条條本部套間间項项种種款台張张则則]",
    r"[共计計有] ?(\d[\d,]*) ?[件個个筆笔条條]?(?:商品|結果|结果|物件|房源|資料|数据|記錄|记录)",
    r"全 ?(\d[\d,]*) ?件",
    r"(\d[\d,]*) (?:results|items|products|listings|books|ads|entries)\b",
    r"of (\d[\d,]*) (?:results|items|products|listings|books|ads|entries)\b",
    r"(\d[\d,]*) ?(?:件|筆|个|個)(?:商品|結果|结果|物件)",
];

/// Elements whose text nobody reads.
const NOT_SHOWN: [&str; 5] = ["script", "style", "template", "noscript", "option"];

/// The number of items that the pages of a list announce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Announced {
    /// A selector with `::text`, of which all texts are joined.
    pub(super) css: String,
    /// The number is its first group.
    pub(super) regex: String,
    /// What the pages say.
    pub(super) number: usize,
}

/// What all pages announce alike, where that can be true: `most` items stand on one of them, and no page is the last of
/// a longer list where `has_more` is false.
pub(super) fn announced(pages: &[Seen<'_>], most: usize, has_more: bool) -> Option<Announced> {
    let first = pages.first()?;
    let words: Vec<Regex> = WORDS.iter().filter_map(|w| Regex::new(w).ok()).collect();
    // It stands in the pager as often as above the list.
    let all = first.select("body *").into_iter();
    let mut shown = all.filter(|e| !NOT_SHOWN.contains(&e.value().name()));
    shown.find_map(|element| {
        let (regex, number) = told_in(element, &words)?;
        let is_possible = if has_more {
            number > most
        } else {
            number == most
        };
        if !is_possible {
            return None;
        }
        let known = Regex::new(&regex).ok()?;
        // Above the list and below it, perhaps, in the same words.
        let said = text_in(element);
        let says_so = |css: &String| {
            let found = first.select(css);
            !found.is_empty() && found.iter().all(|e| text_in(*e) == said)
        };
        let plain = candidates(element).into_iter().find(says_so);
        // Where nothing else names it, the words before the number do.
        let own = element.children().find_map(|node| node.value().as_text());
        let by_words = own.and_then(|text| {
            let words = text
                .trim()
                .split(|c: char| c.is_ascii_digit())
                .next()?
                .trim();
            let named = candidates(element).into_iter();
            let mut named = named.map(|base| format!("{base}:contains({})", quoted(words)));
            named.find(|css| !words.is_empty() && first.select(css).len() == 1)
        });
        let css = format!("{} ::text", plain.or(by_words)?);
        // As the rule will read it.
        let said = |page: &Seen<'_>| {
            let text = collapsed(&page.texts(&css).concat());
            number_of(known.captures(&text)?.get(1)?.as_str())
        };
        let said: BTreeSet<Option<usize>> = pages.iter().map(said).collect();
        (said == BTreeSet::from([Some(number)])).then_some(Announced { css, regex, number })
    })
}

/// What an element says that no element within it says alone.
fn told_in(element: ElementRef<'_>, words: &[Regex]) -> Option<(String, usize)> {
    let text = text_in(element);
    if text.chars().count() > MAX_CHARS {
        return None;
    }
    let told = told(&text, words)?;
    let mut inner = element.child_elements();
    inner.all(|e| told_in(e, words).is_none()).then_some(told)
}

fn told(text: &str, words: &[Regex]) -> Option<(String, usize)> {
    words.iter().find_map(|known| {
        let found = known.captures(text)?;
        let (whole, number) = (found.get(0)?, found.get(1)?);
        // The words that this site has, not all that there could be.
        let before = text.get(whole.start()..number.start())?;
        let after = text.get(number.end()..whole.end())?;
        let regex = format!(
            r"{}(\d[\d,]*){}",
            regex::escape(before),
            regex::escape(after)
        );
        Some((regex, number_of(number.as_str())?))
    })
}

fn number_of(text: &str) -> Option<usize> {
    text.replace(',', "").parse().ok()
}
