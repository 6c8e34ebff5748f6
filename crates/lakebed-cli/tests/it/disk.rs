//! A disk that fills up, at every stage of a call: a clear error, nothing half visible, and the same
//! call succeeds once there is room. Needs root, as CI has it: a small tmpfs is mounted.

#![allow(
    clippy::unwrap_used,
    reason = "a helper of tests ends the test where it cannot go on"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::lake::TestLake;

const DATASET: &str = "clean/site";
const FIELDS: &str = "[[field]]\nid = 1\nname = \"k\"\ntype = \"int\"\n\n[[field]]\nid = 2\nname = \"t\"\ntype = \"string\"\n";

/// A mounted tmpfs, unmounted at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, kib: u64) -> Self {
        std::fs::create_dir_all(at).unwrap();
        let size = format!("size={kib}k");
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(at)
            .status()
            .unwrap();
        assert!(
            status.success(),
            "a tmpfs must be mountable: run the tests as root"
        );
        Self(at.to_owned())
    }

    /// Leaves about `kib` free.
    fn fill_but(&self, kib: usize) {
        self.make_room();
        let filler = self.0.join("filler");
        let mut bytes = vec![b'x'; free_kib(&self.0).saturating_sub(kib) * 1024];
        while std::fs::write(&filler, &bytes).is_err() {
            bytes.truncate(bytes.len().saturating_sub(4096));
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.join("filler")).ok();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.0).status().ok();
    }
}

fn free_kib(at: &Path) -> usize {
    let out = Command::new("df")
        .arg("--output=avail")
        .arg(at)
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().nth(1).unwrap().trim().parse().unwrap()
}

/// Text that does not compress: hashes of numbers.
fn lines(n: u32) -> String {
    (0..n)
        .map(|k| {
            format!(
                "{{\"k\":{k},\"t\":\"{}\"}}\n",
                blake3::hash(&k.to_le_bytes())
            )
        })
        .collect()
}

#[test]
fn a_full_disk_is_told_and_leaves_nothing_half_visible() {
    let lake = TestLake::without_project();
    let disk = SmallDisk::mount(&lake.lake(), 4096);
    lake.run(&[
        "init",
        lake.path_text("project").as_str(),
        "--time-zone",
        "UTC",
    ])
    .ok();
    let lake = lake.dataset(DATASET, FIELDS);
    lake.file("a.jsonl", lines(10));
    lake.file("b.jsonl", lines(9000));
    lake.ingest(DATASET, &["a.jsonl", "--date", "2026-11-29"])
        .ok();
    // Room for nothing, for the folders, for half of the data file.
    for kib in [0, 8, 40, 200] {
        disk.fill_but(kib);
        let run = lake.ingest(DATASET, &["b.jsonl", "--date", "2026-11-29"]);
        let run = run.code(4);
        assert!(
            run.stderr.contains("hint: free some space"),
            "{kib} KiB: {run}"
        );
        disk.make_room();
        assert_eq!(
            lake.sql_one("SELECT count(*) AS n FROM clean.site"),
            "10",
            "{kib} KiB"
        );
        lake.run(&["audit", "--repair"]);
        lake.assert_clean();
    }
    let again = lake
        .ingest(DATASET, &["b.jsonl", "--date", "2026-11-29"])
        .ok()
        .json();
    assert_eq!(again["rows"], 9000);
    assert_eq!(lake.sql_one("SELECT count(*) AS n FROM clean.site"), "9010");
    lake.assert_clean();
}
