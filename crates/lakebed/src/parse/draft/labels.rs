//! Values that stand beside a label: definition lists, tables of two columns, `label: value`, microdata.

use regex::Regex;
use scraper::ElementRef;

use crate::parse::draft::build::Builder;
use crate::parse::draft::crumbs::is_begin;
use crate::parse::draft::forms;
use crate::parse::draft::names;
use crate::parse::draft::places::{Cut, End, NEXT_LABEL, Place, attribute_of, value};
use crate::parse::draft::seen::{Seen, candidates, classes, collapsed, quoted, text_in};

/// Characters of a label.
const MAX_LABEL_CHARS: usize = 30;
/// Digits of a label are fewer: `ISO 9001`.
const MAX_LABEL_DIGITS: usize = 5;
/// What leads to other pages.
const NO_LABELS: [&str; 12] = [
    "上一个",
    "下一个",
    "上一個",
    "下一個",
    "上一篇",
    "下一篇",
    "上一件",
    "下一件",
    "上一頁",
    "下一頁",
    "上一页",
    "下一页",
];
/// Characters of a value behind its label in one text; what is longer is prose that has a colon.
const MAX_WITHIN_CHARS: usize = 80;
/// Pages that say the same in one place, at least, where others do not have the place: it is of the site.
const MIN_ALIKE: usize = 5;
/// What stands between a label and its value in one text.
const BEHIND: &str = r"\s*[:：]\s*";

pub(super) fn find(pages: &[Seen<'_>], builder: &mut Builder<'_>) {
    // Labels and where they lead; on a page that is made in another way, the same label stands elsewhere.
    let mut known: Vec<(String, String)> = Vec::new();
    for (n, page) in pages.iter().enumerate() {
        for pair in page.own_content().into_iter().flat_map(pairs_at) {
            let is_told = |(label, css): &(String, String)| {
                *label == pair.label && !page.select(css).is_empty()
            };
            if known.iter().any(is_told) {
                builder.take_one(n, pair.holder.id());
            } else if let Some(name) = names::of_label(&pair.label)
                && let Some(css) = pair.selector(page, pages)
                && !is_of_the_site(pages, &css)
            {
                builder.take_one(n, pair.holder.id());
                known.push((pair.label, css.clone()));
                let cut = pair.within;
                value(pages, builder, &name, Place { css, cut });
            }
        }
    }
    microdata(pages, builder);
}

/// Whether value and surroundings are the same on every page: a hotline, links to friends.
fn is_of_the_site(pages: &[Seen<'_>], css: &str) -> bool {
    let around = |page: &Seen<'_>| {
        let first = page.select(css).first().copied()?;
        let mut above = first.ancestors().filter_map(ElementRef::wrap);
        // A row has nothing but the pair.
        let is_row =
            |e: &ElementRef<'_>| matches!(e.value().name(), "tr" | "li" | "p") || has_twins(*e);
        let around = above.find(|e| !is_row(e))?;
        Some((text_in(first), text_in(around)))
    };
    let found: Vec<_> = pages.iter().map(around).collect();
    // Pages that are made in another way do not have it.
    let found: Vec<_> = found.into_iter().flatten().collect();
    let is_enough = found.len() == pages.len() || found.len() >= MIN_ALIKE;
    let first = found.first().filter(|_| is_enough && pages.len() > 1);
    first.is_some_and(|first| found.iter().all(|other| other == first))
}

/// A value and what says what it is.
struct Pair<'a> {
    /// As the page has it.
    label: String,
    /// The element that the label stands in.
    holder: ElementRef<'a>,
    /// From there to the value: ` + dd`, ` > b`; nothing where it is the same element.
    way: String,
    value: ElementRef<'a>,
    /// What takes the value out of a text which has both.
    within: Option<Cut>,
}

impl<'a> Pair<'a> {
    fn beside(holder: ElementRef<'a>, value: ElementRef<'a>) -> Option<Self> {
        Some(Self {
            label: label_of(holder)?,
            holder,
            way: format!(" + {}", value.value().name()),
            value,
            within: None,
        })
    }

    /// Label and value in one element, with an expression of what stands between them.
    fn within(element: ElementRef<'a>, label: &str, between: &str, end: End) -> Self {
        Self {
            holder: element,
            way: String::new(),
            within: Some(Cut {
                lead: format!("{}{between}", regex::escape(label)),
                end,
                has_lines: false,
            }),
            label: as_written(element, label),
            value: element,
        }
    }

    /// The selector, made to find this value and no other: another label may contain this one, and what stands around
    /// the label contains it, too. Best is one that finds no two on any page.
    fn selector(&self, page: &Seen<'_>, pages: &[Seen<'_>]) -> Option<String> {
        let plain = named(self.holder);
        let mut bases = vec![plain.clone()];
        bases.extend(candidates(self.holder).into_iter().filter(|c| *c != plain));
        // The cell of a table within a cell.
        let tag = self.holder.value().name();
        bases.push(format!("{tag}:not(:has({tag}))"));
        let mut good = bases
            .iter()
            .filter_map(|base| self.selector_from(page, base));
        good.find_map(|css| self.selector_for_all(pages, css))
    }

    /// The selector, made to find no other label on any page: on one with `Keys` alone, `Key` is not there.
    fn selector_for_all(&self, pages: &[Seen<'_>], css: String) -> Option<String> {
        let own = collapsed(&self.label);
        let label_of =
            |found: ElementRef<'_>| match (self.within.is_some(), self.way.starts_with(" +")) {
                (false, true) => previous(found).map(text_in),
                _ => None,
            };
        let mut css = css;
        for _ in 0..3 {
            let mut wrong: Option<String> = None;
            for page in pages {
                let found = page.select(&css);
                if found.len() > 1 {
                    return None;
                }
                let label = found.first().and_then(|found| label_of(*found));
                let label = label.map(|label| label.trim_end_matches([':', '：', ' ']).to_owned());
                let is_other = |label: &String| *label != own && label.contains(&own);
                wrong = wrong.or(label.filter(is_other));
            }
            let Some(wrong) = wrong else {
                return Some(css);
            };
            let at = css.rfind(&self.way)?;
            css.insert_str(at, &format!(":not(:contains({}))", quoted(&wrong)));
        }
        None
    }

    fn selector_from(&self, page: &Seen<'_>, base: &str) -> Option<String> {
        let mut label = format!(":contains({})", quoted(&self.label));
        for _ in 0..3 {
            let css = format!("{base}{label}{}", self.way);
            let found = page.select(&css);
            let is_there = found.iter().any(|e| e.id() == self.value.id());
            let other = found.iter().find(|e| e.id() != self.value.id());
            let Some(other) = other.filter(|_| is_there) else {
                return is_there.then_some(css);
            };
            let is_around = self.value.ancestors().any(|a| a.id() == other.id())
                || self
                    .holder
                    .ancestors()
                    .any(|a| Some(a.id()) == previous(*other).map(|p| p.id()));
            if is_around {
                return None;
            }
            let wrong = match self.within {
                Some(_) => label_before(&text_in(*other))?,
                None => previous(*other).map(text_in)?,
            };
            let wrong = wrong.trim_end_matches([':', '：', ' ']).to_owned();
            if wrong == collapsed(&self.label)
                || wrong.is_empty()
                || wrong.chars().count() > MAX_LABEL_CHARS
            {
                return None;
            }
            label.push_str(&format!(":not(:contains({}))", quoted(&wrong)));
        }
        None
    }
}

/// The pairs whose value, or whose both parts, are this element.
fn pairs_at(element: ElementRef<'_>) -> Vec<Pair<'_>> {
    let beside = previous(element).and_then(|before| beside_at(before, element));
    match beside {
        Some(pair) => vec![pair],
        None => within_at(element),
    }
}

/// A label and the element behind it.
fn beside_at<'a>(label: ElementRef<'a>, value: ElementRef<'a>) -> Option<Pair<'a>> {
    let row = value.parent().and_then(ElementRef::wrap)?;
    let of_row = row.child_elements().count();
    match (label.value().name(), value.value().name()) {
        ("dt", "dd") | ("th", "td") => Pair::beside(label, value),
        ("td", "td") if (of_row == 2 && all_pairs(row)) || is_in_turn(row, label) => {
            Pair::beside(label, value).filter(|_| !is_layout(value))
        }
        (
            "span" | "b" | "strong" | "label" | "em" | "i" | "div" | "p" | "font",
            "span" | "div" | "p" | "strong" | "b" | "em" | "i" | "a" | "time" | "small" | "font",
        ) => {
            let says_so = text_in(label).ends_with([':', '：']);
            // Behind the value there may be a link to an explanation, or the next pair.
            let is_pair = match of_row {
                2 => says_so || has_twins(row),
                _ => says_so && !text_in(value).ends_with([':', '：']),
            };
            let is_plain = label.child_elements().next().is_none();
            let pair = Pair::beside(label, value);
            pair.filter(|_| is_pair && is_plain && !own_text(row))
        }
        _ => None,
    }
}

/// Whether a cell is a part of the page, not a value.
fn is_layout(cell: ElementRef<'_>) -> bool {
    let is_block = |e: ElementRef<'_>| matches!(e.value().name(), "div" | "table" | "ul" | "form");
    cell.descendent_elements()
        .skip(1)
        .filter(|e| is_block(*e))
        .count()
        > 1
}

/// Labels and values in the text of one element.
fn within_at(element: ElementRef<'_>) -> Vec<Pair<'_>> {
    let name = element.value().name();
    if !matches!(
        name,
        "li" | "p" | "div" | "span" | "td" | "dd" | "font" | "center"
    ) {
        return Vec::new();
    }
    let in_lines = lines_at(element);
    if !in_lines.is_empty() {
        return in_lines;
    }
    let is_inline = |e: ElementRef<'_>| {
        matches!(
            e.value().name(),
            "b" | "strong"
                | "span"
                | "em"
                | "i"
                | "a"
                | "br"
                | "small"
                | "time"
                | "label"
                | "font"
                | "u"
                | "del"
        )
    };
    let mut inner = element.child_elements();
    if let Some(pair) = label_known(element) {
        return vec![pair];
    }
    // Where all text stands in its elements, two of them are the pair.
    if !inner.all(is_inline) || element.child_elements().count() > 4 || !own_text(element) {
        return Vec::new();
    }
    let text = text_in(element);
    // What stands in front of a line break is no part of a label.
    let label = label_before(&text).filter(|label| first_line(element).starts_with(label));
    let Some(label) = label else {
        let pair = label_first(element).or_else(|| label_bare(element));
        let in_a_line = || labels_bare(element, &text);
        return pair.map_or_else(in_a_line, |pair| vec![pair]);
    };
    // Where an element inside has both, it is that one.
    let has_both = |e: ElementRef<'_>| {
        label_before(&text_in(e)).is_some_and(|l| text_in(e).len() > l.len() + 4)
    };
    let rest = text.get(label.len()..).unwrap_or_default();
    let value = rest.trim_start_matches([':', '：', ' ']);
    let is_prose = value.contains('。') || value.chars().count() > MAX_WITHIN_CHARS;
    if value.is_empty() || is_prose || element.child_elements().any(has_both) {
        return Vec::new();
    }
    in_a_row(element, &label, value)
}

/// `編號：A-17 日期：2026-11-30`: each label with what stands in front of the next one.
fn in_a_row<'a>(element: ElementRef<'a>, label: &str, value: &str) -> Vec<Pair<'a>> {
    let next = Regex::new(NEXT_LABEL)
        .ok()
        .and_then(|next| next.find(value));
    let Some(next) = next else {
        return vec![Pair::within(element, label, BEHIND, End::Text)];
    };
    let (own, rest) = (value.get(..next.start()), value.get(next.end()..));
    let is_word = own.is_some_and(|own| !own.trim().contains(' '));
    let end = if is_word { End::Word } else { End::Label };
    let label_of_next = next.as_str().trim_end_matches([':', '：']).trim();
    let rest = rest.unwrap_or_default().trim_start();
    let mut pairs = vec![Pair::within(element, label, BEHIND, end)];
    pairs.extend(in_a_row(element, label_of_next, rest));
    pairs
}

/// `<b>作者：</b>林一<br><b>定價：</b>NT$ 100`: a label and its value in each line of an element that has several.
fn lines_at(element: ElementRef<'_>) -> Vec<Pair<'_>> {
    let is_break = |e: &ElementRef<'_>| e.value().name() == "br";
    if element.child_elements().filter(is_break).count() == 0 {
        return Vec::new();
    }
    let is_block = |e: ElementRef<'_>| {
        matches!(
            e.value().name(),
            "table" | "div" | "p" | "ul" | "ol" | "dl" | "h1" | "h2" | "h3" | "form"
        )
    };
    if element.descendent_elements().skip(1).any(is_block) {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    for node in element.children() {
        let inner = ElementRef::wrap(node);
        if inner.as_ref().is_some_and(is_break) {
            lines.push(String::new());
        } else if let Some(line) = lines.last_mut() {
            let text = node.value().as_text().map(|text| text.to_string());
            line.push_str(
                &text
                    .or_else(|| inner.map(|e| e.text().collect()))
                    .unwrap_or_default(),
            );
        }
    }
    let pair = |line: &String| {
        let line = collapsed(line);
        let label = label_before(&line)?;
        let value = line
            .get(label.len()..)?
            .trim_start_matches([':', '：', ' ']);
        let is_short = value.chars().count() <= MAX_WITHIN_CHARS && !value.contains('。');
        (is_short && !value.is_empty()).then(|| in_a_row(element, &label, value))
    };
    let pairs: Vec<Vec<Pair<'_>>> = lines.iter().filter_map(pair).collect();
    if pairs.len() < 2 {
        return Vec::new();
    }
    let mut pairs: Vec<Pair<'_>> = pairs.into_iter().flatten().collect();
    for cut in pairs.iter_mut().filter_map(|pair| pair.within.as_mut()) {
        // The next line is behind it.
        cut.end = match cut.end {
            End::Word => End::Word,
            _ => End::Label,
        };
        cut.has_lines = true;
    }
    pairs
}

/// The text in front of the first line break.
fn first_line(element: ElementRef<'_>) -> String {
    let is_break = |e: &ElementRef<'_>| e.value().name() == "br";
    let nodes = element.children();
    let line = nodes.take_while(|node| !ElementRef::wrap(*node).as_ref().is_some_and(is_break));
    let texts = line.map(|node| match ElementRef::wrap(node) {
        Some(inner) => inner.text().collect(),
        None => node
            .value()
            .as_text()
            .map(|text| text.to_string())
            .unwrap_or_default(),
    });
    collapsed(&texts.collect::<String>())
}

/// `坪數 18 坪 樓層 3/5`: labels that are known, without a colon, each with what stands in front of the next one.
fn labels_bare<'a>(element: ElementRef<'a>, text: &str) -> Vec<Pair<'a>> {
    if text.chars().count() > MAX_WITHIN_CHARS {
        return Vec::new();
    }
    let words: Vec<&str> = text.split(' ').collect();
    let is_label = |word: &&&str| names::of_known_label(word).is_some();
    let labels: Vec<&str> = words.iter().filter(is_label).copied().collect();
    let is_first = words
        .first()
        .is_some_and(|word| labels.first() == Some(word));
    let in_turn = words.windows(2).all(|two| match two {
        [one, other] => !labels.contains(one) || !labels.contains(other),
        _ => true,
    });
    let ends_so = words.last().is_some_and(|word| labels.contains(word));
    if labels.len() < 2 || !is_first || !in_turn || ends_so {
        return Vec::new();
    }
    let pair = |label: &&str| {
        let others = labels.iter().filter(|other| *other != label);
        let others: Vec<String> = others.map(|other| regex::escape(other)).collect();
        let end = End::Before(others.join("|"));
        Pair::within(element, label, r"\s+", end)
    };
    labels.iter().map(pair).collect()
}

/// A short label in an element of its own at the beginning, and the bare value behind it: `<li><span>面积</span>89㎡`. Others
/// beside it are made alike.
fn label_first(element: ElementRef<'_>) -> Option<Pair<'_>> {
    let label_in = |e: ElementRef<'_>| {
        let mut nodes = e.children();
        let is_blank = |text: &str| text.trim().is_empty();
        let first = nodes.find(|n| n.value().as_text().is_none_or(|t| !is_blank(t)))?;
        let label = ElementRef::wrap(first)?;
        let is_label = matches!(
            label.value().name(),
            "span" | "label" | "b" | "strong" | "em" | "i"
        ) && label.child_elements().next().is_none();
        let text = label_of(label).filter(|_| is_label && own_text(e))?;
        let has_digit = text.chars().any(|c| c.is_ascii_digit());
        (!has_digit && text.chars().count() <= MAX_LABEL_CHARS / 2).then(|| (named(label), text))
    };
    let (kind, label) = label_in(element)?;
    let row = element.parent().and_then(ElementRef::wrap)?;
    let twins = row.child_elements().filter_map(label_in);
    let twins = twins
        .filter(|(k, other)| *k == kind && *other != label)
        .count();
    (twins >= 1).then(|| Pair::within(element, &collapsed(&label), r"\s*", End::Text))
}

/// A label of money that has an element of its own, and several elements behind it that are the value:
/// `<span>售價</span><em>¥</em><b>1,899</b> <small>到月底</small>`.
fn label_known(element: ElementRef<'_>) -> Option<Pair<'_>> {
    let mut inner = element.child_elements();
    let (first, second) = (inner.next()?, inner.next()?);
    if inner.next().is_none() || own_text(element) || second.value().name() == "br" {
        return None;
    }
    let label = label_of(first).filter(|_| first.child_elements().next().is_none())?;
    if !names::of_known_label(&label).is_some_and(forms::is_money_name) {
        return None;
    }
    let mut others = element.child_elements().skip(1);
    let is_label = |e: ElementRef<'_>| names::of_known_label(&text_in(e)).is_some();
    (!others.any(is_label)).then(|| {
        let between = r"\s*[:：]?\s*";
        Pair::within(element, &collapsed(&label), between, End::Number)
    })
}

/// A bare label that is known, and the value in the one element behind it: `<p>定價 <del>NT$350</del></p>`.
fn label_bare(element: ElementRef<'_>) -> Option<Pair<'_>> {
    let is_there = |text: &str| !text.trim().is_empty();
    let nodes = element
        .children()
        .filter(|n| n.value().as_text().is_none_or(|text| is_there(text)));
    let nodes: Vec<_> = nodes.collect();
    let &[label, value] = &nodes[..] else {
        return None;
    };
    let label = as_label(label.value().as_text()?)?;
    names::of_known_label(&label)?;
    let value = ElementRef::wrap(value)?;
    Some(Pair {
        label,
        holder: element,
        way: format!(" > {}", value.value().name()),
        value,
        within: None,
    })
}

/// The label at the beginning of `label: value`.
fn label_before(text: &str) -> Option<String> {
    let at = text.find([':', '：'])?;
    let (label, rest) = text.split_at(at);
    // `12:30` and `https://` are none.
    let is_digit = |c: char| c.is_ascii_digit();
    let is_time = rest.starts_with(":/")
        || (label.ends_with(is_digit) && rest.trim_start_matches(':').starts_with(is_digit));
    (!is_time).then(|| as_label(label))?
}

/// A label at the beginning of a text as the page has it, where the blanks within it are others than ours: a selector
/// looks for just that.
fn as_written(element: ElementRef<'_>, label: &str) -> String {
    let text: String = element.text().collect();
    let written = |part: &str| {
        let part = part.trim();
        let mut ends = part.char_indices().map(|(at, _)| part.get(at..));
        let found = ends.find_map(|end| end.filter(|end| collapsed(end) == label))?;
        is_one_line(found).then(|| found.to_owned())
    };
    let mut parts = text.split([':', '：']);
    parts.find_map(written).unwrap_or_else(|| label.to_owned())
}

fn is_one_line(text: &str) -> bool {
    !text.contains(['\n', '\r', '\t'])
}

fn label_of(element: ElementRef<'_>) -> Option<String> {
    let text: String = element.text().collect();
    let text = text.trim();
    // A label is looked for as it is written: white space within it may be a line break.
    let whole = match is_one_line(text) {
        true => text,
        false => text.split_whitespace().max_by_key(|part| part.len())?,
    };
    as_label(whole)
}

fn as_label(text: &str) -> Option<String> {
    let text = text.trim().trim_end_matches([':', '：']).trim();
    let is_short = text.chars().count() <= MAX_LABEL_CHARS;
    let is_word = text.chars().any(char::is_alphabetic)
        && !text.contains(['。', '，', '?', '!', '？', '！', '"', ':', '：']);
    // `h***y 2022-07-22` wrote a comment.
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let is_word =
        is_word && digits < MAX_LABEL_DIGITS && !NO_LABELS.contains(&text) && !is_begin(text);
    (is_short && is_word && !text.is_empty()).then(|| text.to_owned())
}

fn previous(element: ElementRef<'_>) -> Option<ElementRef<'_>> {
    let mut before = element.prev_siblings().filter_map(ElementRef::wrap);
    before.next()
}

/// Whether there is text right inside.
fn own_text(element: ElementRef<'_>) -> bool {
    let mut texts = element.children().filter_map(|node| node.value().as_text());
    texts.any(|text| !text.trim().trim_matches([':', '：']).is_empty())
}

/// The tag with its first class.
fn named(element: ElementRef<'_>) -> String {
    let tag = element.value().name();
    match classes(element).next() {
        Some(class) => format!("{tag}.{class}"),
        None => tag.to_owned(),
    }
}

/// Whether all rows of a table are a label and a value.
fn all_pairs(row: ElementRef<'_>) -> bool {
    let rows: Vec<ElementRef<'_>> = row
        .parent()
        .into_iter()
        .flat_map(|p| p.children().filter_map(ElementRef::wrap))
        .collect();
    let label = |row: &ElementRef<'_>| row.child_elements().next().and_then(label_of);
    let mut above = row.ancestors().filter_map(ElementRef::wrap);
    let table = above.find(|e| e.value().name() == "table");
    // Under a head, rows are objects.
    let has_head = table.is_some_and(|t| t.descendent_elements().any(|e| e.value().name() == "th"));
    let is_pair = |row: &ElementRef<'_>| row.child_elements().count() == 2 && label(row).is_some();
    let mut labels: Vec<String> = rows.iter().filter_map(label).collect();
    let all = labels.len();
    labels.sort();
    labels.dedup();
    !has_head && rows.iter().all(is_pair) && labels.len() == all
}

/// Whether labels and values stand in turn in the row, and look otherwise: another colour, another class, bold.
fn is_in_turn(row: ElementRef<'_>, label: ElementRef<'_>) -> bool {
    let cells: Vec<ElementRef<'_>> = row.child_elements().collect();
    let look = |cell: &ElementRef<'_>| {
        let mut inner = cell.child_elements();
        let is_bold = inner
            .next()
            .is_some_and(|e| matches!(e.value().name(), "b" | "strong"));
        (
            cell.value().attr("bgcolor").map(str::to_owned),
            cell.value().attr("class").map(str::to_owned),
            is_bold && inner.next().is_none() && !own_text(*cell),
            text_in(*cell).ends_with([':', '：']),
        )
    };
    let (labels, values): (Vec<_>, Vec<_>) =
        cells.iter().enumerate().partition(|(n, _)| n % 2 == 0);
    let Some((_, first)) = labels.first() else {
        return false;
    };
    let own = look(first);
    let is_like = |(_, cell): &(usize, &ElementRef<'_>)| look(cell) == own;
    cells.len().is_multiple_of(2)
        && labels.iter().any(|(_, cell)| cell.id() == label.id())
        && labels.iter().all(is_like)
        && labels.iter().all(|(_, cell)| label_of(**cell).is_some())
        && !values.iter().any(is_like)
}

/// Whether others of its kind stand beside it, each with another label.
fn has_twins(row: ElementRef<'_>) -> bool {
    let label = |e: ElementRef<'_>| e.child_elements().next().and_then(label_of);
    let own = label(row);
    let is_twin = |e: &ElementRef<'_>| {
        let mut inner = e.child_elements();
        let same = e.value().name() == row.value().name() && e.child_elements().count() == 2;
        let tags = row.child_elements().map(|c| c.value().name());
        same && tags.eq(inner.by_ref().map(|c| c.value().name()))
            && label(*e).is_some_and(|l| Some(l) != own)
    };
    let siblings = row
        .parent()
        .into_iter()
        .flat_map(|p| p.children().filter_map(ElementRef::wrap));
    siblings.filter(is_twin).count() >= 1
}

/// Properties of microdata.
fn microdata(pages: &[Seen<'_>], builder: &mut Builder<'_>) {
    let mut known: Vec<String> = Vec::new();
    for page in pages {
        for element in page.own_content() {
            let Some(property) = element.value().attr("itemprop") else {
                continue;
            };
            let is_plain = property.chars().all(|c| c.is_ascii_alphanumeric());
            let is_object = element.value().attr("itemscope").is_some();
            if !is_plain || is_object || known.iter().any(|k| k == property) {
                continue;
            }
            known.push(property.to_owned());
            let css = format!("[itemprop={property}]");
            let name = names::of_words(property).unwrap_or_default();
            let attribute = ["content", "datetime", "src", "href"]
                .into_iter()
                .find(|a| element.value().attr(a).is_some());
            let Some(attribute) = attribute.filter(|_| !name.is_empty()) else {
                value(pages, builder, &name, Place::whole(&css));
                continue;
            };
            attribute_of(pages, builder, (&name, &css), attribute);
        }
    }
}
