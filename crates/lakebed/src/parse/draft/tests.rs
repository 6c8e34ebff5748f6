//! What is drafted for pages of shops as there are, and of what no draft can be made.

use super::*;
use crate::parse::FixturePage;
use crate::spec::{CaptureRecord, RunKey};
use crate::time::Instant;

fn capture(url: &str, body: &str) -> CaptureRecord {
    let page = FixturePage {
        url: url.to_owned(),
        stage: "any".parse().unwrap(),
        status: 200,
        fetched_at: Instant::from_micros(0),
        charset: None,
        headers: vec!["Content-Type: text/html; charset=utf-8".to_owned()],
    };
    page.capture("page", body.as_bytes())
}

/// What is drafted for pages of these addresses and bodies.
fn with_pages<T>(pages: &[(&str, &str)], then: impl FnOnce(&[PageInput<'_>]) -> T) -> T {
    let run = RunKey {
        source: "shop".parse().unwrap(),
        date: "2026-11-30".parse().unwrap(),
        run: "sample".parse().unwrap(),
    };
    let captures: Vec<_> = pages.iter().map(|(url, body)| capture(url, body)).collect();
    let mut inputs = Vec::new();
    for (capture, (_, body)) in captures.iter().zip(pages) {
        inputs.push(PageInput {
            run: &run,
            capture,
            body: body.as_bytes(),
        });
    }
    then(&inputs)
}

fn detail(pages: &[(&str, &str)]) -> Option<Draft> {
    let (source, stage) = ("shop".parse().unwrap(), "detail".parse().unwrap());
    with_pages(pages, |p| draft_fields(&source, &stage, p, "Asia/Taipei"))
}

/// The rules of the links, by the stage that they lead to.
fn list(pages: &[(&str, &str)]) -> Vec<(String, String)> {
    let (list, detail) = ("list".parse().unwrap(), "detail".parse().unwrap());
    let draft = with_pages(pages, |p| draft_links(&list, &detail, p));
    let lines = draft.map(|d| d.lines).unwrap_or_default();
    lines.into_iter().map(|l| (l.name, l.rule)).collect()
}

/// The fields as `name = rule # sample`, without what the columns are filled with.
pub(super) fn fields(pages: &[(&str, &str)]) -> Vec<String> {
    let lines = detail(pages).map(|d| d.lines).unwrap_or_default();
    let lines = lines.into_iter().filter(|l| l.name != "url");
    lines
        .map(|l| format!("{} = {} # {}", l.name, l.rule, l.sample))
        .collect()
}

const CAMERA: &str = "<header><nav><a href=/>首頁</a></nav></header>\
    <h1 class=name>尼康 FM2</h1><dl class=spec><dt>售價<dd>NT$ 12,800<dt>原售價：<dd>NT$ 15,000<dt>上架日期<dd>2026年11月3日\
    <dt>快門數<dd>約 1,200 次<dt>貨號<dd>0071<dt>分類<dd><a href=/k/1>底片</a>、<a href=/k/2>單眼</a></dl>\
    <ul class=tags><li>機械<li>附鏡頭</ul><p class=seller__name>\n 老王 </p><footer><p class=tel>02-1234</p></footer>";

#[test]
fn labels_lists_and_classes_become_fields_of_their_types() {
    let other = CAMERA
        .replace("NT$ 12,800", "面議")
        .replace("尼康 FM2", "佳能 AE-1")
        .replace("老王", "小李")
        .replace("0071", "0072");
    let pages = [
        ("https://x.example/camera/1001.html", CAMERA),
        ("https://x.example/camera/1002.html", other.as_str()),
    ];
    let money =
        r"clean = [{ regex = '^\D*(\d(?:[\d.,]*\d)?)\D*$' }, { decimal = { thousands = ',' } }]"
            .replace("','", "\",\"");
    assert_eq!(
        fields(&pages),
        [
            r#"id = { path = -1, clean = [{ regex = '\d+' }, "int"], required = true } # 1001"#.to_owned(),
            r#"title = { css = "h1::text", clean = ["collapse"], required = true } # 尼康 FM2"#.to_owned(),
            // The other label has this one in it.
            format!(r#"price = {{ css = 'dt:contains("售價"):not(:contains("原售價")) + dd::text', {money} }} # 12800"#),
            format!(r#"原售價 = {{ css = 'dt:contains("原售價") + dd::text', {money} }} # 15000"#),
            r#"posted = { css = 'dt:contains("上架日期") + dd::text', clean = ["collapse", { date = "%Y年%m月%d日" }] } # 2026-11-03"#.to_owned(),
            r#"快門數 = { css = 'dt:contains("快門數") + dd::text', clean = [{ regex = '^\D*(\d(?:[\d.,]*\d)?)\D*$' }, { int = { thousands = "," } }] } # 1200"#.to_owned(),
            r#"code = 'dt:contains("貨號") + dd::text' # 0071"#.to_owned(),
            r#"category = { css = 'dt:contains("分類") + dd a::text', all = true } # ["底片","單眼"]"#.to_owned(),
            r#"tags = { css = "ul.tags > li::text", all = true } # ["機械","附鏡頭"]"#.to_owned(),
            r#"name = { css = "p.seller__name::text", clean = ["collapse"] } # 老王"#.to_owned(),
        ]
    );
}

#[test]
fn a_label_within_another_is_told_apart() {
    let page = "<h1>a</h1><table><tr><th>原售價<td>9<tr><th>售價<td>8</table>";
    assert_eq!(
        fields(&[("https://x.example/7", page)])[3],
        r#"price = { css = 'th:contains("售價"):not(:contains("原售價")) + td::text', clean = [{ regex = '^\D*(\d(?:[\d.,]*\d)?)\D*$' }, { decimal = { thousands = "," } }] } # 8"#
    );
}

#[test]
fn tables_pairs_and_machine_readable_values_are_found() {
    let page = r#"<title>t</title><script type="application/ld+json">{"@graph": [{"@type": "BreadcrumbList", "name": "b"},
        {"@type": "Product", "name": "Lake", "offers": {"price": 12.5, "priceCurrency": "TWD"}, "brand": {"name": "Acme"}}]}</script>
        <div id=page><h1>Lake</h1><p>頁數：320</p><p>Open at 12:30</p>
        <div class=row><span>ISBN</span><span>978-1</span></div><div class=row><span>出版社</span><span>湖畔</span></div>
        <time class=when datetime=2026-11-28T10:00:00Z>yesterday</time>
        <table class=offers><thead><tr><th>店家<th>Price</thead><tr><td>A<td>1,200<tr><td>B<td>80</table></div>"#;
    let found = fields(&[("https://x.example/p?id=b7&ref=x", page)]);
    for wanted in [
        r#"id = { query = "id", clean = [{ regex = '\d+' }, "int"], required = true } # 7"#,
        r#"price = { json_ld = "Product", clean = [{ json = "$.offers.price" }, "decimal"] } # 12.5"#,
        r#"price_currency = { json_ld = "Product", clean = [{ json = "$.offers.priceCurrency" }] } # TWD"#,
        r#"brand = { json_ld = "Product", clean = [{ json = "$.brand.name" }] } # Acme"#,
        r#"pages = { css = 'p:contains("頁數") ::text', join = "", clean = ["collapse", { regex = '頁數\s*[:：]\s*(.+)' }, "int"] } # 320"#,
        r#"isbn = 'span:contains("ISBN") + span::text' # 978-1"#,
        r#"publisher = 'span:contains("出版社") + span::text' # 湖畔"#,
        r#"when = { css = "time.when::attr(datetime)", clean = [{ timestamp = { format = "rfc3339" } }] } # 2026-11-28T10:00:00Z"#,
        r#"offers = { each = "table.offers > tbody > tr", field = { seller = { css = "td:nth-of-type(1) ::text", join = "", clean = ["collapse"] }, price = { css = "td:nth-of-type(2) ::text", join = "", clean = [{ regex = '^\D*(\d(?:[\d.,]*\d)?)\D*$' }, { decimal = { thousands = "," } }] } } } # [{"seller":"A","price":"1200"},{"seller":"B","price":"80"}]"#,
    ] {
        assert!(found.iter().any(|f| f == wanted), "{wanted}\n{found:#?}");
    }
    // What says the same as the title is not told twice, and a time of day is no label.
    assert!(
        !found
            .iter()
            .any(|f| f.starts_with("name =") || f.contains("Open at")),
        "{found:#?}"
    );
}

#[test]
fn a_body_of_json_has_a_field_for_each_scalar() {
    let body = r#"{"id": 7, "title": "湖", "geo": {"lat": 25.1, "lng": 121}, "isOpen": true, "when": "2026-11-28", "tags": ["a"], "x y": 1}"#;
    let found = fields(&[("https://x.example/api/7", body)]);
    assert_eq!(
        found,
        [
            r#"id = { path = -1, clean = ["int"], required = true } # 7"#,
            r#"title = "$.title" # 湖"#,
            r#"lat = { json = "$.geo.lat", clean = ["decimal"] } # 25.1"#,
            r#"lng = { json = "$.geo.lng", clean = ["int"] } # 121"#,
            r#"is_open = "$.isOpen" # true"#,
            r#"when = { json = "$.when", clean = ["collapse", { date = "%Y-%m-%d" }] } # 2026-11-28"#,
            r#"tags = "$.tags[0]" # a"#,
        ]
    );
}

#[test]
fn links_of_items_stand_out_from_those_of_the_site() {
    let menu =
        "<nav><a href=/k/1>a</a><a href=/k/2>b</a><a href=/k/3>c</a><a href=/k/4>d</a></nav>";
    let items = "<ul><li class=card><a href=/p/1><img></a><a href=/p/1>one</a><li class=card><a href=/p/2><img></a><a href=/p/2>two</a></ul>";
    let page = format!("{menu}{items}<a class=more href='?page=2'>下一頁 »</a>");
    let url = "https://x.example/shop";
    let detail = |rule: &str| ("detail".to_owned(), rule.to_owned());
    let next = |rule: &str| ("list".to_owned(), rule.to_owned());
    assert_eq!(
        list(&[(url, &page)]),
        [
            detail(r#"url = "li.card > a::attr(href)""#),
            next(r#"url = 'a:contains("下一頁")::attr(href)'"#)
        ]
    );
    // Without a class, the address says which; numbered pages are all followed.
    let plain = "<div><a href=/p/1>one</a> <a href=/p/2>two</a> <a href=/about>about</a></div>\
                 <div class=pages><a href='?page=1'>1</a><a href='?page=2'>2</a></div>";
    assert_eq!(
        list(&[(url, plain)]),
        [
            detail(r#"url = 'a[href*="/p/"]::attr(href)'"#),
            next(r#"url = "div.pages > a::attr(href)""#)
        ]
    );
    // Addresses of a query, a base, and a word of the class.
    let query = "<base href='https://x.example/old/'><div class=c><h3><a href='item.php?ref=b1'>A</a></h3></div>\
                 <div class=c><h3><a href='item.php?ref=b2'>B</a></h3></div><a class=older href='list.php?p=2'>Older →</a>";
    assert_eq!(
        list(&[("https://x.example/old/list.php", query)]),
        [
            detail(r#"url = 'a[href*="item.php?"]::attr(href)'"#),
            next(r#"url = "a.older::attr(href)""#)
        ]
    );
    assert_eq!(
        list(&[(
            url,
            "<p>no links</p><a href='https://other.example/1'>x</a>"
        )]),
        []
    );
}

#[test]
fn what_cannot_be_read_drafts_nothing() {
    for body in [
        "",
        "\u{0}\u{1}",
        "{\"a\":",
        "<p></p>",
        "[1, 2]",
        &"<div>".repeat(2_000),
    ] {
        let draft = detail(&[("https://x.example/", body)]);
        assert!(draft.is_none(), "{body:.20}: {draft:?}");
    }
    // Quotes and backslashes in labels and classes do not break the file.
    let page = r#"<h1>x</h1><dl><dt>5" disk \ 'tape'<dd class="a'b\">7 kg</dl>"#;
    let draft = detail(&[("https://x.example/a/7", page)]).unwrap();
    let whole = format!("class = \"log\"\n{}", draft.text);
    let config = crate::config::SourceConfig::parse(&"shop".parse().unwrap(), &whole, "f").unwrap();
    crate::parse::Rules::read(&config, "f").unwrap();
    assert!(draft.lines.iter().any(|l| l.sample == "7"), "{draft:?}");
}

/// The fields of pages with addresses `1001.html`, `1002.html` and so on.
fn fields_of(bodies: &[String]) -> Vec<String> {
    let urls = (1..).map(|n| format!("https://x.example/item/100{n}.html"));
    let urls: Vec<String> = urls.take(bodies.len()).collect();
    let pages = urls.iter().zip(bodies);
    let pages: Vec<(&str, &str)> = pages.map(|(u, b)| (u.as_str(), b.as_str())).collect();
    fields(&pages)
}

/// A camera of another shop, whose labels fill a width and stand before bare text.
fn lens(n: usize, mount: &str, stock: &str, more: &str) -> String {
    format!(
        "<div class=info><h1>Lens {n}</h1><div class=pricebox><span class=label>售價</span><span class=price>NT$ <em>1{n},800</em></span></div>\
         <ul class=attr><li><label>商品編號:</label>AB-{n}71<li><label>品 牌:</label><a href=/b/{n}>Maker{n}</a>\
         <li><label>品\u{3000}相:</label><span class=grade>{mount}級</span> <a href=/grades>[?]</a>\
         <li><label>庫 存:</label><span class=stock>{stock}</span>\
         <li><label>上架日期:</label>2025/07/0{n} &nbsp; <span class=ago>(已刊登 {n} 天)</span></ul></div>\
         <div id=desc><p>第{n}支。老師傅常說,鏡頭買對一支就夠。這支就是那種可以用很久的鏡頭。</p><p>品相評為 {mount}級:外觀有極輕微使用痕跡。光學部分乾淨。</p></div>\
         <table class=spec><tr><th>重量<td>{n}05 g<tr><th>片幅<td>135 全片幅{more}</table>"
    )
}

#[test]
fn labels_of_a_width_and_bare_values_are_found_and_what_few_pages_have_stays_text() {
    let bodies = [
        lens(1, "A", "庫存 1 件", "<tr><th>連拍<td>10"),
        lens(2, "AB", "已售完", "<tr><th>觀景窗<td>0.92x"),
        lens(3, "B", "庫存 12 件", ""),
        lens(4, "A", "庫存 2 件", ""),
    ];
    let found = fields_of(&bodies);
    let rule_of = |name: &str| {
        let begin = format!("{name} = ");
        let found = found.iter().find_map(|f| f.strip_prefix(&begin));
        found.unwrap_or("none").to_owned()
    };
    for (name, rule) in [
        (
            "code",
            r#"{ css = 'li:contains("商品編號") ::text', join = "", clean = ["collapse", { regex = '商品編號\s*[:：]\s*(.+)' }] } # AB-171"#,
        ),
        ("brand", r#"'label:contains("品 牌") + a::text' # Maker1"#),
        (
            "condition",
            "'label:contains(\"品\u{3000}相\") + span::text' # A級",
        ),
        (
            "stock",
            r#"{ css = 'label:contains("庫 存") + span::text', clean = ["collapse", { replace = ["售完", "0"] }, { regex = '^\D{0,16}(\d{1,3}(?:,\d{3})+|\d{1,6})\s*(?:[^\d\s.~/天日周週月年小至dwhm-][^\d天日周週月年y]{0,24})?$' }, { int = { thousands = "," } }] } # 1"#,
        ),
        (
            "posted",
            r#"{ css = 'li:contains("上架日期") ::text', join = "", clean = ["collapse", { regex = '上架日期\s*[:：]\s*(.+)' }, { regex = '\d{4}/\d{1,2}/\d{1,2}' }, { date = "%Y/%m/%d" }] } # 2025-07-01"#,
        ),
        (
            "weight",
            r#"{ css = 'th:contains("重量") + td::text', clean = [{ regex = '^\D*(\d(?:[\d.,]*\d)?)\D*$' }, { decimal = { thousands = "," } }] } # 105"#,
        ),
        ("片幅", r#"'th:contains("片幅") + td::text' # 135 全片幅"#),
        ("連拍", r#"'th:contains("連拍") + td::text' # 10"#),
    ] {
        assert_eq!(rule_of(name), rule, "{name}: {found:#?}");
    }
    assert!(rule_of("price").contains("decimal"), "{found:#?}");
    assert!(rule_of("description").contains("#desc"), "{found:#?}");
    // Prose with a colon, a word that says `label`, the list whose parts are told.
    assert!(
        !found
            .iter()
            .any(|f| f.starts_with("品相評為") || f.starts_with("label") || f.starts_with("attr")),
        "{found:#?}"
    );
}

#[test]
fn what_a_list_announces_is_drafted_where_it_can_be_true() {
    let page = |total: &str, next: &str| {
        let items: Vec<String> = (1..=3)
            .map(|n| format!("<li class=item><div class=name><a href=/p/{n}>Item {n}</a></div>"))
            .collect();
        format!(
            "<script>共 64 件</script><div class=pager><span class=total>{total}</span></div><ul class=plist>{}</ul>{next}",
            items.concat()
        )
    };
    let next = "<a class=next href=?page=2>下一頁</a>";
    let by_path = "<a class=next href=/list/page/2>下一頁</a>";
    let total = |body: &str| {
        let (list, detail) = ("list".parse().unwrap(), "detail".parse().unwrap());
        let draft = with_pages(&[("https://x.example/list", body)], |p| {
            draft_links(&list, &detail, p)
        })
        .unwrap();
        draft
            .text
            .lines()
            .filter(|l| l.starts_with("total") || l.starts_with("group"))
            .map(|l| l.split("   #").next().unwrap().trim().to_owned())
            .collect::<Vec<_>>()
    };
    let rule = r"total = { css = 'span.total ::text', join = '', clean = ['collapse', { regex = 'R' }, { int = { thousands = ',' } }] }".replace('\'', "\"").replace("\"R\"", "'R'");
    for (text, next, regex) in [
        ("共 64 件商品,第 1/6 頁", next, Some(r"共 (\d[\d,]*) 件")),
        ("1,280 results", next, Some(r"(\d[\d,]*) results")),
        ("共 3 件", "", Some(r"共 (\d[\d,]*) 件")),
        (
            "为您找到 <b>50</b> 套出租房源",
            next,
            Some(r"找到 (\d[\d,]*) 套"),
        ),
        // Not what this list shows.
        ("共 64 件", "", None),
        ("共 3 件", next, None),
        ("第 64 頁", next, None),
    ] {
        let expected: Vec<String> = regex
            .map(|regex| rule.replace('R', regex))
            .into_iter()
            .collect();
        assert_eq!(total(&page(text, next)), expected, "{text}");
    }
    // Where no class says which, its words do.
    let body = page("", next).replace(
        "<ul",
        "<div class=pp><div>为您找到 <b>50</b> 套</div></div><div class=pp><div>x</div></div><ul",
    );
    assert_eq!(
        total(&body),
        [rule
            .replace(
                "span.total ::text\"",
                r#"div.pp > div:contains("为您找到") ::text'"#
            )
            .replace("css = \"div", "css = 'div")
            .replace('R', r"找到 (\d[\d,]*) 套")]
    );
    let found = total(&page("共 64 件", by_path));
    assert_eq!(found.get(1).map(String::as_str), Some("group = \"all\""));
}

/// A board whose classes are no words, whose labels have no colon, and which has several pairs in a line.
fn flat(n: usize, more: &str) -> String {
    format!(
        "<div class=hd><div class=fr>客服热线：400-000-0000</div></div><div class='mbx c9'>当前位置： <a href=/>首页</a> &gt; 第{n}号</div>\
         <div class=bgw><h1 class=tt>小区{n}</h1><div class='c9 f12'>房源编号：LJ{n}07&nbsp; 发布时间：2026-09-0{n} &nbsp;浏览 <span id=vc>{n}</span> 次</div>\
         <div class=zj><b>{n},500</b>元/月 <span>（押一付三）</span></div>\
         <ul class='q2 cf'><li><span class=lb>户型</span>{n}室1厅</li><li><span class=lb>面积</span>{n}9.5㎡{more}<li><span class=lb>电梯</span>有</ul>\
         <p>区域：<em><a href=/zf/>高新区</a></em></p><p>小区：<em>软件园{n}</em></p></div>\
         <div class=bgw><div class=h>房屋配套</div><div class=ss><i>床{n}</i><i>衣柜</i></div></div>\
         <div class=bgw><div class=h>房源描述</div><div class='u7 ms'><p>第{n}套在地铁口，买菜坐车都方便。<p>公交早高峰到市中心大约30分钟，诚心出租，看房提前一天联系。</div></div>\
         <div id=ft><p>友情链接： <a href=/a>生活网</a> | <a href=/b>人才网</a></div>"
    )
}

#[test]
fn labels_without_a_colon_pairs_in_a_line_and_what_is_of_the_site_are_told_apart() {
    let more = "<li><span class=lb>装修</span>精装";
    let bodies = [flat(1, more), flat(2, ""), flat(3, more)];
    let found = fields_of(&bodies);
    let names: Vec<&str> = found.iter().filter_map(|f| f.split(" = ").next()).collect();
    let samples: Vec<&str> = found
        .iter()
        .filter_map(|f| f.rsplit(" # ").next())
        .collect();
    let expected = [
        ("id", "1001"),
        ("title", "小区1"),
        ("code", "LJ107"),
        ("published", "2026-09-01"),
        ("layout", "1室1厅"),
        ("area", "19.5"),
        ("装修", "精装"),
        ("电梯", "有"),
        ("district", "高新区"),
        ("小区", "软件园1"),
        ("房屋配套", r#"["床1","衣柜"]"#),
        (
            "description",
            "第1套在地铁口，买菜坐车都方便。 公交早高峰到市中心大约30分钟，诚心出租，看房提前一天联系。",
        ),
        ("rent", "1500"),
    ];
    let expected: (Vec<&str>, Vec<&str>) = expected.into_iter().unzip();
    assert_eq!((names, samples), expected, "{found:#?}");
}

#[test]
fn a_query_behind_a_path_of_its_own_is_no_other_kind_of_item() {
    let card = |n: usize| {
        let from = if n.is_multiple_of(2) {
            "?from=list"
        } else {
            ""
        };
        format!("<div class=k3j><h2><a href=/zf/100{n}.html{from}>Flat {n}</a></h2></div>")
    };
    let cards: Vec<String> = (1..=6).map(card).collect();
    let body = format!(
        "{}<div class=bgw><ul class=z1><li><a href=/zf/2001.html>A</a><li><a href=/zf/2002.html>B</a><li><a href=/zf/2003.html>C</a><li><a href=/zf/2004.html>D</a></ul></div>",
        cards.concat()
    );
    assert_eq!(
        list(&[("https://x.example/zf/", &body)]),
        [(
            "detail".to_owned(),
            r#"url = "div.k3j a::attr(href)""#.to_owned()
        )]
    );
}

/// Pages of one shop that are made in three ways, as after a redesign: a field is what stands under its label on any of them.
#[test]
fn a_field_of_pages_that_are_made_in_several_ways_has_several_places() {
    let head = |n: usize| format!("<h1>舊書 {n}</h1>");
    let old = |n: usize| {
        format!(
            "{}<dl class=meta><dt>作者</dt><dd>林{n}</dd><dt>定價</dt><dd>NT$ {n}20</dd><dt>出版社</dt><dd>遠岸{n}</dd></dl><span class=price>NT$ {n}00</span>",
            head(n)
        )
    };
    let table = |n: usize| {
        format!(
            "{}<table class=info><tr><th>作者</th><td>陳{n}</td></tr></table><div class=buy><p class=before>定價 <del>NT$ {n}50</del></p><p class=now>優惠價 <b>NT$ {n}10</b></p></div>",
            head(n)
        )
    };
    let lines = |n: usize| {
        format!(
            "{}<ul class=facts><li>作者：周{n}</li><li>定價：NT$ {n}80</li><li>編號：B-{n} 版次：初版{n}</li></ul><span class=price>售價：<b>NT$ {n}40</b></span>",
            head(n)
        )
    };
    let pages = [old(1), table(2), lines(3), old(4), table(5)];
    let found = fields_of(&pages);
    let line = |name: &str| {
        let lines: Vec<&String> = found
            .iter()
            .filter(|l| l.starts_with(&format!("{name} = ")))
            .collect();
        assert_eq!(lines.len(), 1, "{name}: {found:#?}");
        lines[0].as_str()
    };
    assert_eq!(
        line("author"),
        r#"author = { css = 'dt:contains("作者") + dd ::text, th:contains("作者") + td ::text, li:contains("作者") ::text', join = "", clean = ["collapse", { regex = '^(?:.*?(?:作者\s*[:：]\s*))?(.+)' }] } # 林1"#
    );
    for name in ["price", "list_price"] {
        assert!(line(name).contains("decimal"), "{found:#?}");
    }
    for name in ["author_2", "list_price_2", "price_2"] {
        assert!(!found.iter().any(|l| l.starts_with(name)), "{found:#?}");
    }
    // Every page gives its own.
    let draft = detail(
        &pages
            .iter()
            .map(|body| ("https://x.example/book/1", body.as_str()))
            .collect::<Vec<_>>(),
    );
    let author = draft
        .unwrap()
        .lines
        .into_iter()
        .find(|l| l.name == "author");
    assert_eq!(author.unwrap().on_pages, 5);
}

#[test]
fn cards_of_several_kinds_are_items_and_paid_ones_are_not() {
    let card = |n: usize| {
        let side = if n.is_multiple_of(2) { "even" } else { "odd" };
        let href = match n % 3 {
            0 => format!("/old.php?no={n}"),
            _ => format!("/p/{n}.html"),
        };
        format!(
            "<li class='{side}'><a href={href}><img></a><h3><a href={href}>Item {n}</a></h3><a href=/kind/{}>kind</a></li>",
            n % 2
        )
    };
    let cards: String = (1..=8).map(card).collect();
    let paid = "<li class='odd ad'><h3><a href=/sale/>Sale</a></h3></li><li class=odd><h3><a href=/news/7.html>News</a></h3></li>";
    let url = "https://x.example/shop";
    let rule = |body: &str| {
        list(&[(url, body)])
            .into_iter()
            .next()
            .map(|(_, rule)| rule)
    };
    assert_eq!(
        rule(&format!("<ul class=plist>{cards}{paid}</ul>")).as_deref(),
        Some(r#"url = 'a[href*="old.php?"]::attr(href), a[href*="/p/"]::attr(href)'"#)
    );
    // Rows of an old table, of two colours; the other cell leads elsewhere.
    let row = |n: usize| {
        let color = ["#fff", "#eee"][n % 2];
        format!(
            "<tr bgcolor='{color}'><td><a href=/{n}.htm>Item {n}</a><td><a href=/k/{n}.htm>kind</a>"
        )
    };
    let rows: String = (1..=6).map(row).collect();
    assert_eq!(
        rule(&format!("<table border=1>{rows}</table>")).as_deref(),
        Some(r#"url = "tbody > tr > td:nth-of-type(1) > a::attr(href)""#)
    );
    // Hot items stand in a table of their own, in the same place of the layout; a row between others leads elsewhere.
    let row = |n: usize| format!("<tr><td><img></td><td><a href='{n}/'>Flat {n}</a></td></tr>");
    let rows = (1..=6).map(row).collect::<String>()
        + "<tr><td colspan=2 class=sep><a href=/post/>post</a></td></tr>";
    let hot = "<table class=sbox><tr><td><a href=/rent/71/>A</a></td></tr><tr><td><a href=/rent/72/>B</a></td></tr></table>";
    let body =
        format!("<table><tr><td>{hot}</td><td><table id=list>{rows}</table></td></tr></table>");
    let found = list(&[("https://x.example/rent/", &body)]);
    assert_eq!(
        found.first().map(|(_, rule)| rule.as_str()),
        Some(r##"url = "#list a:not(.sep *)::attr(href)""##)
    );
    // A next page of nothing.
    assert_eq!(rule("<p>none</p><a href=?page=2>下一頁</a>"), None);
}

#[test]
fn labels_of_old_tables_and_of_lines_are_found() {
    let row = |n: usize| {
        format!(
            "<title>舊貨 {n} - 老店</title><table><tr><td><table><tr><td bgcolor=#eee>編號<td>A-{n}7<td bgcolor=#eee>定價<td>NT$ {n}20<tr><td bgcolor=#eee>備註<td>好{n}</table></table>\
             <div class=line><b>作者：</b>林{n}<br><b>出版社：</b>遠岸 {n} 社<br><b>出版日期：</b>民國11{n}年3月5日<br></div>\
             <p>坪　數：1{n} 坪 樓　層：{n} 樓 共 5 樓 地址：路{n}號</p><p>押金 {n},000 元 面積 3{n} 坪</p>"
        )
    };
    let bodies: Vec<String> = (1..=4).map(row).collect();
    let found = fields_of(&bodies);
    let sample = |name: &str| {
        let begin = format!("{name} = ");
        let line = found.iter().find(|f| f.starts_with(&begin));
        line.and_then(|l| l.rsplit(" # ").next()).unwrap_or("none")
    };
    for (name, value) in [
        ("title", "舊貨 1"),
        ("code", "A-17"),
        ("list_price", "120"),
        ("description", "好1"),
        ("author", "林1"),
        ("publisher", "遠岸 1 社"),
        ("published", "2022-03-05"),
        ("area", "11"),
        ("floor", "1 樓 共 5 樓"),
        ("address", "路1號"),
        ("deposit", "1000"),
        ("area_2", "31"),
    ] {
        assert_eq!(sample(name), value, "{name}: {found:#?}");
    }
}

#[test]
fn pages_with_two_kinds_of_addresses_have_a_key_and_titles_lose_the_name_of_the_site() {
    let page = |title: &str| format!("<title>{title}</title><p>頁數：3</p>");
    let (one, two) = (page("湖 - 海 - 某店"), page("山 - 某店"));
    let found = fields(&[
        ("https://x.example:8080/book/17.html", one.as_str()),
        ("https://x.example:8080/item.php?id=23", two.as_str()),
    ]);
    assert_eq!(
        found[..2],
        [
            r#"id = { page = "url", clean = [{ regex = '//[^/]+/.*?\b(\d+)(?:\.\w+)?/?$' }, "int"], required = true } # 17"#,
            r#"title = { css = "title::text", clean = ["collapse", { regex = '^(.+?)(?:(?:[_|｜].*)?(?:\s[-–—]\s|\s*[_|｜－]\s*)某店)?$' }], required = true } # 湖 - 海"#,
        ]
    );
    // A kind between the two is not of the title either.
    let (one, two) = (page("山 - 某店"), page("湖_風景_某店"));
    let urls = ["https://x.example/1", "https://x.example/2"];
    let given = detail(&[(urls[0], &one), (urls[1], &two)]).unwrap();
    let title = given.lines.iter().find(|l| l.name == "title").unwrap();
    assert_eq!((title.sample.as_str(), title.on_pages), ("山", 2));
    let (one, two) = (page("某店 | 湖"), page("某店 | 山"));
    let found = fields(&[
        ("https://x.example/1", one.as_str()),
        ("https://x.example/2", two.as_str()),
    ]);
    assert!(found[1].ends_with("# 湖"), "{found:#?}");
}

#[test]
fn what_one_kind_of_pages_says_on_all_of_them_is_of_the_site() {
    let old = |n: usize| {
        format!(
            "<h1>甲{n}</h1><ul><li>作者：林{n}</li></ul><div class=shop><p>門市：忠孝路9號</p></div>"
        )
    };
    let new = |n: usize| format!("<h1>乙{n}</h1><ul><li>作者：周{n}</li></ul>");
    let bodies: Vec<String> = (1..=5).map(old).chain((6..=9).map(new)).collect();
    let found = fields_of(&bodies);
    let names: Vec<&str> = found.iter().filter_map(|f| f.split(" = ").next()).collect();
    assert_eq!(names, ["id", "title", "author"]);
}

#[test]
fn a_price_has_words_behind_it_and_comments_are_no_labels() {
    let new = |n: usize| {
        format!(
            "<h1>甲{n}</h1><div><p><span>促销价</span><em>¥</em><strong>1,{n}99.00</strong> <small>活动至 2023-12-3{n}</small></p></div>\
             <dl><dt>h***y 2022-07-2{n}</dt><dd>好{n}</dd></dl><ul><li>上一个：乙{n}</li><li>净重：{n}.5 kg</li></ul>"
        )
    };
    let old = |n: usize| {
        format!(
            "<h1>甲{n}</h1><table><tr><td>优惠价：<td><b>2{n}5.5 元</b>/台<tr><td>编号：<td>K{n}</table>"
        )
    };
    let bodies = [new(0), old(1), new(1), old(2)];
    let found = fields_of(&bodies);
    let names: Vec<&str> = found.iter().filter_map(|f| f.split(" = ").next()).collect();
    assert_eq!(
        names,
        ["id", "title", "price", "weight", "code"],
        "{found:#?}"
    );
    assert!(
        found[2].contains("decimal") && found[2].ends_with("# 1099.00"),
        "{found:#?}"
    );
}

#[test]
fn a_key_of_letters_and_digits_is_whole() {
    let page = |n: usize| format!("<title>陶甕 {n}｜好物</title><p>頁數：{n}</p>");
    let bodies: Vec<String> = (1..=4).map(page).collect();
    let urls = [
        "goods/0b9ffd.html",
        "goods/1af692.html",
        "show.asp?k=17f1e1",
        "show.asp?k=cf26ec",
    ];
    let urls = urls.map(|url| format!("http://127.0.0.1:8964/zaiku/{url}"));
    let pages = urls.iter().zip(&bodies);
    let pages: Vec<(&str, &str)> = pages.map(|(u, b)| (u.as_str(), b.as_str())).collect();
    let found = fields(&pages);
    assert!(
        found[0].starts_with("id = ") && found[0].ends_with("# 0b9ffd"),
        "{found:#?}"
    );
    assert!(found[1].ends_with("# 陶甕 1"), "{found:#?}");
}
