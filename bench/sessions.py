"""Asking Lakebed and DuckDB the same queries, and taking the time that each spends on a query itself.

Lakebed says it with `sql --stats`: planning (following the logs, asking the catalog, planning) and execution (to the
last row written, as CSV). DuckDB's time is taken around execute and fetch into an Arrow table, without the start of
Python and the loading of libraries. Either way a query is asked

    cold    in a process of its own: nothing but the page cache is warm
    warm    in a process that was asked the same before; only where `lakebed sql` takes several statements

and always both in the same way. CPU is DuckDB's around execute and fetch, with all its threads, but Lakebed's of the
whole process, because nothing tells it otherwise.
"""

import dataclasses
import json
import math
import pathlib
import re

from measure import BENCH, Run, run
from project import Project

WARM_REPEATS = 4


@dataclasses.dataclass
class Query:
    """A query in the two dialects; `{table}` is the table."""

    name: str
    ours: str
    theirs: str = ""

    def text(self, dialect: str, table: str) -> str:
        return (self.theirs or self.ours if dialect == "duckdb" else self.ours).replace("{table}", table)


def takes_statements(project: Project) -> bool:
    """Whether `lakebed sql` answers several statements of one standard input, each with its own cost."""
    try:
        done = project.call("sql", "-", "--stats", "--format", "csv", text="SELECT 1 AS a;\nSELECT 2 AS a;\n")
    except SystemExit:
        return False
    return len(re.findall(r"^planning_ms", done.stderr, re.MULTILINE)) == 2


def costs(stderr: str) -> list[dict[str, float]]:
    """The `name value` lines of `--stats`, one dictionary a statement."""
    found: list[dict[str, float]] = []
    for name, value in re.findall(r"^([a-z_]+) ([0-9.]+)$", stderr, re.MULTILINE):
        if name == "planning_ms":
            found.append({})
        if found:
            found[-1][name] = float(value)
    for cost in found:
        cost["ms"] = cost["planning_ms"] + cost["execution_ms"]
    return found


def ask_lakebed(project: Project, text: str) -> Run:
    """One query in a process of its own; `extra` holds what it cost."""
    done = project.call("sql", text, "--stats", "--format", "csv")
    done.extra = costs(done.stderr)[0]
    return done


def ask_lakebed_warm(project: Project, texts: list[str]) -> Run:
    """All queries in one process, each several times; `extra[n]` holds what query n cost each time."""
    script = "".join(f"{text};\n" * WARM_REPEATS for text in texts)
    done = project.call("sql", "-", "--stats", "--format", "csv", text=script)
    found = costs(done.stderr)
    if len(found) != len(texts) * WARM_REPEATS:
        raise SystemExit(f"`lakebed sql` told the cost of {len(found)} statements\n{done.stderr}")
    done.extra = {n: found[n * WARM_REPEATS:(n + 1) * WARM_REPEATS] for n in range(len(texts))}
    return done


def ask_duckdb(python: pathlib.Path, texts: list[str], repeats: int) -> Run:
    """All queries in one new process; `extra[n]` holds what query n cost each time."""
    done = run([python, BENCH / "ask_duckdb.py", repeats], text=json.dumps(texts))
    done.extra = dict(enumerate(json.loads(done.stdout)))
    done.cpu_s = sum(cost["cpu_ms"] for costs in done.extra.values() for cost in costs) / 1000
    return done


def rows_of_lakebed(project: Project, text: str) -> list[list]:
    found = json.loads(project.call("sql", text, "--format", "json").stdout)
    return normal([list(row.values()) for row in found])


def rows_of_duckdb(python: pathlib.Path, text: str) -> list[list]:
    return normal(json.loads(run([python, BENCH / "ask_duckdb.py", "rows"], text=json.dumps([text])).stdout))


def normal(rows: list[list]) -> list[list]:
    """Rows as two programs may say them alike: numbers as numbers, instants without their zone, in one order."""
    def cell(value: object) -> object:
        try:
            return float(value)
        except (TypeError, ValueError):
            return re.sub(r"^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.0+)?(\+00:00|\+00|Z)?$", r"\1 \2", str(value))
    return sorted(([cell(v) for v in row] for row in rows), key=lambda row: [str(v) for v in row])


def agree(mine: list[list], other: list[list]) -> bool:
    """Whether two answers are one: averages of decimals may end in another digit."""
    def same(a: object, b: object) -> bool:
        if isinstance(a, float) and isinstance(b, float):
            return math.isclose(a, b, rel_tol=1e-6)
        return a == b
    return len(mine) == len(other) and all(
        len(a) == len(b) and all(map(same, a, b)) for a, b in zip(mine, other))
