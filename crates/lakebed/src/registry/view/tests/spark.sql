-- clean/shop for Spark: schema versions 1, 2. No rows yet: 3. Print it again when another one gets its first rows.
CREATE OR REPLACE VIEW `crawl`.`shop``s` AS
SELECT
  `source`,
  CAST(regexp_extract(_metadata.file_path, '/dt=([0-9-]+)/schema_version=[0-9]+/[^/]+$', 1) AS DATE) AS `dt`,
  CAST(1 AS BIGINT) AS `schema_version`,
  `標題` AS `題名`,
  CAST(`price` AS DECIMAL(12,4)) AS `price`,
  CASE WHEN `who` IS NOT NULL THEN named_struct('nick', `who`.`name`, 'age', `who`.`age`, 'mail', CAST(NULL AS STRING)) END AS `who`,
  transform(`tags`, _e1 -> CASE WHEN _e1 IS NOT NULL THEN named_struct('b', _e1.`a`) END) AS `tags`,
  transform_values(`props`, (_k1, _v1) -> CASE WHEN _v1 IS NOT NULL THEN named_struct('b', _v1.`a`, 'n', CAST(NULL AS BIGINT)) END) AS `props`,
  `same`,
  CAST(NULL AS STRING) AS `or"der``'s`,
  CAST(NULL AS TIMESTAMP) AS `at`,
  CAST(NULL AS DATE) AS `day`,
  CAST(NULL AS BOOLEAN) AS `ok`,
  CAST(NULL AS DOUBLE) AS `select`,
  CAST(NULL AS BINARY) AS `raw`,
  CAST(NULL AS MAP<STRING, ARRAY<DECIMAL(8,1)>>) AS `later`,
  `gone`,
  `_extra`
FROM parquet.`s3a://bucket/lake/clean/shop/dt=*/schema_version=1/*.parquet`
UNION ALL
SELECT
  `source`,
  CAST(regexp_extract(_metadata.file_path, '/dt=([0-9-]+)/schema_version=[0-9]+/[^/]+$', 1) AS DATE) AS `dt`,
  CAST(2 AS BIGINT) AS `schema_version`,
  `題名`,
  `price`,
  `who`,
  `tags`,
  `props`,
  `same`,
  `or"der``'s`,
  `at`,
  `day`,
  `ok`,
  `select`,
  `raw`,
  CAST(NULL AS MAP<STRING, ARRAY<DECIMAL(8,1)>>) AS `later`,
  CAST(NULL AS BIGINT) AS `gone`,
  `_extra`
FROM parquet.`s3a://bucket/lake/clean/shop/dt=*/schema_version=2/*.parquet`;
