//! What all connections share: the market, the orders of the day, and what is remembered.

use std::sync::{Arc, Mutex, PoisonError};

use lakebed::time::BusinessDate;

use crate::demo_site::fault::{FaultMemory, FaultSpec};
use crate::demo_site::journal::Journal;
use crate::demo_site::market::Market;

/// What can be changed while the site runs.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    /// The day of requests that name none.
    pub(crate) date: BusinessDate,
    /// Faults of every request.
    pub(crate) faults: Vec<FaultSpec>,
}

/// The site, shared by all connections.
#[derive(Debug)]
pub(crate) struct Site {
    /// What there is to let.
    pub(crate) market: Market,
    /// Rows of a list page.
    pub(crate) per_page: u32,
    /// What was asked for.
    pub(crate) journal: Arc<Journal>,
    /// What faults remember.
    pub(crate) memory: FaultMemory,
    orders: Mutex<Arc<Orders>>,
}

impl Site {
    /// A site.
    pub(crate) fn new(market: Market, per_page: u32, journal: Journal, orders: Orders) -> Self {
        Self {
            market,
            per_page,
            journal: Arc::new(journal),
            memory: FaultMemory::default(),
            orders: Mutex::new(Arc::new(orders)),
        }
    }

    /// What is ordered at present.
    pub(crate) fn orders(&self) -> Arc<Orders> {
        self.orders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Changes what is ordered.
    pub(crate) fn change(&self, change: impl FnOnce(Orders) -> Orders) -> Arc<Orders> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        *orders = Arc::new(change(Orders::clone(&orders)));
        orders.clone()
    }
}
