#!/usr/bin/env python3
"""One writer of a peer: appends ten rows again and again, each append one commit.

    commit_peer.py make KIND PLACE INPUTS              makes the table
    commit_peer.py write KIND PLACE INPUTS FROM STEP   appends every STEP-th file from the FROM-th on; waits for a line
                                                       on standard input before it begins
    commit_peer.py count KIND PLACE INPUTS             prints the rows that a new reader sees

Kinds: ducklake-sqlite, ducklake-postgres (a Parquet file for each commit), ducklake-inlined (SQLite; the rows lie in
the catalog, which is DuckLake's default for so few), delta. PLACE is a folder, after `::` the connection of
PostgreSQL. An append that another writer defeated is tried again, 100 times at most, as a program would do.
"""

import json
import pathlib
import random
import sys
import time

COLUMNS = ("id BIGINT, title VARCHAR, url VARCHAR, city VARCHAR, price DECIMAL(12,2), area DOUBLE, rooms BIGINT, "
           "owner BOOLEAN, posted_at TIMESTAMPTZ, floor BIGINT, description VARCHAR")
TRIES = 100


def tables(folder: str) -> list:
    """The rows of each file as an Arrow table with the declared types, read before the clock starts."""
    import datetime
    import decimal

    import pyarrow as pa
    types = {"id": pa.int64(), "title": pa.string(), "url": pa.string(), "city": pa.string(),
             "price": pa.decimal128(12, 2), "area": pa.float64(), "rooms": pa.int64(), "owner": pa.bool_(),
             "posted_at": pa.timestamp("us", "UTC"), "floor": pa.int64(), "description": pa.string()}
    found = []
    for path in sorted(pathlib.Path(folder).iterdir()):
        rows = [json.loads(line, parse_float=decimal.Decimal) for line in path.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            row["area"] = float(row["area"])
            row["posted_at"] = datetime.datetime.fromisoformat(row["posted_at"])
        found.append(pa.Table.from_pylist(rows, schema=pa.schema(types)))
    return found


class DuckLake:
    def __init__(self, kind: str, place: str) -> None:
        import duckdb
        folder, _, postgres = place.partition("::")
        self.con = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
        for name in ("sqlite_scanner", "postgres_scanner", "ducklake"):
            if name != "postgres_scanner" or postgres:
                self.con.execute(f"LOAD '{extension(name)}'")
        self.con.execute("SET threads = 1; SET TimeZone = 'UTC'")
        catalog = f"postgres:{postgres}" if postgres else f"sqlite:{folder}/catalog.sqlite"
        limit = "" if kind == "ducklake-inlined" else ", DATA_INLINING_ROW_LIMIT 0"
        self.con.execute(f"ATTACH 'ducklake:{catalog}' AS lake (DATA_PATH '{folder}/data'{limit})")

    def make(self) -> None:
        self.con.execute(f"CREATE TABLE lake.rentals ({COLUMNS})")

    def append(self, batch) -> None:
        self.con.register("batch", batch)
        self.con.execute("INSERT INTO lake.rentals SELECT * FROM batch")

    def count(self) -> int:
        return self.con.execute("SELECT count(*) FROM lake.rentals").fetchone()[0]


def extension(name: str) -> str:
    import importlib
    module = importlib.import_module(f"duckdb_extension_{name}")
    return str(next(pathlib.Path(module.__path__[0]).rglob(f"{name}.duckdb_extension")))


class Delta:
    def __init__(self, _kind: str, place: str) -> None:
        import deltalake
        self.tool, self.place, self.table = deltalake, f"{place}/table", None

    def make(self) -> None:
        self.tool.write_deltalake(self.place, tables(sys.argv[4])[0].slice(0, 0))

    def append(self, batch) -> None:
        # One handle for all commits, as a program that stays would have.
        self.table = self.table or self.tool.DeltaTable(self.place)
        self.tool.write_deltalake(self.table, batch, mode="append")

    def count(self) -> int:
        return self.tool.DeltaTable(self.place).to_pyarrow_dataset().count_rows()


def write(open_table, kind: str, place: str, batches: list) -> None:
    table, latencies, again, given_up = open_table(kind, place), [], 0, []
    print("ready", flush=True)
    sys.stdin.readline()
    begin, cpu = time.time(), time.process_time()
    for batch in batches:
        started = time.perf_counter()
        for left in reversed(range(TRIES)):
            try:
                table.append(batch)
                latencies.append((time.perf_counter() - started) * 1000)
                break
            except Exception as error:  # whatever a peer throws: an append that did not happen
                again += 1
                if left == 0:
                    given_up.append(str(error)[:200])
                    break
                time.sleep(random.uniform(0, 0.05))
                table = open_table(kind, place) if "closed" in str(error) or "invalidated" in str(error) else table
    print(json.dumps({"begin": begin, "end": time.time(), "cpu_s": time.process_time() - cpu,
                      "latencies_ms": latencies, "again": again, "given_up": given_up}))


def main() -> None:
    what, kind, place, inputs, *rest = sys.argv[1:]
    open_table = Delta if kind == "delta" else DuckLake
    if what == "make":
        open_table(kind, place).make()
    elif what == "count":
        print(open_table(kind, place).count())
    else:
        write(open_table, kind, place, tables(inputs)[int(rest[0])::int(rest[1])])


if __name__ == "__main__":
    main()
