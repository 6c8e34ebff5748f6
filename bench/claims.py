"""Claims and finishes a second: the queue beside the one statement each that the database needs for them at least.

The two sides take turns in a database of their own on the same servers, with the same durability: SQLite as the queue
opens it (WAL, `synchronous = normal`), PostgreSQL and MariaDB as they come (a commit is on the disk before it is answered).
What each side says to the database stands on the page and in bench/harness/src/queue/raw.rs.
"""

import contextlib
import json
import statistics

import mariadb
import postgres
from measure import Run, fresh, harness, median, rounds, run, verdict

BATCHES = (1, 10, 100)
TARGET = 0.8
FLAT = 0.1
# Connections of one process, as the ceiling was measured first.
WORKERS = {"SQLite": 1, "PostgreSQL": 8, "MariaDB": 4}
# Requests that are there to be taken, for each second and batch: more than the fastest side takes.
RATE = {1: 25_000, 10: 100_000, 100: 200_000}


def measured(options, server: str, database: str, side: str, batch: int, done: int = 0, snapshot: int = 0, seconds: int = 3) -> Run:
    command = [harness(options), "queue", side, server, "--batch", batch, "--workers", WORKERS[database], "--seconds", seconds,
               "--rows", RATE[batch] * seconds, "--done", done, "--snapshot", snapshot]
    done_run = run(command)
    answer = json.loads(done_run.stdout)
    done_run.wall_s = answer["wall_s"]
    done_run.extra = {"rate": answer["count"] / answer["wall_s"]}
    return done_run


@contextlib.contextmanager
def servers():
    with postgres.server() as connection, mariadb.server() as url:
        found = {"SQLite": str(fresh("queue"))}
        if connection is not None:
            words = dict(word.split("=") for word in connection.split())
            found["PostgreSQL"] = f"postgres://{words['user']}@{words['host']}:{words['port']}"
        if url is not None:
            found["MariaDB"] = url
        yield found


def queue_part(options) -> str:
    text = []
    with servers() as found:
        lines = ["### Claims and finishes a second, beside bare SQL\n",
                 f"Median of {options.rounds} rounds of three seconds; the ratio is that of the two rates within each round, its median.\n",
                 "| database | workers | batch | **Lakebed** | bare SQL | ratio | target 0.8 |", "| --- | --- | --- | --- | --- | --- | --- |"]
        for database, server in found.items():
            for batch in BATCHES:
                lines.append(beside(options, database, server, batch))
        text += [*lines, "", flat_text(options, found)]
    return "\n".join(text)


def paired(left: list[Run], right: list[Run]) -> float:
    """The median of the ratios within the rounds: what else the machine does meets both."""
    return statistics.median(a.extra["rate"] / b.extra["rate"] for a, b in zip(left, right))


def beside(options, database: str, server: str, batch: int) -> str:
    contestants = {side: lambda side=side: measured(options, server, database, side, batch) for side in ("lakebed", "raw")}
    runs = rounds(options.rounds, contestants, f"queue {database} {batch}")
    ratio = paired(runs["lakebed"], runs["raw"])
    return (f"| {database} | {WORKERS[database]} | {batch} | {median(runs['lakebed'], 'rate'):,.0f} | "
            f"{median(runs['raw'], 'rate'):,.0f} | {ratio:.2f} | {verdict(ratio >= TARGET)} |")


def flat_text(options, found: dict[str, str]) -> str:
    """The same rate at an empty table and behind a million ended requests, and beside a reader that keeps its view."""
    done = 20_000 if options.quick else 1_000_000
    lines = [f"### As the table fills: batch 100, {done:,} ended requests, an open snapshot\n",
             "| database | empty | behind the ended ones | ratio | within 10 % | snapshot open | ratio | bare SQL, snapshot open |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for database, server in found.items():
        def one(side: str, done: int = 0, snapshot: int = 0):
            return lambda: measured(options, server, database, side, 100, done, snapshot, seconds=5)
        contestants = {"empty": one("lakebed"), "full": one("lakebed", done=done)}
        if database == "PostgreSQL":
            contestants |= {"snapshot": one("lakebed", snapshot=1), "raw snapshot": one("raw", snapshot=1)}
        runs = rounds(options.rounds, contestants, f"queue {database}")
        ratio = paired(runs["full"], runs["empty"])
        held = ("| | |" if "snapshot" not in runs else
                f"| {median(runs['snapshot'], 'rate'):,.0f} | {paired(runs['snapshot'], runs['empty']):.2f} | "
                f"{median(runs['raw snapshot'], 'rate'):,.0f} |")
        lines.append(f"| {database} | {median(runs['empty'], 'rate'):,.0f} | {median(runs['full'], 'rate'):,.0f} | {ratio:.2f} | "
                     f"{verdict(ratio >= 1 - FLAT)} {held}")
    return "\n".join(lines) + "\n"
