-- Line 3: the ids, names and kinds of a file's columns are a shape, which files share; a row of statistics holds
-- numbers and bounds alone. `column_stats` shows what it showed.

-- A JSON list, a column a line, by field id: [field_id, name, kind of its bounds]. `seq` is local to this database.
CREATE TABLE stats_shape (
    seq     INTEGER NOT NULL PRIMARY KEY,
    columns TEXT    NOT NULL UNIQUE
) STRICT;

-- A JSON list, a line for each column of the shape: [null_count, min, max, exact], where exact is 1 if the smallest
-- value is one of the column, plus 2 if the largest is. Bounds are texts by the kind in the shape: int, float
-- (shortest text that reads back as the same bits), decimal (the unscaled value), text.
CREATE TABLE file_stats_3 (
    file_seq  INTEGER NOT NULL PRIMARY KEY REFERENCES partition_file (seq),
    shape_seq INTEGER NOT NULL REFERENCES stats_shape (seq),
    bounds    TEXT    NOT NULL
) STRICT;

INSERT OR IGNORE INTO stats_shape (columns)
SELECT (SELECT '[' || char(10) || group_concat(json_array(c.value -> 0, c.value -> 1, c.value -> 3), ',' || char(10))
               || char(10) || ']'
        FROM json_each(s.columns) c)
FROM file_stats s;
INSERT INTO file_stats_3
SELECT s.file_seq,
       (SELECT h.seq FROM stats_shape h
        WHERE h.columns = (SELECT '[' || char(10)
                                  || group_concat(json_array(c.value -> 0, c.value -> 1, c.value -> 3), ',' || char(10))
                                  || char(10) || ']'
                           FROM json_each(s.columns) c)),
       (SELECT '[' || char(10)
               || group_concat(json_array(c.value -> 2, c.value -> 4, c.value -> 5,
                                          (c.value ->> 6) + 2 * (c.value ->> 7)), ',' || char(10))
               || char(10) || ']'
        FROM json_each(s.columns) c)
FROM file_stats s;

DROP VIEW column_stats;
DROP TABLE file_stats;
ALTER TABLE file_stats_3 RENAME TO file_stats;

CREATE VIEW column_stats AS
SELECT f.id                               AS file_id,
       h.value ->> 0                      AS field_id,
       h.value ->> 1                      AS name,
       b.value ->> 0                      AS null_count,
       CASE WHEN b.value ->> 1 IS NOT NULL OR b.value ->> 2 IS NOT NULL THEN h.value ->> 2 END AS value_kind,
       b.value ->> 1                      AS min_value,
       b.value ->> 2                      AS max_value,
       (b.value ->> 3) & 1                AS min_exact,
       (b.value ->> 3) >> 1               AS max_exact
FROM file_stats s
JOIN partition_file f ON f.seq = s.file_seq
JOIN stats_shape t ON t.seq = s.shape_seq
JOIN json_each(t.columns) h
JOIN json_each(s.bounds) b ON b.key = h.key;
