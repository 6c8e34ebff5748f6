#!/usr/bin/env python3
"""Crawls of the test site, judged from outside: exit codes, the queue's own lists, and the site's log.

    check_crawl.py --lakebed target/debug/lakebed [--listings 10200] [--only NAME] [--database sqlite|postgres|mysql]

LAKEBED_TEST_POSTGRES and LAKEBED_TEST_MYSQL name servers (`.ci/servers` starts them). Every silent ending must be red:
everything forbidden, no seed, a planner that fails, half of a list missing, a run that was stopped. Every crowd of
processes, some of them killed, must end each request once and keep to the limits of the host; so must a worker whose
clock is an hour off. The pages of html-books-toscrape (LAKEBED_SHARED) come out of their pack byte for byte.
"""

import argparse
import functools
import hashlib
import http.server
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid

SOURCE = """class = "log"

[crawl]
user_agent = "lakebed-test/1 (+https://lakebed.example/bot)"
hosts = ["127.0.0.1"]
allow_private = ["127.0.0.0/8"]
seeds = "seeds.txt"
seed_stage = "list"
max_dead_share = 0.2
{more}

[crawl.stage.list]
priority = -1
follow = [
    {{ stage = "detail", css = "main a[href*='/rent/']", total = "[data-total]", group = "all" }},
    {{ stage = "list", css = "a[rel=next]" }},
]

[crawl.stage.detail]
"""
LOCAL = """[crawl.usual]
pause_ms = {pause}
places = {places}
workers = {workers}
backoff_ms = {backoff}
timeout_s = 20
robots_retry_s = 1
lease_s = 3
breaker_window = {window}
"""
DATE = "2026-11-30"


class Site:
    def __init__(self, binary, *options) -> None:
        command = [binary, "demo-site", "--port", "0", "--format", "json", "--date", DATE, *map(str, options)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        told = json.loads(self.process.stdout.readline())
        self.url = (told.get("url") or told["address"]).rstrip("/")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=20)

    def stats(self) -> dict:
        with urllib.request.urlopen(f"{self.url}/_control/stats") as answer:
            return json.load(answer)

    def details(self) -> list[str]:
        """The addresses of all listings."""
        urls, page = [], 1
        while True:
            with urllib.request.urlopen(f"{self.url}/api/list?page={page}") as answer:
                found = json.load(answer)
            items = next(v for v in found.values() if isinstance(v, list))
            urls += [f"{self.url}/zh/rent/{item['id']}" for item in items]
            if not items or len(urls) >= found["total"]:
                return urls
            page += 1

    def faults(self, *faults) -> None:
        data = json.dumps({"faults": list(faults)}).encode()
        request = urllib.request.Request(f"{self.url}/_control/faults", data=data, method="POST",
                                         headers={"Content-Type": "application/json"})
        urllib.request.urlopen(request).close()


class Project:
    def __init__(self, binary, folder, site, database="sqlite", seeds=None, more="", pause=0, places=8, workers=4,
                 window=100, backoff=20) -> None:
        self.binary, self.folder = binary, pathlib.Path(folder) / uuid.uuid4().hex
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("LAKEBED_")}
        self.must("init", self.folder, "--time-zone", "Asia/Taipei")
        self.must("source", "add", "rentals", "--class", "log")
        source = self.folder / "sources" / "rentals"
        (source / "source.toml").write_text(SOURCE.format(more=more))
        seeds = [f"{site.url}/zh/list"] if seeds is None else seeds
        (source / "seeds.txt").write_text("".join(f"{s}\n" for s in seeds))
        local = LOCAL.format(pause=pause, places=places, workers=workers, window=window, backoff=backoff)
        (self.folder / "lakebed.local.toml").write_text(local)
        self.environment |= queue_of(database)

    def start(self, *args, **environment) -> subprocess.Popen:
        command = [self.binary, *map(str, args), "--project", self.folder]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=self.environment | environment)

    def call(self, *args) -> tuple[int, str, str]:
        process = self.start(*args)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    def must(self, *args) -> str:
        code, out, err = self.call(*args)
        assert code == 0, f"{args}: {code}: {err}"
        return out

    def crawl(self, *args) -> tuple[int, dict | None, str]:
        code, out, err = self.call("crawl", "rentals", "--date", DATE, "--format", "json", *args)
        return code, json.loads(out) if out.strip() else None, err

    def requests(self, *args) -> list[dict]:
        text = self.must("queue", "list", "rentals", "--date", DATE, "--limit", 10_000_000, "--format", "json", *args)
        return json.loads(text)["requests"]


    def pack(self) -> pathlib.Path:
        """The pack of the run, committed to the lake."""
        (path,) = (self.folder / "lake" / "raw" / "rentals").glob("dt=*/schema_version=0/*.tar.zst")
        return path


def queue_of(database: str) -> dict:
    """The environment that names a new database for a queue."""
    if database == "sqlite":
        return {}
    name = f"lakebed_{uuid.uuid4().hex}"
    if database == "postgres":
        server = os.environ["LAKEBED_TEST_POSTGRES"]
        subprocess.run(["psql", "-q", f"{server}/postgres", "-c", f"CREATE DATABASE {name}"], check=True)
    else:
        server = os.environ["LAKEBED_TEST_MYSQL"]
        port = server.rsplit(":", 1)[1]
        sql = f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        subprocess.run(["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", port, "-u", "root", "-e", sql], check=True)
    return {"LAKEBED_QUEUE": f"{server}/{name}"}


def check(condition, message) -> None:
    if not condition:
        raise AssertionError(message)


# ---------------------------------------------------------------- endings
def green(options, folder) -> None:
    with Site(options.lakebed, "--listings", 60) as site:
        project = Project(options.lakebed, folder, site)
        code, answer, err = project.crawl()
        check(code == 0 and answer["pass"], f"{code}: {answer}: {err}")
        details = [r for r in project.requests() if r["stage"] == "detail"]
        check(len(details) == len({r["url"] for r in details}) >= 50, f"{len(details)} details")
        check(all(r["state"] == "done" and r["capture"] for r in details), "a detail without a capture")
        before = site.stats()["total"]["requests"]
        again = project.crawl()
        check(again[0] == 0 and again[1]["books"] == answer["books"], f"a closed run says something else: {again}")
        closed = project.call("crawl", "close", "rentals", "--date", DATE)
        check(closed[0] == 0, f"closing again: {closed}")
        check(site.stats()["total"]["requests"] == before, "a closed run fetched something")


def forbidden(options, folder) -> None:
    with Site(options.lakebed, "--listings", 60, "--fault", "forbid") as site:
        project = Project(options.lakebed, folder, site)
        code, answer, err = project.crawl()
        check(code == 14 and not answer["pass"], f"{code}: {answer}: {err}")
        check("http_403" in answer["breaches"][0]["message"], answer)


def circuit(options, folder) -> None:
    with Site(options.lakebed, "--listings", 400) as site:
        details = [json.dumps({"url": url, "stage": "detail"}) for url in site.details()]
        project = Project(options.lakebed, folder, site, seeds=details, window=20)
        before = site.stats()["total"]["requests"]
        site.faults("forbid")
        code, _, err = project.crawl()
        check(code == 10 and "circuit breaker" in err, f"{code}: {err}")
        asked = site.stats()["total"]["requests"] - before
        check(asked < 60, f"{asked} requests before the breaker opened")
        site.faults()
        project.must("crawl", "resume", "rentals", "--date", DATE)
        code, answer, err = project.crawl()
        check(code in (0, 16) and answer["state"] == "closed", f"{code}: {answer}: {err}")


def no_seeds(options, folder) -> None:
    with Site(options.lakebed, "--listings", 20) as site:
        project = Project(options.lakebed, folder, site, seeds=[])
        code, _, err = project.crawl()
        check(code == 13, f"{code}: {err}")


def a_planner_that_fails(options, folder) -> None:
    with Site(options.lakebed, "--listings", 20) as site:
        project = Project(options.lakebed, folder, site)
        source = project.folder / "sources" / "rentals" / "source.toml"
        command = 'seed_command = ["sh", "-c", "echo http://127.0.0.1/a; exit 3"]'
        source.write_text(source.read_text().replace('seeds = "seeds.txt"', command))
        code, _, err = project.crawl()
        check(code == 1 and "failed" in err, f"{code}: {err}")
        code, _, err = project.call("crawl", "close", "rentals", "--date", DATE)
        check(code == 1 and "seeding" in err, f"{code}: {err}")
        source.write_text(source.read_text().replace(command, 'seeds = "seeds.txt"'))
        check(project.crawl()[0] == 0, "a mended planner")


def robots_say_no(options, folder) -> None:
    for fault, wanted in [("robots:deny", "robots"), ("robots:5xx", "robots_unreachable")]:
        with Site(options.lakebed, "--listings", 20, "--fault", fault) as site:
            project = Project(options.lakebed, folder, site, more="max_failures = 1")
            code, answer, err = project.crawl()
            check(code == 14, f"{fault}: {code}: {answer}: {err}")
            kinds = site.stats()["total"]["by_kind"]
            check(set(kinds) <= {"robots"}, f"{fault}: {kinds}")
            check(project.requests()[0]["class"] == wanted, f"{fault}: {project.requests()}")


def a_list_that_promises_more(options, folder) -> None:
    with Site(options.lakebed, "--listings", 60, "--fault", "totals:150") as site:
        code, answer, err = Project(options.lakebed, folder, site).crawl()
        check(code == 18, f"{code}: {answer}: {err}")


def terminated(options, folder) -> None:
    with Site(options.lakebed, "--listings", 150, "--fault", "slow:30") as site:
        project = Project(options.lakebed, folder, site, places=2)
        process = project.start("crawl", "rentals", "--date", DATE)
        time.sleep(2.5)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        check(process.returncode == 11, f"{process.returncode}: {err}")
        states = {r["state"] for r in project.requests()}
        check("in_flight" not in states, f"after SIGTERM: {states}")
        code, answer, err = project.crawl()
        check(code == 0 and answer["books"]["failures"] == 0, f"{code}: {answer}: {err}")


# ---------------------------------------------------------------- crowds
PLACES = 16
# What a page may be served with, by the address; and how its request must end: the class of its death, or what its capture
# says of the encoding and where that was told.
ODD = {
    "redirect:2": "done",
    "redirect_loop": "redirect_loop",
    "charset:gbk": ("gbk", "http"),
    "charset:big5": ("big5", "http"),
    "charset:meta": ("big5", "meta"),
    "charset:none": ("gbk", "detected"),
    "huge:3m": "done",
    "huge:64m": "body_too_large",
}


def odd_seeds(site) -> list[str]:
    """A listing behind each of these faults."""
    pages = site.details()[:len(ODD)]
    return [json.dumps({"url": page.replace("/zh/", f"/fault/{fault}/zh/"), "stage": "detail"}) for fault, page in zip(ODD, pages)]


def check_odd(project, requests) -> None:
    for fault, wanted in ODD.items():
        (request,) = [r for r in requests if f"/fault/{fault}/" in r["url"]]
        if isinstance(wanted, str) and wanted != "done":
            check((request["state"], request["class"]) == ("dead", wanted), f"{fault}: {request}")
            continue
        check(request["state"] == "done", f"{fault}: {request}")
        head = json.loads(project.must("pack", "cat", project.pack(), request["capture"], "--head", "--format", "json"))
        record = head.get("capture", head)
        if fault.startswith("charset"):
            told = record["charset"]
            check((told["name"], told["from"]) == wanted, f"{fault}: {told}")
        if fault == "huge:3m":
            check(record["body_len"] >= 3 << 20, f"{fault}: {record['body_len']}")
        if fault.startswith("redirect"):
            check("/fault/" in record["url"], f"{fault}: {record['url']}")


def crowd(options, folder, database: str, kill: bool) -> None:
    faults = ["flaky:10:1", "truncate:2", "slow:2", "burst:400:5"]
    log = pathlib.Path(folder) / f"{uuid.uuid4().hex}.jsonl"
    with Site(options.lakebed, "--listings", options.listings, "--per-page", 100, "--log", log) as site:
        seeds = [f"{site.url}/zh/list", *odd_seeds(site)]
        site.faults(*faults)
        project = Project(options.lakebed, folder, site, database, seeds, places=PLACES, workers=8,
                          more="max_failures = 12\nmax_body_mib = 8")
        args = ("crawl", "rentals", "--date", DATE, "--no-close")
        rng = random.Random(7)
        began = time.time()
        workers = [project.start(*args) for _ in range(4)]
        kills = 0
        while any(w.poll() is None for w in workers):
            check(time.time() < began + 280, "the crowd does not end")
            time.sleep(0.2)
            if kill and kills < 6 and rng.random() < 0.1:
                n = rng.randrange(4)
                if workers[n].poll() is None:
                    workers[n].kill()
                    workers[n].communicate()
                    kills += 1
                    workers[n] = project.start(*args)
        crawled = time.time() - began
        ends = [(w.returncode, w.communicate()[1]) for w in workers]
        check(all(code in (0, -9) for code, _ in ends), ends)
        check(kills == 6 or not kill, f"{kills} processes killed")
        code, out, err = project.call("crawl", "close", "rentals", "--date", DATE, "--format", "json")
        answer = json.loads(out)
        check(code == 0, f"{code}: {answer['breaches']}: {err}")
        books = answer["books"]
        requests = project.requests()
        check(len(requests) == len({r["request_key"] for r in requests}), "a request twice")
        check(len(requests) >= 0.95 * options.listings, f"{len(requests)} requests")
        check(all(r["state"] in ("done", "dead") for r in requests), "a request that has not ended")
        check(sum(r["state"] == "dead" for r in requests) == 2, [r for r in requests if r["state"] == "dead"][:5])
        check_odd(project, requests)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        lines = [line for line in lines if line["kind"] in ("list", "detail")]
        most = max(line["host_in_flight"] for line in lines)
        # A killed process holds its places until its lease ends, and what the site does for it ends long before.
        check(most <= PLACES, f"{most} requests at once, {PLACES} places")
        print(f"    {database}: {len(requests)} requests in {crawled:.0f} s, {books['attempts']} attempts, {len(lines)} pages asked, "
              f"{books['failures']} failed attempts, {kills} processes killed, at most {most} at once")


def patience(options, folder, database: str) -> None:
    """429 with Retry-After: nobody comes too early, and no attempt is counted."""
    with Site(options.lakebed, "--listings", 40, "--fault", "rate_limit:20/1") as site:
        project = Project(options.lakebed, folder, site, database, places=4, workers=4)
        workers = [project.start("crawl", "rentals", "--date", DATE, "--no-close") for _ in range(3)]
        ends = [(w.communicate(timeout=200)[1], w.returncode) for w in workers]
        check(all(code == 0 for _, code in ends), ends)
        total = site.stats()["total"]
        check(total["by_status"].get("429", 0) > 0, total)
        # Requests that were under way when the host asked for patience cannot be called back.
        check(total["too_early"] <= 4 * total["by_status"]["429"], total)
        done = project.call("crawl", "close", "rentals", "--date", DATE, "--format", "json")
        answer = json.loads(done[1])
        check(done[0] == 0 and answer["books"]["failures"] == 0, f"{done[0]}: {answer['breaches']}")


def pauses(options, folder, database: str) -> None:
    with Site(options.lakebed, "--listings", 20) as site:
        project = Project(options.lakebed, folder, site, database, pause=300, places=3, workers=4)
        workers = [project.start("crawl", "rentals", "--date", DATE, "--no-close") for _ in range(3)]
        ends = [(w.communicate(timeout=200)[1], w.returncode) for w in workers]
        check(all(code == 0 for _, code in ends), ends)
        total = site.stats()["total"]
        # A busy machine may bring two requests nearer to each other than they were meant.
        check(total["min_gap_us"] > 100_000, total)
        check(total["max_in_flight"] <= 3 + 1, total)


# ---------------------------------------------------------------- clocks
def shifted(options, folder, database: str) -> None:
    """Three workers, one an hour ahead and one an hour behind: nothing is claimed early or late, no lease is lost, and the
    host's times are kept. The clock of the database is right, and no other one counts."""
    faked = sorted(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    check(faked, "libfaketime is not installed (Debian package `faketime`)")
    log = pathlib.Path(folder) / f"{uuid.uuid4().hex}.jsonl"
    faults = ("flaky:40:1@detail", "rate_limit:5/1/date@detail")
    site_options = [word for fault in faults for word in ("--fault", fault)]
    with Site(options.lakebed, "--listings", 40, "--log", log, *site_options) as site:
        project = Project(options.lakebed, folder, site, database, pause=100, places=3, workers=3, backoff=2000,
                          more="max_failures = 12")
        clock = {"LD_PRELOAD": str(faked[-1]), "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
        told = subprocess.run(["date", "+%s"], env=os.environ | clock | {"FAKETIME": "+3600s"}, capture_output=True, text=True)
        check(3500 < int(told.stdout) - time.time() < 3700, f"the clock is not shifted: {told.stdout}{told.stderr}")
        args = ("crawl", "rentals", "--date", DATE, "--no-close")
        began = time.time()
        # Who is wrong comes first: what it says of robots.txt and of patience holds for the others.
        workers = [project.start(*args, **clock, FAKETIME=shift) for shift in ("+3600s", "-3600s")]
        time.sleep(1)
        workers.append(project.start(*args))
        ends = [(w.communicate(timeout=200)[1], w.returncode) for w in workers]
        took = time.time() - began
        check(all(code == 0 for _, code in ends), ends)
        check(took < 90, f"{took:.0f} s")
        total = site.stats()["total"]
        check(total["min_gap_us"] > 35_000, f"requests {total['min_gap_us']} us apart, 100 ms wanted")
        check(total["max_in_flight"] <= 3 + 1, total)
        check(total["by_status"].get("429", 0) > 0, total)
        check(total["too_early"] <= 3 * total["by_status"]["429"], total)
        check(total["by_kind"]["robots"] <= 3, total)
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        tries: dict[str, list] = {}
        for line in lines:
            if line["kind"] == "detail":
                tries.setdefault(line["path"], []).append(line)
        again = [(second["start_us"] - first["end_us"]) / 1e6 for found in tries.values() for first, second in zip(found, found[1:])
                 if first["status"] == 503]
        check(len(again) > 5 and min(again) > 0.95, f"another attempt after {min(again)} s, 1 to 2 wanted")
        check(max(again) < 60, f"another attempt after {max(again)} s")
        done = project.call("crawl", "close", "rentals", "--date", DATE, "--format", "json")
        answer = json.loads(done[1])
        flaky = sum(any(line["status"] == 503 for line in found) for found in tries.values())
        check(done[0] == 0 and answer["books"]["failures"] == flaky, f"{done[0]}: {answer}: {flaky} flaky pages")
        print(f"    {database}: {took:.0f} s, {len(again)} second attempts after {min(again):.1f} to {max(again):.1f} s, "
              f"{total['by_status']['429']} times 429, least gap {total['min_gap_us'] / 1000:.0f} ms")


# ---------------------------------------------------------------- real pages
class Quiet(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        if self.path != "/":
            super().do_GET()
            return
        names = sorted(path.name for path in pathlib.Path(self.directory).glob("*.html"))
        body = "".join(f'<a class="book" href="{name}">{name}</a>\n' for name in names).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def real_pages(options, folder) -> None:
    """html-books-toscrape, served, crawled, packed, and read back by GNU tar and by `pack cat`: equal byte for byte."""
    pages = pathlib.Path(os.environ.get("LAKEBED_SHARED", "../shared")) / "data" / "html-books-toscrape"
    originals = {path.name: path.read_bytes() for path in pages.glob("*.html")}
    check(len(originals) == 200, f"{len(originals)} pages in {pages}")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(pages)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        project = Project(options.lakebed, folder, None, seeds=[f"{url}/"])
        source = project.folder / "sources" / "rentals" / "source.toml"
        source.write_text(source.read_text().replace("main a[href*='/rent/']", "a.book").replace(', total = "[data-total]", group = "all"', ""))
        code, answer, err = project.crawl()
        check(code == 0 and answer["pass"], f"{code}: {answer}: {err}")
    finally:
        server.shutdown()
    unpacked = pathlib.Path(folder) / uuid.uuid4().hex
    unpacked.mkdir()
    subprocess.run(["tar", "-xf", project.pack(), "-C", unpacked], check=True)
    bodies = {path.name.split(".")[0]: path for path in unpacked.glob("b/*/*")}
    details = {r["url"].rsplit("/", 1)[1]: r for r in project.requests() if r["stage"] == "detail"}
    check(details.keys() == originals.keys(), "other pages than those that were served")
    for name, original in originals.items():
        stored = bodies[hashlib.sha256(original).hexdigest()].read_bytes()
        check(stored == original, f"{name} differs in the pack")
    check_prune(project)
    for name in sorted(originals)[::10]:
        command = [project.binary, "pack", "cat", project.pack(), details[name]["request_key"], "--project", project.folder]
        replayed = subprocess.run(command, capture_output=True, env=project.environment, check=True).stdout
        check(replayed == originals[name], f"{name}: `pack cat` gives other bytes")


def check_prune(project: Project) -> None:
    """Parts go with their run, and only where the lake holds them."""
    (parts,) = (project.folder / "crawl" / "rentals").iterdir()
    prune = ("queue", "prune", "--before", "2100-01-01", "--format", "json")
    pack, held = project.pack(), sorted(parts.iterdir())
    away = pack.with_name("away")
    pack.rename(away)
    kept = json.loads(project.must(*prune))
    check(kept["runs"] == [] and "not at its place" in kept["kept"][0]["reason"], kept)
    away.rename(pack)
    would = json.loads(project.must(*prune, "--dry-run"))
    check(sorted(parts.iterdir()) == held and project.requests(), "something went before it was to go")
    gone = json.loads(project.must(*prune))
    check(gone["parts"] == would["parts"] == len(held) - 1 and gone["part_bytes"] > 100_000, (would, gone))
    check([path.name for path in parts.iterdir()] == ["run.json"], "parts are left")
    check(json.loads(project.must("queue", "status", "--format", "json"))["runs"] == [], "the run is left")


ENDINGS = [green, forbidden, circuit, no_seeds, a_planner_that_fails, robots_say_no, a_list_that_promises_more, terminated,
           real_pages]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lakebed", type=pathlib.Path, required=True)
    parser.add_argument("--listings", type=int, default=10_200)
    parser.add_argument("--only")
    parser.add_argument("--database", action="append")
    options = parser.parse_args()
    options.lakebed = options.lakebed.resolve()
    checks = [(f.__name__, f, ()) for f in ENDINGS]
    for database in options.database or ["sqlite", "postgres", "mysql"]:
        checks.append((f"crowd {database}", crowd, (database, False)))
        checks.append((f"killed crowd {database}", crowd, (database, True)))
        checks.append((f"patience {database}", patience, (database,)))
        checks.append((f"pauses {database}", pauses, (database,)))
        if database != "sqlite":
            checks.append((f"shifted clocks {database}", shifted, (database,)))
    right = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, function, args in checks:
            if options.only and options.only not in name:
                continue
            start = time.time()
            try:
                function(options, folder, *args)
                right += 1
                print(f"right {name} ({time.time() - start:.1f} s)", flush=True)
            except Exception as error:
                wrong += 1
                print(f"WRONG {name}: {error!r}"[:3000], flush=True)
    print(f"{right} right, {wrong} wrong-loud")
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
