//! What is done to texts so that they become values: as all of them allow.

use crate::config::{NumberMarks, StepConfig, Texts, TimestampConfig};
use crate::parse::steps::{FIRST_YEAR, day_of};

/// How days are written; a day that could be a month (`03/04/2026`) is left to people.
const DAYS: [&str; 9] = [
    "%Y-%m-%d",
    "%Y年%m月%d日",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "民國%Y年%m月%d日",
    "%d %B %Y",
    "%B %d, %Y",
    "%d %b %Y",
    "%b %d, %Y",
];
/// So many of them begin with the year.
const YEAR_FIRST: usize = 5;
/// Any of those within a longer text.
const ANY_DAY_WITHIN: &str = r"(?:民國\d{2,3}|\d{4})[-/.年]\d{1,2}[-/.月]\d{1,2}日?";
/// The same within a longer text.
const DAY_WITHIN: [(&str, &str); 5] = [
    (r"民國\d{2,3}年\d{1,2}月\d{1,2}日", "民國%Y年%m月%d日"),
    (r"\d{4}-\d{1,2}-\d{1,2}", "%Y-%m-%d"),
    (r"\d{4}年\d{1,2}月\d{1,2}日", "%Y年%m月%d日"),
    (r"\d{4}/\d{1,2}/\d{1,2}", "%Y/%m/%d"),
    (r"\d{4}\.\d{1,2}\.\d{1,2}", "%Y.%m.%d"),
];
/// How times without an offset are written.
const TIMES: [&str; 6] = [
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M:%S",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y年%m月%d日 %H:%M",
];
/// Signs of money: such a number has digits behind the point, whether these pages show them or not.
const MONEY: [&str; 14] = [
    "$", "€", "£", "¥", "￥", "₩", "₹", "元", "円", "NT", "TWD", "USD", "CNY", "RMB",
];
/// Names whose numbers are money.
const MONEY_NAMES: [&str; 7] = [
    "price", "rent", "deposit", "cost", "amount", "salary", "fee",
];
/// Names whose digits are no number.
const CODES: [&str; 6] = ["code", "isbn", "phone", "sku", "zip", "postcode"];
/// Characters of a class that may be no word.
const MAX_CODE_CHARS: usize = 3;
/// A whole number with more digits is a code more often than a count.
const MAX_COUNT_DIGITS: usize = 12;

/// So many pages, where there are more, must have a field before its texts are taken for more than texts: what one page
/// writes says little of the others, and a value that does not fit costs its record.
const MIN_SEEN: usize = 3;
/// How units begin that are measured, not counted: the next number may have digits behind the point.
const MEASURES: [&str; 38] = [
    "mm", "cm", "km", "kg", "mg", "ml", "g", "l", "m", "inch", "in", "ft", "lb", "oz", "gb", "tb",
    "hz", "khz", "mhz", "ghz", "w", "v", "mah", "fps", "°", "℃", "㎡", "%", "坪", "平", "公", "斤",
    "吋", "英", "毫", "厘", "米", "克",
];

/// The steps after which the texts of a field are values; `texts` has one for each page, empty where it has none.
pub(super) fn of(name: &str, texts: &[String], zone: &str) -> Vec<StepConfig> {
    let pages = texts.len();
    let texts: Vec<String> = texts.iter().map(|t| super::seen::collapsed(t)).collect();
    let texts: Vec<&str> = texts
        .iter()
        .map(String::as_str)
        .filter(|t| !t.is_empty())
        .collect();
    if texts.is_empty() {
        return vec![StepConfig::Collapse];
    }
    let is_enough = texts.len() == pages || texts.len() >= MIN_SEEN;
    let moment = || times(&texts, zone).or_else(|| days(&texts));
    let moment = if is_enough { moment() } else { None };
    moment
        .or_else(|| counts(name, &texts))
        .or_else(|| number(name, &texts, is_enough))
        .unwrap_or_else(|| vec![StepConfig::Collapse])
}

/// Names of how many there are of a thing.
const COUNTS: [&str; 5] = ["stock", "quantity", "availability", "inventory", "instock"];
/// Words for none.
const NONE_LEFT: [&str; 15] = [
    "缺货",
    "缺貨",
    "售完",
    "售罄",
    "卖完",
    "賣完",
    "已售",
    "无货",
    "無貨",
    "没货",
    "沒貨",
    "无库存",
    "無庫存",
    "out of stock",
    "sold out",
];
/// The one number of such a text, and what it counts: neither days nor weeks until there are some, nor a range.
/// `20 個工作天` counts days.
const COUNT: &str = r"^\D{0,16}(\d{1,3}(?:,\d{3})+|\d{1,6})\s*(?:[^\d\s.~/天日周週月年小至dwhm-][^\d天日周週月年y]{0,24})?$";

/// How many there are, where some pages say a number and others a word: none is 0, any other word says no number.
fn counts(name: &str, texts: &[&str]) -> Option<Vec<StepConfig>> {
    let count = regex::Regex::new(COUNT).ok()?;
    let (numbers, words): (Vec<&&str>, Vec<&&str>) =
        texts.iter().partition(|text| count.is_match(text));
    if !COUNTS.contains(&name) || numbers.is_empty() || words.is_empty() {
        return None;
    }
    let mut steps = vec![StepConfig::Collapse];
    // In the letters of the page.
    let as_written = |text: &str, word: &str| {
        let at = text.to_lowercase().find(word)?;
        text.get(at..at + word.len()).map(str::to_owned)
    };
    let has_digit = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    let mut bare: Vec<&str> = words
        .into_iter()
        .copied()
        .filter(|text| !has_digit(text))
        .collect();
    for word in NONE_LEFT {
        let mut found = bare.iter().filter_map(|text| as_written(text, word));
        let step = found
            .next()
            .map(|word| StepConfig::Replace([word, "0".to_owned()]));
        steps.extend(step);
        bare.retain(|text| as_written(text, word).is_none());
    }
    steps.push(StepConfig::Regex(COUNT.to_owned()));
    steps.push(StepConfig::Int(NumberMarks {
        thousands: Some(','),
        decimal: None,
    }));
    Some(steps)
}

/// Whether a name is one whose numbers are money.
pub(super) fn is_money_name(name: &str) -> bool {
    MONEY_NAMES.contains(&name) || name == "list_price"
}

/// What money is called where its class is no word for it: `rent` by the month, else `price`.
pub(super) fn money_name(class: &str, texts: &[&String]) -> Option<&'static str> {
    let is_known = MONEY_NAMES.iter().any(|name| class.contains(name));
    let is_money = |text: &&String| is_money(text) && Number::of(text).is_some();
    if is_known || class.len() > MAX_CODE_CHARS || texts.is_empty() || !texts.iter().all(is_money) {
        return None;
    }
    let by_month = |text: &&String| {
        ["/月", "/ 月", "/month", "每月"]
            .iter()
            .any(|m| text.contains(m))
    };
    Some(if texts.iter().all(by_month) {
        "rent"
    } else {
        "price"
    })
}

/// The step of numbers that are numbers already, as JSON has them.
pub(super) fn of_numbers(name: &str, texts: &[String]) -> StepConfig {
    let marks = NumberMarks::default();
    let is_whole = |t: &String| t.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    match !MONEY_NAMES.contains(&name) && texts.iter().all(is_whole) {
        true => StepConfig::Int(marks),
        false => StepConfig::Decimal(marks),
    }
}

fn times(texts: &[&str], zone: &str) -> Option<Vec<StepConfig>> {
    let config = |format: &str, zone: Option<String>| {
        let format = Texts(vec![format.to_owned()]);
        vec![StepConfig::Timestamp(TimestampConfig { format, zone })]
    };
    if texts.iter().all(|t| t.parse::<jiff::Timestamp>().is_ok()) {
        return Some(config("rfc3339", None));
    }
    let fits = |format: &&&str| {
        let mut texts = texts.iter();
        texts.all(|t| {
            jiff::civil::DateTime::strptime(format, t).is_ok_and(|at| at.year() >= FIRST_YEAR)
        })
    };
    let format = TIMES.iter().find(fits)?;
    Some(config(format, Some(zone.to_owned())))
}

fn days(texts: &[&str]) -> Option<Vec<StepConfig>> {
    let mut formats: Vec<String> = Vec::new();
    for text in texts {
        let mut formats_left = DAYS.iter();
        let Some(format) = formats_left.find(|f| day_of(f, text).is_some()) else {
            return days_within(texts);
        };
        if !formats.iter().any(|f| f == format) {
            formats.push((*format).to_owned());
        }
    }
    let year_first = DAYS.get(..YEAR_FIRST).unwrap_or_default();
    if formats.len() > 1 && formats.iter().all(|f| year_first.contains(&f.as_str())) {
        // Where some pages write days otherwise than others, further ones may write them otherwise again.
        for format in year_first {
            if !formats.iter().any(|f| f == format) {
                formats.push((*format).to_owned());
            }
        }
    }
    Some(vec![StepConfig::Collapse, StepConfig::Date(Texts(formats))])
}

/// Days that stand in a text of other words: only short ones, or every comment that names a day would be one.
fn days_within(texts: &[&str]) -> Option<Vec<StepConfig>> {
    if texts.iter().any(|t| t.chars().count() > 30) {
        return None;
    }
    let has_one = |regex: &str, formats: &[&str]| {
        let Ok(regex) = regex::Regex::new(regex) else {
            return false;
        };
        texts.iter().all(|t| {
            let mut found = regex.find_iter(t);
            let is_day = |day: &str| formats.iter().any(|f| day_of(f, day).is_some());
            found.next().is_some_and(|d| is_day(d.as_str())) && found.next().is_none()
        })
    };
    let steps = |regex: &str, formats: &[&str]| {
        let formats = formats.iter().map(|f| (*f).to_owned()).collect();
        vec![
            StepConfig::Regex(regex.to_owned()),
            StepConfig::Date(Texts(formats)),
        ]
    };
    let mut one = DAY_WITHIN.iter();
    if let Some((regex, format)) = one.find(|(regex, format)| has_one(regex, &[format])) {
        return Some(steps(regex, &[format]));
    }
    let all = DAYS.get(..YEAR_FIRST).unwrap_or_default();
    has_one(ANY_DAY_WITHIN, all).then(|| steps(ANY_DAY_WITHIN, all))
}

/// The number of a text that has one: `10-15` on another page is no 10.
pub(super) const ONE_NUMBER: &str = r"^\D*(\d(?:[\d.,]*\d)?)\D*$";
/// What stands before a number and leaves it one.
const ABOUT: [&str; 6] = ["", "約", "约", "共", "ca.", "about"];
/// What makes a number the name of a thing.
const NO_UNITS: [char; 10] = ['號', '号', '樓', '楼', '層', '层', '室', '弄', '巷', '路'];

/// The one number in a text, with what stands around it.
struct Number<'t> {
    digits: &'t str,
    around: String,
    after: &'t str,
}

impl<'t> Number<'t> {
    /// `NT$ 12,800 元/月`, `32.5 坪`, `約 7`; not `8F/15F`, `A-12`, `9號` or `2026-11-30`.
    fn of(text: &'t str) -> Option<Self> {
        let is_digit = |c: char| c.is_ascii_digit();
        let begin = text.find(is_digit)?;
        let end = text.rfind(is_digit)? + 1;
        let digits = text.get(begin..end)?;
        let (before, after) = (text.get(..begin)?, text.get(end..)?);
        let is_one = digits
            .chars()
            .all(|c| is_digit(c) || matches!(c, ',' | '.'));
        let is_short = before.chars().count() <= 8 && after.chars().count() <= 16;
        let is_plain = ABOUT.contains(&before.trim()) && is_unit(after);
        let around = format!("{before}{after}");
        let is_number = is_one && is_short && (is_money(&around) || is_plain);
        is_number.then_some(Self {
            digits,
            around,
            after,
        })
    }

    fn is_code(&self) -> bool {
        let plain = self.digits.bytes().all(|b| b.is_ascii_digit());
        plain
            && (self.digits.len() > MAX_COUNT_DIGITS
                || (self.digits.len() > 1 && self.digits.starts_with('0')))
    }
}

fn is_money(around: &str) -> bool {
    MONEY.iter().any(|sign| around.contains(sign))
}

/// Whether what stands behind a number says of what there are so many.
fn is_unit(after: &str) -> bool {
    let unit = after.trim();
    let is_word =
        |c: char| c.is_alphanumeric() || matches!(c, '%' | '°' | ' ' | '㎡' | '²' | '³' | '℃');
    // `8F` is a floor, `40 GB` a size.
    let is_stuck = after.starts_with(|c: char| c.is_ascii_uppercase());
    unit.chars().count() <= 8
        && unit.chars().all(is_word)
        && !unit.starts_with(NO_UNITS)
        && !is_stuck
}

/// Whether the unit behind a number is one of measures: `mm`, `公斤`, `坪`.
fn is_measured(after: &str) -> bool {
    let unit = after.trim().to_lowercase();
    let word: String = unit.chars().take_while(char::is_ascii_alphabetic).collect();
    MEASURES.iter().any(|measure| match word.is_empty() {
        true => unit.starts_with(measure),
        false => word == *measure,
    })
}

fn number(name: &str, texts: &[&str], is_enough: bool) -> Option<Vec<StepConfig>> {
    let numbers: Vec<Number<'_>> = texts.iter().filter_map(|t| Number::of(t)).collect();
    let is_money = MONEY_NAMES.contains(&name) || numbers.iter().any(|n| is_money(&n.around));
    // `negotiable` among prices is no value; among other things, a word says that they are words.
    let enough = if is_money {
        texts.len().div_ceil(2)
    } else {
        texts.len()
    };
    if numbers.is_empty() || numbers.len() < enough {
        return None;
    }
    // `135 全片幅` wherever there is a value: words that have a number in them.
    let is_fixed = texts.len() >= MIN_SEEN && texts.iter().all(|text| Some(text) == texts.first());
    let is_bare = numbers.iter().all(|n| n.around.is_empty());
    if !is_money && (!is_enough || (is_fixed && !is_bare)) {
        return None;
    }
    let is_code = CODES.contains(&name) || numbers.iter().any(Number::is_code);
    if is_code && !is_money {
        return None;
    }
    let mut marks = marks_of(&numbers)?;
    let point = marks.decimal.unwrap_or('.');
    let has_fraction = numbers.iter().any(|n| n.digits.contains(point));
    let is_measured = numbers.iter().any(|n| is_measured(n.after));
    let is_bare = !is_money && is_bare;
    // Out of a longer text the `1,280` of another page must not be taken as 1.
    if !is_bare && marks.thousands.is_none() {
        marks.thousands = Some(',');
    }
    let regex = (!is_bare).then(|| StepConfig::Regex(ONE_NUMBER.to_owned()));
    let number = match is_money || has_fraction || is_measured {
        true => StepConfig::Decimal(marks),
        false => StepConfig::Int(marks),
    };
    Some(regex.into_iter().chain([number]).collect())
}

/// Which marks the numbers are written with; `None` where they do not agree, or where it cannot be told.
fn marks_of(numbers: &[Number<'_>]) -> Option<NumberMarks> {
    // Groups of three in front of the point, and none behind it.
    let fits = |n: &Number<'_>, group: char, point: char| {
        let (whole, rest) = n.digits.split_once(point).unwrap_or((n.digits, ""));
        let mut groups = whole.split(group);
        let first = groups.next().unwrap_or_default();
        let is_grouped = !whole.contains(group) || (1..=3).contains(&first.len());
        is_grouped && groups.all(|g| g.len() == 3) && rest.bytes().all(|b| b.is_ascii_digit())
    };
    let is_english = |n: &Number<'_>| fits(n, ',', '.');
    if numbers.iter().all(is_english) {
        let thousands = numbers
            .iter()
            .any(|n| n.digits.contains(','))
            .then_some(',');
        return Some(NumberMarks {
            thousands,
            decimal: None,
        });
    }
    let is_continental = |n: &Number<'_>| fits(n, '.', ',');
    let all = numbers.iter().all(is_continental);
    all.then_some(NumberMarks {
        thousands: Some('.'),
        decimal: Some(','),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::draft::written::steps_text;

    fn form(name: &str, texts: &[&str]) -> String {
        let texts: Vec<String> = texts.iter().map(|t| (*t).to_owned()).collect();
        steps_text(&of(name, &texts, "Asia/Taipei"))
    }

    #[test]
    fn numbers_take_their_marks_and_leave_their_units() {
        let taken = |number: &str| {
            let number = format!("{{ {number} = {{ thousands = \",\" }} }}");
            format!(r"[{{ regex = '^\D*(\d(?:[\d.,]*\d)?)\D*$' }}, {number}]")
        };
        let (decimal, int) = (taken("decimal"), taken("int"));
        let text = r#"["collapse"]"#;
        let continental = r#"[{ regex = '^\D*(\d(?:[\d.,]*\d)?)\D*$' }, { decimal = { thousands = ".", decimal = "," } }]"#;
        for (name, texts, steps) in [
            (
                "price",
                &["NT$ 12,800.50 元/月", "面議"][..],
                decimal.as_str(),
            ),
            ("price", &["3000"], &decimal),
            ("x", &["£51.77"], &decimal),
            ("x", &["32.5 坪", "8 坪"], &decimal),
            ("x", &["3 個月", "約 12 個月"], &int),
            ("x", &["12", "7"], r#"["int"]"#),
            ("x", &["12.5", "7"], r#"["decimal"]"#),
            ("x", &["12,800"], r#"[{ int = { thousands = "," } }]"#),
            ("x", &["1.280,50 €"], continental),
            ("x", &["805 g", "1,200 g", "90 g"], &decimal),
            ("x", &["82mm", "77mm"], &decimal),
            ("x", &["3 組", "4 組"], &int),
            // Seen on too few pages, or everywhere alike.
            ("x", &["10", "", ""], text),
            ("x", &["2026-11-28", "", ""], text),
            ("x", &["135 全片幅", "135 全片幅", "135 全片幅"], text),
            ("price", &["NT$ 800", "", ""], &decimal),
            ("x", &["007", "12"], text),
            ("isbn", &["9789571234567"], text),
            ("x", &["12", "many"], text),
            ("x", &["8F/15F"], text),
            ("x", &["10-15 天"], text),
            ("x", &["8F"], text),
            ("x", &["稻田路9號"], text),
            ("x", &["第3冊"], text),
            ("x", &["A-12"], text),
            ("x", &["FM2"], text),
        ] {
            assert_eq!(form(name, texts), steps, "{texts:?}");
        }
    }

    #[test]
    fn what_is_counted_are_things() {
        let count = regex::Regex::new(COUNT).unwrap();
        let read = |text: &str| count.captures(text).map(|c| c[1].to_owned());
        for (text, number) in [
            ("8 件", "8"),
            ("现货 15台", "15"),
            ("尚餘 1,200 件（門市）", "1200"),
            ("Only 2 left in stock", "2"),
            ("0", "0"),
        ] {
            assert_eq!(
                read(text).map(|n| n.replace(',', "")).as_deref(),
                Some(number),
                "{text}"
            );
        }
        for text in [
            "有货",
            "需订货（约7天）",
            "預購商品,約 20 個工作天出貨",
            "Ships in 3 weeks",
            "5 business days",
            "3-5 件",
            "1.5 kg",
            "2026-12-20 到貨",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        let mixed = form("stock", &["8 件", "缺货", "预计 7 天"]);
        assert!(mixed.contains(r#"replace = ["缺货", "0"]"#), "{mixed}");
        assert!(!form("size", &["8 件", "缺货"]).contains("int"));
    }

    #[test]
    fn days_and_times_have_their_formats() {
        for (texts, steps) in [
            (
                &["2026年11月28日", "2026年1月3日"][..],
                r#"["collapse", { date = "%Y年%m月%d日" }]"#,
            ),
            (
                &["28 November 2026", "2026-11-28"],
                r#"["collapse", { date = ["%d %B %Y", "%Y-%m-%d"] }]"#,
            ),
            (
                &["更新於 2026-11-28"],
                r"[{ regex = '\d{4}-\d{1,2}-\d{1,2}' }, { date = 'F' }]",
            ),
            (
                &["2026-11-28T10:00:00Z"],
                r#"[{ timestamp = { format = "rfc3339" } }]"#,
            ),
            (
                &["2026-11-28 10:00"],
                r#"[{ timestamp = { format = "%Y-%m-%d %H:%M", zone = "Asia/Taipei" } }]"#,
            ),
            // Two ways of writing it are told, so there may be a third one.
            (
                &["2026/11/28", "2026年1月3日"],
                r#"["collapse", { date = ["%Y/%m/%d", "%Y年%m月%d日", "%Y-%m-%d", "%Y.%m.%d", "民國%Y年%m月%d日"] }]"#,
            ),
            (
                &["更新於 2026-11-28", "2026年1月3日 更新"],
                r"[{ regex = '(?:民國\d{2,3}|\d{4})[-/.年]\d{1,2}[-/.月]\d{1,2}日?' }, { date = ['F', 'G'] }]",
            ),
            (
                &["民國112年3月5日"],
                r#"["collapse", { date = "民國%Y年%m月%d日" }]"#,
            ),
            (&["03/04/2026"], r#"["collapse"]"#),
            (&["113.02.27"], r#"["collapse"]"#),
            (&["113/02/27 10:00"], r#"["collapse"]"#),
            (&["2026-02-30"], r#"["collapse"]"#),
        ] {
            assert_eq!(
                form("x", texts),
                steps.replace("'F'", "\"%Y-%m-%d\"").replace(
                    "'G'",
                    r#""%Y年%m月%d日", "%Y/%m/%d", "%Y.%m.%d", "民國%Y年%m月%d日""#
                ),
                "{texts:?}"
            );
        }
    }
}
