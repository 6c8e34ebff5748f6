//! Damage and hostile files: noticed always, costly never.

use std::sync::Mutex;

use super::*;
use crate::pack::index::write_index;
use crate::pack::samples::{id, pack_of, small_frames};
use crate::pack::source::MemorySource;

/// Counts its reads.
#[derive(Debug)]
struct Counting {
    inner: MemorySource,
    reads: Mutex<Vec<(u64, usize)>>,
}

impl ReadAt for Counting {
    fn size(&self) -> u64 {
        self.inner.size()
    }
    fn read_at(&self, offset: u64, length: usize) -> Result<Bytes> {
        self.reads.lock().unwrap().push((offset, length));
        self.inner.read_at(offset, length)
    }
    fn name(&self) -> String {
        self.inner.name()
    }
}

#[test]
fn one_capture_is_one_read() {
    let bytes = pack_of(0..100);
    let scan = scan_pack(&MemorySource::new(bytes.clone())).unwrap();
    let index = write_index(&scan.rows, &scan.trailer.content).unwrap();
    let index = PackIndex::from_bytes(index, "memory".to_owned()).unwrap();
    let source = Arc::new(Counting {
        inner: MemorySource::new(bytes),
        reads: Mutex::default(),
    });
    let reader = PackReader::new(Arc::clone(&source) as Arc<dyn ReadAt>, Some(index)).unwrap();
    source.reads.lock().unwrap().clear();
    for n in 0..100 {
        drop(reader.get(&id(n)).unwrap());
    }
    assert_eq!(source.reads.lock().unwrap().len(), 100);
}

#[test]
fn every_flip_is_noticed_and_costs_one_frame_at_most() {
    let bytes = small_frames(0..9);
    let whole = scan_pack(&MemorySource::new(bytes.clone())).unwrap();
    assert!(whole.is_whole(), "{:?}", whole.damage);
    let mut by_frame: std::collections::BTreeMap<u64, usize> = std::collections::BTreeMap::new();
    for row in &whole.rows {
        *by_frame.entry(row.frame_offset).or_default() += 1;
    }
    assert!(by_frame.len() > 3, "{} frames", by_frame.len());
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1 << (at % 8);
        let scan = scan_pack(&MemorySource::new(bad)).unwrap();
        assert!(
            !scan.damage.is_empty(),
            "the flip of byte {at} was not noticed"
        );
        let lost = whole.rows.len() - scan.rows.len();
        let of_frame = whole
            .rows
            .iter()
            .find(|r| (r.frame_offset..r.frame_offset + r.frame_len).contains(&(at as u64)));
        let most = of_frame.map_or(0, |r| by_frame[&r.frame_offset]);
        assert!(
            lost <= most,
            "the flip of byte {at} lost {lost} captures, its frame has {most}"
        );
    }
}

#[test]
fn every_cut_is_noticed_and_what_is_before_it_stays() {
    let bytes = small_frames(0..12);
    let whole = scan_pack(&MemorySource::new(bytes.clone())).unwrap();
    for cut in (0..bytes.len()).step_by(5) {
        let cut_source = MemorySource::new(bytes[..cut].to_vec());
        assert!(
            PackReader::new(Arc::new(cut_source.clone()), None).is_err(),
            "cut at {cut}"
        );
        let scan = scan_pack(&cut_source).unwrap();
        assert!(!scan.is_whole(), "cut at {cut}");
        let before = |r: &&IndexRow| r.frame_offset + r.frame_len <= cut as u64;
        assert_eq!(
            scan.rows.len(),
            whole.rows.iter().filter(before).count(),
            "cut at {cut}"
        );
    }
}

#[test]
fn an_index_cannot_lead_astray() {
    let bytes = pack_of(0..40);
    let scan = scan_pack(&MemorySource::new(bytes.clone())).unwrap();
    let reader = PackReader::new(Arc::new(MemorySource::new(bytes)), None).unwrap();
    let row = scan.rows.iter().find(|r| r.body_len > 0).unwrap();
    assert!(reader.read(row).is_ok());
    let other = scan
        .rows
        .iter()
        .find(|r| r.capture_id != row.capture_id)
        .unwrap();
    for wrong in [
        IndexRow {
            frame_len: u64::MAX,
            ..row.clone()
        },
        IndexRow {
            frame_offset: u64::MAX,
            ..row.clone()
        },
        IndexRow {
            frame_len: row.frame_len + 1,
            ..row.clone()
        },
        IndexRow {
            body_len: u64::MAX,
            ..row.clone()
        },
        IndexRow {
            body_len: row.body_len + 1,
            ..row.clone()
        },
        IndexRow {
            body_offset: Some(u64::MAX),
            ..row.clone()
        },
        IndexRow {
            body_offset: None,
            ..row.clone()
        },
        IndexRow {
            line_offset: u64::MAX,
            ..row.clone()
        },
        IndexRow {
            line_len: row.line_len - 5,
            ..row.clone()
        },
        IndexRow {
            capture_id: other.capture_id.clone(),
            ..row.clone()
        },
        IndexRow {
            frame_blake3: ContentHash::of(b"x"),
            ..row.clone()
        },
    ] {
        assert!(reader.read(&wrong).is_err(), "{wrong:?}");
    }
    let another = scan_pack(&MemorySource::new(pack_of(0..3))).unwrap();
    let index = write_index(&another.rows, &another.trailer.content).unwrap();
    let index = PackIndex::from_bytes(index, "memory".to_owned()).unwrap();
    let source = Arc::new(MemorySource::new(pack_of(0..40)));
    assert!(
        PackReader::new(source, Some(index)).is_err(),
        "the index of another pack"
    );
    assert!(PackIndex::from_bytes(b"PAR1".to_vec(), "x".to_owned()).is_err());
}

#[test]
fn hostile_seek_tables_are_refused() {
    let bytes = pack_of(0..10);
    let size = bytes.len();
    let mut rows = crate::spec::decode_seek_table(
        &bytes[size - crate::spec::seek_table_bytes(&bytes[size - 9..]).unwrap()..],
    )
    .unwrap();
    let table_len = crate::spec::encode_seek_table(&rows).unwrap().len();
    let last = rows.len() - 1;
    for (index, compressed) in [(0, u32::MAX), (last, u32::MAX), (last, 0), (0, 0)] {
        let kept = rows[index];
        rows[index].compressed = compressed;
        let mut bad = bytes[..size - table_len].to_vec();
        bad.extend(crate::spec::encode_seek_table(&rows).unwrap());
        assert!(PackReader::new(Arc::new(MemorySource::new(bad.clone())), None).is_err());
        assert!(!scan_pack(&MemorySource::new(bad)).unwrap().is_whole());
        rows[index] = kept;
    }
    for junk in [&b""[..], b"x", &[0; 100]] {
        assert!(PackReader::new(Arc::new(MemorySource::new(junk.to_vec())), None).is_err());
    }
}
