//! What one letting asks for and how it is worded: a function of (seed, letting, day).

use crate::demo_site::draw::{Draw, Purpose};
use crate::demo_site::flat::Flat;
use crate::demo_site::timeline::{Day, Letting};
use crate::demo_site::words::{Lang, NICKNAMES, PRAISE, Pair, SENTENCES, SURNAMES};

/// Who lets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The owner.
    Owner,
    /// Somebody for the owner.
    Proxy,
    /// An agency.
    Agency,
}

impl Role {
    /// As in the interface.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Proxy => "proxy",
            Self::Agency => "agency",
        }
    }

    /// Its name.
    pub(crate) const fn name(self) -> Pair {
        match self {
            Self::Owner => ("屋主", "Owner"),
            Self::Proxy => ("代理人", "Representative"),
            Self::Agency => ("仲介", "Agency"),
        }
    }
}

/// Somebody who does not exist: the name says so, and no telephone has the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Contact {
    /// Who they are.
    pub(crate) role: Role,
    surname: Pair,
    number: u32,
}

impl Contact {
    /// The name.
    pub(crate) fn name(&self, lang: Lang) -> String {
        match (lang, self.role) {
            (Lang::Zh, Role::Agency) => format!("示範房仲第{}店", self.number % 97 + 1),
            (Lang::En, Role::Agency) => format!("Example Agency No. {}", self.number % 97 + 1),
            (Lang::Zh, Role::Owner | Role::Proxy) => format!("{}示範", self.surname.0),
            (Lang::En, Role::Owner | Role::Proxy) => format!("Example {}", self.surname.1),
        }
    }

    /// The telephone number, of a prefix that is not given out.
    pub(crate) fn phone(&self) -> String {
        format!("0000-{:03}-{:03}", self.number / 1000, self.number % 1000)
    }

    /// The address, below a name that nobody can have (RFC 2606).
    pub(crate) fn mail(&self) -> String {
        format!("contact{}@rent.invalid", self.number)
    }
}

/// The terms of a letting on a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Monthly rent.
    pub(crate) price: u32,
    /// The rent it was posted with.
    pub(crate) first_price: u32,
    /// How often it has changed.
    pub(crate) price_changes: u32,
    /// When it or the text changed last; the day of posting for never.
    pub(crate) changed: Day,
    /// The site shows "negotiable" in the place of the rent.
    pub(crate) negotiable: bool,
    /// Monthly fee of the house; 0 = none.
    pub(crate) fee: u32,
    /// Deposit in months.
    pub(crate) deposit: u32,
    /// Shortest lease in months.
    pub(crate) lease: u32,
    /// Whom it is for: 0 anybody, 1 women, 2 men.
    pub(crate) tenants: u32,
    /// Number of pictures.
    pub(crate) pictures: u32,
    /// Whom to ask.
    pub(crate) contact: Contact,
}

impl Offer {
    /// The terms on that day.
    pub(crate) fn of(seed: u64, letting: &Letting, flat: &Flat, day: Day) -> Self {
        let mut draw = offer_draw(seed, Purpose::Offer, letting);
        let first_price = rounded(flat.rent * draw.between(94, 108) / 100);
        let steps = price_steps(&mut draw, letting);
        let mut offer = Self {
            price: first_price,
            first_price,
            price_changes: 0,
            changed: letting.posted,
            negotiable: draw.percent(1),
            fee: if draw.percent(45) {
                draw.between(3, 30) * 100
            } else {
                0
            },
            deposit: if draw.percent(80) { 2 } else { 1 },
            lease: *draw.pick(&[12, 12, 12, 6, 24, 3]),
            tenants: *draw.pick(&[0, 0, 0, 0, 0, 0, 0, 1, 1, 2]),
            pictures: draw.between(3, 14),
            contact: contact(&mut draw),
        };
        for (at, percent) in steps.into_iter().flatten() {
            let price = rounded(first_price * percent / 100);
            if at <= day && price != offer.price {
                offer.price = price;
                offer.price_changes += 1;
                offer.changed = at;
            }
        }
        offer
    }
}

fn offer_draw(seed: u64, purpose: Purpose, letting: &Letting) -> Draw {
    Draw::new(
        seed,
        purpose,
        u64::from(letting.flat),
        u64::from(letting.number),
    )
}

/// Days on which the rent changes, with the new one in percent of the first, in order of time.
fn price_steps(draw: &mut Draw, letting: &Letting) -> [Option<(Day, u32)>; 2] {
    let days = letting.ends.since(letting.posted);
    if days < 9 || !draw.percent(32) {
        return [None, None];
    }
    let first = draw.between(4, days - 3);
    let percent = match draw.percent(88) {
        true => draw.between(88, 97),
        false => draw.between(103, 106),
    };
    let second = (draw.percent(30) && days - first > 5).then(|| {
        let at = first + draw.between(3, days - first - 2);
        (letting.posted.plus(at), percent - draw.between(3, 6))
    });
    [Some((letting.posted.plus(first), percent)), second]
}

/// Rents end on round figures.
fn rounded(rent: u32) -> u32 {
    let step = if rent >= 20_000 { 500 } else { 100 };
    rent / step * step
}

fn contact(draw: &mut Draw) -> Contact {
    let role = match draw.below(100) {
        0..=41 => Role::Owner,
        42..=55 => Role::Proxy,
        _ => Role::Agency,
    };
    Contact {
        role,
        surname: *draw.pick(&SURNAMES),
        number: draw.below(1_000_000),
    }
}

/// The title of a listing.
pub(crate) fn title(seed: u64, letting: &Letting, flat: &Flat, lang: Lang) -> String {
    let mut draw = offer_draw(seed, Purpose::Words, letting);
    let (first, second) = (*draw.pick(&PRAISE), *draw.pick(&PRAISE));
    let nickname = *draw.pick(&NICKNAMES);
    let shape = draw.below(3);
    let (first, second) = (lang.of(first), lang.of(second));
    let (nickname, kind) = (lang.of(nickname), lang.of(flat.kind.name()));
    let district = lang.of(flat.district());
    match (lang, shape) {
        (Lang::Zh, 0) => format!("{district}{first}{nickname}"),
        (Lang::Zh, 1) => format!("【{first}】{second}{kind}"),
        (Lang::Zh, _) => format!("{first}、{second}{nickname}"),
        (Lang::En, 0) => format!("{first}: {nickname} in {district}"),
        (Lang::En, 1) => format!("[{first}] {second} - {kind}"),
        (Lang::En, _) => format!("{first}, {second}, {nickname}"),
    }
}

/// The paragraphs of a description.
pub(crate) fn description(seed: u64, letting: &Letting, lang: Lang) -> Vec<String> {
    let mut draw = offer_draw(seed, Purpose::Words, letting);
    let first = draw.index(SENTENCES.len());
    let stride = *draw.pick(&[3, 5, 7, 9, 11]);
    let paragraphs = draw.between(2, 3);
    let mut at = first;
    let mut found = Vec::new();
    for _ in 0..paragraphs {
        let mut text = String::new();
        for _ in 0..draw.between(3, 5) {
            if lang == Lang::En && !text.is_empty() {
                text.push(' ');
            }
            text.push_str(lang.of(SENTENCES[at % SENTENCES.len()]));
            at += stride;
        }
        found.push(text);
    }
    found
}
