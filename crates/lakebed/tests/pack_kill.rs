//! Kill points between a part and its commit: whatever was acknowledged is in the pack.
//!
//! The test runs itself again as a child that writes parts, opens them or seals them, and dies at the point
//! the environment names. What the child acknowledged it wrote down, line by line.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails the test that called it"
)]

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use lakebed::Result;
use lakebed::catalog::{Catalog, SqliteCatalog, sync_all};
use lakebed::govern::audit::{AuditOptions, audit, repair};
use lakebed::name::{CaptureId, RequestKey};
use lakebed::pack::{
    CommitOptions, PackReader, PackReport, PartOptions, PartWriter, PartsOutcome, ReleaseOptions,
    body_hash, commit_pack, open_parts, plan_pack, release_parts,
};
use lakebed::spec::{
    Answer, BodyMark, By, CaptureRecord, PackProfile, Provenance, RawText, RunKey, TerminalRecord,
    TerminalState, Truncated, capture_id,
};
use lakebed::store::{Lake, LocalStore};
use lakebed::time::{Clock, Instant};

/// Names the child's folder; set by the test alone.
const FOLDER: &str = "PACK_KILL_FOLDER";
/// Names what the child does.
const TASK: &str = "PACK_KILL_TASK";
const PAGES: u32 = 30;

fn run() -> RunKey {
    RunKey {
        source: "books".parse().unwrap(),
        date: "2026-11-30".parse().unwrap(),
        run: "day".parse().unwrap(),
    }
}

fn page(n: u32) -> (CaptureRecord, Vec<u8>) {
    let key = RequestKey::of(&n.to_le_bytes());
    let body = format!("<html>page {n}</html>").into_bytes();
    let capture = CaptureRecord {
        capture_id: capture_id(&run(), &key, 1, 0),
        request_key: key,
        attempt: 1,
        hop: 0,
        kind: "detail".parse().unwrap(),
        method: "GET".to_owned(),
        url: format!("https://books.example/{n}"),
        fetched_at: Instant::from_micros(1_764_500_000_000_000 + i64::from(n)),
        status: Some(200),
        http_version: Some("HTTP/1.1".to_owned()),
        remote_ip: None,
        request_head: RawText::default(),
        request_body: None,
        response_head: RawText(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()),
        content_type: Some("text/html".to_owned()),
        charset: None,
        removed_encodings: Vec::new(),
        wire_len: body.len() as u64,
        body_len: body.len() as u64,
        body_sha256: Some(body_hash(&body).unwrap()),
        truncated: Truncated::None,
        error: None,
    };
    (capture, body)
}

fn terminal(n: u32) -> TerminalRecord {
    let (capture, _) = page(n);
    TerminalRecord {
        request_key: capture.request_key,
        stage: capture.kind,
        method: capture.method,
        url: capture.url,
        state: TerminalState::Done,
        class: None,
        attempts: 1,
        capture: Some(capture.capture_id),
        answer: Answer {
            status: capture.status,
            body: capture.body_sha256.as_ref().and_then(BodyMark::of),
        },
    }
}

/// Writes the pages of the range and notes each that has a receipt.
fn write_pages(folder: &Path, range: std::ops::Range<u32>) {
    let options = PartOptions {
        part_bytes: 1024,
        ..PartOptions::default()
    };
    let mut writer =
        PartWriter::new(&folder.join("parts"), &run(), options, &Clock::System).unwrap();
    let mut notes = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("acknowledged"))
        .unwrap();
    for n in range {
        let (capture, body) = page(n);
        let mut receipts = writer.append(&capture, &body, capture.fetched_at).unwrap();
        if n % 3 == 2 {
            receipts.extend(writer.flush().unwrap());
        }
        for receipt in receipts {
            writeln!(notes, "{}", receipt.capture_id).unwrap();
        }
    }
    for receipt in writer.finish().unwrap() {
        writeln!(notes, "{}", receipt.capture_id).unwrap();
    }
}

async fn open_lake(folder: &Path) -> (Lake, Arc<SqliteCatalog>) {
    let store = Arc::new(LocalStore::new(folder.join("lake")));
    let clock = Arc::new(Clock::System);
    let lake = Lake::open_or_create(store, clock, "Asia/Taipei")
        .await
        .unwrap();
    let catalog = SqliteCatalog::open(folder.join("catalog.db"))
        .await
        .unwrap();
    let catalog = Arc::new(catalog);
    sync_all(&lake, &*catalog).await.unwrap();
    (lake, catalog)
}

async fn seal(folder: &Path) -> Result<PackReport> {
    let (lake, catalog) = open_lake(folder).await;
    let parts = open_parts(&folder.join("parts"), &run())?;
    let terminals = (0..PAGES).map(|n| Ok(terminal(n)));
    let plan = plan_pack(
        &run(),
        &parts,
        terminals,
        PackProfile::Std,
        &folder.join("parts"),
    )?;
    let options = CommitOptions {
        by: By::this_program(),
        complete: true,
        late: false,
        provenance: Provenance::Live,
    };
    commit_pack(&lake, &*catalog, plan, &options).await
}

async fn release(folder: &Path, dry_run: bool) -> PartsOutcome {
    let (lake, _) = open_lake(folder).await;
    let parts = folder.join("parts");
    let options = ReleaseOptions {
        dry_run,
        needs_pack: true,
    };
    release_parts(&lake, &parts, &run(), options).await.unwrap()
}

/// What the child does; without its environment nothing.
#[test]
fn child() {
    let (Some(folder), Ok(task)) = (std::env::var_os(FOLDER), std::env::var(TASK)) else {
        return;
    };
    let folder = PathBuf::from(folder);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    match task.as_str() {
        "write" => write_pages(&folder, 0..PAGES),
        "open" => drop(open_parts(&folder.join("parts"), &run()).unwrap()),
        "seal" => drop(runtime.block_on(seal(&folder)).unwrap()),
        "release" => drop(runtime.block_on(release(&folder, false))),
        other => panic!("no task `{other}`"),
    }
}

/// Runs the child until it dies at the point; whether it did.
fn dies_at(folder: &Path, task: &str, point: &str) -> bool {
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(FOLDER, folder)
        .env(TASK, task)
        .env("LAKEBED_KILL_POINT", point)
        .output()
        .unwrap();
    assert!(
        done.status.success() || done.status.code().is_none(),
        "{task} at {point}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    !done.status.success()
}

fn acknowledged(folder: &Path) -> BTreeSet<CaptureId> {
    let text = std::fs::read_to_string(folder.join("acknowledged")).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

fn in_parts(folder: &Path) -> BTreeSet<CaptureId> {
    let parts = open_parts(&folder.join("parts"), &run()).unwrap();
    parts
        .captures()
        .map(|c| c.unwrap().capture.capture_id)
        .collect()
}

/// After a crash: what is missing is fetched again, the run is sealed, everything is there once.
fn recover_and_check(folder: &Path, what: &str) {
    let known = in_parts(folder);
    let missing = acknowledged(folder).difference(&known).count();
    assert_eq!(
        missing, 0,
        "{what}: {missing} acknowledged captures are lost"
    );
    write_pages(folder, 0..PAGES);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let report = seal(folder).await.unwrap();
        let (lake, catalog) = open_lake(folder).await;
        let catalog: Arc<dyn Catalog> = catalog;
        let options = AuditOptions { deep: true };
        let found = audit(&lake, Arc::clone(&catalog), options).await.unwrap();
        repair(&lake, Arc::clone(&catalog), &found, By::this_program())
            .await
            .unwrap();
        let found = audit(&lake, catalog, options).await.unwrap();
        assert!(found.is_clean(), "{what}: {:?}", found.findings);
        let reader = PackReader::open(&folder.join("lake").join(&report.pack)).unwrap();
        let ids: Vec<CaptureId> = reader
            .replay()
            .map(|c| c.unwrap().capture.capture_id)
            .collect();
        assert_eq!(ids.len(), PAGES as usize, "{what}");
        assert!(
            acknowledged(folder).iter().all(|id| ids.contains(id)),
            "{what}"
        );
    });
}

/// Attacks PAK-1 and PAK-7.
#[test]
fn a_kill_at_every_point_loses_nothing_acknowledged() {
    let writing = [
        "pack.part_created",
        "pack.frame_written",
        "pack.frame_durable",
    ];
    for point in writing {
        for nth in 1..=4 {
            let folder = tempfile::tempdir().unwrap();
            let point = format!("{point}:{nth}");
            let died = dies_at(folder.path(), "write", &point);
            assert!(died || nth > 1, "nothing reaches {point}");
            recover_and_check(folder.path(), &point);
        }
    }
    for point in ["pack.torn_kept", "pack.torn_cut"] {
        let folder = tempfile::tempdir().unwrap();
        write_pages(folder.path(), 0..9);
        let parts = folder.path().join("parts");
        let first = std::fs::read_dir(&parts)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(first)
            .unwrap();
        file.write_all(b"\x28\xb5\x2f\xfd torn").unwrap();
        drop(file);
        assert!(
            dies_at(folder.path(), "open", point),
            "nothing reaches {point}"
        );
        let torn = std::fs::read_dir(&parts).unwrap().filter(|e| {
            e.as_ref()
                .unwrap()
                .path()
                .extension()
                .is_some_and(|x| x == "torn")
        });
        assert_eq!(torn.count(), 1, "{point}: the tail is kept");
        recover_and_check(folder.path(), point);
    }
    let sealing = [
        "pack.staged",
        "pack.before_commit",
        "log.linked",
        "move.before",
        "move.one_moved",
    ];
    for point in sealing {
        let folder = tempfile::tempdir().unwrap();
        write_pages(folder.path(), 0..PAGES);
        assert!(
            dies_at(folder.path(), "seal", point),
            "nothing reaches {point}"
        );
        recover_and_check(folder.path(), point);
    }
}

fn files(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder.join("parts")).unwrap();
    let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
    names.collect()
}

fn kept(outcome: &PartsOutcome) -> &str {
    match outcome {
        PartsOutcome::Kept(reason) => reason,
        other => panic!("{other:?}"),
    }
}

/// Attacks PAK-9: parts go when their pack is in the lake and whole, and at no other time.
#[tokio::test]
async fn parts_go_only_when_the_lake_holds_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_pages(folder, 0..PAGES);
    std::fs::write(folder.join("parts").join("run.json"), "{}").unwrap();
    let torn = folder.join("parts").join("x-000001.tar.zst.torn");
    std::fs::write(torn, [0; 9]).unwrap();
    let all = files(folder);
    assert!(all.len() > 4, "{all:?}");
    assert_eq!(
        kept(&release(folder, false).await),
        "its pack is not in the lake"
    );
    let report = seal(folder).await.unwrap();
    let pack = folder.join("lake").join(&report.pack);

    let writer = PartWriter::new(
        &folder.join("parts"),
        &run(),
        PartOptions::default(),
        &Clock::System,
    );
    let mut writer = writer.unwrap();
    let (late, body) = page(PAGES);
    drop(writer.append(&late, &body, late.fetched_at).unwrap());
    drop(writer.flush().unwrap());
    let living = release(folder, false).await;
    assert!(
        kept(&living).contains("is still being written"),
        "{living:?}"
    );
    drop(writer.finish().unwrap());
    let late = release(folder, false).await;
    assert_eq!(
        kept(&late),
        "its parts hold 1 responses that its pack does not"
    );
    let newest = files(folder).difference(&all).next().unwrap().clone();
    std::fs::remove_file(folder.join("parts").join(newest)).unwrap();

    let whole = std::fs::read(&pack).unwrap();
    for at in [whole.len() / 2, whole.len() - 20] {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        std::fs::write(&pack, bad).unwrap();
        let damaged = release(folder, false).await;
        assert!(kept(&damaged).contains("is damaged"), "{damaged:?}");
    }
    std::fs::remove_file(&pack).unwrap();
    let gone = release(folder, false).await;
    assert!(kept(&gone).contains("is not at its place"), "{gone:?}");
    std::fs::write(&pack, whole).unwrap();
    let would = release(folder, true).await;
    assert_eq!(files(folder), all, "nothing of all that deleted anything");
    let did = release(folder, false).await;
    assert_eq!(would, did);
    let PartsOutcome::Released { parts, bytes } = did else {
        panic!("{did:?}");
    };
    assert_eq!(parts, all.len() as u64 - 2);
    assert!(bytes > 1024, "{bytes}");
    assert_eq!(files(folder), BTreeSet::from(["run.json".to_owned()]));
    assert_eq!(release(folder, false).await, PartsOutcome::None);
}

/// Attacks PAK-9: another response of an attempt is another response, whatever number the attempt has.
#[tokio::test]
async fn a_response_that_came_once_more_is_not_taken_for_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_pages(folder, 0..PAGES);
    seal(folder).await.unwrap();
    // Neither a later nor an earlier one, by whichever clock.
    for (n, behind) in [1, -3_600_000_000].into_iter().enumerate() {
        write_again(folder, behind);
        let there = files(folder);
        let stays = release(folder, false).await;
        let why = format!("its parts hold {} responses that its pack does not", n + 1);
        assert_eq!(kept(&stays), why);
        assert_eq!(files(folder), there);
    }
}

/// Page 3 as another life of the queue got it: gone, so much later by the worker's clock.
fn write_again(folder: &Path, later_us: i64) {
    let body = b"<html>gone</html>".to_vec();
    let (first, _) = page(3);
    let again = CaptureRecord {
        fetched_at: Instant::from_micros(first.fetched_at.micros() + later_us),
        status: Some(404),
        body_sha256: Some(body_hash(&body).unwrap()),
        wire_len: body.len() as u64,
        body_len: body.len() as u64,
        ..first
    };
    let options = PartOptions::default();
    let parts = folder.join("parts");
    let mut writer = PartWriter::new(&parts, &run(), options, &Clock::System).unwrap();
    let at = again.fetched_at;
    let mut receipts = writer.append(&again, &body, at).unwrap();
    receipts.extend(writer.finish().unwrap());
    assert_eq!(receipts.len(), 1);
}

/// Attacks PAK-9 and PAK-10: of two lives of a queue the pack holds both, so their parts may go, and the one that the
/// books know is the one that is parsed.
#[tokio::test]
async fn the_responses_of_two_lives_are_held_and_their_parts_go() {
    for later_us in [3_600_000_000, -3_600_000_000] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write_pages(folder, 0..PAGES);
        write_again(folder, later_us);
        let report = seal(folder).await.unwrap();
        assert_eq!(report.stats.captures, u64::from(PAGES) + 1);
        let reader = PackReader::open(&folder.join("lake").join(&report.pack)).unwrap();
        let (good, _) = page(3);
        assert_eq!(reader.get(&good.capture_id).unwrap().capture, good);
        let outcome = release(folder, false).await;
        assert!(
            matches!(outcome, PartsOutcome::Released { .. }),
            "{outcome:?}"
        );
    }
}

/// Attacks PAK-9 at each point: what was acknowledged is in the lake, and the next call goes on.
#[test]
fn a_kill_while_parts_go_loses_nothing() {
    for point in [
        "pack.parts_checked",
        "pack.part_deleted:1",
        "pack.part_deleted:3",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        write_pages(folder, 0..PAGES);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let report = runtime.block_on(seal(folder)).unwrap();
        assert!(dies_at(folder, "release", point), "nothing reaches {point}");
        let reader = PackReader::open(&folder.join("lake").join(&report.pack)).unwrap();
        let ids: BTreeSet<CaptureId> = reader
            .replay()
            .map(|c| c.unwrap().capture.capture_id)
            .collect();
        assert!(acknowledged(folder).is_subset(&ids), "{point}");
        let outcome = runtime.block_on(release(folder, false));
        assert!(
            matches!(outcome, PartsOutcome::Released { .. }),
            "{point}: {outcome:?}"
        );
        assert!(files(folder).is_empty(), "{point}");
    }
}
