#!/usr/bin/env python3
"""Kill `lakebed` at every named kill point, and look at the lake with folder readers before any repair.

    kill_points.py --lakebed target/debug/lakebed [POINT...]

Needs a debug build (release builds contain no kill points) and the venv of requirements.txt. For every point in
crates/lakebed/src/fault.rs but those of packs (crates/lakebed/tests/pack_kill.rs attacks them) and of `parse`
(crates/lakebed-cli/tests/it/parse_runs.rs), in every situation whose command reaches it:

1. the command dies there, as `kill -9` would end it;
2. before anything else opens the lake, DuckDB, Polars, pyarrow, pandas and ClickHouse read its folders: they agree, they
   see every acknowledged row once, nothing twice, and other rows only when the log has their record; of a date whose
   revision is being switched they may miss rows, but never see old and new ones together;
3. `lakebed sql` sees exactly what the log says;
4. one copy of the lake is repaired: the audit is clean, the rows are those of the log;
5. in another copy the same command is called again, as an operator would: it succeeds, every row is there once, and the
   audit is clean after a repair;
6. a catalog that is rebuilt from the lake answers the same.

A point that no situation reaches is a failure: nothing would attack it.
"""

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import lines
import readers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATASET, LINES, KEY = "clean/kill", "clean/kill.lines", "k"
SEALED, OPEN_DAY = "2026-11-28", "2026-11-29"
SCHEMA = """dataset = "clean/kill"
version = {version}
{base}
[[field]]
id = 1
name = "k"
type = "int"
required = true

[[field]]
id = 2
name = "title"
type = "string"
"""
ADDED = """
[[field]]
id = {id}
name = "{name}"
type = "string"
"""


FOLD = """
[fold.thing]
key = ["k"]
[[fold.thing.from]]
name = "list"
dataset = "kill"
presence = true
[fold.thing.field]
title = "newest"
days_absent = "days_absent"
seen = "last_seen"
[seed]
fold = "thing"
url = "https://kill.example/{k}"
detailed = "seen"
"""


class Failure(Exception):
    """What is wrong after a kill."""


class Lake:
    """A project folder and the commands on it."""

    dataset = DATASET

    def __init__(self, binary: pathlib.Path, folder: pathlib.Path) -> None:
        self.binary, self.folder = binary, folder

    @property
    def root(self) -> str:
        return str(self.folder / "lake" / self.dataset)

    def call(self, *args, kill: str | None = None, checkpoints: bool = False) -> subprocess.CompletedProcess:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LAKEBED_")}
        if kill is not None:
            environment["LAKEBED_KILL_POINT"] = kill
        if checkpoints:
            environment["LAKEBED_CHECKPOINT_EVERY"] = "1"
        return subprocess.run([self.binary, *map(str, args), "--project", self.folder], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, timeout=120)

    def ok(self, *args) -> str:
        done = self.call(*args)
        if done.returncode != 0:
            said = (done.stderr or done.stdout).decode(errors="replace").strip()
            raise Failure(f"`lakebed {' '.join(map(str, args))}` ended with {done.returncode}: {said}")
        return done.stdout.decode("utf-8")

    def copy(self, name: str) -> "Lake":
        target = self.folder.with_name(name)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.folder, target)
        return type(self)(self.binary, target)

    def records(self) -> int:
        return len(list((self.folder / "lake" / "_lake" / "log" / self.dataset).glob("*.json")))

    def sql_keys(self) -> collections.Counter:
        rows = json.loads(self.ok("sql", "SELECT k FROM clean.kill", "--format", "json") or "[]")
        return collections.Counter(int(row["k"]) for row in rows)

    def folder_keys(self) -> collections.Counter:
        """What all five readers see; they must agree."""
        seen = {}
        for reader in readers.READERS:
            try:
                seen[reader.name] = collections.Counter(int(float(t)) for t in reader().texts(self.root, KEY))
            except Exception as error:  # noqa: BLE001: whatever a reader raises is the finding
                raise Failure(f"{reader.name} cannot read the folder: {type(error).__name__}: {error}") from error
        first = seen["duckdb"]
        for name, keys in seen.items():
            if keys != first:
                raise Failure(f"{name} sees {keys.total()} rows, duckdb {first.total()}")
        return first

    def write(self, name: str, keys: range, bad: int = 0) -> pathlib.Path:
        path = self.folder / name
        lines = [json.dumps({"k": k, "title": f"第 {k} 行"}, ensure_ascii=False) for k in keys]
        lines += [json.dumps({"k": "no number", "title": str(i)}) for i in range(bad)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    def write_schema(self, version: int) -> None:
        folder = self.folder / "sources" / "kill" / "schemas" / "kill"
        folder.mkdir(parents=True, exist_ok=True)
        text = SCHEMA.format(version=version, base=f"base = {version - 1}" if version > 1 else "")
        for number in range(2, version + 1):
            text += ADDED.format(id=number + 1, name=f"extra_{number}")
        (folder / f"v{version}.toml").write_text(text, encoding="utf-8")


class LinesLake(Lake):
    """The same keys as JSON lines: a dataset without a schema."""

    dataset = LINES

    def sql_keys(self) -> collections.Counter:
        query = "SELECT CAST(json_get(json, '/k') AS BIGINT) AS k FROM clean.kill.lines"
        rows = json.loads(self.ok("sql", query, "--format", "json") or "[]")
        return collections.Counter(int(row["k"]) for row in rows)

    def folder_keys(self) -> collections.Counter:
        seen = {}
        for name, read in lines.READERS.items():
            try:
                seen[name] = collections.Counter(json.loads(line)[KEY] for line in read(self.root))
            except Exception as error:  # noqa: BLE001: whatever a reader raises is the finding
                raise Failure(f"{name} cannot read the folder: {type(error).__name__}: {error}") from error
        first = seen["duckdb"]
        for name, keys in seen.items():
            if keys != first:
                raise Failure(f"{name} sees {keys.total()} rows, duckdb {first.total()}")
        return first

    def write(self, name: str, keys: range, bad: int = 0) -> pathlib.Path:
        path = super().write(name, keys)
        with path.open("a", encoding="utf-8") as file:
            file.write("no JSON\n" * bad)
        return path


ACKNOWLEDGED = collections.Counter(range(400))


def make_base(binary: pathlib.Path, folder: pathlib.Path) -> Lake:
    """A sealed date, an open date with partitions of two schema versions, a third version to publish."""
    lake = Lake(binary, folder)
    done = subprocess.run([binary, "init", folder, "--time-zone", "Asia/Taipei"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise Failure(f"init: {done.stdout.decode(errors='replace')}")
    source = folder / "sources" / "kill"
    source.mkdir(parents=True, exist_ok=True)
    (source / "source.toml").write_text('class = "log"\n', encoding="utf-8")
    for version in (1, 2):
        lake.write_schema(version)
        lake.ok("schema", "publish", DATASET, str(version))
    lake.ok("ingest", DATASET, lake.write("a.jsonl", range(0, 200)), "--date", SEALED, "--complete")
    lake.ok("ingest", DATASET, lake.write("b.jsonl", range(200, 300)), "--date", OPEN_DAY, "--schema-version", 1)
    lake.ok("ingest", DATASET, lake.write("c.jsonl", range(300, 400)), "--date", OPEN_DAY)
    lake.write("new.jsonl", range(400, 500), bad=2)
    lake.write("late.jsonl", range(500, 550))
    lake.write("right.jsonl", range(600, 650))
    lake.write_schema(3)
    return lake


def make_lines_base(binary: pathlib.Path, folder: pathlib.Path) -> Lake:
    """A sealed date and an open one of two files."""
    lake = LinesLake(binary, folder)
    done = subprocess.run([binary, "init", folder, "--time-zone", "Asia/Taipei"], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise Failure(f"init: {done.stdout.decode(errors='replace')}")
    lake.ok("ingest", LINES, lake.write("a.jsonl", range(0, 200)), "--date", SEALED, "--complete", "--as", "jsonl")
    lake.ok("ingest", LINES, lake.write("b.jsonl", range(200, 300)), "--date", OPEN_DAY)
    lake.ok("ingest", LINES, lake.write("c.jsonl", range(300, 400)), "--date", OPEN_DAY)
    lake.write("new.jsonl", range(400, 500), bad=2)
    lake.write("right.jsonl", range(600, 650))
    return lake


def nothing(_: Lake) -> None:
    """No preparation."""


def lose_catalog(lake: Lake) -> None:
    for path in lake.folder.glob("catalog.db*"):
        path.unlink()


def die_in_the_stage(lake: Lake) -> None:
    """Leaves an attempt that will never commit."""
    done = lake.call(*new_rows(lake), kill="ingest.file_durable")
    if done.returncode != -signal.SIGABRT:
        raise Failure(f"the preparation was to die at ingest.file_durable and ended with {done.returncode}")


def leave_a_checkpoint(lake: Lake) -> None:
    """One more record, so that what follows begins at the checkpoint it leaves."""
    done = lake.call("seal", DATASET, "--date", OPEN_DAY, checkpoints=True)
    if done.returncode != 0 or not list(lake.folder.glob("lake/_lake/checkpoint/clean/kill/*.parquet")):
        raise Failure(f"the preparation left no checkpoint: {done.stderr.decode(errors='replace')}")
    lake.ok("reopen", DATASET, "--date", OPEN_DAY)


def correct_open_day(lake: Lake) -> None:
    lake.ok("correct", DATASET, lake.folder / "right.jsonl", "--date", OPEN_DAY)


def correct_sealed(lake: Lake) -> None:
    lake.ok("correct", DATASET, lake.folder / "right.jsonl", "--date", SEALED)


def declare_fold(lake: Lake) -> None:
    """A fold of the dataset, and a plan from it, with the schemas that follow."""
    with (lake.folder / "sources" / "kill" / "source.toml").open("a", encoding="utf-8") as file:
        file.write(FOLD)
    lake.ok("fold", "kill", "--schema")
    for dataset in ("feature/kill.thing", "feature/kill.thing_events"):
        lake.ok("schema", "publish", dataset, "1")


def new_rows(lake: Lake) -> tuple:
    return ("ingest", lake.dataset, lake.folder / "new.jsonl", "--date", OPEN_DAY, "--on-mismatch", "quarantine")


@dataclasses.dataclass
class Situation:
    """A command that may die, on the base lake after a preparation."""

    name: str
    command: object
    adds: range = range(0)
    prepare: object = nothing
    removes: range = range(0)
    # Rows after the preparation.
    start: collections.Counter = dataclasses.field(default_factory=lambda: ACKNOWLEDGED)
    # Whether every record gets a checkpoint, however short the log.
    checkpoints: bool = False
    # Whether it is one of the dataset of JSON lines.
    lines: bool = False


SITUATIONS = [
    Situation("ingest with rejects", new_rows, range(400, 500)),
    Situation("late ingest", lambda lake: ("ingest", DATASET, lake.folder / "late.jsonl", "--date", SEALED, "--late",
                                           "--complete"), range(500, 550)),
    Situation("seal of two partitions", lambda lake: ("seal", DATASET, "--date", OPEN_DAY)),
    Situation("seal with checkpoints", lambda lake: ("seal", DATASET, "--date", OPEN_DAY), checkpoints=True),
    Situation("ingest from a checkpoint on", new_rows, range(400, 500), prepare=leave_a_checkpoint, checkpoints=True),
    Situation("publish", lambda lake: ("schema", "publish", DATASET, "3")),
    Situation("sync of an empty catalog", lambda lake: ("catalog", "sync"), prepare=lose_catalog),
    Situation("correct an open date", lambda lake: ("correct", DATASET, lake.folder / "right.jsonl", "--date", OPEN_DAY),
              range(600, 650), removes=range(200, 400)),
    Situation("correct a sealed date", lambda lake: ("correct", DATASET, lake.folder / "right.jsonl", "--date", SEALED),
              range(600, 650), removes=range(0, 200)),
    Situation("switch back to two files", lambda lake: ("switch", DATASET, "--date", OPEN_DAY, "--revision", "0"),
              range(200, 400), correct_open_day, range(600, 650),
              collections.Counter([*range(0, 200), *range(600, 650)])),
    Situation("switch a sealed date back", lambda lake: ("switch", DATASET, "--date", SEALED, "--revision", "0"),
              range(0, 200), correct_sealed, range(600, 650), collections.Counter(range(200, 400)) +
              collections.Counter(range(600, 650))),
    Situation("repair", lambda lake: ("audit", "--repair"), prepare=die_in_the_stage),
    # They add no row to the dataset; what they make themselves is compared in crates/lakebed-cli/tests/it/fold.rs.
    Situation("fold of a date", lambda lake: ("fold", "kill", "--date", SEALED), prepare=declare_fold),
    Situation("plan of a date", lambda lake: ("seed", "kill", "--date", SEALED), prepare=declare_fold),
    Situation("ingest of lines with rejects", new_rows, range(400, 500), lines=True),
    Situation("correct lines of a sealed date", lambda lake: ("correct", LINES, lake.folder / "right.jsonl", "--date", SEALED),
              range(600, 650), removes=range(0, 200), lines=True),
]


def same(what: str, found: collections.Counter, expected: collections.Counter) -> None:
    if found != expected:
        lost, extra = expected - found, found - expected
        raise Failure(f"{what}: {lost.total()} rows lost, {extra.total()} too many ({sorted(extra)[:5]} ...)")


def attack(base: Lake, point: str, situation: Situation) -> bool:
    """Kills the command at the point; False when it never gets there."""
    lake = base.copy("attacked")
    situation.prepare(lake)
    before = lake.records()
    done = lake.call(*situation.command(lake), kill=point, checkpoints=situation.checkpoints)
    if done.returncode != -signal.SIGABRT:
        if done.returncode != 0:
            said = (done.stderr or done.stdout).decode(errors="replace").strip()
            raise Failure(f"ended with {done.returncode} without reaching the point: {said}")
        return False
    start, added = situation.start, collections.Counter(situation.adds)
    removed = collections.Counter(situation.removes)
    whole = start - removed + added
    committed = whole if lake.records() > before else start
    seen = lake.folder_keys()
    if seen != start:
        # Moved already, wholly or in part: only what the log has, and each once.
        kept = start - removed
        same("folder readers before any repair", seen & kept, kept)
        same("folder readers before any repair, beyond the log", seen - (start | committed), collections.Counter())
        if seen & removed and seen & added:
            raise Failure("folder readers see rows of two revisions before any repair")
        if not removed:
            same("folder readers before any repair, of old rows", seen & start, start)
    same("sql before any repair", lake.copy("asked").sql_keys(), committed)
    repaired = lake.copy("repaired")
    repaired.call("audit", "--repair")
    check_sound(repaired, committed)
    again = lake.copy("again")
    again.ok(*situation.command(again))
    same("folder readers after the command was called again", again.folder_keys(), whole)
    again.call("audit", "--repair")
    check_sound(again, whole)
    return True


def check_sound(lake: Lake, rows: collections.Counter) -> None:
    lake.ok("audit", "--deep")
    same("folder readers after repair", lake.folder_keys(), rows)
    same("sql after repair", lake.sql_keys(), rows)
    lose_catalog(lake)
    lake.ok("catalog", "rebuild")
    same("sql after a rebuild", lake.sql_keys(), rows)
    lake.ok("audit", "--deep")


def kill_points() -> list[str]:
    source = (ROOT / "crates/lakebed/src/fault.rs").read_text(encoding="utf-8")
    listed = re.search(r"KILL_POINTS: \[&str; \d+\] = \[(.*?)\];", source, re.S)
    if listed is None:
        raise SystemExit("fault.rs lists no kill points")
    return [point for point in re.findall(r'"([^"]+)"', listed[1]) if not point.startswith(("pack.", "parse.", "fold.", "seed.", "flow.", "derive."))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lakebed", type=pathlib.Path, default=ROOT / "target/debug/lakebed")
    parser.add_argument("points", nargs="*")
    args = parser.parse_args()
    good = bad = 0
    with tempfile.TemporaryDirectory() as folder:
        bases = {
            False: make_base(args.lakebed.resolve(), pathlib.Path(folder) / "base"),
            True: make_lines_base(args.lakebed.resolve(), pathlib.Path(folder) / "lines" / "base"),
        }
        for base in bases.values():
            same("sql of the base", base.sql_keys(), ACKNOWLEDGED)
            same("folder readers of the base", base.folder_keys(), ACKNOWLEDGED)
        for point in args.points or kill_points():
            reached = []
            for situation in SITUATIONS:
                try:
                    if attack(bases[situation.lines], point, situation):
                        reached.append(situation.name)
                except Failure as failure:
                    reached.append(situation.name)
                    bad += 1
                    print(f"WRONG  {point}, {situation.name}: {failure}", flush=True)
            if reached:
                good += 1
                print(f"{point}: {', '.join(reached)}", flush=True)
            else:
                bad += 1
                print(f"WRONG  {point}: nothing reaches it", flush=True)
    print(f"{good} kill points attacked, {bad} findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
