//! SQL tests as text: `tests/slt/*.slt`, each query over one small lake.
//!
//! The form is that of sqllogictest, cut down to what is needed (decision 0010). Records are
//! separated by empty lines; `#` begins a comment line.
//!
//! ```text
//! query [rowsort] [files=N]      the answer, as the text table of the command shows it
//! SELECT dt, 標題 FROM clean.weibo
//! ----
//! dt         | 標題              names of columns, then rows; blanks beside `|` do not count
//! 2024-03-01 | 甲
//!
//! error not_found                the kind of the error
//! SELECT * FROM clean.webo
//! ----
//! `clean.webo`                   each line stands in the message or in a hint
//! ```

use std::fmt::Write;
use std::path::{Path, PathBuf};

use lakebed_query::write_table;
use serde_json::json;

use crate::retyped::goods;
use crate::support::{TestLake, field, with_members};

/// A record of a file.
struct Case {
    line: usize,
    head: String,
    sql: String,
    want: Vec<String>,
}

impl Case {
    fn option(&self, name: &str) -> Option<&str> {
        let mut words = self.head.split_whitespace().skip(1);
        words.find_map(|word| word.strip_prefix(name))
    }
}

fn parse(text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.starts_with('#'));
    while let Some((at, head)) = lines.next() {
        if head.trim().is_empty() {
            continue;
        }
        let mut rest = lines.by_ref().map(|(_, line)| line);
        let sql: Vec<&str> = rest.by_ref().take_while(|line| *line != "----").collect();
        let want = rest.take_while(|line| !line.trim().is_empty());
        cases.push(Case {
            line: at + 1,
            head: head.to_owned(),
            sql: sql.join("\n"),
            want: want.map(cells).collect(),
        });
    }
    cases
}

/// The cells of a line without the blanks that align them.
fn cells(line: &str) -> String {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    cells.join(" | ").trim_end().to_owned()
}

async fn answer(t: &TestLake, case: &Case) -> Result<Vec<String>, String> {
    let said = |e: lakebed::Error| format!("{e} {:?}", e.hints());
    let result = t.query(&case.sql).await.map_err(said)?;
    if let Some(want) = case.option("files=") {
        let read = result.stats().files_read().to_string();
        if read != want {
            return Err(format!("{read} files are read"));
        }
    }
    let mut out = Vec::new();
    write_table(result, &mut out).await.map_err(said)?;
    let text = String::from_utf8(out).unwrap();
    let mut lines: Vec<String> = text.lines().map(cells).collect();
    // The rule below the names.
    lines.remove(1);
    Ok(lines)
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    if let Some(rows) = lines.get_mut(1..) {
        rows.sort();
    }
    lines
}

async fn query(t: &TestLake, case: &Case) -> Result<(), String> {
    let (mut got, mut want) = (answer(t, case).await?, case.want.clone());
    if case.option("rowsort").is_some() {
        (got, want) = (sorted(got), sorted(want));
    }
    match got == want {
        true => Ok(()),
        false => Err(format!("  {}", got.join("\n  "))),
    }
}

async fn error(t: &TestLake, case: &Case) -> Result<(), String> {
    let Err(e) = t.try_rows(&case.sql).await else {
        return Err("the query is answered".to_owned());
    };
    let text = format!("{e}\n{}", e.hints().join("\n"));
    let kind = case.head.split_whitespace().nth(1);
    let lacks = case.want.iter().find(|line| !text.contains(line.as_str()));
    match (kind == Some(e.kind().as_str()), lacks) {
        (true, None) => Ok(()),
        _ => Err(format!("{}: {text}", e.kind().as_str())),
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "slt"))
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn every_query_has_the_answer_that_stands_below_it() {
    let t = lake().await;
    let (mut count, mut failed) = (0, String::new());
    for file in files() {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        for case in parse(&std::fs::read_to_string(&file).unwrap()) {
            count += 1;
            let outcome = match case.head.split_whitespace().next() {
                Some("query") => query(&t, &case).await,
                Some("error") => error(&t, &case).await,
                _ => Err("a record begins with `query` or `error`".to_owned()),
            };
            if let Err(got) = outcome {
                writeln!(failed, "{name}:{}\n{}\n{got}\n", case.line, case.sql).unwrap();
            }
        }
    }
    assert!(failed.is_empty(), "{failed}");
    assert!(count >= 60, "{count} queries were found");
}

pub(crate) async fn lake() -> TestLake {
    let mut t = TestLake::new().await;
    weibo(&mut t).await;
    values(&mut t).await;
    others(&mut t).await;
    goods(&mut t).await;
    t
}

/// Three versions: version 2 renames `heat` to `reads`, gives the name `heat` to a text, widens
/// `price`, lets `kind` grow, drops `gone`, adds 標籤; version 3 adds `author` and `prices`.
async fn weibo(t: &mut TestLake) {
    let kind = |values: &[&str]| {
        let mut kind = field(5, "kind", "enum");
        kind.values = values.iter().map(|v| (*v).to_owned()).collect();
        kind
    };
    let first = vec![
        field(1, "title", "string"),
        field(2, "heat", "int"),
        field(3, "price", "decimal(6,2)"),
        field(4, "gone", "string"),
        kind(&["news", "video"]),
    ];
    let second = vec![
        field(1, "title", "string"),
        field(6, "heat", "string"),
        field(2, "reads", "int"),
        field(3, "price", "decimal(10,4)"),
        kind(&["news", "video", "live"]),
        field(7, "標籤", "list<string>"),
    ];
    let author = vec![field(9, "名", "string"), field(10, "age", "int")];
    let mut third = second.clone();
    third.push(with_members(field(8, "author", "struct"), author));
    third.push(field(11, "prices", "map<decimal(8,2)>"));
    for (version, fields) in [(1, first), (2, second), (3, third)] {
        t.publish("clean/weibo", version, fields).await;
    }
    let add = [
        (
            "2024-03-01",
            1,
            vec![
                json!({"title": "甲", "heat": 10, "price": "12.50", "gone": "老", "kind": "news", "_extra": "{\"a\":1}"}),
                json!({"title": "乙"}),
                json!({"title": "丙", "heat": 30, "price": "0.05", "gone": "x", "kind": "video"}),
            ],
        ),
        (
            "2024-03-02",
            1,
            vec![
                json!({"title": "丁", "heat": 7, "price": "99.99", "kind": "news"}),
                json!({"title": "戊", "heat": 7, "price": "100.00", "gone": "老", "kind": "video"}),
            ],
        ),
        (
            "2024-03-02",
            1,
            vec![json!({"title": "己", "heat": -5, "price": "-1.25", "gone": "", "kind": "news"})],
        ),
        (
            "2024-03-02",
            2,
            vec![
                json!({"title": "庚", "heat": "熱", "reads": 50, "price": "0.1234", "kind": "live", "標籤": ["a", "b"]}),
            ],
        ),
        (
            "2024-03-03",
            2,
            vec![
                json!({"title": "辛", "heat": "冷", "reads": 60, "price": "12.5", "kind": "live", "標籤": []}),
                json!({"title": "壬", "kind": "news"}),
            ],
        ),
        (
            "2024-03-05",
            3,
            vec![
                json!({"title": "癸", "heat": "熱", "reads": 70, "price": "1000.0001", "kind": "live", "標籤": ["c"],
                   "author": {"名": "小明", "age": 20}, "prices": {"twd": "1.50", "usd": "0.05"}}),
                json!({"title": "O'Brien \"x\"", "heat": "", "reads": 80, "price": "5", "kind": "video", "標籤": [null],
                   "author": {}, "prices": {}}),
                json!({"title": "100%_sure", "reads": 90}),
            ],
        ),
    ];
    for (dt, version, rows) in add {
        t.add("clean/weibo", dt, version, &rows).await;
    }
}

/// One file with values at the ends of their types.
async fn values(t: &mut TestLake) {
    let fields = vec![
        field(1, "k", "int"),
        field(2, "at", "timestamp"),
        field(3, "day", "date"),
        field(4, "price", "decimal(38,10)"),
        field(5, "flag", "bool"),
        field(6, "ratio", "float"),
        field(7, "文", "string"),
        field(8, "doc", "json"),
    ];
    t.publish("clean/types", 1, fields).await;
    let rows = [
        json!({"k": i64::MIN, "at": "0001-01-01T00:00:00Z", "day": "0001-01-01", "price": "0.1", "flag": true,
               "ratio": 0.1, "文": "颱風", "doc": "{\"b\":[1,2],\"a\":null}"}),
        json!({"k": -1, "at": "1969-12-31T23:59:59.999999Z", "day": "1969-12-31", "price": "-0.0000000001", "flag": false,
               "ratio": -1.5, "文": "", "doc": "[]"}),
        json!({"k": 9_007_199_254_740_993_i64, "at": "2024-03-01T08:00:00.000001+08:00", "day": "2024-02-29",
               "price": "1234567890123456789012345678.0123456789", "ratio": 1e20, "文": "𠮷👩‍👩‍👧", "doc": "\"文\""}),
        json!({"k": i64::MAX, "at": "9999-12-31T23:59:59.999999Z", "day": "9999-12-31", "price": "0.2", "flag": true,
               "文": "a/b\n"}),
        json!({}),
    ];
    t.add("clean/types", "2024-03-01", 1, &rows).await;
}

/// A dataset of another layer, one of a source with several, one whose names are hard, and one
/// that has a file without rows.
async fn others(t: &mut TestLake) {
    let fields = vec![field(1, "kind", "string"), field(2, "weight", "int")];
    t.publish("feature/weights", 1, fields).await;
    for (dt, kind, weight) in [("2024-03-02", "news", 1), ("2024-03-04", "video", 2)] {
        let row = json!({"kind": kind, "weight": weight});
        t.add("feature/weights", dt, 1, &[row]).await;
    }
    let fields = vec![field(1, "回覆", "string"), field(2, "likeCount", "int")];
    t.publish("clean/weibo.comments", 1, fields).await;
    let rows = [json!({"回覆": "好", "likeCount": 3}), json!({"回覆": "壞"})];
    t.add("clean/weibo.comments", "2024-03-02", 1, &rows).await;
    t.publish("clean/none", 1, vec![field(1, "a", "int")]).await;
    t.add("clean/none", "2024-03-01", 1, &[]).await;
}
