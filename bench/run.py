#!/usr/bin/env python3
"""The benchmarks: `python3 bench/run.py` makes everything from nothing and writes docs/benchmarks.md.

    run.py [--quick] [--rounds N] [--lakebed PATH] [PART...]

Parts (default: ingest memory planning):
    ingest      JSON lines and CSV to Parquet with declared types: time, CPU, peak memory, file size
    memory      peak memory while one call ingests 2 GB
    planning    planning of a one-day query over 5,000 files in 1,000 days
    build       a cold release build (some 15 to 30 minutes; asked for by name only)

`--quick` takes a fiftieth of the data and writes nothing into docs. `--lakebed` takes a built binary instead of
building one. Python 3.11, standard library; the peers live in a venv that is made on first use.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "bench" / "out"
VENV = pathlib.Path(os.environ.get("LAKEBED_BENCH_VENV", ROOT / "target" / "bench-venv"))
PAGE = ROOT / "docs" / "benchmarks.md"
DATASET, DATE = "clean/rentals", "2026-11-30"

FIELDS = [
    ("id", "int"), ("title", "string"), ("url", "string"), ("city", "string"), ("price", "decimal(12,2)"),
    ("area", "float"), ("rooms", "int"), ("owner", "bool"), ("posted_at", "timestamp"), ("floor", "int"),
    ("description", "string"),
]
NESTED = '''
[[field]]
id = 12
name = "tags"
type = "list<string>"

[[field]]
id = 13
name = "agent"
type = "struct"
  [[field.field]]
  id = 14
  name = "name"
  type = "string"
  [[field.field]]
  id = 15
  name = "phone"
  type = "string"
'''


# ---------------------------------------------------------------- running and measuring
@dataclasses.dataclass
class Run:
    """One process from start to end."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    stdout: str
    stderr: str
    file_mb: float = 0.0


def run(command: list, **options) -> Run:
    """Runs a command to its end; its own resource usage comes from the kernel."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.perf_counter()
        child = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=out, stderr=err, **options)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", "replace"))
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\nended with {child.returncode}\n{texts[1] or texts[0]}")
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, *texts)


def folder_mb(folder: pathlib.Path) -> float:
    return sum(p.stat().st_size for p in folder.rglob("*.parquet")) / 1e6


def venv_python() -> pathlib.Path:
    wanted = (ROOT / "bench" / "requirements.txt").read_text(encoding="utf-8")
    mark = VENV / "installed.txt"
    if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
        print("installing the peers", file=sys.stderr)
        run([sys.executable, "-m", "venv", "--clear", VENV])
        run([VENV / "bin" / "pip", "install", "--quiet", "-r", ROOT / "bench" / "requirements.txt"])
        mark.write_text(wanted, encoding="utf-8")
    return VENV / "bin" / "python"


def data(form: str, rows: int) -> pathlib.Path:
    """The generated input, made once, and read once so that it is in the page cache."""
    path = OUT / "data" / f"rentals-{rows}.{form}"
    if not path.exists():
        print(f"generating {path.name}", file=sys.stderr)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        run([sys.executable, ROOT / "bench" / "generate.py", form, rows, part])
        part.rename(path)
    with path.open("rb") as f:
        while f.read(1 << 24):
            pass
    return path


# ---------------------------------------------------------------- Lakebed
class Project:
    """A fresh project with the schema published."""

    def __init__(self, binary: pathlib.Path, name: str, nested: bool) -> None:
        self.binary, self.folder = binary, OUT / name
        shutil.rmtree(self.folder, ignore_errors=True)
        run([binary, "init", self.folder, "--time-zone", "Asia/Taipei"])
        source = self.folder / "sources" / "rentals"
        (source / "schemas" / "rentals").mkdir(parents=True, exist_ok=True)
        (source / "source.toml").write_text('class = "log"\n', encoding="utf-8")
        fields = "".join(f'\n[[field]]\nid = {i}\nname = "{n}"\ntype = "{t}"\n' for i, (n, t) in enumerate(FIELDS, 1))
        text = f'dataset = "{DATASET}"\nversion = 1\nnote = "benchmark"\n' + fields + (NESTED if nested else "")
        (source / "schemas" / "rentals" / "v1.toml").write_text(text, encoding="utf-8")
        self.call("schema", "publish", DATASET, "1")

    def call(self, *args) -> Run:
        return run([self.binary, *args, "--project", self.folder])

    def ingest(self, path: pathlib.Path, date: str = DATE) -> Run:
        done = self.call("ingest", DATASET, path, "--date", date, "--format", "json")
        return done

    @property
    def data_folder(self) -> pathlib.Path:
        return self.folder / "lake" / "clean" / "rentals"


def lakebed_round(binary: pathlib.Path, form: str, path: pathlib.Path, rows: int) -> Run:
    project = Project(binary, f"project-{form}", nested=form == "jsonl")
    done = project.ingest(path)
    stored = json.loads(done.stdout)["rows"]
    if stored != rows:
        raise SystemExit(f"lakebed stored {stored} of {rows} rows")
    done.file_mb = folder_mb(project.data_folder)
    shutil.rmtree(project.folder)
    return done


def peer_round(python: pathlib.Path, peer: str, form: str, path: pathlib.Path, rows: int) -> Run:
    target = OUT / f"peer-{peer}"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    done = run([python, ROOT / "bench" / "peer.py", peer, form, path, target])
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


# ---------------------------------------------------------------- parts
def median(runs: list[Run], what: str) -> float:
    return statistics.median(getattr(r, what) for r in runs)


NAMES = {"lakebed": "**Lakebed**", "duckdb": "DuckDB, order kept", "duckdb_unordered": "DuckDB, order not kept",
         "polars": "Polars", "pyarrow": "pyarrow", "dlt": "dlt"}


def ingest_part(options) -> str:
    rows = 24_000 if options.quick else 1_200_000
    python, text = venv_python(), []
    for form, title in (("jsonl", "JSON lines"), ("csv", "CSV")):
        path = data(form, rows)
        runs: dict[str, list[Run]] = {}
        contestants = ["lakebed", "duckdb", "duckdb_unordered", "polars", "pyarrow"]
        for i in range(options.rounds):
            # Every round begins with another one, so that nobody always follows the same neighbour.
            for name in contestants[i % 5:] + contestants[:i % 5]:
                if name == "lakebed":
                    done = lakebed_round(options.lakebed, form, path, rows)
                else:
                    done = peer_round(python, name, form, path, rows)
                runs.setdefault(name, []).append(done)
                print(f"{form} {i + 1}/{options.rounds} {name}: {done.wall_s:.2f} s, {done.cpu_s:.2f} CPU s, "
                      f"{done.peak_mb:.0f} MB, file {done.file_mb:.1f} MB", file=sys.stderr)
        text.append(ingest_table(f"{title}: {rows:,} records, {path.stat().st_size / 1e6:.0f} MB", runs, contestants))
        text.append(ingest_verdict(form, runs))
    text.append(dlt_line(python, options))
    return "\n".join(text)


def ingest_table(title: str, runs: dict[str, list[Run]], contestants: list[str]) -> str:
    ours = median(runs["lakebed"], "wall_s")
    lines = [f"### {title}, median of {len(runs['lakebed'])} rounds\n",
             "| | wall s | CPU s | peak MB | file MB | wall / Lakebed |", "| --- | --- | --- | --- | --- | --- |"]
    for name in contestants:
        wall, cpu, peak, size = (median(runs[name], w) for w in ("wall_s", "cpu_s", "peak_mb", "file_mb"))
        lines.append(f"| {NAMES[name]} | {wall:.2f} | {cpu:.2f} | {peak:.0f} | {size:.1f} | {wall / ours:.2f} |")
    return "\n".join(lines) + "\n"


def verdict(good: bool) -> str:
    return "met" if good else "**missed**"


def ingest_verdict(form: str, runs: dict[str, list[Run]]) -> str:
    ours, theirs = runs["lakebed"], runs["duckdb"]
    speed = median(theirs, "wall_s") / median(ours, "wall_s")
    memory = median(ours, "peak_mb") / median(theirs, "peak_mb")
    size = median(ours, "file_mb") / median(theirs, "file_mb")
    target = {"jsonl": 1.2, "csv": 1.1}[form]
    return (f"Against DuckDB with order kept: {speed:.2f} times as fast (target {target}: {verdict(speed >= target)}), "
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


DUCKDB_PLANNING = """
import statistics, sys, time
import duckdb
con = duckdb.connect()
con.execute("SET threads = 2")
query = (f"SELECT count(*), sum(price) FROM read_parquet('{sys.argv[1]}/dt=*/schema_version=*/*.parquet', "
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
    glob = run([python, "-c", DUCKDB_PLANNING, project.data_folder, date]).stdout.split()
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
    import datetime
    return str(datetime.date(2024, 1, 1) + datetime.timedelta(days=n))


def build_days(project: Project, days: int, each: int) -> None:
    """A lake of many small files, each committed by a call of its own."""
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
            print(f"planning: {n + 1} commits in {time.perf_counter() - started:.0f} s", file=sys.stderr)


def build_part(options) -> str:
    target = OUT / "build"
    shutil.rmtree(target, ignore_errors=True)
    before = os.times()
    done = run(["cargo", "build", "--release", "--locked"], cwd=ROOT, env=os.environ | {"CARGO_TARGET_DIR": str(target)})
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    size = (target / "release" / "lakebed").stat().st_size / 1e6
    shutil.rmtree(target)
    return (f"### Cold release build (`cargo build --release`, crates downloaded)\n\n"
            f"{done.wall_s / 60:.1f} minutes, {cpu:.0f} CPU seconds, binary {size:.0f} MB.\n")


PARTS = {"ingest": ingest_part, "memory": memory_part, "planning": planning_part, "build": build_part}


# ---------------------------------------------------------------- the page
def machine(python: pathlib.Path | None) -> str:
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE).stdout.decode().strip()
    peers = ""
    if python is not None:
        names = "duckdb polars pyarrow dlt"
        code = f"import importlib.metadata as m; print(', '.join(f'{{n}} {{m.version(n)}}' for n in '{names}'.split()))"
        peers = "; " + run([python, "-c", code]).stdout.strip()
    return (f"{time.strftime('%Y-%m-%d')}, commit {commit}; {os.cpu_count()} x {model}, {memory:.0f} GiB, "
            f"{platform.system()}{peers}.\n")


def write_section(name: str, text: str) -> None:
    """Replaces one section of the page; the others keep what they say."""
    begin, end = f"<!-- results: {name} -->", f"<!-- end: {name} -->"
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(begin)
    if not rest:
        raise SystemExit(f"{PAGE} has no section {name}")
    _, _, tail = rest.partition(end)
    PAGE.write_text(f"{head}{begin}\n{text.rstrip()}\n{end}{tail}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lakebed", type=pathlib.Path)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} (default: all but build)")
    options = parser.parse_args()
    parts = options.parts or ["ingest", "memory", "planning"]
    unknown = [p for p in parts if p not in PARTS]
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}")
    OUT.mkdir(parents=True, exist_ok=True)
    if options.lakebed is None and parts != ["build"]:
        print("building", file=sys.stderr)
        run(["cargo", "build", "--release", "--locked"], cwd=ROOT)
        options.lakebed = ROOT / "target" / "release" / "lakebed"
    if options.lakebed is not None:
        options.lakebed = options.lakebed.resolve()
    for part in parts:
        text = PARTS[part](options) + "\n" + machine(None if part == "build" else venv_python())
        print(text)
        if not options.quick:
            write_section(part, text)


if __name__ == "__main__":
    main()
