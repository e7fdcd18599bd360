"""Steps over a connection of their own, on real sockets, and what happens when there is none."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from parsync.runtime.live import calls
from parsync.runtime.live.calls import (
    ActorFailed,
    CallListener,
    DirectCaller,
    Endpoint,
    Unavailable,
)
from parsync.runtime.live.ray_glue import actors as ports

IP = "127.0.0.1"


class Cell:
    """The cell as Ray shows it. Every answer is the request backwards, but that to b"bug"."""

    def __init__(self) -> None:
        self.by_ray: list[bytes] = []
        self.direct: list[bytes] = []
        self.away = False
        self.listener: CallListener | None = CallListener(IP, self._directly)

    def _directly(self, request: bytes) -> bytes:
        self.direct.append(request)
        return self._answer(request)

    def _answer(self, request: bytes) -> bytes:
        if request == b"bug":
            raise ValueError("a bug")
        return request[::-1]

    def answer(self, call: Callable[[], Any], timeout_s: float = 0.0) -> Any:
        """As ports.answer, of a call of this handle."""
        if self.away:
            raise Unavailable("process is away")
        try:
            return call()
        except ValueError as error:
            raise ActorFailed(str(error)) from error

    @property
    def endpoint(self) -> Any:
        listener = self.listener
        return Remote(lambda: None if listener is None else listener.endpoint)

    @property
    def step(self) -> Any:
        def carry_out(request: bytes) -> bytes:
            self.by_ray.append(request)
            return self._answer(request)

        return Remote(carry_out)


class Remote:
    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method

    def remote(self, *arguments: Any) -> Callable[[], Any]:
        return lambda: self._method(*arguments)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cell]:
    cell = Cell()
    monkeypatch.setattr(ports, "answer", cell.answer)
    yield cell
    if cell.listener is not None:
        cell.listener.close()


def test_every_caller_gets_the_replies_to_its_own_requests() -> None:
    listener = CallListener(IP, lambda request: request[::-1])
    wrong: list[bytes] = []

    def ask(name: bytes) -> None:
        caller = DirectCaller(listener.endpoint, 10.0)
        for number in range(200):
            request = name + str(number).encode()
            if caller.call(request) != request[::-1]:
                wrong.append(request)
        caller.close()

    threads = [threading.Thread(target=ask, args=(name,)) for name in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == [] and not any(thread.is_alive() for thread in threads)
    caller = DirectCaller(listener.endpoint, 10.0)
    large = bytes(range(256)) * 20_000
    assert caller.call(large) == large[::-1] and caller.call(b"") == b""
    caller.close()
    listener.close()
    with pytest.raises(OSError):
        DirectCaller(listener.endpoint, 1.0)


def test_nobody_is_answered_without_the_key() -> None:
    asked: list[bytes] = []

    def handle(request: bytes) -> bytes:
        asked.append(request)
        return request

    listener = CallListener(IP, handle)
    foreign = DirectCaller(replace(listener.endpoint, key=bytes(32)), 5.0)
    with pytest.raises(OSError):
        foreign.call(b"give me a place")
    short = socket.create_connection((IP, listener.endpoint.port), 5.0)
    short.sendall(b"GET / HTTP/1.0\r\n\r\n")
    short.shutdown(socket.SHUT_WR)
    assert short.recv(100) == b"" and asked == []
    listener.close()


def test_an_answer_that_does_not_come_is_not_waited_for_any_longer() -> None:
    held = threading.Event()

    def handle(request: bytes) -> bytes:
        held.wait(10)
        return b""

    listener = CallListener(IP, handle)
    caller = DirectCaller(listener.endpoint, 0.05)
    with pytest.raises(TimeoutError):
        caller.call(b"")
    held.set()
    listener.close()


def test_steps_go_past_ray(cell: Cell) -> None:
    port = ports.CellPort(cell)
    assert [port.step(request) for request in (b"one", b"two")] == [b"eno", b"owt"]
    assert (cell.direct, cell.by_ray) == ([b"one", b"two"], [])


def test_a_step_that_raises_is_repeated_by_ray_which_tells_why(cell: Cell) -> None:
    port = ports.CellPort(cell)
    with pytest.raises(ActorFailed, match="a bug"):
        port.step(b"bug")
    assert (cell.direct, cell.by_ray) == ([b"bug"], [b"bug"])
    assert port.step(b"next") == b"txen"
    assert cell.direct[-1] == b"next"


@pytest.mark.parametrize("listens", [True, False])
def test_without_a_connection_steps_are_calls_of_ray(cell: Cell, listens: bool) -> None:
    assert cell.listener is not None
    cell.listener.close()
    cell.listener = cell.listener if listens else None  # a firewall, or no socket to be had
    port = ports.CellPort(cell)
    assert [port.step(request) for request in (b"one", b"two")] == [b"eno", b"owt"]
    assert (cell.direct, cell.by_ray) == ([], [b"one", b"two"])


def test_a_lost_connection_is_made_again_to_the_process_that_takes_the_place(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = ports.CellPort(cell)
    port.step(b"one")
    listener = cell.listener
    assert listener is not None and port.steps._direct is not None
    port.steps._direct._socket.shutdown(socket.SHUT_RDWR)  # as when the process is killed
    listener.close()
    with pytest.raises(Unavailable, match="lost the connection"):
        port.step(b"two")
    cell.away = True
    with pytest.raises(Unavailable, match="away"):
        port.step(b"two")
    cell.away = False
    cell.listener = CallListener(IP, cell._directly)
    assert port.step(b"two") == b"owt"
    assert cell.direct == [b"one", b"two"] and cell.by_ray == []


def reply_of(link: calls.Link, descriptor: int | None) -> bytes:
    """The reply to the call that was begun, as a loop waits for it."""
    assert descriptor is not None
    while (reply := link.reply()) is None:
        assert select.select((descriptor,), (), (), 10)[0], "no answer"
    return reply


def test_a_loop_begins_a_call_and_looks_for_the_reply(cell: Cell) -> None:
    link = ports.CellPort(cell).steps
    assert link.begin(b"early") is None, "there is no connection before the first call"
    link.call(b"one")
    large = bytes(range(256)) * 20_000
    for request in (b"two", large, b""):
        assert reply_of(link, link.begin(request)) == request[::-1]
    assert cell.direct == [b"one", b"two", large, b""] and cell.by_ray == []


def test_a_reply_that_does_not_come_is_unavailable(cell: Cell) -> None:
    link = ports.CellPort(cell).steps
    link.call(b"one")
    descriptor = link.begin(b"bug")
    with pytest.raises(Unavailable, match="raised"):
        reply_of(link, descriptor)
    assert reply_of(link, link.begin(b"two")) == b"owt", "the connection is as good as before"
    assert link._direct is not None
    descriptor = link.begin(b"three")
    link._direct._socket.shutdown(socket.SHUT_RDWR)  # as when the process is killed
    with pytest.raises(Unavailable, match="lost the connection"):
        for _ in range(2):  # the reply may be there already
            reply_of(link, descriptor)
    assert link.begin(b"three") is None
    assert link.call(b"three") == b"eerht"


def test_a_loop_gives_a_reply_up_after_a_time(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()
    monkeypatch.setattr(calls, "CALL_TIMEOUT_S", 0.05)
    monkeypatch.setattr(cell, "_answer", lambda request: request * held.wait(10))
    link = ports.CellPort(cell).steps
    held.set()
    link.call(b"one")
    held.clear()
    assert link.begin(b"two") is not None and link.reply() is None
    time.sleep(0.06)
    with pytest.raises(Unavailable, match="timed out"):
        link.reply()
    held.set()


def test_an_endpoint_keeps_its_key_to_itself() -> None:
    assert "secret" not in repr(Endpoint(IP, 1, b"secret"))
