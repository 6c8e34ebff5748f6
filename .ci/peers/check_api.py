#!/usr/bin/env python3
"""Crawls the test site through `lakebed serve --api`, with nothing but Python's standard library.

    check_api.py --lakebed target/debug/lakebed [--listings 150] [--database sqlite|postgres|mysql] [--only NAME]

LAKEBED_TEST_POSTGRES and LAKEBED_TEST_MYSQL name servers (`.ci/servers` starts them). On each database two crawlers of a few lines
crawl the site while it misbehaves; one of them is killed, and so is the server; finishes are told twice, too late and by halves, calls
are rubbish. In the end every request has ended once, the pack holds the bytes that the site sent, and the closing says so.
"""

import argparse
import hashlib
import html.parser
import http.client
import json
import multiprocessing
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import uuid

from check_crawl import DATE, Site, check, queue_of
from pack_lines import whole

SOURCE = """class = "log"

[crawl]
user_agent = "lakebed-test/1 (+https://lakebed.example/bot)"
hosts = ["127.0.0.1"]
allow_private = ["127.0.0.0/8"]
seed_stage = "list"
max_dead_share = 0.2
max_failures = 12
max_body_mib = 2

[crawl.stage.list]
priority = -1

[crawl.stage.detail]
"""
LOCAL = """[crawl.usual]
pause_ms = 0
places = 6
backoff_ms = 20
lease_s = 3
"""
RUN = f"/v1/runs/rentals/{DATE}/day"
FRAMED = "application/vnd.lakebed.finish"


class Project:
    def __init__(self, binary, folder, database) -> None:
        self.binary, self.folder = binary, pathlib.Path(folder) / uuid.uuid4().hex
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("LAKEBED_")}
        self.must("init", self.folder, "--time-zone", "Asia/Taipei")
        self.must("source", "add", "rentals", "--class", "log")
        (self.folder / "sources" / "rentals" / "source.toml").write_text(SOURCE)
        (self.folder / "lakebed.local.toml").write_text(LOCAL)
        self.environment |= queue_of(database)

    def start(self, *args) -> subprocess.Popen:
        command = [self.binary, *map(str, args), "--project", self.folder]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment)

    def must(self, *args) -> bytes:
        process = self.start(*args)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, f"{args}: {process.returncode}: {err.decode()}"
        return out

    def json(self, *args):
        return json.loads(self.must(*args, "--format", "json"))


class Server:
    def __init__(self, project) -> None:
        self.project, self.port = project, 0
        self.start()

    def start(self) -> None:
        listen = f"127.0.0.1:{self.port}"
        self.process = self.project.start("serve", "--api", "--listen", listen, "--format", "json", "--quiet")
        told = json.loads(self.process.stdout.readline())
        self.port = told["port"]
        self.token = pathlib.Path(told["token_file"]).read_text().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        _, err = self.process.communicate(timeout=40)
        check(self.process.returncode == 0, f"the server ended with {self.process.returncode}: {err.decode()}")
        check(self.token not in err.decode(), "the token stands in the log")


class Api:
    """The interface, one call at a time."""

    def __init__(self, port, token) -> None:
        self.port, self.token = port, token

    def call(self, method, path, body=b"", media="application/json", token=None):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Content-Type": media, "Authorization": f"Bearer {token or self.token}"}
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def must(self, method, path, body=b""):
        status, answer = self.call(method, path, body)
        check(status == 200, f"{method} {path}: {status}: {answer}")
        return answer

    def refused(self, wanted, code, method, path, body=b"", **more) -> None:
        status, answer = self.call(method, path, body, **more)
        told = answer.get("error", {}).get("code")
        check((status, told) == (wanted, code), f"{method} {path}: {status} {answer}, not {wanted} {code}")

    def finish(self, request, call, body=b""):
        data = json.dumps(call).encode() + b"\n" + body
        return self.call("POST", f"{RUN}/requests/{request}/finish", data, FRAMED)


class Links(html.parser.HTMLParser):
    """Links of a list page."""

    def __init__(self) -> None:
        super().__init__()
        self.details, self.next, self.within = [], [], False

    def handle_starttag(self, tag, attrs) -> None:
        attrs = dict(attrs)
        self.within |= tag == "main"
        if tag == "a" and attrs.get("rel") == "next":
            self.next.append(attrs["href"])
        elif tag == "a" and self.within and "/rent/" in attrs.get("href", ""):
            self.details.append(attrs["href"])

    def handle_endtag(self, tag) -> None:
        self.within &= tag != "main"


def fetch(url):
    """Status, headers as pairs, body; an exception where the body is not whole."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    try:
        path = urllib.parse.urlunsplit(("", "", parts.path, parts.query, ""))
        connection.request("GET", path, headers={"User-Agent": "lakebed-test/1"})
        answer = connection.getresponse()
        return answer.status, answer.getheaders(), answer.read()
    finally:
        connection.close()


def work_on(claim, worker):
    """What came of a claim: the call that finishes it, and its bytes."""
    url = claim["url"]
    call = {"worker": worker, "attempt": claim["attempt"]}
    try:
        status, headers, body = fetch(url)
    except (http.client.HTTPException, OSError) as error:
        return call | {"end": "failed", "class": "disconnect",
                       "responses": [{"url": url, "error": f"{error!r}"[:200]}]}, b""
    response = {"url": url, "status": status, "headers": headers, "body_bytes": len(body), "empty": not body}
    if status == 429:
        return call | {"end": "blocked", "responses": [response]}, body
    if not 200 <= status < 300:
        return call | {"end": "failed", "responses": [response]}, body
    links = Links()
    if claim["stage"] == "list":
        links.feed(body.decode())
    details = [{"url": u, "stage": "detail", "group": "all"} for u in dict.fromkeys(links.details)]
    follow = details + [{"url": u, "stage": "list"} for u in links.next]
    return call | {"end": "done", "responses": [response], "follow": follow}, body


def crawler(port, token, log, halves: bool) -> None:
    """A crawler: claims, fetches, finishes, until the run is drained. It tells what it finished in its log."""
    api, left, deadline = Api(port, token), None, time.time() + 200
    while True:
        try:
            if left:
                # What it held when the server went away goes back.
                api.must("DELETE", f"{RUN}/workers/{left}")
            left = api.must("POST", f"{RUN}/workers", {"label": "check_api.py"})["worker"]
            return crawl_on(api, left, log, halves)
        except (OSError, http.client.HTTPException) as error:
            check(time.time() < deadline, f"the server stays away: {error!r}")
            time.sleep(0.1)


def crawl_on(api, worker, log, halves: bool) -> None:
    with open(log, "a", encoding="utf-8") as told:
        while True:
            name = uuid.uuid4().hex
            answer = api.must("POST", f"{RUN}/claims", {"worker": worker, "limit": 4, "call": name})
            if answer["outcome"] == "drained":
                break
            check(answer["outcome"] != "stopped", answer)
            time.sleep(answer.get("wait_ms", 0) / 1000)
            for n, claim in enumerate(answer["claims"]):
                time.sleep(claim["wait_ms"] / 1000)
                call, body = work_on(claim, worker)
                if halves and n == 1 and body:
                    cut_off(api, claim["request"], call, body)
                status, finished = api.finish(claim["request"], call, body)
                if status == 409 and finished["error"]["code"] == "fence_lost":
                    continue
                check(status == 200, f"{claim['url']}: {status}: {finished}")
                if n == 0:
                    again = api.finish(claim["request"], call, body)
                    # A failed attempt may have been claimed anew meanwhile.
                    check(again == (status, finished) or (call["end"] != "done" and again[0] == 409), f"told twice: {finished}, {again}")
                if call["end"] == "done":
                    line = {"url": claim["url"], "capture": finished["capture"], "sha256": hashlib.sha256(body).hexdigest()}
                    told.write(json.dumps(line) + "\n")
                    told.flush()
    api.must("DELETE", f"{RUN}/workers/{worker}")


def cut_off(api, request, call, body) -> None:
    """A connection that breaks in the midst of a body."""
    data = json.dumps(call).encode() + b"\n" + body
    head = (f"POST {RUN}/requests/{request}/finish HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {api.token}\r\n"
            f"Content-Type: {FRAMED}\r\nContent-Length: {len(data)}\r\n\r\n").encode()
    with socket.create_connection(("127.0.0.1", api.port)) as connection:
        connection.sendall(head + data[:-len(body) // 2])


# ---------------------------------------------------------------- what is checked
def rubbish(api) -> None:
    """Calls that nobody should make; the run is none the worse."""
    claims = f"{RUN}/claims"
    api.refused(401, "unauthorized", "GET", RUN, token="0" * 64)
    api.refused(404, "no_route", "GET", "/v1/nothing")
    api.refused(405, "method_not_allowed", "PATCH", RUN)
    api.refused(415, "wrong_type", "POST", claims, b"<x/>", media="text/xml")
    for text in (b"", b"{", b"[]", b"\xff\xfe", b"null", b'{"worker": 1}', b'{"worker":"x","limit":1,"lease":5}', b"[" * 100_000):
        api.refused(400, "bad_json", "POST", claims, text)
    api.refused(404, "not_found", "POST", claims, {"worker": "nobody", "limit": 1})
    api.refused(413, "too_large", "POST", claims, b" " * (17 << 20))
    with socket.create_connection(("127.0.0.1", api.port)) as connection:
        connection.sendall(b"\x16\x03\x01 this is no HTTP\r\n\r\n")
        check(connection.recv(100).startswith(b"HTTP/1.1 400"), "no HTTP is answered with 400")


def zombie(api) -> None:
    """A worker that sleeps over its lease finishes nothing."""
    joined = api.must("POST", f"{RUN}/workers", {"label": "sleeper"})
    answer = api.must("POST", f"{RUN}/claims", {"worker": joined["worker"], "limit": 1})
    claim = answer["claims"][0]
    call, body = work_on(claim, joined["worker"])
    # Its lease ends, and the server looks every quarter of one.
    time.sleep(2 * joined["lease_ms"] / 1000)
    api.refused(409, "worker_lost", "POST", f"{RUN}/workers/{joined['worker']}/heartbeat")
    status, told = api.finish(claim["request"], call, body)
    check((status, told["error"]["code"]) == (409, "fence_lost"), f"a zombie: {status}: {told}")


def crawl(options, folder, database: str) -> None:
    faults = ["--fault", "flaky:10:1", "--fault", "truncate:2", "--fault", "rate_limit:60/1"]
    with Site(options.lakebed, "--listings", options.listings, *faults) as site:
        project = Project(options.lakebed, folder, database)
        with Server(project) as server:
            api = Api(server.port, server.token)
            api.must("PUT", RUN)
            seed = {"url": f"{site.url}/zh/list", "stage": "list"}
            for _ in range(2):
                api.must("POST", f"{RUN}/seeds", {"seeding": "one", "batch": 0, "seeds": [seed]})
            api.must("POST", f"{RUN}/open", {"seeding": "one", "announced": 1})
            zombie(api)
            rubbish(api)
            logs = [pathlib.Path(folder) / f"{uuid.uuid4().hex}.jsonl" for _ in range(3)]
            start = lambda n, halves: multiprocessing.Process(target=crawler, args=(server.port, server.token, logs[n], halves))
            workers = [start(0, True), start(1, False)]
            for worker in workers:
                worker.start()
            deadline = time.time() + 60
            while len(lines_of(logs[1])) < 10:
                check(time.time() < deadline, "the crawlers do nothing")
                time.sleep(0.05)
            os.kill(workers[1].pid, signal.SIGKILL)
            workers[1].join()
            workers[1] = start(2, False)
            workers[1].start()
            while len(lines_of(logs[0])) + len(lines_of(logs[2])) < 40:
                check(time.time() < deadline, "the crawlers do nothing")
                time.sleep(0.02)
            server.kill()
            check(workers[0].is_alive() and workers[1].is_alive(), "the crawlers ended too soon")
            time.sleep(0.3)
            server.start()
            for worker in workers:
                worker.join(timeout=240)
                check(worker.exitcode == 0, f"a crawler ended with {worker.exitcode}")
            closed = api.must("POST", f"{RUN}/close")
            check(closed["pass"] and closed["exit_code"] == 0, closed)
            again = api.must("POST", f"{RUN}/close")
            check((again["pass"], again["books"]) == (closed["pass"], closed["books"]), again)
        judge(project, site, [line for log in logs for line in lines_of(log)], closed)
        books, pack = closed["books"], closed["pack"]
        print(f"    {database}: {sum(books['states'].values())} requests, {books['attempts']} attempts, {books['failures']} failed, "
              f"{pack['captures']} responses in the pack, {pack['unnamed']} of them of attempts that did not count")


def lines_of(log) -> list[dict]:
    if not log.exists():
        return []
    whole = log.read_text(encoding="utf-8").rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def judge(project, site, told, closed) -> None:
    listed = project.json("queue", "list", "rentals", "--date", DATE, "--limit", 1_000_000)["requests"]
    check(len(listed) == len({r["request_key"] for r in listed}), "a request twice")
    check(all(r["state"] in ("done", "dead") for r in listed), "a request that has not ended")
    done = {r["capture"]: r["url"] for r in listed if r["state"] == "done"}
    check({line["capture"] for line in told} <= set(done), "a finish that was answered and is not there")
    # Whoever was killed between a finish and its line told one less.
    check(len(done) - len({line["capture"] for line in told}) <= 2, f"{len(done)} done, {len(told)} told")
    site.faults()
    details = {url for url in done.values() if "/rent/" in url}
    check(details == set(site.details()), f"{len(details)} listings of {len(site.details())}")
    pack = project.folder / "lake" / closed["pack"]["pack"]
    project.must("pack", "verify", pack)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "-xf", pack, "-C", folder], check=True)
        bodies = {p.name.split(".")[0]: hashlib.sha256(p.read_bytes()).hexdigest() for p in pathlib.Path(folder).glob("b/*/*")}
        check(all(name == digest for name, digest in bodies.items()), "a body with another hash")
        head = json.loads((pathlib.Path(folder) / "PACK.json").read_text())
        metas = [line for p in sorted(pathlib.Path(folder).glob("m/*")) for line in whole(head, p.read_text())]
    held = {m["capture_id"]: m for m in metas}
    check(len(held) == len(metas), "a response twice")
    for line in told:
        check(held[line["capture"]]["body_sha256"] == line["sha256"], f"{line['url']} has other bytes")
    some = told[len(told) // 2]
    body = project.must("pack", "cat", pack, some["capture"])
    check(hashlib.sha256(body).hexdigest() == some["sha256"], "`pack cat` gives other bytes")
    code = project.start("crawl", "close", "rentals", "--date", DATE)
    code.communicate(timeout=60)
    check(code.returncode == closed["exit_code"], f"`crawl close` ends with {code.returncode}")
    project.must("audit", "--deep")


def page(options, folder, database: str) -> None:
    """The commands of docs/api.md, as they stand there."""
    text = (pathlib.Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    commands = text.split("<!-- run: api -->\n```sh\n")[1].split("```")[0]
    with Site(options.lakebed, "--listings", 30) as site:
        project = Project(options.lakebed, folder, database)
        with Server(project) as server:
            site_port = urllib.parse.urlsplit(site.url).port
            commands = commands.replace(":8790/", f":{server.port}/").replace(":8787/", f":{site_port}/")
            ran = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=project.folder, capture_output=True, text=True)
            check(ran.returncode == 0, f"{ran.returncode}: {ran.stdout[-2000:]}{ran.stderr}")
            closed, _ = json.JSONDecoder().raw_decode(ran.stdout[ran.stdout.rindex('{"format":1,"run"'):])
            check(closed["pass"] and closed["pack"]["captures"] == 1, closed)


def red(options, folder, database: str) -> None:
    """A crawler that takes a 403 for an answer is refused, and a site that forbids everything ends red."""
    with Site(options.lakebed, "--listings", 30, "--fault", "forbid") as site:
        project = Project(options.lakebed, folder, database)
        with Server(project) as server:
            api = Api(server.port, server.token)
            api.must("PUT", RUN)
            seeds = [{"url": f"{site.url}/zh/rent/{n}", "stage": "detail"} for n in range(5)]
            api.must("POST", f"{RUN}/seeds", {"seeding": "one", "batch": 0, "seeds": seeds})
            api.must("POST", f"{RUN}/open", {"seeding": "one", "announced": 5})
            worker = api.must("POST", f"{RUN}/workers", {})["worker"]
            for claim in api.must("POST", f"{RUN}/claims", {"worker": worker, "limit": 5})["claims"]:
                call, body = work_on(claim, worker)
                swallowed = call | {"end": "done"}
                status, told = api.finish(claim["request"], swallowed, body)
                check((status, told["error"]["code"]) == (422, "not_an_answer"), told)
                check(api.finish(claim["request"], call, body)[0] == 200, "a failure")
            closed = api.must("POST", f"{RUN}/close")
            check(closed["exit_code"] == 14 and closed["breaches"][0]["kind"] == "all_dead", closed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lakebed", type=pathlib.Path, required=True)
    parser.add_argument("--listings", type=int, default=150)
    parser.add_argument("--only")
    parser.add_argument("--database", action="append")
    options = parser.parse_args()
    options.lakebed = options.lakebed.resolve()
    right = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for database in options.database or ["sqlite", "postgres", "mysql"]:
            for function in (crawl, red, page) if database == "sqlite" else (crawl, red):
                name = f"{function.__name__} {database}"
                if options.only and options.only not in name:
                    continue
                start = time.time()
                try:
                    function(options, folder, database)
                    right += 1
                    print(f"right {name} ({time.time() - start:.1f} s)", flush=True)
                except Exception as error:
                    wrong += 1
                    print(f"WRONG {name}: {error!r}"[:3000], flush=True)
    print(f"{right} right, {wrong} wrong-loud")
    return 0 if wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
