//! `queue status | list | retry | watch`.

use std::collections::BTreeMap;
use std::time::Duration;

use lakebed::config::{Project, Settings};
use lakebed::name::{ErrorClass, SourceName, StageName};
use lakebed::queue::{
    EventRecord, LaneProgress, Queue, QueueOptions, RequestFilter, RequestRecord, RequestState,
    RunRecord, RunState, closing_of,
};
use lakebed::spec::RunKey;
use lakebed::time::Instant;
use lakebed::{Error, Result};
use serde::Serialize;

use crate::args::{
    QueueListArgs, QueueRetryArgs, QueueStatusArgs, QueueWatchArgs, RunArgs, StateArg, TextFormat,
};
use crate::commands::crawl_date::check_name;
use crate::context::{Globals, open_lake};
use crate::exit::Exit;
use crate::table::{Table, count, message_text};

/// Version of the JSON objects of this file.
const ANSWER_FORMAT: u32 = 1;
/// Folder of crawl state in the project.
pub(crate) const STATE_FOLDER: &str = "crawl";
/// Folder of samples in the project.
pub(crate) const SAMPLE_FOLDER: &str = "sample";
/// Requests that are read at once.
const PAGE: u32 = 1_000;
/// How often `watch` looks.
const WATCH_PAUSE: Duration = Duration::from_millis(500);
/// Events that `watch` reads again, since a slow transaction may commit a smaller number later.
const WATCH_BEHIND: i64 = 50;

/// The queue of the project that the call is about.
pub(crate) async fn open_queue(
    globals: &Globals<'_>,
    options: QueueOptions,
) -> Result<(Project, Settings, Queue)> {
    let project = globals.find_project()?;
    let settings = Settings::load(&project, &globals.layers())?;
    let queue = Queue::open(&settings.queue.value, options).await?;
    globals.printer.debug(format!("queue {}", queue.place()));
    Ok((project, settings, queue))
}

/// Source, date and name of a run.
pub(crate) fn run_key(args: &RunArgs) -> Result<RunKey> {
    Ok(RunKey {
        source: args.source.parse()?,
        date: args.date.parse()?,
        run: args.run.parse()?,
    })
}

/// The run, which must be there.
pub(crate) async fn get_run(queue: &Queue, key: &RunKey) -> Result<RunRecord> {
    let found = queue.find_run(key).await?;
    found.ok_or_else(|| {
        Error::not_found(format!("the queue has no run `{key}`"))
            .with("queue", queue.place())
            .hint("`lakebed queue status` lists the runs there are")
    })
}

#[derive(Serialize)]
struct RunAnswer {
    #[serde(flatten)]
    key: RunKey,
    state: &'static str,
    coverage: lakebed::queue::Coverage,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<String>,
    created_at: Instant,
    #[serde(skip_serializing_if = "Option::is_none")]
    closing: Option<serde_json::Value>,
    lanes: Vec<LaneAnswer>,
}

#[derive(Serialize)]
struct LaneAnswer {
    #[serde(flatten)]
    progress: LaneProgress,
    left: i64,
}

#[derive(Serialize)]
struct StatusAnswer {
    format: u32,
    runs: Vec<RunAnswer>,
}

/// `lakebed queue status`
pub(crate) async fn status(args: &QueueStatusArgs, globals: &Globals<'_>) -> Result<Exit> {
    let source: Option<SourceName> = args.source.as_deref().map(str::parse).transpose()?;
    let (_, _, queue) = open_queue(globals, QueueOptions::default()).await?;
    let mut runs = Vec::new();
    for run in queue.list_runs(source.as_ref(), args.limit).await? {
        let lanes = queue.list_progress(run.id).await?;
        let lane = |progress: LaneProgress| LaneAnswer {
            left: progress.enqueued - progress.done - progress.dead,
            progress,
        };
        runs.push(RunAnswer {
            key: run.key,
            state: run.state.as_str(),
            coverage: run.coverage,
            stopped: run.stopped,
            created_at: Instant::from_micros(run.created_at),
            closing: run.closing.and_then(|c| serde_json::from_str(&c).ok()),
            lanes: lanes.into_iter().map(lane).collect(),
        });
    }
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&StatusAnswer {
            format: ANSWER_FORMAT,
            runs,
        })?,
        TextFormat::Text => {
            let columns = [
                "source",
                "date",
                "run",
                "state",
                "stage",
                "host",
                "#enqueued",
                "#left",
                "#done",
                "#dead",
                "#failed attempts",
                "closing",
            ];
            let mut table = Table::new(columns);
            for run in &runs {
                add_rows(&mut table, run);
            }
            globals.printer.table(&table)?;
            if table.is_empty() {
                globals
                    .printer
                    .hint("`lakebed crawl SOURCE --date D` makes a run");
            }
        }
    }
    Ok(Exit::Done)
}

fn add_rows(table: &mut Table, run: &RunAnswer) {
    let closing = match (&run.closing, &run.stopped) {
        (Some(closing), _) if closing["pass"] == true => "pass",
        (Some(closing), _) if closing["accepted"].is_object() => "accepted",
        (Some(_), _) => "fail",
        (None, Some(_)) => "stopped",
        (None, None) => "",
    };
    let head = [
        run.key.source.to_string(),
        run.key.date.to_string(),
        run.key.run.to_string(),
        run.state.to_owned(),
    ];
    if run.lanes.is_empty() {
        let empty = std::iter::repeat_n(String::new(), 7);
        table.row(head.into_iter().chain(empty).chain([closing.to_owned()]));
        return;
    }
    for lane in &run.lanes {
        let p = &lane.progress;
        let numbers = [p.enqueued, lane.left, p.done, p.dead, p.failed].map(|n| n.to_string());
        let names = [p.stage.clone(), p.host.clone()];
        table.row(
            head.iter()
                .cloned()
                .chain(names)
                .chain(numbers)
                .chain([closing.to_owned()]),
        );
    }
}

#[derive(Serialize)]
struct RequestAnswer {
    request_key: String,
    stage: String,
    method: String,
    url: String,
    state: &'static str,
    attempts: u32,
    failures: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capture: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Instant>,
}

impl From<RequestRecord> for RequestAnswer {
    fn from(record: RequestRecord) -> Self {
        Self {
            request_key: record.request_key.to_string(),
            stage: record.stage.to_string(),
            method: record.method,
            url: record.url,
            state: record.state.as_str(),
            attempts: record.attempts,
            failures: record.failures,
            class: record.class,
            status: record.status,
            capture: record.capture.map(|c| c.to_string()),
            ended_at: record.ended_at.map(Instant::from_micros),
        }
    }
}

#[derive(Serialize)]
struct ListAnswer {
    format: u32,
    run: RunKey,
    requests: Vec<RequestAnswer>,
    more: bool,
}

fn state_of(arg: StateArg) -> RequestState {
    match arg {
        StateArg::Pending => RequestState::Pending,
        StateArg::InFlight => RequestState::InFlight,
        StateArg::Done => RequestState::Done,
        StateArg::Failed => RequestState::Failed,
        StateArg::Dead => RequestState::Dead,
    }
}

/// `lakebed queue list`
pub(crate) async fn list(args: &QueueListArgs, globals: &Globals<'_>) -> Result<Exit> {
    let key = run_key(&args.run)?;
    let (_, _, queue) = open_queue(globals, QueueOptions::default()).await?;
    let run = get_run(&queue, &key).await?;
    let mut filter = RequestFilter {
        run_id: run.id,
        state: args.state.map(state_of),
        stage: args
            .stage
            .as_deref()
            .map(str::parse::<StageName>)
            .transpose()?,
        class: args
            .class
            .as_deref()
            .map(str::parse::<ErrorClass>)
            .transpose()?,
        after: 0,
        limit: PAGE,
    };
    let mut requests: Vec<RequestAnswer> = Vec::new();
    let wanted = usize::try_from(args.limit).unwrap_or(usize::MAX);
    while requests.len() <= wanted {
        let page = queue.list_requests(&filter).await?;
        let Some(last) = page.last() else { break };
        filter.after = last.id;
        requests.extend(page.into_iter().map(RequestAnswer::from));
    }
    let more = requests.len() > wanted;
    requests.truncate(wanted);
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&ListAnswer {
            format: ANSWER_FORMAT,
            run: key,
            requests,
            more,
        })?,
        TextFormat::Text => {
            let mut table = Table::new(["state", "stage", "#attempts", "class", "method", "url"]);
            for request in &requests {
                table.row([
                    request.state,
                    &request.stage,
                    &request.attempts.to_string(),
                    request.class.as_deref().unwrap_or(""),
                    &request.method,
                    &request.url,
                ]);
            }
            globals.printer.table(&table)?;
            if more {
                globals.printer.hint(format!(
                    "there are more than {}: `--limit` shows them",
                    args.limit
                ));
            }
        }
    }
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct RetryAnswer {
    format: u32,
    run: RunKey,
    of: RunKey,
    requests: u64,
}

/// `lakebed queue retry`
pub(crate) async fn retry(args: &QueueRetryArgs, globals: &Globals<'_>) -> Result<Exit> {
    let of = run_key(&args.run)?;
    let key = RunKey {
        run: args.new_run.parse()?,
        ..of.clone()
    };
    let class = args
        .class
        .as_deref()
        .map(str::parse::<ErrorClass>)
        .transpose()?;
    let (_, settings, queue) = open_queue(globals, QueueOptions::default()).await?;
    let old = get_run(&queue, &of).await?;
    if queue.find_run(&key).await?.is_none() {
        check_name(&open_lake(&settings).await?, &queue, &key).await?;
    }
    let run = queue.retry_run(old.id, &key, class.as_ref()).await?;
    let answer = RetryAnswer {
        format: ANSWER_FORMAT,
        run: key,
        of,
        requests: run.seeds.inserted,
    };
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&answer)?,
        TextFormat::Text => globals.printer.line(format!(
            "{}: {} to try again",
            answer.run,
            count(answer.requests, "request")
        ))?,
    }
    let RunKey { source, date, run } = &answer.run;
    let work = format!("`lakebed crawl {source} --date {date} --run {run}` works on it");
    let hint = if closing_of(&old)?.is_good() {
        format!(
            "{work}; `{}` ended well, so that what came of its day may be done already: `lakebed parse {source} --date {date} --late` takes what comes late, and `lakebed run` then goes on behind it",
            old.key.run
        )
    } else {
        let flow = match old.key.run.as_str() {
            "day" => String::new(),
            run => format!(" --run {run}"),
        };
        format!(
            "{work}; `lakebed run {source} --date {date}{flow}` does so, too, and goes on with what comes after it"
        )
    };
    globals.printer.hint(hint);
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct WatchLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a EventRecord>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ProgressLine>,
}

/// The counts of a run.
#[derive(Serialize, PartialEq, Clone)]
pub(crate) struct ProgressLine {
    pub(crate) run: RunKey,
    pub(crate) enqueued: i64,
    pub(crate) left: i64,
    pub(crate) done: i64,
    pub(crate) dead: i64,
    pub(crate) failed: i64,
}

/// `lakebed queue watch`
pub(crate) async fn watch(args: &QueueWatchArgs, globals: &Globals<'_>) -> Result<Exit> {
    let (_, _, queue) = open_queue(globals, QueueOptions::default()).await?;
    let mut events = EventReader::from_now(&queue, args.last).await?;
    let mut shown: BTreeMap<i64, ProgressLine> = BTreeMap::new();
    let looks = args.seconds.map(|s| s.saturating_mul(2).saturating_add(1));
    let mut look = 0;
    while looks.is_none_or(|n| look < n) && !globals.printer.is_closed() {
        if look > 0 {
            tokio::time::sleep(WATCH_PAUSE).await;
        }
        look += 1;
        for event in events.read(&queue).await? {
            tell_event(globals, &event)?;
        }
        for run in queue
            .list_runs(None, 20)
            .await?
            .into_iter()
            .filter(|r| matches!(r.state, RunState::Open | RunState::Sealed))
        {
            let line = progress_of(&queue, &run).await?;
            if shown.get(&run.id) != Some(&line) {
                tell_progress(globals, &line)?;
                shown.insert(run.id, line);
            }
        }
    }
    Ok(Exit::Done)
}

/// Reads events as they come, each once, a little behind the newest.
pub(crate) struct EventReader {
    after: i64,
    seen: Vec<i64>,
}

impl EventReader {
    /// Begins so many events before the newest.
    pub(crate) async fn from_now(queue: &Queue, before: u32) -> Result<Self> {
        Ok(Self {
            after: (queue.newest_event().await? - i64::from(before)).max(0),
            seen: Vec::new(),
        })
    }

    /// What came since the last look.
    pub(crate) async fn read(&mut self, queue: &Queue) -> Result<Vec<EventRecord>> {
        let mut new = queue.list_events(self.after, PAGE).await?;
        new.retain(|event| !self.seen.contains(&event.id));
        self.seen.extend(new.iter().map(|event| event.id));
        let newest = self.seen.last().copied().unwrap_or(self.after);
        self.after = self.after.max(newest - WATCH_BEHIND);
        self.seen.retain(|id| *id > self.after);
        Ok(new)
    }
}

pub(crate) async fn progress_of(queue: &Queue, run: &RunRecord) -> Result<ProgressLine> {
    let lanes = queue.list_progress(run.id).await?;
    let sum = |of: fn(&LaneProgress) -> i64| lanes.iter().map(of).sum::<i64>();
    let (enqueued, done, dead) = (sum(|l| l.enqueued), sum(|l| l.done), sum(|l| l.dead));
    Ok(ProgressLine {
        run: run.key.clone(),
        enqueued,
        left: enqueued - done - dead,
        done,
        dead,
        failed: sum(|l| l.failed),
    })
}

fn tell_event(globals: &Globals<'_>, event: &EventRecord) -> Result<()> {
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&WatchLine {
            event: Some(event),
            progress: None,
        }),
        TextFormat::Text => {
            let text = format!(
                "{} {} {}",
                Instant::from_micros(event.at),
                event.kind,
                event.detail
            );
            globals.printer.line(message_text(&text))
        }
    }
}

fn tell_progress(globals: &Globals<'_>, line: &ProgressLine) -> Result<()> {
    match globals.printer.format() {
        TextFormat::Json => globals.printer.json(&WatchLine {
            event: None,
            progress: Some(line.clone()),
        }),
        TextFormat::Text => globals.printer.line(format!(
            "{} {}: {} left, {} done, {} dead, {}",
            globals.printer.now(),
            line.run,
            line.left,
            line.done,
            line.dead,
            count(line.failed.unsigned_abs(), "failed attempt")
        )),
    }
}
