//! Proposals and the life of fields.

use super::*;
use crate::registry::{Evolution, check_evolution, history, parse, render_toml, validate};
use crate::spec::{By, FieldType, PUBLISHED_FORMAT};
use crate::time::Instant;

fn published(schemas: Vec<SchemaSpec>) -> Vec<PublishedSchema> {
    let publish = |schema: SchemaSpec| PublishedSchema {
        format: PUBLISHED_FORMAT,
        lake: "lake".parse().unwrap(),
        published_at: Instant::from_micros(i64::from(schema.version)),
        by: By {
            program: "lakebed".to_owned(),
            user: None,
            run: None,
            note: None,
        },
        base_hash: None,
        git_commit: None,
        schema,
    };
    schemas.into_iter().map(publish).collect()
}

fn field(name: &str, kind: &str) -> FieldSpec {
    FieldSpec::new(0, name, kind.parse().unwrap())
}

fn top(field: FieldSpec) -> AddedField {
    AddedField {
        parent: None,
        field,
    }
}

/// Sound by itself and after the past, and the same after a turn through TOML.
#[track_caller]
fn publishable(past: &[PublishedSchema], spec: &SchemaSpec) {
    let mut problems = validate(spec);
    problems.extend(check_evolution(past, spec, Evolution::Free));
    assert!(problems.iter().all(Problem::is_note), "{problems:?}");
    assert_eq!(parse(&render_toml(spec), "v.toml").unwrap(), *spec);
}

use crate::registry::Problem;

fn first() -> SchemaSpec {
    let mut author = field("作者", "list<struct>");
    author.fields = vec![field("名", "string")];
    let mut reads = field("reads", "int");
    reads.required = true;
    let mut kind = field("kind", "enum");
    kind.values = vec!["flat".to_owned()];
    propose_first(&"clean/a".parse().unwrap(), vec![author, reads, kind], None)
}

#[test]
fn any_input_names_make_a_sound_first_version() {
    let names = [
        "", "dt", "Source", "_id", "Id", "id", "ID", "标题", "a\tb", "/x", "__", " ", "_",
    ];
    let long = "长".repeat(100);
    let fields = names
        .iter()
        .copied()
        .chain([long.as_str()])
        .map(|n| field(n, "int"));
    let spec = propose_first(&"clean/a".parse().unwrap(), fields.collect(), None);
    publishable(&[], &spec);
    for (given, made) in names.iter().zip(&spec.fields) {
        let path = input_path(made);
        assert_eq!(path, Some(vec![(*given).to_owned()]), "{}", made.name);
    }
    assert_eq!(spec.fields[7], FieldSpec::new(8, "标题", FieldType::Int));
}

#[test]
fn the_next_version_takes_ids_that_were_never_used() {
    let one = first();
    let ids: Vec<u32> = list_fields(&one.fields)
        .iter()
        .map(|f| f.field.id)
        .collect();
    assert_eq!(ids, [1, 2, 3, 4]);
    let mut two = one.clone();
    two.version = 2;
    two.base = Some(1);
    let gone = two.fields.pop().unwrap();
    assert_eq!(gone.id, 4);
    two.removed = vec![crate::spec::RemovedField::Id(4)];
    let past = published(vec![one, two]);
    let mut link = field("Kind", "struct");
    link.fields = vec![field("url", "string"), field("URL", "string")];
    let proposal = Proposal {
        fields: vec![
            top(link),
            AddedField {
                parent: Some(1),
                field: field("年龄", "int"),
            },
        ],
        ..Proposal::default()
    };
    let next = propose_next(&past, proposal).unwrap();
    publishable(&past, &next);
    assert_eq!((next.version, next.base), (3, Some(2)));
    assert!(next.removed.is_empty());
    // `kind` was a name once, so the new one is numbered, and reads its input by `from`.
    let new = &next.fields[2];
    assert_eq!(
        (new.id, new.name.as_str(), new.from.as_deref()),
        (5, "Kind_2", Some("Kind"))
    );
    assert_eq!(
        (new.fields[1].id, new.fields[1].name.as_str()),
        (7, "URL_2")
    );
    let age = &next.fields[0].fields[1];
    assert_eq!((age.id, age.name.as_str()), (8, "年龄"));
    assert_eq!(
        next.note.as_deref(),
        Some("adds Kind_2 (struct); adds 年龄 (int)")
    );
}

#[test]
fn a_dual_field_relaxes_the_old_one_and_enums_grow() {
    let past = published(vec![first()]);
    let mut text = field("reads_text", "string");
    text.from = Some("reads".to_owned());
    text.change = Some(ChangeKind::Dual);
    text.lenient = true;
    let proposal = Proposal {
        fields: vec![top(text)],
        enum_values: BTreeMap::from([(
            4,
            vec!["house".to_owned(), "flat".to_owned(), String::new()],
        )]),
        note: None,
    };
    let next = propose_next(&past, proposal).unwrap();
    publishable(&past, &next);
    assert!(!next.fields[1].required);
    assert_eq!(next.fields[2].values, ["flat", "house"]);
}

#[test]
fn what_is_not_there_cannot_be_extended() {
    let past = published(vec![first()]);
    let orphan = Proposal {
        fields: vec![AddedField {
            parent: Some(77),
            field: field("x", "int"),
        }],
        ..Proposal::default()
    };
    assert!(propose_next(&past, orphan).is_err());
    let values = Proposal {
        enum_values: BTreeMap::from([(78, vec!["x".to_owned()])]),
        ..Proposal::default()
    };
    assert!(propose_next(&past, values).is_err());
    assert!(propose_next(&[], Proposal::default()).is_err());
    assert_eq!((next_free_id(&[]), next_free_id(&past)), (1, 5));
}

#[test]
fn history_tells_the_life_of_a_field() {
    let text = |n: u32, base: &str, fields: &str| {
        parse(
            &format!("dataset = \"clean/a\"\nversion = {n}\n{base}{fields}"),
            "v",
        )
        .unwrap()
    };
    let f = |id: u32, name: &str, rest: &str| {
        format!("[[field]]\nid = {id}\nname = \"{name}\"\ntype = {rest}\n")
    };
    let x = f(1, "x", "\"int\"");
    let past = published(vec![
        text(1, "", &x),
        text(
            2,
            "base = 1\n",
            &format!("{x}{}", f(2, "价", "\"decimal(5,2)\"")),
        ),
        text(
            3,
            "base = 2\n",
            &format!(
                "{x}{}",
                f(2, "价格", "\"decimal(9,2)\"\nrenamed_from = \"价\"")
            ),
        ),
        text(4, "base = 3\nremoved = [2]\n", &x),
        text(
            5,
            "base = 4\n",
            &format!("{x}{}", f(2, "价格", "\"decimal(9,2)\"")),
        ),
    ]);
    for name in ["价", "价格", "2"] {
        let lives = history(&past, name).unwrap();
        let [life] = &lives[..] else {
            panic!("{lives:?}")
        };
        assert_eq!((life.id, life.since, life.removed_in), (2, 2, None));
        assert_eq!(
            (life.path.as_str(), life.field_type.as_str()),
            ("价格", "decimal(9,2)")
        );
        let told: Vec<_> = life.events.iter().map(|e| e.version).collect();
        assert_eq!(told, [2, 3, 3, 4, 5], "{:?}", life.events);
    }
    let life = &history(&past[..4], "价格").unwrap()[0];
    assert_eq!(life.removed_in, Some(4));
    assert_eq!(history(&past, "x").unwrap()[0].events.len(), 1);
    let e = history(&past, "价钱格").unwrap_err();
    assert_eq!(e.hints(), ["did you mean `价格`?"]);
}
