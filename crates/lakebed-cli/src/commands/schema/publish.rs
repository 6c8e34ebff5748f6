//! `schema publish`: a reviewed file takes its number for ever.

use lakebed::catalog;
use lakebed::name::DatasetRef;
use lakebed::registry::{self, PublishOptions, PublishOutcome};
use lakebed::spec::PublishedSchema;
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{PublishArgs, TextFormat};
use crate::commands::schema::ANSWER_FORMAT;
use crate::commands::schema::check::evolution;
use crate::context::{Context, Globals};
use crate::exit::Exit;

#[derive(Serialize)]
struct Answer<'a> {
    format: u32,
    dataset: &'a DatasetRef,
    version: u32,
    outcome: &'a str,
    published_at: String,
    hash: String,
}

/// `lakebed schema publish`
pub(crate) async fn publish(args: &PublishArgs, globals: &Globals<'_>) -> Result<Exit> {
    let dataset: DatasetRef = args.dataset.parse()?;
    let context = Context::open(globals).await?;
    let done = publish_file(&context, &dataset, args.version).await?;
    let printer = globals.printer;
    match printer.format() {
        TextFormat::Json => printer.json(&Answer {
            format: ANSWER_FORMAT,
            dataset: &dataset,
            version: args.version,
            outcome: if done.is_new {
                "published"
            } else {
                "already_published"
            },
            published_at: done.published.published_at.to_string(),
            hash: done.hash,
        })?,
        TextFormat::Text => printer.line(if done.is_new {
            format!("{dataset}: version {} is published", args.version)
        } else {
            format!(
                "{dataset}: version {} was published at {} with the same content",
                args.version, done.published.published_at
            )
        })?,
    }
    // Of a source without a file nothing more is known.
    let source = context.project().load_source(&dataset.source());
    if source.is_ok_and(|source| source.crawl.is_some()) {
        printer.hint(format!(
            "`lakebed source test {0}` says whether all is ready; `lakebed run {0} --date today` runs the day",
            dataset.source()
        ));
    }
    Ok(Exit::Done)
}

/// A version that holds its number.
pub(crate) struct Done {
    published: Box<PublishedSchema>,
    hash: String,
    is_new: bool,
}

/// Publishes the project's file of that version, and lets the catalog know.
pub(crate) async fn publish_file(
    context: &Context<'_>,
    dataset: &DatasetRef,
    version: u32,
) -> Result<Done> {
    let project = context.project();
    let (text, path) = project.read_schema_file(dataset, version)?;
    let file = path.display().to_string();
    let spec = registry::parse(&text, &file)?;
    let mut problems = registry::check_place(&spec, dataset, version);
    problems.extend(registry::validate(&spec));
    registry::refuse(&spec, &problems, Some(&file))?;
    let options = PublishOptions {
        by: context.by(None, None),
        git_commit: project.find_git_commit(),
        evolution: evolution(project, dataset)?,
    };
    let outcome = registry::publish(context.lake(), &spec, &options)
        .await
        .map_err(|e| e.with("file", &file))?;
    let (published, hash, is_new) = match outcome {
        PublishOutcome::Published { published, hash } => (published, hash, true),
        PublishOutcome::AlreadyPublished { published, hash } => (published, hash, false),
        PublishOutcome::Taken { other, diff } => {
            return Err(taken(dataset, &other, &diff).with("file", &file));
        }
    };
    if let Err(error) = follow(context, dataset).await {
        context.printer().warn(format!(
            "the catalog does not know the version yet: {error}"
        ));
    }
    Ok(Done {
        published,
        hash: hash.to_string(),
        is_new,
    })
}

/// Lets the catalog know the dataset's log and versions.
async fn follow(context: &Context<'_>, dataset: &DatasetRef) -> Result<()> {
    let catalog = context.catalog();
    // `sync` binds a new catalog to the lake, so it comes first.
    catalog::sync(context.lake(), &*catalog, dataset).await?;
    catalog::sync_schemas(context.lake(), &*catalog, dataset).await
}

/// The refusal of a number that other content has, with what differs.
fn taken(dataset: &DatasetRef, other: &PublishedSchema, diff: &registry::SchemaDiff) -> Error {
    let version = other.schema.version;
    let who = other.by.user.as_deref().unwrap_or("somebody");
    let mut error = Error::already_exists(format!(
        "version {version} of `{dataset}` was published by {who} at {} with other content; in your file",
        other.published_at
    ));
    for line in diff.to_text().lines() {
        error = error.detail(line);
    }
    error.hint(format!(
        "make yours the next version: base = {version}, and save it as v{}.toml; `lakebed schema show {dataset} {version}` shows the published one",
        version.saturating_add(1)
    ))
}
