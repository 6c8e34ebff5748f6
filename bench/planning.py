"""Planning: one day of a lake of many small files, each committed by a call of its own."""

import datetime
import json
import re
import shutil
import statistics
import time

from measure import OUT, data, note, run, venv_python, verdict
from project import DATASET, Project

DUCKDB_PLANNING = """
import statistics, sys, time
import duckdb
con = duckdb.connect()
con.execute("SET threads = 2")
query = (f"SELECT count(*), sum(price) FROM read_parquet('{sys.argv[1]}', "
         f"hive_partitioning = true) WHERE dt = '{sys.argv[2]}'")
def ms(text):
    times = []
    for _ in range(11):
        started = time.perf_counter()
        con.execute(text).fetchall()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times[1:])
print(ms("EXPLAIN " + query), ms(query), con.execute(query).fetchone()[0])
"""


def planning_part(options) -> str:
    days, each = (20, 5) if options.quick else (1_000, 5)
    python = venv_python()
    project = Project(options.lakebed, "project-planning", nested=False)
    build_days(project, days, each)
    date = day(days // 2)
    query = f"SELECT count(*) AS n, sum(price) AS total FROM clean.rentals WHERE dt = '{date}'"
    planning, walls, rows = [], [], 0
    for _ in range(11):
        done = project.call("sql", query, "--format", "json", "--stats")
        found = re.search(r"planning_ms\D+([0-9.]+)", done.stderr)
        if found is None:
            raise SystemExit(f"`sql --stats` did not say planning_ms: {done.stderr}")
        planning.append(float(found[1]))
        walls.append(done.wall_s * 1000)
        rows = json.loads(done.stdout)[0]["n"]
    glob = run([python, "-c", DUCKDB_PLANNING, project.glob, date]).stdout.split()
    if int(glob[2]) != rows:
        raise SystemExit(f"lakebed counts {rows} rows, DuckDB {glob[2]}")
    ours = statistics.median(planning[1:])
    wall = statistics.median(walls[1:])
    shutil.rmtree(project.folder)
    return (f"### Planning a one-day query over {days * each:,} files in {days:,} days\n\n"
            "| | planning ms | whole query ms |\n| --- | --- | --- |\n"
            f"| **Lakebed**, each time a new process | {ours:.1f} | {wall:.0f} |\n"
            f"| DuckDB, glob and Hive filter, one warm process | {float(glob[0]):.1f} | {float(glob[1]):.0f} |\n\n"
            f"Target under 20 ms: {verdict(ours < 20)}.\n")


def day(n: int) -> str:
    return str(datetime.date(2024, 1, 1) + datetime.timedelta(days=n))


def build_days(project: Project, days: int, each: int) -> None:
    path = OUT / "small.csv"
    lines = data("csv", 24_000).read_text(encoding="utf-8").split("\n")
    header, started = lines[0], time.perf_counter()
    plain = [line for line in lines[1:] if line.count('"') % 2 == 0 and line.count(",") >= 10]
    for n in range(days * each):
        chosen = plain[n * 4 % 20_000:][:4]
        first, rest = chosen[0].split(",", 1)
        path.write_text("\n".join([header, f"{int(first) + n * 10**9},{rest}", *chosen[1:]]) + "\n", encoding="utf-8")
        project.call("ingest", DATASET, path, "--date", day(n // each), "--quiet")
        if n % 500 == 499:
            note(f"planning: {n + 1} commits in {time.perf_counter() - started:.0f} s")
