"""A program on a pseudo-terminal, and the screen that a person would see.

`pyte` is the terminal: what stands where, and where the cursor is, CJK characters two columns wide.
"""

import codecs
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

import pyte

PATIENCE = 60.0  # seconds until a screen that does not come is a failure


class Failure(Exception):
    """The screen is not what it should be."""


class Terminal:
    """A child process and its screen."""

    def __init__(self, command: list[str], environment: dict[str, str], cwd: str, columns: int = 100, rows: int = 40) -> None:
        self.screen = pyte.HistoryScreen(columns, rows, history=10_000)
        self.stream = pyte.Stream(self.screen)
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.transcript = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execve(command[0], command, environment)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def read(self, seconds: float) -> bool:
        """Takes what comes within this time; False at the end of the program's output."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        if not data:
            return False
        text = self.decoder.decode(data)
        self.transcript += text
        self.stream.feed(text)
        return True

    def lines(self) -> list[str]:
        """What stands on the screen, without blanks at the ends of lines."""
        return [line.rstrip() for line in self.screen.display]

    def line(self) -> str:
        """The line that the cursor is on."""
        return self.lines()[self.screen.cursor.y]

    def wait(self, what: str, holds) -> None:
        """Reads until `holds` is true of the screen."""
        end = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > end:
                raise Failure(f"{what}: not seen within {PATIENCE:.0f} s; the screen is\n" + self.shown())
            if not self.read(0.2) and not holds():
                raise Failure(f"{what}: the program ended; the screen is\n" + self.shown())

    def sees(self, text: str) -> None:
        """Waits until a line of the screen is this text."""
        self.wait(f"a line {text!r}", lambda: text in self.lines())

    def shown(self) -> str:
        rest = [line for line in self.lines() if line]
        return "\n".join(f"    {line}" for line in rest)

    def ended(self) -> int:
        """Waits for the end of the program; its exit code."""
        end = time.monotonic() + PATIENCE
        while True:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > end:
                self.kill()
                raise Failure(f"the program did not end within {PATIENCE:.0f} s; the screen is\n" + self.shown())

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)
