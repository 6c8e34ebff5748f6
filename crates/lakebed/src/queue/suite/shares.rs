//! Leases by name: one holder at a time, whoever asks from wherever.

use super::backend::*;
use crate::queue::{LeaseHolder, LeaseOutcome};

fn holder(token: &str, place: &str) -> LeaseHolder {
    LeaseHolder {
        token: token.to_owned(),
        place: place.to_owned(),
        name: format!("某人 {token}"),
    }
}

pub(super) async fn a_lease_has_one_holder_at_a_time(backend: impl Backend) {
    const LONG: i64 = 60_000_000;
    let queue = backend.open().await;
    let other = backend.open().await;
    let name = "flow rent 2026-11-30";
    let (a, b) = (holder("a", "one"), holder("b", "two"));
    assert_eq!(
        queue.take_lease(name, &a, LONG).await.unwrap(),
        LeaseOutcome::Taken
    );
    let LeaseOutcome::Held(held) = other.take_lease(name, &b, LONG).await.unwrap() else {
        panic!("two holders");
    };
    assert_eq!((held.holder.as_str(), held.name.as_str()), ("某人 a", name));
    assert!(
        held.until_at > held.now && held.taken_at <= held.now,
        "{held:?}"
    );
    let listed = other.list_leases("flow rent").await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(other.list_leases("flow sale").await.unwrap(), []);
    // Another name is another lease, and the holder itself may ask again.
    let elsewhere = other.take_lease("flow rent 2026-11-29", &b, LONG).await;
    assert_eq!(elsewhere.unwrap(), LeaseOutcome::Taken);
    assert_eq!(
        queue.take_lease(name, &a, LONG).await.unwrap(),
        LeaseOutcome::Taken
    );
    assert!(queue.hold_lease(name, "a", LONG).await.unwrap());
    assert!(!other.hold_lease(name, "b", LONG).await.unwrap());
    // Who holds the lock of the same place knows that the other is gone.
    let successor = holder("c", "one");
    assert_eq!(
        other.take_lease(name, &successor, LONG).await.unwrap(),
        LeaseOutcome::Taken
    );
    assert!(!queue.hold_lease(name, "a", LONG).await.unwrap());
    queue.give_lease_back(name, "a").await.unwrap();
    assert!(matches!(
        other.take_lease(name, &b, LONG).await.unwrap(),
        LeaseOutcome::Held(_)
    ));
    other.give_lease_back(name, "c").await.unwrap();
    assert_eq!(
        other.take_lease(name, &b, 1).await.unwrap(),
        LeaseOutcome::Taken
    );
    // Its time has passed by the database's clock.
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    assert_eq!(
        queue.take_lease(name, &a, LONG).await.unwrap(),
        LeaseOutcome::Taken
    );
}

pub(super) async fn of_many_that_want_a_lease_one_gets_it(backend: impl Backend) {
    let queues = [backend.open().await, backend.open().await];
    for round in 0..10 {
        let name = format!("round {round}");
        let wishes = (0..6).map(|n| {
            let (queue, name) = (queues[n % 2].clone(), name.clone());
            tokio::spawn(async move {
                let wish = holder(&format!("t{n}"), &format!("p{n}"));
                queue.take_lease(&name, &wish, 60_000_000).await.unwrap()
            })
        });
        let mut taken = 0;
        for wish in wishes.collect::<Vec<_>>() {
            taken += u32::from(wish.await.unwrap() == LeaseOutcome::Taken);
        }
        assert_eq!(taken, 1, "round {round}");
    }
}
