//! A store that fails on order: the n-th call before it acts, after it acted (the answer is lost),
//! with a short answer, or as a process that dies there and does nothing any more.
//!
//! Calls of the store and of the files that it begins are counted alike. Where an actor of the
//! simulation calls it, every call of the actor's own task is also a place at which it may fall asleep.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use bytes::Bytes;
use lakebed::store::{
    Capabilities, ListedFile, MoveOutcome, PutOutcome, StageFile, Store, StorePath,
};
use lakebed::{Error, Result};

use crate::schedule;

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    PutOnce,
    Replace,
    Find,
    FindSize,
    ReadRange,
    List,
    MoveFile,
    Delete,
    DeleteFolder,
    CreateStageFile,
    WriteStageFile,
    FinishStageFile,
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does nothing and fails.
    Before,
    /// It acts, and its answer is lost.
    After,
    /// A read gives less than was asked for, a write takes less; other calls are unavailable.
    Short,
    /// The process dies before the call.
    DeadBefore,
    /// The process dies after it.
    DeadAfter,
}

impl Fault {
    /// Every fault.
    pub(crate) const ALL: [Self; 5] = [
        Self::Before,
        Self::After,
        Self::Short,
        Self::DeadBefore,
        Self::DeadAfter,
    ];
}

/// An order: this fault at the n-th call (from 1), of one kind where one is named.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Order {
    pub(crate) fault: Fault,
    pub(crate) nth: u64,
    pub(crate) only: Option<Call>,
}

#[derive(Debug, Default)]
struct State {
    order: Option<Order>,
    counted: u64,
    struck: Option<Call>,
    dead: bool,
}

/// Gives orders to a store and tells what became of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Control(Arc<Mutex<State>>);

/// What a call is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Act,
    ActAndFail,
    Fail,
    Short,
}

impl Control {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// From the next call on; whatever was before is forgotten, death too.
    pub(crate) fn order(&self, order: Option<Order>) {
        *self.state() = State {
            order,
            ..State::default()
        };
    }

    /// The call that was struck since the last order; `None` = none was.
    pub(crate) fn struck(&self) -> Option<Call> {
        self.state().struck
    }

    fn step(&self, call: Call) -> Step {
        let mut state = self.state();
        if state.dead {
            return Step::Fail;
        }
        let Some(order) = state.order.filter(|o| o.only.is_none_or(|c| c == call)) else {
            return Step::Act;
        };
        state.counted += 1;
        if state.counted != order.nth {
            return Step::Act;
        }
        state.struck = Some(call);
        match order.fault {
            Fault::Before => Step::Fail,
            Fault::After => Step::ActAndFail,
            Fault::Short if matches!(call, Call::ReadRange | Call::WriteStageFile) => Step::Short,
            Fault::Short => Step::Fail,
            Fault::DeadBefore => {
                state.dead = true;
                Step::Fail
            }
            Fault::DeadAfter => {
                state.dead = true;
                Step::ActAndFail
            }
        }
    }

    async fn around<T>(&self, call: Call, act: impl Future<Output = Result<T>>) -> Result<T> {
        schedule::may_sleep().await;
        match self.step(call) {
            Step::Act | Step::Short => act.await,
            Step::Fail => Err(failed(call)),
            Step::ActAndFail => {
                drop(act.await?);
                Err(failed(call))
            }
        }
    }
}

fn failed(call: Call) -> Error {
    Error::new(
        lakebed::ErrorKind::Unavailable,
        format!("{call:?} failed on order"),
    )
}

/// The store in `inner`, failing on order.
#[derive(Debug)]
pub(crate) struct FaultyStore {
    inner: Arc<dyn Store>,
    control: Control,
}

impl FaultyStore {
    pub(crate) fn new(inner: Arc<dyn Store>, control: Control) -> Self {
        Self { inner, control }
    }
}

struct FaultyStageFile {
    inner: Box<dyn StageFile>,
    control: Control,
}

impl fmt::Debug for FaultyStageFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyStageFile")
    }
}

impl Write for FaultyStageFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let lost = || io::Error::other("the write failed on order");
        match self.control.step(Call::WriteStageFile) {
            Step::Act => self.inner.write(buf),
            Step::Short => self.inner.write(&buf[..buf.len().div_ceil(2)]),
            Step::Fail => Err(lost()),
            Step::ActAndFail => {
                self.inner.write_all(buf)?;
                Err(lost())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl StageFile for FaultyStageFile {
    fn finish(self: Box<Self>) -> Result<()> {
        match self.control.step(Call::FinishStageFile) {
            Step::Act => self.inner.finish(),
            Step::Short | Step::Fail => Err(failed(Call::FinishStageFile)),
            Step::ActAndFail => {
                self.inner.finish()?;
                Err(failed(Call::FinishStageFile))
            }
        }
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn location(&self) -> String {
        self.inner.location()
    }

    fn local_path(&self, path: &StorePath) -> Option<PathBuf> {
        self.inner.local_path(path)
    }

    async fn put_once(&self, path: &StorePath, bytes: &[u8]) -> Result<PutOutcome> {
        let act = self.inner.put_once(path, bytes);
        self.control.around(Call::PutOnce, act).await
    }

    async fn replace(&self, path: &StorePath, bytes: &[u8]) -> Result<()> {
        let act = self.inner.replace(path, bytes);
        self.control.around(Call::Replace, act).await
    }

    async fn find(&self, path: &StorePath) -> Result<Option<Bytes>> {
        self.control.around(Call::Find, self.inner.find(path)).await
    }

    async fn find_size(&self, path: &StorePath) -> Result<Option<u64>> {
        let act = self.inner.find_size(path);
        self.control.around(Call::FindSize, act).await
    }

    async fn read_range(&self, path: &StorePath, offset: u64, length: usize) -> Result<Bytes> {
        schedule::may_sleep().await;
        let step = self.control.step(Call::ReadRange);
        if step == Step::Fail {
            return Err(failed(Call::ReadRange));
        }
        let bytes = self.inner.read_range(path, offset, length).await?;
        match step {
            Step::Act | Step::Fail => Ok(bytes),
            Step::Short => Ok(bytes.slice(..bytes.len() / 2)),
            Step::ActAndFail => Err(failed(Call::ReadRange)),
        }
    }

    async fn list(&self, folder: &StorePath) -> Result<Vec<ListedFile>> {
        let act = self.inner.list(folder);
        self.control.around(Call::List, act).await
    }

    async fn list_entries(&self, folder: &StorePath) -> Result<Vec<StorePath>> {
        let act = self.inner.list_entries(folder);
        self.control.around(Call::List, act).await
    }

    async fn move_file(&self, from: &StorePath, to: &StorePath) -> Result<MoveOutcome> {
        let act = self.inner.move_file(from, to);
        self.control.around(Call::MoveFile, act).await
    }

    async fn delete(&self, path: &StorePath) -> Result<()> {
        let act = self.inner.delete(path);
        self.control.around(Call::Delete, act).await
    }

    async fn delete_folder(&self, folder: &StorePath) -> Result<()> {
        let act = self.inner.delete_folder(folder);
        self.control.around(Call::DeleteFolder, act).await
    }

    fn create_stage_file(&self, path: &StorePath) -> Result<Box<dyn StageFile>> {
        let step = self.control.step(Call::CreateStageFile);
        if matches!(step, Step::Fail | Step::Short) {
            return Err(failed(Call::CreateStageFile));
        }
        let inner = self.inner.create_stage_file(path)?;
        if step == Step::ActAndFail {
            return Err(failed(Call::CreateStageFile));
        }
        Ok(Box::new(FaultyStageFile {
            inner,
            control: self.control.clone(),
        }))
    }
}
