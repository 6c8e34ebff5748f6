#!/usr/bin/env python3
"""Type into the prompt of `lakebed sql` on a real pseudo-terminal, and look at the screen.

    check_prompt.py --lakebed target/debug/lakebed

Statements over several lines, errors, commands with a dot, completion of tables and columns, the cursor among CJK
characters, Ctrl-C on a line and on a running query, commits made meanwhile, Ctrl-D, a history that two prompts at once add to,
rows into a file while the line is edited on the terminal.

Exit status: 0 all as it should be, 1 not.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from terminal import Failure, Terminal

PROMPT = "lakebed>"
UP, LEFT, CTRL_C, CTRL_D, CTRL_R = "\x1b[A", "\x1b[D", "\x03", "\x04", "\x12"
ENDLESS = "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 1000000000) SELECT count(*) FROM t;"
SCHEMA = """
[[field]]
id = 1
name = "k"
type = "int"

[[field]]
id = 2
name = "標題"
type = "string"

[[field]]
id = 3
name = "price_twd"
type = "int"
"""


class Project:
    """A project with one dataset, and prompts in it."""

    def __init__(self, binary: pathlib.Path, folder: pathlib.Path) -> None:
        self.binary, self.folder = binary.resolve(), folder
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("LAKEBED_")}
        self.environment |= {"XDG_STATE_HOME": str(folder / "state"), "TERM": "xterm-256color", "NO_COLOR": "1"}
        self.call("init", str(folder / "p"), "--time-zone", "Asia/Taipei", cwd=folder)
        source = folder / "p/sources/shop"
        (source / "schemas/shop").mkdir(parents=True)
        (source / "source.toml").write_text('class = "log"\n')
        (source / "schemas/shop/v1.toml").write_text('dataset = "clean/shop"\nversion = 1\n' + SCHEMA)
        self.call("schema", "publish", "clean/shop", "1")
        self.ingest("2026-11-29", [{"k": 1, "標題": "湖畔公寓", "price_twd": 12800}, {"k": 2, "標題": "Lake", "price_twd": 9900}])

    def call(self, *args: str, cwd: pathlib.Path | None = None) -> None:
        subprocess.run([self.binary, *args], cwd=cwd or self.folder / "p", env=self.environment, check=True, capture_output=True)

    def ingest(self, day: str, rows: list[dict]) -> None:
        file = self.folder / f"{day}.jsonl"
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        self.call("ingest", "clean/shop", str(file), "--date", day)

    def prompt(self, *args: str, shell: str | None = None) -> Terminal:
        command = [str(self.binary), "sql", *args]
        if shell:
            command = ["/bin/sh", "-c", shell]
        terminal = Terminal(command, self.environment, str(self.folder / "p"))
        terminal.wait("the prompt", lambda: at_prompt(terminal))
        return terminal


def at_prompt(terminal: Terminal) -> bool:
    """An empty prompt is the last thing on the screen."""
    return terminal.line() == PROMPT and terminal.screen.cursor.x == len(PROMPT) + 1


def expect(holds: bool, what: str, terminal: Terminal) -> None:
    if not holds:
        raise Failure(f"{what}; the screen is\n" + terminal.shown())


def type_in(terminal: Terminal, text: str) -> None:
    terminal.send(text)
    # Else the prompt before it would be taken for the next one.
    terminal.wait("the typed text", lambda: not at_prompt(terminal))
    terminal.send("\r")
    terminal.wait("the next prompt", lambda: at_prompt(terminal))


def statements(project: Project) -> None:
    terminal = project.prompt()
    terminal.send("SELECT k, \"標題\"\r")
    terminal.wait("a second line", lambda: terminal.line() == "")
    type_in(terminal, "FROM clean.shop ORDER BY k;")
    terminal.sees("k | 標題")
    terminal.sees("1 | 湖畔公寓")
    terminal.sees("2 | Lake")
    terminal.sees("2 rows")
    type_in(terminal, "SELECT nonsense FROM clean.shop;")
    terminal.wait("an error", lambda: any(line.startswith("error: ") for line in terminal.lines()))
    type_in(terminal, "SELECT ';' AS a; SELECT 7 * 6 AS b;")
    terminal.sees("42")
    type_in(terminal, "DROP TABLE clean.shop;")
    terminal.wait("a refusal", lambda: any("never writes" in line for line in terminal.lines()))
    terminal.send(CTRL_D)
    expect(terminal.ended() == 0, "Ctrl-D did not end with 0", terminal)


def commands(project: Project) -> None:
    terminal = project.prompt()
    type_in(terminal, ".tables")
    terminal.sees("clean.shop")
    terminal.sees("lake.source_day")
    type_in(terminal, ".schema clean.shop")
    terminal.wait("a column", lambda: any(line.startswith("price_twd") for line in terminal.lines()))
    type_in(terminal, ".format json")
    type_in(terminal, "SELECT k FROM clean.shop ORDER BY k;")
    terminal.wait("JSON", lambda: any('{"k":1}' in line for line in terminal.lines()))
    type_in(terminal, ".format csv")
    type_in(terminal, ".timing on")
    type_in(terminal, "SELECT 5 AS five;")
    terminal.sees("five")
    terminal.wait("the cost", lambda: any(line.startswith("execution_ms ") for line in terminal.lines()))
    type_in(terminal, ".tabels")
    terminal.sees("hint: did you mean `.tables`?")
    type_in(terminal, ".help")
    terminal.wait("the help", lambda: any(line.startswith(".timing on|off") for line in terminal.lines()))
    terminal.send(".exit\r")
    expect(terminal.ended() == 0, ".exit did not end with 0", terminal)


def completion(project: Project) -> None:
    terminal = project.prompt()
    terminal.send("SELECT pr FROM clean.sh\t")
    terminal.wait("the table", lambda: terminal.line().endswith("FROM clean.shop"))
    terminal.send(LEFT * len(" FROM clean.shop") + "\t")
    terminal.wait("the column", lambda: "SELECT price_twd FROM" in terminal.line())
    terminal.send(CTRL_C)
    terminal.wait("a new line", lambda: at_prompt(terminal))
    terminal.send("select * from lake.par\t where is_com\t")
    terminal.wait("a system table", lambda: terminal.line().endswith("from lake.partitions where is_complete"))
    terminal.send(CTRL_C)
    terminal.wait("a new line", lambda: at_prompt(terminal))
    terminal.send(".sch\tclean.s\t")
    terminal.wait("a command", lambda: terminal.line() == PROMPT + " .schema clean.shop")
    terminal.send(CTRL_C)
    terminal.wait("a new line", lambda: at_prompt(terminal))
    terminal.send("SELECT s.k FROM clean.shop s WHERE s.p\t")
    terminal.wait("a column of an alias", lambda: terminal.line().endswith("WHERE s.price_twd"))
    terminal.send(CTRL_C)
    terminal.wait("a new line", lambda: at_prompt(terminal))
    terminal.send("SELECT * FROM as_of('cle\t")
    terminal.wait("a dataset in as_of", lambda: terminal.line().endswith("as_of('clean.shop"))
    terminal.send(CTRL_C)
    terminal.wait("a new line", lambda: at_prompt(terminal))
    terminal.send(CTRL_D)
    expect(terminal.ended() == 0, "Ctrl-D did not end with 0", terminal)


def wide_characters(project: Project) -> None:
    terminal = project.prompt()
    terminal.send("SELECT '熱搜")
    begin = len(PROMPT) + 1 + len("SELECT '")
    terminal.wait("the typed text", lambda: terminal.screen.cursor.x == begin + 4)
    terminal.send(LEFT)
    terminal.wait("the cursor before the second character", lambda: terminal.screen.cursor.x == begin + 2)
    terminal.send("門")
    terminal.wait("a character between", lambda: terminal.line() == PROMPT + " SELECT '熱門搜")
    expect(terminal.screen.cursor.x == begin + 4, "the cursor is not behind what was typed", terminal)
    terminal.send("\x7f\x05' AS x;\r")
    terminal.sees("熱搜")
    terminal.wait("the next prompt", lambda: at_prompt(terminal))
    type_in(terminal, "SELECT '湖畔' AS a, 1 AS b UNION ALL SELECT 'lake', 2 ORDER BY b;")
    terminal.sees("湖畔 | 1")
    terminal.sees("lake | 2")
    # A line longer than the screen: its wide characters wrap, and the cursor stays right.
    begin, columns = begin + 1, terminal.screen.columns
    fits = (columns - begin) // 2
    terminal.send("SELECT  '" + "湖" * 60)
    terminal.wait("a wrapped line", lambda: terminal.line() == "湖" * (60 - fits))
    expect(terminal.screen.cursor.x == 2 * (60 - fits), "the cursor is not at the end", terminal)
    terminal.send(CTRL_C)
    terminal.wait("a new line", lambda: at_prompt(terminal))
    terminal.send(CTRL_D)
    expect(terminal.ended() == 0, "Ctrl-D did not end with 0", terminal)


def interrupts(project: Project) -> None:
    terminal = project.prompt()
    terminal.send("SELECT 'given up")
    terminal.wait("the typed text", lambda: terminal.line().endswith("'given up"))
    terminal.send(CTRL_C)
    terminal.wait("a new line", lambda: at_prompt(terminal))
    for _ in range(2):
        terminal.send(ENDLESS + "\r")
        wait_until_it_runs(terminal)
        began = time.monotonic()
        terminal.send(CTRL_C)
        terminal.wait("the stop", lambda: "the query was stopped" in terminal.lines())
        terminal.wait("the prompt", lambda: at_prompt(terminal))
        expect(time.monotonic() - began < 10, "the stop took long", terminal)
        type_in(terminal, "SELECT 6 * 7 AS answer;")
        terminal.sees("    42")
        terminal.send("\x0c")
        terminal.wait("a clear screen", lambda: "the query was stopped" not in terminal.lines())
    type_in(terminal, f"{ENDLESS[:-1]} LIMIT 0;")
    # A signal while the line is edited takes nothing down.
    os.kill(terminal.pid, signal.SIGINT)
    time.sleep(0.3)
    type_in(terminal, "SELECT 1 AS alive;")
    terminal.sees("alive")
    terminal.send(CTRL_D)
    expect(terminal.ended() == 0, "Ctrl-D did not end with 0", terminal)


def wait_until_it_runs(terminal: Terminal) -> None:
    end = time.monotonic() + 0.7
    while time.monotonic() < end:
        terminal.read(0.1)


def commits_meanwhile(project: Project) -> None:
    terminal = project.prompt("--format", "csv")
    type_in(terminal, "SELECT count(*) + 100 AS n FROM clean.shop;")
    terminal.sees("102")
    project.ingest("2026-11-30", [{"k": 3, "標題": "新", "price_twd": 1}])
    type_in(terminal, "SELECT count(*) + 100 AS n FROM clean.shop;")
    terminal.sees("103")
    terminal.send(CTRL_D)
    expect(terminal.ended() == 0, "Ctrl-D did not end with 0", terminal)


def history(project: Project) -> None:
    first, second = project.prompt(), project.prompt()
    type_in(first, "SELECT 'of the first' AS a;")
    type_in(second, "SELECT 'of the second',\r2;")
    type_in(first, " SELECT 'a secret' AS s;")
    type_in(first, "SELECT 'first again' AS a;")
    for terminal in (second, first):
        terminal.send(CTRL_D)
        expect(terminal.ended() == 0, "Ctrl-D did not end with 0", terminal)
    third = project.prompt()
    third.send(UP)
    third.wait("the newest", lambda: third.line() == PROMPT + " SELECT 'first again' AS a;")
    third.send(UP)
    third.wait("the second prompt's, both lines", lambda: PROMPT + " SELECT 'of the second'," in third.lines() and "2;" in third.lines())
    third.send(CTRL_C)
    third.wait("a new line", lambda: at_prompt(third))
    third.send(CTRL_R + "of the first")
    third.wait("a search", lambda: any("SELECT 'of the first' AS a;" in line for line in third.lines()))
    third.send(CTRL_C)
    third.wait("a new line", lambda: at_prompt(third))
    third.send(CTRL_D)
    expect(third.ended() == 0, "Ctrl-D did not end with 0", third)
    file = project.folder / "state/lakebed/sql_history"
    text = file.read_text()
    expect("a secret" not in text, "a line that begins with a blank was kept", third)
    expect(file.stat().st_mode & 0o777 == 0o600, "the history can be read by others", third)
    lake = [str(p) for p in (project.folder / "p").rglob("*history*")]
    expect(not lake, f"a history lies in the project: {lake}", third)


def rows_elsewhere(project: Project) -> None:
    out = project.folder / "rows.csv"
    terminal = project.prompt(shell=f"exec {project.binary} sql --format csv > {out}")
    type_in(terminal, "SELECT 1 AS one;")
    terminal.send(CTRL_D)
    expect(terminal.ended() == 0, "Ctrl-D did not end with 0", terminal)
    expect(out.read_bytes() == b"one\r\n1\r\n", f"the file holds {out.read_bytes()!r}", terminal)


def reader_that_goes(project: Project) -> None:
    """Rows into a pipe whose reader goes away: the prompt ends as if it had been told to."""
    terminal = project.prompt(shell=f"{project.binary} sql --format csv | true")
    time.sleep(0.3)
    terminal.send("SELECT 1 AS one;\r")
    expect(terminal.ended() == 0, "the pipe did not end with 0", terminal)


CHECKS = [statements, commands, completion, wide_characters, interrupts, commits_meanwhile, history, rows_elsewhere, reader_that_goes]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lakebed", type=pathlib.Path, required=True)
    parser.add_argument("names", nargs="*", help="only these checks")
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for check in CHECKS:
            if options.names and check.__name__ not in options.names:
                continue
            place = pathlib.Path(folder) / check.__name__
            place.mkdir()
            began = time.monotonic()
            try:
                check(Project(options.lakebed, place))
                print(f"{check.__name__}: right ({time.monotonic() - began:.1f} s)", flush=True)
            except Failure as failure:
                wrong += 1
                print(f"{check.__name__}: {failure}", flush=True)
    total = len(options.names or CHECKS)
    print(f"{total - wrong} right, {wrong} wrong-loud")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
