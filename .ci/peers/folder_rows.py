#!/usr/bin/env python3
"""What plain folder readers see of a dataset right now: rows, and the bag of a column's values.

    folder_rows.py LAKE DATASET --key COLUMN     one JSON object on stdout
    folder_rows.py --serve                       one request a line on stdin, one answer a line on stdout;
                                                 a request is {"lake": ..., "dataset": ..., "key": ...}

The answer has one member a reader: {"rows": 40, "distinct": 40, "hash": "<32 hex>"}, where `hash` is
the same for equal bags of values in any order. A folder with no data file has 0 rows. A reader that
fails gives {"error": ...}: a folder reader must never meet half a file. `--serve` exists for tests that
ask after each of many crashes: the readers are loaded once.
"""

import argparse
import glob
import hashlib
import json
import os
import sys

import readers


def bag(values: list[str | None]) -> dict:
    total = 0
    for value in values:
        text = b"0" if value is None else b"1" + value.encode("utf-8")
        total += int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
    return {"rows": len(values), "distinct": len(set(values)), "hash": f"{total % 2**128:032x}"}


def look(lake: str, dataset: str, key: str) -> dict:
    root = os.path.join(os.path.abspath(lake), dataset)
    if not glob.glob(os.path.join(glob.escape(root), readers.PATTERN)):
        return {reader.name: bag([]) for reader in readers.READERS}
    seen = {}
    for reader in readers.READERS:
        try:
            seen[reader.name] = bag(reader().texts(root, key))
        except Exception as error:  # noqa: BLE001: whatever a reader raises is the finding
            seen[reader.name] = {"error": f"{type(error).__name__}: {error}"}
    return seen


def serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(look(request["lake"], request["dataset"], request["key"])), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--key", default="source")
    parser.add_argument("lake", nargs="?")
    parser.add_argument("dataset", nargs="?", help="layer/dataset")
    args = parser.parse_args()
    if args.serve:
        serve()
    elif args.lake is None or args.dataset is None:
        parser.error("LAKE and DATASET are needed")
    else:
        print(json.dumps(look(args.lake, args.dataset, args.key)))


if __name__ == "__main__":
    main()
