"""Many files: audit, rebuild and planning at 100,000 partitions and 1,000,000 files.

The lake is synthetic (bench/harness): 100 datasets of 1,000 sealed dates of ten files each, every file a copy of
one real Parquet file, with the records, `_SUCCESS` files and checkpoints that ingest would have left. What audit and
rebuild are measured against is the least that anybody must do who wants to know the same: list the lake with sizes
(`find`), and read the log (`cat`).
"""

import datetime
import json
import shutil
import statistics

from measure import OUT, Run, data, harness, median, note, rounds, run, verdict
from project import Project
from sessions import ask_lakebed

DATASETS, DAYS, FILES = 100, 1_000, 10
# The first day of the harness's lake.
FIRST_DAY = datetime.date(2020, 1, 1)
ROWS = 10
TARGET, PLANNING_MS = 3, 50


def scale_part(options) -> str:
    # The N-th part: fewer dates of as many datasets, as a younger lake would have them.
    days = max(1, DAYS // (100 if options.quick else options.part_of_scale))
    project, made = build(options, days)
    lake = project.folder / "lake"
    first = project.call("catalog", "rebuild")
    listing = ["sh", "-c", 'find "$0" -type f -printf "%s %p\\n" > /dev/null && '
               'find "$0/_lake/log" -type f -name "*.json" -exec cat {} + > /dev/null', lake]
    contestants = {"find and cat": lambda: run(listing), "audit": lambda: project.call("audit"),
                   "rebuild": lambda: project.call("catalog", "rebuild")}
    runs = rounds(min(options.rounds, 3), contestants, "scale")
    text = section(made, runs, first) + planning(project, days)
    if not options.keep:
        shutil.rmtree(project.folder)
    return text


def names() -> list[str]:
    return [f"clean/size.d{n:02}" for n in range(DATASETS)]


def build(options, days: int) -> tuple[Project, dict]:
    """The lake, made anew unless it was kept; what the harness says of it."""
    mark = OUT / f"project-scale-{days}" / "made.json"
    if options.keep and mark.exists():
        project = Project.__new__(Project)
        project.binary, project.folder = options.lakebed, mark.parent
        return project, json.loads(mark.read_text(encoding="utf-8"))
    template = Project(options.lakebed, "project-template", nested=False)
    lines = data("csv", 24_000).read_text(encoding="utf-8").splitlines()
    plain = [line for line in lines[1:] if line.count('"') % 2 == 0 and line.count(",") >= 10][:ROWS]
    source = OUT / "template.csv"
    source.write_text("\n".join([lines[0], *plain]) + "\n", encoding="utf-8")
    template.ingest(source)
    file = next(template.data_folder.rglob("*.parquet"))
    project = Project(options.lakebed, f"project-scale-{days}", nested=False)
    for name in names():
        project.publish(name)
    done = run([harness(options), "lake", project.folder, file, ROWS, *names(), "--days", days, "--files", FILES])
    made = json.loads(done.stdout)
    mark.write_text(done.stdout, encoding="utf-8")
    shutil.rmtree(template.folder)
    note(f"scale: {made['files']:,} files in {made['wall_s']:.0f} s")
    return project, made


def section(made: dict, runs: dict[str, list[Run]], first: Run) -> str:
    base = median(runs["find and cat"], "wall_s")
    base_cpu = median(runs["find and cat"], "cpu_s")
    lines = [f"### {made['partitions']:,} partitions, {made['files']:,} files, median of {len(runs['audit'])} rounds\n",
             "| | wall s | CPU s | peak MB | wall / find and cat | CPU / find and cat |", "| --- | --- | --- | --- | --- | --- |"]
    titles = {"find and cat": "`find` over the lake and `cat` of the log", "audit": "`lakebed audit`",
              "rebuild": "`lakebed catalog rebuild`"}
    for name, title in titles.items():
        wall, cpu, peak = (median(runs[name], w) for w in ("wall_s", "cpu_s", "peak_mb"))
        lines.append(f"| {title} | {wall:.2f} | {cpu:.2f} | {peak:.0f} | {wall / base:.1f} | {cpu / base_cpu:.1f} |")
    lines.append(f"| the first rebuild, into an empty catalog | {first.wall_s:.2f} | {first.cpu_s:.2f} | "
                 f"{first.peak_mb:.0f} | {first.wall_s / base:.1f} | {first.cpu_s / base_cpu:.1f} |")
    for name in ("audit", "rebuild"):
        ratio = median(runs[name], "wall_s") / base
        lines.append(f"\nTarget for `{name}`: {TARGET} times `find` and `cat`: {verdict(ratio <= TARGET)}.")
    return "\n".join(lines) + "\n"


def planning(project: Project, days: int) -> str:
    """Each time a new process, as a user asks one question."""
    wanted = FIRST_DAY + datetime.timedelta(days=days // 2)
    query = f"SELECT count(*) AS n, sum(price) AS s FROM clean.size.d07 WHERE dt = '{wanted}'"
    found = [ask_lakebed(project, query) for _ in range(11)]
    read = found[-1].extra["files_read"]
    if read != FILES:
        raise SystemExit(f"{read} files were read of one date, not {FILES}")
    ms = statistics.median(r.extra["planning_ms"] for r in found[1:])
    wall = statistics.median(r.wall_s for r in found[1:]) * 1000
    return (f"\nA query for one date of one dataset is planned in {ms:.1f} ms, the whole process takes {wall:.0f} ms "
            f"(target for planning {PLANNING_MS} ms: {verdict(ms <= PLANNING_MS)}).\n")
