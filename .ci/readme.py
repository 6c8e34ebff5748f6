#!/usr/bin/env python3
"""Run the commands of README.md, and check that README.zh.md gives the same ones.

A block of commands is a fence whose line before says what it is:

    <!-- run: quick-start -->     run with `bash -e` in an empty folder, `lakebed` on the PATH
    <!-- shown: demo -->          not run here (CI runs the demo itself); the same in both languages

Standard library only. Exit status 1 on a command that fails, or a block that differs.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^<!-- (run|shown): ([a-z-]+) -->\n```sh\n(.*?)^```$", re.M | re.S)
FENCE = re.compile(r"^```sh$", re.M)


def blocks(text: str) -> dict[tuple[str, str], str]:
    found = {}
    for kind, name, body in BLOCK.findall(text):
        if (kind, name) in found:
            raise ValueError(f"two blocks are named {name}")
        found[kind, name] = body
    if len(found) != len(FENCE.findall(text)):
        raise ValueError("a block of commands has no mark before it")
    return found


def commands(body: str) -> list[str]:
    """The commands without their comments, which are translated."""
    lines = (re.sub(r"\s+# .*$", "", line) for line in body.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def self_check() -> None:
    text = "x\n<!-- run: a -->\n```sh\nls # list\n# all\n```\n"
    assert {k: commands(v) for k, v in blocks(text).items()} == {("run", "a"): ["ls"]}
    for bad in ["```sh\nls\n```\n", text + text]:
        try:
            blocks(bad)
        except ValueError:
            continue
        raise AssertionError("a bad page was accepted")


def run(name: str, body: str, binary: pathlib.Path) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, PATH=f"{binary.parent}:{os.environ['PATH']}")
        done = subprocess.run(["bash", "-eu", "-o", "pipefail", "-x", "-c", body], cwd=folder,
                              env=environment, stdin=subprocess.DEVNULL, timeout=900)
    if done.returncode != 0:
        print(f"README.md: block `{name}` ended with status {done.returncode}")
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lakebed", type=pathlib.Path, help="run the blocks with this binary; without it the pages are only compared")
    binary = parser.parse_args().lakebed
    self_check()
    english = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    chinese = blocks((ROOT / "README.zh.md").read_text(encoding="utf-8"))
    good = True
    for key in sorted(english.keys() | chinese.keys()):
        pair = [commands(page[key]) if key in page else None for page in (english, chinese)]
        if pair[0] != pair[1]:
            print(f"README.md and README.zh.md differ in block `{key[1]}`")
            good = False
    if not any(kind == "run" for kind, _ in english):
        print("README.md: no block is run")
        good = False
    for (kind, name), body in english.items():
        if kind == "run" and binary:
            good = run(name, body, binary.resolve()) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
