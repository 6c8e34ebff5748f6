//! The catalog in a SQLite file, which several processes may use at once.
//!
//! | file | what it does |
//! | --- | --- |
//! | `open` | opens the file, refuses foreign ones, runs the migrations |
//! | `damaged` | sets a damaged file aside for a rebuild |
//! | `apply` | applies records in one immediate transaction (CAT-2): `load`, `batch` (the fold), `write` |
//! | `read` | filtered reads, each one indexed query |
//! | `meta` | the trait: the bound lake, positions, schemas, sources, reads by day, clearing |
//! | `dump` | the canonical dump |
//! | `row` | between SQL values and row types; errors of the database |
//!
//! Journal mode WAL with `synchronous=NORMAL`: a power failure leaves a sound catalog that may lack its
//! last transactions. That is no loss: the log is durable before the catalog hears of a record, and a
//! catalog that is behind is brought up by the next sync. Readers never wait for a writer. The file
//! must lie on a local disk, never on NFS.

mod apply;
mod batch;
mod damaged;
mod dump;
mod load;
mod meta;
mod open;
mod read;
mod row;
mod write;

pub use open::SqliteCatalog;
