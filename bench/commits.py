"""Durable commits a second: ten rows a commit, one writer and four, beside DuckLake and delta-rs.

Every contestant commits the same rows into one table, and a commit counts when it is acknowledged. The rows that a
new reader finds at the end are counted: a commit that was acknowledged and is not there ends the run.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

import postgres
from measure import BENCH, OUT, data, fresh, harness, note, run, venv_python
from project import DATASET, DATE, Project

ROWS = 10
NAMES = {
    "lakebed process": "**Lakebed**, a new process for each commit",
    "lakebed threads": "**Lakebed**, threads of one process",
    "ducklake-sqlite": "DuckLake, SQLite",
    "ducklake-inlined": "DuckLake, SQLite, rows inlined into the catalog",
    "ducklake-postgres": "DuckLake, PostgreSQL",
    "delta": "delta-rs",
}


@dataclasses.dataclass
class Tally:
    """What some writers did together."""

    wall_s: float
    cpu_s: float
    latencies_ms: list[float]
    again: int = 0
    given_up: list[str] = dataclasses.field(default_factory=list)

    @property
    def per_second(self) -> float:
        return len(self.latencies_ms) / self.wall_s


def commits_part(options) -> str:
    total = 20 if options.quick else 200
    inputs = write_inputs(total)
    tallies: dict[tuple[str, int], list[Tally]] = {}
    puts: list[float] = []
    with postgres.server() as connection:
        contestants = contestants_of(options, inputs, connection)
        names = [(name, writers) for name in contestants for writers in (1, 4)]
        for i in range(options.rounds):
            puts.append(put_latency_ms())
            at = i % len(names)
            for name, writers in names[at:] + names[:at]:
                tally = contestants[name](writers)
                tallies.setdefault((name, writers), []).append(tally)
                note(f"commits {i + 1}/{options.rounds} {name}, {writers} writers: {tally.per_second:.1f} a second, "
                     f"{tally.again} tried again, {len(tally.given_up)} given up")
        syncs = {name: syncs_per_commit(options, name, inputs, connection) for name in contestants}
    shutil.rmtree(inputs)
    return table(tallies, puts, syncs, total, options.rounds)


def write_inputs(total: int) -> pathlib.Path:
    """One file of JSON lines for each commit, its nested fields left out."""
    folder = fresh("commits-inputs")
    lines = data("jsonl", 24_000).read_text(encoding="utf-8").splitlines()
    for n in range(total):
        flat = [line[:line.index(',"tags":[')] + "}" for line in lines[n * ROWS:(n + 1) * ROWS]]
        (folder / f"{n:05}.jsonl").write_text("\n".join(flat) + "\n", encoding="utf-8")
    return folder


def put_latency_ms() -> float:
    """What durability costs here: one kilobyte put where nothing was (write, fsync, link, fsync of the folder)."""
    folder, times = fresh("commits-probe"), []
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for n in range(50):
        started = time.perf_counter()
        temp = folder / f"{n}.tmp"
        file = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(file, b"x" * 1024)
        os.fsync(file)
        os.close(file)
        os.link(temp, folder / f"{n}.json")
        os.unlink(temp)
        os.fsync(handle)
        times.append((time.perf_counter() - started) * 1000)
    os.close(handle)
    shutil.rmtree(folder)
    return statistics.median(times)


def contestants_of(options, inputs: pathlib.Path, connection: str | None) -> dict:
    found = {"lakebed process": lambda writers: lakebed_processes(options, inputs, writers),
             "lakebed threads": lambda writers: lakebed_threads(options, inputs, writers)}
    for kind in ("ducklake-sqlite", "ducklake-inlined", "ducklake-postgres", "delta"):
        if kind != "ducklake-postgres" or connection is not None:
            found[kind] = lambda writers, kind=kind: peer(kind, inputs, writers, connection)
    return found


def lakebed_processes(options, inputs: pathlib.Path, writers: int) -> Tally:
    project = Project(options.lakebed, "project-commits", nested=False)
    files = sorted(inputs.iterdir())
    tally = Tally(0, 0, [])

    def writer(mine: list[pathlib.Path]) -> None:
        for path in mine:
            done = project.call("ingest", DATASET, path, "--date", DATE, "--quiet")
            tally.latencies_ms.append(done.wall_s * 1000)
            tally.cpu_s += done.cpu_s

    threads = [threading.Thread(target=writer, args=(files[n::writers],)) for n in range(writers)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tally.wall_s = time.perf_counter() - started
    check_lakebed(project, len(tally.latencies_ms), len(files))
    return tally


def lakebed_threads(options, inputs: pathlib.Path, writers: int) -> Tally:
    project = Project(options.lakebed, "project-commits", nested=False)
    done = run([harness(options), "commits", project.folder, DATASET, DATE, inputs, writers])
    answer = json.loads(done.stdout)
    check_lakebed(project, answer["acknowledged"], len(list(inputs.iterdir())))
    return Tally(answer["wall_s"], done.cpu_s, answer["latencies_ms"], given_up=answer["refused"])


def check_lakebed(project: Project, acknowledged: int, wanted: int) -> None:
    query = f"SELECT count(*) AS n FROM clean.rentals WHERE dt = '{DATE}'"
    there = json.loads(project.call("sql", query, "--format", "json").stdout)[0]["n"]
    if acknowledged != wanted or there != wanted * ROWS:
        raise SystemExit(f"lakebed acknowledged {acknowledged} of {wanted} commits, {there} rows are there")
    shutil.rmtree(project.folder)


def peer_place(kind: str, connection: str | None) -> str:
    folder = fresh("peer-commits")
    (folder / "data").mkdir()
    if kind != "ducklake-postgres":
        return str(folder)
    # Every run gets a database of its own.
    name = f"lake{time.monotonic_ns()}"
    run(["psql", "-q", connection, "-c", f"CREATE DATABASE {name}"])
    return f"{folder}::" + connection.replace("dbname=postgres", f"dbname={name}")


def peer(kind: str, inputs: pathlib.Path, writers: int, connection: str | None) -> Tally:
    python, script, place = venv_python("lakes"), BENCH / "commit_peer.py", peer_place(kind, connection)
    run([python, script, "make", kind, place, inputs])
    children = [subprocess.Popen([python, script, "write", kind, place, inputs, str(n), str(writers)],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for n in range(writers)]
    for child in children:
        if child.stdout.readline().strip() != "ready":
            raise SystemExit(f"{kind}: a writer did not begin")
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    answers = [json.loads(child.communicate()[0]) for child in children]
    latencies = [ms for a in answers for ms in a["latencies_ms"]]
    tally = Tally(max(a["end"] for a in answers) - min(a["begin"] for a in answers),
                  sum(a["cpu_s"] for a in answers), latencies,
                  sum(a["again"] for a in answers), [g for a in answers for g in a["given_up"]])
    rows = int(run([python, script, "count", kind, place, inputs]).stdout)
    if rows < len(latencies) * ROWS:
        raise SystemExit(f"{kind} acknowledged {len(latencies)} commits, {rows} rows are there")
    shutil.rmtree(OUT / "peer-commits")
    return tally


def syncs_per_commit(options, name: str, inputs: pathlib.Path, connection: str | None) -> float | None:
    """How often a writer's process asks the kernel for durability: the calls of ten commits more, by ten. The
    server's own are not among them. `None` where strace is not installed."""
    if shutil.which("strace") is None:
        return None
    counts = []
    for commits in (10, 20):
        few = fresh("commits-few")
        for path in sorted(inputs.iterdir())[:commits]:
            shutil.copy(path, few)
        counts.append(count_syncs(options, name, few, connection))
        shutil.rmtree(few)
    return (counts[1] - counts[0]) / 10


def count_syncs(options, name: str, few: pathlib.Path, connection: str | None) -> int:
    with tempfile.NamedTemporaryFile("r") as trace:
        def traced(command: list, text: str = "") -> None:
            run(["strace", "-f", "-o", f"{trace.name}", "-A", "-e", "trace=fsync,fdatasync", *command], text=text)
        if name.startswith("lakebed"):
            project = Project(options.lakebed, "project-commits", nested=False)
            if name == "lakebed threads":
                traced([harness(options), "commits", project.folder, DATASET, DATE, few, 1])
            else:
                for path in sorted(few.iterdir()):
                    traced([project.binary, "ingest", DATASET, path, "--date", DATE, "--quiet", "--project",
                            project.folder])
        else:
            place = peer_place(name, connection)
            command = [venv_python("lakes"), BENCH / "commit_peer.py"]
            run([*command, "make", name, place, few])
            traced([*command, "write", name, place, few, 0, 1], text="go\n")
        return len(re.findall(r"(fsync|fdatasync)\(", pathlib.Path(trace.name).read_text()))


def table(tallies: dict, puts: list[float], syncs: dict, total: int, count: int) -> str:
    put = statistics.median(puts)
    lines = [f"### Commits of {ROWS} rows, acknowledged one by one: {total} in all, median of {count} rounds\n",
             "| | writers | commits a second | by the disk's puts | CPU ms a commit | median ms | slowest ms | tried again | "
             "given up | fsyncs a commit |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for (name, writers), done in tallies.items():
        def mid(of):
            return statistics.median(of(t) for t in done)
        rate = mid(lambda t: t.per_second)
        sync = "" if syncs[name] is None else f"{syncs[name]:.1f}"
        lines.append(f"| {NAMES[name]} | {writers} | {rate:.1f} | {rate * put / 1000:.2f} | "
                     f"{mid(lambda t: t.cpu_s * 1000 / max(1, len(t.latencies_ms))):.1f} | "
                     f"{mid(lambda t: statistics.median(t.latencies_ms or [0])):.1f} | "
                     f"{mid(lambda t: max(t.latencies_ms or [0])):.0f} | {mid(lambda t: t.again):.0f} | "
                     f"{mid(lambda t: len(t.given_up)):.0f} | {sync} |")
    lines.append(f"\nOne kilobyte put where nothing was (write, fsync, link, fsync of the folder) took {put:.2f} ms "
                 f"(rounds {min(puts):.2f} to {max(puts):.2f}) in the same folder; \"by the disk's puts\" is the rate by "
                 "how many such puts a second there could be. Lakebed's CPU is of whole processes; a peer's CPU is from its first "
                 "commit on, with nothing of a PostgreSQL server.\n")
    return "\n".join(lines)
