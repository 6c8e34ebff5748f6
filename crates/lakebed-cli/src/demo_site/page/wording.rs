//! How the values of a listing are written, in both languages.

use crate::demo_site::flat::Flat;
use crate::demo_site::market::Listing;
use crate::demo_site::words::Lang;

/// `12800` as `12,800`.
pub(crate) fn grouped(n: u32) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Area in ping.
pub(crate) fn area(flat: &Flat) -> String {
    format!("{}.{}", flat.area_tenths / 10, flat.area_tenths % 10)
}

/// The rent as people read it.
pub(crate) fn price(listing: &Listing, lang: Lang) -> String {
    match (listing.offer.negotiable, lang) {
        (true, Lang::Zh) => "面議".to_owned(),
        (true, Lang::En) => "Negotiable".to_owned(),
        (false, Lang::Zh) => format!("NT$ {} 元/月", grouped(listing.offer.price)),
        (false, Lang::En) => format!("NT$ {} a month", grouped(listing.offer.price)),
    }
}

/// The floor: of how many, below ground, on the roof, the whole building.
pub(crate) fn floor(flat: &Flat, lang: Lang) -> String {
    let total = flat.total_floors;
    let top = i32::try_from(total).unwrap_or(i32::MAX);
    match (flat.floor, lang) {
        (0, Lang::Zh) => format!("整棟/{total}F"),
        (0, Lang::En) => format!("Whole building of {total}"),
        (f, Lang::Zh) if f > top => format!("頂樓加蓋/{total}F"),
        (f, Lang::En) if f > top => format!("Rooftop of {total}"),
        (f, _) if f < 0 => format!("B{}/{total}F", f.unsigned_abs()),
        (f, _) => format!("{f}F/{total}F"),
    }
}

/// Bedrooms, living rooms, bathrooms.
pub(crate) fn rooms(flat: &Flat, lang: Lang) -> String {
    let [bed, living, bath] = flat.rooms;
    match (flat.rooms, lang) {
        ([0, 0, 0], _) => "-".to_owned(),
        (_, Lang::Zh) => format!("{bed}房{living}廳{bath}衛"),
        (_, Lang::En) => format!("{bed} bed, {living} living, {bath} bath"),
    }
}

/// City, district, street and number.
pub(crate) fn address(flat: &Flat, lang: Lang) -> String {
    let (city, district) = (lang.of(flat.city().name), lang.of(flat.district()));
    let (street, number) = (lang.of(flat.street), flat.house_number);
    match lang {
        Lang::Zh => format!("{city}{district}{street}{number}號"),
        Lang::En => format!("{number} {street}, {district}, {city}"),
    }
}

/// A number of months.
pub(crate) fn months(n: u32, lang: Lang) -> String {
    match (lang, n) {
        (Lang::Zh, _) => format!("{n}個月"),
        (Lang::En, 1) => "1 month".to_owned(),
        (Lang::En, _) => format!("{n} months"),
    }
}

/// The fee of the house.
pub(crate) fn fee(listing: &Listing, lang: Lang) -> String {
    match (listing.offer.fee, lang) {
        (0, Lang::Zh) => "無".to_owned(),
        (0, Lang::En) => "None".to_owned(),
        (fee, Lang::Zh) => format!("{} 元/月", grouped(fee)),
        (fee, Lang::En) => format!("NT$ {} a month", grouped(fee)),
    }
}

/// Whom it is for.
pub(crate) fn tenants(listing: &Listing, lang: Lang) -> &'static str {
    lang.of(match listing.offer.tenants {
        1 => ("限女性", "Women only"),
        2 => ("限男性", "Men only"),
        _ => ("不限", "Anybody"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors_are_told_in_all_their_forms() {
        let mut flat = Flat::of(1, 1);
        flat.total_floors = 5;
        for (at, zh, en) in [
            (3, "3F/5F", "3F/5F"),
            (5, "5F/5F", "5F/5F"),
            (6, "頂樓加蓋/5F", "Rooftop of 5"),
            (0, "整棟/5F", "Whole building of 5"),
            (-2, "B2/5F", "B2/5F"),
        ] {
            flat.floor = at;
            assert_eq!(
                (
                    floor(&flat, Lang::Zh).as_str(),
                    floor(&flat, Lang::En).as_str()
                ),
                (zh, en)
            );
        }
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let texts = [0, 12, 999, 1000, 12_800, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "12", "999", "1,000", "12,800", "1,234,567"]);
    }
}
