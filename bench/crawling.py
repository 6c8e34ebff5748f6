"""A project that crawls the test site, for the parts that measure crawls and what they leave."""

import json
import pathlib
import subprocess

from measure import Run, fresh, run

DATE = "2026-11-30"
SOURCE = """class = "log"

[crawl]
user_agent = "lakebed-bench/1 (+https://lakebed.example/bot)"
hosts = ["127.0.0.1"]
allow_private = ["127.0.0.0/8"]
seeds = "seeds.txt"
seed_stage = "list"

[crawl.stage.list]
priority = -1
follow = [
    { stage = "detail", css = "main a[href*='/rent/']" },
    { stage = "list", css = "a[rel=next]" },
]

[crawl.stage.detail]
"""
LOCAL = "[crawl.usual]\npause_ms = 0\nplaces = 64\nworkers = {workers}\n"


class Site:
    """`lakebed demo-site` on a free port of this machine."""

    def __init__(self, binary: pathlib.Path, listings: int) -> None:
        command = [binary, "demo-site", "--port", "0", "--format", "json", "--date", DATE, "--listings", str(listings)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        told = json.loads(self.process.stdout.readline())
        self.url = (told.get("url") or told["address"]).rstrip("/")

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *_) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)


class CrawlProject:
    def __init__(self, binary: pathlib.Path, site: Site, name: str, workers: int = 32) -> None:
        self.binary, self.folder = binary, fresh(name)
        self.call("init", self.folder, "--time-zone", "Asia/Taipei", project=False)
        self.call("source", "add", "rentals", "--class", "log")
        source = self.folder / "sources" / "rentals"
        (source / "source.toml").write_text(SOURCE, encoding="utf-8")
        (source / "seeds.txt").write_text(f"{site.url}/zh/list\n", encoding="utf-8")
        (self.folder / "lakebed.local.toml").write_text(LOCAL.format(workers=workers), encoding="utf-8")

    def call(self, *args, project: bool = True) -> Run:
        return run([self.binary, *args, *(["--project", self.folder] if project else [])])

    def crawl(self, *args) -> Run:
        """One crawl from its seeds to its end; `extra` holds how many requests were done."""
        done = self.call("crawl", "rentals", "--date", DATE, "--format", "json", *args)
        counted = json.loads(self.call("queue", "list", "rentals", "--date", DATE, "--limit", "10000000", "--format", "json").stdout)
        requests = counted["requests"]
        if any(r["state"] != "done" for r in requests):
            raise SystemExit("the crawl of the test site left something")
        done.extra = {"requests": len(requests)}
        return done

    @property
    def parts(self) -> pathlib.Path:
        (folder,) = (self.folder / "crawl" / "rentals").iterdir()
        return folder
