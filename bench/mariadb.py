"""A MariaDB server of our own for the time of a measurement, with its durability as it comes."""

import contextlib
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator


@contextlib.contextmanager
def server() -> Iterator[str | None]:
    """The URL of an empty server, or `None` where MariaDB is not installed."""
    program = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin")
    if program is None or shutil.which("mariadb-install-db") is None:
        yield None
        return
    folder = pathlib.Path(tempfile.mkdtemp(prefix="lakebed-bench-"))
    user = ["runuser", "-u", "mysql", "--"] if os.geteuid() == 0 else []
    if user:
        shutil.chown(folder, "mysql")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    out = open(folder / "out", "ab")
    subprocess.run(["mariadb-install-db", "--no-defaults", *(["--user=mysql"] if user else []), f"--datadir={folder}/data",
                    "--auth-root-authentication-method=normal", "--skip-test-db"], check=True, stdout=out, stderr=out)
    # A buffer pool that a table of a million rows fits into; everything else as it comes.
    process = subprocess.Popen(
        [*user, program, "--no-defaults", f"--datadir={folder}/data", f"--socket={folder}/s", f"--pid-file={folder}/pid",
         f"--port={port}", "--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-buffer-pool-size=1G"],
        stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + 60
        while subprocess.run(["mariadb-admin", "--no-defaults", "-S", f"{folder}/s", "-u", "root", "ping"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            if time.monotonic() > deadline or process.poll() is not None:
                raise SystemExit(f"MariaDB does not start: {folder}/out")
            time.sleep(0.2)
        yield f"mysql://root@127.0.0.1:{port}"
    finally:
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((folder / "pid").read_text()), 9)
        process.wait()
        out.close()
        shutil.rmtree(folder, ignore_errors=True)
