//! `retype` and `cast_old` after the past.

use super::*;

fn retype(id: u32, kind: &str, column: &str) -> String {
    f(
        id,
        "reads",
        &format!("{kind}\nchange = \"retype\"\ncolumn = \"{column}\""),
    )
}

fn title() -> String {
    f(1, "标题", "string")
}

fn v2() -> SchemaSpec {
    version(2, "", &[title(), retype(9, "string", "reads_text")])
}

/// The one note that holds the words.
#[track_caller]
fn noted(versions: &[SchemaSpec], new: &SchemaSpec, words: &str) {
    let found = problems(versions, new);
    assert!(refuse(new, &found, None).is_ok(), "{found:?}");
    assert!(found.iter().any(|p| p.message.contains(words)), "{found:?}");
}

#[test]
fn a_retyped_field_takes_the_place_of_the_one_of_its_name() {
    // The old one need not be listed in `removed`; it may be, by its id.
    noted(
        &[v1()],
        &v2(),
        "takes the place of id `2` of type `int`: all values",
    );
    let listed = version(2, "removed = [2]", &[title(), retype(9, "string", "t")]);
    allowed(&[v1()], &listed, 1);
    let by_name = version(
        2,
        "removed = [\"reads\"]",
        &[title(), retype(9, "string", "t")],
    );
    refused(&[v1()], &by_name, ProblemCode::BadRemoved, "is not listed");
    let some = version(2, "", &[title(), retype(9, "bool", "t")]);
    noted(&[v1()], &some, "is in `reads__v1`");
    // A field that was removed before can be retyped, too.
    let gone = version(2, "removed = [\"reads\"]", &[title()]);
    let later = version(3, "", &[title(), retype(9, "string", "t")]);
    noted(&[v1(), gone], &later, "id `2`");
}

#[test]
fn a_retyped_field_stays_as_it_is_or_is_renamed() {
    let same = version(3, "", &[title(), retype(9, "string", "reads_text")]);
    allowed(&[v1(), v2()], &same, 0);
    let moved = version(3, "", &[title(), retype(9, "string", "reads_new")]);
    allowed(&[v1(), v2()], &moved, 1);
    // Without its own column it would be mixed with the old field.
    let bare = version(3, "", &[title(), f(9, "reads", "string")]);
    refused(
        &[v1(), v2()],
        &bare,
        ProblemCode::NameReused,
        "a name of its own",
    );
    let renamed = |keys: &str| {
        let keys = format!("string\nrenamed_from = \"reads\"\nfrom = \"reads\"\n{keys}");
        version(3, "", &[title(), f(9, "views", &keys)])
    };
    allowed(&[v1(), v2()], &renamed(""), 0);
    let kept = renamed("change = \"retype\"\ncolumn = \"reads_text\"");
    allowed(&[v1(), v2()], &kept, 0);
}

#[test]
fn retype_again_and_back() {
    let three = version(3, "", &[title(), retype(12, "int", "reads_again")]);
    noted(
        &[v1(), v2()],
        &three,
        "takes the place of id `9` of type `string`",
    );
    // The old field itself does not come back.
    let back = version(3, "", &[title(), f(2, "reads", "int")]);
    let found = problems(&[v1(), v2()], &back);
    assert!(
        found.iter().any(|p| p.code == ProblemCode::IdReused
            && p.hint.as_deref().unwrap_or("").contains("retype once more")),
        "{found:?}"
    );
    // Nor can its name, or the column of the new one, be another field's.
    let other = version(3, "removed = [9]", &[title(), f(12, "reads", "int")]);
    refused(
        &[v1(), v2()],
        &other,
        ProblemCode::NameReused,
        "that of id `2`",
    );
    let column = [
        title(),
        retype(9, "string", "x"),
        f(12, "reads_text", "int"),
    ];
    let found = problems(&[v1(), v2()], &version(3, "", &column));
    assert!(
        found.iter().any(|p| p.code == ProblemCode::NameReused),
        "{found:?}"
    );
}

#[test]
fn a_place_is_taken_once_and_by_the_last_name() {
    let views = |kind: &str| {
        let keys = format!("{kind}\nrenamed_from = \"reads\"\nfrom = \"reads\"");
        version(3, "", &[title(), f(9, "views", &keys)])
    };
    let past = [v1(), v2(), views("string")];
    // `reads` was id 2 last, whose place id 9 has.
    let again = version(
        4,
        "removed = [\"views\"]",
        &[title(), retype(12, "bool", "x")],
    );
    refused(&past, &again, ProblemCode::KeyMisfit, "which id `9` has");
    let keys = "int\nfrom = \"reads\"\nchange = \"retype\"\ncolumn = \"views_int\"";
    let under_its_name = version(4, "", &[title(), f(12, "views", keys)]);
    noted(&past, &under_its_name, "takes the place of id `9`");
    let versions = [v1(), v2(), views("string"), under_its_name];
    let links = crate::registry::retyped_ids(&versions);
    assert_eq!(links.into_iter().collect::<Vec<_>>(), [(9, 2), (12, 9)]);
}

#[test]
fn what_cannot_be_retyped_is_refused_with_the_way_out() {
    let with = |field: String| version(2, "", &[title(), field]);
    let misfit = ProblemCode::KeyMisfit;
    refused(
        &[],
        &version(1, "", &[retype(2, "int", "x")]),
        misfit,
        "no old type",
    );
    let other = "int\nchange = \"retype\"\ncolumn = \"x\"";
    let both = [title(), f(2, "reads", "int"), f(9, "likes", other)];
    refused(
        &[v1()],
        &version(2, "", &both),
        misfit,
        "no field is called `likes`",
    );
    refused(
        &[v1()],
        &with(retype(9, "date", "x")),
        ProblemCode::TypeChanged,
        "\"dual\"",
    );
    refused(
        &[v1()],
        &with(retype(9, "int", "x")),
        misfit,
        "keep the field with id `2`",
    );
    let old = f(2, "old", "int\nrenamed_from = \"reads\"\nfrom = \"old\"");
    let stays = version(2, "", &[title(), old, retype(9, "string", "x")]);
    refused(&[v1()], &stays, misfit, "stays as `old`");
    // The column of another field is not free.
    refused(
        &[v1()],
        &with(retype(9, "string", "READS")),
        ProblemCode::NameReused,
        "id `2`",
    );
    // An id that was there before cannot begin to be a retyped one.
    let begun = f(2, "reads", "int\nchange = \"retype\"\ncolumn = \"x\"");
    refused(&[v1()], &with(begun), misfit, "belongs to a new id");
    let add_only = check_evolution(&past(&[v1()]), &v2(), Evolution::AddOnly);
    assert!(
        add_only
            .iter()
            .any(|p| p.code == ProblemCode::NotAnAddition)
    );
}

#[test]
fn what_changes_beside_the_type_is_noted() {
    let day = version(1, "", &[f(2, "reads", "date\nprivacy = \"personal\"")]);
    let keys = "timestamp\nchange = \"retype\"\ncolumn = \"x\"\ntime_zone = \"Asia/Taipei\"";
    let new = version(2, "", &[f(9, "reads", keys)]);
    noted(
        std::slice::from_ref(&day),
        &new,
        "midnight in UTC, not in `Asia/Taipei`",
    );
    noted(&[day], &new, "old values are personal");
}

#[test]
fn the_old_type_casts_new_forms_under_its_id() {
    let cast = |id: u32, lossy: &str| {
        let keys = format!("int\nchange = \"cast_old\"\ncast = {{ from = \"float\"{lossy} }}");
        version(2, "", &[title(), f(id, "reads", &keys)])
    };
    let new = cast(2, ", lossy = \"round\"");
    noted(&[v1()], &new, "of the form `float` are cast to `int`");
    let again = SchemaSpec {
        fields: new.fields.clone(),
        ..version(3, "", &[title()])
    };
    allowed(&[v1(), new], &again, 0);
    let found = problems(&[v1()], &cast(9, ""));
    assert!(
        found.iter().any(|p| p.message.contains("on a new id")),
        "{found:?}"
    );
    let first = version(
        1,
        "",
        &[f(
            2,
            "reads",
            "int\nchange = \"cast_old\"\ncast = { from = \"float\" }",
        )],
    );
    refused(&[], &first, ProblemCode::KeyMisfit, "no old type");
}
