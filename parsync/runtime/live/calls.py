"""Calls over a connection of their own, beside those of Ray.

A call of a Ray actor takes a millisecond, and as much processor time at its two ends together. The
processes of a run step some hundreds of times per second. Over a TCP connection a step takes a
twentieth of both. Ray starts, watches and restarts the actors as ever, and tells where one listens.

A connection begins with the key that the listener handed out through Ray; without it, it is closed.
Then requests and replies take turns, each as its length (uint32, little-endian) and its bytes. The
length FAILED has no bytes: the request raised an exception.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import BinaryIO

FAILED = 0xFFFF_FFFF
CONNECT_S = 2.0
_LENGTH = struct.Struct("<I")
_KEY_BYTES = 32
_READ_BYTES = 1 << 17


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a process listens, and the key that it asks for."""

    ip: str
    port: int
    key: bytes = field(repr=False)


class CallListener:
    """Answers calls, those of each connection in a thread of its own.

    Args:
        ip: Of this machine, as the callers reach it.
        handle: Carries out a request and returns the reply. Called in several threads at once.

    Raises:
        OSError: It cannot listen there.
    """

    def __init__(self, ip: str, handle: Callable[[bytes], bytes]) -> None:
        self._handle = handle
        self._socket = socket.create_server((ip, 0))
        self.endpoint = Endpoint(ip, self._socket.getsockname()[1], secrets.token_bytes(_KEY_BYTES))
        threading.Thread(target=self._accept, name="calls", daemon=True).start()

    def close(self) -> None:
        """Take no more connections. Those that are open stay."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(
                target=self._serve, args=(connection,), name="calls", daemon=True
            ).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.settimeout(CONNECT_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = connection.makefile("rb")
            if not hmac.compare_digest(stream.read(_KEY_BYTES), self.endpoint.key):
                return
            connection.settimeout(None)
            while True:
                request = _read(stream)
                try:
                    reply = self._handle(request)
                except Exception:  # whoever asks again by a call of Ray gets to know it
                    connection.sendall(_LENGTH.pack(FAILED))
                else:
                    connection.sendall(_LENGTH.pack(len(reply)) + reply)


def listen(ip: str, handle: Callable[[bytes], bytes]) -> CallListener | None:
    """A listener; None if there cannot be one."""
    try:
        return CallListener(ip, handle)
    except OSError:
        return None


class CallFailed(Exception):
    """The request raised an exception. Whoever asks again by a call of Ray gets to know it."""


class DirectCaller:
    """A connection to a listener. Calls go one after the other.

    Args:
        endpoint: Where it listens.
        timeout_s: How long an answer may take.

    Attributes:
        descriptor: Of the socket. When it can be read, a part of a reply is there.

    Raises:
        OSError: Nobody listens there.
    """

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        self._socket = socket.create_connection((endpoint.ip, endpoint.port), CONNECT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(endpoint.key)
        self._socket.settimeout(timeout_s)
        self._timeout_s = timeout_s
        self._deadline = 0.0
        self._received = bytearray()
        self.descriptor = self._socket.fileno()

    def call(self, request: bytes) -> bytes:
        """The reply to a request. Errors as reply()."""
        self.begin(request)
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        while (reply := self.reply()) is None:
            poll.poll(max(0.0, self._deadline - time.monotonic()) * 1000)
        return reply

    def begin(self, request: bytes) -> None:
        """Send a request. No other is under way.

        Raises:
            OSError: As reply().
        """
        self._deadline = time.monotonic() + self._timeout_s
        self._received.clear()
        self._socket.sendall(_LENGTH.pack(len(request)) + request)

    def reply(self) -> bytes | None:
        """The reply to the request, None while it is not there.

        Raises:
            CallFailed: The request raised.
            OSError: The connection is lost, or the answer takes too long. The request may or may
                not have been carried out. No call may follow.
        """
        received = self._received
        while True:
            try:
                data = os.read(self.descriptor, _READ_BYTES)  # without the socket's timeout
            except BlockingIOError:
                if time.monotonic() > self._deadline:
                    raise TimeoutError("timed out") from None
                return None
            if not data:
                raise ConnectionResetError("closed by the other side")
            received += data
            if len(received) < _LENGTH.size:
                continue
            (length,) = _LENGTH.unpack_from(received)
            if length == FAILED:
                raise CallFailed
            if len(received) == _LENGTH.size + length:
                return bytes(memoryview(received)[_LENGTH.size :])

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def _read(stream: BinaryIO) -> bytes:
    """The next request. OSError if the connection ends."""
    (length,) = _LENGTH.unpack(_read_exactly(stream, _LENGTH.size))
    return _read_exactly(stream, length)


def _read_exactly(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise ConnectionResetError("closed by the other side")
    return data
