"""What ends the sleep of an actor's loop."""

from __future__ import annotations

import contextlib
import os
import select
import weakref

FD_SETSIZE = 1024  # select() takes descriptors below


class Waker:
    """Lets one loop sleep until a time is over, another thread wakes it, or a reply has come.

    Sleeps are as short as a timer of 300 us. `select` takes such times; `poll`, which takes every
    descriptor, rounds them up to milliseconds.
    """

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._watched = [self._read]
        weakref.finalize(self, _close, self._read, self._write)

    def set(self) -> None:
        """Wake the loop, or keep it from falling asleep. May be called in any thread."""
        with contextlib.suppress(BlockingIOError):  # it has been woken often enough
            os.write(self._write, b"\0")

    def watch(self, descriptor: int | None) -> None:
        """From now on the loop also wakes when this can be read; None: nothing else wakes it."""
        self._watched = [self._read] if descriptor is None else [self._read, descriptor]

    def wait(self, timeout_s: float) -> bool:
        """Sleep. Returns whether something has woken the loop before the time was over."""
        if max(self._watched) < FD_SETSIZE:
            readable, _, _ = select.select(self._watched, (), (), timeout_s)
        else:
            poll = select.poll()
            for descriptor in self._watched:
                poll.register(descriptor, select.POLLIN)
            readable = [descriptor for descriptor, _ in poll.poll(timeout_s * 1000)]
        if self._read in readable:
            os.read(self._read, 4096)
        return bool(readable)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
