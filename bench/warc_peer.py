"""warcio over the captures that `lakebed-bench packs spread` wrote: `write FOLDER OUT` or `read OUT`; answers with seconds
of its own work, without the start of Python."""

import base64
import json
import pathlib
import sys
import time

from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter


def text_of(raw) -> str:
    """A head as the lines of captures keep it: text, or bytes in base64."""
    return raw if isinstance(raw, str) else base64.b64decode(next(iter(raw.values()))).decode("latin-1")


def write(folder: pathlib.Path, out: pathlib.Path) -> None:
    captures = [json.loads(line) for line in (folder / "captures.jsonl").open(encoding="utf-8")]
    begin, cpu = time.perf_counter(), time.process_time()
    with out.open("wb") as file:
        writer = WARCWriter(file, gzip=True)
        for n, capture in enumerate(captures):
            status, *lines = text_of(capture["response_head"]).split("\r\n") if capture.get("response_head") else ["HTTP/1.1 200 OK"]
            headers = [tuple(line.split(": ", 1)) for line in lines if ": " in line]
            head = StatusAndHeaders(status.partition(" ")[2], headers, protocol="HTTP/1.1")
            with (folder / "b" / f"{n:07}.html").open("rb") as body:
                record = writer.create_warc_record(capture["url"], "response", payload=body, http_headers=head)
                writer.write_record(record)
    say(begin, cpu, len(captures))


def read(out: pathlib.Path) -> None:
    begin, cpu, count = time.perf_counter(), time.process_time(), 0
    with out.open("rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            stream = record.content_stream()
            while stream.read(1 << 16):
                pass
            count += 1
    say(begin, cpu, count)


def say(begin: float, cpu: float, count: int) -> None:
    print(json.dumps({"seconds": time.perf_counter() - begin, "cpu_s": time.process_time() - cpu, "captures": count}))


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    else:
        read(pathlib.Path(sys.argv[2]))
