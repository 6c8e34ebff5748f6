"""One day of 60 against all of them: what pruning by `dt` saves, and what DuckDB saves over the same folders."""

import itertools
import json
import shutil
import statistics

from measure import OUT, data, note, rounds, venv_python, verdict
from planning import day
from project import Project
from sessions import (WARM_REPEATS, Query, agree, ask_duckdb, ask_lakebed, ask_lakebed_warm, rows_of_duckdb,
                      rows_of_lakebed, takes_statements)

DAYS = 60
TARGET = 30
QUERIES = [
    Query("sum and average by city", "SELECT city, count(*) AS n, sum(price) AS s, avg(area) AS a FROM {table}{where} "
          "GROUP BY city"),
    Query("LIKE on title and description", "SELECT count(*) AS n FROM {table}{where} "
          "AND (title LIKE '%river view%' OR description LIKE '%top floor%')"),
]


def days_part(options) -> str:
    each = 2_000 if options.quick else 200_000
    python = venv_python()
    project = build(options, each)
    wanted = day(DAYS // 2)
    table = f"read_parquet('{project.glob}', hive_partitioning = true)"
    text = [f"### One day of {DAYS} ({each:,} rows a day, one file each)\n"]
    for query in QUERIES:
        texts = {}
        for name, where in (("one", f" WHERE dt = '{wanted}'"), ("all", " WHERE true")):
            texts["lakebed", name] = query.text("lakebed", "clean.rentals").replace("{where}", where)
            texts["duckdb", name] = query.text("duckdb", table).replace("{where}", where)
            if not agree(rows_of_lakebed(project, texts["lakebed", name]), rows_of_duckdb(python, texts["duckdb", name])):
                raise SystemExit(f"{query.name}, {name}: lakebed and DuckDB do not agree")
        text.append(query_section(options, python, project, query, texts))
    shutil.rmtree(project.folder)
    return "\n".join(text)


def build(options, each: int) -> Project:
    """Sixty commits of six deliveries in turn; each date counts what it got."""
    project = Project(options.lakebed, "project-days", nested=True)
    parts = []
    # Line by line: what this process holds at most would count as the peak of those that it starts.
    with data("jsonl", each * 6).open("rb") as lines:
        for n in range(6):
            path = OUT / f"days-{n}.jsonl"
            with path.open("wb") as out:
                out.writelines(itertools.islice(lines, each))
            parts.append(path)
    for n in range(DAYS):
        stored = json.loads(project.ingest(parts[n % 6], day(n)).stdout)["rows"]
        if stored != each:
            raise SystemExit(f"lakebed stored {stored} of {each} rows")
    for path in parts:
        path.unlink()
    note(f"days: {DAYS} days are ingested")
    return project


def query_section(options, python, project: Project, query: Query, texts: dict) -> str:
    def ask(side: str, name: str):
        def asked():
            if side == "lakebed":
                return ask_lakebed(project, texts[side, name])
            done = ask_duckdb(python, [texts[side, name]], 1)
            done.extra = done.extra[0][0]
            return done
        return asked
    names = [(side, name) for side in ("lakebed", "duckdb") for name in ("all", "one")]
    runs = rounds(options.rounds, {" ".join(n): ask(*n) for n in names}, f"days, {query.name}")
    ms = {n: statistics.median(r.extra["ms"] for r in runs[" ".join(n)]) for n in names}
    cpu = {n: statistics.median(r.cpu_s for r in runs[" ".join(n)]) * 1000 for n in names}
    read = [runs[f"lakebed {n}"][-1].extra["files_read"] for n in ("one", "all")]
    lines = [f"{query.name}, cold (a new process for each, the time within it), median of {options.rounds} rounds:\n",
             "| | all days ms | one day ms | all / one | CPU ms, all | CPU ms, one |", "| --- | --- | --- | --- | --- | --- |"]
    for side, title in (("lakebed", "**Lakebed**"), ("duckdb", "DuckDB, Hive folders")):
        a, b = ms[side, "all"], ms[side, "one"]
        lines.append(f"| {title} | {a:.1f} | {b:.1f} | {a / b:.1f} | {cpu[side, 'all']:.0f} | {cpu[side, 'one']:.0f} |")
    ratio = ms["lakebed", "all"] / ms["lakebed", "one"]
    lines.append(f"\nLakebed read {read[0]:.0f} of {read[1]:.0f} files; its CPU is of the whole process. "
                 f"Target {TARGET} times: {verdict(ratio >= TARGET)}.\n")
    if takes_statements(project):
        lines.append(warm_line(options, python, project, texts))
    return "\n".join(lines)


def warm_line(options, python, project: Project, texts: dict) -> str:
    """All days and one day asked in one process; of each side the median of the rounds' medians."""
    found: dict[tuple[str, int], list[float]] = {}
    for _ in range(options.rounds):
        sides = {"Lakebed": ask_lakebed_warm(project, [texts["lakebed", n] for n in ("all", "one")]),
                 "DuckDB": ask_duckdb(python, [texts["duckdb", n] for n in ("all", "one")], WARM_REPEATS)}
        for title, done in sides.items():
            for n in (0, 1):
                ms = statistics.median(cost["ms"] for cost in done.extra[n][1:])
                found.setdefault((title, n), []).append(ms)
    said = []
    for title in ("Lakebed", "DuckDB"):
        a, b = (statistics.median(found[title, n]) for n in (0, 1))
        said.append(f"{title} {a:.1f} and {b:.1f} ms ({a / b:.1f} times)")
    return f"Warm, one process, all and one: {', '.join(said)}.\n"
