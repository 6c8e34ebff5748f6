//! The pages of packs through the rules: one thread reads, many parse, the caller takes them in order.
//!
//! ```text
//! packs -> reader (one thread, in order) -> pages -> workers -> parsed pages -> the caller, in order
//!                      at most so many pages between them
//! ```

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::flow::packs::SourcePack;
use crate::name::CaptureId;
use crate::pack::Capture;
use crate::parse::{CommandParser, PageInput, Rules, parse_page, whole_page};
use crate::spec::{ParsedPage, RunKey};

/// Pages on their way, for each worker.
const PAGES_PER_WORKER: usize = 4;

/// What pages are parsed by.
pub(in crate::flow) struct Parsing<'a> {
    pub(in crate::flow) rules: &'a Rules,
    /// Rules that are tried beside them.
    pub(in crate::flow) beside: Option<&'a Rules>,
    /// The source's folder: commands run there.
    pub(in crate::flow) folder: &'a Path,
    /// Workers; `None` = the machine's cores.
    pub(in crate::flow) threads: Option<usize>,
}

/// What comes of packs, in their order.
pub(in crate::flow) enum Came {
    /// The next page.
    Page(Box<Done>),
    /// No more pages of this pack: what follows is of the next one.
    End,
}

/// A page on its way to a worker.
struct Job {
    number: u64,
    pack: usize,
    capture: Capture,
}

/// A parsed page.
pub(in crate::flow) struct Done {
    pub(in crate::flow) run: RunKey,
    pub(in crate::flow) bytes: u64,
    pub(in crate::flow) parsed: ParsedPage,
    /// By the rules that are tried beside.
    pub(in crate::flow) beside: Option<ParsedPage>,
}

/// What is sent to the caller, by its number.
struct Numbered {
    number: u64,
    came: Came,
}

/// Bytes of all bodies that will be parsed.
pub(in crate::flow) fn bytes_of(packs: &[&SourcePack]) -> Result<u64> {
    let mut bytes = 0;
    for pack in packs {
        for row in pack.open()?.index()?.rows()? {
            let row = row?;
            if row.is_named && !row.is_erased {
                bytes += row.body_len;
            }
        }
    }
    Ok(bytes)
}

/// Every page of the packs through the rules, in order.
pub(in crate::flow) fn parse_packs(
    packs: &[&SourcePack],
    parsing: &Parsing<'_>,
    mut take: impl FnMut(Came) -> Result<()>,
) -> Result<()> {
    let threads = parsing
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from))
        .max(1);
    let window = threads * PAGES_PER_WORKER;
    let (to_workers, jobs) = sync_channel::<Job>(window);
    let jobs = Mutex::new(jobs);
    let (to_caller, came) = sync_channel::<Result<Numbered>>(window);
    // Who reads waits for a place here, so a slow page holds back those behind it.
    let (give_back, places) = sync_channel::<()>(window);
    for _ in 0..window {
        give_back
            .send(())
            .map_err(|_| Error::internal("no place for a page"))?;
    }
    std::thread::scope(|scope| {
        let ends = to_caller.clone();
        scope.spawn(move || {
            if let Err(error) = read_packs(packs, (&to_workers, &ends), &places) {
                // Where the caller is gone, it has an error of its own.
                drop(ends.send(Err(error)));
            }
        });
        for _ in 0..threads {
            let (jobs, to_caller) = (&jobs, to_caller.clone());
            scope.spawn(move || work(jobs, &to_caller, (packs, parsing)));
        }
        drop(to_caller);
        // Both go when this ends, well or not: the threads end with them.
        let (came, give_back) = (came, give_back);
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        for one in came {
            let one = one?;
            waiting.insert(one.number, one.came);
            while let Some(one) = waiting.remove(&next) {
                take(one)?;
                next += 1;
                // The reader may have ended.
                let _has_ended = give_back.try_send(()).is_err();
            }
        }
        Ok(())
    })
}

/// Hands out the captures that the terminals name, and tells where a pack ends.
fn read_packs(
    packs: &[&SourcePack],
    (jobs, ends): (&SyncSender<Job>, &SyncSender<Result<Numbered>>),
    places: &Receiver<()>,
) -> Result<()> {
    let mut number = 0;
    for (n, pack) in packs.iter().enumerate() {
        let reader = pack.open()?;
        let mut named: HashSet<CaptureId> = HashSet::new();
        for row in reader.index()?.rows()? {
            let row = row?;
            if row.is_named && !row.is_erased {
                named.insert(row.capture_id);
            }
        }
        for capture in reader.replay() {
            let capture = capture?;
            if !named.remove(&capture.capture.capture_id) {
                continue;
            }
            let job = Job {
                number,
                pack: n,
                capture,
            };
            if places.recv().is_err() || jobs.send(job).is_err() {
                return Ok(());
            }
            number += 1;
        }
        if let Some(lost) = named.iter().min() {
            return Err(Error::corrupt(format!(
                "replay a pack: {} captures of its index are not in it",
                named.len()
            ))
            .with("file", pack.path.display())
            .with("capture", lost)
            .hint(
                "`lakebed audit --deep` tells which file differs from the log; nothing was stored",
            ));
        }
        let came = Came::End;
        if places.recv().is_err() || ends.send(Ok(Numbered { number, came })).is_err() {
            return Ok(());
        }
        number += 1;
    }
    Ok(())
}

fn work(
    jobs: &Mutex<Receiver<Job>>,
    to: &SyncSender<Result<Numbered>>,
    (packs, parsing): (&[&SourcePack], &Parsing<'_>),
) {
    let mut parser = Parser::new(parsing.rules, parsing.folder);
    let mut beside = parsing.beside.map(|r| Parser::new(r, parsing.folder));
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else {
            return;
        };
        let input = PageInput {
            run: &packs[job.pack].run,
            capture: &job.capture.capture,
            body: &job.capture.body,
        };
        let parsed = parser.parse(&input).and_then(|parsed| {
            let beside = beside.as_mut().map(|parser| parser.parse(&input));
            Ok((parsed, beside.transpose()?))
        });
        let done = parsed.map(|(parsed, beside)| Numbered {
            number: job.number,
            came: Came::Page(Box::new(Done {
                run: input.run.clone(),
                bytes: input.body.len() as u64,
                parsed,
                beside,
            })),
        });
        if to.send(done).is_err() {
            return;
        }
    }
}

/// Rules with the programs that they started.
struct Parser<'a> {
    rules: &'a Rules,
    folder: &'a Path,
    commands: BTreeMap<String, CommandParser>,
}

impl<'a> Parser<'a> {
    fn new(rules: &'a Rules, folder: &'a Path) -> Self {
        Self {
            rules,
            folder,
            commands: BTreeMap::new(),
        }
    }

    fn parse(&mut self, input: &PageInput<'_>) -> Result<ParsedPage> {
        match self.rules.command_of(input.capture) {
            None => Ok(guarded(self.rules, input)),
            Some((name, config)) => self
                .commands
                .entry(name.to_owned())
                .or_insert_with(|| CommandParser::new(config, self.folder))
                .parse(name, input),
        }
    }
}

/// The page by the rules; a fault of this program is a reject of the page, not the end of the call.
fn guarded(rules: &Rules, input: &PageInput<'_>) -> ParsedPage {
    let parse = std::panic::AssertUnwindSafe(|| parse_page(rules, input));
    std::panic::catch_unwind(parse).unwrap_or_else(|_| {
        let reject = whole_page("internal", "a fault of this program".to_owned());
        ParsedPage::rejected(input.capture, reject)
    })
}
