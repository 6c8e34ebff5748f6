"""Fifteen queries over 1,200,000 rows in one data file, beside DuckDB on the same file."""

import math
import statistics

from measure import Run, data, note, venv_python
from project import Project
from sessions import (WARM_REPEATS, Query, agree, ask_duckdb, ask_lakebed, ask_lakebed_warm, rows_of_duckdb,
                      rows_of_lakebed, takes_statements)

QUERIES = [
    Query("count(*)", "SELECT count(*) AS n FROM {table}"),
    Query("count, city =", "SELECT count(*) AS n FROM {table} WHERE city = '台北市'"),
    Query("sum and average by city", "SELECT city, sum(price) AS s, avg(area) AS a FROM {table} GROUP BY city"),
    Query("top 10 by price", "SELECT id, title, city, price FROM {table} ORDER BY price DESC, id LIMIT 10"),
    Query("count distinct id", "SELECT count(DISTINCT id) AS n FROM {table}"),
    Query("LIKE on title", "SELECT count(*) AS n FROM {table} WHERE title LIKE '%river view%'"),
    Query("min and max of a timestamp", "SELECT min(posted_at) AS a, max(posted_at) AS b FROM {table}"),
    Query("SELECT * LIMIT 10", "SELECT * FROM {table} LIMIT 10"),
    Query("point by id", "SELECT id, title, price FROM {table} WHERE id = {id}"),
    Query("3 columns, city and price", "SELECT id, title, price FROM {table} WHERE city = '上海' AND price < 12000"),
    Query("a week of timestamps, average by city",
          "SELECT city, avg(price) AS a FROM {table} WHERE posted_at >= TIMESTAMP '2026-11-08 00:00:00' "
          "AND posted_at < TIMESTAMP '2026-11-15 00:00:00' GROUP BY city",
          "SELECT city, avg(price) AS a FROM {table} WHERE posted_at >= TIMESTAMPTZ '2026-11-08 00:00:00+00' "
          "AND posted_at < TIMESTAMPTZ '2026-11-15 00:00:00+00' GROUP BY city"),
    Query("average over a struct's field", "SELECT avg(length(agent['name'])) AS a FROM {table}"),
    Query("day by city, average",
          "SELECT CAST(posted_at AS DATE) AS d, city, avg(price) AS a FROM {table} GROUP BY 1, 2"),
    Query("day by city, exact median",
          "SELECT CAST(posted_at AS DATE) AS d, city, median(area) AS m FROM {table} GROUP BY 1, 2"),
    Query("day by city, approximate quantile",
          "SELECT CAST(posted_at AS DATE) AS d, city, approx_percentile_cont(area, 0.5) AS m FROM {table} GROUP BY 1, 2",
          "SELECT CAST(posted_at AS DATE) AS d, city, approx_quantile(area, 0.5) AS m FROM {table} GROUP BY 1, 2"),
]
# Whose rows may differ between two right answers.
LOOSE = {"SELECT * LIMIT 10", "day by city, approximate quantile"}
APART = "day by city, approximate quantile"


def queries_part(options) -> str:
    rows = 24_000 if options.quick else 1_200_000
    python = venv_python()
    project = Project(options.lakebed, "project-queries", nested=True)
    project.ingest(data("jsonl", rows))
    some_id = rows_of_lakebed(project, "SELECT max(id) AS id FROM clean.rentals WHERE id < 7000000000 + 20 * "
                              f"{rows}")[0][0]
    some_id = str(int(some_id))
    table = f"read_parquet('{project.glob}', hive_partitioning = true)"
    ours = [q.text("lakebed", "clean.rentals").replace("{id}", some_id) for q in QUERIES]
    theirs = [q.text("duckdb", table).replace("{id}", some_id) for q in QUERIES]
    check(python, project, ours, theirs)
    text = [section("cold", cold(options, python, project, ours, theirs))]
    if takes_statements(project):
        text.append(section("warm", warm(options, python, project, ours, theirs)))
    return f"### Fifteen queries over {rows:,} rows, the same Parquet file\n\n" + "\n".join(text)


def check(python, project: Project, ours: list[str], theirs: list[str]) -> None:
    for query, a, b in zip(QUERIES, ours, theirs):
        mine, other = rows_of_lakebed(project, a), rows_of_duckdb(python, b)
        if len(mine) != len(other) or (query.name not in LOOSE and not agree(mine, other)):
            differing = [pair for pair in zip(mine, other) if not agree(*([row] for row in pair))]
            raise SystemExit(f"{query.name}: lakebed and DuckDB do not agree: {len(mine)} and {len(other)} rows\n"
                             f"{differing[:3]}")


Pairs = list[tuple[list[float], list[float]]]


def cold(options, python, project: Project, ours: list[str], theirs: list[str]) -> tuple[Pairs, list[float]]:
    """Each query in processes of its own, in turns."""
    pairs: Pairs = [([], []) for _ in QUERIES]
    cpu: list[list[float]] = [[], []]
    for i in range(options.rounds):
        spent = [0.0, 0.0]
        for n, pair in enumerate(pairs):
            sides = [lambda: one_cold(project, ours[n], None), lambda: one_cold(project, theirs[n], python)]
            for side in ((0, 1) if i % 2 == 0 else (1, 0)):
                done, ms = sides[side]()
                pair[side].append(ms)
                spent[side] += done.cpu_s
        for side in (0, 1):
            cpu[side].append(spent[side])
        note(f"queries, cold {i + 1}/{options.rounds}: CPU {spent[0]:.2f} s, DuckDB {spent[1]:.2f} s")
    return pairs, [statistics.median(c) for c in cpu]


def one_cold(project: Project, text: str, python) -> tuple[Run, float]:
    if python is None:
        done = ask_lakebed(project, text)
        return done, done.extra["ms"]
    done = ask_duckdb(python, [text], 1)
    return done, done.extra[0][0]["ms"]


def warm(options, python, project: Project, ours: list[str], theirs: list[str]) -> tuple[Pairs, list[float]]:
    """All queries in one process, each asked several times; the first answer to each does not count."""
    pairs: Pairs = [([], []) for _ in QUERIES]
    cpu: list[list[float]] = [[], []]
    for i in range(options.rounds):
        sides = [lambda: ask_lakebed_warm(project, ours), lambda: ask_duckdb(python, theirs, WARM_REPEATS)]
        for side in ((0, 1) if i % 2 == 0 else (1, 0)):
            done = sides[side]()
            cpu[side].append(done.cpu_s)
            for n, pair in enumerate(pairs):
                pair[side].append(statistics.median(cost["ms"] for cost in done.extra[n][1:]))
        note(f"queries, warm {i + 1}/{options.rounds}: CPU {cpu[0][-1]:.2f} s, DuckDB {cpu[1][-1]:.2f} s")
    return pairs, [statistics.median(c) for c in cpu]


HOW = {"cold": "Cold: each query in a new process", "warm": "Warm: one process for all, the first answer to each left out"}


def section(kind: str, measured: tuple[Pairs, list[float]]) -> str:
    pairs, cpu = measured
    lines = [f"{HOW[kind]}, the time within the process, median of {len(pairs[0][0])} rounds:\n",
             "| query | Lakebed ms | DuckDB ms | DuckDB / Lakebed |", "| --- | --- | --- | --- |"]
    ratios: dict[str, float] = {}
    for query, (mine, other) in zip(QUERIES, pairs):
        a, b = statistics.median(mine), statistics.median(other)
        ratios[query.name] = b / a
        lines.append(f"| {query.name} | {a:.1f} | {b:.1f} | {b / a:.2f} |")
    apart = ratios.pop(APART)
    mean = math.exp(statistics.mean(math.log(r) for r in ratios.values()))
    least = min(ratios, key=ratios.__getitem__)
    lines.append(f"\nGeometric mean of fourteen {mean:.2f} (1 = as fast as DuckDB), least {ratios[least]:.2f} "
                 f"({least}); the approximate quantile stands apart: {apart:.2f}. CPU of a whole round {cpu[0]:.2f} s "
                 f"with the start of its processes, DuckDB {cpu[1]:.2f} s without.\n")
    return "\n".join(lines)
