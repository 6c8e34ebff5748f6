-- clean/shop for DuckDB: schema versions 1, 2. No rows yet: 3. Print it again when another one gets its first rows.
SELECT
  "source",
  "dt",
  "schema_version",
  "標題" AS "題名",
  CAST("price" AS DECIMAL(12,4)) AS "price",
  CASE WHEN "who" IS NOT NULL THEN struct_pack("nick" := struct_extract("who", 'name'), "age" := struct_extract("who", 'age'), "mail" := CAST(NULL AS VARCHAR)) END AS "who",
  [CASE WHEN _e1 IS NOT NULL THEN struct_pack("b" := struct_extract(_e1, 'a')) END FOR _e1 IN "tags"] AS "tags",
  map_from_entries([struct_pack(k := struct_extract(_e1, 'key'), v := CASE WHEN struct_extract(_e1, 'value') IS NOT NULL THEN struct_pack("b" := struct_extract(struct_extract(_e1, 'value'), 'a'), "n" := CAST(NULL AS BIGINT)) END) FOR _e1 IN map_entries("props")]) AS "props",
  "same",
  CAST(NULL AS VARCHAR) AS "or""der`'s",
  CAST(NULL AS TIMESTAMP WITH TIME ZONE) AS "at",
  CAST(NULL AS DATE) AS "day",
  CAST(NULL AS BOOLEAN) AS "ok",
  CAST(NULL AS DOUBLE) AS "select",
  CAST(NULL AS BLOB) AS "raw",
  CAST(NULL AS MAP(VARCHAR, DECIMAL(8,1)[])) AS "later",
  "gone",
  "_extra"
FROM read_parquet('/data/it''s lake/clean/shop/dt=*/schema_version=1/*.parquet', hive_partitioning = true, hive_types = {'dt': DATE, 'schema_version': BIGINT})
UNION ALL
SELECT
  "source",
  "dt",
  "schema_version",
  "題名",
  "price",
  "who",
  "tags",
  "props",
  "same",
  "or""der`'s",
  "at",
  "day",
  "ok",
  "select",
  "raw",
  CAST(NULL AS MAP(VARCHAR, DECIMAL(8,1)[])) AS "later",
  CAST(NULL AS BIGINT) AS "gone",
  "_extra"
FROM read_parquet('/data/it''s lake/clean/shop/dt=*/schema_version=2/*.parquet', hive_partitioning = true, hive_types = {'dt': DATE, 'schema_version': BIGINT});
