-- The catalog, first shape. Append-only: a later migration adds, it never changes or drops, so that
-- older and newer programs can work on one database. Dates are `YYYY-MM-DD`, instants RFC 3339 in
-- UTC. Everything but `partition_access` is a fold of the logs and can be rebuilt from the lake.

PRAGMA application_id = 1280000579;

CREATE TABLE lake_info (
    one        INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
    lake       TEXT    NOT NULL,
    format     INTEGER NOT NULL,
    time_zone  TEXT    NOT NULL,
    created_at TEXT    NOT NULL
) STRICT;

-- How far each dataset's log is applied.
CREATE TABLE dataset_position (
    layer   TEXT    NOT NULL,
    dataset TEXT    NOT NULL,
    number  INTEGER NOT NULL,
    hash    TEXT    NOT NULL,
    PRIMARY KEY (layer, dataset)
) STRICT, WITHOUT ROWID;

CREATE TABLE source_info (
    source    TEXT NOT NULL PRIMARY KEY,
    title     TEXT,
    class     TEXT NOT NULL,
    old_names TEXT NOT NULL -- a JSON list
) STRICT, WITHOUT ROWID;

-- Every date a log has named, with its completeness, which belongs to (dataset, dt).
CREATE TABLE date_completeness (
    layer        TEXT    NOT NULL,
    dataset      TEXT    NOT NULL,
    dt           TEXT    NOT NULL,
    source       TEXT    NOT NULL,
    is_complete  INTEGER NOT NULL CHECK (is_complete IN (0, 1)),
    log_position INTEGER NOT NULL,
    PRIMARY KEY (layer, dataset, dt)
) STRICT, WITHOUT ROWID;

CREATE TABLE dataset_partition_info (
    id                  TEXT    NOT NULL PRIMARY KEY,
    layer               TEXT    NOT NULL,
    source              TEXT    NOT NULL,
    dataset             TEXT    NOT NULL,
    dt                  TEXT    NOT NULL,
    schema_version      INTEGER NOT NULL,
    revision            INTEGER NOT NULL,
    base_path           TEXT    NOT NULL,
    file_count          INTEGER NOT NULL,
    row_count           INTEGER NOT NULL,
    byte_size           INTEGER NOT NULL,
    file_format         TEXT    NOT NULL,
    created_at          TEXT    NOT NULL,
    updated_at          TEXT    NOT NULL,
    is_active           INTEGER NOT NULL CHECK (is_active IN (0, 1)),
    state               TEXT    NOT NULL,
    is_complete         INTEGER NOT NULL CHECK (is_complete IN (0, 1)),
    checksum            TEXT    NOT NULL,
    provenance          TEXT    NOT NULL,
    parent_partition_id TEXT,
    log_position        INTEGER NOT NULL,
    UNIQUE (layer, dataset, dt, schema_version, revision)
) STRICT;

-- `seq` is local to this database: it keeps `column_stats` narrow and its inserts at the end.
CREATE TABLE data_file (
    seq          INTEGER NOT NULL PRIMARY KEY,
    id           TEXT    NOT NULL,
    partition_id TEXT    NOT NULL REFERENCES dataset_partition_info (id),
    name         TEXT    NOT NULL,
    path         TEXT    NOT NULL,
    format       TEXT    NOT NULL,
    row_count    INTEGER NOT NULL,
    byte_size    INTEGER NOT NULL,
    blake3       TEXT    NOT NULL,
    provenance   TEXT    NOT NULL,
    bounds       TEXT    NOT NULL, -- a JSON object
    attempt      TEXT,
    "commit"     TEXT    NOT NULL,
    log_position INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX data_file_name ON data_file (partition_id, name);
CREATE UNIQUE INDEX data_file_order ON data_file (partition_id, log_position, name);

-- Bounds are texts by `value_kind`: int, float (shortest text that reads back as the same bits),
-- decimal (the unscaled value), text.
CREATE TABLE column_stats (
    file_seq   INTEGER NOT NULL REFERENCES data_file (seq) ON DELETE CASCADE,
    field_id   INTEGER NOT NULL,
    name       TEXT    NOT NULL,
    null_count INTEGER,
    value_kind TEXT,
    min_value  TEXT,
    max_value  TEXT,
    min_exact  INTEGER NOT NULL CHECK (min_exact IN (0, 1)),
    max_exact  INTEGER NOT NULL CHECK (max_exact IN (0, 1)),
    PRIMARY KEY (file_seq, field_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE partition_parent (
    partition_id        TEXT    NOT NULL,
    parent_partition_id TEXT    NOT NULL,
    parent              TEXT    NOT NULL,
    log_position        INTEGER NOT NULL,
    PRIMARY KEY (partition_id, parent_partition_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX partition_parent_child ON partition_parent (parent_partition_id);

CREATE TABLE schema_version_info (
    layer        TEXT    NOT NULL,
    dataset      TEXT    NOT NULL,
    version      INTEGER NOT NULL,
    base         INTEGER,
    note         TEXT,
    published_at TEXT    NOT NULL,
    hash         TEXT    NOT NULL,
    schema       TEXT    NOT NULL, -- the published file as JSON
    PRIMARY KEY (layer, dataset, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE commit_info (
    layer       TEXT    NOT NULL,
    dataset     TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    hash        TEXT    NOT NULL,
    "commit"    TEXT    NOT NULL,
    operation   TEXT    NOT NULL,
    at          TEXT    NOT NULL,
    program     TEXT    NOT NULL,
    user        TEXT,
    run         TEXT,
    note        TEXT,
    files_added INTEGER NOT NULL,
    rows_added  INTEGER NOT NULL,
    rejected    INTEGER NOT NULL,
    dt_min      TEXT,
    dt_max      TEXT,
    PRIMARY KEY (layer, dataset, number)
) STRICT, WITHOUT ROWID;

-- What was done with a partition downstream.
CREATE TABLE partition_mark (
    partition_id TEXT    NOT NULL,
    mark         TEXT    NOT NULL,
    note         TEXT,
    at           TEXT    NOT NULL,
    log_position INTEGER NOT NULL,
    PRIMARY KEY (partition_id, mark)
) STRICT, WITHOUT ROWID;

-- Reads by day: local knowledge, the one table that a rebuild cannot bring back.
CREATE TABLE partition_access (
    partition_id TEXT    NOT NULL,
    day          TEXT    NOT NULL,
    reads        INTEGER NOT NULL,
    PRIMARY KEY (partition_id, day)
) STRICT, WITHOUT ROWID;

-- Per source and day: what readers see, and whether the day is complete.
CREATE VIEW source_day AS
SELECT d.source                       AS source,
       d.layer                        AS layer,
       d.dataset                      AS dataset,
       d.dt                           AS dt,
       COALESCE(SUM(p.row_count), 0)  AS row_count,
       COALESCE(SUM(p.file_count), 0) AS file_count,
       COALESCE(SUM(p.byte_size), 0)  AS byte_size,
       d.is_complete                  AS is_complete
FROM date_completeness d
LEFT JOIN dataset_partition_info p
       ON p.layer = d.layer AND p.dataset = d.dataset AND p.dt = d.dt AND p.is_active = 1
GROUP BY d.layer, d.dataset, d.dt;
