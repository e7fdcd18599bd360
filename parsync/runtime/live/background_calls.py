"""Calls that a loop does not wait for."""

from __future__ import annotations

import queue
import threading
import weakref
from collections.abc import Callable
from typing import Protocol

from parsync.runtime.live.steps import Unavailable
from parsync.runtime.live.waker import Waker

LOOK_S = 0.1  # between two looks for a reply


class Connection(Protocol):
    """Where requests go without waiting, while there is a connection."""

    def begin(self, request: bytes) -> int | None:
        """Send a request. Returns the descriptor from which its reply can be read; None: there is
        no connection, and nothing was sent."""
        ...

    def reply(self) -> bytes | None:
        """The reply to the request that was begun; None while it is under way.

        Raises:
            Unavailable: The request may or may not have been carried out, or it raised.
        """
        ...


class BackgroundCalls:
    """Carries out the calls of one loop, one at a time.

    A request goes over the connection, and the loop looks for the reply. If there is no connection,
    or the reply does not come, a thread carries the request out, a second time if it was sent. This
    may take long. The thread ends when nobody uses it.

    Args:
        connection: To the process that is called.
        carry_out: Carries a request out, and waits for its reply.
        wake: Woken when a reply is there; None: the loop looks when it has time.
        on_lost: Called when a request was sent over the connection and its reply does not come.
    """

    def __init__(
        self,
        connection: Connection,
        carry_out: Callable[[bytes], bytes],
        wake: Waker | None = None,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._connection = connection
        self._wake = wake
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[bytes | BaseException] = queue.SimpleQueue()
        self._sent: bytes | None = None  # the request whose reply the connection will bring
        self._on_lost = on_lost
        arguments = carry_out, self._requests, self._replies, wake
        threading.Thread(target=_carry_out, args=arguments, name="calls", daemon=True).start()
        weakref.finalize(self, self._requests.put, None)

    def begin(self, request: bytes) -> None:
        """Begin a call. None is under way."""
        descriptor = self._connection.begin(request)
        if descriptor is None:
            self._requests.put(request)
            return
        self._sent = request
        if self._wake is not None:
            self._wake.watch(descriptor)

    def reply(self) -> bytes | None:
        """The reply to the call under way; None while there is none. Raises what the call
        raised."""
        if self._sent is not None:
            return self._from_connection(self._sent)
        try:
            return _returned(self._replies.get_nowait())
        except queue.Empty:
            return None

    def wait(self) -> bytes:
        """As reply(), but wait for it. The loop has ended."""
        while self._sent is not None:
            reply = self._from_connection(self._sent)
            if reply is not None:
                return reply
            if self._sent is not None:
                assert self._wake is not None, "only a loop with a Waker waits"
                self._wake.wait(LOOK_S)
        return _returned(self._replies.get())

    def _from_connection(self, request: bytes) -> bytes | None:
        try:
            reply = self._connection.reply()
            if reply is None:
                return None
        except Unavailable:
            reply = None
            self._on_lost()
            self._requests.put(request)
        self._sent = None
        if self._wake is not None:
            self._wake.watch(None)
        return reply


def _returned(reply: bytes | BaseException) -> bytes:
    if isinstance(reply, BaseException):
        try:
            raise reply
        finally:
            del reply  # its traceback holds this frame
    return reply


def _carry_out(
    carry_out: Callable[[bytes], bytes],
    requests: queue.SimpleQueue[bytes | None],
    replies: queue.SimpleQueue[bytes | BaseException],
    wake: Waker | None,
) -> None:
    """Carry out requests until None is asked for. The thread does not hold its BackgroundCalls."""
    while (request := requests.get()) is not None:
        try:
            replies.put(carry_out(request))
        except BaseException as error:  # raised where the reply is taken
            replies.put(error)
        if wake is not None:
            wake.set()
