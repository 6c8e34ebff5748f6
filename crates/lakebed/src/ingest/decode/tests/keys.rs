//! Keys in any order and spelling: short, long, of one length or beginning, escaped, twice, unknown.

use proptest::prelude::*;

use super::*;

/// Names as JSON has them without need for escapes; several have one length, beginning or end.
const NAMES: [&str; 14] = [
    "a",
    "b",
    "aa",
    "a b",
    "posted",
    "poster",
    "1234567",
    "12345678",
    "a2345678",
    "123456789012345",
    "1234567890123456",
    "1234567890123457",
    "標題",
    "一個很長的欄位名稱",
];
/// Names that need an escape.
const ESCAPED: [(&str, &str); 2] = [("q\"q", "q\\\"q"), ("q\\q", "q\\\\q")];
/// What no field reads, though it is much like what one does.
const UNKNOWN: [&str; 9] = [
    "",
    "c",
    "aaa",
    "A",
    "postes",
    "12345679",
    "123456789012346",
    "1234567890123458",
    "標顯",
];

fn fixture() -> Fixture {
    let names = NAMES.into_iter().chain(ESCAPED.map(|(name, _)| name));
    let mut text = String::new();
    for (i, name) in names.enumerate() {
        text.push_str(&format!(
            "[[field]]\nid = {}\nname = \"f{i}\"\ntype = \"int\"\nfrom = '{name}'\n",
            i + 1
        ));
    }
    Fixture::of_toml(&text, Mismatch::Quarantine)
}

/// The key of field `i`, its first character escaped where that is asked for.
fn spelled(i: usize, escape: bool) -> String {
    match NAMES.get(i) {
        None => ESCAPED[i - NAMES.len()].1.to_owned(),
        Some(name) if escape => {
            let first = name.chars().next().unwrap();
            format!("\\u{:04x}{}", u32::from(first), &name[first.len_utf8()..])
        }
        Some(name) => (*name).to_owned(),
    }
}

/// A member that is written: its field and spelling, or an unknown name.
#[derive(Debug, Clone)]
enum Written {
    Field { at: usize, escape: bool },
    Unknown(usize),
}

#[derive(Debug, Clone)]
struct Line {
    members: Vec<Written>,
    /// White space before a key, before its colon and before its value.
    spaces: [&'static str; 3],
}

impl Line {
    fn text(&self) -> String {
        let [before, colon, value] = self.spaces;
        let members: Vec<_> = self
            .members
            .iter()
            .enumerate()
            .map(|(n, member)| {
                let key = match member {
                    Written::Field { at, escape } => spelled(*at, *escape),
                    Written::Unknown(at) => UNKNOWN[*at].to_owned(),
                };
                format!("{before}\"{key}\"{colon}:{value}{n}")
            })
            .collect();
        format!("{{{}}}\n", members.join(","))
    }

    /// The row, or `None` where it must be refused.
    fn row(&self) -> Option<String> {
        let mut values = vec![None; NAMES.len() + ESCAPED.len()];
        for (n, member) in self.members.iter().enumerate() {
            let Written::Field { at, .. } = member else {
                return None;
            };
            if values[*at].replace(n).is_some() {
                return None;
            }
        }
        let member = |(i, v): (usize, &Option<usize>)| match v {
            Some(v) => format!("\"f{i}\":{v}"),
            None => format!("\"f{i}\":null"),
        };
        let members: Vec<_> = values.iter().enumerate().map(member).collect();
        Some(format!("{{{}}}", members.join(",")))
    }
}

fn line() -> impl Strategy<Value = Line> {
    let count = NAMES.len() + ESCAPED.len();
    let all: Vec<usize> = (0..count).collect();
    let order = prop_oneof![
        2 => Just(all.clone()).prop_shuffle(),
        1 => Just(all.clone()),
        1 => proptest::sample::subsequence(all.clone(), 0..=count),
        1 => proptest::collection::vec(0..count, 0..4),
    ];
    let unknown = prop_oneof![9 => Just(None), 1 => (0..UNKNOWN.len()).prop_map(Some)];
    let space = || prop_oneof![4 => Just(""), 2 => Just(" "), 1 => Just("\t ")];
    let marks = proptest::collection::vec(proptest::bool::weighted(0.1), count);
    (order, unknown, marks, [space(), space(), space()]).prop_map(
        |(order, unknown, marks, spaces)| {
            let field = |at: usize| Written::Field {
                at,
                escape: marks[at],
            };
            let mut members: Vec<_> = order.into_iter().map(field).collect();
            if let Some(at) = unknown {
                members.insert(members.len() / 2, Written::Unknown(at));
            }
            Line { members, spaces }
        },
    )
}

proptest! {
    #[test]
    fn keys_are_read_in_any_order_and_spelling(
        lines in proptest::collection::vec(line(), 1..40),
    ) {
        let mut f = fixture();
        let text: String = lines.iter().map(Line::text).collect();
        let decoded = f.lines(&text);
        let rows: Vec<_> = lines.iter().filter_map(Line::row).collect();
        prop_assert_eq!(f.rows(&decoded), rows);
        let refused = lines.iter().filter(|l| l.row().is_none()).count();
        prop_assert_eq!(decoded.stats.rejected, u64::try_from(refused).unwrap());
    }
}

#[test]
fn guesses_of_keys_end_and_begin_again() {
    let mut f = fixture();
    let all = NAMES.len() + ESCAPED.len();
    let (mut text, mut rows) = (String::new(), Vec::new());
    for n in 0..400 {
        // Orders that do not last, then one that does, then others again.
        let turn = if (100..300).contains(&n) { 3 } else { n * 7 };
        let members = (0..all).map(|i| Written::Field {
            at: (i * 5 + turn) % all,
            escape: false,
        });
        let line = Line {
            members: members.collect(),
            spaces: ["", "", ""],
        };
        text.push_str(&line.text());
        rows.push(line.row().unwrap());
    }
    let decoded = f.lines(&text);
    assert_eq!(f.rows(&decoded), rows);
    assert_eq!(decoded.stats.rejected, 0);
}

#[test]
fn a_key_given_twice_is_refused_however_it_is_found() {
    let mut f = fixture();
    for n in 0..NAMES.len() {
        let (plain, escaped) = (spelled(n, false), spelled(n, true));
        for (a, b) in [(&plain, &plain), (&plain, &escaped), (&escaped, &plain)] {
            let decoded = f.lines(&format!("{{\"{a}\":1,\"{b}\":1}}\n"));
            let codes: Vec<_> = reasons(&decoded).into_iter().map(|r| r.3).collect();
            assert_eq!(codes, ["duplicate_key"], "{a} {b}");
        }
    }
}
