#!/usr/bin/env python3
"""Many processes on one dataset at once: four ingest, one corrects, switches and rolls back, three read.

    concurrency.py --lakebed target/debug/lakebed [--seconds 20] [--seed N]

The model is simple: an acknowledged ingest belongs to the date and revision that its report names, a correction
begins a revision of its date. So at the end, for every date and every revision that is shown in turn, the rows are
those of its correction and of the ingests that joined it: all of them, each once.

While they work, DuckDB and Polars read the folder in a loop, and `lakebed sql` the lake: no key is ever seen twice, and
of a date never rows of two revisions. A folder reader may miss a date for a moment, or find that a file it has
listed is gone (that is counted and told); `lakebed sql` may not.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATASET = "clean/busy"
DATES = ["2026-11-27", "2026-11-28", "2026-11-29"]
ROWS = 5
SCHEMA = """dataset = "clean/busy"
version = 1

[[field]]
id = 1
name = "k"
type = "int"
required = true
"""


class Lake:
    def __init__(self, binary: pathlib.Path, folder: pathlib.Path) -> None:
        self.binary, self.folder = binary, folder
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("LAKEBED_")}

    def call(self, *args) -> subprocess.CompletedProcess:
        return subprocess.run([self.binary, *map(str, args), "--project", self.folder], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment, timeout=300)

    def json(self, *args) -> dict | list:
        done = self.call(*args, "--format", "json")
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, args))}: {done.returncode}: {done.stderr.decode(errors='replace')}")
        return json.loads(done.stdout or b"[]")

    @property
    def glob(self) -> str:
        return str(self.folder / "lake" / DATASET / "dt=*" / "schema_version=*" / "*.parquet")


class Work:
    """What was acknowledged, and what was seen."""

    def __init__(self, lake: Lake, seconds: float, seed: int) -> None:
        self.lake, self.seed = lake, seed
        self.until = time.monotonic() + seconds
        self.lock = threading.Lock()
        self.keys: dict[tuple[str, int], set[int]] = collections.defaultdict(set)
        self.owner: dict[int, tuple[str, int]] = {}
        self.seen: list[tuple[str, list[tuple[str, int]]]] = []
        self.counts: collections.Counter = collections.Counter()
        self.wrong: list[str] = []

    def running(self) -> bool:
        return time.monotonic() < self.until and not self.wrong

    def own(self, date: str, revision: int, keys: list[int]) -> None:
        with self.lock:
            self.keys[date, revision].update(keys)
            for key in keys:
                self.owner[key] = (date, revision)

    def fail(self, text: str) -> None:
        with self.lock:
            self.wrong.append(text)

    def count(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1


def write(lake: Lake, name: str, keys: list[int]) -> pathlib.Path:
    path = lake.folder / name
    path.write_text("".join(f'{{"k": {k}}}\n' for k in keys), encoding="utf-8")
    return path


def ingest(work: Work, writer: int) -> None:
    random_ = random.Random(work.seed * 100 + writer)
    n = 0
    while work.running():
        keys = [writer * 10_000_000 + n * ROWS + i for i in range(ROWS)]
        path = write(work.lake, f"w{writer}-{n}.jsonl", keys)
        date = random_.choice(DATES)
        try:
            report = work.lake.json("ingest", DATASET, path, "--date", date)
        except RuntimeError as error:
            return work.fail(str(error))
        if report["outcome"] != "committed" or report["rows"] != ROWS:
            return work.fail(f"ingest of new rows: {report['outcome']}, {report['rows']} rows")
        work.own(date, report["revision"], keys)
        work.count("ingests")
        n += 1


def correct(work: Work) -> None:
    random_ = random.Random(work.seed)
    n = 0
    while work.running():
        date = random_.choice(DATES)
        if random_.random() < 0.5:
            keys = [900_000_000 + n * ROWS + i for i in range(ROWS)]
            path = write(work.lake, f"c-{n}.jsonl", keys)
            n += 1
            try:
                report = work.lake.json("correct", DATASET, path, "--date", date)
            except RuntimeError as error:
                return work.fail(str(error))
            work.own(date, report["revision"], keys)
            work.count("corrections")
            continue
        revisions = [r for d, r in work.keys if d == date]
        how = ["rollback"] if random_.random() < 0.5 else ["switch", "--revision", random_.choice(revisions)]
        done = work.lake.call(how[0], DATASET, "--date", date, "--drop-late", *how[1:])
        if done.returncode == 0:
            work.count("switches")
        elif done.returncode != 1 or b"replaced nothing" not in done.stderr:
            return work.fail(f"{how}: {done.returncode}: {done.stderr.decode(errors='replace')}")


def read_duckdb(work: Work) -> list[tuple[str, int]]:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        query = f"SELECT CAST(dt AS VARCHAR), k FROM read_parquet('{work.lake.glob}', hive_partitioning = true)"
        return connection.execute(query).fetchall()


def read_polars(work: Work) -> list[tuple[str, int]]:
    import polars

    frame = polars.scan_parquet(work.lake.glob, hive_partitioning=True).select("dt", "k").collect()
    return [(str(d), k) for d, k in frame.rows()]


def read_sql(work: Work) -> list[tuple[str, int]]:
    rows = work.lake.json("sql", "SELECT CAST(dt AS VARCHAR) AS dt, k FROM clean.busy")
    return [(row["dt"], row["k"]) for row in rows]


def read(work: Work, name: str, reader) -> None:
    exact = name == "sql"
    while work.running():
        try:
            rows = reader(work)
        except Exception as error:  # noqa: BLE001: a folder reader may find a listed file gone
            if exact:
                return work.fail(f"{name}: {error}")
            work.count(f"{name}: a listed file was gone")
            continue
        with work.lock:
            work.seen.append((name, rows))
            work.counts[f"{name}: reads"] += 1


def judge(work: Work) -> None:
    """Every reading, once all owners are known."""
    for name, rows in work.seen:
        keys = collections.Counter(k for _, k in rows)
        twice = [k for k, n in keys.items() if n > 1]
        if twice:
            work.fail(f"{name} has seen key {twice[0]} {keys[twice[0]]} times")
        revisions = collections.defaultdict(set)
        for date, key in rows:
            owner = work.owner.get(key)
            if owner is not None:
                revisions[date].add(owner[1])
                if owner[0] != date:
                    work.fail(f"{name} has seen key {key} on {date}, it belongs to {owner[0]}")
        for date, shown in revisions.items():
            if len(shown) > 1:
                work.fail(f"{name} has seen rows of revisions {sorted(shown)} of {date} at once")


def visible(work: Work) -> dict[str, int]:
    rows = work.lake.json("partitions", DATASET)["partitions"]
    return {row["dt"]: row["revision"] for row in rows}


def compare(work: Work, what: str) -> None:
    shown = visible(work)
    expected = {date: sorted(work.keys[date, revision]) for date, revision in shown.items()}
    for name, reader in (("sql", read_sql), ("duckdb", read_duckdb), ("polars", read_polars)):
        found = collections.defaultdict(list)
        for date, key in reader(work):
            found[date].append(key)
        for date, keys in expected.items():
            if sorted(found[date]) != keys:
                work.fail(f"{what}: {name} has {len(found[date])} rows of {date} revision {shown[date]}, "
                          f"{len(keys)} were acknowledged")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lakebed", type=pathlib.Path, default=ROOT / "target/debug/lakebed")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    print(f"seed {args.seed}")
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(args.lakebed.resolve(), pathlib.Path(folder) / "busy")
        lake.folder.mkdir()
        if lake.call("init", lake.folder, "--time-zone", "Asia/Shanghai").returncode != 0:
            raise SystemExit("init failed")
        schemas = lake.folder / "sources" / "busy" / "schemas" / "busy"
        schemas.mkdir(parents=True)
        (schemas.parent.parent / "source.toml").write_text('class = "log"\n', encoding="utf-8")
        (schemas / "v1.toml").write_text(SCHEMA, encoding="utf-8")
        lake.json("schema", "publish", DATASET, "1")
        work = Work(lake, args.seconds, args.seed)
        for n, date in enumerate(DATES):
            keys = [800_000_000 + n]
            lake.json("ingest", DATASET, write(lake, f"first-{n}.jsonl", keys), "--date", date)
            work.own(date, 0, keys)
        threads = [threading.Thread(target=ingest, args=(work, n)) for n in range(1, 5)]
        threads.append(threading.Thread(target=correct, args=(work,)))
        for name, reader in (("sql", read_sql), ("duckdb", read_duckdb), ("polars", read_polars)):
            threads.append(threading.Thread(target=read, args=(work, name, reader)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        judge(work)
        compare(work, "at the end")
        for date, revision in sorted(work.keys):
            lake.json("switch", DATASET, "--date", date, "--revision", revision, "--drop-late")
            compare(work, f"revision {revision} of {date} shown")
        audit = lake.call("audit", "--deep")
        if audit.returncode != 0:
            work.fail(f"audit: {audit.stdout.decode(errors='replace')}")
    for what, n in sorted(work.counts.items()):
        print(f"{what}: {n}")
    for text in work.wrong[:20]:
        print(f"WRONG  {text}")
    print(f"{len(work.owner)} rows acknowledged, {len(work.wrong)} findings")
    return 1 if work.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
