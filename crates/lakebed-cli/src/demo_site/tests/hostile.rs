//! Texts from outside: whatever they hold, they are read or refused, and never break a page.

use proptest::prelude::*;

use crate::demo_site::address::Address;
use crate::demo_site::fault::FaultSpec;
use crate::demo_site::http_date::HttpTime;
use crate::demo_site::market::{Lookup, Market};

/// Texts that come close to what is understood.
fn near(words: &'static str) -> impl Strategy<Value = String> {
    let words: Vec<&str> = words.split(' ').collect();
    let word = prop_oneof![
        4 => prop::sample::select(words).prop_map(str::to_owned),
        1 => "[0-9]{1,20}",
        1 => any::<String>(),
    ];
    prop::collection::vec(word, 0..7).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn an_address_is_read_or_refused(
        path in near("/ fault on zh list rent 12 2026-11-30 slow:5 hang @ + % %2F %ff \" < ' é"),
        query in near("city = & % + page _hop 1 %zz ="),
    ) {
        if let Ok(address) = Address::parse(&format!("/{path}"), Some(&query)) {
            prop_assert!(!address.prefix.contains(['"', '<', '>', '\'']));
            prop_assert!(!address.with_hop(1).contains(['\r', '\n', ' ']) || path.contains(['\r', '\n', ' ']));
        }
    }

    #[test]
    fn an_order_is_read_or_refused(text in near("flaky slow huge bomb : / 5 100 k m g @ list , host= robots delay é 18446744073709551615")) {
        if let Ok(spec) = FaultSpec::parse(&text) {
            prop_assert_eq!(&FaultSpec::parse(&spec.text).unwrap(), &spec);
        }
    }

    #[test]
    fn a_time_is_read_or_refused(text in near("Sun, 06 Nov 1994 08:49:37 GMT Feb 31 0000 : é")) {
        if let Some(at) = HttpTime::parse(&text) {
            prop_assert_eq!(HttpTime::parse(&at.to_string()), Some(at));
        }
    }

    #[test]
    fn any_id_can_be_asked_for_on_any_day(id in any::<u64>(), day in -719_162_i32..=2_932_896, near_id in 0_u64..1 << 37) {
        let market = Market::new(1, 200).unwrap();
        let date = lakebed::time::BusinessDate::from_days(day).unwrap();
        for id in [id, near_id] {
            if let Lookup::Found(listing) = market.find(id, date) {
                prop_assert_eq!(listing.id, id);
                prop_assert!(listing.posted <= date && listing.changed <= date);
            }
        }
    }
}
