"""Parse: pages a second of a core through declared rules, beside parsel and selectolax with the same fields of the same pages.

What each takes is compared first: a contestant that takes something else is no peer.
"""

import json
import pathlib

from measure import BENCH, OUT, ROOT, Run, harness, median, note, rounds, run, venv_python, verdict

SHARED = ROOT.parent / "shared"
LABELS = {"lakebed": "**Lakebed**, rules of `bench/books.toml`", "parsel": "parsel", "selectolax": "selectolax (Lexbor)"}


def parse_part(options) -> str:
    pages = SHARED / "data" / "html-books-toscrape"
    if not pages.is_dir():
        note(f"{pages} is not there: nothing to parse")
        return ""
    repeat = 2 if options.quick else 20
    python, program = venv_python("crawls"), harness(options)
    OUT.mkdir(parents=True, exist_ok=True)
    files = {name: OUT / f"parsed-{name}.jsonl" for name in LABELS}
    commands = {"lakebed": [program, "parse", BENCH / "books.toml", pages, repeat, files["lakebed"]]}
    for name in ("parsel", "selectolax"):
        commands[name] = [python, BENCH / "parse_peer.py", name, pages, repeat, files[name]]
    runs = rounds(options.rounds, {name: (lambda c=command: one(c)) for name, command in commands.items()}, "parse")
    taken = {name: records(path) for name, path in files.items()}
    for name in ("parsel", "selectolax"):
        if taken[name] != taken["lakebed"]:
            raise SystemExit(f"{name} takes other values than the rules: {files[name]}, {files['lakebed']}")
    count = runs["lakebed"][0].extra["pages"]
    speed = {name: count / median(runs[name], "cpu_s") for name in LABELS}
    lines = [f"### {len(taken['lakebed'])} pages of html-books-toscrape, nine fields, bytes to JSON\n",
             "| | pages/s a core | to parsel |", "| --- | --- | --- |"]
    for name, label in LABELS.items():
        lines.append(f"| {label} | {speed[name]:,.0f} | {speed[name] / speed['parsel']:.2f} |")
    times = speed["lakebed"] / speed["parsel"]
    lines.append(f"\n{times:.1f} times parsel (target 3: {verdict(times >= 3)}).\n")
    for path in files.values():
        path.unlink()
    return "\n".join(lines)


def one(command: list) -> Run:
    """What it says of its own work, without its start."""
    done = run(command)
    done.extra = json.loads(done.stdout)
    done.wall_s, done.cpu_s = done.extra["seconds"], done.extra["cpu_s"]
    return done


def records(path: pathlib.Path) -> list:
    own = ("_raw", "_key", "_fetched_at")
    lines = path.read_text(encoding="utf-8").splitlines()
    return [{name: value for name, value in json.loads(line).items() if name not in own} for line in lines]
