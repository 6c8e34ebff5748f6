//! `schema diff` and `schema check`.

use std::path::Path;

use lakebed::config::{Evolution, Project};
use lakebed::name::{DatasetName, DatasetRef, SourceName};
use lakebed::registry::{self, Problem};
use lakebed::spec::{By, PUBLISHED_FORMAT, PublishedSchema, SchemaSpec};
use lakebed::time::Instant;
use lakebed::{Error, ErrorKind, Result};
use serde::Serialize;

use crate::args::{CheckArgs, DiffArgs, TextFormat};
use crate::commands::schema::ANSWER_FORMAT;
use crate::context::{Context, Globals, PROGRAM};
use crate::exit::Exit;
use crate::table::count;

#[derive(Serialize)]
struct DiffAnswer<'a> {
    format: u32,
    dataset: &'a DatasetRef,
    equal: bool,
    #[serde(flatten)]
    diff: &'a registry::SchemaDiff,
}

/// `lakebed schema diff`
pub(crate) async fn diff(args: &DiffArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let context = Context::open(globals).await?;
    let old = read_side(&context, &dataset, &args.from).await?;
    let new = read_side(&context, &dataset, &args.to).await?;
    let diff = registry::diff(&old, &new);
    let equal = diff.is_empty();
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&DiffAnswer {
            format: ANSWER_FORMAT,
            dataset: &dataset,
            equal,
            diff: &diff,
        })?,
        TextFormat::Text => globals
            .printer
            .bytes(crate::table::message_text(&diff.to_text()).as_bytes())?,
    }
    if equal {
        globals.printer.info("no difference");
    }
    Ok(if equal { Exit::Done } else { Exit::No })
}

/// A number (the published version, else the project's file), or a version file.
async fn read_side(context: &Context<'_>, dataset: &DatasetRef, text: &str) -> Result<SchemaSpec> {
    let number = text.strip_prefix('v').unwrap_or(text).parse::<u32>();
    let Ok(version) = number else {
        let path = Path::new(text);
        let toml = std::fs::read_to_string(path).map_err(|e| {
            Error::io("read the file", path.display(), e)
                .hint("a side is a version number, or the path of a version file")
        })?;
        return registry::parse(&toml, path.display());
    };
    match registry::get(context.lake(), dataset, version).await {
        Ok((published, _)) => Ok(published.schema),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let (toml, path) = context.project().read_schema_file(dataset, version)?;
            registry::parse(&toml, path.display())
        }
        Err(e) => Err(e),
    }
}

/// A version file and what is wrong with it.
#[derive(Serialize)]
struct Checked {
    dataset: DatasetRef,
    version: u32,
    file: String,
    published: bool,
    problems: Vec<Problem>,
    /// Set where the file could not be read as a version at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// What to do about the error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hints: Vec<String>,
}

impl Checked {
    fn is_sound(&self) -> bool {
        self.error.is_none() && self.problems.iter().all(Problem::is_note)
    }
}

#[derive(Serialize)]
struct CheckAnswer<'a> {
    format: u32,
    sound: bool,
    versions: &'a [Checked],
}

/// `lakebed schema check`
pub(crate) async fn check(args: &CheckArgs, globals: &Globals<'_>) -> Result<Exit> {
    let only: Option<DatasetRef> = args.dataset.as_deref().map(str::parse).transpose()?;
    let project = globals.find_project()?;
    // In CI there is often the repository alone: files are checked against each other then.
    let context = match Context::open(globals).await {
        Ok(context) => Some(context),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            globals.printer.warn(format!(
                "version files are compared with each other alone: {e}"
            ));
            None
        }
        Err(e) => return Err(e),
    };
    let mut checked = Vec::new();
    for source in project.list_source_names()? {
        if only.as_ref().is_some_and(|d| d.source() != source) {
            continue;
        }
        for name in list_schema_folders(&project, &source)? {
            if only.as_ref().is_some_and(|d| d.dataset != name) {
                continue;
            }
            check_dataset(&project, context.as_ref(), &name, &mut checked).await?;
        }
    }
    if let (Some(dataset), true) = (&only, checked.is_empty()) {
        return Err(
            Error::not_found(format!("there is no version file of `{dataset}`"))
                .with("folder", project.schemas_dir(&dataset.dataset).display())
                .hint(format!(
                    "`lakebed schema propose {dataset} FILES...` writes one"
                )),
        );
    }
    tell(globals, &checked)
}

fn tell(globals: &Globals<'_>, checked: &[Checked]) -> Result<Exit> {
    let sound = checked.iter().all(Checked::is_sound);
    let printer = globals.printer;
    match printer.format() {
        TextFormat::Json => printer.json(&CheckAnswer {
            format: ANSWER_FORMAT,
            sound,
            versions: checked,
        })?,
        TextFormat::Text => {
            for version in checked {
                for line in lines_of(version) {
                    printer.line(line)?;
                }
            }
            let bad = checked.iter().filter(|c| !c.is_sound()).count();
            printer.line(format!(
                "{} checked, {} with problems",
                count(checked.len() as u64, "version"),
                bad
            ))?;
        }
    }
    Ok(if sound { Exit::Done } else { Exit::No })
}

fn lines_of(version: &Checked) -> Vec<String> {
    let mut lines = Vec::new();
    let at = &version.file;
    lines.extend(version.error.iter().map(|e| format!("{at}: error: {e}")));
    lines.extend(version.hints.iter().map(|h| format!("  hint: {h}")));
    for problem in &version.problems {
        let kind = if problem.is_note() { "note" } else { "error" };
        lines.push(format!(
            "{at}: {kind}: {} [{}]",
            problem.line(),
            problem.code.as_str()
        ));
        lines.extend(problem.hint.iter().map(|h| format!("  hint: {h}")));
    }
    lines
}

/// Names of the folders under a source's `schemas/`, sorted; folders that are no dataset's are left out.
fn list_schema_folders(project: &Project, source: &SourceName) -> Result<Vec<DatasetName>> {
    let folder = project.sources_dir().join(source.as_str()).join("schemas");
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("list the folder", folder.display(), e)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| Error::io("list the folder", folder.display(), e))?;
        names.extend(
            entry
                .file_name()
                .to_str()
                .and_then(|n| n.parse::<DatasetName>().ok()),
        );
    }
    names.sort();
    Ok(names)
}

/// Checks every version file of a dataset in order; an unpublished one is the past of the next.
async fn check_dataset(
    project: &Project,
    context: Option<&Context<'_>>,
    name: &DatasetName,
    checked: &mut Vec<Checked>,
) -> Result<()> {
    // The folder names the dataset, the file the layer; the paths do not depend on it.
    let any_layer = DatasetRef {
        layer: lakebed::name::Layer::Clean,
        dataset: name.clone(),
    };
    let mut past: Option<(DatasetRef, Vec<PublishedSchema>)> = None;
    for number in project.list_schema_files(&any_layer)? {
        let (text, path) = project.read_schema_file(&any_layer, number)?;
        let file = path.display().to_string();
        let spec = match registry::parse(&text, &file) {
            Ok(spec) => spec,
            Err(e) => {
                checked.push(Checked {
                    dataset: any_layer.clone(),
                    version: number,
                    file,
                    published: false,
                    problems: Vec::new(),
                    error: Some(e.to_string()),
                    hints: e.hints().to_vec(),
                });
                continue;
            }
        };
        let dataset = DatasetRef {
            layer: spec.dataset.layer,
            dataset: name.clone(),
        };
        if past.as_ref().is_none_or(|(d, _)| *d != dataset) {
            past = Some((dataset.clone(), published(context, &dataset).await?));
        }
        let Some((_, history)) = &mut past else {
            continue;
        };
        let mut problems = registry::check_place(&spec, &dataset, number);
        problems.extend(registry::validate(&spec));
        problems.extend(registry::check_evolution(
            history,
            &spec,
            evolution(project, &dataset)?,
        ));
        let is_published = history.iter().any(|p| p.schema.version == spec.version);
        if !is_published {
            history.push(as_published(context, spec)?);
        }
        checked.push(Checked {
            dataset,
            version: number,
            file,
            published: is_published,
            problems,
            error: None,
            hints: Vec::new(),
        });
    }
    Ok(())
}

async fn published(
    context: Option<&Context<'_>>,
    dataset: &DatasetRef,
) -> Result<Vec<PublishedSchema>> {
    match context {
        None => Ok(Vec::new()),
        Some(context) => {
            let listed = registry::list_published(context.lake(), dataset).await?;
            Ok(listed.into_iter().map(|(p, _)| p).collect())
        }
    }
}

/// What the source declares for the dataset; a folder without `source.toml` is an error of its own.
pub(super) fn evolution(project: &Project, dataset: &DatasetRef) -> Result<Evolution> {
    let source = project.load_source(&dataset.source())?;
    Ok(source.dataset(dataset).evolution)
}

/// An unpublished version as the past of the one after it.
fn as_published(context: Option<&Context<'_>>, schema: SchemaSpec) -> Result<PublishedSchema> {
    let lake = match context {
        Some(context) => context.lake().id().clone(),
        None => "unpublished".parse()?,
    };
    Ok(PublishedSchema {
        format: PUBLISHED_FORMAT,
        lake,
        published_at: Instant::from_micros(0),
        by: By {
            program: PROGRAM.to_owned(),
            user: None,
            run: None,
            note: None,
        },
        base_hash: None,
        git_commit: None,
        schema,
    })
}
