//! Seals: the same bytes from any parts, refusals by name, every kind of capture back from the pack.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;
use crate::pack::encode::PackEncoder;
use crate::pack::erase::erase_captures;
use crate::pack::index::{PackIndex, write_index};
use crate::pack::part::{PartOptions, PartWriter};
use crate::pack::parts::open_parts;
use crate::pack::reader::PackReader;
use crate::pack::samples::{
    body, capture, failure, id, key, pack_of, pages, plan, run, terminal, write_part,
};
use crate::pack::scan::scan_pack;
use crate::pack::source::MemorySource;
use crate::spec::CaptureRecord;
use crate::time::Clock;

fn reader(bytes: Vec<u8>) -> PackReader {
    let source = Arc::new(MemorySource::new(bytes));
    let scan = scan_pack(&*source).unwrap();
    scan.check("memory").unwrap();
    let index = write_index(&scan.rows, &scan.trailer.content).unwrap();
    let index = PackIndex::from_bytes(index, "memory".to_owned()).unwrap();
    let rows: Vec<_> = index.rows().unwrap().map(Result::unwrap).collect();
    assert_eq!(rows, scan.rows, "an index gives back its rows");
    PackReader::new(source, Some(index)).unwrap()
}

#[test]
fn every_capture_comes_back_by_its_id_and_in_replay() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = pages(0..120);
    all.push((failure(120), Vec::new()));
    write_part(folder.path(), &all, 25);
    let mut plan = plan(folder.path(), 0..120);
    assert_eq!(
        (
            plan.stats().captures,
            plan.stats().unnamed,
            plan.stats().repeats
        ),
        (121, 1, 0)
    );
    let (bytes, trailer) = plan.write(Vec::new()).unwrap();
    assert_eq!((trailer.captures, trailer.requests), (121, 120));
    let reader = reader(bytes);
    assert_eq!(reader.trailer(), &trailer);
    for (capture, body) in &all {
        let got = reader.get(&capture.capture_id).unwrap();
        assert_eq!(&got.capture, capture);
        assert_eq!(&got.body[..], &body[..]);
        assert_eq!(reader.get_request(&capture.request_key).unwrap().len(), 1);
    }
    assert_eq!(
        reader.get(&id(999)).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    let mut replayed: Vec<CaptureRecord> = reader.replay().map(|c| c.unwrap().capture).collect();
    assert_eq!(replayed[0].kind.as_str(), "detail", "kinds lie together");
    replayed.sort_by_key(|c| c.fetched_at);
    let expected: Vec<CaptureRecord> = all.iter().map(|(c, _)| c.clone()).collect();
    assert_eq!(replayed, expected);
    let named = reader
        .scan()
        .unwrap()
        .rows
        .iter()
        .filter(|r| r.is_named)
        .count();
    assert_eq!(named, 120);
}

#[test]
fn equal_bodies_are_stored_once_and_captures_twice_handed_in_kept_once() {
    let folder = tempfile::tempdir().unwrap();
    write_part(folder.path(), &pages(0..50), 9);
    write_part(folder.path(), &pages(20..70), 9);
    let mut plan = plan(folder.path(), 0..70);
    assert_eq!((plan.stats().captures, plan.stats().repeats), (70, 30));
    let (bytes, trailer) = plan.write(Vec::new()).unwrap();
    let different: BTreeSet<Vec<u8>> = (0..70).map(body).filter(|b| !b.is_empty()).collect();
    assert_eq!(trailer.bodies, different.len() as u64);
    let rows = reader(bytes).scan().unwrap().rows;
    let stored = rows.iter().filter(|r| r.body_len > 0);
    let duplicates = stored.clone().filter(|r| r.is_duplicate).count();
    assert_eq!(stored.count() - duplicates, different.len());
}

#[test]
fn the_latest_of_two_captures_with_one_id_stays() {
    let folder = tempfile::tempdir().unwrap();
    let early = capture(1, b"early");
    let late = CaptureRecord {
        fetched_at: crate::time::Instant::from_micros(2_000_000_000_000_000),
        ..capture(1, b"late")
    };
    write_part(folder.path(), &[(late, b"late".to_vec())], 1);
    write_part(folder.path(), &[(early, b"early".to_vec())], 1);
    let bytes = plan(folder.path(), 1..2).write(Vec::new()).unwrap().0;
    assert_eq!(&reader(bytes).get(&id(1)).unwrap().body[..], b"late");
}

/// Two lives of a queue: the first one's answer is a page that was gone, by a clock that was ahead.
fn two_lives() -> [(CaptureRecord, Vec<u8>); 2] {
    let gone = CaptureRecord {
        status: Some(404),
        fetched_at: crate::time::Instant::from_micros(2_000_000_000_000_000),
        ..capture(1, b"gone")
    };
    [
        (gone, b"gone".to_vec()),
        (capture(1, b"good"), b"good".to_vec()),
    ]
}

/// What the books say: the page is done by this body with this status.
fn known(status: Option<u16>, body: Option<&[u8]>) -> TerminalRecord {
    let hash = |body: &[u8]| crate::pack::content::body_hash(body).unwrap();
    TerminalRecord {
        answer: Answer {
            status,
            body: body.and_then(|body| BodyMark::of(&hash(body))),
        },
        ..terminal(1)
    }
}

/// Attacks PAK-5 and PAK-10: no clock decides which response a request is done by, and each of them is held.
#[test]
fn the_response_that_the_books_know_has_the_id_and_the_others_are_held() {
    let mut made = Vec::new();
    for order in [[0, 1], [1, 0]] {
        let folder = tempfile::tempdir().unwrap();
        let lives = two_lives();
        for at in order {
            write_part(folder.path(), &lives[at..=at], 1);
            // Handed in again it is the same one.
            write_part(folder.path(), &lives[at..=at], 1);
        }
        let parts = open_parts(folder.path(), &run()).unwrap();
        let seal = |end: TerminalRecord| {
            let ends = std::iter::once(Ok(end));
            plan_pack(&run(), &parts, ends, PackProfile::Std, folder.path())
        };
        let good: &[u8] = b"good";
        for (status, body, named) in [
            (Some(200), Some(good), "good"),
            (Some(200), None, "good"),
            (None, Some(good), "good"),
            (Some(404), None, "gone"),
            // Nothing is known: the latest, as ever.
            (None, None, "gone"),
        ] {
            let mut plan = seal(known(status, body)).unwrap();
            let stats = plan.stats();
            assert_eq!((stats.captures, stats.unnamed, stats.repeats), (2, 1, 2));
            let bytes = plan.write(Vec::new()).unwrap().0;
            made.push(bytes.clone());
            let reader = reader(bytes);
            assert_eq!(&reader.get(&id(1)).unwrap().body[..], named.as_bytes());
            let scan = reader.scan().unwrap();
            let rows = scan.rows;
            let bodies: BTreeSet<Vec<u8>> = rows
                .iter()
                .map(|row| reader.read(row).unwrap().body.to_vec())
                .collect();
            assert_eq!(bodies, BTreeSet::from([b"good".to_vec(), b"gone".to_vec()]));
            let of_id: Vec<bool> = rows.iter().map(|r| r.capture_id == id(1)).collect();
            let is_named: Vec<bool> = rows.iter().map(|r| r.is_named).collect();
            assert_eq!(
                of_id, is_named,
                "the one that has the id is the one that is parsed"
            );
            assert_eq!(scan.terminals.unwrap(), [terminal(1)]);
        }
        // A response that no part holds is not made good by another one.
        for (status, body) in [(Some(200), Some(&b"other"[..])), (Some(500), None)] {
            let refused = seal(known(status, body)).err().unwrap();
            let detail = &refused.details()[0];
            assert!(
                detail.contains("the response that its books tell of"),
                "{detail}"
            );
        }
    }
    let (one, other) = made.split_at(5);
    assert_eq!(one, other, "in whichever order they came");
}

#[test]
fn terminals_that_do_not_agree_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = pages(0..10);
    all.push((failure(10), Vec::new()));
    write_part(folder.path(), &all, 3);
    let parts = open_parts(folder.path(), &run()).unwrap();
    let other = TerminalRecord {
        capture: Some(id(2)),
        ..terminal(1)
    };
    let unnamed = TerminalRecord {
        capture: None,
        ..terminal(1)
    };
    let dead = TerminalRecord {
        state: TerminalState::Dead,
        ..terminal(1)
    };
    for (wrong, what) in [
        (vec![terminal(77)], "in no part"),
        (vec![other], "of another request"),
        (vec![unnamed], "names no capture"),
        (vec![dead], "dead"),
        (vec![terminal(10)], "without a response"),
        (vec![terminal(1), terminal(1)], "ends twice"),
    ] {
        let terminals = wrong.clone().into_iter().map(Ok);
        let refused = plan_pack(&run(), &parts, terminals, PackProfile::Std, folder.path());
        let refused = refused.err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::PreconditionFailed);
        let detail = &refused.details()[0];
        assert!(
            detail.contains(what) && detail.contains(wrong[0].request_key.as_str()),
            "{detail}"
        );
    }
    let broken = std::iter::once(Err(Error::unavailable("the queue is gone")));
    let refused = plan_pack(&run(), &parts, broken, PackProfile::Std, folder.path());
    assert_eq!(refused.err().unwrap().kind(), ErrorKind::Unavailable);
}

#[test]
fn an_empty_run_has_a_pack() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = plan(folder.path(), 0..0).write(Vec::new()).unwrap().0;
    let reader = reader(bytes);
    assert_eq!(reader.replay().count(), 0);
    assert_eq!(reader.trailer().captures, 0);
}

#[test]
fn many_captures_of_one_body_do_not_make_one_endless_frame() {
    let mut pack = PackEncoder::begin(Vec::new(), &run(), PackProfile::Std).unwrap();
    pack.terminals(std::iter::empty(), 0, 0).unwrap();
    let mut digest = ContentDigest::default();
    for n in 0..3000 {
        let line = PackLine::Capture(Box::new(capture(n, b"the same")));
        let bytes = line.to_bytes().unwrap();
        digest.add_capture(line.capture_id(), &bytes);
        pack.capture(&line, &bytes, || Ok(b"the same".to_vec()))
            .unwrap();
    }
    let (bytes, trailer) = pack.finish(digest.finish(&run())).unwrap();
    assert!((2..6).contains(&trailer.bodies), "{}", trailer.bodies);
    let scan = scan_pack(&MemorySource::new(bytes)).unwrap();
    scan.check("memory").unwrap();
    assert_eq!(scan.rows.iter().filter(|r| r.is_duplicate).count(), 2999);
}

#[test]
fn a_body_beyond_a_frame_is_read_by_one_read() {
    let large: Vec<u8> = (0..300_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 9).to_le_bytes()[0])
        .collect();
    let mut pack = PackEncoder::begin(Vec::new(), &run(), PackProfile::Std)
        .unwrap()
        .split_at(64 << 10);
    pack.terminals(std::iter::empty(), 0, 0).unwrap();
    let mut digest = ContentDigest::default();
    for (n, body) in [
        (1, b"small".to_vec()),
        (2, large.clone()),
        (3, b"after".to_vec()),
    ] {
        let line = PackLine::Capture(Box::new(capture(n, &body)));
        let bytes = line.to_bytes().unwrap();
        digest.add_capture(line.capture_id(), &bytes);
        pack.capture(&line, &bytes, || Ok(body)).unwrap();
    }
    let (bytes, _) = pack.finish(digest.finish(&run())).unwrap();
    let reader = reader(bytes);
    let row = reader
        .index()
        .unwrap()
        .find_capture(&id(2))
        .unwrap()
        .unwrap();
    assert!(row.frame_count > 3, "{}", row.frame_count);
    assert_eq!(&reader.get(&id(2)).unwrap().body[..], &large[..]);
    assert_eq!(&reader.get(&id(3)).unwrap().body[..], b"after");
    assert_eq!(reader.replay().count(), 3);
}

#[test]
fn deep_packs_are_smaller_and_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    write_part(folder.path(), &pages(0..80), 9);
    let parts = open_parts(folder.path(), &run()).unwrap();
    let mut sizes = Vec::new();
    let mut contents = Vec::new();
    for profile in [PackProfile::Std, PackProfile::Deep] {
        let terminals = (0..80).map(|n| Ok(terminal(n)));
        let mut plan = plan_pack(&run(), &parts, terminals, profile, folder.path()).unwrap();
        let bytes = plan.write(Vec::new()).unwrap().0;
        sizes.push(bytes.len());
        contents.push(plan.content().clone());
        reader(bytes);
    }
    assert!(sizes[1] < sizes[0], "{sizes:?}");
    assert_eq!(contents[0], contents[1]);
}

#[test]
fn keys_of_samples_differ() {
    assert_ne!(key(1), key(2));
    assert_eq!(pack_of(0..5), pack_of(0..5));
}

/// Redirects, bodies, later attempts, the dead, and ends that say more than their captures.
#[test]
fn terminals_come_back_whatever_their_form() {
    let with_hop = |n, attempt, hop, method: &str| {
        let mut record = CaptureRecord {
            attempt,
            hop,
            method: method.to_owned(),
            url: format!("https://{}.example/{n}", ["z", "a"][hop as usize % 2]),
            capture_id: capture_id(&run(), &key(n), attempt, hop),
            ..capture(n, &body(n))
        };
        record.kind = "detail".parse().unwrap();
        (record, body(n))
    };
    let all = [
        with_hop(1, 1, 0, "GET"),
        with_hop(1, 2, 0, "POST"),
        with_hop(1, 2, 1, "GET"),
        with_hop(2, 1, 0, "GET"),
        (failure(3), Vec::new()),
        with_hop(4, 1, 1, "GET"),
    ];
    let folder = tempfile::tempdir().unwrap();
    write_part(folder.path(), &all, 2);
    let end = |n, attempts, capture: usize, method: &str, url: &str| TerminalRecord {
        method: method.to_owned(),
        url: url.to_owned(),
        attempts,
        capture: Some(all[capture].0.capture_id.clone()),
        ..terminal(n)
    };
    let dead = TerminalRecord {
        state: TerminalState::Dead,
        class: Some("connect".parse().unwrap()),
        capture: None,
        ..terminal(3)
    };
    let mut ends = vec![
        end(1, 2, 2, "POST", "https://z.example/1"),
        end(2, 1, 3, "GET", "https://elsewhere.example/2"),
        dead,
        end(4, 1, 5, "GET", "https://z.example/4"),
    ];
    let parts = open_parts(folder.path(), &run()).unwrap();
    let given = ends.clone().into_iter().map(Ok);
    let plan = plan_pack(&run(), &parts, given, PackProfile::Std, folder.path());
    let bytes = plan.unwrap().write(Vec::new()).unwrap().0;
    ends.sort_by(|a, b| a.request_key.cmp(&b.request_key));
    let scan = scan_pack(&MemorySource::new(bytes.clone())).unwrap();
    scan.check("memory").unwrap();
    assert_eq!(scan.terminals.unwrap(), ends);
    let named: BTreeSet<CaptureId> = (scan.rows.into_iter().filter(|r| r.is_named))
        .map(|r| r.capture_id)
        .collect();
    let expected = ends.iter().filter_map(|t| t.capture.clone()).collect();
    assert_eq!(named, expected);
    let text = crate::pack::frame::decode_up_to(&bytes, 1 << 20).unwrap();
    let short = format!(
        "{{\"request_key\":\"{}\",\"attempts\":2,\"hop\":1}}\n",
        key(1)
    );
    let contains = |what: &str| memchr::memmem::find(&text, what.as_bytes()).is_some();
    assert!(
        contains(&short) && contains("elsewhere"),
        "only what is said by captures is left out"
    );

    // What is erased says nothing of its URL, and its request keeps its end.
    let first = BTreeSet::from([all[1].0.capture_id.clone(), all[2].0.capture_id.clone()]);
    let mut out = Vec::new();
    drop(erase_captures(&MemorySource::new(bytes), &first, &mut out).unwrap());
    let scan = scan_pack(&MemorySource::new(out)).unwrap();
    scan.check("memory").unwrap();
    for end in &mut ends {
        if end.request_key == key(1) {
            end.url.clear();
        }
    }
    assert_eq!(scan.terminals.unwrap(), ends);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_same_captures_make_the_same_bytes_however_they_were_written(
        order in Just((0..60_u32).collect::<Vec<_>>()).prop_shuffle(),
        writers in 1..5_usize,
        flush_every in 1..20_usize,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let now = crate::time::Instant::from_micros(0);
        let options = PartOptions { part_bytes: 4096, ..PartOptions::default() };
        let mut all: Vec<PartWriter> = (0..writers)
            .map(|_| PartWriter::new(folder.path(), &run(), options, &Clock::System).unwrap())
            .collect();
        for (place, n) in order.iter().enumerate() {
            let writer = &mut all[place % writers];
            drop(writer.append(&capture(*n, &body(*n)), &body(*n), now).unwrap());
            if place % flush_every == 0 {
                drop(writer.flush().unwrap());
            }
        }
        for writer in all {
            drop(writer.finish().unwrap());
        }
        let bytes = plan(folder.path(), 0..60).write(Vec::new()).unwrap().0;
        prop_assert_eq!(bytes, pack_of(0..60));
    }
}
