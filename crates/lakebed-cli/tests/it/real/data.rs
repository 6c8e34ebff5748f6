//! Where the real data lies, and readers of its files that share no code with Lakebed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Environment variable of the folder that holds `data/`.
const SHARED_VARIABLE: &str = "LAKEBED_SHARED";

/// One file of a set: the day (or hour) is its name.
#[derive(Debug, Clone)]
pub(super) struct DayFile {
    /// The file's name without extension: `2020-03-05`, `2024-05-21T15`.
    pub(super) day: String,
    /// Where it lies.
    pub(super) path: PathBuf,
}

impl DayFile {
    /// The path as an argument.
    pub(super) fn arg(&self) -> &str {
        self.path.to_str().unwrap()
    }

    /// The date of the name.
    pub(super) fn date(&self) -> &str {
        &self.day[..10]
    }
}

/// The folder of a data set; it must be there: a test on real data never passes without it.
#[track_caller]
pub(super) fn set(name: &str) -> PathBuf {
    let shared = std::env::var_os(SHARED_VARIABLE).map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let folder = shared.join("data").join(name);
    assert!(
        folder.is_dir(),
        "the real data set `{name}` is not at `{}`: put the folder `shared` beside the repository, or let {SHARED_VARIABLE} name it",
        folder.display()
    );
    folder.canonicalize().unwrap()
}

/// The files of a folder with that extension, by name.
#[track_caller]
pub(super) fn files(folder: &Path, extension: &str) -> Vec<DayFile> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == extension) {
            let day = path.file_stem().unwrap().to_str().unwrap().to_owned();
            found.push(DayFile { day, path });
        }
    }
    found.sort_by(|a, b| a.day.cmp(&b.day));
    assert!(
        !found.is_empty(),
        "no .{extension} in `{}`",
        folder.display()
    );
    found
}

/// The file of one day.
#[track_caller]
pub(super) fn file(folder: &Path, day: &str, extension: &str) -> DayFile {
    let path = folder.join(format!("{day}.{extension}"));
    assert!(path.is_file(), "`{}` is not there", path.display());
    DayFile {
        day: day.to_owned(),
        path,
    }
}

/// The records of a JSON array, or of the array at a pointer into a document.
#[track_caller]
pub(super) fn records(path: &Path, pointer: &str) -> Vec<Value> {
    let whole: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let found = whole.pointer(pointer).and_then(Value::as_array);
    found
        .unwrap_or_else(|| panic!("no records in `{}`", path.display()))
        .clone()
}

/// A CSV file read whole: every cell as text.
#[derive(Debug)]
pub(super) struct Cells {
    /// Names of the columns.
    pub(super) header: Vec<String>,
    /// Rows in order.
    pub(super) rows: Vec<Vec<String>>,
}

impl Cells {
    /// Reads UTF-8, or windows-1252 where it is no UTF-8; a byte order mark is dropped.
    #[track_caller]
    pub(super) fn read(path: &Path, delimiter: char) -> Self {
        let bytes = fs::read(path).unwrap();
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(e) => e.as_bytes().iter().map(|b| windows_1252(*b)).collect(),
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut rows = split_cells(text, delimiter);
        let header = rows.remove(0);
        assert!(
            rows.iter().all(|r| r.len() == header.len()),
            "{}",
            path.display()
        );
        Self { header, rows }
    }

    /// The cells of a column, in the order of the rows.
    #[track_caller]
    pub(super) fn column(&self, name: &str) -> Vec<&str> {
        let at = self.header.iter().position(|h| h == name);
        let at = at.unwrap_or_else(|| panic!("no column `{name}` in {:?}", self.header));
        self.rows.iter().map(|r| r[at].as_str()).collect()
    }

    /// The sum of a column of whole numbers, `12.0` included; empty cells count nothing.
    #[track_caller]
    pub(super) fn sum(&self, name: &str) -> i64 {
        let whole = |cell: &&str| !cell.is_empty();
        let number = |cell: &str| -> i64 { cell.trim_end_matches(".0").parse().unwrap() };
        self.column(name)
            .into_iter()
            .filter(whole)
            .map(number)
            .sum()
    }

    /// How many cells of a column are so.
    #[track_caller]
    pub(super) fn count(&self, name: &str, is: impl Fn(&str) -> bool) -> usize {
        self.column(name)
            .into_iter()
            .filter(|cell| is(cell))
            .count()
    }
}

/// The one character of 0x80 to 0x9F that stands in these files, and Latin-1.
fn windows_1252(byte: u8) -> char {
    match byte {
        0x93 => '\u{201c}',
        0x80..=0x9f => panic!("byte {byte:#x} is new to this reader"),
        other => char::from(other),
    }
}

/// RFC 4180 with a free choice of delimiter; blank lines are no rows.
fn split_cells(text: &str, delimiter: char) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut row: Vec<String> = Vec::new();
    let mut cell = String::new();
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                cell.push('"');
                chars.next();
            }
            '"' if quoted => quoted = false,
            c if quoted => cell.push(c),
            '"' if cell.is_empty() => quoted = true,
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' => {
                if !row.is_empty() || !cell.is_empty() {
                    row.push(std::mem::take(&mut cell));
                    rows.push(std::mem::take(&mut row));
                }
            }
            c if c == delimiter => row.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    if !row.is_empty() || !cell.is_empty() {
        row.push(cell);
        rows.push(row);
    }
    rows
}

/// Rows of a query by their first column.
#[track_caller]
pub(super) fn by_key(rows: &[Value], key: &str, value: &str) -> BTreeMap<String, u64> {
    let mut map = BTreeMap::new();
    for row in rows {
        let name = match &row[key] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let twice = map.insert(name, row[value].as_u64().unwrap());
        assert!(twice.is_none(), "two rows of one key: {row}");
    }
    map
}

/// A list as a multiset, for comparing what was stored with what came in.
pub(super) fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort_unstable();
    rows
}

/// Asserts that two multisets are equal and names the first difference alone: these lists are long.
#[track_caller]
pub(super) fn assert_same(stored: Vec<String>, expected: Vec<String>) {
    let (stored, expected) = (sorted(stored), sorted(expected));
    if let Some((s, e)) = stored.iter().zip(&expected).find(|(s, e)| s != e) {
        panic!("stored   {s}\nexpected {e}");
    }
    assert_eq!(stored.len(), expected.len());
}

#[test]
fn cells_are_read_with_quotes_breaks_and_blank_lines() {
    let rows = split_cells("a;b\r\n\"x \"\"y\"\"\nz\";1\n\n;\nlast;2", ';');
    assert_eq!(
        rows,
        [["a", "b"], ["x \"y\"\nz", "1"], ["", ""], ["last", "2"]]
    );
}
