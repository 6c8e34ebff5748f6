//! `rentals`: flats to let, the whole list every day; CSV in Big5 with Chinese headers.
//!
//! Rents are text (`NT$ 18,500`), `面議` means none is told. From day 45 some flats are on the floor
//! `頂樓加蓋`, which is no number; on day 27 the crawler wrote an error page into the file.

use encoding_rs::BIG5;

use crate::demo::random::Random;

/// The day whose file holds lines of an error page.
pub(crate) const ERROR_PAGE_ON: u32 = 27;
/// First day on which some floors are texts.
pub(crate) const FLOOR_TEXT_FROM: u32 = 45;

const DISTRICTS: [(&str, u32); 8] = [
    ("大安區", 1250),
    ("信義區", 1200),
    ("中山區", 1080),
    ("松山區", 1060),
    ("內湖區", 900),
    ("士林區", 860),
    ("文山區", 760),
    ("北投區", 740),
];
const KINDS: [&str; 4] = ["整層住家", "獨立套房", "分租套房", "雅房"];
const PRAISE: [&str; 10] = [
    "近捷運",
    "採光佳",
    "可開伙",
    "可養寵物",
    "有電梯",
    "全新裝潢",
    "附車位",
    "高樓景觀",
    "生活機能好",
    "安靜巷弄",
];
const ERROR_PAGE: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><h1>502 Bad Gateway</h1></body>\r\n</html>\r\n";

/// The file of a day (from 1); `date_of` writes a day as `YYYY/MM/DD`.
pub(crate) fn file(day: u32, date_of: &dyn Fn(i64) -> String) -> Vec<u8> {
    let mut text = "編號,標題,類型,行政區,租金,坪數,樓層,刊登日期\r\n".to_owned();
    let today = i64::from(day);
    for posted in today - 40..=today {
        let count = Random::new("rentals of a day", posted, 0).range(4, 9);
        for n in 0..i64::from(count) {
            if let Some(row) = listing(day, posted, n, date_of) {
                text.push_str(&row);
            }
        }
        if day == ERROR_PAGE_ON && posted == today - 9 {
            text.push_str(ERROR_PAGE);
        }
    }
    BIG5.encode(&text).0.into_owned()
}

/// A listing as a line, while it is to let.
fn listing(day: u32, posted: i64, n: i64, date_of: &dyn Fn(i64) -> String) -> Option<String> {
    let mut r = Random::new("rental", posted, n);
    let age = i64::from(day) - posted;
    let stays = i64::from(r.range(2, 34));
    if age >= stays {
        return None;
    }
    let kind = r.pick(&KINDS);
    let which = usize::try_from(r.range(0, 7)).unwrap_or(0);
    let (district, rent_of_a_ping) = DISTRICTS[which % DISTRICTS.len()];
    let tenths = match kind {
        "整層住家" => r.range(180, 480),
        "獨立套房" => r.range(70, 160),
        _ => r.range(40, 90),
    };
    let mut rent = rent_of_a_ping * tenths / 10 / 500 * 500 + 2000;
    if age >= 10 && r.one_in(3) {
        rent = rent * 95 / 100 / 100 * 100;
    }
    let money = match r.range(1, 12) {
        1 => "面議".to_owned(),
        2..=5 => format!("\"NT${}\"", crate::table::grouped(u64::from(rent))),
        _ => format!("\"NT$ {}\"", crate::table::grouped(u64::from(rent))),
    };
    let title = format!("\"{},{} {kind}\"", r.pick(&PRAISE), r.pick(&PRAISE));
    let on_the_roof = r.one_in(25);
    let floor = if on_the_roof && day >= FLOOR_TEXT_FROM {
        "頂樓加蓋".to_owned()
    } else {
        r.range(1, 14).to_string()
    };
    Some(format!(
        "R{:05}{n:02},{title},{kind},{district},{money},{}.{},{floor},{}\r\n",
        posted + 1000,
        tenths / 10,
        tenths % 10,
        date_of(posted),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(day: u32) -> String {
        let bytes = file(day, &|d| format!("d{d}"));
        let (text, _, damaged) = BIG5.decode(&bytes);
        assert!(!damaged);
        text.into_owned()
    }

    #[test]
    fn every_character_is_in_big5() {
        for day in [1, ERROR_PAGE_ON, 60] {
            assert!(!text(day).contains("&#"), "day {day}");
        }
    }

    #[test]
    fn the_oddities_stand_on_their_days() {
        for day in 1..=60 {
            let text = text(day);
            assert_eq!(text.contains("502 Bad"), day == ERROR_PAGE_ON, "day {day}");
            assert_eq!(
                text.contains("頂樓加蓋"),
                day >= FLOOR_TEXT_FROM,
                "day {day}"
            );
            assert!(
                (60..260).contains(&text.lines().count()),
                "{}",
                text.lines().count()
            );
        }
    }
}
