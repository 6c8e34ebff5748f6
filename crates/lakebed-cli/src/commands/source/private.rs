//! Whether what stands in `lakebed.local.toml` is kept in git nevertheless.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lakebed::config::Project;
use lakebed::{Error, Result};
use percent_encoding::percent_decode_str;

use crate::table::count;

/// The file whose values are private.
const LOCAL_FILE: &str = "lakebed.local.toml";
/// Shorter values stand in any text.
const MIN_CHARS: usize = 6;
/// Longer files are no text that somebody wrote.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// What a look found.
pub(super) struct Found {
    /// Where private values stand, in words; the values themselves are not told.
    pub(super) leaks: Vec<String>,
    values: usize,
    files: usize,
    is_git: bool,
}

impl Found {
    /// What was looked at.
    pub(super) fn looked(&self) -> String {
        let values = count(self.values as u64, "private value");
        let files = count(self.files as u64, "file");
        match self.is_git {
            true => format!("{values}, none in the {files} that git keeps"),
            false => format!("{values}, none in {files}; the project is not in git yet"),
        }
    }
}

/// Looks for private values in the files that git keeps; where there is no git, in those it would.
pub(super) fn find_private(project: &Project) -> Result<Found> {
    let root = project.root();
    let values = private_values(&root.join(LOCAL_FILE))?;
    let kept = git_files(root);
    let is_git = kept.is_some();
    let files = match kept {
        Some(files) => files,
        None => written_files(project)?,
    };
    let mut leaks = Vec::new();
    for file in &files {
        let shown = file.strip_prefix(root).unwrap_or(file).display();
        if file.ends_with(LOCAL_FILE) {
            leaks.push(format!("{shown} itself is kept in git"));
            continue;
        }
        // Git may know of files that are gone.
        let Ok(meta) = fs::metadata(file) else {
            continue;
        };
        if !meta.is_file() || meta.len() > MAX_FILE_BYTES {
            continue;
        }
        let bytes = fs::read(file).map_err(|e| Error::io("read the file", file.display(), e))?;
        for (key, value) in &values {
            let hit = bytes
                .windows(value.len())
                .position(|w| w == value.as_bytes());
            if let Some(at) = hit {
                let line = bytes[..at].iter().filter(|b| **b == b'\n').count() + 1;
                leaks.push(format!("{shown}, line {line}: the value of `{key}`"));
            }
        }
    }
    Ok(Found {
        leaks,
        values: values.len(),
        files: files.len(),
        is_git,
    })
}

/// Texts of the local file that would give something away, with their keys.
fn private_values(path: &Path) -> Result<Vec<(String, String)>> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io("read the file", path.display(), e)),
    };
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| {
        Error::invalid(format!("read the settings: {}", e.message())).with("file", path.display())
    })?;
    let mut values = Vec::new();
    for (key, value) in &table {
        collect(key, value, &mut values);
    }
    values.retain(|(_, value)| value.chars().count() >= MIN_CHARS);
    values.sort();
    values.dedup();
    Ok(values)
}

fn collect(key: &str, value: &toml::Value, into: &mut Vec<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                collect(&format!("{key}.{name}"), value, into);
            }
        }
        toml::Value::Array(values) => values.iter().for_each(|v| collect(key, v, into)),
        toml::Value::String(text) => {
            let is_secret = key.starts_with("secrets.");
            let is_proxy = key.ends_with(".proxy");
            // Of a place of a database, its password alone: the rest may stand in a manual.
            match password_of(text) {
                Some(password) => into.push((key.to_owned(), password)),
                None if is_secret || is_proxy => into.push((key.to_owned(), text.clone())),
                None => {}
            }
        }
        _ => {}
    }
}

fn password_of(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (login, _) = authority.rsplit_once('@')?;
    let (_, password) = login.split_once(':')?;
    Some(
        percent_decode_str(password)
            .decode_utf8_lossy()
            .into_owned(),
    )
}

/// The files that git keeps; `None` where the project is not in git.
fn git_files(root: &Path) -> Option<Vec<PathBuf>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .stdin(std::process::Stdio::null())
        .output()
        .ok()
        .filter(|o| o.status.success())?;
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names = names.split('\0').filter(|name| !name.is_empty());
    Some(names.map(|name| root.join(name)).collect())
}

/// What a team writes: the settings and everything of the sources.
fn written_files(project: &Project) -> Result<Vec<PathBuf>> {
    let mut files = vec![project.root().join("lakebed.toml")];
    let mut folders = vec![project.sources_dir()];
    while let Some(folder) = folders.pop() {
        let failed = |e| Error::io("list the folder", folder.display(), e);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            match entry.file_type().map_err(failed)?.is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    Ok(files)
}
