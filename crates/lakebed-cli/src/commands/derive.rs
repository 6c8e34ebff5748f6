//! `derive`: rows of derived datasets, by the queries of a source.
//!
//! ```text
//! parents sealed? -> label of query and parents stored? -> query -> <name>.parquet -> ingest, one commit with its parents
//! ```
//! DRV-3: a query over equal parents is stored once; other parents make a revision, another query only where a person
//! says so.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use lakebed::catalog::visible_files;
use lakebed::config::{DeriveConfig, ParentDates, SourceConfig};
use lakebed::fault::kill_point;
use lakebed::flow::{Derived, Scope, Sights, lock_folder, parent_dates};
use lakebed::ingest::decode::Mismatch;
use lakebed::ingest::read::InputSource;
use lakebed::ingest::{IngestOutcome, IngestReport, IngestRequest, RevisionTarget, Silent, ingest};
use lakebed::log::{DatasetState, load};
use lakebed::name::{BatchLabel, ContentHash, DatasetRef};
use lakebed::registry::{self, AddedField, Proposal};
use lakebed::spec::{
    FieldSpec, InputFormat, LoadKind, ParentSpec, Provenance, PublishedSchema, ReadSpec,
    SchemaSpec, StampScope,
};
use lakebed::time::BusinessDate;
use lakebed::{Error, Result};
use lakebed_query::{DeriveQuery, DerivedParent, write_parquet};
use serde::Serialize;

use crate::args::{DeriveArgs, TextFormat};
use crate::commands::sql::{count_reads, engine};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::count;

/// Version of the JSON answers.
const ANSWER_FORMAT: u32 = 1;
/// What the labels of derived rows begin with.
const LABEL_PREFIX: &str = "derive:";

/// What became of the rows of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum DerivedAs {
    /// The first rows of the date.
    New,
    /// A new revision; the old rows are kept for a rollback.
    Revision,
    /// Query and parents are those of the stored rows.
    UpToDate,
}

#[derive(Serialize)]
struct DerivedAnswer {
    name: String,
    dataset: DatasetRef,
    stored: DerivedAs,
    rows: u64,
    label: BatchLabel,
    parents: Vec<ParentSpec>,
    sealed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_position: Option<u64>,
}

#[derive(Serialize)]
struct DeriveAnswer {
    format: u32,
    date: BusinessDate,
    derived: Vec<DerivedAnswer>,
}

#[derive(Serialize)]
struct SchemaAnswer {
    format: u32,
    dataset: DatasetRef,
    version: u32,
    file: Option<String>,
}

/// `lakebed derive`
pub(crate) async fn derive(args: DeriveArgs, globals: &Globals<'_>) -> Result<Exit> {
    let context = Context::open(globals).await?;
    let source = context.project().load_source(&args.source.parse()?)?;
    let names: Vec<String> = match &args.name {
        Some(name) => vec![name.clone()],
        None if source.derive.is_empty() => {
            return Err(Error::not_found(format!(
                "source `{}` declares no derived dataset",
                source.name
            ))
            .hint("[derive.<name>] with `sql` and `parents` declares one: docs/flow.md"));
        }
        None => source.derive.keys().cloned().collect(),
    };
    let mut queries = Vec::new();
    for name in names {
        let derived = Derived::read(context.project(), &source, &name)?;
        queries.push((name, derived));
    }
    let Some(date) = &args.date else {
        for (name, derived) in &queries {
            check_own_rows(name, derived, &context).await?;
            propose(name, derived, &context, globals).await?;
        }
        return Ok(Exit::Done);
    };
    let date: BusinessDate = date.parse()?;
    let call = Call {
        context: &context,
        source: &source,
        date,
        replace: args.replace,
        note: args.note.as_deref(),
    };
    let mut answers = Vec::new();
    for (name, derived) in in_order(queries) {
        let done = call.derive(&name, &derived).await;
        let done = done.map_err(|e| e.with("derive", &name).with("date", date))?;
        if globals.printer.format() == TextFormat::Text {
            tell(&done, date, globals)?;
        }
        answers.push(done);
    }
    if globals.printer.format() == TextFormat::Json {
        globals.printer.json(&DeriveAnswer {
            format: ANSWER_FORMAT,
            date,
            derived: answers,
        })?;
    }
    Ok(Exit::Done)
}

/// A query over its own rows says of no column which type it has, as long as these have none.
async fn check_own_rows(name: &str, derived: &Derived, context: &Context<'_>) -> Result<()> {
    let dataset = &derived.dataset;
    let mut parents = derived.config.parents.iter();
    let is_own = parents.any(|p| p.dataset() == dataset);
    if !is_own || registry::latest(context.lake(), dataset).await?.is_some() {
        return Ok(());
    }
    let file = context.project().schema_file(dataset, 1);
    Err(Error::precondition(format!(
        "[derive.{name}] reads its own rows, `{dataset}`, which have no schema yet: its types do not follow"
    ))
    .hint(format!(
        "write the first version by hand, `{}`: field = [{{ id = 1, name = \"...\", type = \"...\" }}, ...] with the columns of the query",
        file.display()
    ))
    .hint(format!(
        "then `lakebed schema publish {dataset} 1`; later versions follow from `--schema`"
    )))
}

/// Those that read what others make come behind them; by name otherwise.
fn in_order(mut left: Vec<(String, Derived)>) -> Vec<(String, Derived)> {
    let mut ordered = Vec::new();
    while !left.is_empty() {
        let waits = |(_, query): &(String, Derived)| {
            let mut parents = query
                .config
                .parents
                .iter()
                .filter(|p| p.dates() != ParentDates::Previous);
            parents.any(|p| left.iter().any(|(_, other)| other.dataset == *p.dataset()))
        };
        // Of a circle, the first: its parents are not there, and it says so.
        let at = left.iter().position(|query| !waits(query)).unwrap_or(0);
        ordered.push(left.remove(at));
    }
    ordered
}

fn tell(answer: &DerivedAnswer, date: BusinessDate, globals: &Globals<'_>) -> Result<()> {
    let what = match answer.stored {
        DerivedAs::New => "stored",
        DerivedAs::Revision => "stored as a new revision",
        DerivedAs::UpToDate => {
            let label = &answer.label;
            return globals
                .printer
                .line(format!("{date} {}: up to date ({label})", answer.dataset));
        }
    };
    let place = answer
        .log_position
        .map_or(String::new(), |n| format!(", record {n}"));
    let open = if answer.sealed {
        ""
    } else {
        "; the date is open"
    };
    let rows = count(answer.rows, "row");
    globals.printer.line(format!(
        "{date} {}: {rows} {what}{place}{open}",
        answer.dataset
    ))
}

/// The columns of a query, with the published versions of what it makes.
async fn columns_of(
    derived: &Derived,
    context: &Context<'_>,
) -> Result<(Vec<FieldSpec>, Vec<PublishedSchema>)> {
    let mut parents = std::collections::BTreeMap::new();
    for parent in &derived.config.parents {
        let position = load(context.lake(), parent.dataset())
            .await?
            .state
            .position()
            .number;
        let seen = DerivedParent {
            from: BusinessDate::MIN,
            to: BusinessDate::MAX,
            position,
        };
        parents.insert(parent.dataset().clone(), seen);
    }
    // Any date has the same types.
    let query = query_of(derived, "2000-01-01".parse()?, parents);
    let fields = engine(context)?.derived_fields(&query).await?;
    let listed = registry::list_published(context.lake(), &derived.dataset).await?;
    Ok((fields, listed.into_iter().map(|(p, _)| p).collect()))
}

/// Whether the query can be run, and what it gives has columns to go to.
///
/// # Errors
/// Those of the query; `PreconditionFailed` where a schema version is to be published first.
pub(crate) async fn check_derived(
    name: &str,
    derived: &Derived,
    (source, context): (&SourceConfig, &Context<'_>),
) -> Result<()> {
    let dataset = &derived.dataset;
    for parent in &derived.config.parents {
        let parent = parent.dataset();
        if registry::latest(context.lake(), parent).await?.is_none() {
            let what = format!("its parent {parent} has no published schema");
            return Err(Error::precondition(what).hint(format!(
                "publish what it reads first: `lakebed schema publish {parent} 1`"
            )));
        }
    }
    let (fields, history) = columns_of(derived, context).await?;
    let what = match (
        history.is_empty(),
        next_version((name, dataset), fields, &history)?,
    ) {
        (true, _) => format!("dataset {dataset} has no published schema"),
        (false, Some(_)) => format!("the published schema of {dataset} lacks columns of the query"),
        (false, None) => return Ok(()),
    };
    Err(Error::precondition(what).hint(format!(
        "`lakebed derive {} {name} --schema` writes a version from the query, `lakebed schema publish {dataset} {}` publishes it",
        source.name,
        history.len() + 1
    )))
}

/// The next version as the types of the query say, for people to review.
async fn propose(
    name: &str,
    derived: &Derived,
    context: &Context<'_>,
    globals: &Globals<'_>,
) -> Result<()> {
    let dataset = &derived.dataset;
    let (fields, history) = columns_of(derived, context).await?;
    let Some(spec) = next_version((name, dataset), fields, &history)? else {
        globals.printer.info(format!(
            "{dataset}: the newest version has every column of the query"
        ));
        return Ok(());
    };
    let text = registry::render_toml(&spec);
    let file = context
        .project()
        .write_schema_file(dataset, spec.version, &text)?;
    let file = file.display().to_string();
    match globals.printer.format() {
        TextFormat::Text => globals.printer.line(format!("wrote {file}"))?,
        TextFormat::Json => globals.printer.json(&SchemaAnswer {
            format: ANSWER_FORMAT,
            dataset: dataset.clone(),
            version: spec.version,
            file: Some(file),
        })?,
    }
    globals.printer.hint(format!(
        "review it, then `lakebed schema publish {dataset} {}`",
        spec.version
    ));
    Ok(())
}

/// The version with the fields of the query; `None` = the newest one has them all.
fn next_version(
    (name, dataset): (&str, &DatasetRef),
    fields: Vec<FieldSpec>,
    history: &[PublishedSchema],
) -> Result<Option<SchemaSpec>> {
    let Some(newest) = history.last() else {
        let note = Some(format!("as [derive.{name}] gives it"));
        return Ok(Some(registry::propose_first(dataset, fields, note)));
    };
    let is_new = |f: &FieldSpec| newest.schema.fields.iter().all(|k| k.name != f.name);
    let added = fields.into_iter().filter(is_new);
    let added: Vec<AddedField> = added
        .map(|field| AddedField {
            parent: None,
            field,
        })
        .collect();
    if added.is_empty() {
        return Ok(None);
    }
    let proposal = Proposal {
        fields: added,
        ..Proposal::default()
    };
    registry::propose_next(history, proposal).map(Some)
}

/// The query of a date over these parents.
pub(super) fn query_of(
    derived: &Derived,
    date: BusinessDate,
    parents: std::collections::BTreeMap<DatasetRef, DerivedParent>,
) -> DeriveQuery {
    DeriveQuery {
        sql: derived.sql.clone(),
        date,
        parents,
        order: derived.config.order.clone(),
    }
}

/// What a query reads of its parents on a date.
pub(super) struct ReadParents {
    /// By dataset, as the query sees them.
    pub(super) seen: std::collections::BTreeMap<DatasetRef, DerivedParent>,
    /// As the commit names them.
    specs: Vec<ParentSpec>,
    /// What readers see of them.
    pub(super) stamps: Vec<StampScope>,
    /// Whether all their dates are sealed.
    sealed: bool,
}

/// The parents as they are now; one that is not there or not sealed is refused.
pub(super) async fn read_parents(
    context: &Context<'_>,
    derived: &Derived,
    date: BusinessDate,
) -> Result<ReadParents> {
    let mut read = ReadParents {
        seen: std::collections::BTreeMap::new(),
        specs: Vec::new(),
        stamps: Vec::new(),
        sealed: true,
    };
    let mut sights = Sights::new(context.lake().clone());
    for parent in &derived.config.parents {
        let dataset = parent.dataset();
        let (from, to) = parent_dates(parent.dates(), date);
        let scope = Scope {
            from,
            ..Scope::day(dataset.clone(), to)
        };
        let stamp = sights.see(&scope).await?;
        let state = sights.state(dataset).await?;
        let is_first = parent.dates() == ParentDates::Previous
            && *dataset == derived.dataset
            && state
                .dates()
                .range(..date)
                .all(|(dt, _)| state.visible_of(*dt).next().is_none());
        if stamp.content.is_none() && !is_first {
            return Err(lacking(state, dataset, (from, to)));
        }
        // Days between that are not there are told by the seals of those that are.
        if !stamp.sealed && stamp.content.is_some() {
            read.sealed = false;
            if !derived.config.unsealed {
                return Err(unsealed(state, dataset, (from, to)));
            }
        }
        let seen = DerivedParent {
            from,
            to,
            position: state.position().number,
        };
        read.specs.push(ParentSpec {
            dataset: dataset.clone(),
            dt: to,
            from: stamp.from,
            revision: stamp.revision,
            position: stamp.position,
        });
        read.seen.insert(dataset.clone(), seen);
        read.stamps.push(stamp);
    }
    Ok(read)
}

/// A call over one date.
struct Call<'a> {
    context: &'a Context<'a>,
    source: &'a SourceConfig,
    date: BusinessDate,
    replace: bool,
    note: Option<&'a str>,
}

impl Call<'_> {
    async fn derive(&self, name: &str, derived: &Derived) -> Result<DerivedAnswer> {
        let (lake, dataset) = (self.context.lake(), &derived.dataset);
        let folder = self.folder(name);
        let _alone = lock_folder(&folder, "derive the date")?;
        let parents = read_parents(self.context, derived, self.date).await?;
        let label = label_of(derived, &parents.stamps)?;
        let state = load(lake, dataset).await?.state;
        let mut answer = DerivedAnswer {
            name: name.to_owned(),
            dataset: dataset.clone(),
            stored: DerivedAs::UpToDate,
            rows: 0,
            label,
            parents: parents.specs.clone(),
            sealed: state.is_sealed(self.date),
            log_position: None,
        };
        let stored = state.visible_labelled(self.date, &answer.label).next();
        if let Some(rows) = stored.map(|(_, stored)| stored.spec.rows) {
            answer.rows = rows;
            if parents.sealed && !answer.sealed {
                self.seal(dataset).await?;
                answer.sealed = true;
            }
            return Ok(answer);
        }
        let replaces = self.check_replaced(&state, derived)?;
        if registry::latest(lake, dataset).await?.is_none() {
            return Err(Error::precondition(format!("dataset {dataset} has no published schema"))
                .hint(format!("`lakebed derive {} {name} --schema` writes one from the query, `lakebed schema publish {dataset} 1` publishes it", self.source.name)));
        }
        let file = folder.join(format!("{name}.parquet"));
        let query = query_of(derived, self.date, parents.seen.clone());
        let rows = write_rows(self.context, &query, &file).await?;
        check_rows(rows, &derived.config, self.date)?;
        kill_point("derive.rows_written");
        let request = self.request(derived, &file, &answer, (replaces, parents.sealed));
        let report = ingest(lake, &*self.context.catalog(), &request, &Silent).await?;
        kill_point("derive.stored");
        report
            .warnings
            .iter()
            .for_each(|w| self.context.printer().warn(w));
        if report.outcome == IngestOutcome::Refused {
            return Err(refusal(&report, &file));
        }
        std::fs::remove_file(&file).map_err(|e| Error::io("delete the file", file.display(), e))?;
        answer.stored = match (report.outcome, replaces) {
            (IngestOutcome::AlreadyThere, _) => DerivedAs::UpToDate,
            (_, true) => DerivedAs::Revision,
            (_, false) => DerivedAs::New,
        };
        answer.rows = rows;
        answer.sealed = report.complete;
        answer.log_position = report.log_position;
        Ok(answer)
    }

    fn folder(&self, name: &str) -> PathBuf {
        let root = self.context.project().root().join("derive");
        let source = root.join(self.source.name.as_str());
        source.join(self.date.to_string()).join(name)
    }

    async fn seal(&self, dataset: &DatasetRef) -> Result<()> {
        let (lake, by) = (self.context.lake(), self.context.by(None, None));
        let mut state = load(lake, dataset).await?.state;
        let _sealed = lakebed::log::seal(lake, &mut state, self.date, by).await?;
        lakebed::log::write_success(lake, &mut state, self.date).await?;
        self.context.follow_log(dataset).await;
        Ok(())
    }

    /// Whether rows of the date are replaced; refuses where a person must say so.
    fn check_replaced(&self, state: &DatasetState, derived: &Derived) -> Result<bool> {
        let date = self.date;
        if state.visible_of(date).next().is_none() {
            return Ok(false);
        }
        let own = rules_label(derived);
        let is_own = |batch: &BatchLabel| batch.as_str().starts_with(&own);
        let stranger = state
            .visible_inputs(date)
            .find(|(_, input)| !input.spec.batch.as_ref().is_some_and(is_own));
        match stranger {
            Some((_, input)) if !self.replace => {
                let by_query = input
                    .spec
                    .batch
                    .as_ref()
                    .is_some_and(|b| b.as_str().starts_with(LABEL_PREFIX));
                let what = match by_query {
                    true => "another query, or with other parents or another order",
                    false => "something else than a query",
                };
                Err(Error::precondition(format!(
                    "{} has rows of {date} that were made by {what}",
                    derived.dataset
                ))
                .with("input", &input.spec.name)
                .hint("with `--replace` the rows of this query take their place, as a new revision; `lakebed rollback` brings those back"))
            }
            _ => Ok(true),
        }
    }

    fn request(
        &self,
        derived: &Derived,
        file: &Path,
        answer: &DerivedAnswer,
        (replaces, complete): (bool, bool),
    ) -> IngestRequest {
        let declared = self.source.dataset(&derived.dataset);
        IngestRequest {
            dataset: derived.dataset.clone(),
            dt: self.date,
            inputs: vec![InputSource::file(file)],
            format: None,
            schema_version: None,
            read: ReadSpec {
                format: Some(InputFormat::Parquet),
                // A query says NULL where it means that.
                nan_as_null: Some(false),
                ..ReadSpec::default()
            },
            mismatch: Mismatch::Fail,
            batch: Some(answer.label.clone()),
            run: None,
            revision: match replaces {
                true => RevisionTarget::Replace,
                false => RevisionTarget::Join,
            },
            complete,
            late: false,
            allow_empty: derived.config.allow_empty,
            restore: false,
            rejects_of: None,
            load: LoadKind::Incremental,
            parents: answer.parents.clone(),
            bounds: [declared.key, declared.prune].concat(),
            provenance: Some(Provenance::Live),
            by: self.context.by(None, self.note.map(str::to_owned)),
            threads: None,
            group_bytes: None,
        }
    }
}

/// Runs the query into a durable file; how many rows.
pub(super) async fn write_rows(
    context: &Context<'_>,
    query: &DeriveQuery,
    file: &Path,
) -> Result<u64> {
    let failed = |e: std::io::Error| Error::io("write the file", file.display(), e);
    let engine = engine(context)?;
    let result = engine.derive(query).await?;
    let meter = result.meter();
    let mut out = BufWriter::new(File::create(file).map_err(failed)?);
    let rows = write_parquet(result, &mut out).await?;
    out.flush().map_err(failed)?;
    out.get_ref().sync_all().map_err(failed)?;
    meter
        .warnings()
        .iter()
        .for_each(|w| context.printer().warn(w));
    count_reads(&engine, context.printer()).await;
    Ok(rows)
}

/// The part of the label that names the query.
fn rules_label(derived: &Derived) -> String {
    format!("{LABEL_PREFIX}{}-", &derived.rules.short()[..8])
}

/// What readers see of parents, into a name.
pub(super) fn hash_parents(hasher: &mut blake3::Hasher, stamps: &[StampScope]) {
    for stamp in stamps {
        let content = stamp.content.as_ref().map_or("", ContentHash::as_str);
        let from = stamp.from.map_or(String::new(), |from| format!("{from}.."));
        let line = format!("\n{} {from}{} {content}", stamp.dataset, stamp.dt);
        hasher.update(line.as_bytes());
    }
}

/// Names the query and what readers see of its parents.
fn label_of(derived: &Derived, stamps: &[StampScope]) -> Result<BatchLabel> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(derived.rules.as_str().as_bytes());
    hash_parents(&mut hasher, stamps);
    let parents = ContentHash::finish(&hasher);
    format!("{}{}", rules_label(derived), parents.short()).parse()
}

fn dates_text((from, to): (BusinessDate, BusinessDate)) -> String {
    match from == to {
        true => to.to_string(),
        false => format!("any day up to {to}"),
    }
}

fn lacking(
    state: &DatasetState,
    dataset: &DatasetRef,
    dates: (BusinessDate, BusinessDate),
) -> Error {
    let error = Error::precondition(format!(
        "its parent {dataset} has nothing of {}",
        dates_text(dates)
    ));
    match visible_files(state).last() {
        Some(file) => error.hint(format!("its newest date is {}", file.key.dt)),
        None => error.hint(format!(
            "{dataset} has no row at all: what makes it comes first"
        )),
    }
}

fn unsealed(
    state: &DatasetState,
    dataset: &DatasetRef,
    (from, to): (BusinessDate, BusinessDate),
) -> Error {
    let is_open =
        |dt: &&BusinessDate| state.visible_of(**dt).next().is_some() && !state.is_sealed(**dt);
    let open = state
        .dates()
        .range(from..=to)
        .map(|(dt, _)| dt)
        .find(is_open);
    let date = open.copied().unwrap_or(to);
    Error::precondition(format!("its parent {dataset} is not complete: {date} is open"))
        .hint(format!("`lakebed seal {dataset} --date {date}` declares it complete; `unsealed = true` in the table of the query lets it read open dates"))
}

fn check_rows(rows: u64, config: &DeriveConfig, date: BusinessDate) -> Result<()> {
    if rows > 0 || config.allow_empty {
        return Ok(());
    }
    Err(Error::precondition(format!("the query gives no row for {date}"))
        .hint("nothing was stored; `allow_empty = true` in its table says that a day without a row is good"))
}

fn refusal(report: &IngestReport, file: &Path) -> Error {
    let error = match report.refusal() {
        Some(error) => error,
        None => Error::precondition("the rows do not fit the schema"),
    };
    error
        .with("rows", file.display())
        .hint("nothing was stored; `--schema` proposes the version that fits the query")
}
