//! One random history: three actors with folds of their own, put to sleep in the middle of commands,
//! calls of the store that fail, catalogs that are lost. Everything follows from the seed.

use std::collections::BTreeMap;

use lakebed::log::DatasetState;
use lakebed::store::Lake;

use crate::court::{Closely, Court};
use crate::faulty::{Call, Control, Fault, Order};
use crate::judge::{Judge, Verified};
use crate::operation::{Answer, Caller, Operation, draw, run};
use crate::random::Random;
use crate::schedule::Work;
use crate::witness::{Rows, list_stage};
use crate::world::{World, publish};

const DATASETS: [&str; 2] = ["clean/alpha", "clean/beta"];
const ACTORS: usize = 3;
/// Commands between two rests, and rests of a history.
const COMMANDS: u64 = 8;
const RESTS: u64 = 2;

/// A command that runs.
struct Running {
    user: String,
    dataset: &'static str,
    text: String,
    work: Work<(Caller, Answer)>,
}

struct Actor {
    lake: Lake,
    control: Control,
    states: BTreeMap<&'static str, DatasetState>,
    running: Option<Running>,
}

struct History {
    random: Random,
    court: Court,
    actors: Vec<Actor>,
    commands: u64,
    /// In a hundred commands, how many meet a fault.
    faults: u64,
    /// How long actors run before others do.
    patience: u64,
    /// Whether a fault left something for repair.
    is_hurt: bool,
    told: Vec<String>,
    struck: Vec<String>,
}

/// Runs the history of a seed; gives what was committed, and which calls were struck.
pub(crate) async fn live(seed: u64) -> Result<Vec<String>, String> {
    let mut history = History::new(seed).await;
    let lived = history.live().await;
    lived.map_err(|what| {
        let told = history.told.join("\n");
        format!("seed {seed}:\n{told}\n{what}")
    })?;
    let judges = history.court.judges.iter();
    let committed = judges.flat_map(Judge::story);
    Ok(committed.chain(history.struck).collect())
}

/// Half of the orders meet what writes: there are fewer such calls, and more depends on them.
fn draw_order(random: &mut Random) -> Order {
    let fault = *random.pick(&Fault::ALL);
    let writes = [Call::PutOnce, Call::Replace, Call::MoveFile, Call::Delete];
    let only = random.chance(50).then(|| *random.pick(&writes));
    let nth = 1 + random.below(if only.is_some() { 3 } else { 40 });
    Order { fault, nth, only }
}

impl History {
    async fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let world = World::new(&DATASETS).await;
        if random.chance(50) {
            let lake = world.lake().await;
            let _published = publish(&lake, DATASETS[0], 2, "one").await.unwrap();
        }
        let mut actors = Vec::new();
        for _ in 0..ACTORS {
            let (lake, control) = world.faulty_lake().await;
            actors.push(Actor {
                lake,
                control,
                states: BTreeMap::new(),
                running: None,
            });
        }
        let root = world.root();
        Self {
            faults: *random.pick(&[0, 0, 10, 25]),
            patience: *random.pick(&[1, 4, 15, 60, 400]),
            court: Court {
                judges: DATASETS.map(|d| Judge::new(d, &root)).into(),
                rows: Rows::default(),
                world,
            },
            random,
            actors,
            commands: 0,
            is_hurt: false,
            told: Vec::new(),
            struck: Vec::new(),
        }
    }

    async fn live(&mut self) -> Verified {
        for rest in 1..=RESTS {
            while self.commands < rest * COMMANDS || self.actors.iter().any(|a| a.running.is_some())
            {
                self.step(rest * COMMANDS).await?;
            }
            self.rest().await?;
        }
        Ok(())
    }

    /// One actor runs for a while.
    async fn step(&mut self, until: u64) -> Verified {
        self.court.world.tick();
        let at = usize::try_from(self.random.below(ACTORS as u64)).unwrap();
        if self.actors[at].running.is_none() {
            if self.commands >= until {
                return Ok(());
            }
            self.begin(at);
        }
        let calls = 1 + self.random.below(self.patience);
        let Some(running) = self.actors[at].running.as_mut() else {
            return Ok(());
        };
        let (user, dataset, text) = (running.user.clone(), running.dataset, running.text.clone());
        let ended = running.work.run(calls).await;
        self.court.check_moment()?;
        if let Some((caller, answer)) = ended {
            let actor = &mut self.actors[at];
            let struck = actor.control.struck();
            self.told
                .push(format!("{user} {text}: {answer:?}, struck {struck:?}"));
            self.is_hurt |= struck.is_some();
            self.struck
                .extend(struck.map(|c| format!("{c:?} by {user}")));
            actor.running = None;
            // Who failed may be another process the next time, with no fold yet.
            actor.states = match struck {
                Some(_) => BTreeMap::new(),
                None => caller.states,
            };
            let judge = self.court.judge(dataset);
            judge.end(&user, &answer, struck.is_some())?;
        }
        if self.random.chance(3) {
            self.court.check_readers().await?;
        }
        Ok(())
    }

    fn begin(&mut self, at: usize) {
        self.commands += 1;
        let random = &mut self.random;
        let dataset = DATASETS[usize::from(random.chance(20))];
        let days = &self.court.judge(dataset).model().days;
        let known: Vec<String> = days.keys().cloned().collect();
        let operation = draw(random, &known, &list_stage(&self.court.world.root()));
        let order = random.chance(self.faults).then(|| draw_order(random));
        let user = format!("command-{}", self.commands);
        self.court.begin(dataset, &user, &operation);
        let actor = &mut self.actors[at];
        actor.control.order(order);
        let request = match &operation {
            Operation::Ingest(call) => Some(self.court.world.request(dataset, call, &user)),
            _ => None,
        };
        let caller = Caller {
            user: user.clone(),
            dataset,
            lake: actor.lake.clone(),
            catalog: self.court.world.catalog.clone(),
            states: std::mem::take(&mut actor.states),
            request,
        };
        let text = format!("of actor {at} on {dataset}: {operation:?} {order:?}");
        self.told.push(format!("{user} begins {text}"));
        actor.running = Some(Running {
            user,
            dataset,
            text,
            work: Work::new(run(caller, operation)),
        });
    }

    /// Nobody runs: what is left must be right, after a repair where something failed on order.
    async fn rest(&mut self) -> Verified {
        self.told.push("rest".to_owned());
        if self.random.chance(20) {
            self.court.world.lose_catalog().await;
        }
        if std::mem::take(&mut self.is_hurt) {
            let user = format!("repair-{}", self.commands);
            self.court.repair(&user).await?;
        }
        let closely = Closely {
            deep: self.random.chance(5),
            rebuilt: self.random.chance(50),
        };
        self.court.rest(closely).await
    }
}
