"""Running contestants and measuring them: processes, rounds, medians, the peers' environments, generated data."""

import dataclasses
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"
OUT = BENCH / "out"
VENV = pathlib.Path(os.environ.get("LAKEBED_BENCH_VENV", ROOT / "target" / "bench-venv"))


@dataclasses.dataclass
class Run:
    """One process from start to end; what a part measures beside that goes into `extra`."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    stdout: str
    stderr: str
    file_mb: float = 0.0
    extra: dict = dataclasses.field(default_factory=dict)


def run(command: list, text: str | None = None, **options) -> Run:
    """Runs a command to its end; its own resource usage comes from the kernel. `text` is its standard input.

    The peak is never less than what this process holds at that moment (some 40 MB): Linux counts it from before exec.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.TemporaryFile() as given:
        given.write((text or "").encode())
        given.seek(0)
        started = time.perf_counter()
        child = subprocess.Popen([str(c) for c in command], stdin=given, stdout=out, stderr=err, **options)
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


def rounds(count: int, contestants: dict[str, Callable[[], Run]], title: str) -> dict[str, list[Run]]:
    """Every contestant once a round; every round begins with another one, so that nobody always follows the
    same neighbour."""
    names, runs = list(contestants), {name: [] for name in contestants}
    for i in range(count):
        at = i % len(names)
        for name in names[at:] + names[:at]:
            done = contestants[name]()
            runs[name].append(done)
            note(f"{title} {i + 1}/{count} {name}: {done.wall_s:.3f} s, {done.cpu_s:.3f} CPU s, {done.peak_mb:.0f} MB")
    return runs


def median(runs: list[Run], what: str) -> float:
    return statistics.median(getattr(r, what) if hasattr(r, what) else r.extra[what] for r in runs)


def verdict(good: bool) -> str:
    return "met" if good else "**missed**"


def note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def folder_mb(folder: pathlib.Path) -> float:
    return sum(p.stat().st_size for p in folder.rglob("*.parquet")) / 1e6


def venv_python(kind: str = "") -> pathlib.Path:
    """Python with the peers of `requirements.txt`, or with those of `requirements-KIND.txt`."""
    suffix = f"-{kind}" if kind else ""
    wanted = (BENCH / f"requirements{suffix}.txt").read_text(encoding="utf-8")
    folder = VENV.with_name(VENV.name + suffix)
    mark = folder / "installed.txt"
    if not mark.exists() or mark.read_text(encoding="utf-8") != wanted:
        note("installing the peers")
        run([sys.executable, "-m", "venv", "--clear", folder])
        run([folder / "bin" / "pip", "install", "--quiet", "-r", BENCH / f"requirements{suffix}.txt"])
        mark.write_text(wanted, encoding="utf-8")
    return folder / "bin" / "python"


def data(form: str, rows: int) -> pathlib.Path:
    """The generated input (`jsonl`, `csv`, `jsonl-shuffled`, ...), made once, and read once so that it is in the
    page cache."""
    kind, _, variant = form.partition("-")
    path = OUT / "data" / f"rentals-{rows}{'-' + variant if variant else ''}.{kind}"
    if not path.exists():
        note(f"generating {path.name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        run([sys.executable, BENCH / "generate.py", form, rows, part])
        part.rename(path)
    with path.open("rb") as f:
        while f.read(1 << 24):
            pass
    return path


def built(name: str) -> pathlib.Path:
    """A program of the release build: both are made at once, with the same features of what they share."""
    note(f"building {name}")
    run(["cargo", "build", "--release", "--locked", "-p", "lakebed-cli", "-p", "lakebed-bench"], cwd=ROOT)
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / name


def harness(options) -> pathlib.Path:
    """The small program of bench/harness, built where none is given."""
    options.harness = options.harness or built("lakebed-bench")
    return options.harness


def fresh(name: str) -> pathlib.Path:
    """An empty folder below bench/out."""
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
