//! `source sample`: a few pages to write rules by, and what the rules give for them today.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use lakebed::Result;
use lakebed::config::Settings;
use lakebed::crawl::{
    CrawlPlan, Sampled, WorkerEnd, name_sample, parts_folder, sample_config, sample_run,
};
use lakebed::name::{SourceName, StageName};
use lakebed::pack::PackReader;
use lakebed::parse::{FixturePage, PageInput, parse_with};
use lakebed::queue::Queue;
use lakebed::spec::{PageFault, RunKey};
use lakebed::time::{BusinessDate, Clock, time_zone};
use serde::Serialize;

use super::ANSWER_FORMAT;
use crate::args::{SourceSampleArgs, TextFormat};
use crate::commands::crawl::{stop_signal, tell_worker};
use crate::commands::crawl_plan::{plan_of, read_plan};
use crate::commands::parse::{
    Drafter, KeptPage, Ruled, cover, free_name, save, tell_written, test_pages,
};
use crate::commands::queue::SAMPLE_FOLDER;
use crate::commands::skeleton::{is_skeleton_page, skeleton_pages};
use crate::context::Globals;
use crate::exit::Exit;
use crate::progress::CrawlProgress;
use crate::table::{Table, count, message_text};

/// Pages of a sample.
const LIMIT: u64 = 10;
/// Pages of a sample that rules are drafted from.
const DRAFT_LIMIT: u64 = 40;

/// A page of the sample.
#[derive(Serialize)]
struct SampledPage {
    url: String,
    stage: String,
    status: Option<u16>,
    bytes: u64,
    /// What the rules give; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    parsed: Option<ParsedCounts>,
    #[serde(skip)]
    kept: Option<(FixturePage, Vec<u8>)>,
}

#[derive(Serialize)]
struct ParsedCounts {
    /// The kind of the page; null where no rule fits.
    page: Option<String>,
    records: usize,
    follow_ups: usize,
    rejects: usize,
    /// Links to other stages; whether the rules follow links of such pages, and what was rejected: for the words below the
    /// table.
    #[serde(skip)]
    leads: usize,
    #[serde(skip)]
    follows: bool,
    #[serde(skip)]
    faults: Vec<PageFault>,
}

#[derive(Serialize)]
struct SampleAnswer<'a> {
    format: u32,
    run: &'a RunKey,
    pack: Option<String>,
    /// Requests that were known and not fetched.
    left: u64,
    failed: u64,
    dead_classes: &'a BTreeSet<String>,
    pages: &'a [SampledPage],
}

/// `lakebed source sample`
pub(crate) async fn sample(args: SourceSampleArgs, globals: &Globals<'_>) -> Result<Exit> {
    let source: SourceName = args.name.parse()?;
    let (mut plan, mut sampled) = fetch(&source, &args, globals).await?;
    let mut ruled = rules_of(&source, globals)?;
    let mut pages = pages_of(&sampled, ruled.as_ref())?;
    if args.draft {
        if draft_stages(&source, Kind::Lists, &pages, globals)? {
            globals
                .printer
                .info("sampled again, to follow the links that the new rules find");
            (plan, sampled) = fetch(&source, &args, globals).await?;
            ruled = rules_of(&source, globals)?;
            pages = pages_of(&sampled, ruled.as_ref())?;
        }
        if draft_stages(&source, Kind::Items, &pages, globals)? {
            ruled = rules_of(&source, globals)?;
            pages = pages_of(&sampled, ruled.as_ref())?;
        }
    }
    tell(&sampled, &pages, globals)?;
    let is_saved = args.save || args.draft;
    match &ruled {
        Some(ruled) if args.draft => cover(&kept_of(&pages), ruled, globals)?,
        // Pages that are asked for by their address are kept beside those that there are.
        Some(ruled) if args.save => {
            keep_first_of_each(&pages, ruled, args.seeds.is_some(), globals)?;
        }
        Some(_) | None => {}
    }
    let saved = ruled.as_ref().filter(|_| is_saved);
    tell_unseen(&plan, &pages, saved, globals);
    let is_good = !pages.is_empty() && matches!(sampled.end, WorkerEnd::Full | WorkerEnd::Drained);
    Ok(if is_good { Exit::Done } else { Exit::No })
}

/// The rules of the source, where it has some.
fn rules_of(source: &SourceName, globals: &Globals<'_>) -> Result<Option<Ruled>> {
    let config = globals.find_project()?.load_source(source)?;
    let has_rules = config.parse.is_some();
    has_rules.then(|| Ruled::open(source, globals)).transpose()
}

/// Fetches the pages of one sample, as the source is declared now.
async fn fetch(
    source: &SourceName,
    args: &SourceSampleArgs,
    globals: &Globals<'_>,
) -> Result<(CrawlPlan, Sampled)> {
    let project = globals.find_project()?;
    let settings = Settings::load(&project, &globals.layers())?;
    let config = project.load_source(source)?;
    let date = match &args.date {
        Some(date) => date.parse()?,
        None => {
            let zone = config
                .time_zone
                .as_deref()
                .unwrap_or(&settings.time_zone.value);
            BusinessDate::of(Clock::System.now(), &time_zone(zone)?)
        }
    };
    let run = RunKey {
        source: source.clone(),
        date,
        run: "sample".parse()?,
    };
    let plan = plan_of(&project, &settings, &run, None)?;
    let queue = Queue::open(&settings.queue.value, plan.queue_options()).await?;
    let samples = project.root().join(SAMPLE_FOLDER);
    let run = name_sample(&queue, &run, &samples).await?;
    let plan = CrawlPlan {
        parts: parts_folder(&samples, &run),
        config: sample_config(plan.config),
        limit: Some(
            args.limit
                .unwrap_or(if args.draft { DRAFT_LIMIT } else { LIMIT }),
        ),
        run,
        ..plan
    };
    let folder = project.sources_dir().join(source.as_str());
    let read = async || read_plan(&plan, args.seeds.as_deref(), &folder).await;
    let progress = CrawlProgress::new(globals.printer, &plan.run.to_string());
    let sampled = sample_run(&queue, &plan, read, stop_signal()?, &progress).await;
    drop(progress);
    let sampled = sampled?;
    tell_worker(globals.printer, &sampled.end, &sampled.stats);
    Ok((plan, sampled))
}

/// Which stages are drafted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lists,
    Items,
}

/// Drafts the rules of every stage of that kind whose rules nobody has touched; whether any was written.
fn draft_stages(
    source: &SourceName,
    kind: Kind,
    pages: &[SampledPage],
    globals: &Globals<'_>,
) -> Result<bool> {
    let mut drafter = Drafter::open(source, globals)?;
    let stages: BTreeSet<&str> = pages.iter().map(|page| page.stage.as_str()).collect();
    let kept = kept_of(pages);
    let mut any = false;
    for stage in stages {
        let stage: StageName = stage.parse()?;
        if drafter.is_list(&stage) != (kind == Kind::Lists) {
            continue;
        }
        // Rules that find links to items are as good as drafted.
        let finds = |page: &SampledPage| page.parsed.as_ref().is_some_and(|p| p.leads > 0);
        let mut own = pages.iter().filter(|page| page.stage == stage.as_str());
        if kind == Kind::Lists && own.any(finds) {
            continue;
        }
        if !drafter.is_untouched(&stage) {
            globals.printer.info(format!(
                "the rules of stage `{stage}` are not those of the skeleton any more: they stay (`lakebed parse {source} --draft {stage}` shows what would be drafted)"
            ));
            continue;
        }
        match drafter.draft(&stage, &kept)? {
            Some(drafted) => {
                drafter.write(&drafted)?;
                tell_written(&drafter, &drafted, globals)?;
                any = true;
            }
            None => globals.printer.warn(format!(
                "the pages of stage `{stage}` show nothing that a rule could be drafted for: look at one with a browser, without scripts"
            )),
        }
    }
    Ok(any)
}

/// The pages in the pack, with what the rules give.
fn pages_of(sampled: &Sampled, ruled: Option<&Ruled>) -> Result<Vec<SampledPage>> {
    let Some(path) = &sampled.pack else {
        return Ok(Vec::new());
    };
    let reader = PackReader::open(path)?;
    let mut pages = Vec::new();
    for row in reader.index()?.rows()? {
        let row = row?;
        if !row.is_named || row.is_erased {
            continue;
        }
        let found = reader.read(&row)?;
        let parsed = match ruled {
            Some(ruled) => {
                let input = PageInput {
                    run: &sampled.run,
                    capture: &found.capture,
                    body: &found.body,
                };
                let parsed = parse_with(&ruled.rules, &ruled.folder(), &input)?;
                let rejects = parsed.rejects.len();
                let faults = parsed.rejects.into_iter().flat_map(|r| r.faults);
                Some(ParsedCounts {
                    leads: parsed
                        .follow_ups
                        .iter()
                        .filter(|f| f.stage != found.capture.kind)
                        .count(),
                    follows: ruled.rules.is_followed(&found.capture),
                    page: parsed.page,
                    records: parsed.records.len(),
                    follow_ups: parsed.follow_ups.len(),
                    rejects,
                    faults: faults.collect(),
                })
            }
            None => None,
        };
        pages.push(SampledPage {
            url: found.capture.url.clone(),
            stage: found.capture.kind.to_string(),
            status: found.capture.status,
            bytes: found.body.len() as u64,
            parsed,
            kept: Some((FixturePage::of(&found.capture), found.body.to_vec())),
        });
    }
    Ok(pages)
}

fn tell(sampled: &Sampled, pages: &[SampledPage], globals: &Globals<'_>) -> Result<()> {
    let printer = globals.printer;
    let pack = sampled.pack.as_ref().map(|p| p.display().to_string());
    if printer.format() == TextFormat::Json {
        return printer.json(&SampleAnswer {
            format: ANSWER_FORMAT,
            run: &sampled.run,
            pack,
            left: sampled.left,
            failed: sampled.stats.failed,
            dead_classes: &sampled.dead_classes,
            pages,
        });
    }
    let mut table = Table::new([
        "status", "stage", "kind", "records", "links", "rejects", "url",
    ]);
    for page in pages {
        let parsed = page.parsed.as_ref();
        let number =
            |of: fn(&ParsedCounts) -> usize| parsed.map_or("-".to_owned(), |p| of(p).to_string());
        let kind = match parsed {
            None => "-",
            Some(parsed) => parsed.page.as_deref().unwrap_or("no rule fits"),
        };
        let status = page.status.map_or("-".to_owned(), |s| s.to_string());
        table.row([
            &status,
            &page.stage,
            &message_text(kind),
            &number(|p| p.records),
            &number(|p| p.follow_ups),
            &number(|p| p.rejects),
            &message_text(&page.url),
        ]);
    }
    printer.table(&table)?;
    tell_rules(pages, globals);
    for class in &sampled.dead_classes {
        printer.warn(format!("requests died as `{class}`"));
    }
    if let WorkerEnd::Stopped(reason) = &sampled.end {
        printer.warn(format!("the sample was stopped: {reason}"));
    }
    match &pack {
        Some(pack) => printer.info(format!(
            "{}, {} more known; kept in {pack}",
            count(pages.len() as u64, "page"),
            sampled.left
        )),
        None => printer.warn("nothing was fetched"),
    }
    if let Some(first) = pages.first() {
        printer.hint(format!(
            "`lakebed parse {} --try {}` shows what the rules give for a page, `--save NAME` keeps it as a fixture",
            sampled.run.source, first.url
        ));
    }
    Ok(())
}

/// Stages of which no page came, and how to get one; of rules whose fixtures are kept, that those that were made up
/// are still there.
fn tell_unseen(
    plan: &CrawlPlan,
    pages: &[SampledPage],
    saved: Option<&Ruled>,
    globals: &Globals<'_>,
) {
    let (printer, source) = (globals.printer, &plan.run.source);
    let stages = plan.config.stage.keys().map(StageName::as_str);
    let is_unseen = |stage: &&str| pages.iter().all(|page| page.stage != **stage);
    for stage in stages.filter(|s| !pages.is_empty() && is_unseen(s)) {
        let invented = saved.map(|ruled| skeleton_pages(&ruled.folder().join("fixtures"), stage));
        for page in invented.into_iter().flatten() {
            let name = page.file_name().unwrap_or_default().to_string_lossy();
            printer.warn(format!(
                "`{name}` is still the page that the skeleton invented: no page of stage `{stage}` came in its place"
            ));
        }
        let save = if saved.is_some() { " --save" } else { "" };
        printer.hint(format!(
            "no page of stage `{stage}`: `echo '{{\"url\": \"URL\", \"stage\": \"{stage}\"}}' | lakebed source sample {source} --seeds -{save}` fetches one, \
             and so does a rule of [[parse.page.follow]] that finds its link, when it is sampled again"
        ));
    }
}

/// What the table does not say: that no link was found, and why pages were rejected.
fn tell_rules(pages: &[SampledPage], globals: &Globals<'_>) {
    let printer = globals.printer;
    let parsed = || pages.iter().filter_map(|p| Some((p, p.parsed.as_ref()?)));
    let followed: BTreeSet<&str> = parsed()
        .filter(|(_, counts)| counts.follows)
        .map(|(page, _)| page.stage.as_str())
        .collect();
    if !followed.is_empty() && parsed().all(|(_, counts)| counts.follow_ups == 0) {
        let stages: Vec<&str> = followed.into_iter().collect();
        printer.warn(format!(
            "no rule found a link on any page: look at `each` and `url` of [[parse.page.follow]] of stage {}",
            stages.join(", ")
        ));
    }
    let mut told: BTreeSet<(Option<&str>, &str, &str)> = BTreeSet::new();
    for (page, counts) in parsed() {
        for fault in &counts.faults {
            let kind = counts.page.as_deref();
            if told.insert((kind, &fault.path, &fault.code)) {
                printer.warn(format!(
                    "`{}` rejects {} ({}): {}; first on {}",
                    kind.unwrap_or_default(),
                    fault.path,
                    fault.code,
                    message_text(&fault.reason),
                    page.url
                ));
            }
        }
    }
}

/// The pages themselves.
fn kept_of(pages: &[SampledPage]) -> Vec<KeptPage> {
    pages.iter().filter_map(|page| page.kept.clone()).collect()
}

/// Keeps the first page of each kind that no fixture has.
fn keep_first_of_each(
    pages: &[SampledPage],
    ruled: &Ruled,
    are_asked_for: bool,
    globals: &Globals<'_>,
) -> Result<()> {
    let folder = ruled.folder().join("fixtures");
    let mut had: BTreeMap<String, PathBuf> = BTreeMap::new();
    for page in test_pages(ruled, false).unwrap_or_default() {
        let path = folder.join(&page.name);
        let kind = page.parsed.and_then(|p| p.page);
        // A page that was made up stands in for one of the site.
        if let (Some(kind), false) = (kind, is_skeleton_page(&path)) {
            had.entry(kind).or_insert(path);
        }
    }
    let mut seen = BTreeSet::new();
    for page in pages {
        let kind = page.parsed.as_ref().and_then(|p| p.page.clone());
        let (Some(kind), Some((fixture, body))) = (kind, &page.kept) else {
            continue;
        };
        if !seen.insert(kind.clone()) {
            continue;
        }
        match had.get(&kind).filter(|_| !are_asked_for) {
            Some(path) => globals.printer.info(format!(
                "`--save`: `{kind}` has a fixture already ({}); delete it to take this page",
                path.display()
            )),
            None => save(&free_name(&kind, ruled), (fixture, body), ruled, globals)?,
        }
    }
    Ok(())
}
