"""Ends what is left of an embedded Ray when the process that started it is killed.

On Linux the kernel kills the processes that ray.init starts when this one is gone. It does not kill
those that they started: actors notice within two seconds, but two agents of the raylet's wait a
minute for the dead GCS to take their last message. So a process of its own, in a session of its
own, waits for the end of a pipe that the process which started Ray holds, and kills what is left.
It ends with Ray, too.

    python watchdog.py MARK         standard input: the pipe

Imports nothing of the project nor of Ray: it is small, and starts before Ray does.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

MARK = "AGORA_EMBEDDED_RAY"  # in the environment of all that ray.init starts
_LOOK_S = 1.0
_ROUNDS = 30  # of killing, while anything is left
_PAUSE_S = 0.1
_QUIET_ROUNDS = 5  # what was being started comes to light


class Watchdog:
    """The end of the pipe that is held."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def watch(self, session: Path, raylet: int) -> None:
        """Watch the Ray that has started.

        Args:
            session: Its directory, which holds the output of its processes.
            raylet: The process id of the raylet; the watchdog ends with it.
        """
        os.write(self._pipe, f"{raylet} {session}\n".encode())


@contextlib.contextmanager
def watched() -> Iterator[Watchdog]:
    """Start Ray in the block under a watchdog. The pipe to it stays open until this process ends.
    Linux only: elsewhere nothing is done (Ray has a reaper of its own there)."""
    ours, its = os.pipe()
    if sys.platform != "linux":
        yield Watchdog(its)
        return
    mark = f"{os.getpid()}-{time.time_ns()}"
    subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, mark],
        stdin=ours,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    os.close(ours)
    os.environ[MARK] = mark
    try:
        yield Watchdog(its)
    finally:
        del os.environ[MARK]


def main(mark: str) -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    logs = _wait()
    if logs is None:
        return
    quiet = 0
    for _ in range(_ROUNDS):
        left = _left(mark.encode(), logs)
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        quiet = 0 if left else quiet + 1
        if quiet == _QUIET_ROUNDS:
            return
        time.sleep(_PAUSE_S)


def _wait() -> str | None:
    """Wait for the end of the process at the other end: where the session's logs lie ("" if Ray had
    not started yet); None once Ray has ended."""
    received = b""
    raylet, logs = 0, ""
    while True:
        ready, _, _ = select.select([0], [], [], _LOOK_S)
        if not ready:
            if raylet and not _alive(raylet) and not select.select([0], [], [], 0)[0]:
                return None
            continue
        data = os.read(0, 4096)
        if not data:
            return logs
        received += data
        if received.endswith(b"\n"):
            number, _, session = received.decode().rstrip("\n").partition(" ")
            raylet, logs = int(number), f"{session}/logs/"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _left(mark: bytes, logs: str) -> list[int]:
    """Processes that have a log of the session open for writing, or who have the mark (one that
    gives itself a title may overwrite it)."""
    left = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            marked = f"{MARK}=".encode() + mark in (folder / "environ").read_bytes().split(b"\0")
            if marked or (logs and _writes(folder / "fd", logs)):
                left.append(int(folder.name))
    return left


def _writes(descriptors: Path, logs: str) -> bool:
    return any(
        os.readlink(descriptor).startswith(logs) and descriptor.lstat().st_mode & stat.S_IWUSR
        for descriptor in descriptors.iterdir()
    )


if __name__ == "__main__":
    main(sys.argv[1])
