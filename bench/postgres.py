"""A PostgreSQL server of our own for the time of a measurement, with its durability as it comes."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def server() -> Iterator[str | None]:
    """The connection string of an empty database, or `None` where PostgreSQL is not installed."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb")) or [
        pathlib.Path(p) for p in [shutil.which("initdb")] if p]
    if not found:
        yield None
        return
    programs, folder = found[-1].parent, pathlib.Path(tempfile.mkdtemp(prefix="lakebed-bench-"))
    # The server refuses to run as root.
    user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(folder, "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def call(program: str, *args: str) -> None:
        with open(folder / "out", "ab") as out:
            subprocess.run([*user, str(programs / program), *args], check=True, stdout=out, stderr=out, cwd="/")

    try:
        call("initdb", "-D", f"{folder}/data", "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8")
        settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
        call("pg_ctl", "-D", f"{folder}/data", "-w", "-t", "30", "-l", f"{folder}/log", "-o", settings, "start")
        yield f"host=127.0.0.1 port={port} user=bench dbname=postgres"
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            call("pg_ctl", "-D", f"{folder}/data", "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)
