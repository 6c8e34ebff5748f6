#!/usr/bin/env python3
"""Check the licence of every crate in the tree, and the crates that are banned, against deny.toml.

Standard library only. Reads `cargo metadata` of the locked tree. Exit status 1 on a crate that
deny.toml does not allow; the crates are named.
"""

import json
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def allowed(expression: str, allow: set[str]) -> bool:
    """Whether an SPDX expression can be met with the allowed licences alone."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    at = 0

    def either() -> bool:
        nonlocal at
        met = both()
        while at < len(tokens) and tokens[at] == "OR":
            at += 1
            met = both() or met
        return met

    def both() -> bool:
        nonlocal at
        met = one()
        while at < len(tokens) and tokens[at] == "AND":
            at += 1
            met = one() and met
        return met

    def one() -> bool:
        nonlocal at
        if tokens[at] == "(":
            at += 1
            met = either()
            at += 1
            return met
        name = tokens[at]
        at += 1
        if at + 1 < len(tokens) and tokens[at] == "WITH":
            name = f"{name} WITH {tokens[at + 1]}"
            at += 2
        return name in allow

    return either() and at == len(tokens)


def self_check() -> None:
    """The reader of expressions must be able to say no."""
    allow = {"MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"}
    for text, answer in {
        "MIT": True,
        "GPL-3.0": False,
        "GPL-3.0 OR MIT": True,
        "MIT/Apache-2.0": True,
        "MIT AND GPL-3.0": False,
        "(MIT OR GPL-3.0) AND Apache-2.0 WITH LLVM-exception": True,
        "MIT AND (GPL-3.0 OR BSD-3-Clause)": False,
    }.items():
        assert allowed(text, allow) is answer, text


def main() -> int:
    self_check()
    rules = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
    allow = set(rules["licenses"]["allow"])
    banned = {entry["crate"]: entry["reason"] for entry in rules["bans"]["deny"]}
    metadata = json.loads(subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked"],
        cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    used = {node["id"] for node in metadata["resolve"]["nodes"]}
    findings = []
    packages = [p for p in metadata["packages"] if p["id"] in used]
    for package in packages:
        name = f"{package['name']} {package['version']}"
        if package["name"] in banned:
            findings.append(f"{name}: banned: {banned[package['name']]}")
        licence = package["license"]
        if licence is None:
            findings.append(f"{name}: names no licence")
        elif not allowed(licence, allow):
            findings.append(f"{name}: licence `{licence}` is not allowed")
    for finding in sorted(findings):
        print(finding)
    print(f"{len(packages)} crates, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
