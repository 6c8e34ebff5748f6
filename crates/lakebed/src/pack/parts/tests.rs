//! Parts: what is acknowledged is there after every cut, torn tails are kept, damage and lives are told apart.

use std::collections::BTreeSet;
use std::fs;

use bytes::Bytes;

use super::*;
use crate::error::ErrorKind;
use crate::pack::part::{PartOptions, PartWriter};
use crate::pack::part_shared::{SharedPart, SharedPartOptions};
use crate::pack::samples::{body, capture, failure, pages, run, write_part};
use crate::time::{Clock, Instant};

const NOW: Instant = Instant::from_micros(0);

fn ids(parts: &OpenParts) -> Vec<String> {
    let id = |c: Result<PartCapture>| c.unwrap().capture.capture_id.to_string();
    parts.captures().map(id).collect()
}

#[test]
fn what_was_appended_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = pages(0..60);
    all.push((failure(60), Vec::new()));
    let receipts = write_part(folder.path(), &all, 7);
    assert_eq!(receipts.len(), all.len());
    let parts = open_parts(folder.path(), &run()).unwrap();
    assert_eq!(
        (parts.parts.len(), parts.torn.len(), parts.live.len()),
        (1, 0, 0)
    );
    assert_eq!(parts.parts[0].captures, 61);
    for ((found, (capture, body)), receipt) in parts.captures().zip(&all).zip(&receipts) {
        let found = found.unwrap();
        assert_eq!(&found.capture, capture);
        assert_eq!(&found.body[..], &body[..]);
        assert_eq!(receipt.capture_id, capture.capture_id);
        assert_eq!(receipt.part, parts.parts[0].name);
    }
    assert_eq!(parts.captures().count(), 61);
}

#[test]
fn a_cut_at_every_byte_loses_the_last_frame_alone() {
    let folder = tempfile::tempdir().unwrap();
    let options = PartOptions::default();
    let mut writer = PartWriter::new(folder.path(), &run(), options, &Clock::System).unwrap();
    let mut durable: Vec<(u64, usize)> = Vec::new();
    let mut path = None;
    for n in 0..6 {
        drop(writer.append(&capture(n, &body(n)), &body(n), NOW).unwrap());
        if n % 2 == 1 {
            let receipts = writer.flush().unwrap();
            let file = folder.path().join(&receipts[0].part);
            durable.push((fs::metadata(&file).unwrap().len(), n as usize + 1));
            path = Some(file);
        }
    }
    drop(writer);
    let path = path.unwrap();
    let whole = fs::read(&path).unwrap();
    let parts = open_parts(folder.path(), &run()).unwrap();
    let head_end = parts.parts[0].units().next().unwrap().unwrap().end();
    drop(parts);
    let cuts = tempfile::tempdir().unwrap();
    let part = cuts.path().join(path.file_name().unwrap());
    let head_end = usize::try_from(head_end).unwrap();
    for cut in 0..=whole.len() {
        fs::write(&part, &whole[..cut]).unwrap();
        let opened = open_parts(cuts.path(), &run());
        if cut < head_end {
            assert_eq!(
                opened.unwrap_err().kind(),
                ErrorKind::CorruptData,
                "cut at {cut}"
            );
            continue;
        }
        let opened = opened.unwrap();
        let good = durable.iter().rfind(|(len, _)| *len <= cut as u64);
        let (good_len, expected) = good.copied().unwrap_or((head_end as u64, 0));
        assert_eq!(opened.captures().count(), expected, "cut at {cut}");
        assert_eq!(fs::metadata(&part).unwrap().len(), good_len);
        let kept = cuts.path().join(format!("{}.torn", opened.parts[0].name));
        if cut as u64 > good_len {
            assert_eq!(opened.torn.len(), 1);
            let good = usize::try_from(good_len).unwrap();
            assert_eq!(fs::read(&kept).unwrap(), &whole[good..cut]);
        } else {
            assert!(opened.torn.is_empty() || cut as u64 == good_len);
        }
        drop(opened);
        drop(fs::remove_file(&kept));
    }
}

#[test]
fn a_flip_before_the_last_frame_is_damage_and_no_torn_tail() {
    let folder = tempfile::tempdir().unwrap();
    write_part(folder.path(), &pages(0..9), 3);
    let path = open_parts(folder.path(), &run()).unwrap().parts[0]
        .path()
        .to_owned();
    let whole = fs::read(&path).unwrap();
    let mut ends: Vec<u64> = Vec::new();
    {
        let parts = open_parts(folder.path(), &run()).unwrap();
        ends.extend(parts.parts[0].units().map(|u| u.unwrap().end()));
    }
    let last = usize::try_from(ends[ends.len() - 2]).unwrap();
    let mut harmless = 0;
    for at in (0..whole.len()).step_by(3) {
        let mut bad = whole.clone();
        bad[at] ^= 0x10;
        fs::write(&path, &bad).unwrap();
        match open_parts(folder.path(), &run()) {
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::CorruptData, "flip at {at}");
                assert!(at < last, "flip at {at}: {e}");
                assert_eq!(
                    fs::read(&path).unwrap(),
                    bad,
                    "damage is not cut: flip at {at}"
                );
            }
            Ok(parts) if at >= last && !parts.torn.is_empty() => {
                assert_eq!((parts.torn.len(), parts.captures().count()), (1, 6));
            }
            Ok(parts) => {
                // A byte that says nothing of the content, such as the window of a frame.
                let found = parts.captures().map(|c| c.unwrap().capture);
                assert!(
                    found.eq(pages(0..9).into_iter().map(|(c, _)| c)),
                    "flip at {at}"
                );
                assert!(parts.torn.is_empty());
                harmless += 1;
            }
        }
    }
    assert!(
        harmless * 50 < whole.len() / 3,
        "{harmless} flips were not seen"
    );
}

#[test]
fn a_living_writers_part_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let options = PartOptions::default();
    let mut writer = PartWriter::new(folder.path(), &run(), options, &Clock::System).unwrap();
    drop(writer.append(&capture(1, b"a"), b"a", NOW).unwrap());
    let receipts = writer.flush().unwrap();
    let parts = open_parts(folder.path(), &run()).unwrap();
    assert_eq!(parts.live, [receipts[0].part.clone()]);
    assert!(parts.parts.is_empty());
    let terminals = std::iter::empty();
    let profile = crate::spec::PackProfile::Std;
    let sealed = crate::pack::seal::plan_pack(&run(), &parts, terminals, profile, folder.path());
    assert_eq!(sealed.err().unwrap().kind(), ErrorKind::Conflict);
    drop(writer);
    assert_eq!(ids(&open_parts(folder.path(), &run()).unwrap()).len(), 1);
}

#[test]
fn a_writer_never_goes_on_in_the_part_of_another() {
    let folder = tempfile::tempdir().unwrap();
    for n in 0..3 {
        write_part(folder.path(), &pages(n..n + 1), 1);
    }
    let parts = open_parts(folder.path(), &run()).unwrap();
    let names: BTreeSet<&str> = parts.parts.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names.len(), 3);
}

#[test]
fn files_without_a_name_yet_are_removed_and_others_kept() {
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("x-000001.tar.zst.new");
    let other = folder.path().join("notes.txt");
    fs::write(&new, b"half").unwrap();
    fs::write(&other, b"mine").unwrap();
    assert!(open_parts(folder.path(), &run()).unwrap().parts.is_empty());
    assert!(!new.exists() && other.exists());
    assert!(
        open_parts(&folder.path().join("absent"), &run())
            .unwrap()
            .parts
            .is_empty()
    );
}

#[test]
fn the_part_of_another_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_part(folder.path(), &pages(0..2), 1);
    let other = RunKey {
        run: "0900".parse().unwrap(),
        ..run()
    };
    assert_eq!(
        open_parts(folder.path(), &other).unwrap_err().kind(),
        ErrorKind::CorruptData
    );
}

#[test]
fn frames_and_parts_close_by_size_and_age() {
    let folder = tempfile::tempdir().unwrap();
    let options = PartOptions {
        frame_bytes: 1 << 20,
        part_bytes: 1 << 10,
        ..PartOptions::default()
    };
    let mut writer = PartWriter::new(folder.path(), &run(), options, &Clock::System).unwrap();
    let noise: Vec<u8> = (0..700_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 11).to_le_bytes()[0])
        .collect();
    assert!(
        writer
            .append(&capture(1, &noise), &noise, NOW)
            .unwrap()
            .is_empty()
    );
    let mut second = noise.clone();
    second[0] ^= 1;
    let closed = writer.append(&capture(2, &second), &second, NOW).unwrap();
    assert_eq!(closed.len(), 2, "1 MiB raw closes the frame");
    assert!(
        writer
            .append(&capture(3, b"x"), b"x", NOW)
            .unwrap()
            .is_empty()
    );
    assert!(
        writer
            .tick(Instant::from_micros(29_999_999))
            .unwrap()
            .is_empty()
    );
    let old = writer.tick(Instant::from_micros(30_000_000)).unwrap();
    assert_eq!(old.len(), 1, "30 s close it");
    assert_ne!(
        old[0].part, closed[0].part,
        "a full part is followed by the next"
    );
    assert!(writer.flush().unwrap().is_empty());
}

#[test]
fn a_large_body_goes_over_several_frames() {
    let folder = tempfile::tempdir().unwrap();
    let options = PartOptions {
        split_bytes: 4096,
        ..PartOptions::default()
    };
    let mut writer = PartWriter::new(folder.path(), &run(), options, &Clock::System).unwrap();
    let large: Vec<u8> = (0..30_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 11).to_le_bytes()[0])
        .collect();
    drop(writer.append(&capture(1, &large), &large, NOW).unwrap());
    drop(writer.flush().unwrap());
    drop(writer.append(&capture(2, b"small"), b"small", NOW).unwrap());
    let path = folder.path().join(&writer.finish().unwrap()[0].part);
    let whole = fs::read(&path).unwrap();
    let parts = open_parts(folder.path(), &run()).unwrap();
    let found: Vec<PartCapture> = parts.captures().map(Result::unwrap).collect();
    assert_eq!(found[0].body, Bytes::from(large));
    assert_eq!(found[1].body, Bytes::from_static(b"small"));
    drop(parts);
    for cut in (600..whole.len()).step_by(97) {
        fs::write(&path, &whole[..cut]).unwrap();
        let parts = open_parts(folder.path(), &run()).unwrap();
        assert!(parts.captures().all(|c| c.is_ok()), "cut at {cut}");
    }
}

#[test]
fn a_capture_that_lies_about_its_body_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = PartOptions::default();
    let mut writer = PartWriter::new(folder.path(), &run(), options, &Clock::System).unwrap();
    for (capture, body) in [
        (capture(1, b"a"), &b"b"[..]),
        (capture(1, b"a"), b""),
        (failure(1), b"b"),
    ] {
        let refused = writer.append(&capture, body, NOW).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    }
    drop(writer.append(&capture(1, b"a"), b"a", NOW).unwrap());
    assert_eq!(writer.flush().unwrap().len(), 1, "it goes on");
}

#[test]
fn tasks_share_frames_and_each_gets_its_receipt() {
    let folder = tempfile::tempdir().unwrap();
    let options = SharedPartOptions::default();
    let part = SharedPart::open(folder.path(), &run(), options, &Clock::System).unwrap();
    let part = std::sync::Arc::new(part);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let receipts = runtime.block_on(async {
        let mut tasks = Vec::new();
        for n in 0..200_u32 {
            let part = std::sync::Arc::clone(&part);
            tasks.push(tokio::spawn(async move {
                if n % 50 == 49 {
                    let lie = part
                        .append(capture(n, b"a"), Bytes::from_static(b"b"))
                        .await;
                    assert_eq!(lie.unwrap_err().kind(), ErrorKind::InvalidInput);
                }
                let receipt = part
                    .append(capture(n, &body(n)), body(n).into())
                    .await
                    .unwrap();
                assert_eq!(receipt.capture_id, capture(n, b"").capture_id);
                receipt
            }));
        }
        let mut receipts = Vec::new();
        for task in tasks {
            receipts.push(task.await.unwrap());
        }
        receipts
    });
    let frames: BTreeSet<u32> = receipts.iter().map(|r| r.frame).collect();
    assert!(
        frames.len() < 100,
        "{} frames for 200 captures",
        frames.len()
    );
    drop(part);
    let parts = open_parts(folder.path(), &run()).unwrap();
    assert_eq!(ids(&parts).into_iter().collect::<BTreeSet<_>>().len(), 200);
}
