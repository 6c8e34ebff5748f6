//! A lake that was brought to a state once and is copied for every try on it.

use std::collections::BTreeMap;

use crate::court::Court;
use crate::faulty::{Call, Control, Fault, Order};
use crate::judge::{Judge, Verified};
use crate::model::{Content, Ingest, Switch, Target};
use crate::operation::{Answer, Caller, Operation, run};
use crate::schedule::Work;
use crate::witness::Rows;
use crate::world::World;

pub(crate) const DATASET: &str = "clean/alpha";
pub(crate) const DT: &str = "2026-05-20";

/// What a date comes to: revision shown, whether sealed, rows.
pub(crate) type Outcome = BTreeMap<String, (u32, bool, Vec<i64>)>;

/// A lake with one dataset, and a judge of it.
pub(crate) struct Scene {
    pub(crate) court: Court,
    commands: u64,
}

/// A command that sleeps or runs.
pub(crate) struct Command {
    user: String,
    control: Control,
    work: Work<(Caller, Answer)>,
}

pub(crate) fn ingest(target: Target, contents: &[Content]) -> Ingest {
    Ingest {
        dt: DT.to_owned(),
        contents: contents.to_owned(),
        batch: None,
        version: None,
        target,
        quarantine: true,
        late: false,
        complete: false,
    }
}

pub(crate) fn join(contents: &[Content]) -> Operation {
    Operation::Ingest(ingest(Target::Join, contents))
}

pub(crate) fn late(contents: &[Content]) -> Operation {
    Operation::Ingest(Ingest {
        late: true,
        ..ingest(Target::Join, contents)
    })
}

pub(crate) fn correct(contents: &[Content]) -> Operation {
    Operation::Ingest(ingest(Target::Replace, contents))
}

pub(crate) fn keep(contents: &[Content]) -> Operation {
    Operation::Ingest(ingest(Target::Keep, contents))
}

pub(crate) fn show(revision: u32) -> Operation {
    Operation::Switch(Switch {
        dt: DT.to_owned(),
        revision: Some(revision),
        drop_late: true,
    })
}

pub(crate) fn seal() -> Operation {
    Operation::Seal(DT.to_owned())
}

pub(crate) fn reopen() -> Operation {
    Operation::Reopen(DT.to_owned())
}

/// The process dies before the n-th call of a kind.
pub(crate) fn dies_at(call: Call, nth: u64) -> Option<Order> {
    Some(Order {
        fault: Fault::DeadBefore,
        nth,
        only: Some(call),
    })
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let world = World::new(&[DATASET]).await;
        let judges = vec![Judge::new(DATASET, &world.root())];
        Self {
            court: Court {
                world,
                judges,
                rows: Rows::default(),
            },
            commands: 0,
        }
    }

    /// A lake after these commands, some of which may fail on order.
    pub(crate) async fn after(commands: &[(Operation, Option<Order>)]) -> Self {
        let mut scene = Self::new().await;
        for (operation, order) in commands {
            let (answer, struck) = scene.call(operation, *order).await.unwrap();
            let done = matches!(answer, Answer::Done(_)) || struck;
            assert!(done, "{operation:?} answered {answer:?}");
        }
        scene.court.world.catalog.close().await;
        scene
    }

    pub(crate) async fn copy(&self) -> Self {
        let world = self.court.world.copy().await;
        let judges = self.court.judges.iter();
        let judges = judges.map(|j| j.of_copy(&world.root())).collect();
        Self {
            court: Court {
                world,
                judges,
                rows: Rows::default(),
            },
            commands: self.commands,
        }
    }

    pub(crate) fn outcome(&mut self) -> Outcome {
        let days = &self.court.judge(DATASET).model().days;
        let of = |day: &crate::model::Day| (day.active, day.sealed.is_some(), day.rows());
        days.iter().map(|(dt, day)| (dt.clone(), of(day))).collect()
    }

    /// Begins a command of a program of its own.
    pub(crate) async fn begin(&mut self, operation: &Operation, order: Option<Order>) -> Command {
        self.commands += 1;
        let world = &self.court.world;
        world.tick();
        let user = format!("command-{}", self.commands);
        let (lake, control) = world.faulty_lake().await;
        control.order(order);
        let request = match operation {
            Operation::Ingest(call) => Some(world.request(DATASET, call, &user)),
            _ => None,
        };
        let caller = Caller {
            user: user.clone(),
            dataset: DATASET,
            lake,
            catalog: world.catalog.clone(),
            states: BTreeMap::new(),
            request,
        };
        self.court.begin(DATASET, &user, operation);
        Command {
            user,
            control,
            work: Work::new(run(caller, operation.clone())),
        }
    }

    /// Lets a command run for a number of calls; `Some` = it has answered, and whether it was struck.
    pub(crate) async fn run(
        &mut self,
        command: &mut Command,
        calls: u64,
    ) -> Result<Option<(Answer, bool)>, String> {
        let ended = command.work.run(calls).await;
        self.court.check_moment()?;
        let Some((_, answer)) = ended else {
            return Ok(None);
        };
        let struck = command.control.struck().is_some();
        let judge = self.court.judge(DATASET);
        judge.end(&command.user, &answer, struck)?;
        Ok(Some((answer, struck)))
    }

    /// A whole command.
    pub(crate) async fn call(
        &mut self,
        operation: &Operation,
        order: Option<Order>,
    ) -> Result<(Answer, bool), String> {
        let mut command = self.begin(operation, order).await;
        loop {
            if let Some(answer) = self.run(&mut command, 1).await? {
                return Ok(answer);
            }
        }
    }

    /// A whole command that must do what it is asked for, or find it done.
    pub(crate) async fn must(&mut self, operation: &Operation) -> Verified {
        match self.call(operation, None).await?.0 {
            Answer::Done(_) | Answer::AlreadySo => Ok(()),
            other => Err(format!("{operation:?} answered {other:?}")),
        }
    }
}
