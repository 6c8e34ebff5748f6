//! `shop`: a shop's goods, the whole catalogue every day; a nested JSON document.
//!
//! On day 33 the interface answered with an error and no data; from day 50 some stocks are the text
//! `有貨` instead of a number.

use serde_json::{Map, Value, json};

use crate::demo::random::Random;

/// The day on which there is no data.
pub(crate) const NO_DATA_ON: u32 = 33;
/// First day on which some stocks are texts.
pub(crate) const STOCK_TEXT_FROM: u32 = 50;

const GOODS: [&str; 16] = [
    "帆布包",
    "馬克杯",
    "手沖壺",
    "筆記本",
    "鋼筆",
    "桌燈",
    "收納盒",
    "雨傘",
    "保溫瓶",
    "耳機",
    "鍵盤",
    "滑鼠墊",
    "香氛蠟燭",
    "露營椅",
    "行李箱",
    "棉T",
];
const STYLE: [&str; 8] = [
    "北歐風",
    "日式",
    "復古",
    "極簡",
    "手作",
    "輕量",
    "大容量",
    "限定",
];
const COLORS: [&str; 6] = ["黑", "白", "藍", "綠", "米", "紅"];
const TAGS: [&str; 6] = ["免運", "新品", "熱銷", "限時", "環保", "送禮"];
const SELLERS: [&str; 8] = [
    "小林文具",
    "山海選物",
    "好日子",
    "木木商行",
    "島嶼生活",
    "一期一會",
    "白鳥工作室",
    "城市露營",
];
const MATERIAL: [&str; 5] = ["棉", "不鏽鋼", "陶瓷", "竹", "再生塑膠"];

/// The document of a day (from 1); `epoch_ms` is its midnight.
pub(crate) fn document(day: u32, epoch_ms: i64) -> Vec<u8> {
    if day == NO_DATA_ON {
        return b"{\"code\":500,\"msg\":\"busy\",\"data\":null}\n".to_vec();
    }
    let items: Vec<Value> = (0..80 + i64::from(day) / 2)
        .map(|n| item(day, n, epoch_ms))
        .collect();
    let document = json!({
        "code": 0,
        "msg": "ok",
        "data": { "total": items.len(), "items": items },
    });
    format!("{document:#}\n").into_bytes()
}

fn item(day: u32, n: i64, epoch_ms: i64) -> Value {
    // What the thing is: the same every day.
    let mut thing = Random::new("thing", n, 0);
    let name = format!("{}{}", thing.pick(&STYLE), thing.pick(&GOODS));
    let base_cents = thing.range(12, 290) * 1000 - 100;
    let seller = thing.range(1, 8);
    let seller_name = usize::try_from(seller - 1)
        .ok()
        .and_then(|i| SELLERS.get(i).copied());
    let rating = f64::from(thing.range(38, 50)) / 10.0;
    let variants = thing.range(1, 4);
    let first_color = usize::try_from(thing.range(0, 5)).unwrap_or(0);
    let material = thing.pick(&MATERIAL);
    // What is true of it today.
    let mut today = Random::new("thing today", n, i64::from(day));
    let on_sale = today.one_in(6);
    let cents = if on_sale {
        base_cents * 85 / 100
    } else {
        base_cents
    };
    let mut attributes = Map::new();
    attributes.insert("材質".to_owned(), Value::from(material));
    if thing.one_in(2) {
        attributes.insert("產地".to_owned(), Value::from("台灣"));
    }
    let tags: Vec<&str> = (0..today.range(0, 3)).map(|_| today.pick(&TAGS)).collect();
    let stock = |v: u32, r: &mut Random| {
        if day >= STOCK_TEXT_FROM && r.one_in(60) {
            Value::from("有貨")
        } else {
            Value::from(r.range(0, 120) / (v + 1))
        }
    };
    let variants: Vec<Value> = (0..variants)
        .map(|v| {
            let at = first_color + usize::try_from(v).unwrap_or(0);
            let stock = stock(v, &mut today);
            json!({ "sku": format!("{}-{}", 10_001 + n, v + 1), "color": COLORS[at % COLORS.len()], "stock": stock })
        })
        .collect();
    let was = if on_sale {
        Value::from(f64::from(base_cents) / 100.0)
    } else {
        Value::Null
    };
    json!({
        "id": 10_001 + n,
        "name": name,
        "price": { "amount": f64::from(cents) / 100.0, "currency": "TWD", "was": was },
        "tags": tags,
        "seller": { "id": format!("S{seller:03}"), "name": seller_name, "rating": rating },
        "variants": variants,
        "attributes": attributes,
        "updated_at": epoch_ms + i64::from(today.range(0, 86_399)) * 1000,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oddities_stand_on_their_days() {
        for day in 1..=60 {
            let text = String::from_utf8(document(day, 0)).unwrap();
            assert_eq!(text.contains("有貨"), day >= STOCK_TEXT_FROM, "day {day}");
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["data"].is_null(), day == NO_DATA_ON);
        }
    }

    #[test]
    fn a_thing_keeps_its_name_and_changes_its_price() {
        let items = |day| {
            serde_json::from_slice::<Value>(&document(day, 0)).unwrap()["data"]["items"].clone()
        };
        let (a, b) = (items(1), items(2));
        assert!((0..80).all(|i| a[i]["name"] == b[i]["name"]));
        assert!((0..80).any(|i| a[i]["price"] != b[i]["price"]));
    }
}
