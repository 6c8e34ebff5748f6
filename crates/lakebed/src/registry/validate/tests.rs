//! Each rule with a version that breaks it and a neighbour that does not.

use super::*;
use crate::registry::parse;

fn version(body: &str) -> SchemaSpec {
    let text = format!("dataset = \"clean/a\"\nversion = 1\n{body}");
    parse(&text, "v1.toml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// A field of id 1 called `a`.
fn field(rest: &str) -> String {
    format!("[[field]]\nid = 1\nname = \"a\"\n{rest}\n")
}

fn codes(spec: &SchemaSpec) -> Vec<ProblemCode> {
    validate(spec).into_iter().map(|p| p.code).collect()
}

#[track_caller]
fn sound(body: &str) {
    let problems = validate(&version(body));
    assert!(problems.is_empty(), "{body}\n{problems:?}");
}

#[track_caller]
fn unsound(body: &str, code: ProblemCode, words: &str) {
    let problems = validate(&version(body));
    let found = problems
        .iter()
        .any(|p| p.code == code && p.line().contains(words));
    assert!(
        found,
        "{body}\nwanted {code:?} with `{words}`: {problems:?}"
    );
    assert_eq!(problems.len(), 1, "{body}\n{problems:?}");
}

fn named(name: &str) -> String {
    let name = toml::Value::String(name.to_owned());
    format!("[[field]]\nid = 1\nname = {name}\ntype = \"int\"\n")
}

#[test]
fn ids_are_in_range_and_unique_at_all_depths() {
    let with = |id: u64| format!("[[field]]\nid = {id}\nname = \"a\"\ntype = \"int\"\n");
    sound(&with(1));
    sound(&with(u64::from(MAX_FIELD_ID)));
    unsound(&with(0), ProblemCode::BadNumber, "id `0`");
    unsound(
        &with(u64::from(MAX_FIELD_ID) + 1),
        ProblemCode::BadNumber,
        "10000001",
    );
    let nested = |id: u32| {
        format!(
            "{}[[field.field]]\nid = {id}\nname = \"b\"\ntype = \"int\"\n",
            field("type = \"struct\"")
        )
    };
    sound(&nested(2));
    unsound(&nested(1), ProblemCode::DuplicateId, "also the id of `a`");
}

#[test]
fn names_are_sound() {
    for good in [
        "標題",
        "SHAPE.LEN",
        "a b",
        "data",
        "dt2",
        "größe",
        &"x".repeat(255),
    ] {
        sound(&named(good));
    }
    for (bad, code) in [
        ("", ProblemCode::BadName),
        ("\u{3000}", ProblemCode::BadName),
        ("a\u{7}", ProblemCode::BadName),
        ("a\nb", ProblemCode::BadName),
        ("/a", ProblemCode::BadName),
        (&"x".repeat(256), ProblemCode::BadName),
        (&"字".repeat(86), ProblemCode::BadName),
        ("dt", ProblemCode::ReservedName),
        ("DT", ProblemCode::ReservedName),
        ("Source", ProblemCode::ReservedName),
        ("SCHEMA_version", ProblemCode::ReservedName),
        ("_extra", ProblemCode::ReservedName),
        ("_", ProblemCode::ReservedName),
    ] {
        unsound(&named(bad), code, "name");
    }
    // Members cannot clash with our columns.
    sound(&format!(
        "{}[[field.field]]\nid = 2\nname = \"_id\"\ntype = \"int\"\n[[field.field]]\nid = 3\nname = \"source\"\ntype = \"int\"\n",
        field("type = \"struct\"")
    ));
}

#[test]
fn names_of_a_level_differ_without_case() {
    let two = |a: &str, b: &str| {
        format!(
            "[[field]]\nid = 1\nname = \"{a}\"\ntype = \"int\"\n[[field]]\nid = 2\nname = \"{b}\"\ntype = \"int\"\nfrom = \"x\"\n"
        )
    };
    sound(&two("id", "id2"));
    sound(&two("名", "名称"));
    unsound(
        &two("Id", "id"),
        ProblemCode::NameCollision,
        "`Id` and `id`",
    );
    unsound(
        &two("ÉTÉ", "été"),
        ProblemCode::NameCollision,
        "only by case",
    );
    unsound(&two("名", "名"), ProblemCode::NameCollision, "stands twice");
    // Another level is another name space.
    sound(&format!(
        "{}[[field.field]]\nid = 2\nname = \"A\"\ntype = \"int\"\n",
        field("type = \"struct\"")
    ));
}

#[test]
fn one_input_is_read_by_one_field_or_declared_dual() {
    let two = |old: &str, new: &str| {
        format!(
            "{}[[field]]\nid = 2\nname = \"b\"\ntype = \"string\"\n{new}\n",
            field(old)
        )
    };
    sound(&two("type = \"int\"", ""));
    sound(&two("type = \"int\"", "from = \"a\"\nchange = \"dual\""));
    sound(&two(
        "type = \"int\"",
        "from = \"/a\"\nchange = \"dual\"\nrequired = true",
    ));
    sound(&two("type = \"int\"", "from = \"/a/b\""));
    unsound(
        &two("type = \"int\"", "from = \"a\""),
        ProblemCode::InputCollision,
        "`a` and `b`",
    );
    unsound(
        &two("type = \"int\"", "from = \"/a\""),
        ProblemCode::InputCollision,
        "`a` and `b`",
    );
    unsound(
        &two(
            "type = \"int\"\nrequired = true",
            "from = \"a\"\nchange = \"dual\"",
        ),
        ProblemCode::KeyMisfit,
        "`required`",
    );
}

#[test]
fn pointers_are_pointers() {
    for good in ["/a/0/b", "/~1~0", "plain~name", "/"] {
        sound(&field(&format!("type = \"int\"\nfrom = \"{good}\"")));
    }
    for bad in ["/a~", "/a~2b", "/~/x"] {
        let body = field(&format!("type = \"int\"\nfrom = \"{bad}\""));
        unsound(&body, ProblemCode::BadPointer, bad);
    }
    let input = |p: &str| format!("[input]\nrecords = \"{p}\"\n{}", field("type = \"int\""));
    sound(&input("/data/items"));
    sound(&input(""));
    unsound(&input("data"), ProblemCode::BadInput, "`records`");
    unsound(&input("/a~"), ProblemCode::BadInput, "`records`");
}

#[test]
fn keys_fit_their_type() {
    for (key, good, bad) in [
        ("formats = [\"epoch_s\"]", "timestamp", "int"),
        ("formats = [\"%Y%m%d\"]", "list<date>", "string"),
        ("time_zone = \"Asia/Taipei\"", "timestamp", "date"),
        ("ambiguous = \"later\"", "map<timestamp>", "date"),
        ("money = { symbols = [\"¥\"] }", "decimal(9,2)", "float"),
        ("values = [\"x\"]", "list<enum>", "string"),
        ("true_values = [\"是\"]", "bool", "int"),
        ("false_values = [0]", "bool", "string"),
        ("lenient = true", "list<string>", "json"),
        ("allow_nan = true", "float", "decimal(9,2)"),
        ("nan_as_null = false", "list<float>", "int"),
    ] {
        sound(&field(&format!("type = \"{good}\"\n{key}")));
        let body = field(&format!("type = \"{bad}\"\n{key}"));
        unsound(
            &body,
            ProblemCode::KeyMisfit,
            key.split(' ').next().unwrap(),
        );
    }
}

#[test]
fn structs_have_members_and_only_they() {
    let member = "[[field.field]]\nid = 2\nname = \"b\"\ntype = \"int\"\n";
    for good in ["struct", "list<struct>", "map<list<struct>>"] {
        sound(&format!("{}{member}", field(&format!("type = \"{good}\""))));
    }
    unsound(
        &field("type = \"list<struct>\""),
        ProblemCode::KeyMisfit,
        "needs members",
    );
    unsound(
        &format!("{}{member}", field("type = \"json\"")),
        ProblemCode::KeyMisfit,
        "`field`",
    );
    let nulls = format!(
        "{}{member}",
        field("type = \"struct\"\nnull_values = [\"-\"]")
    );
    unsound(&nulls, ProblemCode::KeyMisfit, "`null_values`");
    unsound("", ProblemCode::BadShape, "no field");
}

#[test]
fn structs_nest_to_a_limit() {
    let nest = |depth: u32| {
        let mut inner = FieldSpec::new(999, "leaf", crate::spec::FieldType::Int);
        for id in 1..=depth {
            let mut outer = FieldSpec::new(id, "s", crate::spec::FieldType::Struct);
            outer.fields = vec![inner];
            inner = outer;
        }
        SchemaSpec {
            fields: vec![inner],
            ..version("")
        }
    };
    assert!(codes(&nest(16)).is_empty());
    assert_eq!(codes(&nest(17)), [ProblemCode::BadShape]);
}

#[test]
fn tokens_do_not_contradict() {
    sound(&field("type = \"int\"\nnull_values = [\"-1\", -1, \"\"]"));
    unsound(
        &field("type = \"int\"\nnull_values = [\"-\", \"-\"]"),
        ProblemCode::TokenConflict,
        "twice",
    );
    sound(&field(
        "type = \"bool\"\ntrue_values = [\"yes\", 1]\nfalse_values = [\"no\", 0]",
    ));
    for (keys, words) in [
        (
            "true_values = [\"1\"]\nfalse_values = [1]",
            "both true and false",
        ),
        ("true_values = [\"false\"]", "both true and false"),
        (
            "true_values = [\"x\"]\nnull_values = [\"x\"]",
            "both NULL and true",
        ),
        ("null_values = [\"false\"]", "both NULL and false"),
    ] {
        let body = field(&format!("type = \"bool\"\n{keys}"));
        unsound(&body, ProblemCode::TokenConflict, words);
    }
    let both = field("type = \"enum\"\nvalues = [\"x\"]\nnull_values = [\"x\"]");
    unsound(&both, ProblemCode::TokenConflict, "value of the enum");
}

#[test]
fn enums_have_values() {
    sound(&field("type = \"enum\"\nvalues = [\"平\", \"房\"]"));
    unsound(
        &field("type = \"enum\""),
        ProblemCode::BadEnum,
        "needs `values`",
    );
    unsound(
        &field("type = \"enum\"\nvalues = [\"a\", \"\"]"),
        ProblemCode::BadEnum,
        "empty text",
    );
    unsound(
        &field("type = \"enum\"\nvalues = [\"a\", \"a\"]"),
        ProblemCode::BadEnum,
        "`a` twice",
    );
}

#[test]
fn formats_and_zones_are_sound() {
    let ts = |keys: &str| field(&format!("type = \"timestamp\"\n{keys}"));
    sound(&ts(""));
    sound(&ts("formats = [\"rfc3339\", \"epoch_ms\"]"));
    sound(&ts("formats = [\"%Y-%m-%dT%H:%M:%S%z\"]"));
    sound(&ts(
        "formats = [\"rfc3339\", \"%Y年%m月%d日\"]\ntime_zone = \"Asia/Shanghai\"",
    ));
    unsound(
        &ts("formats = [\"%Y-%m-%d %H:%M\"]"),
        ProblemCode::BadTimeZone,
        "needs `time_zone`",
    );
    unsound(
        &ts("time_zone = \"Asia/Shanghaii\""),
        ProblemCode::BadTimeZone,
        "`Asia/Shanghaii`",
    );
    unsound(
        &ts("time_zone = \"+08:00\""),
        ProblemCode::BadTimeZone,
        "`+08:00`",
    );
    unsound(
        &ts("formats = [\"epoch_s\", \"epoch_ms\"]"),
        ProblemCode::BadFormat,
        "told apart",
    );
    unsound(
        &ts("formats = [\"epoch_s\", \"epoch_s\"]"),
        ProblemCode::BadFormat,
        "twice",
    );
    unsound(
        &ts("formats = [\"%Y-%m-%dT%Q%z\"]"),
        ProblemCode::BadFormat,
        "`%Q`",
    );
    let date = |f: &str| field(&format!("type = \"date\"\nformats = [\"{f}\"]"));
    sound(&date("%d/%m/%Y"));
    for bad in ["%Y-%m-%d %H:%M", "rfc3339", "epoch_s"] {
        unsound(
            &date(bad),
            ProblemCode::BadFormat,
            "which a date cannot keep",
        );
    }
}

#[test]
fn money_marks_can_be_told_apart() {
    let money = |m: &str| field(&format!("type = \"decimal(9,2)\"\nmoney = {{ {m} }}"));
    sound(&money(
        "symbols = [\"$\", \"NT$\", \"元\"], thousands = \",\"",
    ));
    sound(&money("thousands = \".\", decimal = \",\""));
    for (bad, words) in [
        ("thousands = \".\"", "both `.`"),
        ("thousands = \",\", decimal = \",\"", "both `,`"),
        ("thousands = \",,\"", "not one mark"),
        ("decimal = \"\"", "not one mark"),
        ("decimal = \"5\"", "not one mark"),
        ("thousands = \"-\"", "not one mark"),
        ("symbols = [\"\"]", "cannot be a symbol"),
        ("symbols = [\"-$\"]", "cannot be a symbol"),
        ("symbols = [\"€ \"]", "cannot be a symbol"),
        ("symbols = [\"$\", \"$\"]", "twice"),
    ] {
        unsound(&money(bad), ProblemCode::BadMoney, words);
    }
}

#[test]
fn the_input_table_is_sound() {
    let input = |keys: &str| format!("[input]\n{keys}\n{}", field("type = \"int\""));
    sound(&input("encoding = \"GB18030\""));
    sound(&input(
        "encoding = \"latin1\"\ndelimiter = \"\\t\"\nquote = \"'\"",
    ));
    sound(&input("format = \"csv\"\nheader = [\"題\", \"\"]"));
    for (bad, words) in [
        ("encoding = \"gbkk\"", "`gbkk`"),
        ("encoding = \"hz-gb-2312\"", "`hz-gb-2312`"),
        ("delimiter = \",,\"", "`delimiter`"),
        ("delimiter = \"；\"", "`delimiter`"),
        ("delimiter = \"\\n\"", "`delimiter`"),
        ("delimiter = \"\"", "`delimiter`"),
        ("quote = \"''\"", "`quote`"),
        ("quote = \",\"", "the same"),
        ("delimiter = \"\\\"\"", "the same"),
        ("format = \"tsv\"\nquote = \"\\t\"", "the same"),
        ("header = [\"a\", \"a\"]", "`a` twice"),
        ("header = []", "names no column"),
        ("format = \"json\"\ndelimiter = \";\"", "does not fit JSON"),
        ("format = \"csv\"\nrecords = \"/a\"", "does not fit CSV"),
        (
            "format = \"parquet\"\nencoding = \"gbk\"",
            "does not fit Parquet",
        ),
    ] {
        unsound(&input(bad), ProblemCode::BadInput, words);
    }
}

#[test]
fn numbers_follow_each_other() {
    let body = field("type = \"int\"");
    let numbered =
        |head: &str| parse(&format!("dataset = \"clean/a\"\n{head}\n{body}"), "v.toml").unwrap();
    for good in [
        "version = 1",
        "version = 2\nbase = 1",
        "version = 9\nbase = 8",
    ] {
        assert!(codes(&numbered(good)).is_empty(), "{good}");
    }
    for bad in [
        "version = 0",
        "version = 1\nbase = 1",
        "version = 2",
        "version = 2\nbase = 2",
        "version = 2\nbase = 0",
        "version = 1\nremoved = [\"a\"]",
    ] {
        assert_eq!(codes(&numbered(bad)), [ProblemCode::BadNumber], "{bad}");
    }
}

#[test]
fn a_retyped_field_has_a_column_of_its_own() {
    let retype = |rest: &str| field(&format!("change = \"retype\"\n{rest}"));
    let good = retype("type = \"int\"\ncolumn = \"a_int\"");
    sound(&good);
    for (rest, code, said) in [
        ("type = \"int\"", ProblemCode::KeyMisfit, "needs `column`"),
        (
            "type = \"int\"\ncolumn = \"a\"",
            ProblemCode::KeyMisfit,
            "needs `column`",
        ),
        (
            "type = \"int\"\ncolumn = \" \"",
            ProblemCode::BadName,
            "is no name",
        ),
        (
            "type = \"int\"\ncolumn = \"_a\"",
            ProblemCode::ReservedName,
            "reserved",
        ),
        (
            "type = \"int\"\ncolumn = \"DT\"",
            ProblemCode::ReservedName,
            "reserved",
        ),
        (
            "type = \"list<int>\"\ncolumn = \"b\"",
            ProblemCode::KeyMisfit,
            "scalar types",
        ),
    ] {
        unsound(&retype(rest), code, said);
    }
    let alone = field("type = \"int\"\ncolumn = \"b\"");
    unsound(&alone, ProblemCode::KeyMisfit, "goes with `change");
    let member = "[[field]]\nid = 1\nname = \"a\"\ntype = \"struct\"\n[[field.field]]\nid = 2\n\
        name = \"b\"\ntype = \"int\"\nchange = \"retype\"\ncolumn = \"c\"\n";
    unsound(member, ProblemCode::KeyMisfit, "top level");
    let other = "[[field]]\nid = 2\nname = \"A_INT\"\ntype = \"int\"\n";
    let both = format!("{good}{other}");
    unsound(&both, ProblemCode::NameCollision, "one column in the files");
}

#[test]
fn a_cast_to_the_old_type_says_from_which_form_and_what_may_be_lost() {
    let cast = |kind: &str, cast: &str| {
        field(&format!(
            "type = \"{kind}\"\nchange = \"cast_old\"\ncast = {{ {cast} }}"
        ))
    };
    for (kind, rest) in [
        ("int", "from = \"float\""),
        (
            "int",
            "from = \"decimal(12,2)\", money = { thousands = \",\" }, lossy = \"round\"",
        ),
        ("float", "from = \"decimal(38,10)\", lossy = \"round\""),
        (
            "date",
            "from = \"timestamp\", time_zone = \"UTC\", formats = [\"epoch_s\"], lossy = \"truncate\"",
        ),
        ("string", "from = \"json\""),
    ] {
        sound(&cast(kind, rest));
    }
    let misfit = ProblemCode::KeyMisfit;
    for (kind, rest, code, said) in [
        ("int", "from = \"int\"", misfit, "can be cast"),
        ("int", "from = \"timestamp\"", misfit, "can be cast"),
        ("string", "from = \"float\"", misfit, "can be cast"),
        ("timestamp", "from = \"date\"", misfit, "can be cast"),
        ("int", "from = \"enum\"", misfit, "can be cast"),
        ("list<int>", "from = \"float\"", misfit, "scalar types"),
        (
            "int",
            "from = \"string\", lossy = \"round\"",
            misfit,
            "does not fit",
        ),
        (
            "float",
            "from = \"int\", lossy = \"truncate\"",
            misfit,
            "does not fit",
        ),
        (
            "int",
            "from = \"float\", formats = [\"%F\"]",
            misfit,
            "fits only",
        ),
        (
            "int",
            "from = \"decimal(9,2)\", money = { thousands = \"7\" }",
            ProblemCode::BadMoney,
            "one mark",
        ),
        (
            "date",
            "from = \"timestamp\"",
            ProblemCode::BadTimeZone,
            "time_zone",
        ),
    ] {
        unsound(&cast(kind, rest), code, said);
    }
    let without = field("type = \"int\"\nchange = \"cast_old\"");
    unsound(&without, misfit, "needs `cast`");
    let alone = field("type = \"int\"\ncast = { from = \"float\" }");
    unsound(&alone, misfit, "goes with");
}

/// The folder of shared cases.
fn shared_cases() -> std::path::PathBuf {
    let named = std::env::var_os("LAKEBED_SHARED").map(std::path::PathBuf::from);
    let beside = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let cases = named.unwrap_or(beside).join("cases/handed");
    assert!(
        cases.is_dir(),
        "the shared cases are missing: LAKEBED_SHARED names their folder"
    );
    cases
}

#[test]
fn schemas_of_the_shared_cases_are_sound_unless_their_refusal_is_the_case() {
    let mut count = 0;
    for entry in std::fs::read_dir(shared_cases()).unwrap() {
        let file = entry.unwrap().path().join("case.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let start = text.find("[[field]]").unwrap();
        let end = text.find("\n[expect]").unwrap();
        let problems = validate(&version(&text[start..end]));
        let refused = text[end..].contains("stage = \"publish\"");
        assert_eq!(
            !problems.is_empty(),
            refused,
            "{}: {problems:?}",
            file.display()
        );
        count += 1;
    }
    assert!(count > 0);
}
