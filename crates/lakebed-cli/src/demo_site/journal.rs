//! What was asked for, as the server saw it: a line per request and numbers per host.
//!
//! A crawler's politeness is judged here, from the other side. A line is written when the exchange
//! ends, also when the client went away or the connection was cut.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant as Monotonic;

use lakebed::time::Clock;
use lakebed::{Error, Result};
use serde::Serialize;

use crate::demo_site::fault::PageKind;

/// Most hosts with numbers of their own; later ones are counted under this name.
const MAX_HOSTS: usize = 10_000;
const OTHER_HOSTS: &str = "(other hosts)";

/// The numbers of a host, or of all.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct HostStats {
    /// Requests that began.
    pub(crate) requests: u64,
    /// Requests whose answer has not ended.
    pub(crate) in_flight: u32,
    /// The most at one moment.
    pub(crate) max_in_flight: u32,
    /// Bytes of bodies that were sent.
    pub(crate) bytes: u64,
    /// Shortest time between the beginnings of two requests; absent before the second.
    pub(crate) min_gap_us: Option<u64>,
    /// Requests that came before the time that `Retry-After` had named.
    pub(crate) too_early: u64,
    /// Answers by status; `0` = the exchange ended without one.
    pub(crate) by_status: BTreeMap<u16, u64>,
    /// Requests by kind of page.
    pub(crate) by_kind: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    last_start_us: Option<u64>,
    #[serde(skip)]
    welcome_from_us: u64,
}

impl HostStats {
    fn begin(&mut self, kind: PageKind, at_us: u64) {
        self.requests += 1;
        self.in_flight += 1;
        self.max_in_flight = self.max_in_flight.max(self.in_flight);
        *self.by_kind.entry(kind.name()).or_default() += 1;
        if let Some(last) = self.last_start_us {
            let gap = at_us.saturating_sub(last);
            self.min_gap_us = Some(self.min_gap_us.map_or(gap, |g| g.min(gap)));
        }
        self.last_start_us = Some(at_us);
        if at_us < self.welcome_from_us {
            self.too_early += 1;
        }
    }

    fn end(&mut self, status: u16, bytes: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.bytes += bytes;
        *self.by_status.entry(status).or_default() += 1;
    }
}

#[derive(Debug, Default)]
struct Books {
    total: HostStats,
    hosts: BTreeMap<String, HostStats>,
    connections: u64,
    log: Option<File>,
    log_error: Option<std::io::Error>,
}

/// All numbers.
#[derive(Debug, Serialize)]
pub(crate) struct SiteStats {
    /// Version of this shape.
    pub(crate) format: u32,
    /// Connections that were opened.
    pub(crate) connections: u64,
    /// Over all hosts.
    pub(crate) total: HostStats,
    /// By the header `Host`, without the port.
    pub(crate) hosts: BTreeMap<String, HostStats>,
}

/// The journal of a server.
#[derive(Debug)]
pub(crate) struct Journal {
    started: Monotonic,
    clock: Clock,
    books: Mutex<Books>,
}

impl Journal {
    /// A journal; its lines go to the end of `log`.
    pub(crate) fn open(log: Option<&Path>) -> Result<Self> {
        let open = |path: &Path| {
            let file = File::options().create(true).append(true).open(path);
            file.map_err(|e| Error::io("open the log", path.display(), e))
        };
        let books = Books {
            log: log.map(open).transpose()?,
            ..Books::default()
        };
        Ok(Self {
            started: Monotonic::now(),
            clock: Clock::System,
            books: Mutex::new(books),
        })
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Counts a connection; answers its number, from 1.
    pub(crate) fn connect(&self) -> u64 {
        let mut books = self.books();
        books.connections += 1;
        books.connections
    }

    /// All numbers.
    pub(crate) fn stats(&self) -> SiteStats {
        let books = self.books();
        SiteStats {
            format: 1,
            connections: books.connections,
            total: books.total.clone(),
            hosts: books.hosts.clone(),
        }
    }

    /// Forgets all numbers but those of requests that have not ended.
    pub(crate) fn reset(&self) {
        let mut books = self.books();
        let fresh = |stats: &HostStats| HostStats {
            in_flight: stats.in_flight,
            max_in_flight: stats.in_flight,
            ..HostStats::default()
        };
        books.total = fresh(&books.total);
        books.hosts.retain(|_, stats| stats.in_flight > 0);
        for stats in books.hosts.values_mut() {
            *stats = fresh(stats);
        }
    }

    /// The error that stopped the log, if one did.
    pub(crate) fn take_log_error(&self) -> Option<std::io::Error> {
        self.books().log_error.take()
    }

    /// Begins an exchange; it ends when the value is dropped.
    pub(crate) fn begin(self: &Arc<Self>, asked: Asked) -> Exchange {
        let start_us = self.micros();
        let at = self.clock.now();
        let mut books = self.books();
        let name = host_name(&asked.host).to_owned();
        let known = books.hosts.contains_key(&name) || books.hosts.len() < MAX_HOSTS;
        let host = if known { name } else { OTHER_HOSTS.to_owned() };
        let (mut in_flight, mut host_in_flight) = (0, 0);
        if counts(asked.kind) {
            books.total.begin(asked.kind, start_us);
            in_flight = books.total.in_flight;
            let stats = books.hosts.entry(host.clone()).or_default();
            stats.begin(asked.kind, start_us);
            host_in_flight = stats.in_flight;
        }
        drop(books);
        Exchange {
            journal: self.clone(),
            asked,
            host,
            at: at.to_string(),
            start_us,
            in_flight,
            host_in_flight,
            status: 0,
            bytes: 0,
        }
    }
}

/// Whoever steers the site is no visitor: such requests are neither counted nor logged.
fn counts(kind: PageKind) -> bool {
    kind != PageKind::Control
}

/// The name of a host without the port.
fn host_name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        Some(_) | None => host,
    }
}

/// What a request asks for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The number of the connection.
    pub(crate) connection: u64,
    /// The header `Host`.
    pub(crate) host: String,
    /// The method.
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    /// The kind of page.
    pub(crate) kind: PageKind,
}

/// One line of the log.
#[derive(Debug, Serialize)]
struct Line<'a> {
    at: &'a str,
    start_us: u64,
    end_us: u64,
    conn: u64,
    host: &'a str,
    method: &'a str,
    path: &'a str,
    kind: &'static str,
    status: u16,
    bytes: u64,
    in_flight: u32,
    host_in_flight: u32,
}

/// A request and its answer, from the first byte to the last.
#[derive(Debug)]
pub(crate) struct Exchange {
    journal: Arc<Journal>,
    asked: Asked,
    host: String,
    at: String,
    start_us: u64,
    in_flight: u32,
    host_in_flight: u32,
    status: u16,
    bytes: u64,
}

impl Exchange {
    /// The status of the answer that begins.
    pub(crate) fn set_status(&mut self, status: u16) {
        self.status = status;
    }

    /// Bytes of the body that were handed on.
    pub(crate) fn add_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// The host shall wait so long before it asks again.
    pub(crate) fn ask_to_wait(&self, wait: std::time::Duration) {
        let until = self
            .journal
            .micros()
            .saturating_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX));
        if let Some(stats) = self.journal.books().hosts.get_mut(&self.host) {
            stats.welcome_from_us = stats.welcome_from_us.max(until);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !counts(self.asked.kind) {
            return;
        }
        let line = Line {
            at: &self.at,
            start_us: self.start_us,
            end_us: self.journal.micros(),
            conn: self.asked.connection,
            host: &self.asked.host,
            method: &self.asked.method,
            path: &self.asked.path,
            kind: self.asked.kind.name(),
            status: self.status,
            bytes: self.bytes,
            in_flight: self.in_flight,
            host_in_flight: self.host_in_flight,
        };
        let mut books = self.journal.books();
        books.total.end(self.status, self.bytes);
        if let Some(stats) = books.hosts.get_mut(&self.host) {
            stats.end(self.status, self.bytes);
        }
        let Some(log) = &mut books.log else { return };
        let written = serde_json::to_vec(&line)
            .map_err(std::io::Error::other)
            .and_then(|mut bytes| {
                bytes.push(b'\n');
                log.write_all(&bytes)
            });
        if let Err(error) = written {
            books.log = None;
            books.log_error = Some(error);
        }
    }
}
