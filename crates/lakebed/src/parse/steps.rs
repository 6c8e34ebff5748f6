//! What is done to a value on its way into a record: each step is a pure function from one value to none, one
//! or several. A step that cannot do its work is a fault of the record; nothing is guessed.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use regex::Regex;
use url::Url;

use crate::config::{NumberMarks, ScalarConfig, StepConfig};
use crate::error::{Error, Result};
use crate::parse::budget::{Budget, PageError};
use crate::parse::json::{JsonDoc, JsonQuery};
use crate::parse::numbers::Digits;
use crate::spec::Datum;
use crate::time::time_zone;

/// Characters of a value that an error shows.
const SAMPLE_CHARS: usize = 60;
/// The first year of four digits.
pub(super) const FIRST_YEAR: i16 = 1_000;
/// How days of Taiwan's calendar begin.
const ROC_ERAS: [&str; 2] = ["民國", "民国"];
/// The year before its first one.
const ROC_YEAR_ZERO: u16 = 1911;
/// What one place of a regular expression costs at a byte of text.
const STEPS_PER_PLACE: u64 = 4;

/// A step that was read.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Trim,
    Collapse,
    Url,
    Int(NumberMarks),
    Decimal(NumberMarks),
    Replace(String, String),
    Format(String),
    /// With the group that is the value, and what a byte of text may cost.
    Regex(Box<Regex>, usize, u64),
    Split(String),
    Map(HashMap<String, Datum>),
    Json(JsonQuery),
    Date(Vec<String>),
    Timestamp(Vec<String>, Option<TimeZone>),
}

/// Why a value cannot become what it must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Of the value.
    Value { code: &'static str, reason: String },
    /// Of the page as a whole.
    Page(PageError),
}

impl From<PageError> for Trouble {
    fn from(error: PageError) -> Self {
        Self::Page(error)
    }
}

fn trouble(code: &'static str, reason: impl Into<String>) -> Trouble {
    let reason = reason.into();
    Trouble::Value { code, reason }
}

/// A scalar of the configuration as a value.
pub(super) fn datum_of(scalar: &ScalarConfig) -> Datum {
    match scalar {
        ScalarConfig::Bool(b) => Datum::Bool(*b),
        ScalarConfig::Int(n) => Datum::Number(n.to_string()),
        ScalarConfig::Text(text) => Datum::Text(text.clone()),
    }
}

/// What steps know of the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surroundings<'a> {
    pub(super) base: &'a Url,
    pub(super) budget: &'a Budget,
}

impl Step {
    /// Reads a step.
    ///
    /// # Errors
    /// `InvalidInput` that names what cannot be read.
    pub(super) fn read(step: &StepConfig) -> Result<Self> {
        Ok(match step {
            StepConfig::Trim => Self::Trim,
            StepConfig::Collapse => Self::Collapse,
            StepConfig::Url => Self::Url,
            StepConfig::Int(marks) => Self::Int(check_marks(marks)?),
            StepConfig::Decimal(marks) => Self::Decimal(check_marks(marks)?),
            StepConfig::Replace([from, _]) if from.is_empty() => {
                return Err(Error::invalid("`replace` needs a text to look for"));
            }
            StepConfig::Replace([from, to]) => Self::Replace(from.clone(), to.clone()),
            StepConfig::Regex(text) => read_regex(text)?,
            StepConfig::Split(by) if by.is_empty() => {
                return Err(Error::invalid("`split` needs a text to split by"));
            }
            StepConfig::Split(by) => Self::Split(by.clone()),
            StepConfig::Format(text) if !text.contains("{}") => {
                return Err(
                    Error::invalid(format!("`{text}` has no place for the value"))
                        .hint("`{}` is where it goes: { format = \"/detail/{}\" }"),
                );
            }
            StepConfig::Format(text) => Self::Format(text.clone()),
            StepConfig::Map(words) if words.0.is_empty() => {
                return Err(
                    Error::invalid("`map` has no word").hint("{ map = { One = 1, Two = 2 } }")
                );
            }
            StepConfig::Map(words) => {
                let words = words.0.iter();
                Self::Map(words.map(|(w, v)| (w.clone(), datum_of(v))).collect())
            }
            StepConfig::Json(path) => Self::Json(JsonQuery::parse(path)?),
            StepConfig::Date(formats) => Self::Date(check_days(check_formats(&formats.0)?)?),
            StepConfig::Timestamp(config) => {
                let formats = check_formats(&config.format.0)?;
                let zone = config.zone.as_deref().map(time_zone).transpose()?;
                let has_none = |f: &&String| !has_offset(f);
                if let (None, Some(format)) = (&zone, formats.iter().find(has_none)) {
                    return Err(Error::invalid(format!("`{format}` says no offset"))
                        .hint("say in which zone such times are: zone = \"Asia/Taipei\""));
                }
                Self::Timestamp(formats, zone)
            }
        })
    }

    /// Whether it reads a text for what it means: of a blank one it makes no value.
    fn is_typed(&self) -> bool {
        match self {
            Self::Int(_)
            | Self::Decimal(_)
            | Self::Map(_)
            | Self::Date(_)
            | Self::Timestamp(..) => true,
            Self::Trim
            | Self::Collapse
            | Self::Url
            | Self::Replace(..)
            | Self::Format(_)
            | Self::Regex(..)
            | Self::Split(_)
            | Self::Json(_) => false,
        }
    }

    /// What becomes of a value.
    fn apply(&self, value: Datum, around: Surroundings<'_>) -> Result<Vec<Datum>, Trouble> {
        if let Self::Json(query) = self {
            return find_json(query, value, around.budget);
        }
        let text = match &value {
            Datum::Text(text) | Datum::Number(text) => text.as_str(),
            Datum::Bool(_) => value.scalar_text().unwrap_or_default(),
            Datum::Null => return Ok(Vec::new()),
            Datum::List(_) | Datum::Object(_) => {
                let what = format!("{} is no text", sample(&value.to_json()));
                return Err(trouble("no_text", what));
            }
        };
        around.budget.spend(1 + text.len() as u64)?;
        if self.is_typed() && text.chars().all(char::is_whitespace) {
            return Ok(Vec::new());
        }
        let one = |text: String| Ok(vec![Datum::Text(text)]);
        match self {
            Self::Trim => one(text.trim().to_owned()),
            Self::Collapse => one(text.split_whitespace().collect::<Vec<_>>().join(" ")),
            Self::Url => match around.base.join(text.trim()) {
                Ok(url) => one(url.into()),
                Err(e) => Err(trouble(
                    "no_url",
                    format!("{} is no address: {e}", sample(text)),
                )),
            },
            Self::Int(marks) => {
                let int = Digits::parse(text, marks).and_then(|d| d.to_int());
                let int = int.ok_or_else(|| no("no_number", text, "a whole number"))?;
                Ok(vec![Datum::Number(int)])
            }
            Self::Decimal(marks) => match Digits::parse(text, marks) {
                Some(digits) => one(digits.to_decimal()),
                None => Err(no("no_number", text, "a number")),
            },
            Self::Replace(from, to) => one(kept(text.replace(from.as_str(), to), around)?),
            Self::Format(whole) => one(kept(whole.replace("{}", text), around)?),
            Self::Regex(regex, group, cost) => {
                around
                    .budget
                    .spend((text.len() as u64).saturating_mul(*cost))?;
                let found = regex.captures(text).and_then(|c| c.get(*group));
                Ok(found
                    .map(|m| Datum::Text(m.as_str().to_owned()))
                    .into_iter()
                    .collect())
            }
            Self::Split(by) => {
                let parts = text.split(by.as_str());
                Ok(parts.map(|part| Datum::Text(part.to_owned())).collect())
            }
            Self::Map(words) => match words.get(text.trim()) {
                Some(value) => Ok(vec![value.clone()]),
                None => Err(no("unknown_word", text, "a word of the map")),
            },
            Self::Date(formats) => match formats.iter().find_map(|f| day_of(f, text.trim())) {
                Some(date) => one(date.to_string()),
                None => Err(no("no_date", text, "a date of the declared formats")),
            },
            Self::Timestamp(formats, zone) => one(timestamp(text.trim(), formats, zone.as_ref())?),
            Self::Json(_) => Ok(Vec::new()),
        }
    }
}

/// All steps one after another, for each value that the one before gave.
pub(super) fn clean(
    steps: &[Step],
    value: Datum,
    around: Surroundings<'_>,
) -> Result<Vec<Datum>, Trouble> {
    let mut values = vec![value];
    for step in steps {
        let mut next = Vec::with_capacity(values.len());
        for value in values {
            next.extend(step.apply(value, around)?);
        }
        values = next;
    }
    Ok(values)
}

/// A text that a step made, as long as the page may give so much.
fn kept(text: String, around: Surroundings<'_>) -> Result<String, PageError> {
    around.budget.keep(text.len())?;
    Ok(text)
}

fn find_json(query: &JsonQuery, value: Datum, budget: &Budget) -> Result<Vec<Datum>, Trouble> {
    let text = match value {
        Datum::Text(text) => text,
        other => other.to_json(),
    };
    budget.spend(text.len() as u64)?;
    let doc = JsonDoc::parse(&text)
        .map_err(|e| trouble(e.code, format!("{}: {}", e.reason, sample(&text))))?;
    let found = query.find(&doc, doc.root(), budget)?;
    let data = found.into_iter().map(|v| doc.datum(v, budget));
    Ok(data.collect::<Result<_, _>>()?)
}

fn no(code: &'static str, text: &str, what: &str) -> Trouble {
    trouble(code, format!("{} is not {what}", sample(text)))
}

/// The beginning of a value in backticks.
pub(super) fn sample(text: &str) -> String {
    let mut short: String = text.trim().chars().take(SAMPLE_CHARS).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    format!("`{}`", short.escape_debug())
}

fn check_marks(marks: &NumberMarks) -> Result<NumberMarks> {
    let decimal = marks.decimal.unwrap_or('.');
    let bad = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+');
    if marks.thousands == Some(decimal) {
        return Err(Error::invalid(format!(
            "`{decimal}` stands for both thousands and the decimal mark"
        ))
        .hint("name the other one, too: { thousands = \".\", decimal = \",\" }"));
    }
    match [Some(decimal), marks.thousands]
        .into_iter()
        .flatten()
        .find(|c| bad(*c))
    {
        Some(c) => Err(Error::invalid(format!(
            "`{c}` cannot be a mark of a number"
        ))),
        None => Ok(marks.clone()),
    }
}

fn read_regex(text: &str) -> Result<Step> {
    let regex = Regex::new(text).map_err(|e| {
        let why = e.to_string().lines().last().unwrap_or_default().to_owned();
        Error::invalid(format!("`{text}` is no regular expression: {why}")).hint(
            "the syntax is that of the Rust crate `regex`: no look-around, no back-references",
        )
    })?;
    let named = regex.capture_names().position(|n| n == Some("value"));
    let first = usize::from(regex.captures_len() > 1);
    let cost = regex_cost(text);
    Ok(Step::Regex(Box::new(regex), named.unwrap_or(first), cost))
}

/// Steps that a regular expression may take at each byte: as many as it has places, counted repetitions as often as
/// they say. Nested counts (`(a{1,100}){1,100}`) are what makes them many.
fn regex_cost(text: &str) -> u64 {
    let mut groups: Vec<u64> = vec![0];
    let mut last = 0_u64;
    let mut chars = text.chars().peekable();
    let mut is_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let _escaped = chars.next();
                if is_class {
                    continue;
                }
                last = 1;
            }
            ']' => is_class = false,
            _ if is_class => continue,
            '[' => {
                is_class = true;
                last = 1;
            }
            '(' => {
                groups.push(0);
                continue;
            }
            ')' => last = groups.pop().unwrap_or(0),
            '{' => {
                let counts: String = chars.by_ref().take_while(|c| *c != '}').collect();
                let most = counts
                    .rsplit(',')
                    .find_map(|n| n.trim().parse::<u64>().ok());
                last = last.saturating_mul(most.unwrap_or(1).saturating_sub(1));
            }
            '*' | '+' | '?' | '|' => continue,
            _ => last = 1,
        }
        if groups.is_empty() {
            groups.push(0);
        }
        if let Some(sum) = groups.last_mut() {
            *sum = sum.saturating_add(last);
        }
    }
    let places = groups.iter().fold(1_u64, |all, n| all.saturating_add(*n));
    places.saturating_mul(STEPS_PER_PLACE)
}

const EPOCHS: [(&str, i64); 3] = [("epoch_s", 1_000_000), ("epoch_ms", 1_000), ("epoch_us", 1)];

fn is_named_format(format: &str) -> bool {
    format == "rfc3339" || EPOCHS.iter().any(|(name, _)| *name == format)
}

fn has_offset(format: &str) -> bool {
    is_named_format(format)
        || ["%z", "%:z", "%Q", "%:Q", "%s"]
            .iter()
            .any(|d| format.contains(d))
}

fn check_formats(formats: &[String]) -> Result<Vec<String>> {
    if formats.is_empty() {
        return Err(Error::invalid("there is no format"));
    }
    for format in formats.iter().filter(|f| !is_named_format(f)) {
        strtime::format(format, Timestamp::UNIX_EPOCH).map_err(|e| {
            Error::invalid(format!("`{format}` is no format of times: {e}"))
                .hint("such as \"%Y-%m-%d %H:%M\"; also rfc3339, epoch_s, epoch_ms, epoch_us")
        })?;
        if !format.contains('%') {
            return Err(
                Error::invalid(format!("`{format}` names no part of a time"))
                    .hint("such as \"%Y-%m-%d %H:%M\"; also rfc3339, epoch_s, epoch_ms, epoch_us"),
            );
        }
    }
    Ok(formats.to_vec())
}

/// The day that a text of this format says. A year has four digits: `113.02.27` is no day of the second century, but one
/// of a calendar that the format does not name. Behind `民國` the years are those of Taiwan, where 1912 is the first one.
pub(super) fn day_of(format: &str, text: &str) -> Option<Date> {
    if !ROC_ERAS
        .iter()
        .any(|era| format.contains(&format!("{era}%Y")))
    {
        let day = Date::strptime(format, text).ok();
        return day.filter(|day| day.year() >= FIRST_YEAR);
    }
    let era = ROC_ERAS.iter().find(|era| text.contains(*era))?;
    let (before, after) = text.split_once(*era)?;
    let year: String = after.chars().take_while(char::is_ascii_digit).collect();
    let rest = after.get(year.len()..)?;
    let year = year
        .parse::<u16>()
        .ok()
        .filter(|year| (1..1_000).contains(year))?;
    let text = format!("{before}{era}{}{rest}", year + ROC_YEAR_ZERO);
    Date::strptime(format, text).ok()
}

/// That each format reads a day: one that leaves out a part of it reads none.
fn check_days(formats: Vec<String>) -> Result<Vec<String>> {
    let sample = Date::constant(2026, 11, 28);
    for format in &formats {
        let read = sample.strftime(format).to_string();
        if Date::strptime(format, &read).ok() != Some(sample) {
            return Err(
                Error::invalid(format!("`{format}` does not say which day it is"))
                    .hint("year, month and day: \"%Y-%m-%d\""),
            );
        }
    }
    Ok(formats)
}

/// The instant in UTC, RFC 3339.
fn timestamp(text: &str, formats: &[String], zone: Option<&TimeZone>) -> Result<String, Trouble> {
    for format in formats {
        let epoch = EPOCHS.iter().find(|(name, _)| name == format);
        let parsed = match epoch {
            Some((_, micros)) => {
                let count = text.parse::<i64>().ok();
                let micros = count.and_then(|n| n.checked_mul(*micros));
                micros.and_then(|n| Timestamp::from_microsecond(n).ok())
            }
            None if format == "rfc3339" => text.parse::<Timestamp>().ok(),
            None if has_offset(format) => Timestamp::strptime(format, text)
                .ok()
                .filter(|at| TimeZone::UTC.to_datetime(*at).year() >= FIRST_YEAR),
            None => match (DateTime::strptime(format, text), zone) {
                (Ok(time), Some(zone)) if time.year() >= FIRST_YEAR => {
                    let at = zone.to_ambiguous_timestamp(time).unambiguous();
                    Some(at.map_err(|_| {
                        let what =
                            format!("{} is skipped or comes twice in its zone", sample(text));
                        trouble("ambiguous_time", what)
                    })?)
                }
                _ => None,
            },
        };
        if let Some(at) = parsed {
            return Ok(at.to_string());
        }
    }
    Err(no("no_time", text, "a time of the declared formats"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ParseConfig;

    fn steps(clean: &str) -> Result<Vec<Step>> {
        let text = format!("[[page]]\n[[page.item]]\nfield.a = {{ css = 'a', clean = {clean} }}\n");
        let config: ParseConfig = crate::config::parse_toml(&text, "source.toml")?;
        let clean = &config.page[0].item[0].field.0[0].1.table.clean;
        clean.iter().map(Step::read).collect()
    }

    fn cleaned(clean_steps: &str, text: &str) -> std::result::Result<String, &'static str> {
        let base = Url::parse("http://a.test/x/y").unwrap();
        let around = Surroundings {
            base: &base,
            budget: &Budget::new(),
        };
        match clean(
            &steps(clean_steps).unwrap(),
            Datum::Text(text.to_owned()),
            around,
        ) {
            Ok(values) => Ok(values
                .iter()
                .map(Datum::to_json)
                .collect::<Vec<_>>()
                .join(" ")),
            Err(Trouble::Value { code, .. }) => Err(code),
            Err(Trouble::Page(e)) => Err(e.code),
        }
    }

    #[test]
    fn steps_do_what_they_say() {
        for (steps, text, expected) in [
            ("['trim']", " \u{3000}a  b\n", Ok(r#""a  b""#)),
            ("['collapse']", " a\n\u{a0} b ", Ok(r#""a b""#)),
            ("['url']", " ../b?x=1#c", Ok(r#""http://a.test/b?x=1#c""#)),
            ("['int']", " 22 ", Ok("22")),
            ("['int']", "2x", Err("no_number")),
            ("['int']", "  ", Ok("")),
            (
                "[{ replace = ['£', ''] }, 'decimal']",
                "£51.77",
                Ok(r#""51.77""#),
            ),
            (
                "[{ regex = '\\((\\d+) available\\)' }, 'int']",
                "In stock (22 available)",
                Ok("22"),
            ),
            ("[{ regex = '(a)(?P<value>b)' }]", "xab", Ok(r#""b""#)),
            ("[{ regex = 'a' }]", "b", Ok("")),
            ("[{ format = '/d/{}?x={}' }]", "7", Ok(r#""/d/7?x=7""#)),
            ("[{ split = '、' }, 'trim']", "甲、 乙", Ok(r#""甲" "乙""#)),
            (
                "[{ map = { One = 1, '三' = 'x', no = false } }]",
                " 三 ",
                Ok(r#""x""#),
            ),
            ("[{ map = { One = 1 } }]", "Two", Err("unknown_word")),
            (
                "[{ json = '$.a[*]' }]",
                r#"{"a":[1.0,"x"]}"#,
                Ok(r#"1.0 "x""#),
            ),
            ("[{ json = '$.a' }]", "{", Err("no_json")),
            (
                "[{ date = ['%d %B %Y', '%Y年%m月%d日'] }]",
                "2024年6月7日",
                Ok(r#""2024-06-07""#),
            ),
            ("[{ date = '%Y-%m-%d' }]", "2024-02-30", Err("no_date")),
            ("[{ date = '%Y.%m.%d' }]", "113.02.27", Err("no_date")),
            // Taiwan's years: 109 is 2020, which has a day more.
            (
                "[{ date = '民國%Y年%m月%d日' }]",
                "民國109年2月29日",
                Ok("\"2020-02-29\""),
            ),
            (
                "[{ date = '民國%Y年%m月%d日' }]",
                "民國2020年2月29日",
                Err("no_date"),
            ),
            ("[{ date = '民國%Y/%m/%d' }]", "109/2/29", Err("no_date")),
            (
                "[{ timestamp = { format = '%Y/%m/%d %H:%M', zone = 'Asia/Taipei' } }]",
                "113/02/27 10:00",
                Err("no_time"),
            ),
            (
                "[{ timestamp = { format = '%Y/%m/%d %H:%M %z' } }]",
                "113/02/27 10:00 +0800",
                Err("no_time"),
            ),
            (
                "[{ timestamp = { format = '%Y-%m-%d %H:%M', zone = 'Asia/Taipei' } }]",
                "2024-06-07 08:09",
                Ok(r#""2024-06-07T00:09:00Z""#),
            ),
            (
                "[{ timestamp = { format = '%Y-%m-%d %H:%M', zone = 'Europe/Berlin' } }]",
                "2024-10-27 02:30",
                Err("ambiguous_time"),
            ),
            (
                "[{ timestamp = { format = ['rfc3339', 'epoch_s'] } }]",
                "1700000000",
                Ok(r#""2023-11-14T22:13:20Z""#),
            ),
        ] {
            assert_eq!(
                cleaned(steps, text),
                expected.map(str::to_owned),
                "{steps} of {text}"
            );
        }
    }

    #[test]
    fn a_regex_costs_as_many_steps_as_it_has_places() {
        for (regex, places) in [
            ("abc", 4),
            (r"(\d+) available", 12),
            (r"[a-z\]{3}]x", 3),
            ("a{3}", 4),
            ("(?:a{1,90}){1,90}", 8_000),
            ("((a{10}){10}){10}", 1_000),
        ] {
            let cost = regex_cost(regex) / STEPS_PER_PLACE;
            assert!(
                (places..=places * 5 / 4 + 2).contains(&cost),
                "{regex}: {cost}"
            );
        }
    }

    #[test]
    fn steps_that_cannot_be_read_are_refused() {
        for (clean, told) in [
            ("[{ regex = '(?=a)' }]", "(?=a)"),
            ("[{ split = '' }]", "split"),
            ("[{ format = '/d/' }]", "no place"),
            ("[{ replace = ['', 'a'] }]", "replace"),
            ("[{ decimal = { thousands = '.' } }]", "thousands"),
            ("[{ date = '%Y-%é' }]", "%é"),
            ("[{ date = 'Y-m-d' }]", "names no part"),
            ("[{ date = '%Y' }]", "which day"),
            ("[{ map = {} }]", "no word"),
            ("[{ timestamp = { format = '%Y-%m-%d' } }]", "offset"),
            (
                "[{ timestamp = { format = '%Y', zone = 'Asia/Nowhere' } }]",
                "Asia/Nowhere",
            ),
            ("[{ json = 'a' }]", "JSONPath"),
        ] {
            let e = steps(clean).unwrap_err();
            assert!(e.to_string().contains(told), "{clean}: {e}");
        }
    }
}
