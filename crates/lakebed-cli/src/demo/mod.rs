//! Two demos: five days of a site that runs here, from its pages to tables (`live`); and 60 days of three believable
//! sources whose files somebody delivers, stored by the same calls as the commands use.
//!
//! ```text
//! topics, rentals, shop  (what a site shows on a day: pure functions of the day)
//!    -> delivery         (the files a crawler hands over, with everything that goes wrong)
//!    -> script, finale   (what an owner does with them, told step by step)
//! ```
//! DEM-1: the same day gives the same bytes on every machine: own random numbers, no clock.
//! What does not belong here: any short cut around the library; a demo that cheats shows nothing.

mod delivery;
mod finale;
mod live;
mod random;
mod rentals;
mod schemas;
mod script;
mod shop;
mod stage;
mod topics;

pub(crate) use script::run;
