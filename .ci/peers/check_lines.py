#!/usr/bin/env python3
"""Read a dataset of JSON lines with `zstd -dc`, pyarrow, DuckDB and `lakebed sql`: all must see the same texts.

    check_lines.py --lakebed target/debug/lakebed

The records are what no table takes: deep trees, numbers beyond any type, escapes, lone surrogates, keys with line
breaks, a text of 30 MB. Python must parse every line to the record that was written. The view that `schema view` prints for
DuckDB must give the rows of `lakebed sql`, also after a correction.

Exit status: 0 all agree, 1 they differ.
"""

import argparse
import collections
import decimal
import json
import pathlib
import subprocess
import sys
import tempfile

import lines

DATASET, TABLE, DAY = "clean/forum.threads", "clean.forum.threads", "2026-11-29"
# As delivered, with what a line must be where it is not the same but for white space.
RECORDS = [
    '{"id": 123456789012345678901234567890.10, "e": 1e400, "neg": -0.0}',
    '{"deep": ' + "[" * 300 + '{"c": "湖"}' + "]" * 300 + "}",
    '{"esc": "a\\u0041\\/\\n\\u0000\\ud83d\\ude00", "2028": "\u2028|\u0085|\u007f"}',
    '{"line\\nbreak": {"": [], "empty": {}}}',
    '{"big": "' + "長" * 10_000_000 + '"}',
    '{"quote": "\\"", "comma": "a,b;c\\t|", "back": "\\\\ud800"}',
]
LONE = ('{"lone": "x\\ud83d"}', '{"lone":"x\\ufffd"}')


def call(binary: pathlib.Path, folder: pathlib.Path, *args: str) -> str:
    done = subprocess.run([binary, *args], cwd=folder, capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"lakebed {' '.join(args)}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode()


def sql_lines(binary: pathlib.Path, folder: pathlib.Path) -> list[str]:
    rows = json.loads(call(binary, folder, "sql", f"SELECT json FROM {TABLE}", "--format", "json"))
    return [row["json"] for row in rows]


def view_rows(binary: pathlib.Path, folder: pathlib.Path) -> list[tuple]:
    import duckdb

    statement = call(binary, folder, "schema", "view", DATASET, "--engine", "duckdb")
    return [(source, str(dt), version, text) for source, dt, version, text in duckdb.sql(statement).fetchall()]


def exactly(text: str) -> object:
    return json.loads(text, parse_float=decimal.Decimal, parse_int=decimal.Decimal)


def compare(name: str, seen: list, expected: list) -> int:
    if collections.Counter(seen) == collections.Counter(expected):
        print(f"{name}: {len(seen)} rows agree", flush=True)
        return 0
    print(f"{name}: {len(seen)} rows, {len(expected)} expected, or others", flush=True)
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lakebed", type=pathlib.Path, required=True)
    binary = parser.parse_args().lakebed.resolve()
    with tempfile.TemporaryDirectory() as temp:
        folder = pathlib.Path(temp) / "p"
        call(binary, pathlib.Path(temp), "init", str(folder), "--time-zone", "Asia/Taipei")
        root = str(folder / "lake" / DATASET)
        (folder / "a.jsonl").write_text("\n".join([*RECORDS, LONE[0]]) + "\n", encoding="utf-8")
        (folder / "b.json").write_text('[\n  {"of":\n "an array"}\n]', encoding="utf-8")
        call(binary, folder, "ingest", DATASET, "a.jsonl", "b.json", "--date", DAY, "--as", "jsonl")
        expected = sql_lines(binary, folder)
        wrong = 0
        if [exactly(t) for t in expected] != [exactly(t) for t in [*RECORDS, LONE[1], '{"of":"an array"}']]:
            print("Python does not read the records that were written")
            wrong = 1
        wrong += compare("the mended line", [t for t in expected if t == LONE[1]], [LONE[1]])
        for name, read in lines.READERS.items():
            wrong += compare(name, read(root), expected)
        rows = [("forum", DAY, 0, text) for text in expected]
        wrong += compare("the view", view_rows(binary, folder), rows)
        call(binary, folder, "correct", DATASET, "b.json", "--date", DAY)
        for name, read in lines.READERS.items():
            wrong += compare(f"{name} after a correction", read(root), ['{"of":"an array"}'])
        wrong += compare("the view after a correction", view_rows(binary, folder), [("forum", DAY, 0, '{"of":"an array"}')])
        if compare("one text spoiled", [*expected[1:], expected[0] + " "], expected) == 0:
            print("a spoiled text was not seen to differ")
            wrong += 1
    print("all agree" if wrong == 0 else f"{wrong} comparisons differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
