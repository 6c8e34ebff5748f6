//! One statement of a prompt: a task of its own, which Ctrl-C stops.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lakebed::{Error, Result};
use lakebed_query::{QueryEngine, QueryMeter, QueryStats};
use tokio::sync::Notify;

use crate::args::SqlFormat;
use crate::commands::write_rows;

/// How long the prompt waits for a stopped query; it writes nothing more in any case.
const GRACE: Duration = Duration::from_secs(2);

/// Ctrl-C while no line is edited.
#[derive(Debug, Clone)]
pub(super) struct Interrupts(Arc<Notify>);

impl Interrupts {
    /// Takes the signal over for the rest of the process.
    pub(super) fn listen() -> Result<Self> {
        let notify = Arc::new(Notify::new());
        let heard = Arc::clone(&notify);
        ctrlc::set_handler(move || heard.notify_waiters())
            .map_err(|e| Error::internal("listen for Ctrl-C").caused_by(e))?;
        Ok(Self(notify))
    }
}

/// What became of a statement.
#[derive(Debug)]
pub(super) enum Answer {
    /// Its rows are written.
    Done(Box<Written>),
    /// Ctrl-C.
    Stopped,
    /// Who read the rows has gone.
    Gone,
}

/// Rows that are written.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) rows: u64,
    pub(super) warnings: Vec<String>,
    pub(super) stats: QueryStats,
    pub(super) meter: QueryMeter,
}

/// Runs a statement, its rows to stdout, until it ends or is stopped.
pub(super) async fn run_statement(
    engine: &Arc<QueryEngine>,
    text: &str,
    format: SqlFormat,
    interrupts: &Interrupts,
) -> Result<Answer> {
    let interrupted = interrupts.0.notified();
    let (stopped, gone) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let out = Rows {
        stopped: Arc::clone(&stopped),
        gone: Arc::clone(&gone),
    };
    // A task of its own: what does not wait for anything cannot keep Ctrl-C from being heard.
    let mut task = tokio::spawn(answer(Arc::clone(engine), text.to_owned(), format, out));
    tokio::select! {
        done = &mut task => match done {
            Ok(Err(_)) if gone.load(Ordering::SeqCst) => Ok(Answer::Gone),
            Ok(written) => written.map(|w| Answer::Done(Box::new(w))),
            Err(e) => Err(Error::internal("a fault of this program; its text stands above").caused_by(e)),
        },
        () = interrupted => {
            stopped.store(true, Ordering::SeqCst);
            task.abort();
            // Whether it ended or still computes, it has no more to say.
            drop(tokio::time::timeout(GRACE, task).await);
            Ok(Answer::Stopped)
        }
    }
}

async fn answer(
    engine: Arc<QueryEngine>,
    text: String,
    format: SqlFormat,
    mut out: Rows,
) -> Result<Written> {
    let result = engine.sql(&text).await?;
    let (stats, meter) = (result.stats().clone(), result.meter());
    let rows = write_rows(result, format, &mut out).await?;
    // The next statement may be hours away.
    let counted = engine.count_reads().await;
    let uncounted = counted
        .err()
        .map(|e| format!("reads were not counted: {e}"));
    Ok(Written {
        rows,
        warnings: meter.warnings().into_iter().chain(uncounted).collect(),
        stats,
        meter,
    })
}

/// Stdout until the statement is stopped, or nobody reads it any more.
struct Rows {
    stopped: Arc<AtomicBool>,
    gone: Arc<AtomicBool>,
}

impl Rows {
    fn check(&self) -> io::Result<()> {
        match self.stopped.load(Ordering::SeqCst) {
            true => Err(io::Error::other("the query was stopped")),
            false => Ok(()),
        }
    }

    fn look<T>(&self, done: io::Result<T>) -> io::Result<T> {
        if done
            .as_ref()
            .is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
        {
            self.gone.store(true, Ordering::SeqCst);
        }
        done
    }
}

impl Write for Rows {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check()?;
        // In pieces, so that a stop is seen between them.
        let piece = &bytes[..bytes.len().min(4096)];
        let written = io::stdout().lock().write(piece);
        self.look(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        let flushed = io::stdout().lock().flush();
        self.look(flushed)
    }
}
