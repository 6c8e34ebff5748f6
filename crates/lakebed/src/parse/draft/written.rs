//! The lines of a draft, as people write them: one field a line, with what it gave behind it.

use crate::config::{FieldConfig, FieldTable, NumberMarks, PageValue, StepConfig};
use crate::name::StageName;
use crate::parse::draft::totals::Announced;
use crate::parse::draft::{Draft, DraftLine};

/// Characters of a sample.
const SAMPLE_CHARS: usize = 48;

/// A group of links.
pub(super) struct DraftedLinks {
    pub(super) stage: StageName,
    /// A selector with `::attr(href)`.
    pub(super) url: String,
    /// Different addresses on all pages.
    pub(super) found: usize,
    pub(super) sample: String,
    pub(super) on_pages: usize,
    /// Links of the page that has most.
    pub(super) most: usize,
    /// How many the pages say that there are.
    pub(super) total: Option<Announced>,
    /// The pages of the list have one path, and a query each.
    pub(super) is_one_path: bool,
}

/// A field, run over the pages.
pub(super) struct DraftedField {
    pub(super) name: String,
    pub(super) config: FieldConfig,
    pub(super) sample: String,
    pub(super) on_pages: usize,
}

/// The table of a list.
pub(super) fn list(stage: &StageName, links: Vec<DraftedLinks>, pages: usize) -> Draft {
    let mut text = format!("[[parse.page]]\nstage = {}\n", basic(stage.as_str()));
    let mut lines = Vec::new();
    for links in links {
        let rule = format!("url = {}", string(&links.url));
        let many = if links.found == 1 { "link" } else { "links" };
        text.push_str(&format!(
            "\n[[parse.page.follow]]            # {} {many}, such as {}\nstage = {}\n{rule}\n",
            links.found,
            comment(&links.sample),
            basic(links.stage.as_str()),
        ));
        text.push_str(&total_text(&links));
        lines.push(DraftLine {
            name: links.stage.to_string(),
            rule,
            sample: links.sample,
            on_pages: links.on_pages,
        });
    }
    Draft { text, pages, lines }
}

/// The lines of what the pages announce.
fn total_text(links: &DraftedLinks) -> String {
    let Some(Announced { css, regex, number }) = &links.total else {
        return String::new();
    };
    let (css, steps) = (
        string(css),
        steps_text(&[
            StepConfig::Collapse,
            StepConfig::Regex(regex.clone()),
            StepConfig::Int(NumberMarks {
                thousands: Some(','),
                decimal: None,
            }),
        ]),
    );
    // What has an address each would count for itself.
    let group = if links.is_one_path {
        ""
    } else {
        "group = \"all\"                     # all pages announce one number\n"
    };
    format!(
        "total = {{ css = {css}, join = \"\", clean = {steps} }}   # {number}: the closing is red where fewer came\n{group}"
    )
}

/// The table of pages with a record each. The first field is the key.
pub(super) fn detail(stage: &StageName, fields: Vec<DraftedField>, pages: usize) -> Draft {
    let key = fields.first().map_or("", |f| &f.name);
    let mut text = format!(
        "[[parse.page]]\nstage = {}\n\n[[parse.page.item]]\nkey = [{}]\n\n[parse.page.item.field]\n",
        basic(stage.as_str()),
        basic(key)
    );
    let written: Vec<(String, String)> = fields
        .iter()
        .map(|f| (key_text(&f.name), field_text(&f.config)))
        .collect();
    let names = written.iter().map(|(name, _)| width(name)).max();
    let rules = written
        .iter()
        .map(|(_, rule)| width(rule))
        .filter(|n| *n < 100)
        .max();
    let pad = |text: &str, wanted: Option<usize>| {
        " ".repeat(wanted.unwrap_or(0).saturating_sub(width(text)))
    };
    let mut lines = Vec::new();
    for (field, (name, rule)) in fields.into_iter().zip(written) {
        let part = match field.on_pages == pages {
            true => String::new(),
            false => format!("   (on {} of {pages} pages)", field.on_pages),
        };
        text.push_str(&format!(
            "{name}{} = {rule}{}   # {}{part}\n",
            pad(&name, names),
            pad(&rule, rules),
            comment(&field.sample)
        ));
        lines.push(DraftLine {
            name: field.name,
            rule,
            sample: field.sample,
            on_pages: field.on_pages,
        });
    }
    Draft { text, pages, lines }
}

/// Columns that a text takes: two for most of those that write Chinese.
fn width(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// A sample on one line, not too long.
fn comment(text: &str) -> String {
    let text = text.replace(char::is_control, " ");
    match text.chars().count() > SAMPLE_CHARS {
        true => text.chars().take(SAMPLE_CHARS).chain(['…']).collect(),
        false => text,
    }
}

fn key_text(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => string(name),
    }
}

/// A text as TOML has it: without escapes where that can be.
fn string(text: &str) -> String {
    let needs = text.contains(['"', '\\']);
    match needs && !text.contains('\'') && !text.contains(char::is_control) {
        true => format!("'{text}'"),
        false => basic(text),
    }
}

fn basic(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A field: a text alone where it is nothing but a selector, else a table on one line.
fn field_text(config: &FieldConfig) -> String {
    let table = &config.table;
    let bare = FieldTable {
        css: table.css.clone(),
        json: table.json.clone(),
        ..FieldTable::default()
    };
    match (&table.css, &table.json) {
        (Some(text), None) | (None, Some(text)) if bare == *table => string(text),
        _ => format!("{{ {} }}", table_text(table).join(", ")),
    }
}

fn table_text(table: &FieldTable) -> Vec<String> {
    let mut parts = Vec::new();
    let texts = [
        ("css", &table.css),
        ("json", &table.json),
        ("json_ld", &table.json_ld),
        ("query", &table.query),
    ];
    for (key, text) in texts {
        parts.extend(
            text.as_deref()
                .map(|text| format!("{key} = {}", string(text))),
        );
    }
    parts.extend(table.path.map(|n| format!("path = {n}")));
    if table.page == Some(PageValue::Url) {
        parts.push("page = \"url\"".to_owned());
    }
    if let Some(each) = &table.each {
        parts.push(format!("each = {}", field_text(each)));
    }
    if !table.field.is_empty() {
        let fields = table.field.0.iter();
        let fields: Vec<String> = fields
            .map(|(name, config)| format!("{} = {}", key_text(name), field_text(config)))
            .collect();
        parts.push(format!("field = {{ {} }}", fields.join(", ")));
    }
    if table.all {
        parts.push("all = true".to_owned());
    }
    parts.extend(
        table
            .join
            .as_deref()
            .map(|text| format!("join = {}", string(text))),
    );
    if !table.clean.is_empty() {
        parts.push(format!("clean = {}", steps_text(&table.clean)));
    }
    if table.required {
        parts.push("required = true".to_owned());
    }
    parts
}

/// The steps of `clean`.
pub(super) fn steps_text(steps: &[StepConfig]) -> String {
    let steps: Vec<String> = steps.iter().map(step_text).collect();
    format!("[{}]", steps.join(", "))
}

fn step_text(step: &StepConfig) -> String {
    let texts = |texts: &[String]| match texts {
        [one] => string(one),
        many => format!(
            "[{}]",
            many.iter()
                .map(|t| string(t))
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    match step {
        StepConfig::Trim => "\"trim\"".to_owned(),
        StepConfig::Collapse => "\"collapse\"".to_owned(),
        StepConfig::Url => "\"url\"".to_owned(),
        StepConfig::Int(marks) => number_text("int", marks),
        StepConfig::Decimal(marks) => number_text("decimal", marks),
        StepConfig::Regex(text) => format!("{{ regex = {} }}", string(text)),
        StepConfig::Json(text) => format!("{{ json = {} }}", string(text)),
        StepConfig::Date(formats) => format!("{{ date = {} }}", texts(&formats.0)),
        StepConfig::Timestamp(config) => {
            let zone = config
                .zone
                .as_deref()
                .map(|z| format!(", zone = {}", string(z)));
            let (format, zone) = (texts(&config.format.0), zone.unwrap_or_default());
            format!("{{ timestamp = {{ format = {format}{zone} }} }}")
        }
        StepConfig::Split(text) => format!("{{ split = {} }}", string(text)),
        StepConfig::Format(text) => format!("{{ format = {} }}", string(text)),
        StepConfig::Replace([from, to]) => {
            format!("{{ replace = [{}, {}] }}", string(from), string(to))
        }
        // No draft has one: words that stand for values are for people to say.
        StepConfig::Map(_) => String::new(),
    }
}

fn number_text(word: &str, marks: &NumberMarks) -> String {
    let mut parts = Vec::new();
    parts.extend(
        marks
            .thousands
            .map(|c| format!("thousands = {}", string(&c.to_string()))),
    );
    parts.extend(
        marks
            .decimal
            .map(|c| format!("decimal = {}", string(&c.to_string()))),
    );
    match parts.is_empty() {
        true => format!("\"{word}\""),
        false => format!("{{ {word} = {{ {} }} }}", parts.join(", ")),
    }
}
