//! Every write with a fault at every call of the store: before it acts, after it acted (the answer is
//! lost), with a short answer, and as the end of the process. Then, over a sound store: what was
//! acknowledged is there once, nothing half done is visible, a repair leaves a clean audit, and the same
//! command again succeeds and gives what it gives without a fault. Attacked are LOG-6, LOG-7, LOG-9, CMP-2,
//! FIL-1, STG-1, REJ-1, REG-1, CAT-1, ING-5 and ING-8.

use crate::court::Closely;
use crate::faulty::{Call, Fault, Order};
use crate::judge::Verified;
use crate::model::{Ingest, Target};
use crate::operation::Operation;
use crate::scene::{
    Outcome, Scene, correct, dies_at, ingest, join, keep, late, reopen, seal, show,
};
use crate::witness::list_stage;

/// After death nothing is called any more, so dying after a call is dying before the next.
const FAULTS: [Fault; 4] = [Fault::Before, Fault::After, Fault::Short, Fault::DeadBefore];
/// More calls than any command makes.
const MAX_CALLS: u64 = 500;
/// How often the catalog is compared with one made anew.
const REBUILD_EVERY: u64 = 8;

/// What is attacked: a command on a lake after others.
struct Attack {
    scene: Scene,
    operation: Operation,
    loses_catalog: bool,
}

impl Attack {
    async fn on(before: &[(Operation, Option<Order>)], operation: Operation) -> Self {
        Self {
            scene: Scene::after(before).await,
            operation,
            loses_catalog: false,
        }
    }

    async fn copy(&self) -> Scene {
        let mut scene = self.scene.copy().await;
        if self.loses_catalog {
            scene.court.world.lose_catalog().await;
        }
        scene
    }

    /// Without a fault.
    async fn expected(&self) -> Outcome {
        let mut scene = self.copy().await;
        scene.must(&self.operation).await.unwrap();
        scene.outcome()
    }

    /// With one; `false` = the command makes fewer calls.
    async fn strike(&self, order: Order, expected: &Outcome) -> Result<bool, String> {
        let mut scene = self.copy().await;
        let (_, struck) = scene.call(&self.operation, Some(order)).await?;
        if !struck {
            return Ok(false);
        }
        scene.court.repair("repair").await?;
        let closely = Closely::default();
        scene.court.rest(closely).await?;
        scene.must(&self.operation).await?;
        let rebuilt = order.nth.is_multiple_of(REBUILD_EVERY);
        scene.court.rest(Closely { rebuilt, ..closely }).await?;
        let outcome = scene.outcome();
        if outcome != *expected {
            return Err(format!("gives {outcome:?}, not {expected:?}"));
        }
        Ok(true)
    }

    async fn everywhere(&self) {
        let expected = self.expected().await;
        let mut calls = 0;
        for fault in FAULTS {
            for nth in 1..MAX_CALLS {
                let only = None;
                let order = Order { fault, nth, only };
                match self.strike(order, &expected).await {
                    Ok(true) => calls += 1,
                    Ok(false) => break,
                    Err(what) => panic!("{:?} with {order:?}: {what}", self.operation),
                }
            }
        }
        assert!(calls >= 8, "only {calls} calls of the store were struck");
    }
}

fn sound(operations: &[Operation]) -> Vec<(Operation, Option<Order>)> {
    operations.iter().map(|o| (o.clone(), None)).collect()
}

async fn attack(before: &[Operation], operation: Operation) {
    Attack::on(&sound(before), operation)
        .await
        .everywhere()
        .await;
}

#[tokio::test]
async fn an_ingest_survives_every_fault() {
    attack(&[join(&[1])], join(&[2, 3])).await;
}

#[tokio::test]
async fn the_first_ingest_survives_every_fault() {
    let first = Ingest {
        complete: true,
        ..ingest(Target::Join, &[3])
    };
    attack(&[], Operation::Ingest(first)).await;
}

#[tokio::test]
async fn a_late_ingest_survives_every_fault() {
    attack(&[join(&[1]), seal()], late(&[2])).await;
}

#[tokio::test]
async fn a_correction_survives_every_fault() {
    attack(&[join(&[1]), join(&[4])], correct(&[2, 3])).await;
}

#[tokio::test]
async fn a_correction_of_a_sealed_date_survives_every_fault() {
    attack(&[join(&[1]), seal()], correct(&[2])).await;
}

#[tokio::test]
async fn a_kept_correction_survives_every_fault() {
    attack(&[join(&[1])], keep(&[2])).await;
}

#[tokio::test]
async fn a_switch_survives_every_fault() {
    attack(&[join(&[1]), join(&[4]), keep(&[2])], show(1)).await;
}

#[tokio::test]
async fn a_rollback_of_a_sealed_date_survives_every_fault() {
    attack(&[join(&[1]), seal(), correct(&[2])], show(0)).await;
}

#[tokio::test]
async fn a_seal_survives_every_fault() {
    attack(&[join(&[1])], seal()).await;
}

#[tokio::test]
async fn a_reopening_survives_every_fault() {
    attack(&[join(&[1]), seal()], reopen()).await;
}

#[tokio::test]
async fn a_publication_survives_every_fault() {
    attack(&[join(&[1])], Operation::Publish(2, "one".to_owned())).await;
}

/// A lake that a killed ingest and a killed switch have left.
fn wreck() -> Vec<(Operation, Option<Order>)> {
    let mut before = sound(&[join(&[1]), correct(&[2]), seal()]);
    before.push((late(&[5]), dies_at(Call::PutOnce, 1)));
    before.push((show(0), dies_at(Call::MoveFile, 1)));
    before
}

#[tokio::test]
async fn an_abandonment_survives_every_fault() {
    let mut attack = Attack::on(&wreck(), Operation::Open).await;
    let attempts = list_stage(&attack.scene.court.world.root());
    attack.operation = Operation::Abandon(attempts[0].clone());
    attack.everywhere().await;
}

#[tokio::test]
async fn a_sync_survives_every_fault() {
    let before = sound(&[join(&[1]), keep(&[2]), show(1), join(&[4])]);
    let mut attack = Attack::on(&before, Operation::Sync).await;
    attack.loses_catalog = true;
    attack.everywhere().await;
}

#[tokio::test]
async fn an_opening_that_finishes_moves_survives_every_fault() {
    Attack::on(&wreck(), Operation::Open)
        .await
        .everywhere()
        .await;
}

#[tokio::test]
async fn a_repair_survives_every_fault() {
    Attack::on(&wreck(), Operation::Repair)
        .await
        .everywhere()
        .await;
}

/// CMP-2: a record that could not be put leaves a sealed date with its `_SUCCESS`, without any repair.
#[tokio::test]
async fn a_write_that_fails_leaves_a_sealed_date_as_it_was() -> Result<(), String> {
    let before = sound(&[join(&[1]), keep(&[2]), seal()]);
    let scene = Scene::after(&before).await;
    for operation in [show(1), reopen(), late(&[4]), correct(&[4])] {
        let mut scene = scene.copy().await;
        let fails = Order {
            fault: Fault::Before,
            nth: 1,
            only: Some(Call::PutOnce),
        };
        let (answer, struck) = scene.call(&operation, Some(fails)).await?;
        assert!(struck, "{operation:?}: {answer:?}");
        scene.court.rest(Closely::default()).await?;
    }
    Ok(())
}

/// A switch whose files all moved, but that nobody has ended, is found by the audit and ended by a repair.
#[tokio::test]
async fn a_switch_that_is_not_ended_is_found() -> Result<(), String> {
    let mut before = sound(&[join(&[1]), keep(&[2]), seal()]);
    before.push((show(1), dies_at(Call::PutOnce, 2)));
    let mut scene = Scene::after(&before).await.copy().await;
    scene.must(&Operation::Sync).await?;
    scene.court.rest(Closely::default()).await.unwrap_err();
    scene.court.repair("repair").await?;
    scene.court.rest(Closely::default()).await
}

/// The orders themselves: what was struck has acted or not, and a dead process does nothing more.
#[tokio::test]
async fn orders_do_what_they_say() -> Result<(), String> {
    let scene = Scene::after(&[]).await;
    let mut seen = Vec::new();
    for fault in Fault::ALL {
        let mut scene = scene.copy().await;
        let only = Some(Call::PutOnce);
        let order = Order {
            fault,
            nth: 1,
            only,
        };
        let (answer, struck) = scene.call(&join(&[1]), Some(order)).await?;
        let records = scene.court.judges[0].model().number;
        let left = list_stage(&scene.court.world.root()).len();
        seen.push((
            struck,
            format!("{answer:?}").starts_with("Failed"),
            records,
            left,
        ));
    }
    let failed = |records, left| (true, true, records, left);
    assert_eq!(
        seen,
        [
            failed(0, 0),
            failed(1, 1),
            failed(0, 0),
            failed(0, 1),
            failed(1, 1)
        ]
    );
    Ok(())
}

/// A check that cannot fail is a defect: a lost file, a stranger and a stale `_SUCCESS` are found.
#[tokio::test]
async fn the_judges_find_what_is_wrong() {
    let scene = Scene::after(&sound(&[join(&[1]), correct(&[2])])).await;
    let file = |scene: &Scene| {
        let root = scene.court.world.root();
        let folder = root.join("clean/alpha/dt=2026-05-20/schema_version=1");
        let mut files = std::fs::read_dir(&folder).unwrap();
        (files.next().unwrap().unwrap().path(), folder)
    };
    type Harm = fn(&std::path::Path, &std::path::Path);
    let harms: [Harm; 3] = [
        |file, _| std::fs::remove_file(file).unwrap(),
        |file, folder| std::fs::hard_link(file, folder.join("part-1-a.parquet")).unwrap(),
        |_, folder| std::fs::write(folder.join("_SUCCESS"), "{\"log_position\": 1}").unwrap(),
    ];
    for harm in harms {
        let mut scene = scene.copy().await;
        let sound: Verified = scene.court.rest(Closely::default()).await;
        sound.unwrap();
        let (file, folder) = file(&scene);
        harm(&file, &folder);
        let judge = &scene.court.judges[0];
        judge
            .check_folder_at_rest(&mut scene.court.rows)
            .unwrap_err();
        scene.court.rest(Closely::default()).await.unwrap_err();
    }
}
