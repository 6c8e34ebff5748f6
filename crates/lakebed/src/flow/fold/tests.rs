//! Days folded in a lake: rows come in by ingest, and what comes out is read from the files.
