//! `hot_topics`: what people talk about, three times a day; JSON lines in Simplified Chinese.
//!
//! A topic is born in some sweep, rises, and falls out of the list. From day 31 the site adds
//! `read_count`; from day 38 it has a new label.

use serde_json::{Map, Value};

use crate::demo::random::Random;

/// Sweeps of a day, by their run name.
pub(crate) const SWEEPS: [&str; 3] = ["0900", "1500", "2100"];
/// First day on which records carry `read_count`.
pub(crate) const READ_COUNT_FROM: u32 = 31;
/// First day on which the label `爆` appears.
pub(crate) const NEW_LABEL_FROM: u32 = 38;
/// Topics a list shows at most.
const LIST_LENGTH: usize = 50;
/// Topics born in a sweep.
const BORN: i64 = 10;
/// Heat over a topic's life, in thousandths of its peak, a sweep each.
const LIFE: [u32; 8] = [350, 800, 1000, 760, 520, 330, 200, 120];

const WHO: [&str; 28] = [
    "国庆假期",
    "高铁",
    "地铁新线",
    "中秋月饼",
    "台风",
    "演唱会",
    "国家队",
    "大学新生",
    "外卖骑手",
    "新能源车",
    "博物馆",
    "敦煌",
    "长江",
    "故宫",
    "热门剧集",
    "电影节",
    "乒乓球",
    "女排",
    "马拉松",
    "图书馆",
    "夜市",
    "奶茶",
    "火锅",
    "大熊猫",
    "机器人",
    "卫星",
    "房租",
    "医保",
];
const WHAT: [&str; 26] = [
    "门票秒空",
    "时刻表调整",
    "首日客流创新高",
    "涨价了吗",
    "登上热搜",
    "夺冠",
    "延期",
    "正式开通",
    "最新回应",
    "有多拼",
    "冷知识",
    "返场加演",
    "迎来高峰",
    "官宣",
    "现场图",
    "为什么这么火",
    "一票难求",
    "全网刷屏",
    "评分出炉",
    "明起实施",
    "网友吵翻",
    "真相来了",
    "上新",
    "破纪录",
    "背后的故事",
    "排队三小时",
];
const CATEGORY: [&str; 6] = ["社会", "娱乐", "体育", "科技", "财经", "生活"];

struct Topic {
    word: String,
    category: &'static str,
    heat: u32,
    age: usize,
    reads: u64,
}

/// The list of a sweep (0 to 2) of a day (from 1) as JSON lines; `date` is written `YYYY-MM-DD`.
pub(crate) fn list(day: u32, sweep: usize, date: &str) -> Vec<u8> {
    let minute = Random::new("topics minute", i64::from(day), index(sweep)).range(1, 9);
    let hour = SWEEPS.get(sweep).map_or("09", |s| &s[..2]);
    let mut text = String::new();
    for (i, topic) in topics(day, sweep).iter().enumerate() {
        let mut row = Map::new();
        row.insert("rank".to_owned(), Value::from(i + 1));
        row.insert("word".to_owned(), Value::from(topic.word.as_str()));
        row.insert(
            "label".to_owned(),
            label(day, topic).map_or(Value::Null, Value::from),
        );
        row.insert("heat".to_owned(), Value::from(topic.heat));
        row.insert("category".to_owned(), Value::from(topic.category));
        let url = format!("https://hot.example/t/{}-{}", topic.heat % 9973, i + 1);
        row.insert("url".to_owned(), Value::from(url));
        let seen_at = format!("{date} {hour}:{minute:02}:{:02}", i % 60);
        row.insert("seen_at".to_owned(), Value::from(seen_at));
        if day >= READ_COUNT_FROM {
            row.insert("read_count".to_owned(), Value::from(topic.reads));
        }
        text.push_str(&Value::Object(row).to_string());
        text.push('\n');
    }
    text.into_bytes()
}

fn index(sweep: usize) -> i64 {
    i64::try_from(sweep).unwrap_or(0)
}

fn topics(day: u32, sweep: usize) -> Vec<Topic> {
    let now = (i64::from(day) - 1) * 3 + index(sweep);
    let mut topics: Vec<Topic> = Vec::new();
    for (age, share) in LIFE.iter().enumerate() {
        let born = now - index(age);
        for n in 0..BORN {
            let mut r = Random::new("topic", born, n);
            let lives = usize::try_from(r.range(3, 8)).unwrap_or(3);
            if age >= lives {
                continue;
            }
            let word = format!("{}{}", r.pick(&WHO), r.pick(&WHAT));
            let category = r.pick(&CATEGORY);
            // Few topics are large: the square of an even draw.
            let draw = r.range(300, 2600);
            let peak = draw * draw;
            let heat = peak / 1000 * share + r.range(0, 999);
            if !topics.iter().any(|t| t.word == word) {
                let reads = u64::from(heat) * u64::from(r.range(20, 60));
                topics.push(Topic {
                    word,
                    category,
                    heat,
                    age,
                    reads,
                });
            }
        }
    }
    topics.sort_by(|a, b| b.heat.cmp(&a.heat).then_with(|| a.word.cmp(&b.word)));
    topics.truncate(LIST_LENGTH);
    topics
}

fn label(day: u32, topic: &Topic) -> Option<&'static str> {
    match topic.heat {
        5_000_000.. if day >= NEW_LABEL_FROM => Some("爆"),
        3_500_000.. => Some("沸"),
        1_500_000.. => Some("热"),
        _ if topic.age == 0 => Some("新"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(day: u32, sweep: usize) -> Vec<Value> {
        String::from_utf8(list(day, sweep, "2026-09-01"))
            .unwrap()
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect()
    }

    #[test]
    fn lists_are_ranked_and_topics_last_over_sweeps() {
        let (a, b) = (rows(5, 0), rows(5, 1));
        assert!(a.len() >= 40, "{}", a.len());
        assert!(
            a.windows(2)
                .all(|w| w[0]["heat"].as_u64() >= w[1]["heat"].as_u64())
        );
        let stayed = a
            .iter()
            .filter(|x| b.iter().any(|y| y["word"] == x["word"]))
            .count();
        assert!(stayed > 10, "{stayed}");
    }

    #[test]
    fn drift_begins_on_its_days() {
        let has = |day: u32, f: &dyn Fn(&Value) -> bool| (0..3).any(|s| rows(day, s).iter().any(f));
        for day in 1..=60 {
            assert_eq!(
                has(day, &|r| r.get("read_count").is_some()),
                day >= READ_COUNT_FROM
            );
            if day < NEW_LABEL_FROM {
                assert!(!has(day, &|r| r["label"] == "爆"), "day {day}");
            }
        }
        assert!(rows(NEW_LABEL_FROM, 0).iter().any(|r| r["label"] == "爆"));
    }
}
