"""Readers of JSON lines in zstd that know nothing of Lakebed: `zstd -dc`, pyarrow and DuckDB.

Each gives the lines of a dataset's folder, `dt=*/schema_version=0/*.jsonl.zst`, as they are written.
"""

import glob
import os
import subprocess

PATTERN = "dt=*/schema_version=0/*.jsonl.zst"


def files(root: str) -> list[str]:
    return sorted(glob.glob(os.path.join(glob.escape(root), PATTERN)))


def with_zstd(root: str) -> list[str]:
    text = b"".join(subprocess.run(["zstd", "-dcq", file], check=True, capture_output=True).stdout for file in files(root))
    return text.decode().split("\n")[:-1]


def with_pyarrow(root: str) -> list[str]:
    import pyarrow

    lines = []
    for file in files(root):
        with pyarrow.input_stream(file, compression="zstd") as stream:
            lines += stream.read().decode().split("\n")[:-1]
    return lines


def with_duckdb(root: str) -> list[str]:
    import duckdb

    if not files(root):
        return []
    query = "SELECT CAST(json AS VARCHAR) FROM read_ndjson_objects(?, maximum_object_size = 1073741824)"
    return [row[0] for row in duckdb.connect().execute(query, [os.path.join(root, PATTERN)]).fetchall()]


READERS = {"zstd": with_zstd, "pyarrow": with_pyarrow, "duckdb": with_duckdb}
