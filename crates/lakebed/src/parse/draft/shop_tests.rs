//! What is drafted for pages of shops that show other goods beside their own, as most do.

use super::tests::fields;

/// A page: its number, its own lines, the numbers of the goods beside it.
fn page(id: u32, (kind, title): (&str, &str), own: &str, beside: [u32; 3]) -> (String, String) {
    let card = |n: &u32| {
        format!(
            "<ul class=clearfix><li><a href=goods.php?id={n}><img src={n}.png></a></li>\
             <li><a href=goods.php?id={n} title=x>帳篷 {n} 號...</a><br>本店售价：<font class=f1>￥{n}.00元</font></li></ul>"
        )
    };
    let cards: String = beside.iter().map(card).collect();
    let body = format!(
        "<div id=ur_here>当前位置: <a href=index.php>首页</a> &gt; <a href=category.php?id=1>全部</a> &gt; <a href=category.php?id=2>{kind}</a> &gt; {title}</div>\
         <div class=AreaL><h3>销售排行</h3><div class=top10>{cards}</div></div>\
         <form action=buy><h1>{title}</h1><ul class=attr><li><span class=lbl>商品货号：</span><span class=val>SY{id:06}</span></li>{own}\
         <li><span class=lbl>商品点击数：</span><span class=val>{id}1</span></li></ul><select><option>1</select></form>\
         <div id=goes_with>{cards}</div>"
    );
    (format!("http://x.example/goods.php?id={id}"), body)
}

#[test]
fn cards_of_other_goods_say_nothing_of_a_page() {
    let brand = |n: u32, name: &str| {
        format!(
            "<li><span class=lbl>商品品牌：</span><span class=val><a href=brand.php?id={n}>{name}</a></span></li>"
        )
    };
    let stock = |text: &str| {
        format!("<li><span class=lbl>商品库存：</span><span class=val>{text}</span></li>")
    };
    let price = |label: &str, money: &str| {
        format!("<li><span class=lbl>{label}：</span><font class=shop>￥{money}元</font></li>")
    };
    let pages = [
        page(
            116,
            ("炊具", "卡式炉"),
            &[stock("8 件"), brand(5, "北岭"), price("本店售价", "189.00")].concat(),
            [113, 209, 240],
        ),
        page(
            120,
            ("炊具", "套锅"),
            &[stock("缺货"), price("本店售价", "268.00")].concat(),
            [116, 209, 240],
        ),
        page(
            269,
            ("服装", "冲锋衣"),
            &[
                stock("有货"),
                brand(6, "赤岩"),
                price("原\u{3000}\u{3000}价", "899.00"),
                price("促 销 价", "699.00"),
            ]
            .concat(),
            [116, 120, 240],
        ),
    ];
    let pages: Vec<(&str, &str)> = pages
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    let money =
        r#"clean = [{ regex = '^\D*(\d(?:[\d.,]*\d)?)\D*$' }, { decimal = { thousands = "," } }]"#;
    assert_eq!(
        fields(&pages),
        [
            r#"id = { query = "id", clean = ["int"], required = true } # 116"#.to_owned(),
            r#"title = { css = "h1::text", clean = ["collapse"], required = true } # 卡式炉"#.to_owned(),
            r#"code = 'span.lbl:contains("商品货号") + span::text' # SY000116"#.to_owned(),
            r#"stock = { css = 'span.lbl:contains("商品库存") + span::text', clean = ["collapse", { replace = ["缺货", "0"] }, { regex = '^\D{0,16}(\d{1,3}(?:,\d{3})+|\d{1,6})\s*(?:[^\d\s.~/天日周週月年小至dwhm-][^\d天日周週月年y]{0,24})?$' }, { int = { thousands = "," } }] } # 8"#.to_owned(),
            r#"brand = { css = 'span.lbl:contains("商品品牌") + span ::text', join = "", clean = ["collapse"] } # 北岭"#.to_owned(),
            format!(r#"price = {{ css = 'span.lbl:contains("本店售价") + font::text, span.lbl:contains("促 销 价") + font::text', {money} }} # 189.00"#),
            r#"商品点击数 = { css = 'span.lbl:contains("商品点击数") + span::text', clean = ["int"] } # 1161"#.to_owned(),
            format!("list_price = {{ css = 'span.lbl:contains(\"原\u{3000}\u{3000}价\") + font::text', {money} }} # 899.00"),
            "category = \"#ur_here > a:nth-last-of-type(1)::text\" # 炊具".to_owned(),
        ]
    );
}
