//! The live demo: five days of a site that runs on this machine, from its pages to tables.
//!
//! ```text
//! site     the test site as a process of its own, steered from day to day
//! teller   the commands that are told are the ones that run, as processes; what they print is shown
//! story    what happens, in order; it tells nothing that it has not checked
//! summary  the page that is left
//! ```
//! DEM-2: every command that the demo tells is run as it is told, and a command that ends otherwise than the story says ends
//! the demo.

mod site;
mod story;
mod summary;
mod teller;

pub(crate) use story::tell;
