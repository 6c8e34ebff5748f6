//! `watch`: one source and date as it goes: stages, requests, and what happens to its runs.

use std::collections::BTreeMap;
use std::time::Duration;

use lakebed::Result;
use lakebed::flow::{Graph, Judge, Judged, is_running};
use lakebed::name::RunName;
use lakebed::queue::{EventRecord, Queue, QueueOptions, RunRecord};
use lakebed::time::Instant;
use serde::Serialize;

use crate::args::{FlowWatchArgs, TextFormat};
use crate::commands::flow::graphs::{declared_of, graphs_of, root_of};
use crate::commands::queue::{EventReader, ProgressLine, progress_of};
use crate::context::{Context, Globals};
use crate::exit::Exit;
use crate::table::{count, message_text};

/// How often it looks.
const PAUSE: Duration = Duration::from_millis(500);
/// Runs of the queue that are looked through for those of the date.
const NEWEST_RUNS: u32 = 100;

/// A line of the JSON form: one of these.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum WatchLine<'a> {
    Stage {
        stage: &'a str,
        #[serde(flatten)]
        judged: &'a Judged,
    },
    Requests(&'a ProgressLine),
    Stopped {
        run: &'a str,
        reason: &'a str,
    },
    Event(&'a EventRecord),
}

/// Version of the lines.
const LINE_FORMAT: u32 = 1;

#[derive(Serialize)]
struct WatchAnswer<'a> {
    format: u32,
    #[serde(flatten)]
    line: &'a WatchLine<'a>,
}

struct Watcher<'a> {
    globals: &'a Globals<'a>,
    graph: Graph,
    judge: Judge,
    root: std::path::PathBuf,
    queue: Queue,
    events: EventReader,
    stages: BTreeMap<String, Judged>,
    runs: BTreeMap<i64, (ProgressLine, Option<String>)>,
}

/// `lakebed watch`
pub(crate) async fn watch(args: &FlowWatchArgs, globals: &Globals<'_>) -> Result<Exit> {
    let run: RunName = args.run.parse()?;
    let context = Context::open(globals).await?;
    let declared = declared_of(context.project(), std::slice::from_ref(&args.source))?;
    let mut graphs = graphs_of(&declared[0], &[args.date.parse()?], &run)?;
    let root = root_of(context.project())?;
    let queue = Queue::open(&context.settings().queue.value, QueueOptions::default()).await?;
    let mut watcher = Watcher {
        globals,
        graph: graphs.remove(0),
        judge: Judge::new(context.lake(), &root),
        root,
        events: EventReader::from_now(&queue, 0).await?,
        queue,
        stages: BTreeMap::new(),
        runs: BTreeMap::new(),
    };
    let looks = args.seconds.map(|s| s.saturating_mul(2).saturating_add(1));
    let mut look = 0;
    while looks.is_none_or(|n| look < n) && !globals.printer.is_closed() {
        if look > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        look += 1;
        watcher.look().await?;
    }
    Ok(Exit::Done)
}

impl Watcher<'_> {
    async fn look(&mut self) -> Result<()> {
        let (source, date) = (self.graph.source.clone(), self.graph.date);
        let running = is_running(&self.root, &source, date);
        for stage in &self.graph.stages {
            let judged = self.judge.judge_with_try(&source, stage, running).await?;
            let name = stage.name.as_str();
            if self.stages.get(name) != Some(&judged) {
                let why = match judged.why.is_empty() {
                    true => String::new(),
                    false => format!(": {}", judged.why),
                };
                let text = format!("{name}: {}{why}", judged.standing.as_str());
                let line = WatchLine::Stage {
                    stage: name,
                    judged: &judged,
                };
                self.tell(&line, &text)?;
                self.stages.insert(name.to_owned(), judged);
            }
        }
        let runs = self.queue.list_runs(Some(&source), NEWEST_RUNS).await?;
        let runs: Vec<RunRecord> = runs.into_iter().filter(|r| r.key.date == date).collect();
        for run in &runs {
            self.look_at_run(run).await?;
        }
        for event in self.events.read(&self.queue).await? {
            let is_ours = event
                .run_id
                .is_none_or(|id| runs.iter().any(|r| r.id == id));
            if is_ours {
                let at = Instant::from_micros(event.at);
                let text = format!("{at} {} {}", event.kind, event.detail);
                self.tell(&WatchLine::Event(&event), &text)?;
            }
        }
        Ok(())
    }

    async fn look_at_run(&mut self, run: &RunRecord) -> Result<()> {
        let line = progress_of(&self.queue, run).await?;
        let known = self.runs.get(&run.id);
        if known.map(|(known, _)| known) != Some(&line) {
            let text = format!(
                "{}: {} left, {} done, {} dead, {}",
                line.run,
                line.left,
                line.done,
                line.dead,
                count(line.failed.unsigned_abs(), "failed attempt")
            );
            self.tell(&WatchLine::Requests(&line), &text)?;
        }
        if let Some(reason) = &run.stopped
            && known.and_then(|(_, stopped)| stopped.as_ref()) != Some(reason)
        {
            let name = run.key.to_string();
            let text = format!("{name}: stopped: {reason}");
            let line = WatchLine::Stopped { run: &name, reason };
            self.tell(&line, &text)?;
        }
        self.runs.insert(run.id, (line, run.stopped.clone()));
        Ok(())
    }

    fn tell(&self, line: &WatchLine<'_>, text: &str) -> Result<()> {
        let printer = self.globals.printer;
        match printer.format() {
            TextFormat::Json => printer.json_line(&WatchAnswer {
                format: LINE_FORMAT,
                line,
            }),
            TextFormat::Text => printer.line(format!("{} {}", printer.now(), message_text(text))),
        }
    }
}
