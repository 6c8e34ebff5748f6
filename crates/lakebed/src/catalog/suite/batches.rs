//! Several records in one transaction: the same rows as one after the other, all of them or none.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::suite::{Backend, DAY, Fixture, NEXT_DAY, column, everything, file_stats, set};
use crate::catalog::testlog::{TestLog, add, dataset, file, key, lake_spec};
use crate::catalog::{ApplyOutcome, Catalog, FileStats, NextRecord, StatValue, is_visible};
use crate::error::ErrorKind;
use crate::name::ContentHash;
use crate::spec::{
    Action, LogPosition, Operation, PartitionKey, PartitionState, Provenance, Record,
};

type Logged = (Record, ContentHash, Vec<FileStats>);

fn next(logged: &[Logged]) -> Vec<NextRecord<'_>> {
    let next = logged.iter().map(|(record, hash, stats)| NextRecord {
        record,
        hash,
        stats,
    });
    next.collect()
}

/// A source of numbers that a seed fixes.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// What a log says, as far as legal next actions depend on it.
#[derive(Default)]
struct Model {
    partitions: BTreeMap<PartitionKey, (PartitionState, BTreeSet<String>)>,
}

impl Model {
    fn act(&mut self, dice: &mut Dice, stats: &mut Vec<FileStats>) -> Action {
        let day = [DAY, NEXT_DAY][dice.below(2)];
        let p = key(day, 1, u32::try_from(dice.below(2)).unwrap());
        let name = format!("f{}", dice.below(6));
        let known = self.partitions.get_mut(&p);
        match (dice.below(8), known) {
            (0, _) => Action::Complete { dt: p.dt },
            (1, _) => Action::Open { dt: p.dt },
            (2, Some((_, files))) if files.contains(&name) => {
                files.remove(&name);
                Action::RemoveFile { partition: p, name }
            }
            (3 | 4, Some((state, files))) => {
                let moves = PartitionState::ALL
                    .into_iter()
                    .filter(|to| state.may_become(*to));
                let moves: Vec<_> = moves.collect();
                if moves.is_empty() {
                    return Action::Open { dt: p.dt };
                }
                let (from, to) = (*state, moves[dice.below(moves.len())]);
                *state = to;
                if is_visible(to) {
                    stats.extend(files.iter().map(|name| of_file(p, name)));
                }
                set(p, from, to)
            }
            (_, Some((_, files))) if files.contains(&name) => Action::Open { dt: p.dt },
            (_, _) => self.add(p, &name, dice, stats),
        }
    }

    fn add(
        &mut self,
        p: PartitionKey,
        name: &str,
        dice: &mut Dice,
        stats: &mut Vec<FileStats>,
    ) -> Action {
        let mut spec = file(name, 1 + dice.below(5) as u64);
        if dice.below(3) == 0 {
            spec.provenance = Provenance::Backfill;
        }
        if dice.below(3) == 0 {
            let day = [DAY, NEXT_DAY][dice.below(2)];
            spec.parents = vec![format!("raw/weibo/dt={day}/schema_version=0")];
        }
        let held = self.partitions.entry(p);
        let (_, files) = held.or_insert((PartitionState::Active, BTreeSet::new()));
        files.insert(name.to_owned());
        stats.push(of_file(p, name));
        add(p, spec)
    }
}

fn of_file(p: PartitionKey, name: &str) -> FileStats {
    let bounds = column(1, StatValue::Int(1), StatValue::Int(i64::from(p.revision)));
    file_stats(p, name, vec![bounds])
}

fn random_log(seed: u64, records: usize) -> Vec<Logged> {
    let (mut dice, mut model) = (Dice(seed), Model::default());
    let mut log = TestLog::new(&lake_spec("lake-1"), &dataset());
    let make = |_| {
        let mut stats = Vec::new();
        let actions = (0..dice.below(5)).map(|_| model.act(&mut dice, &mut stats));
        let (record, _, hash) = log.next(Operation::Append, actions.collect());
        (record, hash, stats)
    };
    (0..records).map(make).collect()
}

async fn apply_by(catalog: &dyn Catalog, log: &[Logged], size: usize) {
    for batch in log.chunks(size) {
        let outcome = catalog.apply_all(&next(batch)).await.unwrap();
        assert_eq!(outcome, ApplyOutcome::Applied);
    }
}

pub(super) async fn records_in_one_go_or_many<B: Backend>() {
    let mut with_stats = 0;
    for seed in 0..12 {
        let log = random_log(seed, 40);
        let mut dumps = Vec::new();
        for size in [1, 2, 7, 40] {
            let f = Fixture::<B>::new().await;
            apply_by(&*f.catalog, &log, size).await;
            dumps.push((size, f.catalog.dump().await.unwrap()));
        }
        let (_, alone) = &dumps[0];
        with_stats += usize::from(alone.contains(r#""table":"column_stats""#));
        for (size, dump) in &dumps[1..] {
            assert_eq!(dump, alone, "seed {seed}, {size} records in one go");
        }
    }
    assert!(with_stats > 6, "{with_stats} logs end with statistics");
}

pub(super) async fn a_batch_is_applied_whole_or_not<B: Backend>() {
    let f = Fixture::<B>::new().await;
    let p = key(DAY, 1, 0);
    let mut log = TestLog::new(&lake_spec("lake-1"), &dataset());
    let mut logged = |actions| {
        let (record, _, hash) = log.next(Operation::Append, actions);
        (record, hash, Vec::new())
    };
    let good = [
        logged(vec![add(p, file("a", 1))]),
        logged(vec![add(p, file("b", 1))]),
    ];
    let wrong = logged(vec![add(p, file("c", 1)), add(p, file("a", 1))]);
    let empty = f.catalog.dump().await.unwrap();
    let mut all = good.to_vec();
    all.push(wrong);
    let error = f.catalog.apply_all(&next(&all)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData);
    assert!(error.to_string().contains("holds already"), "{error}");
    assert!(
        error
            .context()
            .iter()
            .any(|(k, v)| *k == "record" && v == "3"),
        "{error:?}"
    );
    assert_eq!(f.catalog.dump().await.unwrap(), empty);

    // Records that do not follow one another, within the batch or before it.
    let swapped = [good[1].clone(), good[0].clone()];
    let outcome = f.catalog.apply_all(&next(&swapped)).await.unwrap();
    assert_eq!(outcome, ApplyOutcome::NotNext(LogPosition::START));
    let mut other = TestLog::new(&lake_spec("lake-1"), &dataset());
    other.next(Operation::Append, vec![]);
    let (record, _, hash) = other.next(Operation::Append, vec![]);
    let mixed = [good[0].clone(), (record, hash, Vec::new())];
    let error = f.catalog.apply_all(&next(&mixed)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CorruptData);
    let mut foreign = good.clone();
    foreign[1].0.lake = "lake-2".parse().unwrap();
    assert!(f.catalog.apply_all(&next(&foreign)).await.is_err());
    assert_eq!(f.catalog.dump().await.unwrap(), empty);

    let nothing = f.catalog.apply_all(&[]).await.unwrap();
    assert_eq!(nothing, ApplyOutcome::Applied);
    apply_by(&*f.catalog, &good, 2).await;
    let at = f.catalog.position(&dataset()).await.unwrap();
    let outcome = f.catalog.apply_all(&next(&good[..1])).await.unwrap();
    assert_eq!(outcome, ApplyOutcome::NotNext(at));
    let files = f.catalog.list_files(&everything()).await.unwrap();
    assert_eq!(files.len(), 2);
}

/// Both take what they find at the catalog's position, in batches of another size.
pub(super) async fn two_programs_apply_batches_at_once<B: Backend>() {
    let log = random_log(7, 60);
    let f = Fixture::<B>::new().await;
    let other = f.backend.open().await;
    let follow = async |catalog: &dyn Catalog, size: usize| -> u64 {
        let mut applied = 0;
        loop {
            let at = catalog.position(&dataset()).await.unwrap().number;
            let rest = &log[usize::try_from(at).unwrap()..];
            if rest.is_empty() {
                return applied;
            }
            let batch = next(&rest[..size.min(rest.len())]);
            match catalog.apply_all(&batch).await.unwrap() {
                ApplyOutcome::Applied => applied += batch.len() as u64,
                ApplyOutcome::NotNext(now) => assert!(now.number > at, "{now:?}"),
            }
        }
    };
    let (a, b) = tokio::join!(follow(&*f.catalog, 5), follow(&*other, 3));
    assert_eq!(a + b, 60);
    let alone = Fixture::<B>::new().await;
    apply_by(&*alone.catalog, &log, 1).await;
    assert_eq!(
        f.catalog.dump().await.unwrap(),
        alone.catalog.dump().await.unwrap()
    );
}
