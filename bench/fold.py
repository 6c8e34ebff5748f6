"""Fold: a day of a million objects over the snapshot of the day before, beside DuckDB with the same rules as SQL.

Both read the same Parquet files of the lake and write a snapshot and events; what both say is compared first.
"""

import json
import os
import pathlib
import shutil

from measure import BENCH, OUT, Run, fresh, median, note, rounds, run, venv_python, verdict

SOURCE = """class = "log"
[fold.house]
key = ["id"]
watch = ["price", "title", "status"]
max_vanished = 1.0
[[fold.house.from]]
dataset = "rent.list"
presence = true
newest_by = "seen_at"
[[fold.house.from]]
dataset = "rent.detail"
newest_by = "seen_at"
gone = { field = "http_status", is = 404 }
[fold.house.field]
title = { from = "list" }
city = { from = "list" }
price = { from = "list" }
area = { from = "list" }
rooms = { from = "list" }
url = { from = "list" }
address = { from = "detail" }
first_price = { rule = "first", from = "list", column = "price" }
sightings = { rule = "count", from = "list" }
days_absent = "days_absent"
first_seen = "first_seen"
last_seen = "last_seen"
detailed = { rule = "last_seen", from = "detail" }
print = { rule = "fingerprint", from = "list", of = ["price", "title"] }
print_at_detail = { rule = "copy", of = "print", at = "detail" }
[fold.house.field.status]
rule = "status"
start = "open"
move = [{ to = "open", when = { seen = "list" } }, { to = "closed", when = { gone = "detail" } }]
"""
COLUMNS = {
    "rent.list": [("id", "string"), ("title", "string"), ("city", "string"), ("price", "decimal(12,2)"), ("area", "float"),
                  ("rooms", "int"), ("url", "string"), ("seen_at", "timestamp")],
    "rent.detail": [("id", "string"), ("address", "string"), ("http_status", "int"), ("seen_at", "timestamp")],
}
LABELS = {"lakebed": "**Lakebed**", "lakebed-small": "**Lakebed**, `--memory 64`", "duckdb": "DuckDB, rows in any order",
          "duckdb-sorted": "DuckDB, `ORDER BY id`"}
DATES = ("2026-10-01", "2026-10-02")


def fold_part(options) -> str:
    rows = 20_000 if options.quick else 1_000_000
    python = venv_python()
    folder = build(options, rows, python)
    lake = folder / "lake"
    files = {name: only(lake / "clean" / f"rent.{name}" / f"dt={DATES[1]}") for name in ("list", "detail")}
    snapshot = only(lake / "feature" / "rent.house" / f"dt={DATES[0]}")
    out = OUT / "folded"

    def lakebed(*more) -> Run:
        copy = OUT / "project-fold-copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy, copy_function=link)
        return run([options.lakebed, "fold", "rent", "--date", DATES[1], "--format", "json", *more, "--project", copy])

    def duckdb(kind: str) -> Run:
        shutil.rmtree(out, ignore_errors=True)
        return run([python, BENCH / "fold_peer.py", "fold", snapshot, files["list"], files["detail"], out, kind])

    contestants = {"lakebed": lakebed, "lakebed-small": lambda: lakebed("--memory", "64"),
                   "duckdb": lambda: duckdb("plain"), "duckdb-sorted": lambda: duckdb("sorted")}
    lakebed()
    duckdb("sorted")
    own = OUT / "project-fold-copy" / "lake" / "feature"
    told = [say(python, only(own / "rent.house" / f"dt={DATES[1]}"), only(own / "rent.house_events" / f"dt={DATES[1]}")),
            say(python, out / "snapshot.parquet", out / "events.parquet")]
    if told[0] != told[1]:
        raise SystemExit(f"lakebed and DuckDB do not agree:\n{told[0]}\n{told[1]}")
    runs = rounds(options.rounds, contestants, "fold")
    text = [f"### A day of {rows:,} objects over the snapshot of the day before (17 fields, {told[0]['keys']:,} objects after it)\n",
            "| | seconds | CPU s | peak MB | to DuckDB, wall | CPU |", "| --- | --- | --- | --- | --- | --- |"]
    base = {what: median(runs["duckdb"], what) for what in ("wall_s", "cpu_s")}
    for name, label in LABELS.items():
        wall, cpu, peak = (median(runs[name], what) for what in ("wall_s", "cpu_s", "peak_mb"))
        text.append(f"| {label} | {wall:.2f} | {cpu:.2f} | {peak:.0f} | {wall / base['wall_s']:.2f} | {cpu / base['cpu_s']:.2f} |")
    ratio = max(median(runs["lakebed"], what) / base[what] for what in base)
    text.append(f"\nAt most {ratio:.2f} of DuckDB's wall and CPU time (target 1.0: {verdict(ratio <= 1.0)}). A whole process each, from its start to its "
                "end: Lakebed's with the commits, two durable files and the catalog.\n")
    for used in (folder, out, OUT / "project-fold-copy"):
        shutil.rmtree(used, ignore_errors=True)
    return "\n".join(text)


def link(source: str, target: str) -> None:
    """Files of the lake never change; all else is copied."""
    if "/lake/" in source and source.endswith(".parquet"):
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def only(folder: pathlib.Path) -> pathlib.Path:
    (path,) = folder.glob("schema_version=1/*.parquet")
    return path


def say(python: pathlib.Path, snapshot: pathlib.Path, events: pathlib.Path) -> dict:
    told = json.loads(run([python, BENCH / "fold_peer.py", "told", snapshot, events]).stdout)
    return {name: value for part in told for name, value in part.items()}


def build(options, rows: int, python: pathlib.Path) -> pathlib.Path:
    """A project with two days of rows, of which the first is folded."""
    made = fresh("fold-data")
    run([python, BENCH / "fold_peer.py", "make", made, rows])
    folder = OUT / "project-fold"
    shutil.rmtree(folder, ignore_errors=True)

    def call(*args) -> Run:
        return run([options.lakebed, *args, "--project", folder])

    run([options.lakebed, "init", folder, "--time-zone", "Asia/Taipei"])
    source = folder / "sources" / "rent"
    for dataset, columns in COLUMNS.items():
        schemas = source / "schemas" / dataset
        schemas.mkdir(parents=True)
        fields = "".join(f'\n[[field]]\nid = {i}\nname = "{n}"\ntype = "{t}"\n' for i, (n, t) in enumerate(columns, 1))
        (schemas / "v1.toml").write_text(f'dataset = "clean/{dataset}"\nversion = 1\n{fields}', encoding="utf-8")
    (source / "source.toml").write_text(SOURCE, encoding="utf-8")
    for dataset in COLUMNS:
        call("schema", "publish", f"clean/{dataset}", "1")
    call("fold", "rent", "--schema")
    for dataset in ("feature/rent.house", "feature/rent.house_events"):
        call("schema", "publish", dataset, "1")
    for day, date in enumerate(DATES, 1):
        for name in ("list", "detail"):
            call("ingest", f"clean/rent.{name}", made / f"{name}-{day}.parquet", "--date", date, "--complete")
    call("fold", "rent", "--date", DATES[0])
    note(f"fold: two days of {rows:,} objects are there, the first is folded")
    shutil.rmtree(made)
    return folder
