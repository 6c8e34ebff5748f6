//! A field as it is declared, read and checked: where its value comes from, what is done to it, and how it
//! stands in a record.

use crate::config::{FieldConfig, FieldMap, FieldTable, PageValue};
use crate::error::{Error, Result};
use crate::parse::css::{CssPath, Take};
use crate::parse::json::JsonQuery;
use crate::parse::steps::{Step, datum_of};
use crate::spec::Datum;

/// A field that was read.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) source: Source,
    pub(super) steps: Vec<Step>,
    pub(super) shape: Shape,
    pub(super) default: Datum,
    pub(super) is_required: bool,
}

/// Where a value comes from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// What is looked into itself.
    Own,
    Css(CssPath),
    Json(JsonQuery),
    JsonLd(String),
    Microdata(String),
    Page(PageValue),
    Query(String),
    Path(i32),
    Header(String),
    Value(Datum),
}

/// How the matches stand in the record.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    /// The first one.
    First,
    /// A list of all.
    All,
    /// One text of all, which is cleaned as a whole.
    Join(String),
    /// A list of the parts of the first one.
    Parts,
    /// Whether there is one.
    Exists,
    /// An object made of the first one.
    Object(Vec<Field>),
    /// A list of objects, one for each.
    Objects(Vec<Field>),
}

/// What can be looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Page,
    Element,
    Json,
}

/// A place in the file: a dotted key, elements of arrays counted from 1.
#[derive(Debug, Clone)]
pub(super) struct At<'a> {
    pub(super) file: &'a str,
    pub(super) key: String,
}

impl At<'_> {
    pub(super) fn key(&self, more: &str) -> Self {
        Self {
            file: self.file,
            key: format!("{}.{more}", self.key),
        }
    }

    pub(super) fn refuse(&self, what: impl Into<String>, hint: &str) -> Error {
        self.place(Error::invalid(what)).hint(hint)
    }

    pub(super) fn place(&self, error: Error) -> Error {
        error.with("file", self.file).with("key", &self.key)
    }
}

impl Source {
    /// What its matches are.
    fn scope(&self, steps: &[Step]) -> Option<Scope> {
        let is_json = matches!(steps.last(), Some(Step::Json(_)));
        match self {
            Self::Css(css) if css.take == Take::Element => Some(Scope::Element),
            Self::Json(_) | Self::JsonLd(_) | Self::Microdata(_) => Some(Scope::Json),
            _ => is_json.then_some(Scope::Json),
        }
    }
}

/// Reads the fields of an item, a payload or an object.
pub(super) fn read_fields(map: &FieldMap, scope: Scope, at: &At<'_>) -> Result<Vec<Field>> {
    let fields = map.0.iter();
    fields
        .map(|(name, config)| read_field(name, config, scope, &at.key(name)))
        .collect()
}

/// Reads one field of what `scope` says.
pub(super) fn read_field(
    name: &str,
    config: &FieldConfig,
    scope: Scope,
    at: &At<'_>,
) -> Result<Field> {
    let table = &config.table;
    if name.trim().is_empty() || name.starts_with('_') {
        let what = format!("`{name}` cannot be the name of a field");
        return Err(at.refuse(what, "names that begin with `_` are Lakebed's own"));
    }
    let has_object = !table.field.is_empty();
    if table.each.is_some() && !has_object {
        return Err(at.refuse(
            "`each` gives objects, and they have no field",
            "name their members: field.name = \"...\"; a list of texts is `all = true`",
        ));
    }
    if has_object {
        return read_object(name, table, scope, at);
    }
    let source = read_source(config, scope, at)?;
    let steps = read_steps(table, at)?;
    let shape = match read_shape(table, at)? {
        Shape::First if steps.iter().any(|s| matches!(s, Step::Split(_))) => Shape::Parts,
        shape => shape,
    };
    if let Source::Css(css) = &source
        && css.take == Take::Element
        && !table.exists
    {
        return Err(at.refuse(
            format!(
                "`{}` gives an element, not a text",
                table.css.as_deref().unwrap_or_default()
            ),
            "add `::text` (text right inside), ` ::text` (all text within) or `::attr(name)`",
        ));
    }
    Ok(Field {
        name: name.to_owned(),
        source,
        steps,
        shape,
        default: table.default.as_ref().map_or(Datum::Null, datum_of),
        is_required: table.required,
    })
}

fn read_shape(table: &FieldTable, at: &At<'_>) -> Result<Shape> {
    let several = [table.all, table.join.is_some(), table.exists];
    if several.iter().filter(|is| **is).count() > 1 {
        return Err(at.refuse(
            "`all`, `join` and `exists` do not go together",
            "all: a list; join: one text of all matches; exists: true or false",
        ));
    }
    if table.exists && (!table.clean.is_empty() || table.default.is_some() || table.required) {
        return Err(at.refuse(
            "`exists` is always true or false",
            "leave `clean`, `default` and `required` out",
        ));
    }
    if table.required && table.default.is_some() {
        return Err(at.refuse(
            "a field with a `default` is never missing",
            "leave `required` or `default` out",
        ));
    }
    if table.required && table.may_be_empty {
        return Err(at.refuse(
            "a `required` field is never empty",
            "leave `required` or `may_be_empty` out",
        ));
    }
    Ok(match &table.join {
        Some(join) => Shape::Join(join.clone()),
        None if table.all => Shape::All,
        None if table.exists => Shape::Exists,
        None => Shape::First,
    })
}

fn read_object(name: &str, table: &FieldTable, scope: Scope, at: &At<'_>) -> Result<Field> {
    let is_plain = !table.all && table.join.is_none() && !table.exists && table.default.is_none();
    if !is_plain {
        return Err(at.refuse(
            "`all`, `join`, `exists` and `default` are not for objects",
            "`each` gives a list of objects",
        ));
    }
    if let Some(each) = &table.each {
        let own = FieldTable {
            each: None,
            field: FieldMap::default(),
            required: false,
            may_be_empty: false,
            ..table.clone()
        };
        if own != FieldTable::default() {
            return Err(at.refuse(
                "beside `each` stand `field`, `required` and `may_be_empty` alone",
                "where the objects are is told within `each`: each = { css = \"...\" }",
            ));
        }
        let (source, steps, inner) = read_each(each, scope, &at.key("each"))?;
        return Ok(Field {
            name: name.to_owned(),
            source,
            steps,
            shape: Shape::Objects(read_fields(&table.field, inner, &at.key("field"))?),
            default: Datum::Null,
            is_required: table.required,
        });
    }
    let own = FieldTable {
        field: FieldMap::default(),
        required: false,
        may_be_empty: false,
        ..table.clone()
    };
    let (source, steps, inner) = match own == FieldTable::default() {
        true => (Source::Own, Vec::new(), scope),
        false => {
            let config = FieldConfig {
                is_short: false,
                table: own,
            };
            read_each(&config, scope, at)?
        }
    };
    Ok(Field {
        name: name.to_owned(),
        source,
        steps,
        shape: Shape::Object(read_fields(&table.field, inner, &at.key("field"))?),
        default: Datum::Null,
        is_required: table.required,
    })
}

/// Reads what is looked into one by one, and says what that is.
pub(super) fn read_each(
    config: &FieldConfig,
    scope: Scope,
    at: &At<'_>,
) -> Result<(Source, Vec<Step>, Scope)> {
    let table = &config.table;
    let bare = FieldTable {
        clean: table.clean.clone(),
        css: table.css.clone(),
        json: table.json.clone(),
        json_ld: table.json_ld.clone(),
        microdata: table.microdata.clone(),
        page: table.page,
        ..FieldTable::default()
    };
    if bare != *table {
        return Err(at.refuse(
            "this says where to look, and takes every match",
            "`css`, `json`, `json_ld`, `microdata`, `page` and `clean` may stand here",
        ));
    }
    let source = read_source(config, scope, at)?;
    let steps = read_steps(table, at)?;
    match (source.scope(&steps), steps.is_empty()) {
        (Some(Scope::Element), false) => Err(at.key("clean").refuse(
            "`clean` is for texts, and these are elements",
            "leave it out, or add `::text` to the selector",
        )),
        (Some(inner), _) => Ok((source, steps, inner)),
        (None, _) => Err(at.refuse(
            "one can look into elements and JSON alone",
            "leave `::text` or `::attr(...)` out, or end `clean` with { json = \"$...\" }",
        )),
    }
}

fn read_steps(table: &FieldTable, at: &At<'_>) -> Result<Vec<Step>> {
    let steps = table.clean.iter().enumerate();
    steps
        .map(|(n, step)| {
            Step::read(step).map_err(|e| at.key(&format!("clean[{}]", n + 1)).place(e))
        })
        .collect()
}

fn read_source(config: &FieldConfig, scope: Scope, at: &At<'_>) -> Result<Source> {
    let table = &config.table;
    let mut sources: Vec<(&str, Result<Source>)> = Vec::new();
    if let Some(css) = &table.css {
        sources.push(("css", CssPath::parse(css).map(Source::Css)));
    }
    if let Some(path) = &table.json {
        sources.push(("json", JsonQuery::parse(path).map(Source::Json)));
    }
    let text = |t: &Option<String>| t.clone();
    let plain = [
        ("json_ld", text(&table.json_ld).map(Source::JsonLd)),
        ("microdata", text(&table.microdata).map(Source::Microdata)),
        ("page", table.page.map(Source::Page)),
        ("query", text(&table.query).map(Source::Query)),
        ("path", table.path.map(Source::Path)),
        ("header", text(&table.header).map(Source::Header)),
        (
            "value",
            table.value.as_ref().map(|v| Source::Value(datum_of(v))),
        ),
    ];
    let given = plain
        .into_iter()
        .filter_map(|(key, source)| Some((key, Ok(source?))));
    sources.extend(given);
    let names: Vec<&str> = sources.iter().map(|(key, _)| *key).collect();
    let names = names.join("`, `");
    let mut sources = sources.into_iter();
    let (Some((key, source)), None) = (sources.next(), sources.next()) else {
        return Err(match names.as_str() {
            "" => at.refuse(
                "nothing says where the value comes from",
                "one of `css`, `json`, `json_ld`, `microdata`, `page`, `query`, `path`, `header`, `value`",
            ),
            names => at.refuse(format!("`{names}` are several places"), "keep one of them"),
        });
    };
    let here = if config.is_short {
        at.clone()
    } else {
        at.key(key)
    };
    let source = source.map_err(|e| here.place(e))?;
    let is_fit = match (&source, scope) {
        (Source::Css(_), Scope::Json) => false,
        (Source::Json(_), Scope::Element) => false,
        (Source::JsonLd(_) | Source::Microdata(_), Scope::Element | Scope::Json) => false,
        (Source::Path(0), _) => {
            return Err(here.refuse("parts of a path are counted from 1", "-1 is the last one"));
        }
        _ => true,
    };
    match is_fit {
        true => Ok(source),
        false => Err(here.refuse(
            match scope {
                Scope::Json => format!("`{key}` looks into a page, and this is JSON"),
                _ => format!("`{key}` cannot look into an element"),
            },
            match scope {
                Scope::Json => "use a JSONPath: \"$.name\"",
                _ => "a text that is JSON: { css = \"...::text\", clean = [{ json = \"$...\" }] }",
            },
        )),
    }
}
