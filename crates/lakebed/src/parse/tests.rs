//! Whole pages by whole rules: the kinds of values, rejects, links, hostile pages, two hundred real pages.

use std::collections::BTreeMap;

use super::*;
use crate::config::SourceConfig;
use crate::name::SourceName;
use crate::spec::{CaptureRecord, ParsedPage, RunKey};

mod books;
mod command;
mod hostile;
mod sheet;

fn rules_of(source: &str, parse: &str) -> crate::Result<Rules> {
    let name: SourceName = source.parse().unwrap();
    let text = format!("class = \"log\"\n{parse}");
    Rules::read(
        &SourceConfig::parse(&name, &text, "source.toml")?,
        "source.toml",
    )
}

fn rules(parse: &str) -> Rules {
    rules_of("shop", parse).unwrap()
}

fn run(source: &str) -> RunKey {
    RunKey {
        source: source.parse().unwrap(),
        date: "2026-11-30".parse().unwrap(),
        run: "day".parse().unwrap(),
    }
}

fn capture(url: &str, stage: &str, head: &str) -> CaptureRecord {
    serde_json::from_value(serde_json::json!({
        "capture_id": "0123456789abcdef0123456789abcdef",
        "request_key": "fedcba9876543210fedcba9876543210",
        "attempt": 1, "hop": 0, "kind": stage, "method": "GET", "url": url,
        "fetched_at": "2026-11-30T01:02:03.000004Z", "status": 200,
        "response_head": head, "wire_len": 0, "body_len": 0
    }))
    .unwrap()
}

fn parsed_at(rules: &Rules, url: &str, stage: &str, body: &[u8]) -> ParsedPage {
    let capture = capture(url, stage, "HTTP/1.1 200 OK\r\nX-Site:  a b\r\n\r\n");
    let run = run("shop");
    let input = PageInput {
        run: &run,
        capture: &capture,
        body,
    };
    parse_page(rules, &input)
}

fn parsed(rules: &Rules, body: &str) -> ParsedPage {
    parsed_at(
        rules,
        "http://a.test/list/x%20y?page=2&q=%E4%B8%AD",
        "list",
        body.as_bytes(),
    )
}

fn record(page: &ParsedPage, n: usize) -> String {
    page.records[n].record.to_json()
}

const ORIGIN: &str = r#""_raw":"shop/2026-11-30/day/0123456789abcdef0123456789abcdef","#;

#[test]
fn a_record_has_its_fields_in_order_and_where_it_comes_from() {
    let rules = rules(
        r#"
        [[parse.page]]
        stage = "list"
        [[parse.page.item]]
        each = "li.row"
        key = ["id"]
        [parse.page.item.field]
        zulu = "b::text"
        id = { css = "::attr(data-id)", required = true }
        tags = { css = "i::text", all = true, clean = ["trim"] }
        text = { css = "::text", join = "", clean = ["collapse"] }
        parts = { css = "::attr(data-p)", clean = [{ split = "、" }] }
        new = { css = ".new", exists = true }
        page = { query = "page", clean = ["int"] }
        word = { query = "q" }
        city = { path = -1 }
        site = { header = "x-site" }
        status = { page = "status" }
        none = { css = "u::text", default = 0 }
        fixed = { value = "v" }
        author = { css = ".author", field = { name = "em::text", url = { css = "a::attr(href)", clean = ["url"] } } }
        [parse.page.item.field.reviews]
        each = "p"
        field.stars = { css = "::attr(n)", clean = ["int"] }
        "#,
    );
    let page = parsed(
        &rules,
        "<base href='/b/'><ul><li class=row data-id=7 data-p=甲、乙><b>B</b> <i> x</i><i>y </i><s class=new></s>\
         <div class=author><em>名</em><a href='../z'>z</a></div><p n=5>p</p><p n=4>q</p></li><li class=row><b>C</b></ul>",
    );
    assert_eq!(
        record(&page, 0),
        format!(
            r#"{{"zulu":"B","id":"7","tags":["x","y"],"text":"B xy 名zpq","parts":["甲","乙"],"new":true,"page":2,"word":"中","city":"x y","site":"a b","status":200,"none":0,"fixed":"v","author":{{"name":"名","url":"http://a.test/z"}},"reviews":[{{"stars":5}},{{"stars":4}}],{ORIGIN}"_key":"7","_fetched_at":"2026-11-30T01:02:03.000004Z"}}"#
        )
    );
    assert_eq!((page.records.len(), page.rejects.len()), (1, 1));
    let reject = &page.rejects[0];
    assert_eq!(reject.item, Some(1));
    assert_eq!(
        (
            reject.faults[0].code.as_str(),
            reject.faults[0].path.as_str()
        ),
        ("required", "$.id")
    );
    assert_eq!(reject.record.get("zulu").unwrap().to_json(), r#""C""#);
}

#[test]
fn faults_name_the_way_to_the_value_and_none_hides_another() {
    let rules = rules(
        r#"
        [[parse.page]]
        [[parse.page.item]]
        field.price = { css = "b::text", clean = ["decimal"] }
        [parse.page.item.field.rows]
        each = "p"
        field.n = { css = "::attr(n)", clean = ["int"], required = true }
        "#,
    );
    let page = parsed(&rules, "<b>x</b><p n=1><p n=y><p>");
    let faults: Vec<(&str, &str)> = page.rejects[0]
        .faults
        .iter()
        .map(|f| (f.code.as_str(), f.path.as_str()))
        .collect();
    assert_eq!(
        faults,
        [
            ("no_number", "$.price"),
            ("no_number", "$.rows[1].n"),
            ("required", "$.rows[2].n")
        ]
    );
}

#[test]
fn json_pages_and_json_in_pages_keep_their_digits() {
    let parse = r#"
        [[parse.page]]
        url_regex = '/api/'
        [[parse.page.item]]
        each = "$.rows[*]"
        key = ["id", "city"]
        [parse.page.item.field]
        id = "$.id"
        city = "$.where.city"
        price = { json = "$.price", clean = ["decimal"] }
        tags = { json = "$.tags[*].t", all = true }
        where = { json = "$.where", field = { city = "$.city" } }
        [[parse.page]]
        [[parse.page.item]]
        each = { css = "script#d::text", clean = [{ regex = 'x = (\{.*\});' }, { json = "$.list[*]" }] }
        field.a = "$.a"
        [[parse.page.item]]
        dataset = "shop.offers"
        each = { json_ld = "Offer" }
        field.price = "$.price"
        [[parse.page.item]]
        dataset = "shop.things"
        each = { microdata = "Thing" }
        field.name = "$.name"
    "#;
    let rules = rules(parse);
    let body = r#"{"rows":[{"id":12345678901234567890,"price":1.50,"where":{"city":"台北"},"tags":[{"t":1e2},{"t":null}]}]}"#;
    let page = parsed_at(&rules, "http://a.test/api/x", "other", body.as_bytes());
    let json = record(&page, 0);
    let expected = r#"{"id":12345678901234567890,"city":"台北","price":"1.50","tags":[1e2],"where":{"city":"台北"},"#;
    assert!(json.starts_with(expected), "{json} {:?}", page.rejects);
    assert!(
        json.contains(r#""_key":"[\"12345678901234567890\",\"台北\"]""#),
        "{json}"
    );
    let html = r#"<script id=d>var x = {"list":[{"a":1.0},{"a":"二"}]};</script>
        <script type="application/ld+json">{"@type":"Product","offers":[{"@type":"Offer","price":2.50}]}</script>
        <p itemscope itemtype="http://schema.org/Thing"><b itemprop="name">N</b></p>"#;
    let page = parsed(&rules, html);
    let heads: Vec<String> = (0..4)
        .map(|n| {
            record(&page, n)
                .split(",\"_raw")
                .next()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    assert_eq!(
        heads,
        [
            r#"{"a":1.0"#,
            r#"{"a":"二""#,
            r#"{"price":2.50"#,
            r#"{"name":"N""#
        ]
    );
    assert_eq!(rules.datasets().len(), 3);
}

#[test]
fn links_are_told_once_with_what_the_page_announces() {
    let rules = rules(
        r#"
        [[parse.page]]
        [[parse.page.follow]]
        stage = "detail"
        each = ".row"
        url = "a::attr(href)"
        priority = 3
        total = { css = ".total::text", clean = [{ regex = '[\d,]+' }, { int = { thousands = "," } }] }
        payload.price = { css = "b::text", clean = ["int"] }
        [[parse.page.follow]]
        stage = "list"
        url = ".next::attr(href)"
        "#,
    );
    let page = parsed(
        &rules,
        "<p class=total>共 1,042 筆</p><div class=row><a href='/d/1#x'>1</a><b>5</b></div>\
         <div class=row><a href='/d/1'>again</a><b>6</b></div><div class=row><a href='mailto:a@b'>m</a><b>7</b></div>\
         <div class=row><a href='/d/2'>2</a><b>x</b></div><a class=next href='?page=3'>next</a><a class=next href='#top'>top</a>",
    );
    let json = serde_json::to_string(&page.follow_ups).unwrap();
    assert_eq!(
        json,
        r#"[{"stage":"detail","url":"http://a.test/d/1","priority":3,"payload":{"price":5},"group":"detail http://a.test/list/x%20y"},{"stage":"list","url":"http://a.test/list/x%20y?page=3"}]"#
    );
    assert_eq!(
        (page.expectations[0].expected, page.expectations[0].found),
        (1042, 1)
    );
    assert_eq!(page.other_links, 1);
    assert_eq!(page.rejects[0].faults[0].path, "$.price");
}

#[test]
fn the_first_rule_that_fits_decides_and_others_are_left_alone() {
    let rules = rules(
        r#"
        [[parse.page]]
        name = "gone"
        status = [404, 410]
        item = [{ field.state = { value = "gone" } }]
        [[parse.page]]
        stage = "detail"
        item = [{ min = 1, each = "h1", field.a = "::text" }]
        "#,
    );
    let mut record = capture("http://a.test/1", "detail", "");
    record.status = Some(410);
    let run = run("shop");
    let parsed = |capture: &CaptureRecord| {
        let body = b"<p>".as_slice();
        let run = &run;
        parse_page(&rules, &PageInput { run, capture, body })
    };
    let page = parsed(&record);
    assert_eq!(
        (page.page.as_deref(), page.records.len()),
        (Some("gone"), 1)
    );
    record.status = Some(500);
    assert_eq!(parsed(&record).page, None);
    record.status = Some(200);
    let page = parsed(&record);
    assert_eq!(page.rejects[0].faults[0].code, "too_few");
}

#[test]
fn a_base_is_seen_wherever_a_rule_looks_into_html() {
    let html = "<base href='/other/'><div><a href='x'>x</a></div>";
    for field in [
        "{ css = 'a::attr(href)', clean = ['url'] }",
        "{ field.b = { css = 'a::attr(href)', clean = ['url'] } }",
        "{ field.b = { field.c = { css = 'a::attr(href)', clean = ['url'] } } }",
    ] {
        let rules = rules(&format!(
            "[[parse.page]]\nitem = [{{ field.a = {field} }}]\n"
        ));
        let page = parsed(&rules, html);
        assert!(
            record(&page, 0).contains("http://a.test/other/x"),
            "{field}"
        );
    }
}

#[test]
fn rejected_records_are_not_among_those_that_must_be() {
    let rules = rules(
        "[[parse.page]]\nitem = [{ each = 'li', min = 2, field.a = { css = 'b::text', required = true } }]\n",
    );
    let page = parsed(&rules, "<li><b>1</b><li><b>2</b><li>");
    assert_eq!((page.records.len(), page.rejects.len()), (2, 1));
    let page = parsed(&rules, "<li><b>1</b><li><li>");
    assert_eq!(page.rejects[0].faults[0].code, "too_few");
}

#[test]
fn texts_of_every_charset_arrive_right() {
    let rules = rules("[[parse.page]]\nitem = [{ field.t = 'h1::text' }]\n");
    for (label, text) in [
        ("gbk", "简体中文：价格"),
        ("big5", "繁體中文：價格"),
        ("shift_jis", "日本語のページ・価格"),
        ("euc-kr", "한국어 가격"),
        ("gb18030", "𠮷野家㐀"),
    ] {
        let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
        let html = format!("<meta charset={label}><h1>{text}</h1>");
        let (bytes, _, lossy) = encoding.encode(&html);
        assert!(!lossy, "{label}");
        let page = parsed_at(&rules, "http://a.test/", "list", &bytes);
        assert_eq!(
            page.records[0].record.get("t").unwrap().scalar_text(),
            Some(text),
            "{label}"
        );
    }
}

#[test]
fn rules_that_cannot_be_are_refused_by_key_with_advice() {
    let page = "[[parse.page]]\n";
    let field = |f: &str| format!("{page}[[parse.page.item]]\nfield.a = {f}\n");
    for (parse, key, told) in [
        (String::new(), "", "no parse rules"),
        (page.to_owned(), "parse.page[1]", "gives nothing"),
        (
            field("'h1'"),
            "parse.page[1].item[1].field.a",
            "`h1` gives an element",
        ),
        (
            field("'h1..x::text'"),
            "parse.page[1].item[1].field.a",
            "h1..x",
        ),
        (
            field("{ css = 'h1..x::text' }"),
            "parse.page[1].item[1].field.a.css",
            "h1..x",
        ),
        (
            field("{ css = 'a::text', json = '$.a' }"),
            "parse.page[1].item[1].field.a",
            "several places",
        ),
        (
            field("{ clean = ['trim'] }"),
            "parse.page[1].item[1].field.a",
            "where the value comes from",
        ),
        (
            field("{ css = 'a::text', clean = ['trim', { regex = '(' }] }"),
            "parse.page[1].item[1].field.a.clean[2]",
            "regular expression",
        ),
        (
            field("{ css = 'a::text', all = true, join = '' }"),
            "parse.page[1].item[1].field.a",
            "do not go together",
        ),
        (
            field("{ css = 'a::text', default = 1, required = true }"),
            "parse.page[1].item[1].field.a",
            "never missing",
        ),
        (
            field("{ each = 'p' }"),
            "parse.page[1].item[1].field.a",
            "no field",
        ),
        (
            field("{ each = 'p::text', field.b = 'b::text' }"),
            "parse.page[1].item[1].field.a.each",
            "elements and JSON alone",
        ),
        (
            field("{ css = 'p', clean = ['trim'], field.b = 'b::text' }"),
            "parse.page[1].item[1].field.a.clean",
            "these are elements",
        ),
        (
            field("{ json = '$.a', field.b = 'b::text' }"),
            "parse.page[1].item[1].field.a.field.b",
            "this is JSON",
        ),
        (
            field("{ path = 0 }"),
            "parse.page[1].item[1].field.a.path",
            "counted from 1",
        ),
        (
            format!("{}key = ['b']\n", field("'a::text'")),
            "parse.page[1].item[1].key",
            "no field `b`",
        ),
        (
            format!("{}dataset = 'other'\n", field("'a::text'")),
            "parse.page[1].item[1].dataset",
            "does not belong",
        ),
        (
            format!("{page}[[parse.page.item]]\nfield._a = 'a::text'\n"),
            "parse.page[1].item[1].field._a",
            "cannot be the name",
        ),
        (
            format!("{page}follow = [{{ stage = 'd', url = 'a' }}]\n"),
            "parse.page[1].follow[1].url",
            "gives an element",
        ),
        (
            format!("{page}url_regex = '('\nfollow = [{{ stage = 'd', url = 'a::attr(href)' }}]\n"),
            "parse.page[1].url_regex",
            "regular expression",
        ),
        (
            format!("{page}status = [700]\nfollow = [{{ stage = 'd', url = 'a::attr(href)' }}]\n"),
            "parse.page[1].status",
            "`700` is no status",
        ),
        (
            format!("{page}command = {{ run = ['x'], memory_mib = 0 }}\n"),
            "parse.page[1].command.memory_mib",
            "more than nothing",
        ),
        (
            format!("{page}command = {{ run = [] }}\n"),
            "parse.page[1].command.run",
            "empty",
        ),
    ] {
        let e = rules_of("shop", &parse).unwrap_err();
        assert!(e.to_string().contains(told), "{parse}: {e}");
        assert!(!e.hints().is_empty(), "{parse}: {e}");
        let at = e
            .context()
            .iter()
            .find(|(k, _)| *k == "key")
            .map(|(_, v)| v.as_str());
        assert_eq!(at.unwrap_or_default(), key, "{parse}: {e}");
    }
}

#[test]
fn the_hash_names_what_the_rules_mean() {
    let one = "[[parse.page]]\nstage = 'a'\nitem = [{ field.t = 'h1::text' }]\n";
    let same =
        "# a remark\n[[parse.page]]\nitem = [{ field.t = { css = 'h1::text' } }]\nstage = 'a'\n";
    assert_eq!(rules(one).hash(), rules(same).hash());
    let mut hashes = BTreeMap::new();
    for text in [one, &one.replace("h1", "h2"), &one.replace("'a'", "'b'")] {
        hashes.insert(rules(text).hash().clone(), text.to_owned());
    }
    assert_eq!(hashes.len(), 3);
}
