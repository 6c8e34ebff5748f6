//! The examples of RFC 9309, its rules one by one, and texts as they are found.

use proptest::prelude::*;

use super::*;
use crate::time::Instant;

fn verdict(text: &str, token: &str, path: &str) -> RobotsVerdict {
    let url = format!("http://example.com{path}").parse().unwrap();
    RobotsRules::parse(text, token).verdict(&url)
}

fn allows(text: &str, token: &str, path: &str) -> bool {
    verdict(text, token, path) == RobotsVerdict::Allowed
}

#[test]
fn the_simple_example_of_the_rfc() {
    let text = "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\n\
        User-Agent: foobot\nDisallow:/\nAllow:/example/page.html\nAllow:/example/allowed.gif\n\n\
        User-Agent: barbot\nUser-Agent: bazbot\nDisallow: /example/page.html\n\nUser-Agent: quxbot\n";
    for (token, path, expected) in [
        ("other", "/a.gif", false),
        ("other", "/a.gif?x", true),
        ("other", "/example/", false),
        ("other", "/publications/x", true),
        ("other", "/", true),
        ("foobot", "/", false),
        ("FooBot", "/example/page.html", true),
        ("foobot", "/example/allowed.gif", true),
        ("foobot", "/example/other.gif", false),
        ("barbot", "/example/page.html", false),
        ("bazbot", "/example/page.html", false),
        ("bazbot", "/example/", true),
        ("quxbot", "/example/", true),
        ("quxbot", "/a.gif", true),
    ] {
        assert_eq!(allows(text, token, path), expected, "{token} {path}");
    }
}

#[test]
fn the_longest_match_decides() {
    let text =
        "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n";
    assert!(!allows(text, "foobot", "/example/page/disallowed.gif"));
    assert!(allows(text, "foobot", "/example/page/other.gif"));
    for (rules, path, expected) in [
        ("Allow: /p\nDisallow: /", "/page", true),
        ("Disallow: /folder\nAllow: /folder", "/folder/page", true),
        ("Allow: /page\nDisallow: /*.htm", "/page.htm", false),
        ("Allow: /page\nDisallow: /*.ph", "/page.php5", true),
        ("Allow: /$\nDisallow: /", "/", true),
        ("Allow: /$\nDisallow: /", "/page.htm", false),
        ("Disallow: /fish", "/fish.html", false),
        ("Disallow: /fish", "/Fish.asp", true),
        ("Disallow: /fish", "/catfish", true),
        ("Disallow: /fish*", "/fishheads/yummy.html", false),
        ("Disallow: /fish/", "/fish", true),
        ("Disallow: /*.php", "/folder/any.php.file.html", false),
        ("Disallow: /*.php", "/windows.PHP", true),
        ("Disallow: /*.php$", "/filename.php?parameters", true),
        ("Disallow: /*.php$", "/filename.php5", true),
        ("Disallow: /*.php$", "/a.php/b.php", false),
        (
            "Disallow: /fish*.php",
            "/fishheads/catfish.php?parameters",
            false,
        ),
        ("Disallow: /a$b", "/a$bc", false),
        ("Disallow: /*?", "/x?y", false),
        ("Disallow: /*?", "/x", true),
        ("Disallow: *", "/x", false),
        ("Disallow: $", "/x", true),
        ("Disallow: /**a*$", "/x/a/y", false),
        ("Disallow: fish", "/fish", true),
    ] {
        let text = format!("user-agent: a\n{rules}\n");
        assert_eq!(allows(&text, "a", path), expected, "{rules:?} {path}");
    }
}

#[test]
fn escapes_are_compared_by_what_they_mean() {
    for (rule, path, expected) in [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz", false),
        (
            "/foo/bar?baz=https://foo.bar",
            "/foo/bar?baz=https://foo.bar",
            false,
        ),
        (
            "/foo/bar?baz=https%3A%2F%2Ffoo.bar",
            "/foo/bar?baz=https%3A%2F%2Ffoo.bar",
            false,
        ),
        (
            "/foo/bar?baz=https%3A%2F%2Ffoo.bar",
            "/foo/bar?baz=https://foo.bar",
            true,
        ),
        ("/foo/bar/\u{30c4}", "/foo/bar/%E3%83%84", false),
        ("/foo/bar/%E3%83%84", "/foo/bar/\u{30c4}", false),
        ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84", false),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz", false),
        ("/foo/%7Ebaz", "/foo/~baz", false),
        ("/foo%2fbar", "/foo%2Fbar", false),
        ("/foo%2fbar", "/foo/bar", true),
        ("/a%zz", "/a%zz", false),
        ("/%2A", "/x", true),
    ] {
        let text = format!("User-agent: *\nDisallow: {rule}\n");
        assert_eq!(allows(&text, "a", path), expected, "{rule} {path}");
    }
}

#[test]
fn groups_of_one_agent_are_merged() {
    let text = "User-agent: a\nDisallow: /1\n\nUser-agent: b\nDisallow: /2\nUser-agent: a\nDisallow: /3\n\
        User-agent: *\nDisallow: /4\n";
    for (path, expected) in [("/1", false), ("/2", true), ("/3", false), ("/4", true)] {
        assert_eq!(allows(text, "a", path), expected, "{path}");
    }
    assert!(!allows(text, "c", "/4") && allows(text, "c", "/1"));
    let interleaved =
        "User-agent: a\nSitemap: http://x/\n\nunknown: y\nUser-agent: b\nDisallow: /x\n";
    assert!(!allows(interleaved, "a", "/x") && !allows(interleaved, "b", "/x"));
}

#[test]
fn texts_as_they_are_found() {
    for text in [
        "\u{feff}User-agent: *\nDisallow: /x",
        "User-agent: *\r\nDisallow: /x\r\n",
        "User-agent: *\rDisallow: /x\r",
        "\n\n  USER-AGENT :\t*  # all\n\n  DISALLOW:/x#y\n",
        "Disallow: /all\nUser-agent: *\nDisallow: /x\n",
        "User-agent: a/1.0 (+http://a)\nDisallow: /x\n",
        "User-agent: A\nDisallow: /x",
        "User-agent: *\nDisallow: /x\nDisallow:\n",
        "User-agent: * \nNoindex: /\nDisallow: /x",
    ] {
        assert!(!allows(text, "a", "/x"), "{text:?}");
        assert!(allows(text, "a", "/all"), "{text:?}");
    }
    for text in [
        "",
        "<html><body>not found</body></html>",
        "User-agent: *\nDisallow:",
        "User-agent: ab\nDisallow: /",
        "User-agent: \nDisallow: /",
        "User-agent: a-b\nDisallow: /",
        "Disallow: /",
    ] {
        assert!(allows(text, "a", "/x"), "{text:?}");
    }
    assert!(allows("User-agent: *\nDisallow: /", "a", "/robots.txt"));
    assert!(!allows("User-agent: *\nDisallow: /", "a", "/robots.txt?x"));
}

#[test]
fn a_crawl_delay_is_clamped() {
    let max = Duration::from_secs(30);
    let delay = |text: &str| RobotsRules::parse(text, "a").crawl_delay(max);
    assert_eq!(
        delay("User-agent: *\nCrawl-delay: 2.5\nDisallow: /"),
        Some(Duration::from_millis(2500))
    );
    assert_eq!(
        delay("User-agent: a\nCrawl-delay: 100000000000000000000000000\n"),
        Some(max)
    );
    assert_eq!(
        delay("User-agent: a\nCrawl-delay: 1\nDisallow: /x\nUser-agent: a\nCrawl-delay: 4"),
        Some(Duration::from_secs(4))
    );
    assert_eq!(
        delay("User-agent: b\nCrawl-delay: 1\n\nUser-agent: *\nDisallow: /x\n"),
        None
    );
    let above = "User-agent: b\nCrawl-delay: 9\nUser-agent: a\nDisallow: /x\nCrawl-delay: 2\n";
    assert_eq!(delay(above), Some(Duration::from_secs(2)));
    for rubbish in ["-1", "soon", "", "NaN", "inf", "1,5"] {
        assert_eq!(
            delay(&format!("User-agent: *\nCrawl-delay: {rubbish}\n")),
            None,
            "{rubbish}"
        );
    }
}

#[test]
fn where_it_cannot_be_read_nothing_is_allowed() {
    let state = |content| RobotsState {
        fetched_at: Instant::from_micros(0),
        expires_at: Instant::from_micros(1),
        content,
        etag: None,
        last_modified: None,
        failed_reads: 0,
    };
    let verdict = |content, path: &str| {
        let url = format!("http://a.com{path}").parse().unwrap();
        RobotsRules::of(&state(content), "a").verdict(&url)
    };
    let class = "http_503".to_owned();
    let unreachable = RobotsContent::Unreachable { class };
    assert_eq!(
        verdict(unreachable.clone(), "/"),
        RobotsVerdict::Unreachable
    );
    assert_eq!(verdict(unreachable, "/robots.txt"), RobotsVerdict::Allowed);
    assert_eq!(verdict(RobotsContent::Absent, "/"), RobotsVerdict::Allowed);
    let text = "User-agent: *\nDisallow: /".to_owned();
    assert_eq!(
        verdict(RobotsContent::Text { text }, "/"),
        RobotsVerdict::Disallowed
    );
}

#[test]
fn hostile_patterns_cost_little() {
    let text = format!("User-agent: *\nDisallow: /{}b\n", "*a".repeat(200_000));
    assert!(allows(&text, "a", &format!("/{}", "a".repeat(30_000))));
}

/// The plain way: every way of filling in the stars.
fn matches_slowly(pattern: &[u8], path: &[u8]) -> bool {
    match pattern {
        [] => true,
        [b'$'] => path.is_empty(),
        [b'*', rest @ ..] => (0..=path.len()).any(|at| matches_slowly(rest, &path[at..])),
        [byte, rest @ ..] => path.first() == Some(byte) && matches_slowly(rest, &path[1..]),
    }
}

proptest! {
    #[test]
    fn patterns_match_as_the_plain_way_says(pattern in "/?[ab*$]{0,8}", path in "/[ab$]{0,8}") {
        let (pattern, path) = (pattern.as_bytes(), path.as_bytes());
        prop_assert_eq!(matching::matches(pattern, path), matches_slowly(pattern, path));
    }

    #[test]
    fn any_text_is_read(text in "(?s).{0,200}", lines in proptest::collection::vec("(user-agent|allow|disallow|crawl-delay)? ?:? ?[*$/%a-c0-9.]{0,6}", 0..8)) {
        let text = format!("{text}\n{}", lines.join("\n"));
        let rules = RobotsRules::parse(&text, "a");
        let once = rules.verdict(&"http://a.com/abc".parse().unwrap());
        prop_assert_eq!(once, rules.verdict(&"http://a.com/abc".parse().unwrap()));
    }
}
