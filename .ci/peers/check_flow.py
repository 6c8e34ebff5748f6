#!/usr/bin/env python3
"""Run the flow of a crawled source over days of the test site, and kill it wherever a step can die.

    check_flow.py --lakebed target/debug/lakebed [POINT...]

Needs a debug build (release builds contain no kill points). The source declares a list, details that are seeded from it, a fold and a
derived dataset, and no `[[flow.stage]]`: the order is the one of docs/flow.md.

1. Three days, one after the other: every stage is done, a second call does nothing, the test site is not asked again.
2. From a copy of the project after day one, day two is run with a kill at every kill point that it reaches, in the flow or in one of its
   stages (first and second time). The same command then leads to an end at which every stage is done, each request was answered once,
   and the rows of every dataset are those of a flow that nobody killed (pages and times of fetching aside). A second call does
   nothing. The audit is clean.
3. Two processes at once do a day once.
4. `lineage --row` leads from a row of the list to its page, and from the snapshot to both.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DAYS = ["2026-11-28", "2026-11-29", "2026-11-30"]
STAGES = ["list", "parse-list", "seal-list", "fold-previous", "seed", "detail", "parse", "seal", "fold", "derive"]
DATASETS = {
    "clean/rent.list": "id, title, price, _key",
    "clean/rent.detail": "id, title, http_status, _key",
    "feature/rent.house": "id, title, price, status, first_seen, days_absent",
    "feature/rent.house_events": "id, event, field, old, new",
    "feature/rent.states": "status, n",
}
SOURCE = """class = "log"
[crawl]
user_agent = "lakebed-test/1 (+https://lakebed.example/bot)"
hosts = ["127.0.0.1"]
allow_private = ["127.0.0.0/8"]
seed_command = ["sh", "-c", "echo {url}/zh/list"]
seed_stage = "list"
accept_statuses = [404, 410]
[crawl.stage.list]
follow = [{{ stage = "list", css = "a[rel=next]" }}]
[crawl.stage.detail]

[[parse.page]]
stage = "list"
[[parse.page.item]]
dataset = "rent.list"
each = "li.card"
key = ["id"]
[parse.page.item.field]
id = "::attr(data-id)"
title = ".card__title a::text"
price = ".card__price::text"

[[parse.page]]
stage = "detail"
status = [200, 404, 410]
[[parse.page.item]]
dataset = "rent.detail"
key = ["id"]
[parse.page.item.field]
id = {{ path = -1 }}
title = "h1::text"
http_status = {{ page = "status" }}

[fold.house]
key = ["id"]
watch = ["price", "status"]
[[fold.house.from]]
dataset = "rent.list"
presence = true
[[fold.house.from]]
dataset = "rent.detail"
optional = true
gone = {{ field = "http_status", is = [404, 410] }}
[fold.house.field]
title = {{ from = ["list", "detail"] }}
price = {{ from = "list" }}
first_seen = "first_seen"
days_absent = "days_absent"
detailed = {{ rule = "last_seen", from = "detail" }}
print = {{ rule = "fingerprint", from = "list", of = ["price"] }}
print_at_detail = {{ rule = "copy", of = "print", at = "detail" }}
[fold.house.field.status]
rule = "status"
start = "open"
[[fold.house.field.status.move]]
to = "open"
when = {{ seen = "list" }}
[[fold.house.field.status.move]]
to = "closed"
when = {{ gone = "detail" }}

[seed]
fold = "house"
stage = "detail"
url = "{url}/zh/rent/{{id}}"
detailed = "detailed"
fingerprint = "print_at_detail"
open = "open"
absent_days = 1

[derive.states]
sql = "SELECT status, count(*) AS n FROM feature.rent.house GROUP BY status"
parents = ["feature/rent.house"]

[dataset."rent.list"]
key = ["id"]
[dataset."rent.detail"]
key = ["id"]
[dataset."rent.house"]
key = ["id"]
"""
FIELD = '    {{ id = {id}, name = "{name}", type = "{type}" }},\n'
SCHEMAS = {
    "rent.list": [("id", "string"), ("title", "string"), ("price", "string"), ("_raw", "string"), ("_key", "string"),
                  ("_fetched_at", "timestamp")],
    "rent.detail": [("id", "string"), ("title", "string"), ("http_status", "int"), ("_raw", "string"), ("_key", "string"),
                    ("_fetched_at", "timestamp")],
}
LOCAL = "[crawl.usual]\npause_ms = 0\nplaces = 8\nworkers = 8\nbackoff_ms = 20\nlease_s = 3\n"


class Failure(Exception):
    """What is wrong."""


def check(good: bool, what: str) -> None:
    if not good:
        raise Failure(what)


class Site:
    def __init__(self, binary: pathlib.Path, listings: int) -> None:
        command = [binary, "demo-site", "--port", "0", "--format", "json", "--date", DAYS[0], "--listings", str(listings)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        told = json.loads(self.process.stdout.readline())
        self.url = (told.get("url") or told["address"]).rstrip("/")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=20)

    def day(self, day: str) -> None:
        data = json.dumps({"date": day}).encode()
        request = urllib.request.Request(f"{self.url}/_control/date", data=data, method="POST",
                                         headers={"Content-Type": "application/json"})
        urllib.request.urlopen(request).close()

    def asked(self) -> int:
        with urllib.request.urlopen(f"{self.url}/_control/stats") as answer:
            return json.load(answer)["total"]["requests"]


class Project:
    def __init__(self, binary: pathlib.Path, folder: pathlib.Path) -> None:
        self.binary, self.folder = binary, folder

    def command(self, *args) -> list[str]:
        return [str(self.binary), *map(str, args), "--project", str(self.folder)]

    def call(self, *args, kill: str | None = None) -> subprocess.CompletedProcess:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LAKEBED_")}
        if kill is not None:
            environment["LAKEBED_KILL_POINT"] = kill
        return subprocess.run(self.command(*args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment, timeout=300, text=True)

    def ok(self, *args) -> str:
        done = self.call(*args)
        check(done.returncode == 0, f"`{' '.join(map(str, args))}` ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def copy(self, name: str) -> "Project":
        target = self.folder.with_name(name)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(self.folder, target)
        return Project(self.binary, target)

    def make(self, url: str) -> "Project":
        done = subprocess.run([self.binary, "init", self.folder, "--time-zone", "Asia/Taipei"], capture_output=True, text=True)
        check(done.returncode == 0, done.stderr)
        source = self.folder / "sources" / "rent"
        source.mkdir(parents=True, exist_ok=True)
        (source / "source.toml").write_text(SOURCE.format(url=url))
        (self.folder / "lakebed.local.toml").write_text(LOCAL)
        for name, fields in SCHEMAS.items():
            folder = source / "schemas" / name
            folder.mkdir(parents=True, exist_ok=True)
            rows = "".join(FIELD.format(id=n + 1, name=field, type=kind) for n, (field, kind) in enumerate(fields))
            (folder / "v1.toml").write_text(f'dataset = "clean/{name}"\nversion = 1\nfield = [\n{rows}]\n')
            self.ok("schema", "publish", f"clean/{name}", 1)
        self.ok("fold", "rent", "--schema")
        for name in ("house", "house_events"):
            self.ok("schema", "publish", f"feature/rent.{name}", 1)
        self.ok("derive", "rent", "states", "--schema")
        self.ok("schema", "publish", "feature/rent.states", 1)
        return self

    def run(self, day: str) -> dict[str, str]:
        done = self.call("run", "rent", "--date", day, "--format", "json")
        check(done.returncode == 0, f"the flow of {day} ended with {done.returncode}: {done.stderr}")
        stages = json.loads(done.stdout)["dates"][0]["stages"]
        check([s["stage"].split(".")[0] for s in stages] == STAGES, f"{stages}")
        return {s["stage"].split(".")[0]: s["outcome"] for s in stages}

    def standings(self, day: str) -> dict[str, str]:
        answer = json.loads(self.call("status", "rent", "--date", day, "--format", "json").stdout)
        return {s["stage"].split(".")[0]: s["standing"] for s in answer["dates"][0]["stages"]}

    def rows(self, day: str) -> dict[str, collections.Counter]:
        """The rows of every dataset, what tells a fetch from another one aside."""
        found = {}
        for dataset, columns in DATASETS.items():
            layer, name = dataset.split("/")
            query = f"SELECT {columns} FROM {layer}.\"{name}\" WHERE dt = '{day}'"
            rows = json.loads(self.ok("sql", query, "--format", "json") or "[]")
            found[dataset] = collections.Counter(json.dumps(row, sort_keys=True, ensure_ascii=False) for row in rows)
        return found

    def requests(self, day: str) -> collections.Counter:
        found = collections.Counter()
        for run in ("day", "day-detail"):
            answer = json.loads(self.ok("queue", "list", "rent", "--date", day, "--run", run, "--limit", 100000, "--format", "json"))
            found.update((run, r["url"], r["state"]) for r in answer["requests"])
        return found


def kill_points() -> list[str]:
    source = (ROOT / "crates/lakebed/src/fault.rs").read_text(encoding="utf-8")
    listed = re.search(r"KILL_POINTS: \[&str; \d+\] = \[(.*?)\];", source, re.S)
    return re.findall(r'"([^"]+)"', listed[1])


def go_on(project: Project, day: str) -> None:
    """Until nobody is at it any more: a stage may outlive its flow."""
    until = time.monotonic() + 120
    while True:
        done = project.call("run", "rent", "--date", day)
        if done.returncode == 0:
            return
        # 33: somebody is at it. 30: what a stage that was killed holds (a claim, a lock) is given back after its lease.
        check(done.returncode in (30, 33) and time.monotonic() < until, f"ended with {done.returncode}: {done.stdout}{done.stderr}")
        time.sleep(0.2)


def compare(found: Project, expected: Project, day: str) -> None:
    rows = expected.rows(day)
    for dataset, seen in found.rows(day).items():
        lost, extra = rows[dataset] - seen, seen - rows[dataset]
        check(not lost and not extra, f"{dataset}: {lost.total()} rows lost, {extra.total()} too many: {list(extra)[:2]} {list(lost)[:2]}")
    check(found.requests(day) == expected.requests(day), "the requests differ")


def nothing_to_do(project: Project, site: Site, day: str) -> None:
    before = site.asked()
    outcomes = project.run(day)
    check(set(outcomes.values()) <= {"already_done", "not_due"}, f"a second call did something: {outcomes}")
    check(site.asked() == before, "a second call asked the site")


def attack(base: Project, whole: Project, site: Site, point: str) -> bool:
    """Kills the flow of day two at the point; False when nothing gets there."""
    day = DAYS[1]
    project = base.copy("attacked")
    died = project.call("run", "rent", "--date", day, kill=point)
    if died.returncode == 0:
        return False
    check(died.returncode in (-6, 30), f"ended with {died.returncode}: {died.stderr}")
    go_on(project, day)
    compare(project, whole, day)
    standings = project.standings(day)
    check(set(standings.values()) == {"done"}, f"{standings}")
    nothing_to_do(project, site, day)
    project.call("audit", "--repair")
    project.ok("audit", "--deep")
    return True


def whole_days(project: Project, site: Site) -> None:
    for n, day in enumerate(DAYS):
        site.day(day)
        outcomes = project.run(day)
        expected = {stage: "done" for stage in STAGES} | ({"fold-previous": "not_due"} if n == 0 else {})
        check(outcomes == expected, f"{day}: {outcomes}")
        nothing_to_do(project, site, day)
    answer = json.loads(project.ok("sql", "SELECT dt, count(*) AS n FROM clean.\"rent.detail\" GROUP BY dt ORDER BY dt", "--format", "json"))
    details = [row["n"] for row in answer]
    check(details[0] > details[1] > 0, f"the second day fetched as many details as the first: {details}")
    project.ok("audit", "--deep")


def lineage(project: Project) -> None:
    key = json.loads(project.ok("sql", f"SELECT id FROM clean.\"rent.list\" WHERE dt = '{DAYS[0]}' LIMIT 1", "--format", "json"))[0]["id"]
    text = project.ok("lineage", "clean/rent.list", "--row", key, "--date", DAYS[0])
    check("/zh/list" in text and "frame" in text, text)
    text = project.ok("lineage", "feature/rent.house", "--row", key, "--date", DAYS[0])
    check("/zh/list" in text and f"/zh/rent/{key}" in text, text)
    tree = json.loads(project.ok("lineage", "feature/rent.states", "--date", DAYS[1], "--format", "json"))
    text = json.dumps(tree)
    for dataset in ("raw/rent", "clean/rent.list", "clean/rent.detail", "feature/rent.house"):
        check(f'"{dataset}"' in text, f"{dataset} is not in the tree: {text}")
    check("changed_since" not in text, f"nothing has changed since: {text}")
    down = project.ok("lineage", "raw/rent", "--date", DAYS[0], "--down")
    check("has changed since" not in down, down)
    check("feature/rent.states 2026-11-28" in down and "feature/rent.house 2026-11-29" in down, down)


def at_once(base: Project, whole: Project, site: Site) -> None:
    project = base.copy("at-once")
    calls = [subprocess.Popen(project.command("run", "rent", "--date", DAYS[1]), stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) for _ in range(3)]
    codes = sorted(call.wait(timeout=300) for call in calls)
    check(codes[0] == 0 and set(codes) <= {0, 33}, f"{codes}")
    compare(project, whole, DAYS[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lakebed", type=pathlib.Path, default=ROOT / "target/debug/lakebed")
    parser.add_argument("--listings", type=int, default=60)
    parser.add_argument("points", nargs="*")
    args = parser.parse_args()
    binary = args.lakebed.resolve()
    good = bad = 0
    with tempfile.TemporaryDirectory() as folder, Site(binary, args.listings) as site:
        base = Project(binary, pathlib.Path(folder) / "base").make(site.url)
        whole = base.copy("whole")
        try:
            whole_days(whole, site)
            lineage(whole)
            good += 1
        except Failure as failure:
            print(f"WRONG  whole days: {failure}", flush=True)
            return 1
        site.day(DAYS[0])
        base.run(DAYS[0])
        site.day(DAYS[1])
        try:
            at_once(base, whole, site)
            good += 1
        except Failure as failure:
            bad += 1
            print(f"WRONG  at once: {failure}", flush=True)
        of_flow = [f"flow.{name}:{n}" for n in range(1, 11) for name in ("stage_begun", "stage_ended", "before_stamp", "stamped")]
        for point in args.points or [p for p in kill_points() if not p.startswith("flow.stage_") and p != "flow.stamped"] + of_flow:
            try:
                if attack(base, whole, site, point):
                    good += 1
                    print(f"{point}: gone on with", flush=True)
            except Failure as failure:
                bad += 1
                print(f"WRONG  {point}: {failure}", flush=True)
    print(f"{good} right, {bad} wrong-loud")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
