#!/usr/bin/env python3
"""Read a raw day pack with GNU tar, bsdtar, 7-Zip, zstd and Python: all must see the same members, unchanged.

    check_packs.py --pack OUT/2026-11-30.day-00000000.tar.zst [--part OUT/parts/...-000001.tar.zst] [--warc OUT/pack.warc.gz]

Every body must have the SHA-256 of its name, every line must name a body of its own frame, the index (read by pyarrow) must
have a row for every line, and the ranges that it names must hold them. A tool that is not installed is a failure.
`cargo run --example pack_at_size` writes such a pack.

Exit status: 0 all agree, 1 they differ.
"""

import argparse
import hashlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

from pack_lines import whole

Members = dict[str, bytes]


def unpacked(folder: pathlib.Path) -> Members:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def by_command(*command: str) -> Members:
    """The members that a command unpacks into its current folder."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
        if done.returncode != 0 or done.stderr:
            raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr.decode(errors='replace')}")
        return unpacked(pathlib.Path(folder))


def with_tar(pack: pathlib.Path) -> Members:
    return by_command("tar", "-xf", str(pack))


def with_tar_zstd(pack: pathlib.Path) -> Members:
    return by_command("tar", "--zstd", "-xf", str(pack))


def with_bsdtar(pack: pathlib.Path) -> Members:
    return by_command("bsdtar", "-xf", str(pack))


def with_seven_zip(pack: pathlib.Path) -> Members:
    with tempfile.TemporaryDirectory() as folder:
        program = shutil.which("7zz") or "7z"
        subprocess.run([program, "x", "-bd", "-y", f"-o{folder}", str(pack)], capture_output=True, check=True)
        (tar,) = pathlib.Path(folder).iterdir()
        with tarfile.open(tar) as archive:
            return members_of(archive)


def members_of(archive: tarfile.TarFile) -> Members:
    return {member.name: archive.extractfile(member).read() for member in archive}


def with_python(pack: pathlib.Path) -> Members:
    import zstandard

    with pack.open("rb") as file:
        stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            return members_of(archive)


READERS = {
    "GNU tar": with_tar,
    "GNU tar --zstd": with_tar_zstd,
    "bsdtar": with_bsdtar,
    "7-Zip": with_seven_zip,
    "Python tarfile": with_python,
}


def check_bodies(members: Members) -> int:
    wrong, named = 0, set()
    for name, content in members.items():
        if name.startswith("m/"):
            for line in content.decode().splitlines():
                capture = json.loads(line)
                if capture.get("body_len", 0) > 0:
                    named.add(capture["body_sha256"])
    bodies = {name.split("/")[2].split(".")[0]: content for name, content in members.items() if name.startswith("b/")}
    for digest, content in bodies.items():
        if hashlib.sha256(content).hexdigest() != digest:
            print(f"{digest} does not have its SHA-256")
            wrong += 1
    if set(bodies) != named:
        print(f"{len(bodies)} bodies, {len(named)} named by lines")
        wrong += 1
    return wrong


def check_index(pack: pathlib.Path, members: Members) -> int:
    import pyarrow.parquet
    import zstandard

    rows = pyarrow.parquet.read_table(pack.with_name(pack.name.removesuffix(".tar.zst") + ".idx")).to_pylist()
    lines = sum(content.count(b"\n") for name, content in members.items() if name.startswith("m/"))
    head = json.loads(members["PACK.json"])
    wrong = int(len(rows) != lines)
    with pack.open("rb") as file:
        for row in rows:
            file.seek(row["frame_offset"])
            frames = io.BytesIO(file.read(row["frame_len"]))
            raw = zstandard.ZstdDecompressor().stream_reader(frames, read_across_frames=True).read()
            (line,) = whole(head, raw[row["line_offset"]:row["line_offset"] + row["line_len"]].decode())
            body = b"" if row["body_offset"] is None else raw[row["body_offset"]:row["body_offset"] + row["body_len"]]
            right = line["capture_id"] == row["capture_id"].hex() and line["request_key"] == row["request_key"].hex()
            right = right and hashlib.sha256(body).digest() == row["body_sha256"]
            wrong += int(not right)
    print(f"index: {len(rows)} rows, {lines} lines, {wrong} wrong")
    return wrong


def check_warc(warc: pathlib.Path, members: Members) -> int:
    """What warcio reads of an export: a response or revisit for each line, each digest right, each body the pack's."""
    from warcio.archiveiterator import ArchiveIterator

    bodies = {hashlib.sha256(content).hexdigest() for name, content in members.items() if name.startswith("b/")}
    lines = sum(content.count(b"\n") for name, content in members.items() if name.startswith("m/"))
    responses, wrong = 0, 0
    with warc.open("rb") as file:
        for record in ArchiveIterator(file, check_digests=True):
            content = record.content_stream().read()
            wrong += int(record.digest_checker.passed is False)
            if record.rec_type in ("response", "revisit"):
                responses += 1
            if record.rec_type == "response":
                wrong += int(len(content) > 0 and hashlib.sha256(content).hexdigest() not in bodies)
    wrong += int(responses != lines)
    print(f"warcio: {responses} responses, {lines} lines, {wrong} wrong")
    return wrong


def check(pack: pathlib.Path) -> tuple[Members, int]:
    subprocess.run(["zstd", "-tq", str(pack)], check=True)
    expected = with_python(pack)
    wrong = check_bodies(expected)
    for name, read in READERS.items():
        seen = read(pack)
        if seen == expected:
            print(f"{name}: {len(seen)} members agree", flush=True)
        else:
            print(f"{name}: {len(seen)} members, {len(expected)} expected, or others", flush=True)
            wrong += 1
    return expected, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pack", type=pathlib.Path, required=True)
    parser.add_argument("--part", type=pathlib.Path, action="append", default=[])
    parser.add_argument("--warc", type=pathlib.Path)
    arguments = parser.parse_args()
    members, wrong = check(arguments.pack.resolve())
    if "TERMINALS.jsonl" not in members or "PACK.json" not in members:
        print("the pack has no head or no terminals")
        wrong += 1
    wrong += check_index(arguments.pack.resolve(), members)
    for part in arguments.part:
        wrong += check(part.resolve())[1]
    if arguments.warc is not None:
        wrong += check_warc(arguments.warc.resolve(), members)
    one = next(name for name in members if name.startswith("b/"))
    print("a spoiled body must be seen: ", end="")
    if check_bodies({**members, one: members[one] + b"x"}) == 0:
        print("it was not")
        wrong += 1
    print("all agree" if wrong == 0 else f"{wrong} comparisons differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
