"""Flows: what a stage costs beside its own work, first and second time, beside GNU make."""

import json
import shutil
import statistics

from measure import OUT, note, run, verdict

DAY = "2026-11-30"
LIMIT_MS = 50


def flow_part(options) -> str:
    stages = 20 if options.quick else 100
    folder = OUT / "project-flow"
    shutil.rmtree(folder, ignore_errors=True)
    run([options.lakebed, "init", folder, "--time-zone", "Asia/Taipei"])
    for name, count in (("one", 1), ("many", stages + 1)):
        source = folder / "sources" / name
        source.mkdir(parents=True)
        text = 'class = "log"\n' + "".join(
            f'[[flow.stage]]\nkind = "shell"\nname = "s{n}"\ncommand = ["true"]\n' + (f'after = ["s{n - 1}"]\n' if n else "")
            for n in range(count))
        (source / "source.toml").write_text(text, encoding="utf-8")
    first, second, ends = [], [], []
    for _ in range(options.rounds):
        shutil.rmtree(folder / "lake" / "flow", ignore_errors=True)
        shutil.rmtree(folder / "flow", ignore_errors=True)
        first.append(per_stage(options, folder, stages))
        second.append(per_stage(options, folder, stages))
        ends.append(own_clock(options, folder))
        note(f"flow: {first[-1]:.1f} ms a stage, {second[-1]:.2f} ms where it is done")
    make = statistics.median(make_stage(folder, stages) for _ in range(options.rounds))
    shutil.rmtree(folder)
    ours, done = statistics.median(first), statistics.median(second)
    return (f"### A stage that runs `true`, {stages} in a row, median of {options.rounds} rounds\n\n"
            "| | ms a stage |\n| --- | --- |\n"
            f"| **Lakebed**, `run`: process, log, durable stamp | {ours:.1f} |\n"
            f"| Lakebed, `run` again: every stamp held against logs and files | {done:.2f} |\n"
            f"| Lakebed, the longest stage by its own clock | {statistics.median(ends):.0f} |\n"
            f"| GNU make, `true` and `touch`, nothing durable | {make:.1f} |\n\n"
            f"Target under {LIMIT_MS} ms: {verdict(ours < LIMIT_MS)}.\n")


def per_stage(options, folder, stages: int) -> float:
    """The difference between a flow of many stages and one of one, by stage; what a call costs is in neither."""
    def wall(source: str) -> float:
        return run([options.lakebed, "run", source, "--date", DAY, "--quiet", "--project", folder]).wall_s * 1000
    many, one = wall("many"), wall("one")
    return (many - one) / stages


def own_clock(options, folder) -> float:
    """The longest stage of a first run, as the flow tells it."""
    shutil.rmtree(folder / "lake" / "flow", ignore_errors=True)
    done = run([options.lakebed, "run", "many", "--date", DAY, "--quiet", "--format", "json", "--project", folder])
    return max(stage["took_ms"] for stage in json.loads(done.stdout)["dates"][0]["stages"])


def make_stage(folder, stages: int) -> float:
    shutil.rmtree(folder / "make", ignore_errors=True)
    (folder / "make").mkdir()
    def wall(count: int) -> float:
        rules = "".join(f"make/{count}-{n}: {f'make/{count}-{n - 1}' if n else ''}\n\ttrue\n\ttouch $@\n" for n in range(count))
        file = folder / "Makefile"
        file.write_text(f"all: make/{count}-{count - 1}\n{rules}", encoding="utf-8")
        return run(["make", "-s", "-f", file], cwd=folder).wall_s * 1000
    return (wall(stages + 1) - wall(1)) / stages


