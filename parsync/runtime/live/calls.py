"""Calls between the processes of a run over connections of their own, beside those of Ray.

A call of a Ray actor takes a millisecond, and as much processor time at its two ends together. The
processes of a run step some hundreds of times per second. Over a TCP connection a step takes a
twentieth of both. Ray starts, watches and restarts the actors as ever, and tells where one listens.
Where there is no connection, because the nodes of a cluster let only Ray through, a call is one of
Ray (Link).

A connection begins with the key that the listener handed out through Ray; without it, it is closed.
Then requests and replies take turns, each as its length (uint32, little-endian) and its bytes. The
length FAILED has no bytes: the request raised an exception. Whoever asks again by a call of Ray
gets to know it.

A loop does not wait for its calls (BackgroundCalls): its Waker ends its sleep when a reply comes.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import queue
import secrets
import select
import socket
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from shared_state.errors import AgoraError

FAILED = 0xFFFF_FFFF
CONNECT_S = 2.0
CALL_TIMEOUT_S = 10.0
LOOK_S = 0.1  # between two looks for a reply
FD_SETSIZE = 1024  # select() takes descriptors below
_LENGTH = struct.Struct("<I")
_KEY_BYTES = 32
_READ_BYTES = 1 << 17


class Unavailable(Exception):
    """A call failed: it may or may not have been carried out. Its actor is expected back."""


class ActorFailed(AgoraError):
    """An actor raised an exception: a full disk, or a bug."""


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
                except Exception:
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
    """The request raised an exception."""


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


class Link:
    """Calls of one method of an actor, which takes bytes and returns bytes.

    They take a connection of their own to it; where there is none, they are calls of Ray. One call
    is under way at a time, in whichever thread: call() waits for the reply, and opens the
    connection; begin() and reply() do not wait.

    Args:
        find: Asks the process by a call of Ray where it listens; None: it does not.
        by_ray: Carries a request out by a call of Ray.
    """

    def __init__(
        self, find: Callable[[], Endpoint | None], by_ray: Callable[[bytes], bytes]
    ) -> None:
        self._find = find
        self._by_ray = by_ray
        self._direct: DirectCaller | None = None
        self._reachable = True  # without Ray, as far as is known

    def call(self, request: bytes) -> bytes:
        """The reply to a request.

        Raises:
            Unavailable: The request may or may not have been carried out.
            ActorFailed: The request raised. It is then repeated by Ray, which tells what.
        """
        if self._direct is None and self._reachable:
            self._direct = self._connect()
            self._reachable = self._direct is not None
        if self._direct is not None:
            with self._lost_connections(), contextlib.suppress(CallFailed):
                return self._direct.call(request)
        try:
            return self._by_ray(request)
        except Unavailable:
            self._reachable = True  # the process that takes its place may be
            raise

    def begin(self, request: bytes) -> int | None:
        """Send a request over the connection. Returns the descriptor from which its reply can be
        read; None: there is no connection, and nothing was sent."""
        if self._direct is None:
            return None
        try:
            self._direct.begin(request)
        except OSError:
            self._close()
            return None
        return self._direct.descriptor

    def reply(self) -> bytes | None:
        """The reply to the request that was begun; None while it is under way.

        Raises:
            Unavailable: The request may or may not have been carried out, or it raised.
        """
        assert self._direct is not None
        with self._lost_connections():
            try:
                return self._direct.reply()
            except CallFailed as failed:
                raise Unavailable("the request raised") from failed

    @contextlib.contextmanager
    def _lost_connections(self) -> Iterator[None]:
        """Close a connection that breaks, and raise Unavailable."""
        try:
            yield
        except OSError as error:
            self._close()
            raise Unavailable(f"lost the connection: {error}") from error

    def _close(self) -> None:
        if self._direct is not None:
            self._direct.close()
            self._direct = None

    def _connect(self) -> DirectCaller | None:
        endpoint = self._find()
        if endpoint is None:
            return None
        try:
            return DirectCaller(endpoint, CALL_TIMEOUT_S)
        except OSError:
            return None


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


class BackgroundCalls:
    """Carries out the calls of one loop, one at a time.

    A request goes over the link's connection, and the loop looks for the reply. If there is no
    connection, or the reply does not come, a thread carries the request out, a second time if it
    was sent. This may take long. The thread ends when nobody uses it.

    Args:
        link: To the process that is called.
        carry_out: Carries a request out, and waits for its reply.
        wake: Woken when a reply is there; None: the loop looks when it has time.
        on_lost: Called when a request was sent over the connection and its reply does not come.
    """

    def __init__(
        self,
        link: Link,
        carry_out: Callable[[bytes], bytes],
        wake: Waker | None = None,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._link = link
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
        descriptor = self._link.begin(request)
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
            reply = self._link.reply()
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
