-- Line 2: a file is found by the number of its partition, its path follows from the partition's folder, and
-- one row holds the statistics of all its columns. `data_file` and `column_stats` are views now and show what
-- the tables of line 1 held; programs of line 1 write to those tables and are refused.

-- `seq` is local to this database, as that of a file: it keeps what refers to it narrow.
CREATE TABLE partition_info_2 (
    seq                 INTEGER NOT NULL PRIMARY KEY,
    id                  TEXT    NOT NULL UNIQUE,
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
INSERT INTO partition_info_2
SELECT rowid, id, layer, source, dataset, dt, schema_version, revision, base_path, file_count, row_count,
       byte_size, file_format, created_at, updated_at, is_active, state, is_complete, checksum, provenance,
       parent_partition_id, log_position
FROM dataset_partition_info;

CREATE TABLE partition_file (
    seq           INTEGER NOT NULL PRIMARY KEY,
    id            TEXT    NOT NULL,
    partition_seq INTEGER NOT NULL REFERENCES dataset_partition_info (seq),
    name          TEXT    NOT NULL,
    format        TEXT    NOT NULL,
    row_count     INTEGER NOT NULL,
    byte_size     INTEGER NOT NULL,
    blake3        TEXT    NOT NULL,
    provenance    TEXT    NOT NULL,
    bounds        TEXT    NOT NULL, -- a JSON object
    attempt       TEXT,
    "commit"      TEXT    NOT NULL,
    log_position  INTEGER NOT NULL
) STRICT;
INSERT INTO partition_file
SELECT f.seq, f.id, p.seq, f.name, f.format, f.row_count, f.byte_size, f.blake3, f.provenance, f.bounds,
       f.attempt, f."commit", f.log_position
FROM data_file f JOIN partition_info_2 p ON p.id = f.partition_id
ORDER BY f.seq;

-- A JSON list, one column a line: [field_id, name, null_count, value_kind, min_value, max_value, min_exact,
-- max_exact], by field id. Bounds are texts by `value_kind`: int, float (shortest text that reads back as the
-- same bits), decimal (the unscaled value), text.
CREATE TABLE file_stats (
    file_seq INTEGER NOT NULL PRIMARY KEY REFERENCES partition_file (seq),
    columns  TEXT    NOT NULL
) STRICT;
INSERT INTO file_stats
SELECT file_seq, '[' || char(10) || group_concat(line, ',' || char(10)) || char(10) || ']'
FROM (SELECT file_seq, json_array(field_id, name, null_count, value_kind, min_value, max_value, min_exact,
                                  max_exact) AS line
      FROM column_stats ORDER BY file_seq, field_id)
GROUP BY file_seq;

DROP VIEW source_day;
DROP TABLE column_stats;
DROP TABLE data_file;
DROP TABLE dataset_partition_info;
ALTER TABLE partition_info_2 RENAME TO dataset_partition_info;
CREATE UNIQUE INDEX partition_file_order ON partition_file (partition_seq, log_position, name);

CREATE VIEW data_file AS
SELECT f.id, p.id AS partition_id, f.name, p.base_path || '/' || f.name AS path, f.format, f.row_count,
       f.byte_size, f.blake3, f.provenance, f.bounds, f.attempt, f."commit", f.log_position
FROM partition_file f JOIN dataset_partition_info p ON p.seq = f.partition_seq;

CREATE VIEW column_stats AS
SELECT f.id                           AS file_id,
       json_extract(c.value, '$[0]')  AS field_id,
       json_extract(c.value, '$[1]')  AS name,
       json_extract(c.value, '$[2]')  AS null_count,
       json_extract(c.value, '$[3]')  AS value_kind,
       json_extract(c.value, '$[4]')  AS min_value,
       json_extract(c.value, '$[5]')  AS max_value,
       json_extract(c.value, '$[6]')  AS min_exact,
       json_extract(c.value, '$[7]')  AS max_exact
FROM file_stats s JOIN partition_file f ON f.seq = s.file_seq, json_each(s.columns) c;

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
