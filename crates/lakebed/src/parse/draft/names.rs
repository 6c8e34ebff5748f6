//! Names of columns out of labels, classes and members.

/// What labels of shops, markets and news say often, in the words that columns are called by. Another label keeps its
/// own words: a column may be called in any script.
const KNOWN: [(&str, &[&str]); 50] = [
    (
        "price",
        &[
            "price",
            "our price",
            "sale price",
            "current price is",
            "now",
            "售價",
            "售价",
            "價格",
            "价格",
            "價錢",
            "現價",
            "现价",
            "單價",
            "单价",
            "特價",
            "特价",
            "価格",
            "優惠價",
            "优惠价",
            "促銷價",
            "促销价",
            "活動價",
            "活动价",
            "折扣價",
            "折扣价",
            "商城价",
            "商城價",
            "会员价",
            "會員價",
            "网购价",
            "網購價",
            "本店价",
            "本店價",
            "销售价",
            "銷售價",
            "一口价",
            "一口價",
        ],
    ),
    (
        "list_price",
        &[
            "list price",
            "original price",
            "original price was",
            "regular price",
            "retail price",
            "old price",
            "rrp",
            "msrp",
            "was",
            "定價",
            "定价",
            "原價",
            "原价",
            "市價",
            "市价",
            "市场价",
            "市場價",
            "厂商指导价",
            "建议零售价",
            "建議零售價",
            "門市價",
            "门市价",
            "專櫃價",
            "专柜价",
            "參考價",
            "建議售價",
        ],
    ),
    (
        "warranty",
        &["保固", "保修", "保固期", "保修期", "质保", "質保", "质保期"],
    ),
    ("accessories", &["附件", "配件"]),
    ("serial_number", &["序號", "序列號", "序列号"]),
    ("rent", &["租金", "月租", "家賃", "賃料"]),
    ("deposit", &["押金", "敷金"]),
    (
        "title",
        &[
            "標題",
            "标题",
            "名稱",
            "名称",
            "品名",
            "書名",
            "书名",
            "商品名稱",
            "商品名称",
            "商品名",
            "タイトル",
        ],
    ),
    ("author", &["作者", "著者"]),
    ("translator", &["譯者", "译者"]),
    ("publisher", &["出版社", "出版者", "出版商"]),
    (
        "published",
        &[
            "出版日期",
            "出版日",
            "發布日期",
            "发布日期",
            "發佈日期",
            "發布時間",
            "发布时间",
            "發售日",
            "発売日",
            "公開日",
        ],
    ),
    (
        "posted",
        &[
            "刊登日期",
            "刊登時間",
            "上架日期",
            "上架時間",
            "上架时间",
            "上架日",
            "張貼日期",
        ],
    ),
    (
        "updated",
        &[
            "更新日期",
            "更新時間",
            "更新时间",
            "最後更新",
            "最后更新",
            "更新日",
        ],
    ),
    (
        "area",
        &[
            "面積",
            "面积",
            "坪數",
            "坪数",
            "建築面積",
            "建筑面积",
            "専有面積",
        ],
    ),
    ("address", &["地址", "住址", "所在地"]),
    (
        "location",
        &[
            "地點",
            "地点",
            "位置",
            "產地",
            "产地",
            "所在地區",
            "所在地区",
            "發貨地",
            "发货地",
            "出貨地",
        ],
    ),
    ("city", &["城市", "縣市", "市"]),
    ("district", &["地區", "地区", "區域", "区域", "行政區"]),
    ("floor", &["樓層", "楼层", "階数", "所在階"]),
    ("layout", &["格局", "戶型", "户型", "房型", "間取り"]),
    ("age", &["屋齡", "房龄", "年齡", "年龄", "築年数"]),
    (
        "kind",
        &[
            "類型", "类型", "種類", "种类", "類別", "类别", "型態", "型态",
        ],
    ),
    (
        "category",
        &["分類", "分类", "品類", "カテゴリ", "カテゴリー"],
    ),
    ("tags", &["標籤", "标签", "關鍵字", "关键词", "タグ"]),
    ("brand", &["品牌", "廠牌", "厂牌", "ブランド", "メーカー"]),
    ("model", &["型號", "型号", "型番", "車型", "车型"]),
    (
        "condition",
        &[
            "成色",
            "品相",
            "等級",
            "等级",
            "狀況",
            "状况",
            "新舊程度",
            "新旧程度",
            "書況",
            "书况",
            "商品狀態",
            "状態",
        ],
    ),
    ("state", &["狀態", "状态"]),
    (
        "stock",
        &["庫存", "库存", "在庫", "存貨", "stock", "availability"],
    ),
    ("quantity", &["數量", "数量"]),
    ("color", &["顏色", "颜色", "色", "カラー"]),
    ("size", &["尺寸", "尺碼", "尺码", "規格", "规格", "サイズ"]),
    (
        "weight",
        &[
            "重量",
            "重さ",
            "净重",
            "淨重",
            "产品净重",
            "商品重量",
            "毛重",
        ],
    ),
    ("material", &["材質", "材质", "素材"]),
    ("pages", &["頁數", "页数", "ページ数"]),
    ("language", &["語言", "语言", "言語"]),
    ("rating", &["評分", "评分", "評價", "评价", "評価"]),
    ("reviews", &["評論數", "评论数", "レビュー数"]),
    (
        "views",
        &[
            "瀏覽",
            "浏览",
            "瀏覽數",
            "浏览量",
            "瀏覽次數",
            "浏览次数",
            "点击量",
            "人气",
            "人氣",
        ],
    ),
    (
        "sold",
        &[
            "銷量",
            "销量",
            "已售",
            "累计销量",
            "累計銷量",
            "月销量",
            "已售出",
        ],
    ),
    ("seller", &["賣家", "卖家", "店家", "商家", "出品者"]),
    ("contact", &["聯絡人", "联系人", "聯絡方式"]),
    (
        "phone",
        &["電話", "电话", "聯絡電話", "联系电话", "電話番号"],
    ),
    (
        "code",
        &[
            "編號",
            "房源编号",
            "案件編號",
            "编号",
            "貨號",
            "書號",
            "货号",
            "商品編號",
            "商品编号",
            "代碼",
            "代码",
            "物件番号",
        ],
    ),
    ("isbn", &["ISBN", "ISBN-13", "ISBN13"]),
    ("year", &["年份", "年式", "年代", "出廠年份", "出厂年份"]),
    ("mileage", &["里程", "里程數", "里程数", "走行距離"]),
    ("salary", &["薪資", "薪水", "薪资", "待遇", "月薪", "給与"]),
    (
        "description",
        &[
            "說明",
            "房源描述",
            "房屋描述",
            "物件說明",
            "说明",
            "描述",
            "簡介",
            "简介",
            "內容簡介",
            "内容简介",
            "商品描述",
            "商品說明",
            "備註",
            "备注",
        ],
    ),
];

/// What a shop says in front of a label: which thing it is of.
const THING: [&str; 12] = [
    "商品", "产品", "產品", "本店", "宝贝", "寶貝", "货品", "貨品", "图书", "圖書", "本书", "本書",
];

/// A name out of a label: a known word, else its own words.
pub(super) fn of_label(label: &str) -> Option<String> {
    let label = without_wide_gaps(label);
    match known(&label) {
        Some(name) => Some(name.to_owned()),
        None => of_words(bare(&label)),
    }
}

/// The name of a label that the table has.
pub(super) fn of_known_label(label: &str) -> Option<&'static str> {
    known(&without_wide_gaps(label))
}

fn known(label: &str) -> Option<&'static str> {
    let label = bare(label);
    let of = |label: &str| {
        let small = label.to_lowercase();
        let mut rows = KNOWN.iter();
        let row =
            rows.find(|(_, labels)| labels.contains(&label) || labels.contains(&small.as_str()));
        row.map(|(name, _)| *name)
    };
    // `商品库存` is the stock, `本店售价` the price.
    let without = || THING.iter().find_map(|thing| label.strip_prefix(thing));
    of(label).or_else(|| of(without()?))
}

/// Whether columns are often called so.
pub(super) fn is_known(name: &str) -> bool {
    matches!(name, "id" | "title") || KNOWN.iter().any(|(known, _)| *known == name)
}

fn bare(label: &str) -> &str {
    label.trim_matches(|c: char| !c.is_alphanumeric())
}

/// The label without blanks between Chinese characters: `品 牌` fills the width of four.
fn without_wide_gaps(label: &str) -> String {
    let is_wide = |c: Option<char>| c.is_some_and(|c| ('\u{2e80}'..='\u{9fff}').contains(&c));
    let parts: Vec<&str> = label.split_whitespace().collect();
    let mut whole = String::new();
    for part in parts {
        let is_gap = is_wide(whole.chars().next_back()) && is_wide(part.chars().next());
        if !whole.is_empty() && !is_gap {
            whole.push(' ');
        }
        whole.extend(part.chars().map(narrow));
    }
    whole
}

/// The letter or digit of a full-width one: `ＩＳＢＮ`.
fn narrow(c: char) -> char {
    let is_wide = ('\u{ff01}'..='\u{ff5e}').contains(&c);
    let narrow = is_wide.then(|| u32::from(c).checked_sub(0xfee0)).flatten();
    narrow.and_then(char::from_u32).unwrap_or(c)
}

/// A name out of a class: its last part, `card__price--big` is `price`.
pub(super) fn of_class(class: &str) -> Option<String> {
    let block = class.split("--").next().unwrap_or(class);
    let part = block.rsplit("__").next().unwrap_or(block);
    of_words(part)
}

/// Words in small letters with `_` between them; other scripts stay as they are.
pub(super) fn of_words(text: &str) -> Option<String> {
    let mut name = String::new();
    let mut before: Option<char> = None;
    for c in text.chars() {
        if c.is_alphanumeric() {
            let is_hump =
                c.is_uppercase() && before.is_some_and(|b| b.is_lowercase() || b.is_ascii_digit());
            if is_hump {
                name.push('_');
            }
            name.extend(c.to_lowercase());
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
        before = Some(c);
    }
    let name = name.trim_matches('_').to_owned();
    let is_good = name.chars().count() <= 40 && name.starts_with(char::is_alphabetic);
    is_good.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_in_any_script() {
        for (label, name) in [
            ("售價：", Some("price")),
            ("上架日期", Some("posted")),
            ("庫\u{3000}存：", Some("stock")),
            ("ISO 範圍", Some("iso_範圍")),
            ("Number of reviews", Some("number_of_reviews")),
            ("Price (excl. tax)", Some("price_excl_tax")),
            ("適用機種", Some("適用機種")),
            ("ISBN-13", Some("isbn")),
            ("12", None),
            (" ", None),
        ] {
            assert_eq!(of_label(label).as_deref(), name, "{label}");
        }
        assert_eq!(of_class("listing__price--big").as_deref(), Some("price"));
        assert_eq!(of_class("card-title").as_deref(), Some("card_title"));
        assert_eq!(of_words("datePublished").as_deref(), Some("date_published"));
        assert_eq!(of_words("priceCurrency").as_deref(), Some("price_currency"));
    }

    #[test]
    fn a_label_has_one_name() {
        let labels: Vec<&str> = KNOWN
            .iter()
            .flat_map(|(_, labels)| labels.iter().copied())
            .collect();
        let once: std::collections::HashSet<&str> = labels.iter().copied().collect();
        assert_eq!(labels.len(), once.len());
    }
}
