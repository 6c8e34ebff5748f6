-- clean/shop for ClickHouse: schema versions 1, 2, 3. Print it again when another one is published.
SELECT
  _t.`source` AS `source`,
  _t.`dt` AS `dt`,
  _t.`schema_version` AS `schema_version`,
  _t.`標題` AS `題名`,
  CAST(_t.`price`, 'Nullable(Decimal(12, 4))') AS `price`,
  CAST(tuple(tupleElement(_t.`who`, 'name'), tupleElement(_t.`who`, 'age'), defaultValueOfTypeName('Nullable(String)')), 'Tuple(`nick` Nullable(String), `age` Nullable(Int64), `mail` Nullable(String))') AS `who`,
  arrayMap(_e1 -> CAST(tuple(tupleElement(_e1, 'a')), 'Tuple(`b` Nullable(String))'), _t.`tags`) AS `tags`,
  mapApply((_k1, _v1) -> (_k1, CAST(tuple(tupleElement(_v1, 'a'), defaultValueOfTypeName('Nullable(Int64)')), 'Tuple(`b` Nullable(String), `n` Nullable(Int64))')), _t.`props`) AS `props`,
  _t.`same` AS `same`,
  defaultValueOfTypeName('Nullable(String)') AS `or"der\`'s`,
  defaultValueOfTypeName('Nullable(DateTime64(6, \'UTC\'))') AS `at`,
  defaultValueOfTypeName('Nullable(Date32)') AS `day`,
  defaultValueOfTypeName('Nullable(Bool)') AS `ok`,
  defaultValueOfTypeName('Nullable(Float64)') AS `select`,
  defaultValueOfTypeName('Nullable(String)') AS `raw`,
  defaultValueOfTypeName('Map(String, Array(Nullable(Decimal(8, 1))))') AS `later`,
  _t.`gone` AS `gone`,
  _t.`_extra` AS `_extra`
FROM file('/data/it\'s lake/clean/shop/dt=*/schema_version=1/*.parquet', 'Parquet', '`標題` Nullable(String), `price` Nullable(Decimal(10, 2)), `gone` Nullable(Int64), `who` Tuple(`name` Nullable(String), `age` Nullable(Int64)), `tags` Array(Tuple(`a` Nullable(String))), `props` Map(String, Tuple(`a` Nullable(String))), `same` Array(Tuple(`x` Nullable(Int64))), `source` Nullable(String), `_extra` Nullable(String), `dt` Date32, `schema_version` Int64') AS _t
UNION ALL
SELECT
  _t.`source` AS `source`,
  _t.`dt` AS `dt`,
  _t.`schema_version` AS `schema_version`,
  _t.`題名` AS `題名`,
  _t.`price` AS `price`,
  _t.`who` AS `who`,
  _t.`tags` AS `tags`,
  _t.`props` AS `props`,
  _t.`same` AS `same`,
  _t.`or"der\`'s` AS `or"der\`'s`,
  _t.`at` AS `at`,
  _t.`day` AS `day`,
  _t.`ok` AS `ok`,
  _t.`select` AS `select`,
  _t.`raw` AS `raw`,
  defaultValueOfTypeName('Map(String, Array(Nullable(Decimal(8, 1))))') AS `later`,
  defaultValueOfTypeName('Nullable(Int64)') AS `gone`,
  _t.`_extra` AS `_extra`
FROM file('/data/it\'s lake/clean/shop/dt=*/schema_version=2/*.parquet', 'Parquet', '`題名` Nullable(String), `price` Nullable(Decimal(12, 4)), `who` Tuple(`nick` Nullable(String), `age` Nullable(Int64), `mail` Nullable(String)), `tags` Array(Tuple(`b` Nullable(String))), `props` Map(String, Tuple(`b` Nullable(String), `n` Nullable(Int64))), `same` Array(Tuple(`x` Nullable(Int64))), `or"der\\`\'s` Nullable(String), `at` Nullable(DateTime64(6, \'UTC\')), `day` Nullable(Date32), `ok` Nullable(Bool), `select` Nullable(Float64), `raw` Nullable(String), `source` Nullable(String), `_extra` Nullable(String), `dt` Date32, `schema_version` Int64') AS _t
UNION ALL
SELECT
  _t.`source` AS `source`,
  _t.`dt` AS `dt`,
  _t.`schema_version` AS `schema_version`,
  _t.`題名` AS `題名`,
  _t.`price` AS `price`,
  _t.`who` AS `who`,
  _t.`tags` AS `tags`,
  _t.`props` AS `props`,
  _t.`same` AS `same`,
  _t.`or"der\`'s` AS `or"der\`'s`,
  _t.`at` AS `at`,
  _t.`day` AS `day`,
  _t.`ok` AS `ok`,
  _t.`select` AS `select`,
  _t.`raw` AS `raw`,
  _t.`later` AS `later`,
  defaultValueOfTypeName('Nullable(Int64)') AS `gone`,
  _t.`_extra` AS `_extra`
FROM file('/data/it\'s lake/clean/shop/dt=*/schema_version=3/*.parquet', 'Parquet', '`題名` Nullable(String), `price` Nullable(Decimal(12, 4)), `who` Tuple(`nick` Nullable(String), `age` Nullable(Int64), `mail` Nullable(String)), `tags` Array(Tuple(`b` Nullable(String))), `props` Map(String, Tuple(`b` Nullable(String), `n` Nullable(Int64))), `same` Array(Tuple(`x` Nullable(Int64))), `or"der\\`\'s` Nullable(String), `at` Nullable(DateTime64(6, \'UTC\')), `day` Nullable(Date32), `ok` Nullable(Bool), `select` Nullable(Float64), `raw` Nullable(String), `later` Map(String, Array(Nullable(Decimal(8, 1)))), `source` Nullable(String), `_extra` Nullable(String), `dt` Date32, `schema_version` Int64') AS _t;
