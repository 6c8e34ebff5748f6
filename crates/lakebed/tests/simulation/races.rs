//! A command that sleeps at each of its calls of the store in turn, while others run from beginning to
//! end. When it wakes and ends, all is as it must be, without any repair: what it did by an old fold it
//! has mended itself. Attacked are LOG-9, CMP-1, CMP-2, FIL-1, FIL-4, ING-6, CAT-2 and CAT-6.

use crate::court::Closely;
use crate::faulty::{Call, Order};
use crate::judge::Verified;
use crate::model::{Ingest, Target};
use crate::operation::Operation;
use crate::scene::{Scene, correct, dies_at, ingest, join, keep, late, reopen, seal, show};

type Before = Vec<(Operation, Option<Order>)>;

fn sound(operations: &[Operation]) -> Before {
    operations.iter().map(|o| (o.clone(), None)).collect()
}

/// One place to sleep at; `false` = the command makes fewer calls.
async fn sleep_once(
    scene: &Scene,
    sleeper: &Operation,
    others: &[Operation],
    calls: u64,
) -> Result<bool, String> {
    let mut scene = scene.copy().await;
    let mut command = scene.begin(sleeper, None).await;
    if scene.run(&mut command, calls).await?.is_some() {
        return Ok(false);
    }
    for other in others {
        scene.call(other, None).await?;
    }
    while scene.run(&mut command, 1).await?.is_none() {}
    scene.court.rest(Closely::default()).await?;
    Ok(true)
}

async fn sleep_everywhere(before: Before, sleeper: Operation, others: &[Operation]) {
    let scene = Scene::after(&before).await;
    let mut calls = 0;
    loop {
        calls += 1;
        match sleep_once(&scene, &sleeper, others, calls).await {
            Ok(true) => {}
            Ok(false) => break,
            Err(what) => panic!("{sleeper:?} asleep at call {calls} over {others:?}: {what}"),
        }
    }
    assert!(calls >= 5, "the command made {calls} calls");
}

/// A revision was shown, hidden and shown again while a mover slept that had begun to hide it.
#[tokio::test]
async fn a_mover_that_slept_over_a_rollback_hides_nothing() {
    let before = sound(&[join(&[1]), join(&[4]), keep(&[2])]);
    sleep_everywhere(before, show(1), &[Operation::Open, show(0)]).await;
}

#[tokio::test]
async fn a_mover_that_slept_over_two_switches_finds_its_files() {
    let before = sound(&[join(&[1]), keep(&[2]), keep(&[5])]);
    sleep_everywhere(before, show(1), &[show(2), show(0), show(2)]).await;
}

#[tokio::test]
async fn a_correction_that_slept_over_a_rollback_is_whole() {
    let before = sound(&[join(&[1]), join(&[4])]);
    sleep_everywhere(before, correct(&[2, 3]), &[show(1), show(0)]).await;
}

/// A repair of a switch that died, asleep while others finish it and take it back.
#[tokio::test]
async fn a_repair_that_slept_over_switches_moves_nothing_wrong() {
    let mut before = sound(&[join(&[1]), correct(&[2]), seal()]);
    before.push((late(&[5]), dies_at(Call::PutOnce, 1)));
    before.push((show(0), dies_at(Call::MoveFile, 1)));
    sleep_everywhere(
        before,
        Operation::Repair,
        &[Operation::Open, show(1), late(&[4])],
    )
    .await;
}

/// An audit while others write finds nothing that a person would have to decide.
#[tokio::test]
async fn an_audit_asleep_raises_no_false_alarm() {
    let before = sound(&[join(&[1]), seal()]);
    for others in [
        vec![late(&[3])],
        vec![correct(&[3]), show(0), seal()],
        vec![keep(&[2]), show(1), late(&[7])],
    ] {
        sleep_everywhere(before.clone(), Operation::Repair, &others).await;
    }
    let first = sound(&[]);
    sleep_everywhere(first, Operation::Repair, &[join(&[3]), correct(&[2])]).await;
}

/// The record that ends a switch meets another record of the date: the switch is ended all the same.
#[tokio::test]
async fn a_switch_is_ended_over_a_reopening() {
    let before = sound(&[join(&[1]), keep(&[2]), seal()]);
    sleep_everywhere(before, show(1), &[reopen()]).await;
}

/// `_SUCCESS` comes and goes with the seal, whoever writes it late.
#[tokio::test]
async fn a_seal_asleep_leaves_no_old_success() {
    for others in [
        vec![seal(), reopen()],
        vec![join(&[2])],
        vec![seal(), late(&[2])],
        vec![correct(&[2])],
    ] {
        sleep_everywhere(sound(&[join(&[1])]), seal(), &others).await;
    }
}

#[tokio::test]
async fn a_late_ingest_asleep_leaves_no_success() {
    for others in [vec![seal()], vec![late(&[5]), seal()], vec![reopen()]] {
        sleep_everywhere(sound(&[join(&[1]), seal()]), late(&[2]), &others).await;
    }
}

#[tokio::test]
async fn a_reopening_asleep_leaves_no_success_or_the_new_one() {
    for others in [vec![seal()], vec![late(&[2]), seal()], vec![correct(&[2])]] {
        sleep_everywhere(sound(&[join(&[1]), seal()]), reopen(), &others).await;
    }
}

#[tokio::test]
async fn a_repair_asleep_deletes_no_new_success() -> Verified {
    let mut scene = Scene::after(&sound(&[join(&[1])])).await;
    // A `_SUCCESS` of an open date, as a process leaves it that died between two looks.
    let root = scene.court.world.root();
    let folder = root.join("clean/alpha/dt=2026-05-20/schema_version=1");
    std::fs::write(folder.join("_SUCCESS"), "{}").unwrap();
    for calls in 1.. {
        if !sleep_once(&scene, &Operation::Repair, &[seal()], calls).await? {
            break;
        }
    }
    let stranger = root.join("clean/alpha/dt=2020-01-01/schema_version=9/_SUCCESS");
    std::fs::create_dir_all(stranger.parent().unwrap()).unwrap();
    std::fs::write(&stranger, "{}").unwrap();
    scene = scene.copy().await;
    scene.must(&Operation::Repair).await?;
    scene.court.rest(Closely::default()).await
}

/// Two calls with the same input: whoever comes second is told that it is there, also where the first
/// has sealed the date.
#[tokio::test]
async fn the_same_input_twice_at_once_is_there() {
    let complete = Operation::Ingest(Ingest {
        complete: true,
        ..ingest(Target::Join, &[2, 4])
    });
    let before = sound(&[join(&[1])]);
    sleep_everywhere(
        before.clone(),
        join(&[2, 4]),
        std::slice::from_ref(&complete),
    )
    .await;
    sleep_everywhere(before, complete.clone(), &[complete]).await;
}

#[tokio::test]
async fn an_ingest_asleep_is_given_up_and_starts_over() {
    let before = sound(&[join(&[1])]);
    sleep_everywhere(before.clone(), join(&[2]), &[Operation::Repair]).await;
    sleep_everywhere(before, join(&[3]), &[correct(&[2]), show(0)]).await;
}

#[tokio::test]
async fn a_catalog_follows_while_files_move() {
    let before = sound(&[join(&[1]), keep(&[2]), show(1), join(&[4])]);
    sleep_everywhere(before.clone(), Operation::Rebuild, &[show(0), late(&[5])]).await;
    sleep_everywhere(before, Operation::Rebuild, &[Operation::Rebuild]).await;
}
