//! Each rule of the table, hostile spellings, and the property that a canonical text stays as it is.

use proptest::prelude::*;

use super::*;

fn canonical(text: &str) -> String {
    text.parse::<CanonicalUrl>()
        .unwrap_or_else(|e| panic!("{text}: {e}"))
        .to_string()
}

#[test]
fn each_rule_of_the_table() {
    for (text, expected) in [
        ("HTTP://WWW.Example.COM", "http://www.example.com/"),
        ("http://a.com:80/x", "http://a.com/x"),
        ("https://a.com:443/x", "https://a.com/x"),
        ("https://a.com:80/x", "https://a.com:80/x"),
        ("http://a.com/x#top", "http://a.com/x"),
        ("http://a.com/a/./b/../c", "http://a.com/a/c"),
        ("http://a.com/a/%2e%2E/c", "http://a.com/c"),
        ("http://a.com/../../c", "http://a.com/c"),
        ("http://a.com//a//b/", "http://a.com//a//b/"),
        (
            "http://a.com/%7euser/%41%2d%5f%2E",
            "http://a.com/~user/A-_.",
        ),
        (
            "http://a.com/%e4%b8%ad?q=%e4",
            "http://a.com/%E4%B8%AD?q=%E4",
        ),
        ("http://a.com/中?q=中", "http://a.com/%E4%B8%AD?q=%E4%B8%AD"),
        ("http://a.com/a%2fb%3fc%23", "http://a.com/a%2Fb%3Fc%23"),
        ("http://bücher.ch/", "http://xn--bcher-kva.ch/"),
        ("http://例え.jp/", "http://xn--r8jz45g.jp/"),
        ("http://a.com./x", "http://a.com/x"),
        (
            "http://a.com?b=2&a=1&b=1&A=&c",
            "http://a.com/?b=2&a=1&b=1&A=&c",
        ),
        ("http://a.com/?", "http://a.com/?"),
        ("http://a.com/?a=1&&", "http://a.com/?a=1&&"),
        (" \thttp://a.com/x\n", "http://a.com/x"),
        ("http://a.com/a b?c d", "http://a.com/a%20b?c%20d"),
        ("http://a.com/x?u=%u4E2D", "http://a.com/x?u=%u4E2D"),
        ("http://a.com/100%", "http://a.com/100%"),
        ("http://a.com/%2%35", "http://a.com/%2%35"),
        ("http://a.com/%%32%35", "http://a.com/%%325"),
        ("http://a.com/%-%35", "http://a.com/%-%35"),
        ("http://a.com/%xy%35", "http://a.com/%xy5"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://017700000001/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://2130706433./", "http://127.0.0.1/"),
        ("http://[::FFFF:7F00:1]:80/", "http://[::ffff:7f00:1]/"),
        ("http:\\\\a.com\\x", "http://a.com/x"),
    ] {
        assert_eq!(canonical(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_url_to_fetch_is_refused() {
    for text in [
        "",
        "a.com",
        "/x",
        "ftp://a.com/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "mailto:a@b.c",
        "http://",
        "http://a..com/",
        "http://.a.com/",
        "http://a.com../",
        "http://./",
        "http://a b.com/",
        "http://a.com:99999/",
        "http://user@a.com/",
        "http://user:secret@a.com/",
        "http://:secret@a.com/",
        "http://1.2.3.256/",
        "http://[::1/",
        "data:text/plain,x",
        "http://a`b.com/",
        "http://a{b}.com/",
        "http://a.com'/",
    ] {
        let error = text.parse::<CanonicalUrl>().expect_err(text);
        assert_eq!(error.kind(), crate::ErrorKind::InvalidInput, "{text}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let long = format!("http://a.com/{}", "x".repeat(MAX_URL_BYTES));
    let error = long.parse::<CanonicalUrl>().unwrap_err().to_string();
    assert!(error.len() < 400, "the error repeats the URL");
}

#[test]
fn a_sorted_query_keeps_every_parameter() {
    let sorted = |t: &str| {
        CanonicalUrl::parse(t, QueryOrder::Sorted)
            .unwrap()
            .to_string()
    };
    assert_eq!(
        sorted("http://a.com/?b=2&a=1&b=1&%61=0&c&&b"),
        "http://a.com/?&a=1&a=0&b=2&b=1&b&c"
    );
    assert_eq!(sorted("http://a.com/?"), "http://a.com/?");
    assert_eq!(sorted("http://a.com/"), "http://a.com/");
}

#[test]
fn references_are_joined() {
    let base: CanonicalUrl = "https://a.com:8443/x/y?q#f".parse().unwrap();
    for (reference, expected) in [
        ("z", "https://a.com:8443/x/z"),
        ("/z#g", "https://a.com:8443/z"),
        ("//b.com", "https://b.com/"),
        ("?r", "https://a.com:8443/x/y?r"),
        ("", "https://a.com:8443/x/y?q"),
        ("HTTP://C.com:80/%7e", "http://c.com/~"),
    ] {
        let joined = base.join(reference, QueryOrder::Kept).unwrap();
        assert_eq!(joined.as_str(), expected, "{reference}");
    }
    assert!(base.join("javascript:0", QueryOrder::Kept).is_err());
    assert!(base.join("http://u:p@b.com/", QueryOrder::Kept).is_err());
}

#[test]
fn parts_are_those_of_the_text() {
    let url: CanonicalUrl = "https://A.com:8443/x?q#f".parse().unwrap();
    assert_eq!(url.host_key(), "a.com:8443");
    assert_eq!(url.origin(), "https://a.com:8443");
    assert_eq!(url.path_and_query(), "/x?q");
    assert_eq!((url.port(), url.is_https()), (8443, true));
    let url: CanonicalUrl = "http://[::1]/".parse().unwrap();
    assert_eq!((url.host(), url.port()), ("[::1]", 80));
    assert_eq!(
        (url.host_key(), url.path_and_query()),
        ("[::1]".to_owned(), "/")
    );
}

proptest! {
    #[test]
    fn a_canonical_text_stays_as_it_is(
        text in r"(http|HTTPS)://([a-zA-Z0-9.%ü-]{1,12}|\[[0-9a-f:]{2,9}\])(:[0-9]{1,4})?(/|[?#./])[ -~中%0-9a-fA-F]{0,40}",
        sorted in any::<bool>(),
    ) {
        let order = if sorted { QueryOrder::Sorted } else { QueryOrder::Kept };
        if let Ok(once) = CanonicalUrl::parse(&text, order) {
            let twice = CanonicalUrl::parse(once.as_str(), order).unwrap();
            prop_assert_eq!(&once, &twice);
            let json = serde_json::to_string(&once).unwrap();
            prop_assert_eq!(once, serde_json::from_str::<CanonicalUrl>(&json).unwrap());
        }
    }

    #[test]
    fn a_canonical_text_can_be_sent(tail in "[ -~\u{80}-\u{300}]{0,60}") {
        if let Ok(url) = format!("http://example.com{tail}").parse::<CanonicalUrl>() {
            let sent: http::Uri = url.as_str().parse().unwrap();
            let target = sent.path_and_query().map(ToString::to_string).unwrap_or_default();
            prop_assert_eq!(target, url.path_and_query());
            prop_assert_eq!(sent.authority().map(ToString::to_string), Some(url.host_key()));
        }
    }

    #[test]
    fn escapes_keep_what_they_stand_for(text in "[%0-9a-fA-F./~u-]{0,24}") {
        let once = normalize_escapes(&text);
        prop_assert_eq!(&normalize_escapes(&once), &once);
        let bytes = |t: &str| percent_encoding::percent_decode_str(t).collect::<Vec<u8>>();
        prop_assert_eq!(bytes(&once), bytes(&text));
    }

    #[test]
    fn any_text_is_taken_or_refused(text in ".{0,60}") {
        if let Ok(url) = text.parse::<CanonicalUrl>() {
            prop_assert_eq!(url.as_str().parse::<CanonicalUrl>().unwrap(), url);
        }
    }
}
