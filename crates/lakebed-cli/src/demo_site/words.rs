//! The words of the market, Traditional Chinese beside English. All of it is invented.
//!
//! WORDS-1: every Chinese character is in Big5 and in GBK, so that the site can speak both.

/// A word in both languages.
pub(crate) type Pair = (&'static str, &'static str);

/// The two languages of the site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Lang {
    /// Traditional Chinese.
    Zh,
    /// English.
    En,
}

impl Lang {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Zh, Self::En];

    /// As in addresses.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Zh => "zh",
            Self::En => "en",
        }
    }

    /// As in `<html lang>`.
    pub(crate) const fn tag(self) -> &'static str {
        match self {
            Self::Zh => "zh-Hant",
            Self::En => "en",
        }
    }

    /// The word in this language.
    pub(crate) const fn of(self, pair: Pair) -> &'static str {
        match self {
            Self::Zh => pair.0,
            Self::En => pair.1,
        }
    }

    /// The language of a code.
    pub(crate) fn parse(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|l| l.code() == code)
    }
}

/// A city of the market.
#[derive(Debug)]
pub(crate) struct City {
    /// As in addresses.
    pub(crate) slug: &'static str,
    /// Its name.
    pub(crate) name: Pair,
    /// Share of all flats in percent.
    pub(crate) share: u32,
    /// Monthly rent of a ping (3.3 square metres).
    pub(crate) rent: u32,
    /// Districts and their rents in percent of the city's.
    pub(crate) districts: &'static [(Pair, u32)],
}

/// The cities, the largest first.
pub(crate) const CITIES: [City; 8] = [
    City {
        slug: "chenghu",
        name: ("澄湖市", "Chenghu"),
        share: 26,
        rent: 1150,
        districts: &[
            (("湖濱區", "Hubin"), 118),
            (("書院區", "Shuyuan"), 112),
            (("中橋區", "Zhongqiao"), 110),
            (("柳岸區", "Liuan"), 104),
            (("東渡區", "Dongdu"), 92),
            (("北埔區", "Beipu"), 88),
        ],
    },
    City {
        slug: "qinggang",
        name: ("青港市", "Qinggang"),
        share: 18,
        rent: 830,
        districts: &[
            (("港口區", "Gangkou"), 112),
            (("燈塔區", "Dengta"), 105),
            (("潮門區", "Chaomen"), 100),
            (("鹽倉區", "Yancang"), 90),
            (("石階區", "Shijie"), 86),
        ],
    },
    City {
        slug: "yunling",
        name: ("雲嶺市", "Yunling"),
        share: 15,
        rent: 710,
        districts: &[
            (("雲頂區", "Yunding"), 115),
            (("茶山區", "Chashan"), 102),
            (("溪口區", "Xikou"), 98),
            (("松徑區", "Songjing"), 94),
            (("竹坑區", "Zhukeng"), 84),
        ],
    },
    City {
        slug: "baishi",
        name: ("白石市", "Baishi"),
        share: 12,
        rent: 640,
        districts: &[
            (("新街區", "Xinjie"), 110),
            (("採石區", "Caishi"), 100),
            (("礦橋區", "Kuangqiao"), 94),
            (("西坡區", "Xipo"), 90),
        ],
    },
    City {
        slug: "yuewan",
        name: ("月灣市", "Yuewan"),
        share: 11,
        rent: 620,
        districts: &[
            (("風帆區", "Fengfan"), 114),
            (("灣頭區", "Wantou"), 104),
            (("沙丘區", "Shaqiu"), 95),
            (("漁村區", "Yucun"), 85),
        ],
    },
    City {
        slug: "jinhe",
        name: ("金禾市", "Jinhe"),
        share: 8,
        rent: 560,
        districts: &[
            (("稻香區", "Daoxiang"), 106),
            (("水圳區", "Shuizhen"), 100),
            (("糧倉區", "Liangcang"), 96),
            (("南圃區", "Nanpu"), 88),
        ],
    },
    City {
        slug: "fengping",
        name: ("楓坪市", "Fengping"),
        share: 6,
        rent: 520,
        districts: &[
            (("學前區", "Xueqian"), 112),
            (("紅葉區", "Hongye"), 100),
            (("木橋區", "Muqiao"), 90),
        ],
    },
    City {
        slug: "songpu",
        name: ("松浦市", "Songpu"),
        share: 4,
        rent: 480,
        districts: &[
            (("鐘樓區", "Zhonglou"), 108),
            (("松林區", "Songlin"), 98),
            (("渡船區", "Duchuan"), 90),
        ],
    },
];

/// The number of the city with this slug.
pub(crate) fn find_city(slug: &str) -> Option<usize> {
    CITIES.iter().position(|c| c.slug == slug)
}

/// Streets of every city.
pub(crate) const STREETS: [Pair; 18] = [
    ("梧桐路", "Wutong Road"),
    ("桂花街", "Guihua Street"),
    ("書香路", "Shuxiang Road"),
    ("望月街", "Wangyue Street"),
    ("晴川路", "Qingchuan Road"),
    ("聽雨巷", "Tingyu Lane"),
    ("稻田路", "Daotian Road"),
    ("石橋街", "Shiqiao Street"),
    ("燈籠巷", "Denglong Lane"),
    ("白鷺路", "Bailu Road"),
    ("青苔巷", "Qingtai Lane"),
    ("楓葉路", "Fengye Road"),
    ("雲雀街", "Yunque Street"),
    ("果園路", "Guoyuan Road"),
    ("磨坊街", "Mofang Street"),
    ("鐘聲路", "Zhongsheng Road"),
    ("風車路", "Fengche Road"),
    ("水車巷", "Shuiche Lane"),
];

/// What a title praises.
pub(crate) const PRAISE: [Pair; 20] = [
    ("近捷運站", "Near the metro"),
    ("採光佳", "Full of light"),
    ("全新裝潢", "Newly done up"),
    ("安靜巷弄", "Quiet lane"),
    ("高樓景觀", "High floor with a view"),
    ("生活機能好", "Shops at the door"),
    ("拎包入住", "Ready to move in"),
    ("通風良好", "Airy"),
    ("獨立電表", "Own electricity meter"),
    ("學區旁", "Beside the school"),
    ("公園第一排", "Facing the park"),
    ("格局方正", "Well laid out"),
    ("管理完善", "Well kept house"),
    ("面湖視野", "Lake view"),
    ("有大陽台", "Large balcony"),
    ("近市場", "Near the market"),
    ("可短租", "Short stays welcome"),
    ("屋況極佳", "In best condition"),
    ("低總價", "Low price"),
    ("稀有釋出", "Rarely offered"),
];

/// What a title calls the place.
pub(crate) const NICKNAMES: [Pair; 14] = [
    ("溫馨小窩", "cosy nest"),
    ("採光美屋", "sunny home"),
    ("質感宅", "stylish home"),
    ("北歐風", "Nordic style flat"),
    ("工業風", "loft style flat"),
    ("景觀宅", "home with a view"),
    ("日式小宅", "Japanese style flat"),
    ("時尚雅居", "modern residence"),
    ("大空間", "spacious flat"),
    ("首選好房", "first choice"),
    ("文青小屋", "reader's den"),
    ("低調奢華", "quiet luxury"),
    ("新婚首選", "home for two"),
    ("小資最愛", "budget favourite"),
];

/// Furniture and rights: code, name, share of listings that have it in percent.
pub(crate) const FEATURES: [(&str, Pair, u32); 18] = [
    ("aircon", ("冷氣", "Air conditioning"), 88),
    ("washer", ("洗衣機", "Washing machine"), 76),
    ("fridge", ("冰箱", "Refrigerator"), 80),
    ("heater", ("熱水器", "Water heater"), 90),
    ("gas", ("天然瓦斯", "Natural gas"), 42),
    ("net", ("網路", "Internet"), 61),
    ("tv", ("電視", "Television"), 38),
    ("bed", ("床", "Bed"), 72),
    ("wardrobe", ("衣櫃", "Wardrobe"), 74),
    ("sofa", ("沙發", "Sofa"), 46),
    ("desk", ("桌椅", "Desk and chair"), 64),
    ("balcony", ("陽台", "Balcony"), 55),
    ("lift", ("電梯", "Lift"), 58),
    ("parking", ("車位", "Parking space"), 22),
    ("cooking", ("可開伙", "Cooking allowed"), 47),
    ("pets", ("可養寵物", "Pets allowed"), 24),
    ("subsidy", ("可申請租金補貼", "Rent subsidy possible"), 35),
    ("register", ("可設籍", "May be registered as residence"), 30),
];

/// Sentences of descriptions.
pub(crate) const SENTENCES: [Pair; 26] = [
    (
        "屋內採光充足，早晨的陽光可以照進客廳。",
        "The rooms are bright, and the morning sun reaches the living room.",
    ),
    (
        "走路五分鐘就到捷運站，通勤十分方便。",
        "The metro is five minutes on foot, so the way to work is short.",
    ),
    (
        "樓下有便利商店、早餐店與小公園。",
        "A convenience shop, a breakfast place and a small park are downstairs.",
    ),
    (
        "房東整理得很乾淨，可以馬上入住。",
        "The flat is clean and can be moved into at once.",
    ),
    (
        "附近有市場和超市，買菜不用愁。",
        "A market and a supermarket are close by.",
    ),
    (
        "社區有管理員，收發信件包裹都安心。",
        "A caretaker takes letters and parcels.",
    ),
    (
        "每個房間都有對外窗，通風良好。",
        "Every room has a window to the outside and fresh air.",
    ),
    (
        "衛浴乾溼分離，去年剛更新過。",
        "The bathroom has a separate shower and was renewed last year.",
    ),
    (
        "廚房有瓦斯爐與抽油煙機，喜歡做菜的人會滿意。",
        "The kitchen has a gas stove and an extractor, good for those who cook.",
    ),
    (
        "陽台可以晒衣服，也放得下幾盆花。",
        "The balcony has room for laundry and some flowers.",
    ),
    (
        "晚上很安靜，適合早睡的上班族。",
        "It is quiet at night, right for people who start early.",
    ),
    (
        "水費包含在租金內，電費依照獨立電表計算。",
        "Water is included; electricity is counted by its own meter.",
    ),
    (
        "網路與第四台已經裝好，不另外收費。",
        "Internet and cable television are in place at no further cost.",
    ),
    (
        "歡迎學生與小家庭，請勿在室內抽菸。",
        "Students and small families are welcome; no smoking inside.",
    ),
    (
        "租期至少一年，可以申請租金補貼。",
        "The lease is for a year at least; a rent subsidy can be asked for.",
    ),
    (
        "大樓有電梯，搬家不費力。",
        "The building has a lift, so moving in is easy.",
    ),
    (
        "冬天不潮溼，夏天有風。",
        "It stays dry in winter and has a breeze in summer.",
    ),
    (
        "車位可以另外承租，請來電詢問。",
        "A parking space can be rented besides; please ask.",
    ),
    (
        "門口就是公車站，到市中心約二十分鐘。",
        "The bus stops at the door; the centre is about twenty minutes away.",
    ),
    (
        "附近有河濱步道，假日可以散步騎車。",
        "A riverside path nearby is good for walks and rides on free days.",
    ),
    (
        "家具都是新的，照片就是現況。",
        "The furniture is new, and the pictures show the present state.",
    ),
    (
        "看屋請先約時間，晚上與週末都可以。",
        "Please make an appointment; evenings and weekends are fine.",
    ),
    (
        "格局方正沒有浪費的空間。",
        "The layout is regular and wastes no space.",
    ),
    (
        "隔音做得很好，聽不到馬路的聲音。",
        "Well insulated: the street is not heard.",
    ),
    (
        "頂樓有公共晒衣場，地下室可停腳踏車。",
        "There is a shared drying place on the roof and room for bicycles in the basement.",
    ),
    (
        "房東就住在附近，有問題很快處理。",
        "The owner lives near and sees to problems quickly.",
    ),
];

/// Family names of people who do not exist.
pub(crate) const SURNAMES: [Pair; 12] = [
    ("林", "Lin"),
    ("陳", "Chen"),
    ("黃", "Huang"),
    ("張", "Chang"),
    ("李", "Lee"),
    ("王", "Wang"),
    ("吳", "Wu"),
    ("劉", "Liu"),
    ("蔡", "Tsai"),
    ("楊", "Yang"),
    ("許", "Hsu"),
    ("鄭", "Cheng"),
];

#[cfg(test)]
mod tests {
    use encoding_rs::{BIG5, GBK};

    use super::*;

    #[test]
    fn shares_are_whole() {
        assert_eq!(CITIES.iter().map(|c| c.share).sum::<u32>(), 100);
        for city in &CITIES {
            assert!(!city.districts.is_empty(), "{}", city.slug);
        }
        assert_eq!(find_city("jinhe"), Some(5));
        assert_eq!(find_city(""), None);
    }

    /// Attacks WORDS-1.
    #[test]
    fn every_word_is_in_both_charsets() {
        let mut words: Vec<&str> = SENTENCES.iter().map(|s| s.0).collect();
        words.extend(STREETS.iter().chain(&PRAISE).chain(&NICKNAMES).map(|s| s.0));
        words.extend(SURNAMES.iter().map(|s| s.0));
        words.extend(FEATURES.iter().map(|f| f.1.0));
        for city in &CITIES {
            words.push(city.name.0);
            words.extend(city.districts.iter().map(|d| d.0.0));
        }
        for word in words {
            for charset in [BIG5, GBK] {
                let (_, _, lost) = charset.encode(word);
                assert!(!lost, "`{word}` is not in {}", charset.name());
            }
        }
    }
}
