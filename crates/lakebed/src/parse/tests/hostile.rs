//! Pages that were made to hurt: each ends in bounded time and memory, with a record or a reason.

use super::*;

const RULES: &str = r#"
[[parse.page]]
[[parse.page.item]]
each = "li"
[parse.page.item.field]
name = "a::text"
after = "a ~ b::text"
deep = { css = "div div div p::text", all = true }
has = { css = "p:has(b)", exists = true }
text = { css = "::text", join = " ", clean = ["collapse"] }
[[parse.page.follow]]
stage = "list"
url = "a::attr(href)"
"#;

fn codes(page: &ParsedPage) -> Vec<&str> {
    let faults = page.rejects.iter().flat_map(|r| &r.faults);
    faults.map(|f| f.code.as_str()).collect()
}

#[test]
fn pages_beyond_a_limit_are_one_reject_with_its_reason() {
    let rules = rules(RULES);
    for (html, code) in [
        ("<div>".repeat(300_000), "too_deep"),
        ("<li>".repeat(4_500_000), "too_large"),
        (format!("<li><a>x</a>{}", "<b>".repeat(5_000)), "too_deep"),
        // Every item holds those behind it: the text of all of them is too much.
        (
            format!("{}{}", "<li><ul>".repeat(400), "x".repeat(2 << 20)),
            "too_large",
        ),
        // Each `b` would look through all elements before it.
        (format!("<li>{}", "<b></b>".repeat(200_000)), "too_costly"),
    ] {
        let page = parsed(&rules, &html);
        assert_eq!(codes(&page), [code], "{html:.40}");
        assert_eq!(
            (page.records.len(), page.follow_ups.len()),
            (0, 0),
            "{html:.40}"
        );
    }
}

#[test]
fn large_and_broken_pages_are_parsed_all_the_same() {
    let plain = rules("[[parse.page]]\nitem = [{ each = 'li', field.a = 'a::text' }]\n");
    let page = parsed(&plain, &"<li><a href=/x>x</a>".repeat(100_000));
    assert_eq!(page.records.len(), 100_000);
    let big = format!("<li><a>x</a><p>{}", "y".repeat(64 << 20));
    assert_eq!(parsed(&plain, &big).records.len(), 1);
    for rubbish in [
        "",
        "<",
        "<li",
        "<li><a",
        "\u{0}<li>",
        "</li></a><table><li><tr><a>x",
        "<svg><li><math><a>",
    ] {
        assert!(codes(&parsed(&plain, rubbish)).is_empty(), "{rubbish:?}");
    }
    let bytes: Vec<u8> = (0..200_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let page = parsed_at(&plain, "http://a.test/", "list", &bytes);
    assert_eq!(page.page.as_deref(), Some("1"));
}

#[test]
fn json_beyond_a_limit_is_one_reject() {
    let rules = rules("[[parse.page]]\nitem = [{ each = '$.rows[*]', field.a = '$..x' }]\n");
    for (body, code) in [
        ("[".repeat(1_000_000), "too_deep"),
        ("{\"a\":".repeat(1_000_000), "too_deep"),
        (
            format!("{}1{}", "[".repeat(128), "]".repeat(128)),
            "too_deep",
        ),
        (format!("a{}", "{".repeat(1_000)), "no_json"),
        ("{\"rows\":[{\"x\":1,\"x\":2}]}".to_owned(), "no_json"),
        (format!("[{}0]", "0,".repeat(6_000_000)), "too_large"),
        ("<html>".to_owned(), "no_json"),
    ] {
        assert_eq!(codes(&parsed(&rules, &body)), [code], "{body:.20}");
    }
    let many = format!("{{\"rows\":[{}{{\"x\":1}}]}}", "{\"x\":1},".repeat(20_000));
    assert_eq!(parsed(&rules, &many).records.len(), 20_001);
}

#[test]
fn what_json_cannot_be_is_told_with_its_place() {
    let rules = rules("[[parse.page]]\nitem = [{ each = '$.rows[*]', field.a = '$..x' }]\n");
    for (body, told) in [
        (
            "{\"rows\":[\n{\"x\":1,\"x\":2}]}",
            "a member twice at line 2 column 13",
        ),
        ("{\"rows\":[\n1e999999]}", "line 2 column 8"),
        ("{\"rows\":[\n\"\\ud800\"]}", "line 2 column"),
    ] {
        let page = parsed(&rules, body);
        let reason = &page.rejects[0].faults[0].reason;
        assert!(reason.contains(told), "{body}: {reason}");
    }
}

#[test]
fn a_regex_costs_what_its_program_is_large() {
    let text = format!("<li><a>{}</a>", "a".repeat(400_000));
    let with = |regex: &str| {
        let field = format!("{{ css = 'a::text', clean = [{{ regex = '{regex}' }}] }}");
        rules(&format!(
            "[[parse.page]]\nitem = [{{ each = 'li', field.a = {field} }}]\n"
        ))
    };
    let begin = std::time::Instant::now();
    let page = parsed(&with("(?:(?:a{1,90}){1,90}b)"), &text);
    assert_eq!(codes(&page), ["too_costly"]);
    assert!(begin.elapsed().as_secs() < 30);
    let page = parsed(&with(r"(\w+)"), &text);
    assert_eq!(page.records.len(), 1);
}
