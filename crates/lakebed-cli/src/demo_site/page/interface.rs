//! The JSON twin of the pages: `/api/list`, `/api/detail/<id>`, `POST /api/search`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::demo_site::address::Address;
use crate::demo_site::flat::{Flat, Kind};
use crate::demo_site::market::{Listing, Lookup, Status};
use crate::demo_site::offer::Offer;
use crate::demo_site::page::paging::{Paging, paging};
use crate::demo_site::page::scene::{Rendered, Scene};
use crate::demo_site::page::wording;
use crate::demo_site::words::{FEATURES, Lang, find_city};

/// Most rows that a search may ask for at once.
const MAX_PER_PAGE: u32 = 200;

/// What `POST /api/search` takes; everything is optional.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    lang: Option<String>,
    city: Option<String>,
    kind: Option<String>,
    min_price: Option<u32>,
    max_price: Option<u32>,
    page: Option<u32>,
    per_page: Option<u32>,
}

/// A listing with everything its page shows.
pub(crate) fn full(listing: &Listing, lang: Lang) -> Value {
    let flat = &listing.flat;
    let offer = &listing.offer;
    let features: Vec<&str> = FEATURES
        .iter()
        .zip(flat.features)
        .filter_map(|(f, has)| has.then_some(f.0))
        .collect();
    let mut value = row(listing, lang);
    if let Value::Object(map) = &mut value {
        map.extend(terms(offer));
        map.extend(place(flat, lang));
        map.insert("features".into(), json!(features));
        map.insert("description".into(), json!(listing.description(lang)));
        map.insert("contact".into(), contact(offer, lang));
        let pictures: Vec<String> = (1..=offer.pictures)
            .map(|n| format!("/img/{}/{n}.svg", listing.id))
            .collect();
        map.insert("pictures".into(), json!(pictures));
    }
    value
}

fn contact(offer: &Offer, lang: Lang) -> Value {
    json!({
        "role": offer.contact.role.code(),
        "name": offer.contact.name(lang),
        "phone": offer.contact.phone(),
        "mail": offer.contact.mail(),
    })
}

fn terms(offer: &Offer) -> serde_json::Map<String, Value> {
    let mut map = serde_json::Map::new();
    let first = (!offer.negotiable).then_some(offer.first_price);
    map.insert("first_price".into(), json!(first));
    map.insert("price_changes".into(), json!(offer.price_changes));
    map.insert("fee".into(), json!(offer.fee));
    map.insert("deposit_months".into(), json!(offer.deposit));
    map.insert("lease_months".into(), json!(offer.lease));
    map.insert("tenants".into(), json!(offer.tenants));
    map
}

fn place(flat: &Flat, lang: Lang) -> serde_json::Map<String, Value> {
    let mut map = serde_json::Map::new();
    let degrees = |n: i32| f64::from(n) / 1e6;
    map.insert("building".into(), json!(flat.building.code()));
    map.insert("address".into(), json!(wording::address(flat, lang)));
    map.insert("rooms".into(), json!(flat.rooms));
    map.insert("lat".into(), json!(degrees(flat.position.0)));
    map.insert("lng".into(), json!(degrees(flat.position.1)));
    map
}

/// A listing as lists have it.
pub(crate) fn row(listing: &Listing, lang: Lang) -> Value {
    let flat = &listing.flat;
    let price = (!listing.offer.negotiable).then_some(listing.offer.price);
    json!({
        "id": listing.id,
        "status": match listing.status {
            Status::Listed => "listed",
            Status::Rented => "rented",
        },
        "title": listing.title(lang),
        "kind": flat.kind.code(),
        "city": flat.city().slug,
        "district": lang.of(flat.district()),
        "price": price,
        "area_ping": f64::from(flat.area_tenths) / 10.0,
        "floor": flat.floor,
        "total_floors": flat.total_floors,
        "posted": listing.posted.to_string(),
        "updated": listing.changed.to_string(),
    })
}

/// `/api/list`
pub(crate) fn list(scene: &Scene<'_>, address: &Address) -> Rendered {
    let lang = address.param("lang").map_or(Some(Lang::Zh), Lang::parse);
    let page = address.param("page").map_or(Some(1), |p| p.parse().ok());
    let city = match address.param("city") {
        Some(slug) => find_city(slug).map(Some),
        None => Some(None),
    };
    let (Some(lang), Some(page), Some(city)) = (lang, page, city) else {
        return error(404, "no such city, page or language");
    };
    let index = scene.market.day(scene.date);
    let flats = if scene.look.empty {
        &[]
    } else {
        index.flats(city)
    };
    let faults = scene.look.paging();
    match paging(flats.len(), scene.per_page, page, faults) {
        Some(paging) => listings(scene, lang, &paging, flats),
        None => error(404, "no such page"),
    }
}

fn listings(scene: &Scene<'_>, lang: Lang, paging: &Paging, flats: &[u32]) -> Rendered {
    let rows = flats.get(paging.rows.clone()).unwrap_or(&[]);
    let items: Vec<Value> = rows
        .iter()
        .map(|flat| row(&scene.market.listing_of(*flat, scene.date), lang))
        .collect();
    let body = json!({
        "date": scene.date.to_string(),
        "total": paging.total,
        "page": paging.page,
        "pages": paging.pages,
        "per_page": scene.per_page,
        "next": paging.has_next.then(|| paging.page + 1),
        "items": items,
    });
    Rendered::json(200, &body).changed_at(scene.start_of_day())
}

/// `/api/detail/<id>`
pub(crate) fn detail(scene: &Scene<'_>, address: &Address, id: u64) -> Rendered {
    let Some(lang) = address.param("lang").map_or(Some(Lang::Zh), Lang::parse) else {
        return error(404, "no such language");
    };
    match scene.market.find(id, scene.date) {
        Lookup::Found(_) if scene.look.empty => Rendered::json(200, &json!({"id": id})),
        Lookup::Found(listing) => {
            Rendered::json(200, &full(&listing, lang)).changed_at(Scene::changed(&listing))
        }
        Lookup::Gone => error(410, "the listing is not on the site any more"),
        Lookup::Unknown => error(404, "no such listing"),
    }
}

/// `POST /api/search`
pub(crate) fn search(scene: &Scene<'_>, body: &[u8]) -> Rendered {
    let search: Search = match serde_json::from_slice(body) {
        Ok(search) => search,
        Err(e) => return error(400, &format!("the body is no search: {e}")),
    };
    let lang = search.lang.as_deref().map_or(Some(Lang::Zh), Lang::parse);
    let city = match &search.city {
        Some(slug) => find_city(slug).map(Some),
        None => Some(None),
    };
    let kind = match &search.kind {
        Some(code) => Kind::parse(code).map(Some),
        None => Some(None),
    };
    let (Some(lang), Some(city), Some(kind)) = (lang, city, kind) else {
        return error(400, "no such language, city or kind");
    };
    let index = scene.market.day(scene.date);
    let wanted = |flat: &u32| {
        let listing = scene.market.listing_of(*flat, scene.date);
        let price = listing.offer.price;
        kind.is_none_or(|k| listing.flat.kind == k)
            && search.min_price.is_none_or(|p| price >= p)
            && search.max_price.is_none_or(|p| price <= p)
    };
    let filters = kind.is_some() || search.min_price.is_some() || search.max_price.is_some();
    let flats: Vec<u32> = match (scene.look.empty, filters) {
        (true, _) => Vec::new(),
        (false, false) => index.flats(city).to_vec(),
        (false, true) => index.flats(city).iter().copied().filter(wanted).collect(),
    };
    let mut scene = *scene;
    scene.per_page = search
        .per_page
        .unwrap_or(scene.per_page)
        .clamp(1, MAX_PER_PAGE);
    let page = search.page.unwrap_or(1);
    match paging(flats.len(), scene.per_page, page, scene.look.paging()) {
        Some(paging) => listings(&scene, lang, &paging, &flats),
        None => error(404, "no such page"),
    }
}

/// An error as the interface tells it.
pub(crate) fn error(status: u16, message: &str) -> Rendered {
    Rendered::json(status, &json!({"error": message, "status": status}))
}
