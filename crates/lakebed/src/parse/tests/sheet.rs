//! The cheat-sheet of docs/parse.md, in both languages: every line of it, on a page.

use super::*;

const PAGE: &str = r#"<h1>Lake <em>and</em>
      bed</h1><img class=cover src="/img/17.jpg">
    <dl><dt>作者<dd>曹<dt>ISBN<dd>978-7-02<dt>Price<dd class=price>NT$ 1,280.50</dl>
    <ul><li><label>Code:</label> AB-17<li>Postcode</ul><table><tr><th>Pages 页数<td>共 320 pp.</table><p class=posted> 2026年11月28日 </p>
    <a class=tag>清</a><a class=tag>novel</a>
    <table class=offers><tr><td>A<td>new<tr><td>B<td>used</table>"#;
const LIST: &str = r#"<ul><li class=book><h2><a href="/book/17.html">x</a></h2><a href="/no">y</a></ul>
    <a rel=next href="?page=2">next</a>"#;

/// The first block of TOML in a file of `docs/`.
fn sheet(name: &str) -> String {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let (_, block) = text.split_once("```toml\n").unwrap();
    block.split_once("```").unwrap().0.to_owned()
}

#[test]
fn every_line_of_the_sheets_gives_what_they_say() {
    for name in ["parse.md", "parse.zh.md"] {
        let rules = rules(&sheet(name));
        let at = |path: &str, stage: &str, body: &str| {
            let url = format!("http://a.test{path}");
            parsed_at(&rules, &url, stage, body.as_bytes())
        };
        let page = at("/book/17.html", "detail", PAGE);
        assert_eq!(page.rejects, [], "{name}");
        let expected = r#"{"id":17,"title":"Lake and bed","cover":"http://a.test/img/17.jpg","isbn":"978-7-02","code":"AB-17","pages":320,"#;
        let expected = format!(
            r#"{expected}"price":"1280.50","posted":"2026-11-28","tags":["清","novel"],"offers":[{{"shop":"A","state":"new"}},{{"shop":"B","state":"used"}}],"_raw""#
        );
        let found = record(&page, 0);
        assert!(found.starts_with(&expected), "{name}: {found}");
        let early = PAGE.replace("11月28日", "1月3日");
        let early = record(&at("/book/17.html", "detail", &early), 0);
        assert!(
            early.contains("\"posted\":\"2026-01-03\""),
            "{name}: {early}"
        );
        let list = at("/list", "list", LIST);
        let links = list
            .follow_ups
            .iter()
            .map(|f| (f.stage.as_str(), f.url.as_str()));
        assert_eq!(
            links.collect::<Vec<_>>(),
            [
                ("detail", "http://a.test/book/17.html"),
                ("list", "http://a.test/list?page=2")
            ],
            "{name}"
        );
    }
}
