"""Crawls of the test site on the same machine: requests a second, CPU seconds for a thousand, and peak memory as they grow.

Lakebed's crawl does all that a crawl does: robots.txt, a queue on SQLite, the host's places, every response durable in a
part before its end is told. It stops short of the closing (`--no-close`). Scrapy keeps nothing of what it gets.
"""

import json

from crawling import CrawlProject, Site
from measure import BENCH, Run, median, note, rounds, run, venv_python, verdict

WORKERS = 32


def fetch_part(options) -> str:
    listings = 300 if options.quick else 4_000
    with Site(options.lakebed, listings) as site:
        contestants = {"lakebed": lambda: lakebed_round(options, site), "scrapy": lambda: scrapy_round(site)}
        runs = rounds(options.rounds, contestants, "fetch")
    return "\n".join([rates(listings, runs), growth(options)])


def lakebed_round(options, site: Site) -> Run:
    return CrawlProject(options.lakebed, site, "fetch-project", WORKERS).crawl("--no-close")


def scrapy_round(site: Site) -> Run:
    done = run([venv_python("crawls"), BENCH / "scrapy_peer.py", f"{site.url}/zh/list"])
    answer = json.loads(done.stdout)
    if answer["reason"] != "finished":
        raise SystemExit(f"Scrapy ended with {answer}")
    done.wall_s = answer["seconds"]
    done.extra = {"requests": answer["requests"]}
    return done


def rates(listings: int, runs: dict[str, list[Run]]) -> str:
    names = {"lakebed": "**Lakebed**, responses durable in parts", "scrapy": "Scrapy, responses thrown away"}
    lines = [f"### Crawl of the test site, {listings:,} listings, one process, {WORKERS} at once, median of {len(runs['lakebed'])} rounds\n",
             "| | requests | requests a second | CPU s for 1,000 | peak MB |", "| --- | --- | --- | --- | --- |"]
    for name, label in names.items():
        done = runs[name]
        count = done[0].extra["requests"]
        lines.append(f"| {label} | {count:,} | {count / median(done, 'wall_s'):,.0f} | {median(done, 'cpu_s') / count * 1000:.2f} | "
                     f"{median(done, 'peak_mb'):.0f} |")
    return "\n".join(lines) + "\n"


def growth(options) -> str:
    """The peak of one process at ten thousand requests and at a hundred thousand."""
    sizes = (500, 2_000) if options.quick else (10_000, 100_000)
    lines = ["### Memory as a crawl grows\n", "| requests | peak MB | requests a second | CPU s for 1,000 |", "| --- | --- | --- | --- |"]
    peaks = []
    for listings in sizes:
        with Site(options.lakebed, listings) as site:
            done = lakebed_round(options, site)
        count = done.extra["requests"]
        peaks.append(done.peak_mb)
        note(f"fetch {count}: {done.wall_s:.1f} s, {done.peak_mb:.0f} MB")
        lines.append(f"| {count:,} | {done.peak_mb:.0f} | {count / done.wall_s:,.0f} | {done.cpu_s / count * 1000:.2f} |")
    growth = peaks[1] / peaks[0]
    lines.append(f"\nTen times the requests, {growth:.2f} times the memory (target: flat, at most 1.25: {verdict(growth <= 1.25)}).\n")
    return "\n".join(lines)
