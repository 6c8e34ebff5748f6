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
from measure import fresh, harness, note, run, verdict

BATCHES = (1, 10, 100)
TARGET = 0.8
FLAT = 0.1
# Connections of one process, as the ceiling was measured first.
WORKERS = {"SQLite": 1, "PostgreSQL": 8, "MariaDB": 4}
# Requests that are there to be taken, for each second: more than the fastest side takes, else they are doubled.
RATE = {"SQLite": {1: 15_000, 10: 70_000, 100: 140_000}, "PostgreSQL": {1: 6_000, 10: 30_000, 100: 90_000},
        "MariaDB": {1: 5_000, 10: 15_000, 100: 30_000}}
SECONDS = 2


def measured(options, server: str, database: str, contestants: list[str], batch: int, done: int = 0) -> dict[str, list[float]]:
    """The rates of the contestants, round by round."""
    answer = None
    while answer is None:
        rows = RATE[database][batch] * SECONDS
        command = [harness(options), "queue", server, *contestants, "--batch", batch, "--workers", WORKERS[database], "--seconds", SECONDS,
                   "--rows", rows, "--done", done, "--rounds", options.rounds]
        try:
            answer = json.loads(run(command).stdout)
        except SystemExit as ended:
            if "requests were done after" not in str(ended):
                raise
            note(f"queue {database} {batch}: {rows:,} requests are too few here; twice as many")
            RATE[database][batch] *= 2
    rates = {who: [one["count"] / one["wall_s"] for one in answer[who]] for who in contestants}
    for who, found in rates.items():
        note(f"queue {database} {batch} {who}: {', '.join(f'{rate:,.0f}' for rate in found)} a second")
    return rates


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
                 f"Median of {options.rounds} rounds of {SECONDS} seconds; the ratio is that of the two rates within each round, its median.\n",
                 "| database | workers | batch | **Lakebed** | bare SQL | ratio | target 0.8 |", "| --- | --- | --- | --- | --- | --- | --- |"]
        for database, server in found.items():
            for batch in BATCHES:
                lines.append(beside(options, database, server, batch))
        text += [*lines, "", flat_text(options, found)]
    return "\n".join(text)


def paired(left: list[float], right: list[float]) -> float:
    """The median of the ratios within the rounds: what else the machine does meets both."""
    return statistics.median(a / b for a, b in zip(left, right))


def beside(options, database: str, server: str, batch: int) -> str:
    rates = measured(options, server, database, ["lakebed", "raw"], batch)
    ratio = paired(rates["lakebed"], rates["raw"])
    return (f"| {database} | {WORKERS[database]} | {batch} | {statistics.median(rates['lakebed']):,.0f} | "
            f"{statistics.median(rates['raw']):,.0f} | {ratio:.2f} | {verdict(ratio >= TARGET)} |")


def flat_text(options, found: dict[str, str]) -> str:
    """The same rate at an empty table and behind a million ended requests, and beside a reader that keeps its view."""
    done = 20_000 if options.quick else 1_000_000
    lines = [f"### As the table fills: batch 100, {done:,} ended requests, an open snapshot\n",
             "| database | empty | behind the ended ones | ratio | within 10 % | snapshot open | ratio | bare SQL, snapshot open |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for database, server in found.items():
        contestants = ["lakebed", "lakebed:full"]
        if database == "PostgreSQL":
            contestants += ["lakebed:snapshot", "raw:snapshot"]
        rates = measured(options, server, database, contestants, 100, done)
        middle = {who: statistics.median(of) for who, of in rates.items()}
        ratio = paired(rates["lakebed:full"], rates["lakebed"])
        held = ("| | |" if len(contestants) == 2 else
                f"| {middle['lakebed:snapshot']:,.0f} | {paired(rates['lakebed:snapshot'], rates['lakebed']):.2f} | "
                f"{middle['raw:snapshot']:,.0f} |")
        lines.append(f"| {database} | {middle['lakebed']:,.0f} | {middle['lakebed:full']:,.0f} | {ratio:.2f} | "
                     f"{verdict(ratio >= 1 - FLAT)} {held}")
    return "\n".join(lines) + "\n"
