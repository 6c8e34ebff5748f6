#!/usr/bin/env python3
"""The benchmarks: `python3 bench/run.py` makes everything from nothing and writes docs/benchmarks.md.

    run.py [--quick] [--rounds N] [--lakebed PATH] [--harness PATH] [PART...]

Parts (default: all but scale and build):
    ingest      JSON lines and CSV to Parquet with declared types: time, CPU, peak memory, file size
    shapes      JSON lines with shuffled keys, and with missing keys, beside plain ones
    memory      peak memory while one call ingests 2 GB
    planning    planning of a one-day query over 5,000 files in 1,000 days
    queries     fifteen queries over one file, beside DuckDB on the same file
    days        one day of 60 against all of them
    commits     durable commits a second, beside DuckLake and delta-rs
    queue       claims and finishes a second on SQLite, PostgreSQL and MariaDB, beside bare SQL
    packs       size and speed of packs, beside `tar | zstd -9` and warcio
    parse       pages a second through declared rules, beside parsel and selectolax
    flow        what a stage costs beside its own work, beside GNU make
    fold        a day of a million objects over yesterday's snapshot, beside DuckDB with the same rules as SQL
    fetch       requests a second of a crawl, and its memory over a hundred thousand
    scale       audit, rebuild and planning at 100,000 partitions and 1,000,000 files (see --part-of-scale)
    build       a cold release build (some 15 to 30 minutes)

`--quick` takes a small part of the data and writes nothing into docs. `--lakebed` and `--harness` take built binaries
instead of building them. Python 3.11, standard library; the peers live in venvs that are made on first use.
"""

import argparse
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import time

import claims
import commits
import days
import fetch
import flows
import fold
import ingest
import packs
import parsing
import planning
import queries
import scale
from measure import OUT, ROOT, note, run, venv_python

PAGE = ROOT / "docs" / "benchmarks.md"


def build_part(options) -> str:
    target = OUT / "build"
    shutil.rmtree(target, ignore_errors=True)
    done = run(["cargo", "build", "--release", "--locked"], cwd=ROOT, env=os.environ | {"CARGO_TARGET_DIR": str(target)})
    size = (target / "release" / "lakebed").stat().st_size / 1e6
    shutil.rmtree(target)
    return (f"### Cold release build (`cargo build --release`, crates downloaded)\n\n"
            f"{done.wall_s / 60:.1f} minutes, {done.cpu_s:.0f} CPU seconds, binary {size:.0f} MB.\n")


PARTS = {"ingest": ingest.ingest_part, "shapes": ingest.shapes_part, "memory": ingest.memory_part,
         "planning": planning.planning_part, "queries": queries.queries_part, "days": days.days_part,
         "commits": commits.commits_part, "queue": claims.queue_part, "packs": packs.packs_part, "parse": parsing.parse_part, "fold": fold.fold_part, "flow": flows.flow_part, "fetch": fetch.fetch_part,
         "scale": scale.scale_part, "build": build_part}
LONG = {"scale", "build"}
# What a part measures against; queue, flow and scale have no peer in Python, build none at all.
PEERS = {"commits": ("lakes", "duckdb deltalake"), "queue": None, "flow": None, "packs": ("crawls", "warcio"), "fetch": ("crawls", "scrapy"), "parse": ("crawls", "parsel selectolax"),
         "scale": None, "build": None}


# ---------------------------------------------------------------- the page
def machine(options, part: str, load: float) -> str:
    """What the figures were measured on; `load` is the machine's load when the part began."""
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE).stdout.decode().strip()
    kind = PEERS.get(part, ("", "duckdb polars pyarrow dlt"))
    peers = ""
    if kind is not None:
        code = f"import importlib.metadata as m; print(', '.join(f'{{n}} {{m.version(n)}}' for n in '{kind[1]}'.split()))"
        peers = "; " + run([venv_python(kind[0]), "-c", code]).stdout.strip()
    binary = "" if options.built else ", a binary that was given"
    state = "quiet" if load < 0.5 else "busy: ratios count, seconds do not"
    return (f"{time.strftime('%Y-%m-%d')}, commit {commit}{binary}; {os.cpu_count()} x {model}, {memory:.0f} GiB, "
            f"{platform.system()}{peers}. Load before it began {load:.1f} ({state}).\n")


def write_section(name: str, text: str) -> None:
    """Replaces one section of the page; the others keep what they say."""
    begin, end = f"<!-- results: {name} -->", f"<!-- end: {name} -->"
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(begin)
    if not rest:
        raise SystemExit(f"{PAGE} has no section {name}")
    _, _, tail = rest.partition(end)
    PAGE.write_text(f"{head}{begin}\n{text.rstrip()}\n{end}{tail}", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lakebed", type=pathlib.Path)
    parser.add_argument("--harness", type=pathlib.Path)
    parser.add_argument("--part-of-scale", type=int, default=1, metavar="N", help="scale: the N-th part of the size")
    parser.add_argument("--keep", action="store_true", help="scale: keep the lake, and use the one that was kept")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all but scale and build)")
    options = parser.parse_args()
    options.parts = options.parts or [p for p in PARTS if p not in LONG]
    unknown = [p for p in options.parts if p not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}")
    return options


def main() -> None:
    options = arguments()
    OUT.mkdir(parents=True, exist_ok=True)
    options.built = options.lakebed is None
    if options.built and options.parts != ["build"]:
        note("building")
        run(["cargo", "build", "--release", "--locked"], cwd=ROOT)
        options.lakebed = ROOT / "target" / "release" / "lakebed"
    options.lakebed = options.lakebed and options.lakebed.resolve()
    options.harness = options.harness and options.harness.resolve()
    for part in options.parts:
        load, started = os.getloadavg()[0], time.perf_counter()
        text = PARTS[part](options) + "\n" + machine(options, part, load)
        note(f"{part}: {time.perf_counter() - started:.0f} s")
        print(text, flush=True)
        if not options.quick and options.part_of_scale == 1:
            write_section(part, text)


if __name__ == "__main__":
    main()
