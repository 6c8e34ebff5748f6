//! What every store does, each behaviour once, stamped per backend; each test has its own lake.
//! A backend that is not there fails its tests, it never passes them silently.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::ErrorKind;
use crate::store::{Layout, LocalStore, MoveOutcome, PutOutcome, Store, StorePath};

/// The lake of one test, which may be opened more than once.
trait Backend {
    fn new() -> Self;
    fn open(&self) -> Arc<dyn Store>;
}

struct Local(tempfile::TempDir);

impl Backend for Local {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn open(&self) -> Arc<dyn Store> {
        // A folder that is not there yet: a store makes it.
        Arc::new(LocalStore::new(self.0.path().join("new/lake")))
    }
}

macro_rules! stamp {
    ($($test:ident),* $(,)?) => {
        mod local {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $test() {
                super::$test::<super::Local>().await;
            })*
        }
    };
}

stamp!(
    of_many_puts_exactly_one_wins,
    a_visible_name_holds_whole_bytes,
    a_replaced_object_is_old_or_new,
    puts_leave_nothing_behind,
    a_put_survives_the_loss_of_its_temporary_file,
    a_stage_that_was_moved_away_leaves_no_folder,
    absent_objects_are_no_errors,
    ranges_end_with_the_object,
    a_move_is_idempotent,
    staged_bytes_are_what_was_written,
    a_large_stage_file_is_what_was_written,
    a_stage_file_is_new,
    listings_are_sorted_and_escaped,
    large_listings_are_whole_and_sorted,
    the_end_of_an_object_comes_with_its_size,
    names_are_those_directly_in_a_folder,
    folders_are_deleted_whole,
    unwritable_places_say_so,
);

fn path(text: &str) -> StorePath {
    StorePath::new(text).unwrap()
}

/// A repair that takes temporary files of running puts for leftovers harms none of them.
async fn a_put_survives_the_loss_of_its_temporary_file<B: Backend>() {
    let backend = B::new();
    let (store, other) = (backend.open(), backend.open());
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let repair = tokio::spawn(async move {
        // Fewer than a put tries in a row, so that it may meet all of them.
        let mut left = 12;
        while left > 0 && !stopped.load(Ordering::SeqCst) {
            for file in other.list(&path(Layout::PUTS)).await.unwrap() {
                other.delete(&file.path).await.unwrap();
                left -= 1;
            }
        }
        left
    });
    for round in 0..300 {
        let bytes = format!("round {round}").into_bytes();
        let replaced = path("clean/a/_SUCCESS");
        store.replace(&replaced, &bytes).await.unwrap();
        assert_eq!(store.get(&replaced).await.unwrap(), bytes);
        let new = path(&format!("clean/a/{round}"));
        assert_eq!(
            store.put_once(&new, &bytes).await.unwrap(),
            PutOutcome::Created
        );
        assert_eq!(store.get(&new).await.unwrap(), bytes);
        if repair.is_finished() {
            break;
        }
    }
    stop.store(true, Ordering::SeqCst);
    repair.await.unwrap();
}

async fn a_stage_that_was_moved_away_leaves_no_folder<B: Backend>() {
    let backend = B::new();
    let store = backend.open();
    let staged = |name: &str| path(&format!("_lake/stage/attempt/clean/a/dt=x/{name}"));
    for name in ["1", "2"] {
        let mut file = store.create_stage_file(&staged(name)).unwrap();
        file.write_all(b"rows").unwrap();
        file.finish().unwrap();
    }
    let other = path("_lake/superseded/clean/a/1");
    for (from, to) in [
        (staged("1"), staged("final")),
        (staged("final"), other.clone()),
        (staged("2"), path("clean/a/2")),
        (other, path("clean/a/1")),
    ] {
        assert_eq!(
            store.move_file(&from, &to).await.unwrap(),
            MoveOutcome::Moved
        );
    }
    if let Some(folder) = store.local_path(&path("_lake/stage/attempt")) {
        assert!(!folder.exists());
        assert!(folder.parent().unwrap().exists());
    }
    // Only the stage is swept: elsewhere another mover may just have made the folder.
    if let Some(folder) = store.local_path(&path("_lake/superseded/clean/a")) {
        assert!(folder.exists());
    }
}

/// STO-1: among puts of one name at once, over two openings, one creates and all others see it.
async fn of_many_puts_exactly_one_wins<B: Backend>() {
    let backend = B::new();
    for round in 0..20 {
        let name = path(&format!("_lake/log/clean/a/{round:020}.json"));
        let tasks: Vec<_> = (0..8)
            .map(|writer| {
                let (store, name) = (backend.open(), name.clone());
                tokio::spawn(async move {
                    let bytes = format!("writer {writer}").into_bytes();
                    let outcome = store.put_once(&name, &bytes).await.unwrap();
                    (outcome, bytes, store.get(&name).await.unwrap())
                })
            })
            .collect();
        let mut created = Vec::new();
        let mut seen = Vec::new();
        for task in tasks {
            let (outcome, bytes, found) = task.await.unwrap();
            if outcome == PutOutcome::Created {
                created.push(bytes);
            }
            seen.push(found);
        }
        assert_eq!(created.len(), 1);
        assert!(seen.iter().all(|bytes| bytes[..] == created[0][..]));
    }
}

/// STO-1: whoever looks while an object is put sees nothing or all of it.
async fn a_visible_name_holds_whole_bytes<B: Backend>() {
    let backend = B::new();
    let bytes = vec![b'x'; 4 << 20];
    for round in 0..5 {
        let name = path(&format!("clean/a/dt=2024-05-20/schema_version=1/{round}"));
        let (store, looked_for, done) = (
            backend.open(),
            name.clone(),
            Arc::new(AtomicBool::new(false)),
        );
        let until = Arc::clone(&done);
        let looker = tokio::spawn(async move {
            let mut lengths = Vec::new();
            while !until.load(Ordering::SeqCst) {
                lengths.extend(
                    store
                        .find(&looked_for)
                        .await
                        .unwrap()
                        .map(|b| b.len() as u64),
                );
                lengths.extend(store.find_size(&looked_for).await.unwrap());
            }
            lengths
        });
        let outcome = backend.open().put_once(&name, &bytes).await.unwrap();
        assert_eq!(outcome, PutOutcome::Created);
        done.store(true, Ordering::SeqCst);
        let lengths = looker.await.unwrap();
        assert!(
            lengths.iter().all(|n| *n == bytes.len() as u64),
            "{lengths:?}"
        );
    }
}

/// STO-1: a replaced object is never absent and never a mixture.
async fn a_replaced_object_is_old_or_new<B: Backend>() {
    let backend = B::new();
    let name = path("clean/a/dt=2024-05-20/schema_version=1/_SUCCESS");
    let versions = [vec![b'a'; 1 << 20], vec![b'b'; 2 << 20]];
    backend.open().replace(&name, &versions[0]).await.unwrap();
    let (store, looked_for, done) = (
        backend.open(),
        name.clone(),
        Arc::new(AtomicBool::new(false)),
    );
    let (until, known) = (Arc::clone(&done), versions.clone());
    let looker = tokio::spawn(async move {
        let mut looks = 0;
        while !until.load(Ordering::SeqCst) {
            let found = store.get(&looked_for).await.unwrap();
            assert!(
                known.iter().any(|v| v[..] == found[..]),
                "{} bytes",
                found.len()
            );
            looks += 1;
        }
        looks
    });
    for round in 1..10 {
        backend
            .open()
            .replace(&name, &versions[round % 2])
            .await
            .unwrap();
    }
    done.store(true, Ordering::SeqCst);
    assert!(looker.await.unwrap() > 0);
}

/// A put that wins and one that loses leave no file but the object itself.
async fn puts_leave_nothing_behind<B: Backend>() {
    let store = B::new().open();
    let name = path("lake.json");
    assert_eq!(
        store.put_once(&name, b"1").await.unwrap(),
        PutOutcome::Created
    );
    assert_eq!(
        store.put_once(&name, b"2").await.unwrap(),
        PutOutcome::Exists
    );
    store.replace(&path("clean/x"), b"3").await.unwrap();
    assert_eq!(store.get(&name).await.unwrap()[..], *b"1");
    let all = store.list(&path("")).await.unwrap();
    let names: Vec<_> = all
        .iter()
        .map(|f| (f.path.as_str(), f.size_bytes))
        .collect();
    assert_eq!(names, [("clean/x", 1), ("lake.json", 1)]);
    assert!(store.list(&path(Layout::PUTS)).await.unwrap().is_empty());
}

async fn absent_objects_are_no_errors<B: Backend>() {
    let store = B::new().open();
    let name = path("clean/a/none");
    assert_eq!(store.find(&name).await.unwrap(), None);
    assert_eq!(store.find_size(&name).await.unwrap(), None);
    assert!(store.list(&path("clean/a")).await.unwrap().is_empty());
    store.delete(&name).await.unwrap();
    store.delete_folder(&path("clean")).await.unwrap();
    assert_eq!(
        store.get(&name).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    let range = store.read_range(&name, 0, 1).await.unwrap_err();
    assert_eq!(range.kind(), ErrorKind::NotFound);
    // A file where a folder is looked for is absence, too.
    store.replace(&path("clean/file"), b"x").await.unwrap();
    assert_eq!(store.find(&path("clean/file/below")).await.unwrap(), None);
}

async fn ranges_end_with_the_object<B: Backend>() {
    let store = B::new().open();
    let name = path("a");
    store.replace(&name, b"0123456789").await.unwrap();
    for (offset, length, expected) in [
        (0, 4, "0123"),
        (8, 4, "89"),
        (10, 4, ""),
        (99, 1, ""),
        (3, 0, ""),
    ] {
        let found = store.read_range(&name, offset, length).await.unwrap();
        assert_eq!(found, expected.as_bytes(), "{length} bytes from {offset}");
    }
    assert_eq!(store.find_size(&name).await.unwrap(), Some(10));
}

async fn a_move_is_idempotent<B: Backend>() {
    let backend = B::new();
    let store = backend.open();
    if !store.capabilities().rename {
        return;
    }
    let (from, to) = (path("_lake/stage/a/clean/x"), path("clean/x"));
    assert_eq!(
        store.move_file(&from, &to).await.unwrap(),
        MoveOutcome::Missing
    );
    store.replace(&from, b"rows").await.unwrap();
    assert_eq!(
        store.move_file(&from, &to).await.unwrap(),
        MoveOutcome::Moved
    );
    assert_eq!(
        store.move_file(&from, &to).await.unwrap(),
        MoveOutcome::AlreadyMoved
    );
    assert_eq!(store.find(&from).await.unwrap(), None);
    assert_eq!(store.get(&to).await.unwrap()[..], *b"rows");
    // Several openers finish the same move: each ends well, one moved it.
    for round in 0..20 {
        let (from, to) = (
            path(&format!("_lake/stage/b/{round}")),
            path(&format!("clean/{round}")),
        );
        store.replace(&from, b"rows").await.unwrap();
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let (store, from, to) = (backend.open(), from.clone(), to.clone());
                tokio::spawn(async move { store.move_file(&from, &to).await.unwrap() })
            })
            .collect();
        let mut outcomes = Vec::new();
        for task in tasks {
            outcomes.push(task.await.unwrap());
        }
        assert!(!outcomes.contains(&MoveOutcome::Missing), "{outcomes:?}");
        assert!(outcomes.contains(&MoveOutcome::Moved), "{outcomes:?}");
        assert_eq!(store.get(&to).await.unwrap()[..], *b"rows");
    }
}

async fn staged_bytes_are_what_was_written<B: Backend>() {
    let store = B::new().open();
    let name = path("_lake/stage/a/clean/x.parquet");
    let mut file = store.create_stage_file(&name).unwrap();
    file.write_all(&[1, 2]).unwrap();
    file.write_all(&[3]).unwrap();
    file.finish().unwrap();
    assert_eq!(store.get(&name).await.unwrap()[..], [1, 2, 3]);
}

async fn a_large_stage_file_is_what_was_written<B: Backend>() {
    let store = B::new().open();
    let name = path("_lake/stage/a/clean/large.parquet");
    let mut file = store.create_stage_file(&name).unwrap();
    let mut wanted = Vec::new();
    for n in 0..40_u8 {
        let piece = vec![n; 1 << 20];
        file.write_all(&piece).unwrap();
        wanted.extend(piece);
    }
    file.finish().unwrap();
    assert!(store.get(&name).await.unwrap()[..] == wanted[..]);
}

async fn a_stage_file_is_new<B: Backend>() {
    let store = B::new().open();
    let name = path("_lake/stage/a/x");
    store.create_stage_file(&name).unwrap().finish().unwrap();
    assert!(store.create_stage_file(&name).is_err());
}

async fn large_listings_are_whole_and_sorted<B: Backend>() {
    let store = B::new().open();
    let mut put = Vec::new();
    for n in 0..40 {
        // A folder and a file whose names differ by what sorts around the slash.
        for name in ["x.y/z", "x/y/z", "x-y", "x0/z"] {
            let path = path(&format!("clean/d{n:02}/{name}"));
            store.replace(&path, name.as_bytes()).await.unwrap();
            put.push((path, name.len() as u64));
        }
    }
    put.sort();
    let found = store.list(&path("clean")).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|f| (f.path, f.size_bytes)).collect();
    assert_eq!(found, put);
}

async fn the_end_of_an_object_comes_with_its_size<B: Backend>() {
    let store = B::new().open();
    store.replace(&path("a/f"), b"0123456789").await.unwrap();
    for (length, end) in [(3, "789"), (10, "0123456789"), (99, "0123456789"), (0, "")] {
        let found = store.find_end(&path("a/f"), length).await.unwrap();
        assert_eq!(found, Some((10, end.into())), "{length}");
    }
    assert_eq!(store.find_end(&path("a/g"), 3).await.unwrap(), None);
    assert_eq!(store.find_end(&path("a/f/g"), 3).await.unwrap(), None);
}

async fn listings_are_sorted_and_escaped<B: Backend>() {
    let store = B::new().open();
    let root = path("clean");
    for segment in ["b", "a=1", "微博", "x y", ".."] {
        store
            .replace(&root.child(segment).child("f"), b"x")
            .await
            .unwrap();
    }
    store.replace(&path("cleaner/f"), b"x").await.unwrap();
    let found = store.list(&root).await.unwrap();
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(found.is_sorted());
    let entries = store.list_entries(&path("")).await.unwrap();
    assert!(entries.is_sorted());
    for folder in ["clean", "cleaner"].map(path) {
        assert_eq!(entries.iter().filter(|e| **e == folder).count(), 1);
    }
    let entries = store.list_entries(&path("cleaner")).await.unwrap();
    assert_eq!(entries, [path("cleaner/f")]);
    assert!(store.list_entries(&path("none")).await.unwrap().is_empty());
    for file in &found {
        assert_eq!(
            store.find_size(&file.path).await.unwrap(),
            Some(1),
            "{}",
            file.path
        );
    }
}

async fn names_are_those_directly_in_a_folder<B: Backend>() {
    let store = B::new().open();
    let folder = path("log");
    assert!(store.list_names(&folder).await.unwrap().is_empty());
    for name in ["log/b/2", "log/a-b/1", "log/b/1", "log/a/deep/3", "log/c"] {
        let put = store.put_once(&path(name), b"x").await.unwrap();
        assert_eq!(put, PutOutcome::Created);
    }
    let names = store.list_names(&folder).await.unwrap();
    assert_eq!(names, ["a", "a-b", "b", "c"]);
    assert!(store.list_names(&path("log/c")).await.unwrap().is_empty());
}

async fn folders_are_deleted_whole<B: Backend>() {
    let store = B::new().open();
    for name in ["_lake/stage/a/1", "_lake/stage/a/b/2", "_lake/stage/ab/3"] {
        store.replace(&path(name), b"x").await.unwrap();
    }
    store.delete_folder(&path("_lake/stage/a")).await.unwrap();
    let left = store.list(&path("_lake/stage")).await.unwrap();
    let names: Vec<_> = left.iter().map(|f| f.path.as_str()).collect();
    assert_eq!(names, ["_lake/stage/ab/3"]);
}

/// A file stands where a folder must be: every write says which path, nothing is half there.
async fn unwritable_places_say_so<B: Backend>() {
    let store = B::new().open();
    store.replace(&path("clean"), b"a file").await.unwrap();
    let target = path("clean/a/x");
    let errors = [
        store.put_once(&target, b"x").await.unwrap_err(),
        store.replace(&target, b"x").await.unwrap_err(),
        store.create_stage_file(&target).err().unwrap(),
    ];
    for error in errors {
        assert!(error.to_string().contains("clean"), "{error}");
    }
    assert_eq!(store.get(&path("clean")).await.unwrap()[..], *b"a file");
}
