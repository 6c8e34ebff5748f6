//! Each rule with a change that breaks it and a neighbour that does not.

use super::*;
use crate::registry::{parse, refuse, validate};
use crate::spec::{By, PUBLISHED_FORMAT};
use crate::time::Instant;

mod retype;

fn version(n: u32, head: &str, fields: &[String]) -> SchemaSpec {
    let base = match n {
        1 => String::new(),
        n if head.contains("base") => {
            assert!(n > 1);
            String::new()
        }
        n => format!("base = {}\n", n - 1),
    };
    let text = format!(
        "dataset = \"clean/a\"\nversion = {n}\n{base}{head}\n{}",
        fields.concat()
    );
    let spec = parse(&text, "v.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    let unsound = validate(&spec);
    assert!(unsound.is_empty(), "{text}\n{unsound:?}");
    spec
}

fn f(id: u32, name: &str, rest: &str) -> String {
    let rest = match rest.split_once('\n') {
        Some((kind, keys)) => format!("\"{kind}\"\n{keys}"),
        None => format!("\"{rest}\""),
    };
    format!("[[field]]\nid = {id}\nname = \"{name}\"\ntype = {rest}\n")
}

fn member(id: u32, name: &str, kind: &str) -> String {
    format!("[[field.field]]\nid = {id}\nname = \"{name}\"\ntype = \"{kind}\"\n")
}

fn past(versions: &[SchemaSpec]) -> Vec<PublishedSchema> {
    let publish = |schema: &SchemaSpec| PublishedSchema {
        format: PUBLISHED_FORMAT,
        lake: "lake".parse().unwrap(),
        published_at: Instant::from_micros(0),
        by: By {
            program: "lakebed".to_owned(),
            user: Some("甲".to_owned()),
            run: None,
            note: None,
        },
        base_hash: None,
        git_commit: None,
        schema: schema.clone(),
    };
    versions.iter().map(publish).collect()
}

fn problems(versions: &[SchemaSpec], new: &SchemaSpec) -> Vec<Problem> {
    check_evolution(&past(versions), new, Evolution::Free)
}

/// Only notes, so many of them.
#[track_caller]
fn allowed(versions: &[SchemaSpec], new: &SchemaSpec, notes: usize) {
    let found = problems(versions, new);
    assert!(refuse(new, &found, None).is_ok(), "{found:?}");
    assert_eq!(found.len(), notes, "{found:?}");
}

#[track_caller]
fn refused(versions: &[SchemaSpec], new: &SchemaSpec, code: ProblemCode, words: &str) {
    let found = problems(versions, new);
    let real: Vec<_> = found.iter().filter(|p| !p.is_note()).collect();
    let told = |p: &&Problem| {
        let text = format!("{} {}", p.line(), p.hint.as_deref().unwrap_or(""));
        p.code == code && text.contains(words)
    };
    assert!(
        real.iter().any(told),
        "wanted {code:?} `{words}`: {found:?}"
    );
    assert_eq!(real.len(), 1, "{found:?}");
}

fn v1() -> SchemaSpec {
    version(1, "", &[f(1, "标题", "string"), f(2, "reads", "int")])
}

#[test]
fn a_number_is_taken_once() {
    let mut other = v1();
    allowed(&[v1()], &other, 0);
    other.note = Some("x".to_owned());
    refused(&[v1()], &other, ProblemCode::NumberTaken, "by 甲 at 1970");
    refused(&[v1()], &other, ProblemCode::NumberTaken, "(none) -> \"x\"");
}

#[test]
fn numbers_and_bases_follow() {
    let fields = [f(1, "标题", "string"), f(2, "reads", "int")];
    let two = version(2, "", &fields);
    allowed(&[v1()], &two, 0);
    refused(&[], &two, ProblemCode::NumberGap, "next version is 1");
    refused(
        &[v1()],
        &version(3, "base = 1", &fields),
        ProblemCode::NumberGap,
        "next version is 2",
    );
    let stale = version(3, "base = 1", &fields);
    refused(
        &[v1(), two.clone()],
        &stale,
        ProblemCode::StaleBase,
        "`base = 2`",
    );
    allowed(&[v1(), two], &version(3, "", &fields), 0);
}

#[test]
fn fields_are_added_with_fresh_ids_and_names() {
    let old = [f(1, "标题", "string"), f(2, "reads", "int")];
    let with = |id: u32, name: &str| version(2, "", &[&old[..], &[f(id, name, "date")]].concat());
    allowed(&[v1()], &with(3, "新"), 0);
    allowed(&[v1()], &with(99, "新"), 0);
    // The id of a field that was removed two versions ago is not free.
    let two = version(2, "removed = [\"reads\"]", &old[..1]);
    let three = version(3, "", &[&old[..1], &[f(2, "likes", "int")]].concat());
    refused(
        &[v1(), two.clone()],
        &three,
        ProblemCode::IdReused,
        "next free id is `3`",
    );
    let retyped = version(3, "", &[&old[..1], &[f(2, "reads", "string")]].concat());
    refused(
        &[v1(), two.clone()],
        &retyped,
        ProblemCode::IdReused,
        "belonged to `reads`",
    );
    // Its name is not free either, in any case; itself may come back.
    let renamed = version(3, "", &[&old[..1], &[f(3, "Reads", "int")]].concat());
    refused(
        &[v1(), two.clone()],
        &renamed,
        ProblemCode::NameReused,
        "bring that id back",
    );
    allowed(&[v1(), two], &version(3, "", &old), 1);
}

#[test]
fn names_change_with_renamed_from() {
    let with = |name: &str, keys: &str| {
        version(
            2,
            "",
            &[f(1, name, &format!("string{keys}")), f(2, "reads", "int")],
        )
    };
    allowed(
        &[v1()],
        &with("title", "\nrenamed_from = \"标题\"\nfrom = \"标题\""),
        0,
    );
    // Without `from`, inputs are read under the new name: worth a note.
    allowed(&[v1()], &with("title", "\nrenamed_from = \"标题\""), 1);
    refused(
        &[v1()],
        &with("title", ""),
        ProblemCode::NameChanged,
        "renamed_from = \"标题\"",
    );
    refused(
        &[v1()],
        &with("title", "\nrenamed_from = \"题\""),
        ProblemCode::NameChanged,
        "`题`",
    );
    refused(
        &[v1()],
        &with("标题", "\nrenamed_from = \"x\""),
        ProblemCode::NameChanged,
        "never called",
    );
    // A copied file still says `renamed_from`: it did happen.
    let two = with("title", "\nrenamed_from = \"标题\"");
    let three = version(
        3,
        "",
        &[
            f(1, "title", "string\nrenamed_from = \"标题\""),
            f(2, "reads", "int"),
        ],
    );
    allowed(&[v1(), two.clone()], &three, 0);
    // The old name stays that of id 1.
    let back = version(
        3,
        "",
        &[
            f(1, "title", "string"),
            f(2, "reads", "int"),
            f(3, "标题", "string"),
        ],
    );
    refused(&[v1(), two], &back, ProblemCode::NameReused, "id `1`");
    let fresh = version(
        2,
        "",
        &[
            f(1, "标题", "string"),
            f(2, "reads", "int"),
            f(3, "x", "int\nrenamed_from = \"y\""),
        ],
    );
    refused(&[v1()], &fresh, ProblemCode::NameChanged, "new id");
    let first = version(1, "", &[f(1, "x", "int\nrenamed_from = \"y\"")]);
    refused(&[], &first, ProblemCode::NameChanged, "first version");
}

#[test]
fn two_fields_cannot_swap_their_names() {
    let one = version(1, "", &[f(1, "a", "int"), f(2, "b", "int")]);
    let swapped = version(
        2,
        "",
        &[
            f(1, "b", "int\nrenamed_from = \"a\""),
            f(2, "a", "int\nrenamed_from = \"b\""),
        ],
    );
    let found = problems(&[one], &swapped);
    let codes: Vec<_> = found
        .iter()
        .filter(|p| !p.is_note())
        .map(|p| p.code)
        .collect();
    assert_eq!(codes, [ProblemCode::NameReused, ProblemCode::NameReused]);
}

#[test]
fn an_old_name_under_a_new_id_needs_dual_and_another_name() {
    let old = f(2, "reads", "int");
    let title = f(1, "标题", "string");
    let new = |field: String| version(2, "removed = [2]", &[title.clone(), field]);
    refused(
        &[v1()],
        &new(f(3, "reads", "string")),
        ProblemCode::NameReused,
        "change = \"dual\"",
    );
    let dual = |keys: &str| {
        version(
            2,
            "",
            &[title.clone(), old.clone(), f(3, "reads_text", keys)],
        )
    };
    allowed(
        &[v1()],
        &dual("string\nlenient = true\nfrom = \"reads\"\nchange = \"dual\""),
        0,
    );
    refused(
        &[v1()],
        &dual("string\nfrom = \"read\"\nchange = \"dual\""),
        ProblemCode::KeyMisfit,
        "no other field reads `read`",
    );
}

#[test]
fn fields_are_removed_by_name_path_or_id() {
    let author = format!(
        "{}{}{}",
        f(3, "作者", "struct"),
        member(4, "名", "string"),
        member(5, "x", "int")
    );
    let one = version(1, "", &[f(1, "a", "int"), f(2, "b", "int"), author]);
    let less = format!("{}{}", f(3, "作者", "struct"), member(4, "名", "string"));
    let two = |removed: &str| version(2, removed, &[f(1, "a", "int"), less.clone()]);
    allowed(
        std::slice::from_ref(&one),
        &two("removed = [\"b\", \"作者.x\"]"),
        0,
    );
    allowed(std::slice::from_ref(&one), &two("removed = [2, 5]"), 0);
    refused(
        std::slice::from_ref(&one),
        &two("removed = [\"b\"]"),
        ProblemCode::FieldDropped,
        "`作者.x`",
    );
    refused(
        std::slice::from_ref(&one),
        &two("removed = [5]"),
        ProblemCode::FieldDropped,
        "`b`",
    );
    // Members go with their struct.
    let gone = version(
        2,
        "removed = [\"作者\"]",
        &[f(1, "a", "int"), f(2, "b", "int")],
    );
    allowed(std::slice::from_ref(&one), &gone, 0);
    // A copied list may stay; a wrong one may not.
    let three = version(
        3,
        "removed = [2, \"作者.x\"]",
        &[f(1, "a", "int"), less.clone()],
    );
    allowed(&[one.clone(), two("removed = [2, 5]")], &three, 0);
    let kept = version(2, "removed = [1, 2, 5]", &[f(1, "a", "int"), less.clone()]);
    refused(
        std::slice::from_ref(&one),
        &kept,
        ProblemCode::BadRemoved,
        "`1`, which is still there",
    );
    refused(
        &[one],
        &two("removed = [\"b\", \"作者.x\", \"作者.名字\"]"),
        ProblemCode::BadRemoved,
        "no version had",
    );
}

#[test]
fn types_only_widen_under_an_id() {
    let one = |kind: &str| version(1, "", &[f(1, "a", kind)]);
    let two = |kind: &str| version(2, "", &[f(1, "a", kind)]);
    for (old, new, notes) in [
        ("decimal(5,2)", "decimal(9,2)", 0),
        ("decimal(5,2)", "decimal(6,3)", 1),
        ("list<decimal(5,2)>", "list<decimal(38,2)>", 0),
        ("map<int>", "map<int>", 0),
    ] {
        allowed(&[one(old)], &two(new), notes);
    }
    for (old, new) in [
        ("decimal(9,2)", "decimal(5,2)"),
        ("decimal(5,2)", "decimal(5,3)"),
        ("decimal(5,2)", "decimal(9,1)"),
        ("int", "float"),
        ("int", "string"),
        ("int", "decimal(20,0)"),
        ("float", "decimal(38,9)"),
        ("date", "timestamp"),
        ("string", "json"),
        ("int", "list<int>"),
        ("list<int>", "map<int>"),
        ("list<decimal(5,2)>", "list<decimal(4,2)>"),
    ] {
        refused(
            &[one(old)],
            &two(new),
            ProblemCode::TypeChanged,
            "`change = \"dual\"`",
        );
    }
}

#[test]
fn fields_stay_at_their_level() {
    let one = version(
        1,
        "",
        &[
            f(1, "a", "int"),
            format!("{}{}", f(2, "s", "struct"), member(3, "b", "int")),
        ],
    );
    let two = version(
        2,
        "",
        &[format!(
            "{}{}{}",
            f(2, "s", "struct"),
            member(3, "b", "int"),
            member(1, "a", "int")
        )],
    );
    refused(
        &[one],
        &two,
        ProblemCode::FieldMoved,
        "`a`, at another level",
    );
}

#[test]
fn enums_grow_at_their_end() {
    let one = version(
        1,
        "",
        &[f(1, "类", "enum\nvalues = [\"平\", \"房\", \"铺\"]")],
    );
    let two = |head: &str, values: &str| {
        version(2, head, &[f(1, "类", &format!("enum\nvalues = {values}"))])
    };
    allowed(
        std::slice::from_ref(&one),
        &two("", "[\"平\", \"房\", \"铺\", \"仓\"]"),
        0,
    );
    let gone = "[\"平\", \"铺\"]";
    refused(
        std::slice::from_ref(&one),
        &two("", gone),
        ProblemCode::EnumShrunk,
        "removed = [\"类=房\"]",
    );
    allowed(
        std::slice::from_ref(&one),
        &two("removed = [\"类=房\"]", gone),
        0,
    );
    for moved in [
        "[\"房\", \"平\", \"铺\"]",
        "[\"仓\", \"平\", \"房\", \"铺\"]",
        "[\"平\", \"房\", \"仓\", \"铺\"]",
    ] {
        refused(
            std::slice::from_ref(&one),
            &two("", moved),
            ProblemCode::EnumShrunk,
            "append-only",
        );
    }
    let all = "[\"平\", \"房\", \"铺\"]";
    refused(
        &[one],
        &two("removed = [\"类=房\"]", all),
        ProblemCode::BadRemoved,
        "still there",
    );
}

#[test]
fn other_keys_change_with_a_note() {
    let one = version(1, "", &[f(1, "a", "timestamp\nnull_values = [\"-\"]")]);
    let two = version(
        2,
        "",
        &[f(1, "a", "timestamp\nrequired = true\ndoc = \"x\"")],
    );
    allowed(std::slice::from_ref(&one), &two, 2);
    allowed(
        &[one],
        &version(
            2,
            "[input]\nformat = \"csv\"",
            &[f(1, "a", "timestamp\nnull_values = [\"-\"]")],
        ),
        1,
    );
}

#[test]
fn add_only_takes_additions_alone() {
    let one = version(
        1,
        "",
        &[
            f(1, "a", "enum\nvalues = [\"x\"]"),
            f(2, "t", "timestamp\nformats = [\"rfc3339\"]"),
            f(3, "d", "decimal(5,2)"),
        ],
    );
    let check = |head: &str, fields: &[String]| {
        let spec = version(2, head, fields);
        let found = check_evolution(&past(std::slice::from_ref(&one)), &spec, Evolution::AddOnly);
        assert!(refuse(&spec, &problems(std::slice::from_ref(&one), &spec), None).is_ok());
        found
            .into_iter()
            .filter(|p| !p.is_note())
            .map(|p| p.code)
            .collect::<Vec<_>>()
    };
    let a = f(1, "a", "enum\nvalues = [\"x\", \"y\"]");
    let t = f(
        2,
        "t",
        "timestamp\nformats = [\"rfc3339\", \"epoch_s\"]\ndoc = \"when\"\nprivacy = \"personal\"",
    );
    let d = f(3, "d", "decimal(5,2)");
    assert!(
        check(
            "note = \"more\"",
            &[a.clone(), f(9, "n", "int"), t.clone(), d.clone()]
        )
        .is_empty()
    );
    let not = [ProblemCode::NotAnAddition];
    assert_eq!(check("removed = [3]", &[a.clone(), t.clone()]), not);
    assert_eq!(check("", &[t.clone(), a.clone(), d.clone()]), not);
    assert_eq!(
        check("", &[a.clone(), t.clone(), f(3, "d", "decimal(7,2)")]),
        not
    );
    assert_eq!(
        check(
            "",
            &[
                a.clone(),
                t.clone(),
                f(3, "e", "decimal(5,2)\nrenamed_from = \"d\"\nfrom = \"d\"")
            ]
        )
        .len(),
        2
    );
    assert_eq!(
        check(
            "",
            &[
                a.clone(),
                f(2, "t", "timestamp\nformats = [\"epoch_s\", \"rfc3339\"]"),
                d.clone()
            ]
        ),
        not
    );
    assert_eq!(
        check(
            "",
            &[
                a.clone(),
                t.clone(),
                f(3, "d", "decimal(5,2)\nnull_values = [\"\"]")
            ]
        ),
        not
    );
    assert_eq!(check("[input]\nformat = \"csv\"", &[a, t, d]), not);
}
