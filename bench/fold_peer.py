#!/usr/bin/env python3
"""DuckDB folds a day by SQL: the rules of `bench/fold.py`, from the same files, into a snapshot and its events.

    fold_peer.py make FOLDER ROWS         the rows of two days as Parquet: list-1, list-2, detail-1, detail-2
    fold_peer.py fold SNAPSHOT LIST DETAIL OUT plain|sorted
    fold_peer.py told SNAPSHOT EVENTS     what a snapshot and its events say, as JSON
"""

import json
import pathlib
import sys

import duckdb

MAKE = """
COPY (
    SELECT 'h' || lpad(CAST(i AS VARCHAR), 9, '0') AS id,
           'Apartment ' || (i * 7919 % 1000003) || ' near the river, sunny, quiet' AS title,
           ['taipei', 'kaohsiung', 'taichung', 'tainan'][i % 4 + 1] AS city,
           CAST(8000 + i % 40000 + (CASE WHEN {day} = 2 AND i % 20 = 0 THEN 500 ELSE 0 END) AS DECIMAL(12, 2)) AS price,
           8 + (i % 500) / 10.0 AS area, CAST(i % 5 AS BIGINT) AS rooms,
           'https://rent.example/' || i || '/' || (i * 104729 % 999983) AS url,
           TIMESTAMPTZ '2026-10-0{day} 01:00:00+00' + to_microseconds(i * 60000) AS seen_at
    FROM range({rows} + {rows} // 50) t(i)
    WHERE CASE WHEN {day} = 1 THEN i < {rows} ELSE i % 100 <> 7 END
    ORDER BY hash(i + {day})
) TO '{folder}/list-{day}.parquet' (COMPRESSION zstd);
COPY (
    SELECT 'h' || lpad(CAST(i AS VARCHAR), 9, '0') AS id,
           CASE WHEN i % 3 = 0 THEN NULL ELSE 'No. ' || i % 300 || ', Section 2, Example Road' END AS address,
           CASE WHEN i % 100 = 7 THEN 404 ELSE 200 END AS http_status,
           TIMESTAMPTZ '2026-10-0{day} 05:00:00+00' + to_microseconds(i * 60000) AS seen_at
    FROM range({rows}) t(i) WHERE i % 10 = 8 - {day} OR i % 100 = 7
    ORDER BY hash(i + {day})
) TO '{folder}/detail-{day}.parquet' (COMPRESSION zstd);
"""

# A row an object: the rules of the fold, one column each.
FOLD = """
CREATE TEMP TABLE folded AS
WITH old AS (SELECT * FROM '{snapshot}'),
     list AS (SELECT id, arg_max(title, seen_at) FILTER (title IS NOT NULL) AS title,
                     arg_max(city, seen_at) FILTER (city IS NOT NULL) AS city,
                     arg_max(price, seen_at) FILTER (price IS NOT NULL) AS price,
                     arg_max(area, seen_at) FILTER (area IS NOT NULL) AS area,
                     arg_max(rooms, seen_at) FILTER (rooms IS NOT NULL) AS rooms,
                     arg_max(url, seen_at) FILTER (url IS NOT NULL) AS url,
                     arg_min(price, seen_at) AS first_price, count(*) AS rows, max(seen_at) AS seen_at,
                     left(arg_max(md5(concat_ws('|', price, title)), seen_at), 16) AS print
              FROM '{list}' GROUP BY id),
     detail AS (SELECT id, arg_max(address, seen_at) FILTER (address IS NOT NULL AND http_status <> 404) AS address,
                       count(*) FILTER (http_status <> 404) AS rows, bool_or(http_status = 404) AS gone, max(seen_at) AS seen_at
                FROM '{detail}' GROUP BY id),
     joined AS (SELECT coalesce(o.id, l.id, d.id) AS id, o, l, d FROM old o FULL JOIN list l ON l.id = o.id
                FULL JOIN detail d ON d.id = coalesce(o.id, l.id))
SELECT id, coalesce(l.title, o.title) AS title, coalesce(l.city, o.city) AS city, coalesce(l.price, o.price) AS price,
       coalesce(l.area, o.area) AS area, coalesce(l.rooms, o.rooms) AS rooms, coalesce(l.url, o.url) AS url,
       coalesce(d.address, o.address) AS address,
       CASE WHEN o.id IS NULL THEN l.first_price ELSE o.first_price END AS first_price,
       coalesce(o.sightings, 0) + coalesce(l.rows, 0) AS sightings,
       CASE WHEN l.id IS NOT NULL THEN 0 ELSE o.days_absent + 1 END AS days_absent,
       coalesce(o.first_seen, CASE WHEN l.id IS NOT NULL OR d.rows > 0 THEN DATE '2026-10-02' END) AS first_seen,
       CASE WHEN l.id IS NOT NULL OR d.rows > 0 THEN DATE '2026-10-02' ELSE o.last_seen END AS last_seen,
       CASE WHEN d.rows > 0 THEN DATE '2026-10-02' ELSE o.detailed END AS detailed,
       coalesce(l.print, o.print) AS print,
       CASE WHEN d.rows > 0 THEN coalesce(l.print, o.print) ELSE o.print_at_detail END AS print_at_detail,
       CASE WHEN l.id IS NOT NULL THEN 'open' WHEN d.gone THEN 'closed' ELSE coalesce(o.status, 'open') END AS status,
       o.id IS NULL AS is_new, o.days_absent AS absent_before, o.price AS old_price, o.title AS old_title, o.status AS old_status,
       greatest(l.seen_at, d.seen_at) AS seen_at
FROM joined;
COPY (SELECT id, title, city, price, area, rooms, url, address, first_price, sightings, days_absent, first_seen, last_seen,
             detailed, print, print_at_detail, status, 'rent' AS source FROM folded {order})
TO '{out}/snapshot.parquet' (COMPRESSION zstd);
COPY (
    SELECT id, 'appeared' AS event, NULL AS field, NULL AS old, NULL AS new, seen_at FROM folded WHERE is_new
    UNION ALL SELECT id, 'vanished', NULL, NULL, NULL, seen_at FROM folded WHERE absent_before = 0 AND days_absent > 0
    UNION ALL SELECT id, 'returned', NULL, NULL, NULL, seen_at FROM folded WHERE absent_before > 0 AND days_absent = 0
    UNION ALL SELECT id, 'changed', 'price', CAST(old_price AS VARCHAR), CAST(price AS VARCHAR), seen_at FROM folded
              WHERE NOT is_new AND old_price IS DISTINCT FROM price
    UNION ALL SELECT id, 'changed', 'title', to_json(old_title), to_json(title), seen_at FROM folded
              WHERE NOT is_new AND old_title IS DISTINCT FROM title
    UNION ALL SELECT id, 'changed', 'status', to_json(old_status), to_json(status), seen_at FROM folded
              WHERE NOT is_new AND old_status IS DISTINCT FROM status
    {order}
) TO '{out}/events.parquet' (COMPRESSION zstd);
"""

TOLD = """
SELECT json_object('keys', count(*), 'price', sum(price), 'first_price', sum(first_price), 'sightings', sum(sightings), 'absent', sum(days_absent),
    'address', count(address), 'detailed', count(detailed), 'seen', count(*) FILTER (last_seen = DATE '2026-10-02'),
    'new', count(*) FILTER (first_seen = DATE '2026-10-02'), 'copied', count(print_at_detail),
    'closed', count(*) FILTER (status = 'closed'), 'area', round(sum(area)), 'titles', bit_xor(hash(id || title)), 'urls', bit_xor(hash(id || url))) FROM '{snapshot}'
UNION ALL SELECT json_object('events', json_group_object(event || coalesce(' ' || field, ''), n)) FROM
    (SELECT event, field, count(*) AS n FROM '{events}' GROUP BY ALL ORDER BY ALL)
"""


def main() -> None:
    con = duckdb.connect()
    con.execute("SET threads = 2; SET TimeZone = 'UTC'; SET enable_progress_bar = false; SET preserve_insertion_order = false")
    match sys.argv[1:]:
        case ["make", folder, rows]:
            for day in (1, 2):
                con.execute(MAKE.format(day=day, folder=folder, rows=rows))
        case ["fold", snapshot, listed, detail, out, kind]:
            pathlib.Path(out).mkdir(parents=True, exist_ok=True)
            order = "ORDER BY id" if kind == "sorted" else ""
            con.execute(FOLD.format(snapshot=snapshot, list=listed, detail=detail, out=out, order=order))
        case ["told", snapshot, events]:
            rows = con.execute(TOLD.format(snapshot=snapshot, events=events)).fetchall()
            print(json.dumps([json.loads(row[0]) for row in rows]))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
