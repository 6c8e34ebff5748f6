//! What was typed, kept for the next prompt.
//!
//! ```text
//! <state of the user>/lakebed/sql_history        one JSON text a line, oldest first
//! <state of the user>/lakebed/sql_history.lock   held while a line is added or old ones are dropped
//! ```
//!
//! A query may hold values of persons, so the file is the user's alone and lies neither in the project,
//! which goes into git, nor in the lake. Several prompts add to one file: each adds whole lines, none
//! writes over what another added.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Inputs that a prompt begins with; the file holds at most twice as many.
pub(super) const MAX_ENTRIES: usize = 2000;
/// Longer inputs are not kept.
const MAX_ENTRY_BYTES: usize = 1 << 20;

/// The file of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HistoryFile {
    path: PathBuf,
}

/// Where the user's programs keep what outlives a run and is no setting.
fn state_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let folder = |name: &str| {
        let path = PathBuf::from(variable(name)?);
        path.is_absolute().then_some(path)
    };
    folder("XDG_STATE_HOME")
        .or_else(|| folder("LOCALAPPDATA"))
        .or_else(|| Some(folder("HOME")?.join(".local").join("state")))
}

impl HistoryFile {
    /// The file by the environment; `None` where the user has no folder.
    pub(super) fn of_user() -> Option<Self> {
        let folder = state_folder(|name| std::env::var_os(name))?;
        Some(Self {
            path: folder.join("lakebed").join("sql_history"),
        })
    }

    /// Where it lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The newest inputs, oldest first; lines that cannot be read are left out.
    pub(super) fn load(&self) -> io::Result<Vec<String>> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        let (newest, lines) = newest_lines(&bytes);
        if lines > 2 * MAX_ENTRIES {
            self.drop_old()?;
        }
        let read = newest
            .into_iter()
            .filter_map(|l| serde_json::from_slice(l).ok());
        Ok(read.collect())
    }

    /// Adds an input.
    pub(super) fn add(&self, input: &str) -> io::Result<()> {
        if input.len() > MAX_ENTRY_BYTES {
            return Ok(());
        }
        let mut line = serde_json::to_vec(input)?;
        line.push(b'\n');
        let _lock = self.lock()?;
        let mut file = private().append(true).open(&self.path)?;
        file.write_all(&line)
    }

    fn drop_old(&self) -> io::Result<()> {
        let _lock = self.lock()?;
        // Another prompt may have added since.
        let bytes = fs::read(&self.path)?;
        let (newest, _) = newest_lines(&bytes);
        let temp = self.path.with_extension("tmp");
        let mut file = private().write(true).truncate(true).open(&temp)?;
        for line in newest {
            file.write_all(line)?;
            file.write_all(b"\n")?;
        }
        file.sync_all()?;
        fs::rename(&temp, &self.path)
    }

    fn lock(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = private()
            .append(true)
            .open(self.path.with_extension("lock"))?;
        file.lock()?;
        Ok(file)
    }
}

/// The last lines, and how many there are.
fn newest_lines(bytes: &[u8]) -> (VecDeque<&[u8]>, usize) {
    let (mut newest, mut lines) = (VecDeque::new(), 0);
    for line in bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        lines += 1;
        newest.push_back(line);
        if newest.len() > MAX_ENTRIES {
            newest.pop_front();
        }
    }
    (newest, lines)
}

/// Options of a file that only its user reads.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(dir: &tempfile::TempDir) -> HistoryFile {
        HistoryFile {
            path: dir.path().join("a").join("sql_history"),
        }
    }

    #[test]
    fn inputs_of_two_prompts_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(file(&dir).load().unwrap(), Vec::<String>::new());
        std::thread::scope(|scope| {
            for prompt in 0..4 {
                let file = file(&dir);
                scope.spawn(move || {
                    for n in 0..50 {
                        file.add(&format!("SELECT {prompt},\n'熱搜 {n}';")).unwrap();
                    }
                });
            }
        });
        let kept = file(&dir).load().unwrap();
        assert_eq!(kept.len(), 200);
        assert!(kept.contains(&"SELECT 3,\n'熱搜 49';".to_owned()));
    }

    #[test]
    fn old_inputs_go_and_damage_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let file = file(&dir);
        file.add("first").unwrap();
        let mut all = String::from("\"torn\n");
        for n in 0..2 * MAX_ENTRIES {
            all.push_str(&format!("\"{n}\"\n"));
        }
        fs::write(&file.path, all).unwrap();
        let kept = file.load().unwrap();
        assert_eq!(kept.len(), MAX_ENTRIES);
        assert_eq!(kept.last().unwrap(), &(2 * MAX_ENTRIES - 1).to_string());
        let bytes = fs::read(&file.path).unwrap();
        assert_eq!(newest_lines(&bytes).1, MAX_ENTRIES);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_reads_it() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let file = file(&dir);
        file.add("SELECT 1;").unwrap();
        let mode = fs::metadata(&file.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_relative_folder_counts_as_none() {
        let of = |pairs: &'static [(&str, &str)]| {
            state_folder(|name| {
                let found = pairs.iter().find(|(n, _)| *n == name);
                found.map(|(_, v)| OsString::from(v))
            })
        };
        assert_eq!(
            of(&[("XDG_STATE_HOME", "/x"), ("HOME", "/h")]),
            Some("/x".into())
        );
        assert_eq!(
            of(&[("XDG_STATE_HOME", "x"), ("HOME", "/h")]),
            Some("/h/.local/state".into())
        );
        assert_eq!(of(&[]), None);
    }
}
