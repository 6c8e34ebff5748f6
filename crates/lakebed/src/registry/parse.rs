//! A version's TOML text, with errors that say where and what was meant.

use std::fmt::Display;

use toml::de::{DeTable, DeValue};

use crate::config::{Project, line_at, list_keys, nearest, parse_toml};
use crate::error::{Error, Result};
use crate::name::DatasetRef;
use crate::registry::{Problem, ProblemCode, list_fields, refuse};
use crate::spec::{FieldType, SchemaSpec, Token};

/// Reads a version; `file` names it in errors. It is well formed then, not yet sound: see
/// [`validate`](crate::registry::validate).
pub fn parse(text: &str, file: impl Display) -> Result<SchemaSpec> {
    let parsed = check_types(text, &file).and_then(|()| parse_toml::<SchemaSpec>(text, &file));
    let spec = parsed?;
    check_number_tokens(text, &file, &spec)?;
    Ok(spec)
}

/// Unknown types and dataset names get the advice that a plain TOML error would lose.
fn check_types(text: &str, file: &dyn Display) -> Result<()> {
    for key in list_keys(text) {
        let Some(value) = &key.text else { continue };
        let is_type = key.path.starts_with("field[")
            && (key.path.ends_with("].type") || key.path.ends_with("].cast.from"));
        let error = if is_type {
            value
                .parse::<FieldType>()
                .err()
                .map(|e| match type_hint(value) {
                    Some(hint) => e.hint(hint),
                    None => e,
                })
        } else if key.path == "dataset" {
            value.parse::<DatasetRef>().err()
        } else {
            None
        };
        if let Some(error) = error {
            return Err(error
                .with("key", &key.path)
                .with("file", file)
                .with("line", key.line));
        }
    }
    Ok(())
}

/// Words for types, ours and other systems', each with ours.
const TYPE_WORDS: [(&str, &str); 48] = [
    ("string", "string"),
    ("text", "string"),
    ("varchar", "string"),
    ("char", "string"),
    ("str", "string"),
    ("utf8", "string"),
    ("uuid", "string"),
    ("int", "int"),
    ("integer", "int"),
    ("bigint", "int"),
    ("smallint", "int"),
    ("long", "int"),
    ("int64", "int"),
    ("int32", "int"),
    ("i64", "int"),
    ("float", "float"),
    ("double", "float"),
    ("real", "float"),
    ("float64", "float"),
    ("f64", "float"),
    ("number", "float"),
    ("bool", "bool"),
    ("boolean", "bool"),
    ("decimal", "decimal(12,2)"),
    ("numeric", "decimal(12,2)"),
    ("money", "decimal(12,2)"),
    ("date", "date"),
    ("timestamp", "timestamp"),
    ("timestamptz", "timestamp"),
    ("datetime", "timestamp"),
    ("time", "timestamp"),
    ("enum", "enum"),
    ("json", "json"),
    ("jsonb", "json"),
    ("any", "json"),
    ("variant", "json"),
    ("bytes", "bytes"),
    ("blob", "bytes"),
    ("binary", "bytes"),
    ("bytea", "bytes"),
    ("list", "list<string>"),
    ("array", "list<string>"),
    ("map", "map<string>"),
    ("dict", "map<string>"),
    ("struct", "struct"),
    ("object", "struct"),
    ("record", "struct"),
    ("row", "struct"),
];

/// What somebody who wrote another system's type most likely wants.
fn type_hint(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    let word = lower.split(['(', '<', '[']).next().unwrap_or("").trim();
    let near = nearest(word, TYPE_WORDS.iter().map(|(word, _)| *word))?;
    let (_, ours) = TYPE_WORDS.iter().find(|(word, _)| *word == near)?;
    Some(format!("did you mean `{ours}`?"))
}

/// A number token counts by its own text, so one whose text is lost in reading is refused.
fn check_number_tokens(text: &str, file: &dyn Display, spec: &SchemaSpec) -> Result<()> {
    let floats = list_fields(&spec.fields).iter().any(|f| {
        [
            &f.field.null_values,
            &f.field.true_values,
            &f.field.false_values,
        ]
        .into_iter()
        .flatten()
        .any(|t| matches!(t, Token::Float(_)))
    });
    if !floats {
        return Ok(());
    }
    let table = DeTable::parse(text)
        .map_err(|e| Error::internal("read the TOML text again").caused_by(e))?;
    let Some(fields) = table.get_ref().get("field") else {
        return Ok(());
    };
    find_lost_number(fields.get_ref()).map_or(Ok(()), |(number, offset)| {
        Err(
            Error::invalid(format!("the token `{number}` would lose its own spelling"))
                .with("file", file)
                .with("line", line_at(text, offset))
                .hint(format!(
                    "a number token matches by its own text, which TOML does not keep here: write it without trailing zeros and exponent; values of a bool may be written as texts, \"{number}\""
                )),
        )
    })
}

fn find_lost_number(value: &DeValue<'_>) -> Option<(String, usize)> {
    match value {
        DeValue::Array(fields) => fields.iter().find_map(|f| find_lost_number(f.get_ref())),
        DeValue::Table(field) => {
            field
                .iter()
                .find_map(|(key, value)| match key.get_ref().as_ref() {
                    "field" => find_lost_number(value.get_ref()),
                    "null_values" | "true_values" | "false_values" => {
                        value.get_ref().as_array()?.iter().find_map(|item| {
                            let DeValue::Float(number) = item.get_ref() else {
                                return None;
                            };
                            let kept = number.as_str().parse::<f64>().is_ok_and(|x| {
                                x.is_finite() && Token::Float(x).text() == number.as_str()
                            });
                            (!kept).then(|| (number.as_str().to_owned(), item.span().start))
                        })
                    }
                    _ => None,
                })
        }
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => None,
    }
}

/// Reads the file of a version from the project; one that says another dataset or number is refused.
pub fn load(project: &Project, dataset: &DatasetRef, version: u32) -> Result<SchemaSpec> {
    let (text, path) = project.read_schema_file(dataset, version)?;
    let spec = parse(&text, path.display())?;
    let file = path.display().to_string();
    refuse(&spec, &check_place(&spec, dataset, version), Some(&file))?;
    Ok(spec)
}

/// Whether the version says the dataset and number of the file it was read from.
#[must_use]
pub fn check_place(spec: &SchemaSpec, dataset: &DatasetRef, version: u32) -> Vec<Problem> {
    let mut problems = Vec::new();
    if spec.dataset != *dataset {
        problems.push(
            Problem::new(
                ProblemCode::WrongPlace,
                format!("`dataset` says `{}`, the folder says `{dataset}`", spec.dataset),
            )
            .hint("move the file or correct the key; a copy of another dataset's file is the usual cause"),
        );
    }
    if spec.version != version {
        problems.push(
            Problem::new(
                ProblemCode::WrongPlace,
                format!(
                    "`version` says {}, the file name says {version}",
                    spec.version
                ),
            )
            .hint(format!(
                "rename the file to `v{}.toml` or correct the key",
                spec.version
            )),
        );
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "dataset = \"clean/weibo\"\nversion = 1\n";

    fn error(body: &str) -> Error {
        parse(&format!("{HEAD}{body}"), "v1.toml").unwrap_err()
    }

    #[test]
    fn unknown_keys_name_the_nearest_at_every_depth() {
        let e = error("[[field]]\nid = 1\nname = \"a\"\ntype = \"int\"\nrequird = true\n");
        assert_eq!(
            e.to_string(),
            "unknown key `field[1].requird` (file `v1.toml`, line `7`)"
        );
        assert_eq!(e.hints(), ["did you mean `required`?"]);
        let e = error(
            "[[field]]\nid = 1\nname = \"a\"\ntype = \"struct\"\n[[field.field]]\nid = 2\nnam = \"b\"\n",
        );
        assert!(e.message().contains("field[1].field[1].nam"), "{e}");
        assert!(error("[input]\nencodin = \"x\"\n").hints()[0].contains("`encoding`"));
    }

    #[test]
    fn unknown_types_name_the_nearest() {
        for (bad, ours) in [
            ("varchar(20)", "string"),
            ("integr", "int"),
            ("timestmp", "timestamp"),
            ("Array<int>", "list<string>"),
        ] {
            let e = error(&format!(
                "[[field]]\nid = 1\nname = \"名\"\ntype = \"{bad}\"\n"
            ));
            assert!(e.to_string().contains("line `6`"), "{e}");
            let hints = e.hints().join("\n");
            assert!(
                hints.contains(&format!("did you mean `{ours}`?")),
                "{bad}: {hints}"
            );
        }
    }

    #[test]
    fn wrong_value_types_name_the_key() {
        let e = error("[[field]]\nid = \"1\"\nname = \"a\"\ntype = \"int\"\n");
        assert!(e.message().starts_with("key `field[1].id`: "), "{e}");
        let e = error("[[field]]\nid = 1\nname = \"a\"\ntype = \"int\"\nnull_values = [true]\n");
        assert!(e.message().contains("expected a text or a number"), "{e}");
        assert!(e.to_string().contains("line `7`"), "{e}");
        let e = parse("dataset = \"weibo\"\nversion = 1\n", "v1.toml").unwrap_err();
        assert!(e.message().contains("`weibo` is not a dataset"), "{e}");
        assert!(!e.hints().is_empty());
        let e = error("[[field]]\nid = -1\nname = \"a\"\ntype = \"int\"\n");
        assert!(e.to_string().contains("field[1].id"), "{e}");
    }

    #[test]
    fn a_missing_key_names_its_field() {
        let e = error("[[field]]\nid = 1\nname = \"a\"\ntype = \"int\"\n\n[[field]]\nid = 2\n");
        assert!(e.message().contains("missing field `name`"), "{e}");
        assert!(e.to_string().contains("line `8`"), "{e}");
    }

    #[test]
    fn number_tokens_keep_their_text() {
        let with = |t: &str| {
            format!("{HEAD}[[field]]\nid = 1\nname = \"a\"\ntype = \"int\"\nnull_values = [{t}]\n")
        };
        for good in ["-999", "-1.5", "\"-999.0\""] {
            assert!(parse(&with(good), "v1.toml").is_ok(), "{good}");
        }
        for bad in ["-999.0", "1.50", "1e3", "nan", "inf"] {
            let e = parse(&with(bad), "v1.toml").unwrap_err();
            assert!(
                e.hints()[0].contains(&format!("\"{bad}\"")),
                "{e} {:?}",
                e.hints()
            );
        }
    }

    #[test]
    fn a_file_from_the_wrong_place_is_named() {
        let spec = parse(HEAD, "v1.toml").unwrap();
        let weibo = "clean/weibo".parse().unwrap();
        assert!(check_place(&spec, &weibo, 1).is_empty());
        assert_eq!(
            check_place(&spec, &"clean/wechat".parse().unwrap(), 2).len(),
            2
        );
    }

    #[test]
    fn a_version_is_loaded_from_its_place_alone() {
        let dir = tempfile::tempdir().unwrap();
        let project = Project::init(dir.path(), None).unwrap().project;
        let weibo: DatasetRef = "clean/weibo".parse().unwrap();
        project.write_schema_file(&weibo, 1, HEAD).unwrap();
        project.write_schema_file(&weibo, 2, HEAD).unwrap();
        assert_eq!(load(&project, &weibo, 1).unwrap().version, 1);
        let e = load(&project, &weibo, 2).unwrap_err();
        assert!(e.to_string().contains("v2.toml"), "{e}");
        assert!(e.message().contains("the file name says 2"), "{e}");
    }

    #[test]
    fn depth_is_refused_or_read_never_a_crash() {
        let header = format!("[[field{}]]\nid = 1\n", ".field".repeat(20_000));
        assert!(parse(&format!("{HEAD}{header}"), "v1.toml").is_err());
        let inline = format!("field = {}1{}\n", "[".repeat(100_000), "]".repeat(100_000));
        assert!(parse(&format!("{HEAD}{inline}"), "v1.toml").is_err());
    }
}
