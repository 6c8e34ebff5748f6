//! What only a file does: locks, foreign files, files of newer programs.

use super::backend::*;
use crate::error::ErrorKind;
use crate::queue::{Queue, QueueOptions};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_database_is_waited_for() {
    let backend = Sqlite::new().await;
    let queue = backend.open().await;
    let other = backend.open().await;
    let run = open_run(&queue, "day", &pages(0..1)).await;
    let worker = queue.join("test").await.unwrap();
    let taken = claim(&queue, &worker, &any(&run, 1)).await;
    let held = other.db.begin().await.unwrap();
    let finishing = {
        let (queue, run, worker) = (queue.clone(), run.clone(), worker.clone());
        tokio::spawn(async move { finish(&queue, &worker, &run, &[done(&taken[0])]).await })
    };
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    assert!(!finishing.is_finished());
    held.rollback().await;
    assert_eq!(finishing.await.unwrap(), 1);
}

#[tokio::test]
async fn a_file_of_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.db");
    std::fs::write(
        &text,
        "no database at all, but long enough to be looked at as one".repeat(30),
    )
    .unwrap();
    let catalog = folder.path().join("catalog.db");
    crate::catalog::SqliteCatalog::open(&catalog)
        .await
        .unwrap()
        .close()
        .await;
    let before = std::fs::read(&catalog).unwrap();
    for path in [&text, &catalog] {
        let error = Queue::open(&path.display().to_string(), QueueOptions::default())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CorruptData, "{error}");
    }
    assert_eq!(std::fs::read(&catalog).unwrap(), before);
    let nowhere = folder.path().join("no/queue.db").display().to_string();
    assert_eq!(
        Queue::open(&nowhere, QueueOptions::default())
            .await
            .unwrap_err()
            .kind(),
        ErrorKind::NotFound
    );
    let odd = Queue::open("redis://a/b", QueueOptions::default())
        .await
        .unwrap_err();
    assert_eq!(odd.kind(), ErrorKind::InvalidInput);
}

#[tokio::test]
async fn a_newer_line_is_refused() {
    let backend = Sqlite::new().await;
    let queue = backend.open().await;
    tamper(
        &queue,
        "INSERT INTO queue_migration (number, line, name) VALUES (9, 99, 'later')",
        &[],
    )
    .await;
    queue.close().await;
    let error = Queue::open(&backend.place(), QueueOptions::default())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("newer program"), "{error}");
}
