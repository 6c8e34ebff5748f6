//! The order of what tells an encoding, the ways of declaring it, and pages without any declaration.

use encoding_rs::{BIG5, EUC_KR, GB18030, GBK, ISO_2022_JP, SHIFT_JIS, WINDOWS_1251};

use super::*;

fn told(body: &[u8], content_type: Option<&str>) -> Option<(String, CharsetOrigin)> {
    charset_of(body, content_type, "a.example").map(|c| (c.name, c.from))
}

fn is(name: &str, from: CharsetOrigin) -> Option<(String, CharsetOrigin)> {
    Some((name.to_owned(), from))
}

#[test]
fn the_order_of_what_tells_it() {
    let html = Some("text/html; charset=Big5");
    let page = b"\xef\xbb\xbf<meta charset=gbk>";
    assert_eq!(told(page, html), is("utf-8", CharsetOrigin::Bom));
    assert_eq!(
        told(b"\xff\xfeh\0", html),
        is("utf-16le", CharsetOrigin::Bom)
    );
    assert_eq!(told(&page[3..], html), is("big5", CharsetOrigin::Http));
    assert_eq!(
        told(&page[3..], Some("text/html")),
        is("gbk", CharsetOrigin::Meta)
    );
    assert_eq!(
        told(b"<p>x", Some("text/html")),
        is("utf-8", CharsetOrigin::Detected)
    );
}

#[test]
fn header_values_are_read_leniently() {
    for (value, expected) in [
        ("text/html;charset=gb2312", "gbk"),
        ("text/html; Charset=\"EUC-KR\"", "euc-kr"),
        ("TEXT/HTML ; foo=1; charset='shift_jis'", "shift_jis"),
        ("application/json; charset=gb18030", "gb18030"),
    ] {
        assert_eq!(
            told(b"x", Some(value)),
            is(expected, CharsetOrigin::Http),
            "{value}"
        );
    }
    for value in [
        "text/html; charset=",
        "text/html; charset=nonsense",
        "text/html; xcharset=gbk",
        "text/html",
    ] {
        assert_eq!(
            told(b"x", Some(value)),
            is("utf-8", CharsetOrigin::Detected),
            "{value}"
        );
    }
}

#[test]
fn bodies_that_are_no_text_have_no_charset() {
    for value in [
        "image/png",
        "application/octet-stream",
        "application/pdf",
        "video/mp4; charset=utf-8",
    ] {
        assert_eq!(told(b"text", Some(value)), None, "{value}");
    }
    assert_eq!(told(b"PK\0\0", None), None);
    assert_eq!(told(b"", None), None);
    assert_eq!(
        told(b"<meta charset=big5>", None),
        is("big5", CharsetOrigin::Meta)
    );
}

#[test]
fn pages_declare_it_in_many_ways() {
    let html = Some("text/html");
    for (page, expected) in [
        ("<meta charset=big5>", Some("big5")),
        ("<META\nCharSet = \"GB2312\" >", Some("gbk")),
        ("<meta/charset='euc-kr'/>", Some("euc-kr")),
        (
            "<!DOCTYPE html><html lang=zh><head><title>a</title><meta charset=gbk>",
            Some("gbk"),
        ),
        (
            "<meta http-equiv=\"Content-Type\" content=\"text/html; charset=big5\">",
            Some("big5"),
        ),
        (
            "<meta content='text/html;charset = \"gbk\"' http-equiv=content-type>",
            Some("gbk"),
        ),
        ("<meta content=\"text/html; charset=big5\">", None),
        (
            "<meta http-equiv=refresh content=\"text/html; charset=big5\">",
            None,
        ),
        ("<meta name=charset content=big5>", None),
        (
            "<!-- <meta charset=big5> --><meta charset=gbk>",
            Some("gbk"),
        ),
        ("<!--><meta charset=gbk>", Some("gbk")),
        ("<!-- <meta charset=big5>", None),
        ("<metal charset=big5>", None),
        (
            "<a title='<meta charset=big5>'><meta charset=gbk>",
            Some("gbk"),
        ),
        ("<meta charset=nonsense><meta charset=gbk>", Some("gbk")),
        ("<meta charset=big5 charset=gbk>", Some("big5")),
        ("<meta charset=utf-16>", Some("utf-8")),
        ("<meta charset=x-user-defined>", Some("windows-1252")),
        ("<?xml version='1.0' encoding='big5'?><html>", Some("big5")),
        ("<?xml version='1.0'?><meta charset=gbk>", Some("gbk")),
        ("</p><meta charset=gbk>", Some("gbk")),
        ("<meta charset=gbk", None),
        ("<meta charset=\"gbk", None),
        ("<", None),
        ("<meta ", None),
        ("<meta charset=", None),
    ] {
        let found = told(page.as_bytes(), html);
        let expected = expected.map_or(is("utf-8", CharsetOrigin::Detected), |e| {
            is(e, CharsetOrigin::Meta)
        });
        assert_eq!(found, expected, "{page}");
        for cut in 0..page.len() {
            assert!(told(&page.as_bytes()[..cut], html).is_some());
        }
    }
    let late = format!("{}<meta charset=gbk>", " ".repeat(1024));
    assert_eq!(
        told(late.as_bytes(), html),
        is("utf-8", CharsetOrigin::Detected)
    );
}

#[test]
fn xml_declares_it_in_its_first_line() {
    let xml = Some("application/rss+xml");
    for (page, expected, from) in [
        (
            "<?xml version=\"1.0\" encoding=\"GB2312\"?><a/>",
            "gbk",
            CharsetOrigin::Meta,
        ),
        (
            "<?xml encoding = 'Big5' version='1.0'?>",
            "big5",
            CharsetOrigin::Meta,
        ),
        (
            "<?xml version='1.0'?><meta charset=gbk>",
            "utf-8",
            CharsetOrigin::Detected,
        ),
        (" <?xml encoding='big5'?>", "utf-8", CharsetOrigin::Detected),
        ("<?xml encoding=big5?>", "utf-8", CharsetOrigin::Detected),
    ] {
        assert_eq!(told(page.as_bytes(), xml), is(expected, from), "{page}");
    }
    assert_eq!(told(b"<\0?\0x\0", xml), is("utf-16le", CharsetOrigin::Meta));
    assert_eq!(told(b"\0<\0?\0x", xml), is("utf-16be", CharsetOrigin::Meta));
}

#[test]
fn undeclared_pages_are_guessed_and_read() {
    let chinese =
        "台北市大安區整層住家出租，近捷運站，採光佳，可養寵物，租金每月三萬元。".repeat(3);
    let simplified =
        "北京市朝阳区整套住宅出租，靠近地铁站，采光好，可以养宠物，租金每月三万元。".repeat(3);
    let japanese =
        "東京都港区のマンションを賃貸しています。駅から徒歩五分、ペット可です。".repeat(3);
    let korean = "서울시 강남구 아파트 임대합니다. 지하철역에서 도보 오 분 거리입니다.".repeat(3);
    let russian = "Сдаётся квартира в центре города, рядом с метро, можно с животными.".repeat(3);
    for (text, encoding, host) in [
        (&chinese, BIG5, "a.com.tw"),
        (&simplified, GBK, "a.com.cn"),
        (&japanese, SHIFT_JIS, "a.co.jp"),
        (&japanese, ISO_2022_JP, "a.co.jp"),
        (&korean, EUC_KR, "a.co.kr"),
        (&russian, WINDOWS_1251, "a.ru"),
    ] {
        let (bytes, _, had_errors) = encoding.encode(text);
        assert!(!had_errors);
        let charset = charset_of(&bytes, Some("text/html"), host).unwrap();
        assert_eq!(charset.from, CharsetOrigin::Detected);
        assert_eq!(charset.name, encoding.name().to_ascii_lowercase());
        assert_eq!(charset.text(&bytes), text.as_str());
    }
}

#[test]
fn the_text_of_a_declared_body() {
    let text = "價格：一萬元 㐀";
    let (bytes, _, _) = GB18030.encode(text);
    let page = [b"<meta charset=gb18030>".as_slice(), &bytes].concat();
    let charset = charset_of(&page, None, "a").unwrap();
    assert_eq!(charset.text(&page), format!("<meta charset=gb18030>{text}"));
    let utf16 = b"\xff\xfeh\0i\0";
    let charset = charset_of(utf16, Some("text/plain"), "a").unwrap();
    assert_eq!(charset.text(utf16), "hi");
}
