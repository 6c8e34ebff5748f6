//! The plan of a day's details: yesterday's final snapshot, today's list and the rules into a file of requests.
//!
//! ```text
//! <project>/seed/<source>/<date>.<run>/plan.jsonl   a request a line, as the seeds of a crawl are read
//! <project>/seed/<source>/<date>.<run>/plan.json    counts by reason, the hash of the lines, what was read
//! ```
//! SED-3: `plan.json` gets its name last, and names the hash of the lines: a plan whose head is there is whole. What
//! is there already is not written again; another plan in its place is refused unless it is asked for.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::config::{SeedConfig, SeedMode, SourceConfig};
use crate::crawl::{SeedSpec, seed_request};
use crate::error::{Error, Result};
use crate::fault::kill_point;
use crate::flow::fold::{
    FoldRefusal, FoldRefusalKind, FoldSource, InputFiles, RowBudget, Stop, Tried, clear_folder,
    has_data_before, is_final, load_settled, read_input, read_previous,
};
use crate::flow::guard::lock_folder;
use crate::fold::{PlanRules, PlannedKey, SeedReason, SkipReason, Verdict, Windows};
use crate::log::DatasetState;
use crate::name::{ContentHash, FoldName, RunName, SourceName, StageName};
use crate::spec::{CanonicalUrl, QueryOrder};
use crate::store::Lake;
use crate::time::BusinessDate;

/// Version of `plan.json`.
const PLAN_FORMAT: u32 = 1;
/// The lines of a plan.
pub const PLAN_LINES: &str = "plan.jsonl";
/// The head of a plan.
pub const PLAN_HEAD: &str = "plan.json";

/// How a plan is made.
#[derive(Debug, Clone)]
pub struct SeedOptions {
    /// Folder of the source's plans.
    pub folder: PathBuf,
    /// The run that it belongs to.
    pub run: RunName,
    /// Put it in the place of another one.
    pub replace: bool,
    /// Threads; `None` = the machine's cores.
    pub threads: Option<usize>,
    /// Bytes of the list that are held in memory.
    pub memory_bytes: usize,
}

/// `plan.json`: the head of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanHead {
    /// Version of this shape.
    pub format: u32,
    /// The source.
    pub source: SourceName,
    /// The business date.
    pub date: BusinessDate,
    /// The run.
    pub run: RunName,
    /// The fold.
    pub fold: FoldName,
    /// What is asked for.
    pub mode: SeedMode,
    /// Names the rules.
    pub rules: String,
    /// What was read: yesterday's snapshot, today's list (docs/formats/log.md).
    pub reads: Vec<String>,
    /// Lines of the plan.
    pub requests: u64,
    /// Of them by reason.
    pub reasons: BTreeMap<String, u64>,
    /// Objects that are not fetched, by why.
    pub skipped: BTreeMap<String, u64>,
    /// BLAKE3 of the lines.
    pub plan: ContentHash,
}

impl PlanHead {
    /// Reads the head beside the lines of a plan: `x.json` beside `x.jsonl`.
    ///
    /// # Errors
    /// `InvalidInput` where there is none; `CorruptData` where it is no head, or of other lines than `lines`.
    pub fn get_beside(path: &Path, lines: &[u8]) -> Result<Self> {
        let head_path = path.with_extension("json");
        let Some(head) = find_head(&head_path)? else {
            return Err(Error::invalid(
                "the plan has no head beside it: whether it is whole, and of which date, is not known",
            )
            .with("file", path.display())
            .with("head", head_path.display())
            .hint("`lakebed seed` makes the plan anew")
            .hint("requests that no `lakebed seed` planned are given with `--seeds FILE`"));
        };
        if head.plan != ContentHash::of(lines) {
            return Err(Error::corrupt(
                "read the plan: its lines are not those that its head names",
            )
            .with("file", head_path.display())
            .hint("`lakebed seed` makes the plan anew"));
        }
        Ok(head)
    }
}

fn find_head(path: &Path) -> Result<Option<PlanHead>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("read the file", path.display(), e)),
    };
    let head: PlanHead = serde_json::from_slice(&text).map_err(|e| {
        Error::corrupt(format!("read the head of the plan: {e}")).with("file", path.display())
    })?;
    if head.format > PLAN_FORMAT {
        return Err(Error::unavailable("this plan was made by a newer Lakebed")
            .with("file", path.display()));
    }
    Ok(Some(head))
}

/// A made plan.
#[derive(Debug, Clone, Serialize)]
pub struct SeedReport {
    /// The head.
    #[serde(flatten)]
    pub head: PlanHead,
    /// The file of the lines.
    pub file: PathBuf,
    /// Whether the same plan was there.
    pub up_to_date: bool,
    /// Objects whose address has no value: they are not fetched.
    pub without_url: u64,
}

/// Answer of [`plan_seeds`] and [`explain_seed`].
#[derive(Debug)]
#[must_use]
pub enum SeedAnswer<T> {
    /// It was done.
    Done(T),
    /// It is refused.
    Refused(FoldRefusal),
}

fn answer<T>(tried: Tried<T>) -> Result<SeedAnswer<T>> {
    match tried {
        Ok(done) => Ok(SeedAnswer::Done(done)),
        Err(Stop::Refused(refusal)) => Ok(SeedAnswer::Refused(refusal)),
        Err(Stop::Failed(error)) => Err(error),
    }
}

/// Makes the plan of a date.
///
/// # Errors
/// Whatever the lake or the disk answers; why it is not made else stands in the answer.
pub async fn plan_seeds(
    lake: &Lake,
    source: &SourceConfig,
    date: BusinessDate,
    options: &SeedOptions,
) -> Result<SeedAnswer<SeedReport>> {
    answer(make_plan(lake, source, date, options).await)
}

/// Why an object is, or is not, in the plan of a date; whether that plan was made does not matter.
///
/// # Errors
/// `NotFound` where neither the snapshot nor the list has the key.
pub async fn explain_seed(
    lake: &Lake,
    source: &SourceConfig,
    date: BusinessDate,
    (key, options): (&str, &SeedOptions),
) -> Result<SeedAnswer<PlannedKey>> {
    let tried = async {
        let material = Material::open(lake, source, date).await?;
        let mut found = None;
        let quoted = serde_json::to_string(key).unwrap_or_default();
        material.judge((date, true), options, |planned| {
            if planned.key == key || planned.key == quoted {
                found = Some(planned);
            }
            Ok(())
        })?;
        found.ok_or_else(|| {
            Stop::from(
                Error::not_found(format!(
                    "neither the snapshot of {} nor the list of {date} has the key `{key}`",
                    date.plus_days(-1)
                ))
                .hint("a key of several columns is a list: --explain '[\"taipei\", 17]'"),
            )
        })
    };
    answer(tried.await)
}

/// What a plan is made of.
struct Material {
    config: SeedConfig,
    fold: FoldSource,
    rules: PlanRules,
    previous: Option<InputFiles>,
    list: InputFiles,
}

impl Material {
    async fn open(lake: &Lake, source: &SourceConfig, date: BusinessDate) -> Tried<Self> {
        let config = source.seed.clone().ok_or_else(|| {
            Error::invalid(format!(
                "the source `{}` says nothing of its details",
                source.name
            ))
            .hint("add a table [seed] with fold, url and detailed (docs/fold.md)")
        })?;
        let fold = FoldSource::open(lake, source, &config.fold).await?;
        let name = config.list.clone();
        let is_list = |n: &usize| {
            let input = &fold.bound.rules.inputs[*n];
            name.as_ref()
                .map_or(input.presence, |name| input.name == *name)
        };
        let at = (0..fold.inputs.len()).find(is_list).unwrap_or_default();
        let rules = PlanRules::compile(&config, &fold.bound, &fold.inputs[at])?;
        let snapshot = load_settled(lake, &fold.snapshot.0).await?;
        let list = load_settled(lake, &rules.list.dataset).await?;
        check_list(&list, (&config, source), date)?;
        let yesterday = date.plus_days(-1);
        let previous = match is_final(&snapshot, yesterday) {
            true => Some(InputFiles::between(
                lake,
                &snapshot,
                yesterday,
                (0, u64::MAX),
            )?),
            false => {
                check_first(lake, (&fold, &snapshot), date).await?;
                None
            }
        };
        let list = InputFiles::between(lake, &list, date, (0, u64::MAX))?;
        Ok(Self {
            config,
            fold,
            rules,
            previous,
            list,
        })
    }

    /// Every key with its verdict, in order.
    fn judge(
        &self,
        (date, all): (BusinessDate, bool),
        options: &SeedOptions,
        mut take: impl FnMut(PlannedKey) -> Result<()>,
    ) -> Result<()> {
        let budget = RowBudget {
            bytes: options.memory_bytes,
            folder: options.folder.join("sorting"),
            threads: options
                .threads
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from)),
        };
        clear_folder(&budget.folder)?;
        let bound = &self.fold.bound;
        let types = self.rules.list_types(bound);
        let list = std::slice::from_ref(&self.list);
        let (schema, rows, _) = read_input((&self.rules.list, &types), list, date, &budget)?;
        let files = self.previous.iter().flat_map(|p| p.files.clone()).collect();
        let previous = (bound.previous_schema(), read_previous(&self.fold, files));
        let windows = Windows::new(bound.rules.key().len(), previous, vec![(schema, rows)])?;
        for window in windows {
            let mut taken = Ok(());
            self.rules.judge(&window?, (date, all), |planned| {
                if taken.is_ok() {
                    taken = take(planned);
                }
            });
            taken?;
        }
        clear_folder(&budget.folder)
    }

    fn rules_hash(&self) -> Result<String> {
        let text = serde_json::to_string(&self.config)
            .map_err(|e| Error::internal("write the rules as JSON").caused_by(e))?;
        let both = format!("seed/1\n{}\n{text}", self.fold.bound.rules.hash());
        Ok(ContentHash::of(both.as_bytes()).short().to_owned())
    }
}

/// Today's list must be there as a whole, unless what is new alone is asked for.
fn check_list(
    list: &DatasetState,
    (config, source): (&SeedConfig, &SourceConfig),
    date: BusinessDate,
) -> Tried<()> {
    let dataset = list.dataset();
    let opened = list.visible_of(date).next().is_some();
    if list.is_sealed(date) || (opened && config.mode == SeedMode::New) {
        return Ok(());
    }
    let error = match opened {
        false => Error::precondition(format!("there is no list of {date} in `{dataset}`"))
            .hint(format!("`lakebed parse {} --date {date}` stores what the run of the list fetched", source.name)),
        true => Error::precondition(format!("the list of {date} in `{dataset}` is not sealed: what is missing from it would look absent"))
            .hint(format!("when it is complete: `lakebed seal {dataset} --date {date}`"))
            .hint("with `mode = \"new\"` a part of the list is enough"),
    };
    Err(Stop::refuse(FoldRefusalKind::ListNotComplete, error))
}

/// Without a snapshot of yesterday only the very first day can be planned.
async fn check_first(
    lake: &Lake,
    (fold, snapshot): (&FoldSource, &DatasetState),
    date: BusinessDate,
) -> Tried<()> {
    let yesterday = date.plus_days(-1);
    let mut earlier = has_data_before(snapshot, date);
    for input in &fold.bound.rules.inputs {
        earlier |= has_data_before(&load_settled(lake, &input.dataset).await?, date);
    }
    if !earlier {
        return Ok(());
    }
    let rules = &fold.bound.rules;
    let error = Error::precondition(format!(
        "there is no final snapshot of {yesterday} in `{}`",
        fold.snapshot.0
    ))
    .hint(format!(
        "`lakebed fold {} --name {} --date {yesterday}` makes it; nothing is guessed without",
        rules.source, rules.name
    ));
    Err(Stop::refuse(FoldRefusalKind::NoYesterday, error))
}

/// A line of a plan.
#[derive(Serialize)]
struct PlanLine<'a> {
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<&'a StageName>,
    reason: SeedReason,
    key: &'a RawValue,
}

/// A file that is written beside its name.
struct Lines {
    temp: PathBuf,
    file: BufWriter<File>,
    hasher: blake3::Hasher,
}

impl Lines {
    fn create(temp: PathBuf) -> Result<Self> {
        let file =
            File::create(&temp).map_err(|e| Error::io("create the file", temp.display(), e))?;
        Ok(Self {
            temp,
            file: BufWriter::new(file),
            hasher: blake3::Hasher::new(),
        })
    }

    fn add(&mut self, line: &PlanLine<'_>) -> Result<()> {
        let mut bytes = serde_json::to_vec(line)
            .map_err(|e| Error::internal("write a line as JSON").caused_by(e))?;
        bytes.push(b'\n');
        self.hasher.update(&bytes);
        self.file
            .write_all(&bytes)
            .map_err(|e| Error::io("write the file", self.temp.display(), e))
    }

    fn finish(self) -> Result<(PathBuf, ContentHash)> {
        let temp = self.temp;
        let fail = |e| Error::io("write the file", temp.display(), e);
        let file = self.file.into_inner().map_err(|e| fail(e.into_error()))?;
        file.sync_all().map_err(fail)?;
        Ok((temp, ContentHash::finish(&self.hasher)))
    }
}

/// Refuses a request that the crawl of the source would not take: one that is noticed there only makes the whole plan
/// one that nobody takes.
fn check_request(
    source: &SourceConfig,
    (url, stage): (&str, Option<&StageName>),
    object: &str,
) -> Result<()> {
    let at = |error: Error| error.with("key", "seed.url").with("object", object);
    let Some(crawl) = &source.crawl else {
        return CanonicalUrl::parse(url, QueryOrder::Kept)
            .map(drop)
            .map_err(at);
    };
    let seed = SeedSpec {
        url: url.to_owned(),
        stage: stage.cloned(),
        ..SeedSpec::default()
    };
    match seed_request(crawl, seed).map_err(at)? {
        Some(_) => Ok(()),
        None => {
            let error = Error::invalid(format!("`{url}` leads to no host of the source"));
            let hosts = crawl.hosts.join(", ");
            Err(at(error).hint(format!(
                "its hosts are {hosts}; a field of the list that may lead elsewhere is no address"
            )))
        }
    }
}

fn word(value: &impl Serialize) -> String {
    let text = serde_json::to_value(value).unwrap_or_default();
    text.as_str().unwrap_or_default().to_owned()
}

async fn make_plan(
    lake: &Lake,
    source: &SourceConfig,
    date: BusinessDate,
    options: &SeedOptions,
) -> Tried<SeedReport> {
    let material = Material::open(lake, source, date).await?;
    let _alone = lock_folder(&options.folder, "plan the source")?;
    let folder = options.folder.join(format!("{date}.{}", options.run));
    fs::create_dir_all(&folder).map_err(|e| Error::io("create the folder", folder.display(), e))?;
    let mut lines = Lines::create(folder.join("plan.jsonl.tmp"))?;
    let mut head = PlanHead {
        format: PLAN_FORMAT,
        source: source.name.clone(),
        date,
        run: options.run.clone(),
        fold: material.config.fold.clone(),
        mode: material.rules.mode(),
        rules: material.rules_hash()?,
        reads: material
            .previous
            .iter()
            .chain([&material.list])
            .map(|f| f.range.to_string())
            .collect(),
        requests: 0,
        reasons: BTreeMap::new(),
        skipped: BTreeMap::new(),
        plan: ContentHash::of(b""),
    };
    let mut without_url = 0;
    let stage = material.config.stage.as_ref();
    material.judge((date, false), options, |planned| {
        match (planned.verdict, &planned.url) {
            (Verdict::Request(reason), Some(url)) => {
                check_request(source, (url, stage), &planned.key)?;
                let key = RawValue::from_string(planned.key.clone())
                    .map_err(|e| Error::internal("write a key as JSON").caused_by(e))?;
                lines.add(&PlanLine {
                    url,
                    stage,
                    reason,
                    key: &key,
                })?;
                head.requests += 1;
                *head.reasons.entry(word(&reason)).or_default() += 1;
            }
            (Verdict::Skip(why), _) => {
                without_url += u64::from(why == SkipReason::NoUrl);
                *head.skipped.entry(word(&why)).or_default() += 1;
            }
            (Verdict::Request(_), None) => {
                return Err(Error::internal("a request without an address"));
            }
        }
        Ok(())
    })?;
    let (temp, hash) = lines.finish()?;
    head.plan = hash;
    let file = folder.join(PLAN_LINES);
    let up_to_date = put_plan(&head, (&temp, &file), options.replace)?;
    Ok(SeedReport {
        head,
        file,
        up_to_date,
        without_url,
    })
}

/// Names the lines, then the head; answers whether both were there.
fn put_plan(head: &PlanHead, (temp, file): (&Path, &Path), replace: bool) -> Tried<bool> {
    let head_path = file.with_file_name(PLAN_HEAD);
    let remove = |path: &Path| {
        fs::remove_file(path).map_err(|e| Error::io("delete the file", path.display(), e))
    };
    match find_head(&head_path)? {
        // Equal lines are the same plan, whatever was committed since to what they were made of.
        Some(known) if known.plan == head.plan => {
            let same = fs::read(file).is_ok_and(|lines| ContentHash::of(&lines) == head.plan);
            if same {
                remove(temp)?;
                return Ok(true);
            }
        }
        Some(known) if !replace => {
            remove(temp)?;
            let error = Error::precondition(format!(
                "another plan of the run is there, of {} requests; this one would have {}",
                known.requests, head.requests
            ))
            .with("file", head_path.display())
            .hint("list, snapshot or rules changed since; a run that was seeded from it keeps its seeds")
            .hint("`--replace` puts the new plan in its place");
            return Err(Stop::refuse(FoldRefusalKind::OtherPlan, error));
        }
        // The lines without their head are no plan.
        Some(_) => remove(&head_path)?,
        None => {}
    }
    let name = |from: &Path, to: &Path| {
        fs::rename(from, to).map_err(|e| Error::io("name the file", to.display(), e))
    };
    name(temp, file)?;
    kill_point("seed.plan_written");
    put_head(head, &head_path)?;
    Ok(false)
}

fn put_head(head: &PlanHead, path: &Path) -> Result<()> {
    let mut text = serde_json::to_string_pretty(head)
        .map_err(|e| Error::internal("write the head as JSON").caused_by(e))?;
    text.push('\n');
    let head_temp = path.with_file_name("plan.json.tmp");
    let written = File::create(&head_temp)
        .and_then(|mut f| f.write_all(text.as_bytes()).and_then(|()| f.sync_all()));
    written.map_err(|e| Error::io("write the file", head_temp.display(), e))?;
    fs::rename(&head_temp, path).map_err(|e| Error::io("name the file", path.display(), e))
}
