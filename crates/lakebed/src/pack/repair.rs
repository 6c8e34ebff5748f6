//! Saving what can be saved of a damaged pack or part: every frame but the damaged ones, byte for byte.

use std::io::Write;

use crate::error::{Error, Result};
use crate::name::RequestKey;
use crate::pack::encode::{FrameTable, head_content, pack_head, terminals_content};
use crate::pack::frame::{FrameEncoder, Shape, shape_at};
use crate::pack::scan::{PackDamage, scan_with};
use crate::pack::source::ReadAt;
use crate::spec::{PackHead, PackKind, PackProfile, PackTrailer, RunKey, TAR_END_BYTES};

/// What a repair kept and lost.
#[derive(Debug, Clone, serde::Serialize)]
pub struct RepairOutcome {
    /// What the repaired pack says of itself.
    pub trailer: PackTrailer,
    /// What was wrong.
    pub damage: Vec<PackDamage>,
    /// Requests that are done and whose capture is lost; unknown where the terminals are lost, too.
    pub lost: Vec<RequestKey>,
    /// Whether it says how every request ended.
    pub has_terminals: bool,
}

/// Writes a sound pack of all whole frames of `source`; of a part, a part. `run` is whose pack it is, for
/// one whose head is lost.
///
/// # Errors
/// `InvalidInput` where the head is lost and no run is given; `Unavailable` where `out` cannot be written.
pub fn repair_pack<W: Write>(
    source: &dyn ReadAt,
    run: Option<&RunKey>,
    out: W,
) -> Result<RepairOutcome> {
    let scan = scan_with(source, run, &mut |_, _, _| Ok(()))?;
    let known = run.map(|run| pack_head(run, PackProfile::Std));
    let Some(head) = scan.head.or(known) else {
        return Err(Error::invalid("`PACK.json` of the pack is lost")
            .with("file", source.name())
            .hint("say whose it is: source, date and run"));
    };
    let mut copy = Copy {
        out,
        source,
        encoder: FrameEncoder::new(head.profile)?,
        table: FrameTable::default(),
    };
    copy.fresh(&head_content(&head)?)?;
    let is_pack = head.kind == PackKind::Pack;
    match scan.terminals_at {
        Some((offset, len)) => copy.old(offset, len)?,
        None if is_pack => {
            copy.fresh(&terminals_content(PackHead::member_time(&head.run), b"")?)?
        }
        None => {}
    }
    for unit in &scan.units {
        copy.old(unit.offset, unit.len)?;
    }
    if is_pack {
        copy.fresh(&[0; TAR_END_BYTES])?;
        let tail = std::mem::take(&mut copy.table).tail(&scan.trailer)?;
        copy.put(&tail)?;
    }
    Ok(RepairOutcome {
        trailer: scan.trailer,
        damage: scan.damage,
        lost: scan.lost,
        has_terminals: scan.terminals.is_some(),
    })
}

/// A file made of frames of another one.
struct Copy<'a, W> {
    out: W,
    source: &'a dyn ReadAt,
    encoder: FrameEncoder,
    table: FrameTable,
}

impl<W: Write> Copy<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out
            .write_all(bytes)
            .map_err(|e| Error::io("write the pack", "the repaired file", e))
    }

    /// A frame of this content.
    fn fresh(&mut self, raw: &[u8]) -> Result<()> {
        let frame = self.encoder.encode(raw)?;
        self.table.add(&frame, raw.len())?;
        self.put(&frame)
    }

    /// The frames that lie there.
    fn old(&mut self, offset: u64, len: u64) -> Result<()> {
        let mut at = offset;
        while at < offset + len {
            let Shape::Data { len, raw } = shape_at(self.source, at)? else {
                return Err(Error::corrupt("the pack changed while it was repaired"));
            };
            let frame = self
                .source
                .read_at(at, usize::try_from(len).unwrap_or(usize::MAX))?;
            self.table
                .add(&frame, usize::try_from(raw).unwrap_or(usize::MAX))?;
            self.put(&frame)?;
            at += len;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::pack::parts::open_parts;
    use crate::pack::samples::{pages, run, small_frames, write_part};
    use crate::pack::scan::scan_pack;
    use crate::pack::source::MemorySource;

    fn repaired(bytes: Vec<u8>, run: Option<&RunKey>) -> (Vec<u8>, RepairOutcome) {
        let mut out = Vec::new();
        let outcome = repair_pack(&MemorySource::new(bytes), run, &mut out).unwrap();
        (out, outcome)
    }

    #[test]
    fn a_whole_pack_stays_as_it_is() {
        let bytes = small_frames(0..20);
        let (out, outcome) = repaired(bytes.clone(), None);
        assert!(outcome.damage.is_empty() && outcome.lost.is_empty());
        assert!(out == bytes, "not a byte changes");
    }

    #[test]
    fn all_frames_but_the_damaged_are_saved() {
        let bytes = small_frames(0..10);
        let whole = scan_pack(&MemorySource::new(bytes.clone())).unwrap();
        for at in (0..bytes.len()).step_by(11) {
            let mut bad = bytes.clone();
            bad[at] ^= 0x40;
            let (out, outcome) = repaired(bad, Some(&run()));
            let scan = scan_pack(&MemorySource::new(out)).unwrap();
            let unknown = "`TERMINALS.jsonl` is missing or damaged";
            assert!(scan.damage.is_empty(), "byte {at}: {:?}", scan.damage);
            assert!(!outcome.damage.is_empty(), "byte {at}");
            let hit = |r: &&crate::spec::IndexRow| {
                (r.frame_offset..r.frame_offset + r.frame_len).contains(&(at as u64))
            };
            let lost = whole.rows.iter().filter(hit).count();
            assert_eq!(scan.rows.len(), whole.rows.len() - lost, "byte {at}");
            if outcome.has_terminals {
                assert_eq!(outcome.lost.len(), lost, "byte {at}");
            } else {
                assert!(
                    outcome.damage.iter().any(|d| d.what == unknown),
                    "byte {at}"
                );
            }
        }
    }

    #[test]
    fn a_pack_without_its_head_needs_a_run() {
        let mut bytes = small_frames(0..5);
        bytes[30] ^= 1;
        let refused = repair_pack(&MemorySource::new(bytes), None, Vec::new());
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    #[test]
    fn a_repaired_part_can_be_opened() {
        let folder = tempfile::tempdir().unwrap();
        write_part(folder.path(), &pages(0..9), 3);
        let path = open_parts(folder.path(), &run()).unwrap().parts[0]
            .path()
            .to_owned();
        let mut bytes = std::fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        std::fs::write(&path, &bytes).unwrap();
        assert!(open_parts(folder.path(), &run()).is_err());
        std::fs::write(&path, repaired(bytes, None).0).unwrap();
        assert_eq!(
            open_parts(folder.path(), &run())
                .unwrap()
                .captures()
                .count(),
            6
        );
    }
}
