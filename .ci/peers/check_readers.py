#!/usr/bin/env python3
"""Compare what other readers see in a lake's data folders with what `lakebed sql` says.

    check_readers.py --lakebed target/debug/lakebed --project DIR [--lake DIR] [DATASET...]

For every partition of every dataset: rows, and per column nulls, smallest and largest value, and
sums. Readers: DuckDB, Polars, pyarrow, pandas, ClickHouse (chdb). Every difference is one line.
Exit status: 0 all agree, 1 they differ, 3 nothing could be compared.

    check_readers.py --self-check     a changed file must be seen by every reader
"""

import argparse
import decimal
import glob
import json
import math
import os
import re
import subprocess
import sys
import tempfile

import readers
from readers import Column, Measured, Partition, quoted, sql_items


def datasets_of(lake: str) -> list[str]:
    """Datasets with at least one data file, as `layer/dataset`."""
    found = set()
    for layer in ("clean", "feature"):
        for path in glob.glob(os.path.join(glob.escape(lake), layer, "*", readers.PATTERN)):
            found.add("/".join(path.split(os.sep)[-5:-3]))
    return sorted(found)


def newest_names(lake: str, dataset: str) -> dict[int, dict[str, str]]:
    """For each schema version: name in its files -> name in SQL, which is the newest one of the id."""
    versions = {}
    for path in glob.glob(os.path.join(glob.escape(lake), "_lake/schema", dataset, "v*.json")):
        with open(path, encoding="utf-8") as f:
            schema = json.load(f)["schema"]
        versions[schema["version"]] = {f["id"]: f["name"] for f in schema["field"]}
    newest: dict[int, str] = {}
    for _, fields in sorted(versions.items()):
        newest.update(fields)
    # Where a later field took over the name of an earlier one, the earlier has no plain name in SQL.
    owner = {name: field for field, name in newest.items()}
    return {
        version: {name: newest[field] for field, name in fields.items() if owner[newest[field]] == field}
        | {"source": "source", "_extra": "_extra"}
        for version, fields in versions.items()
    }


class Lakebed:
    """The side that is checked."""

    def __init__(self, binary: str, project: str) -> None:
        self.binary, self.project = binary, project

    def rows(self, query: str) -> list[dict]:
        done = subprocess.run([self.binary, "sql", "--format", "json", query, "--project", self.project],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode != 0:
            raise SystemExit(f"lakebed sql: {done.stderr.decode(errors='replace').strip()}\n{query}")
        return parse_rows(done.stdout.decode("utf-8"))

    def measure(self, dataset: str, parts: dict, names: dict[int, dict[str, str]]) -> Measured:
        layer, table = dataset.split("/")
        found: Measured = {}
        for version, kinds in readers.by_version(parts).items():
            kinds = {n: k for n, k in kinds.items() if n in names[version]}
            items = ["count(*)"]
            for name, kind in kinds.items():
                items += [in_datafusion(item) for item in sql_items(names[version][name], kind)]
            columns = ", ".join(f"{item} AS c{i:04}" for i, item in enumerate(items))
            query = (f"SELECT CAST(dt AS VARCHAR) AS dt, {columns} FROM {quoted(layer)}.{quoted(table)} "
                     f"WHERE schema_version = {version} GROUP BY dt")
            for row in self.rows(query):
                values = tuple(row.get(f"c{i:04}") for i in range(len(items)))
                found[row["dt"], version] = readers.from_row(values, kinds)
        return found


def in_datafusion(item: str) -> str:
    """The two spellings that differ: an instant cast to an integer counts in the unit of its type."""
    item = re.sub(r"EPOCH_US\((.*)\) AS VARCHAR\)$", r"CAST(\1 AS BIGINT) AS VARCHAR)", item)
    return re.sub(r"\bstrlen\(", "octet_length(", item)


def parse_rows(text: str) -> list[dict]:
    """Rows from one JSON array, an object that holds one, or one object a line."""
    text = text.strip()
    if not text:
        return []
    try:
        whole = json.loads(text, parse_float=decimal.Decimal)
    except json.JSONDecodeError:
        return [json.loads(line, parse_float=decimal.Decimal) for line in text.splitlines()]
    if isinstance(whole, dict):
        whole = next((v for v in whole.values() if isinstance(v, list)), [whole])
    return whole


def same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    return left == right


def differences(reader: str, expected: Measured, seen: Measured) -> list[str]:
    """One line for each number in which a reader differs."""
    found = []
    for key in sorted(expected.keys() | seen.keys()):
        where = f"{reader}: dt={key[0]}/schema_version={key[1]}"
        if key not in seen:
            found.append(f"{where}: not seen, lakebed has {expected[key].rows} rows")
            continue
        if key not in expected:
            found.append(f"{where}: {seen[key].rows} rows that lakebed does not have")
            continue
        if expected[key].rows != seen[key].rows:
            found.append(f"{where}: rows {seen[key].rows}, lakebed {expected[key].rows}")
        for name, ours in expected[key].columns.items():
            theirs = seen[key].columns[name]
            if theirs.nulls is None:
                continue
            for what in ("nulls", "low", "high", "total"):
                a, b = getattr(ours, what), getattr(theirs, what)
                if not same(a, b):
                    found.append(f"{where}: `{name}` {what} {b!r}, lakebed {a!r}")
    return found


def check(lakebed: Lakebed, lake: str, datasets: list[str]) -> int:
    findings, compared = [], 0
    for dataset in datasets:
        root = os.path.join(lake, dataset)
        parts = readers.schemas(root)
        expected = lakebed.measure(dataset, parts, newest_names(lake, dataset))
        for reader in readers.READERS:
            seen = reader().measure(root, parts)
            found = [f"{dataset}: {line}" for line in differences(reader.name, expected, seen)]
            findings += found
            compared += len(seen)
            rows = sum(p.rows for p in seen.values())
            print(f"{dataset}: {reader.name}: {len(seen)} partitions, {rows} rows, {len(found)} differences")
    for line in findings[:200]:
        print(line)
    if compared == 0:
        print(f"no data file lies in {lake}")
        return 3
    return 1 if findings else 0


def self_check() -> int:
    """Readers agree on a lake of our making, and every one of them sees a change in it."""
    with tempfile.TemporaryDirectory() as lake:
        root = os.path.join(lake, "clean", "s")
        write_sample(root, change=False)
        parts = readers.schemas(root)
        first = readers.DuckDb().measure(root, parts)
        assert {k: p.rows for k, p in first.items()} == {("2024-05-20", 1): 4, ("2024-05-20", 2): 4, ("2024-05-21", 2): 4}
        money = first["2024-05-20", 2].columns["money"]
        assert money == Column(1, *map(decimal.Decimal, ("-0.50", "99999999999999999.99", "100000000000000001.47"))), money
        for reader in readers.READERS:
            found = differences(reader.name, first, reader().measure(root, parts))
            assert not found, found
        write_sample(root, change=True)
        for reader in readers.READERS:
            found = differences(reader.name, first, reader().measure(root, parts))
            text = "\n".join(found)
            for name in ("n", "x", "money", "flag", "at", "day", "text"):
                assert f"`{name}`" in text, f"{reader.name} does not see the change of {name}: {text}"
        missing = dict(first)
        key, whole = missing.popitem()
        assert len(differences("r", first, missing)) == 1
        assert len(differences("r", first, missing | {key: Partition(whole.rows + 1, whole.columns)})) == 1
    print("self-check: five readers agree, and see every change")
    return 0


def write_sample(root: str, change: bool) -> None:
    """Three partitions with every kind of column; `change` alters one value of each column."""
    import datetime
    import pyarrow as pa
    import pyarrow.parquet as pq

    d, zone = decimal.Decimal, datetime.timezone.utc
    at = datetime.datetime(2024, 5, 20, 1, 2, 3, 4, tzinfo=zone)
    table = pa.table({
        "n": pa.array([1, None, 2**63 - 1, 6 if change else 5], pa.int64()),
        "x": pa.array([0.1, float("nan"), None, 3e300 if change else 2e300], pa.float64()),
        "money": pa.array([d("-0.50"), d("1.99") if change else d("1.98"), None, d("99999999999999999.99")], pa.decimal128(38, 2)),
        "flag": pa.array([True, False, None, change], pa.bool_()),
        "at": pa.array([at, None, at.replace(year=1969), at.replace(year=2031 if change else 2030)], pa.timestamp("us", "UTC")),
        "day": pa.array([at.date(), None, at.date().replace(year=1999 if change else 2000), None], pa.date32()),
        "text": pa.array(["一二" if change else "二", None, "\U0001F600", ""], pa.string()),
        "tags": pa.array([["a", None], [], None, ["b"]], pa.list_(pa.string())),
        "who": pa.array([{"name": "甲"}, None, {"name": None}, {"name": "乙"}], pa.struct([("name", pa.string())])),
    })
    for dt, version in (("2024-05-20", 1), ("2024-05-20", 2), ("2024-05-21", 2)):
        folder = os.path.join(root, f"dt={dt}", f"schema_version={version}")
        os.makedirs(folder, exist_ok=True)
        part = table if version == 2 else table.drop_columns(["money", "who"])
        pq.write_table(part, os.path.join(folder, "part-00000-0000000000000000.parquet"))
        with open(os.path.join(folder, "_SUCCESS"), "w", encoding="utf-8") as f:
            f.write("{}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-check", action="store_true")
    parser.add_argument("--lakebed", default="target/debug/lakebed")
    parser.add_argument("--project")
    parser.add_argument("--lake", help="the lake's folder (default: PROJECT/lake)")
    parser.add_argument("datasets", nargs="*", help="layer/dataset (default: all)")
    args = parser.parse_args()
    if args.self_check:
        return self_check()
    if args.project is None:
        parser.error("--project is needed")
    lake = os.path.abspath(args.lake or os.path.join(args.project, "lake"))
    datasets = args.datasets or datasets_of(lake)
    return check(Lakebed(args.lakebed, args.project), lake, datasets)


if __name__ == "__main__":
    sys.exit(main())
