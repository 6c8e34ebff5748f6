"""Packs: size and speed of sealing, of a verified replay and of one document, beside `tar | zstd -9` and warcio.

The captures are those of a crawl of the test site (its zh pages), and the pages of html-books-toscrape. The peers get the
same bodies and capture lines as files, in the order of the crawl. Size has two peers: one frame of zstd over a line and a body
by turns, as the fact sheet has it (the target), and over all lines first, which is harder to beat. All figures are of one core: CPU
seconds, not time; Lakebed and warcio tell those of their own work, without the start of a process.
"""

import json
import pathlib
import shutil

from crawling import CrawlProject, Site
from measure import BENCH, OUT, ROOT, Run, fresh, harness, median, note, rounds, run, venv_python, verdict

SHARED = ROOT.parent / "shared"
PACK = "2026-11-30.day-00000000.tar.zst"
# In the order of the crawl, and with nothing in the headers that only costs.
TAR = "tar --sort=name --mtime=@0 --owner=0 --group=0 --format=ustar"


def packs_part(options) -> str:
    return "\n".join(text for text in (site_day(options), books(options)) if text)


def site_day(options) -> str:
    listings = 300 if options.quick else 4_000
    with Site(options.lakebed, listings) as site:
        project = CrawlProject(options.lakebed, site, "packs-project")
        crawled = project.crawl()
        note(f"crawled {crawled.extra['requests']} pages in {crawled.wall_s:.1f} s")
    text = compare(options, "rentals", project.parts, f"A day of the test site ({listings:,} listings, zh)")
    shutil.rmtree(project.folder)
    return text


def books(options) -> str:
    pages = SHARED / "data" / "html-books-toscrape"
    if not pages.is_dir():
        note(f"{pages} is not there: the books are left out")
        return ""
    parts = fresh("packs-books")
    run([harness(options), "packs", "fill", pages, parts])
    text = compare(options, "books", parts, "html-books-toscrape")
    shutil.rmtree(parts)
    return text


def compare(options, source: str, parts: pathlib.Path, title: str) -> str:
    files, out = fresh("packs-files"), fresh("packs-out")
    given = json.loads(run([harness(options), "packs", "spread", source, parts, files]).stdout)
    python = venv_python("crawls")
    warc, tar = OUT / "packs.warc.gz", OUT / "packs.tar.zst"
    writing = {
        "lakebed": lambda: ours(options, "seal", source, parts, out),
        "zstd": lambda: shell(f"{TAR} -C {files} -cf - b | zstd -q -9 -f -o {tar}"),
        "warcio": lambda: peer([python, BENCH / "warc_peer.py", "write", files, warc]),
    }
    reading = {
        "lakebed": lambda: ours(options, "replay", out),
        "zstd": lambda: shell(f"zstd -q -dc {tar} | tar -xOf - | sha256sum"),
        "warcio": lambda: peer([python, BENCH / "warc_peer.py", "read", warc]),
    }
    written = rounds(options.rounds, writing, f"packs {source} write")
    read = rounds(options.rounds, reading, f"packs {source} read")
    sizes = {"lakebed": (out / PACK).stat().st_size, "zstd": tar.stat().st_size, "warcio": warc.stat().st_size}
    shell(f"{TAR} --exclude='*.json' -C {files} -cf - captures.jsonl b | zstd -q -9 -f -o {tar}")
    sizes["grouped"] = tar.stat().st_size
    document = json.loads(run([harness(options), "packs", "get", out]).stdout)
    for path in (files, out):
        shutil.rmtree(path)
    warc.unlink()
    tar.unlink()
    return table(title, given, sizes, written, read, document)


def ours(options, *args) -> Run:
    done = run([harness(options), "packs", *args])
    done.extra = json.loads(done.stdout)
    done.cpu_s = done.extra["cpu_s"]
    return done


def shell(command: str) -> Run:
    return run(["bash", "-c", f"set -eo pipefail; {command}"])


def peer(command: list) -> Run:
    """What it says of its own work, without the start of Python."""
    done = run(command)
    answer = json.loads(done.stdout)
    done.wall_s, done.cpu_s = answer["seconds"], answer["cpu_s"]
    return done


NAMES = {"lakebed": "**Lakebed**, `pack seal` (std), verified replay", "zstd": "`tar` (line and body by turns) piped into `zstd -9`; `zstd -d`, `tar -xO`, SHA-256 of all",
         "warcio": "warcio, `.warc.gz` with digests; read with digests checked"}


def table(title: str, given: dict, sizes: dict, written: dict, read: dict, document: dict) -> str:
    size_mb = given["bytes"] / 1e6
    lines = [f"### {title}: {given['captures']:,} captures, {size_mb:.1f} MB of bodies\n",
             "| | size MB | by `zstd -9` | written MB/s a core | read MB/s a core | peak MB writing |", "| --- | --- | --- | --- | --- | --- |"]
    speed = {}
    for name, label in NAMES.items():
        speed[name] = tuple(size_mb / median(runs[name], "cpu_s") for runs in (written, read))
        lines.append(f"| {label} | {sizes[name] / 1e6:.2f} | {sizes[name] / sizes['zstd']:.3f} | {speed[name][0]:.0f} | "
                     f"{speed[name][1]:.0f} | {median(written[name], 'peak_mb'):.0f} |")
    size, seal, times = sizes["lakebed"] / sizes["zstd"], speed["lakebed"][0], speed["lakebed"][1] / speed["warcio"][1]
    mean = document["mean"] / 1000
    lines.append(
        f"\nSize {size:.3f} of `zstd -9` (target at most 1.00: {verdict(size <= 1)}), {sizes['lakebed'] / sizes['grouped']:.3f} of `zstd -9` "
        f"given all lines before all bodies ({sizes['grouped'] / 1e6:.2f} MB), and {sizes['lakebed'] / sizes['warcio']:.2f} of warcio; "
        f"seal {seal:.0f} MB/s a core (target 50: {verdict(seal >= 50)}), verifying the parts, comparing with the terminals and writing the index "
        f"included; replay {times:.1f} times warcio (target 3: {verdict(times >= 3)}). One document by the index reads {mean:.0f} kB in the "
        f"mean (target under 450: {verdict(mean < 450)}), 99 of 100 at most {document['p99'] / 1000:.0f} kB, in {document['median_ms']:.1f} ms "
        f"(median of {document['documents']}); {document['frames']} frames.\n")
    return "\n".join(lines)
