//! The request queue: every request of a run, from pending to done or dead, in a database of its own.
