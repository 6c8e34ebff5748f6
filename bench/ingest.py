"""Ingest: files to Parquet with declared types, against tools that convert files."""

import json
import pathlib
import shutil

from measure import BENCH, Run, data, folder_mb, fresh, median, rounds, run, venv_python, verdict
from project import Project

NAMES = {"lakebed": "**Lakebed**", "duckdb": "DuckDB, order kept", "duckdb_unordered": "DuckDB, order not kept",
         "polars": "Polars", "pyarrow": "pyarrow", "dlt": "dlt"}
# Wall time of DuckDB with order kept by ours.
TARGETS = {"jsonl": 1.5, "csv": 1.3}  # of DuckDB, in wall and CPU time
SHAPES = {"jsonl": "keys in the schema's order", "jsonl-shuffled": "keys in an order of each record's own",
          "jsonl-sparse": "three in ten keys missing"}


def lakebed_round(binary: pathlib.Path, form: str, path: pathlib.Path, rows: int) -> Run:
    project = Project(binary, f"project-{form}", nested=form != "csv")
    done = project.ingest(path)
    stored = json.loads(done.stdout)["rows"]
    if stored != rows:
        raise SystemExit(f"lakebed stored {stored} of {rows} rows")
    done.file_mb = folder_mb(project.data_folder)
    shutil.rmtree(project.folder)
    return done


def peer_round(python: pathlib.Path, peer: str, form: str, path: pathlib.Path, rows: int) -> Run:
    target = fresh(f"peer-{peer}")
    done = run([python, BENCH / "peer.py", peer, form.partition("-")[0], path, target])
    # What it says of its own work, without the start of Python and the loading of libraries.
    done.wall_s = float(done.stdout.strip().splitlines()[-1])
    done.file_mb = folder_mb(target)
    count = "import sys, pyarrow.parquet as pq; print(pq.ParquetFile(sys.argv[1]).metadata.num_rows)"
    if (target / "out.parquet").exists():
        stored = int(run([python, "-c", count, target / "out.parquet"]).stdout)
        if stored != rows:
            raise SystemExit(f"{peer} stored {stored} of {rows} rows")
    shutil.rmtree(target)
    return done


def one_round(options, python: pathlib.Path, name: str, form: str, rows: int):
    path = data(form, rows)
    if name == "lakebed":
        return lambda: lakebed_round(options.lakebed, form, path, rows)
    return lambda: peer_round(python, name, form, path, rows)


def ingest_part(options) -> str:
    rows = 24_000 if options.quick else 1_200_000
    python, text = venv_python(), []
    names = ["lakebed", "duckdb", "duckdb_unordered", "polars", "pyarrow"]
    for form, title in (("jsonl", "JSON lines"), ("csv", "CSV")):
        contestants = {name: one_round(options, python, name, form, rows) for name in names}
        runs = rounds(options.rounds, contestants, form)
        size = data(form, rows).stat().st_size / 1e6
        text.append(table(f"{title}: {rows:,} records, {size:.0f} MB", runs))
        text.append(ingest_verdict(form, runs))
    text.append(dlt_line(python, options))
    return "\n".join(text)


def table(title: str, runs: dict[str, list[Run]]) -> str:
    ours = median(runs["lakebed"], "wall_s")
    lines = [f"### {title}, median of {len(runs['lakebed'])} rounds\n",
             "| | wall s | CPU s | peak MB | file MB | wall / Lakebed |", "| --- | --- | --- | --- | --- | --- |"]
    for name, done in runs.items():
        wall, cpu, peak, size = (median(done, w) for w in ("wall_s", "cpu_s", "peak_mb", "file_mb"))
        lines.append(f"| {NAMES[name]} | {wall:.2f} | {cpu:.2f} | {peak:.0f} | {size:.1f} | {wall / ours:.2f} |")
    return "\n".join(lines) + "\n"


def ingest_verdict(form: str, runs: dict[str, list[Run]]) -> str:
    ours, theirs = runs["lakebed"], runs["duckdb"]
    speed = median(theirs, "wall_s") / median(ours, "wall_s")
    cpu = median(theirs, "cpu_s") / median(ours, "cpu_s")
    memory = median(ours, "peak_mb") / median(theirs, "peak_mb")
    size = median(ours, "file_mb") / median(theirs, "file_mb")
    target = TARGETS[form]
    return (f"Against DuckDB with order kept: {speed:.2f} times as fast, {cpu:.2f} in CPU "
            f"(target {target} for both: {verdict(min(speed, cpu) >= target)}), "
            f"{memory:.2f} of the memory (target a third: {verdict(memory <= 1 / 3)}), "
            f"file size {size:.2f} (target within 5 %: {verdict(size <= 1.05)}).\n")


def dlt_line(python: pathlib.Path, options) -> str:
    rows = 2_000 if options.quick else 50_000
    path = data("jsonl", rows)
    theirs = [peer_round(python, "dlt", "jsonl", path, rows) for _ in range(3)]
    ours = [lakebed_round(options.lakebed, "jsonl", path, rows) for _ in range(3)]
    a, b = median(ours, "wall_s"), median(theirs, "wall_s")
    return (f"dlt normalises record by record in Python, so it is measured on {rows:,} of the JSON records: "
            f"{b:.1f} s ({rows / b:,.0f} records/s), Lakebed {a:.2f} s ({rows / a:,.0f} records/s): {b / a:.0f} times.\n")


def shapes_part(options) -> str:
    """The same records with their keys in any order, or with keys missing, in the same rounds as the plain ones."""
    rows = 24_000 if options.quick else 1_200_000
    python = venv_python()
    contestants = {f"{name} {form}": one_round(options, python, name, form, rows)
                   for form in SHAPES for name in ("lakebed", "duckdb")}
    runs = rounds(options.rounds, contestants, "shapes")
    lines = [f"### JSON lines of other shapes: {rows:,} records, median of {options.rounds} rounds\n",
             "| records | MB | Lakebed wall s | CPU s | DuckDB wall s | CPU s | wall, DuckDB / Lakebed | CPU |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    target, good = TARGETS["jsonl"], True
    for form, what in SHAPES.items():
        ours, theirs = runs[f"lakebed {form}"], runs[f"duckdb {form}"]
        a, b, c, d = (median(r, w) for r in (ours, theirs) for w in ("wall_s", "cpu_s"))
        size = data(form, rows).stat().st_size / 1e6
        lines.append(f"| {what} | {size:.0f} | {a:.2f} | {b:.2f} | {c:.2f} | {d:.2f} | {c / a:.2f} | {d / b:.2f} |")
        good = good and min(c / a, d / b) >= target
    return "\n".join(lines) + (f"\n\nDuckDB keeps the order of rows. Target: {target} times as fast for every shape, in wall and CPU time, "
                               f"as for plain JSON lines: {verdict(good)}.\n")


def memory_part(options) -> str:
    rows = 84_000 if options.quick else 4_250_000
    python, path = venv_python(), data("jsonl", rows)
    ours = lakebed_round(options.lakebed, "jsonl", path, rows)
    theirs = peer_round(python, "duckdb", "jsonl", path, rows)
    size = path.stat().st_size
    path.unlink()
    mib = ours.peak_mb
    return (f"### Peak memory while ingesting {size / 1e9:.1f} GB of JSON lines in one call\n\n"
            f"Lakebed {mib:.0f} MiB in {ours.wall_s:.1f} s (target under 700 MiB: {verdict(mib < 700)}); "
            f"DuckDB, order kept, {theirs.peak_mb:.0f} MiB in {theirs.wall_s:.1f} s.\n")
