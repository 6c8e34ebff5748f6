//! What a crawler hands over, day by day, with everything that goes wrong in sixty days.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use lakebed::time::{BusinessDate, time_zone};
use lakebed::{Error, Result};

use crate::demo::{rentals, shop, topics};

/// Days of the demo.
pub(crate) const DAYS: u32 = 60;
/// The first day.
const FIRST: &str = "2026-09-01";
/// Zone of the lake and of the sites.
pub(crate) const ZONE: &str = "Asia/Taipei";
/// The day on which the same list of flats is delivered twice.
pub(crate) const RETRY_ON: u32 = 12;
/// The day on which a file of topics is cut off in transfer.
pub(crate) const CUT_OFF_ON: u32 = 20;
/// The day whose last sweep arrives after the date was sealed.
pub(crate) const LATE_ON: u32 = 41;

/// The three sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DemoSource {
    /// JSON lines, three sweeps a day.
    HotTopics,
    /// CSV in Big5.
    Rentals,
    /// A nested JSON document.
    Shop,
}

impl DemoSource {
    /// Every source.
    pub(crate) const ALL: [Self; 3] = [Self::HotTopics, Self::Rentals, Self::Shop];

    /// Its code name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::HotTopics => "hot_topics",
            Self::Rentals => "rentals",
            Self::Shop => "shop",
        }
    }

    /// Its title.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::HotTopics => "热门话题榜",
            Self::Rentals => "租屋網",
            Self::Shop => "生活選物店",
        }
    }
}

/// What is special about a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Oddity {
    /// Nothing.
    None,
    /// The same bytes as the delivery before, under another name.
    Retry,
    /// The file ends in the middle; the next delivery is the whole one.
    CutOff,
    /// The date was sealed before it came.
    Late,
    /// The site answered with an error; there is nothing to store.
    NoData,
}

/// A file that arrives.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    /// From where.
    pub(crate) source: DemoSource,
    /// Day, from 1.
    pub(crate) day: u32,
    /// Business date.
    pub(crate) date: BusinessDate,
    /// Sweep, where a day has several.
    pub(crate) run: Option<&'static str>,
    /// File name.
    pub(crate) name: String,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
    /// Whether it is the date's last.
    pub(crate) completes: bool,
    /// What is special about it.
    pub(crate) oddity: Oddity,
}

/// The business date of a day.
pub(crate) fn date_of(day: i64) -> Result<BusinessDate> {
    Ok(FIRST.parse::<BusinessDate>()?.plus_days(day - 1))
}

/// The deliveries of a day (from 1), in the order they arrive.
pub(crate) fn deliveries(day: u32) -> Result<Vec<Delivery>> {
    let date = date_of(i64::from(day))?;
    let mut found = topic_deliveries(day, date)?;
    found.extend(rental_deliveries(day, date)?);
    found.push(shop_delivery(day, date)?);
    Ok(found)
}

fn topic_deliveries(day: u32, date: BusinessDate) -> Result<Vec<Delivery>> {
    let mut found = Vec::new();
    for (sweep, run) in topics::SWEEPS.into_iter().enumerate() {
        let bytes = gzip(&topics::list(day, sweep, &date.to_string()))?;
        let last = sweep + 1 == topics::SWEEPS.len();
        // On the day of the late sweep, the owner seals after the second one.
        let late_day = day == LATE_ON;
        let whole = Delivery {
            source: DemoSource::HotTopics,
            day,
            date,
            run: Some(run),
            name: format!("hot-{date}-{run}.jsonl.gz"),
            bytes,
            completes: last || (late_day && sweep == 1),
            oddity: if late_day && last {
                Oddity::Late
            } else {
                Oddity::None
            },
        };
        if day == CUT_OFF_ON && sweep == 1 {
            let half = whole.bytes.len() / 2;
            found.push(Delivery {
                name: format!("hot-{date}-{run}.part.jsonl.gz"),
                bytes: whole.bytes[..half].to_vec(),
                completes: false,
                oddity: Oddity::CutOff,
                ..whole.clone()
            });
        }
        found.push(whole);
    }
    Ok(found)
}

fn rental_deliveries(day: u32, date: BusinessDate) -> Result<Vec<Delivery>> {
    let write =
        |d: i64| date_of(d).map_or_else(|_| String::new(), |d| d.to_string().replace('-', "/"));
    let first = Delivery {
        source: DemoSource::Rentals,
        day,
        date,
        run: None,
        name: format!("rentals-{date}.csv"),
        bytes: rentals::file(day, &write),
        completes: true,
        oddity: Oddity::None,
    };
    if day != RETRY_ON {
        return Ok(vec![first]);
    }
    let retry = Delivery {
        name: format!("rentals-{date}-again.csv"),
        oddity: Oddity::Retry,
        ..first.clone()
    };
    Ok(vec![first, retry])
}

fn shop_delivery(day: u32, date: BusinessDate) -> Result<Delivery> {
    let midnight = date
        .date()
        .to_zoned_datetime(time_zone(ZONE)?)
        .map_err(|e| Error::internal("find the midnight of a day").caused_by(e))?;
    Ok(Delivery {
        source: DemoSource::Shop,
        day,
        date,
        run: None,
        name: format!("goods-{date}.json"),
        bytes: shop::document(day, midnight.timestamp().as_millisecond()),
        completes: true,
        oddity: if day == shop::NO_DATA_ON {
            Oddity::NoData
        } else {
            Oddity::None
        },
    })
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(bytes)
        .and_then(|()| encoder.finish())
        .map_err(|e| Error::internal("pack a demo file").caused_by(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attacks DEM-1.
    #[test]
    fn sixty_days_are_the_same_bytes_every_time() {
        let digest = || {
            let mut hasher = blake3::Hasher::new();
            for day in 1..=DAYS {
                for d in deliveries(day).unwrap() {
                    // The packed bytes depend on the compressor's version, their content does not.
                    hasher.update(d.name.as_bytes());
                    if d.run.is_none() {
                        hasher.update(&d.bytes);
                    }
                }
                for sweep in 0..3 {
                    hasher.update(&topics::list(day, sweep, "2026-09-01"));
                }
            }
            hasher.finalize().to_hex().to_string()
        };
        assert_eq!(digest(), digest());
    }

    #[test]
    fn every_oddity_comes_once() {
        let all: Vec<Delivery> = (1..=DAYS).flat_map(|d| deliveries(d).unwrap()).collect();
        for oddity in [Oddity::Retry, Oddity::CutOff, Oddity::Late, Oddity::NoData] {
            assert_eq!(
                all.iter().filter(|d| d.oddity == oddity).count(),
                1,
                "{oddity:?}"
            );
        }
        let retry = all.iter().position(|d| d.oddity == Oddity::Retry).unwrap();
        assert_eq!(all[retry].bytes, all[retry - 1].bytes);
        assert_ne!(all[retry].name, all[retry - 1].name);
    }
}
