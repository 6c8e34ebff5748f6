-- clean/shop for Trino: schema versions 1, 2, 3. Print it again when another one is published.
-- Register the table once in a Hive catalog, with hive.timestamp-precision=MICROSECONDS:
-- CREATE TABLE "hive"."crawl"."shop_files" (
--   "題名" VARCHAR,
--   "price" DECIMAL(12,4),
--   "who" ROW("nick" VARCHAR, "age" BIGINT, "mail" VARCHAR, "name" VARCHAR),
--   "tags" ARRAY(ROW("b" VARCHAR, "a" VARCHAR)),
--   "props" MAP(VARCHAR, ROW("b" VARCHAR, "n" BIGINT, "a" VARCHAR)),
--   "same" ARRAY(ROW("x" BIGINT)),
--   "or""der`'s" VARCHAR,
--   "at" TIMESTAMP(6),
--   "day" DATE,
--   "ok" BOOLEAN,
--   "select" DOUBLE,
--   "raw" VARBINARY,
--   "later" MAP(VARCHAR, ARRAY(DECIMAL(8,1))),
--   "source" VARCHAR,
--   "_extra" VARCHAR,
--   "標題" VARCHAR,
--   "gone" BIGINT,
--   "dt" DATE, "schema_version" BIGINT
-- ) WITH (format = 'PARQUET', partitioned_by = ARRAY['dt', 'schema_version'], external_location = 's3://bucket/lake/clean/shop');
-- After every ingest or correction:
-- CALL "hive".system.sync_partition_metadata('crawl', 'shop_files', 'FULL');
-- A new schema version needs the table to be registered anew. Timestamps are in UTC.
CREATE OR REPLACE VIEW "hive"."crawl"."all ""shop""" AS
SELECT
  _t."source" AS "source",
  _t."dt" AS "dt",
  _t."schema_version" AS "schema_version",
  _t."標題" AS "題名",
  _t."price" AS "price",
  CASE WHEN _t."who" IS NOT NULL THEN CAST(ROW(_t."who"."name", _t."who"."age", CAST(NULL AS VARCHAR)) AS ROW("nick" VARCHAR, "age" BIGINT, "mail" VARCHAR)) END AS "who",
  transform(_t."tags", _e1 -> CASE WHEN _e1 IS NOT NULL THEN CAST(ROW(_e1."a") AS ROW("b" VARCHAR)) END) AS "tags",
  transform_values(_t."props", (_k1, _v1) -> CASE WHEN _v1 IS NOT NULL THEN CAST(ROW(_v1."a", CAST(NULL AS BIGINT)) AS ROW("b" VARCHAR, "n" BIGINT)) END) AS "props",
  _t."same" AS "same",
  CAST(NULL AS VARCHAR) AS "or""der`'s",
  CAST(NULL AS TIMESTAMP(6)) AS "at",
  CAST(NULL AS DATE) AS "day",
  CAST(NULL AS BOOLEAN) AS "ok",
  CAST(NULL AS DOUBLE) AS "select",
  CAST(NULL AS VARBINARY) AS "raw",
  CAST(NULL AS MAP(VARCHAR, ARRAY(DECIMAL(8,1)))) AS "later",
  _t."gone" AS "gone",
  _t."_extra" AS "_extra"
FROM "hive"."crawl"."shop_files" AS _t
WHERE _t."schema_version" = 1
UNION ALL
SELECT
  _t."source" AS "source",
  _t."dt" AS "dt",
  _t."schema_version" AS "schema_version",
  _t."題名" AS "題名",
  _t."price" AS "price",
  CASE WHEN _t."who" IS NOT NULL THEN CAST(ROW(_t."who"."nick", _t."who"."age", _t."who"."mail") AS ROW("nick" VARCHAR, "age" BIGINT, "mail" VARCHAR)) END AS "who",
  transform(_t."tags", _e1 -> CASE WHEN _e1 IS NOT NULL THEN CAST(ROW(_e1."b") AS ROW("b" VARCHAR)) END) AS "tags",
  transform_values(_t."props", (_k1, _v1) -> CASE WHEN _v1 IS NOT NULL THEN CAST(ROW(_v1."b", _v1."n") AS ROW("b" VARCHAR, "n" BIGINT)) END) AS "props",
  _t."same" AS "same",
  _t."or""der`'s" AS "or""der`'s",
  _t."at" AS "at",
  _t."day" AS "day",
  _t."ok" AS "ok",
  _t."select" AS "select",
  _t."raw" AS "raw",
  CAST(NULL AS MAP(VARCHAR, ARRAY(DECIMAL(8,1)))) AS "later",
  CAST(NULL AS BIGINT) AS "gone",
  _t."_extra" AS "_extra"
FROM "hive"."crawl"."shop_files" AS _t
WHERE _t."schema_version" = 2
UNION ALL
SELECT
  _t."source" AS "source",
  _t."dt" AS "dt",
  _t."schema_version" AS "schema_version",
  _t."題名" AS "題名",
  _t."price" AS "price",
  CASE WHEN _t."who" IS NOT NULL THEN CAST(ROW(_t."who"."nick", _t."who"."age", _t."who"."mail") AS ROW("nick" VARCHAR, "age" BIGINT, "mail" VARCHAR)) END AS "who",
  transform(_t."tags", _e1 -> CASE WHEN _e1 IS NOT NULL THEN CAST(ROW(_e1."b") AS ROW("b" VARCHAR)) END) AS "tags",
  transform_values(_t."props", (_k1, _v1) -> CASE WHEN _v1 IS NOT NULL THEN CAST(ROW(_v1."b", _v1."n") AS ROW("b" VARCHAR, "n" BIGINT)) END) AS "props",
  _t."same" AS "same",
  _t."or""der`'s" AS "or""der`'s",
  _t."at" AS "at",
  _t."day" AS "day",
  _t."ok" AS "ok",
  _t."select" AS "select",
  _t."raw" AS "raw",
  _t."later" AS "later",
  CAST(NULL AS BIGINT) AS "gone",
  _t."_extra" AS "_extra"
FROM "hive"."crawl"."shop_files" AS _t
WHERE _t."schema_version" = 3;
