//! Programs that parse: what they answer, how they fail, and that the next page does not suffer from it.

use super::*;

const PROGRAM: &str = r#"
import json, sys, time
for line in sys.stdin:
    page = json.loads(line)
    what = page["text"].strip()
    if what == "die": sys.exit("cannot go on")
    if what == "sleep": time.sleep(60)
    if what == "late":
        print(json.dumps({"page": page["page"] - 1, "records": [{"record": {"t": "of the page before"}}]}), flush=True)
        print(json.dumps({"page": page["page"], "records": [{"record": {"t": "own"}}]}), flush=True)
        continue
    if what == "eat": x = "x" * (1 << 30)
    if what == "mumble": print("hello", flush=True); continue
    if what == "typo": print('{"record": []}', flush=True); continue
    if what == "kee": print('{"records": [{"record": {"t": 1}, "kee": "1"}]}', flush=True); continue
    if what == "twice": print('{"records": []}\n{"records": []}', flush=True); continue
    print(json.dumps({"records": [{"record": {"t": what, "n": 1.50}, "key": what}],
                      "follow_ups": [{"stage": "detail", "url": "/d/1", "payload": {"a": 1}}],
                      "rejects": [{"reason": "why not", "path": "$.x"}]}), flush=True)
"#;

fn page(parser: &mut CommandParser, text: &str) -> ParsedPage {
    let mut capture = capture("http://a.test/x", "list", "");
    capture.charset = Some(crate::spec::CharsetSpec {
        name: "utf-8".to_owned(),
        from: crate::spec::CharsetOrigin::Http,
    });
    let run = run("shop");
    let input = PageInput {
        run: &run,
        capture: &capture,
        body: text.as_bytes(),
    };
    parser.parse("list", &input).unwrap()
}

#[test]
fn a_program_that_fails_costs_its_page_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("parse.py"), PROGRAM).unwrap();
    let rules = rules(
        "[[parse.page]]\nname = 'list'\ncommand = { run = ['python3', 'parse.py'], page_timeout_s = 2, memory_mib = 400 }\n",
    );
    let capture = capture("http://a.test/x", "list", "");
    let (name, config) = rules.command_of(&capture).unwrap();
    assert_eq!(name, "list");
    let mut parser = CommandParser::new(config, folder.path());
    for (text, code, told) in [
        ("中文", "command_reject", "why not"),
        ("die", "command_ended", "cannot go on"),
        ("a", "command_reject", "why not"),
        ("sleep", "command_silent", "within 2 s"),
        ("eat", "command_ended", "MemoryError"),
        ("mumble", "command_answer", "no JSON"),
        ("typo", "command_answer", "did you mean `records`"),
        ("kee", "command_answer", "did you mean `key`"),
        ("b", "command_reject", "why not"),
    ] {
        let page = page(&mut parser, text);
        let fault = &page.rejects[0].faults[0];
        assert_eq!(fault.code, code, "{text}: {fault:?}");
        assert!(fault.reason.contains(told), "{text}: {fault:?}");
        let is_good = code == "command_reject";
        assert_eq!(page.records.len(), usize::from(is_good), "{text}");
        if is_good {
            let json = record(&page, 0);
            assert!(
                json.starts_with(&format!(r#"{{"t":"{text}","n":1.5,"#)),
                "{json}"
            );
            assert!(json.contains(&format!(r#""_key":"{text}""#)), "{json}");
            assert_eq!(page.follow_ups[0].url, "http://a.test/d/1");
        }
    }
    // A line too many is not the answer to the next page, which is rejected, and the one after it is right.
    let twice = page(&mut parser, "twice");
    assert!(twice.rejects.is_empty(), "{:?}", twice.rejects);
    std::thread::sleep(std::time::Duration::from_millis(200));
    let next = page(&mut parser, "c");
    assert!(next.records.is_empty());
    assert!(
        next.rejects[0].faults[0]
            .reason
            .contains("more than one line"),
        "{:?}",
        next.rejects
    );
    assert_eq!(page(&mut parser, "d").records.len(), 1);
    // An answer that names another page came too late for that one.
    let late = page(&mut parser, "late");
    assert!(record(&late, 0).starts_with(r#"{"t":"own""#), "{late:?}");
    assert_eq!(page(&mut parser, "e").records.len(), 1);
}

#[test]
fn a_program_that_never_answers_is_not_started_for_every_page() {
    let folder = tempfile::tempdir().unwrap();
    let rules = rules("[[parse.page]]\nname = 'list'\ncommand = { run = ['./not-there'] }\n");
    let capture = capture("http://a.test/x", "list", "");
    let (_, config) = rules.command_of(&capture).unwrap();
    let mut parser = CommandParser::new(config, folder.path());
    let run = run("shop");
    let input = PageInput {
        run: &run,
        capture: &capture,
        body: b"x",
    };
    let mut pages = 0;
    let error = loop {
        match parser.parse("list", &input) {
            Ok(page) => assert_eq!(page.rejects[0].faults[0].code, "command_ended"),
            Err(error) => break error,
        }
        pages += 1;
    };
    assert_eq!(pages, 4);
    assert!(error.message().contains("ended 5 times"), "{error}");
    assert!(error.message().contains("not-there"), "{error}");
}
