#!/usr/bin/env python3
"""Crawls of the test site, judged from outside: exit codes, the queue's own lists, and the site's log.

    check_crawl.py --lakebed target/debug/lakebed [--listings 400] [--only NAME] [--database sqlite|postgres|mysql]

LAKEBED_TEST_POSTGRES and LAKEBED_TEST_MYSQL name servers (`.ci/servers` starts them). Every silent ending must be red:
everything forbidden, no seed, a planner that fails, half of a list missing, a run that was stopped. Every crowd of
processes, some of them killed, must end each request once and keep to the limits of the host.
"""

import argparse
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
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
backoff_ms = 20
timeout_s = 20
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
                 window=100) -> None:
        self.binary, self.folder = binary, pathlib.Path(folder) / uuid.uuid4().hex
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("LAKEBED_")}
        self.must("init", self.folder, "--time-zone", "Asia/Taipei")
        self.must("source", "add", "rentals", "--class", "log")
        source = self.folder / "sources" / "rentals"
        (source / "source.toml").write_text(SOURCE.format(more=more))
        seeds = [f"{site.url}/zh/list"] if seeds is None else seeds
        (source / "seeds.txt").write_text("".join(f"{s}\n" for s in seeds))
        local = LOCAL.format(pause=pause, places=places, workers=workers, window=window)
        (self.folder / "lakebed.local.toml").write_text(local)
        self.environment |= queue_of(database)

    def start(self, *args) -> subprocess.Popen:
        command = [self.binary, *map(str, args), "--project", self.folder]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True, env=self.environment)

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
        check(again[0] == 1, f"a closed run is crawled again: {again}")
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
        project = Project(options.lakebed, folder, site, seeds=site.details(), window=20)
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
def crowd(options, folder, database: str, kill: bool) -> None:
    faults = ["flaky:10:1", "truncate:2", "slow:2", "burst:400:5"]
    log = pathlib.Path(folder) / f"{uuid.uuid4().hex}.jsonl"
    site_options = ["--listings", options.listings, "--log", log]
    for fault in faults:
        site_options += ["--fault", fault]
    with Site(options.lakebed, *site_options) as site:
        project = Project(options.lakebed, folder, site, database, places=6, workers=4, more="max_failures = 12")
        args = ("crawl", "rentals", "--date", DATE, "--no-close")
        rng = random.Random(7)
        workers = [project.start(*args) for _ in range(4)]
        kills = 0
        deadline = time.time() + 240
        while any(w.poll() is None for w in workers):
            check(time.time() < deadline, "the crowd does not end")
            time.sleep(0.2)
            if kill and kills < 6 and rng.random() < 0.3:
                n = rng.randrange(4)
                if workers[n].poll() is None:
                    workers[n].kill()
                    workers[n].communicate()
                    kills += 1
                    workers[n] = project.start(*args)
        ends = [(w.returncode, w.communicate()[1]) for w in workers]
        check(all(code in (0, -9) for code, _ in ends), ends)
        code, out, err = project.call("crawl", "close", "rentals", "--date", DATE, "--format", "json")
        answer = json.loads(out)
        check(code == 0, f"{code}: {answer['breaches']}: {err}")
        books = answer["books"]
        requests = project.requests()
        check(len(requests) == len({r["request_key"] for r in requests}), "a request twice")
        check(all(r["state"] in ("done", "dead") for r in requests), "a request that has not ended")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        most = max(line["host_in_flight"] for line in lines)
        # A killed process holds its places until its lease ends; what the site still does for it then comes on top.
        check(most <= 6 + (0 if not kill else 6), f"{most} requests at once, 6 places")
        pages = [line for line in lines if line["kind"] in ("list", "detail")]
        print(f"    {database}: {len(requests)} requests, {books['attempts']} attempts, {len(pages)} pages asked, "
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


ENDINGS = [green, forbidden, circuit, no_seeds, a_planner_that_fails, robots_say_no, a_list_that_promises_more, terminated]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lakebed", type=pathlib.Path, required=True)
    parser.add_argument("--listings", type=int, default=400)
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
