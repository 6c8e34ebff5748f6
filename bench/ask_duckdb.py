#!/usr/bin/env python3
"""Answers queries with DuckDB and says what each cost.

    ask_duckdb.py REPEATS    runs each query of the JSON list on standard input so often; prints for each the list of
                             {"ms": ..., "cpu_ms": ..., "rows": ...}
    ask_duckdb.py rows       prints the rows of the only query
"""

import datetime
import json
import sys
import time

import duckdb
import pyarrow  # noqa: F401  loaded before the clock starts

THREADS = 2


def plain(value: object) -> object:
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.timezone.utc).isoformat()
    return value if isinstance(value, (int, float, str, list, dict, type(None))) else str(value)


def main() -> None:
    con = duckdb.connect()
    con.execute(f"SET threads = {THREADS}; SET TimeZone = 'UTC'; SET enable_progress_bar = false")
    texts = json.load(sys.stdin)
    if sys.argv[1] == "rows":
        print(json.dumps([[plain(v) for v in row] for row in con.execute(texts[0]).fetchall()]))
        return
    answers = []
    for text in texts:
        costs = []
        for _ in range(int(sys.argv[1])):
            started, cpu = time.perf_counter(), time.process_time()
            table = con.sql(text).to_arrow_table()
            ms = (time.perf_counter() - started) * 1000
            costs.append({"ms": ms, "cpu_ms": (time.process_time() - cpu) * 1000, "rows": table.num_rows})
        answers.append(costs)
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
