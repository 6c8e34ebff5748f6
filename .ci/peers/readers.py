"""Five readers that know nothing of Lakebed, each reading a dataset's folder its own way.

A reader gives, for every partition of the folder, a `Partition`: rows and, per column, what any
engine can compute. Values are brought to one form (`normal`), so that two readers can be compared:
integers and decimals exactly, instants as microseconds since the epoch, dates as text, floats over
their finite values, texts by their smallest and largest in byte order and by their bytes in all.

The glob is the one from the documentation: `<dataset>/dt=*/schema_version=*/*.parquet`.
"""

import dataclasses
import datetime
import decimal
import glob
import os
from typing import Any

decimal.getcontext().prec = 80
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
PATTERN = "dt=*/schema_version=*/*.parquet"


@dataclasses.dataclass
class Column:
    """What was measured of one column; `None` = this reader cannot say."""

    nulls: int | None = None
    low: Any = None
    high: Any = None
    total: Any = None


@dataclasses.dataclass
class Partition:
    rows: int
    columns: dict[str, Column]


Key = tuple[str, int]
Measured = dict[Key, Partition]


def kind_of(arrow_type: Any) -> str:
    """The class of a column, which decides what is compared."""
    import pyarrow.types as t

    if t.is_integer(arrow_type):
        return "int"
    if t.is_floating(arrow_type):
        return "float"
    if t.is_decimal(arrow_type):
        return "decimal"
    if t.is_boolean(arrow_type):
        return "bool"
    if t.is_timestamp(arrow_type):
        return "timestamp"
    if t.is_date(arrow_type):
        return "date"
    if t.is_string(arrow_type) or t.is_large_string(arrow_type):
        return "text"
    return "other"


ORDERED = {"int", "float", "decimal", "timestamp", "date", "text"}
# Of a text, its bytes are summed.
SUMMED = {"int", "float", "decimal", "bool", "text"}


def normal(kind: str, value: Any) -> Any:
    """One form for what the readers return."""
    if value is None:
        return None
    if kind in ("int", "bool", "octets"):
        return int(value)
    if kind == "float":
        return float(value)
    if kind == "decimal":
        return decimal.Decimal(str(value))
    if kind == "timestamp":
        if isinstance(value, datetime.datetime):
            if value.tzinfo is None:
                value = value.replace(tzinfo=datetime.timezone.utc)
            return (value - EPOCH) // datetime.timedelta(microseconds=1)
        return int(value)
    return str(value)


def schemas(root: str) -> dict[Key, dict[str, str]]:
    """Column kinds of every partition, from the footers."""
    import pyarrow.parquet as pq

    found: dict[Key, dict[str, str]] = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(root), PATTERN))):
        kinds = {f.name: kind_of(f.type) for f in pq.read_schema(path)}
        known = found.setdefault(key_of(path), kinds)
        if known != kinds:
            raise SystemExit(f"{path}: its columns are not those of its partition")
    return found


def key_of(path: str) -> Key:
    """The partition of a file, from its path."""
    dt, version = path.split(os.sep)[-3:-1]
    return dt.removeprefix("dt="), int(version.removeprefix("schema_version="))


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def from_row(row: tuple, kinds: dict[str, str]) -> Partition:
    """A partition from one flat row: rows, then nulls, low, high, total of each column."""
    values = iter(row)
    partition = Partition(int(next(values)), {})
    for name, kind in kinds.items():
        nulls, low, high, total = (next(values) for _ in range(4))
        partition.columns[name] = Column(
            None if nulls is None else int(nulls),
            normal(kind, low), normal(kind, high), normal("octets" if kind == "text" else kind, total))
    return partition


def sql_items(name: str, kind: str) -> list[str]:
    """Nulls, low, high, total in SQL that DuckDB and DataFusion both know."""
    column = quoted(name)
    items = [f"count(*) - count({column})"]
    # Equal to nothing where the value is NaN or infinite.
    finite = f" FILTER (WHERE {column} - {column} = 0)" if kind == "float" else ""
    for bound in ("min", "max"):
        value = f"{bound}({column}){finite}"
        if kind == "timestamp":
            value = f"CAST({micros(value)} AS VARCHAR)"
        elif kind in ("date", "decimal", "text", "int"):
            value = f"CAST({value} AS VARCHAR)"
        items.append(value if kind in ORDERED else "NULL")
    if kind == "int":
        items.append(f"CAST(sum(CAST({column} AS DECIMAL(38,0))) AS VARCHAR)")
    elif kind == "decimal":
        items.append(f"CAST(sum({column}) AS VARCHAR)")
    elif kind == "float":
        items.append(f"sum({column}){finite}")
    elif kind == "bool":
        items.append(f"sum(CASE WHEN {column} THEN 1 WHEN {column} IS NOT NULL THEN 0 END)")
    elif kind == "text":
        items.append(f"CAST(sum({octets(column)}) AS VARCHAR)")
    else:
        items.append("NULL")
    return items


def micros(value: str) -> str:
    """DuckDB's spelling; check_readers.py puts DataFusion's in its place."""
    return f"EPOCH_US({value})"


def octets(column: str) -> str:
    """DuckDB's spelling; DataFusion's is `octet_length`."""
    return f"strlen({column})"


class Reader:
    """Reads a dataset's folder."""

    name = ""

    def measure(self, root: str, parts: dict[Key, dict[str, str]]) -> Measured:
        raise NotImplementedError

    def texts(self, root: str, column: str) -> list[str | None]:
        """Every value of a column as text, over all partitions."""
        raise NotImplementedError


def by_version(parts: dict[Key, dict[str, str]]) -> dict[int, dict[str, str]]:
    return {version: kinds for (_, version), kinds in sorted(parts.items())}


class DuckDb(Reader):
    name = "duckdb"

    def __init__(self) -> None:
        import duckdb
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")

    @staticmethod
    def source(root: str) -> str:
        pattern = os.path.join(root, PATTERN).replace("'", "''")
        return (f"read_parquet('{pattern}', hive_partitioning = true, union_by_name = true, "
                "hive_types = {'dt': VARCHAR, 'schema_version': INTEGER})")

    def measure(self, root, parts):
        found: Measured = {}
        for version, kinds in by_version(parts).items():
            items = [item for name, kind in kinds.items() for item in sql_items(name, kind)]
            query = (f"SELECT dt, count(*), {', '.join(items)} FROM {self.source(root)} "
                     f"WHERE schema_version = {version} GROUP BY dt")
            for dt, *row in self.connection.execute(query).fetchall():
                found[dt, version] = from_row(tuple(row), kinds)
        return found

    def texts(self, root, column):
        query = f"SELECT CAST({quoted(column)} AS VARCHAR) FROM {self.source(root)}"
        return [row[0] for row in self.connection.execute(query).fetchall()]


class Polars(Reader):
    name = "polars"

    @staticmethod
    def scan(root: str, version: str) -> Any:
        import polars as pl
        pattern = os.path.join(root, f"dt=*/schema_version={version}/*.parquet")
        return pl.scan_parquet(pattern, hive_partitioning=True, glob=True,
                               hive_schema={"dt": pl.String, "schema_version": pl.Int64})

    def measure(self, root, parts):
        import polars as pl
        found: Measured = {}
        for version, kinds in by_version(parts).items():
            items = [pl.len().cast(pl.Int64).alias("rows")]
            for i, (name, kind) in enumerate(kinds.items()):
                items += [e.alias(f"{i}.{j}") for j, e in enumerate(self.items(name, kind))]
            table = self.scan(root, str(version)).group_by("dt").agg(items).collect()
            for dt, *row in table.rows():
                found[dt, version] = from_row(tuple(row), kinds)
        return found

    @staticmethod
    def items(name: str, kind: str) -> list:
        import polars as pl
        column, none = pl.col(name), pl.lit(None, dtype=pl.Int64)
        nulls = column.null_count().cast(pl.Int64)
        if kind == "float":
            column = column.filter(column.is_finite())
        elif kind == "timestamp":
            column = column.dt.epoch("us")
        elif kind == "date":
            column = column.cast(pl.String)
        low, high = (column.min(), column.max()) if kind in ORDERED else (none, none)
        if kind == "int":
            total = column.cast(pl.Int128).sum()
        elif kind == "text":
            total = column.str.len_bytes().cast(pl.Int64).sum()
        elif kind in SUMMED:
            total = column.sum()
        else:
            total = none
        if kind in SUMMED:
            # The sum of nothing is NULL in SQL and 0 here.
            total = pl.when(column.count() > 0).then(total)
        return [nulls, low, high, total]

    def texts(self, root, column):
        import polars as pl
        found: list[str | None] = []
        versions = {key_of(path)[1] for path in glob.glob(os.path.join(glob.escape(root), PATTERN))}
        for version in sorted(versions):
            table = self.scan(root, str(version)).select(pl.col(column).cast(pl.String)).collect()
            found += table.to_series().to_list()
        return found


def arrow_partition(table: Any, kinds: dict[str, str]) -> Partition:
    """Measures one Arrow table with Arrow's own functions."""
    import pyarrow as pa
    import pyarrow.compute as pc

    row: list[Any] = [table.num_rows]
    for name, kind in kinds.items():
        column = table.column(name)
        row.append(column.null_count)
        if kind == "float":
            column = column.filter(pc.is_finite(column))
        elif kind == "timestamp":
            column = column.cast(pa.int64())
        bounds = pc.min_max(column).as_py() if kind in ORDERED else {"min": None, "max": None}
        row += [bounds["min"], bounds["max"]]
        if kind == "int":
            column = column.cast(pa.decimal128(38, 0))
        elif kind == "decimal":
            column = column.cast(pa.decimal256(76, column.type.scale))
        elif kind == "text":
            column = pc.binary_length(column)
        row.append(pc.sum(column).as_py() if kind in SUMMED else None)
    return from_row(tuple(row), kinds)


class PyArrow(Reader):
    name = "pyarrow"

    @staticmethod
    def dataset(root: str) -> Any:
        import pyarrow as pa
        import pyarrow.dataset as ds
        keys = pa.schema([("dt", pa.string()), ("schema_version", pa.int32())])
        hive = ds.partitioning(keys, flavor="hive")
        first = ds.dataset(root, format="parquet", partitioning=hive)
        columns = [f.physical_schema.remove_metadata() for f in first.get_fragments()]
        whole = pa.unify_schemas([*columns, keys]) if columns else keys
        return ds.dataset(root, schema=whole, format="parquet", partitioning=hive)

    def measure(self, root, parts):
        import pyarrow.dataset as ds
        dataset = self.dataset(root)
        found: Measured = {}
        for (dt, version), kinds in parts.items():
            chosen = (ds.field("dt") == dt) & (ds.field("schema_version") == version)
            found[dt, version] = arrow_partition(dataset.to_table(filter=chosen), kinds)
        return found

    def texts(self, root, column):
        table = self.dataset(root).to_table(columns=[column])
        return [None if v is None else str(v) for v in table.column(0).to_pylist()]


class Pandas(Reader):
    name = "pandas"

    @staticmethod
    def read(folder: str) -> Any:
        import pandas as pd
        return pd.read_parquet(folder, engine="pyarrow", dtype_backend="pyarrow", partitioning=None)

    def measure(self, root, parts):
        found: Measured = {}
        for (dt, version), kinds in parts.items():
            frame = self.read(os.path.join(root, f"dt={dt}", f"schema_version={version}"))
            row: list[Any] = [len(frame)]
            for name, kind in kinds.items():
                row += self.items(frame[name], kind)
            found[dt, version] = from_row(tuple(row), kinds)
        return found

    @staticmethod
    def items(column: Any, kind: str) -> list:
        import math
        import pandas as pd
        nulls = int(column.isna().sum())
        if kind == "other":
            return [nulls, None, None, None]
        values = [v for v in column.tolist() if not pd.isna(v)]
        if kind == "float":
            # pandas takes NaN for missing where it may: count nulls by the Arrow mask instead.
            nulls = int(column.array._pa_array.null_count)
            values = [v for v in values if math.isfinite(v)]
        if kind == "timestamp":
            values = [normal(kind, v.to_pydatetime()) for v in values]
        low, high = (min(values), max(values)) if values and kind in ORDERED else (None, None)
        if kind == "text":
            values = [len(v.encode("utf-8")) for v in values]
        total = sum(values) if values and kind in SUMMED else None
        return [nulls, low, high, total]

    def texts(self, root, column):
        found: list[str | None] = []
        for folder in sorted(glob.glob(os.path.join(glob.escape(root), os.path.dirname(PATTERN)))):
            if not glob.glob(os.path.join(glob.escape(folder), "*.parquet")):
                continue
            frame = self.read(folder)
            found += [None if v is None or str(v) == "<NA>" else str(v) for v in frame[column].tolist()]
        return found


class ClickHouse(Reader):
    name = "clickhouse"
    settings = ("SETTINGS use_hive_partitioning = 1, schema_inference_mode = 'union', "
                "session_timezone = 'UTC', output_format_json_quote_64bit_integers = 1, "
                "output_format_json_quote_decimals = 1")

    def rows(self, query: str) -> list[list]:
        import json
        import chdb
        answer = chdb.query(f"{query} {self.settings}", "JSONCompactEachRow")
        text = answer.bytes().decode("utf-8") if answer.size() else ""
        return [json.loads(line) for line in text.splitlines()]

    @staticmethod
    def source(root: str, version: str) -> str:
        pattern = os.path.join(root, f"dt=*/schema_version={version}/*.parquet")
        return f"file('{pattern}', Parquet)"

    def measure(self, root, parts):
        found: Measured = {}
        for version, kinds in by_version(parts).items():
            items = [item for name, kind in kinds.items() for item in self.items(name, kind)]
            query = (f"SELECT toString(dt), count(), {', '.join(items)} "
                     f"FROM {self.source(root, str(version))} GROUP BY dt")
            for dt, *row in self.rows(query):
                found[dt, version] = from_row(tuple(row), kinds)
        return found

    @staticmethod
    def items(name: str, kind: str) -> list[str]:
        column = "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
        if kind == "other":
            # Lists, maps and structs have no NULL of their own here.
            return ["NULL"] * 4
        items = [f"countIf({column} IS NULL)"]
        for bound in ("min", "max"):
            if kind == "float":
                items.append(f"{bound}OrNullIf({column}, isFinite({column}))")
            elif kind == "timestamp":
                items.append(f"toUnixTimestamp64Micro({bound}({column}))")
            else:
                items.append(f"toString({bound}({column}))" if kind in ORDERED else "NULL")
        if kind == "int":
            items.append(f"toString(sumOrNull(toInt128({column})))")
        elif kind == "decimal":
            items.append(f"toString(sumOrNull({column}))")
        elif kind == "float":
            items.append(f"sumOrNullIf({column}, isFinite({column}))")
        elif kind == "bool":
            items.append(f"toString(sumOrNull(toInt64({column})))")
        elif kind == "text":
            items.append(f"toString(sumOrNull(length({column})))")
        else:
            items.append("NULL")
        return items

    def texts(self, root, column):
        quoted_name = "`" + column.replace("`", "\\`") + "`"
        return [row[0] for row in self.rows(f"SELECT toString({quoted_name}) FROM {self.source(root, '*')}")]


READERS: list[type[Reader]] = [DuckDb, Polars, PyArrow, Pandas, ClickHouse]
