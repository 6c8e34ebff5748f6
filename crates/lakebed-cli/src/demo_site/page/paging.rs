//! Pages of a list: which rows stand on which, and what is announced.

use std::ops::Range;

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Paging {
    /// The page that was asked for, from 1.
    pub(crate) page: u32,
    /// Announced number of pages, at least 1.
    pub(crate) pages: u32,
    /// Announced number of listings.
    pub(crate) total: u64,
    /// Rows of this page among all.
    pub(crate) rows: Range<usize>,
    /// Whether a next page is linked.
    pub(crate) has_next: bool,
}

/// What deviates from an honest list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PagingFaults {
    /// Past the last page the list begins anew.
    pub(crate) endless: bool,
    /// Past the last page stands an empty one.
    pub(crate) beyond: bool,
    /// Announced numbers in percent of the truth.
    pub(crate) totals: Option<u32>,
}

/// The page of a list of `count` rows; `None` = there is no such page.
pub(crate) fn paging(
    count: usize,
    per_page: u32,
    page: u32,
    faults: PagingFaults,
) -> Option<Paging> {
    let count_u64 = u64::try_from(count).unwrap_or(u64::MAX);
    let pages_of = |rows: u64| {
        let pages = rows.div_ceil(u64::from(per_page.max(1))).max(1);
        u32::try_from(pages).unwrap_or(u32::MAX)
    };
    let true_pages = pages_of(count_u64);
    let shown = match page {
        0 => return None,
        p if p <= true_pages => Some(p),
        p if faults.endless => Some((p - 1) % true_pages + 1),
        _ if faults.beyond => None,
        _ => return None,
    };
    let per_page = usize::try_from(per_page.max(1)).unwrap_or(1);
    let rows = shown.map_or(count..count, |p| {
        let first = usize::try_from(p - 1).unwrap_or(0) * per_page;
        first.min(count)..(first + per_page).min(count)
    });
    let total = match faults.totals {
        Some(percent) => count_u64 * u64::from(percent) / 100,
        None => count_u64,
    };
    Some(Paging {
        page,
        pages: pages_of(total),
        total,
        rows,
        has_next: faults.endless || page < true_pages,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_stands_on_one_page() {
        for count in [0_usize, 1, 29, 30, 31, 90, 95] {
            let pages = paging(count, 30, 1, PagingFaults::default()).unwrap().pages;
            let mut at = 0;
            for page in 1..=pages {
                let found = paging(count, 30, page, PagingFaults::default()).unwrap();
                assert_eq!(found.rows.start, at);
                assert_eq!(found.has_next, page < pages);
                at = found.rows.end;
            }
            assert_eq!(at, count);
            assert_eq!(paging(count, 30, pages + 1, PagingFaults::default()), None);
            assert_eq!(paging(count, 30, 0, PagingFaults::default()), None);
        }
    }

    #[test]
    fn dishonest_lists_deviate_as_ordered() {
        let faults = |endless, beyond, totals| PagingFaults {
            endless,
            beyond,
            totals,
        };
        let endless = paging(65, 30, 8, faults(true, false, None)).unwrap();
        assert_eq!((endless.rows, endless.has_next), (30..60, true));
        let beyond = paging(65, 30, 4, faults(false, true, None)).unwrap();
        assert!(beyond.rows.is_empty() && !beyond.has_next);
        let fewer = paging(65, 30, 3, faults(false, false, Some(90))).unwrap();
        assert_eq!((fewer.total, fewer.pages, fewer.rows), (58, 2, 60..65));
    }
}
