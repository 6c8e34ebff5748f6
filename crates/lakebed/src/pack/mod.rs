//! Raw day packs: what was fetched, in one `.tar.zst` that any tar reads and that gives one document by one ranged read.
