"""Calls between processes: over connections of their own, on real sockets, and what happens when
there is none; what Ray's errors become, and what Ray exports of each scheduler."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from ray.exceptions import ActorDiedError, ActorUnavailableError, GetTimeoutError, RayTaskError

from parsync.metrics.live_line import DELAY_BOUNDS_US, SchedulerLine, Snapshot
from parsync.protocols.spec import ProtocolBroken
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


class Fake:
    """A counter or a gauge: its value by tags, and how often it was called."""

    made: ClassVar[dict[str, Fake]] = {}

    def __init__(self, name: str, description: str, tag_keys: tuple[str, ...]) -> None:
        self.tag_keys = set(tag_keys)
        self.value: dict[tuple[str, ...], float] = {}
        self.calls = 0
        Fake.made[name] = self

    def inc(self, value: float, tags: dict[str, str]) -> None:
        assert value > 0 and set(tags) == self.tag_keys
        self.calls += 1
        key = tuple(tags.values())
        self.value[key] = self.value.get(key, 0) + value

    def set(self, value: float, tags: dict[str, str]) -> None:
        assert set(tags) == self.tag_keys
        self.value[tuple(tags.values())] = value


@pytest.fixture
def gauges(monkeypatch: pytest.MonkeyPatch) -> ports.SchedulerGauges:
    monkeypatch.setattr(ports, "Counter", Fake)
    monkeypatch.setattr(ports, "Gauge", Fake)
    Fake.made = {}
    return ports.SchedulerGauges("ParSync", {3: "random-3", 4: "random-4"})


def line_of(agent: int, *delays: int) -> SchedulerLine:
    below = (*(sum(delay < bound for delay in delays) for bound in DELAY_BOUNDS_US), len(delays))
    return SchedulerLine(agent, 2, len(delays), None, None, None, None, below, sum(delays))


def snapshot_of(*lines: SchedulerLine) -> Snapshot:
    return Snapshot(1_000_000, 1_000_000, lines, None, None, None)


def test_delays_add_up_to_a_prometheus_histogram(gauges: ports.SchedulerGauges) -> None:
    gauges.show(snapshot_of(line_of(3, 500, 1023, 1024, 5000), line_of(4)))
    gauges.show(snapshot_of(line_of(3, 700, 1 << 40), line_of(4, 9000)))
    name = "agora_scheduling_delay_us"
    bucket = Fake.made[f"{name}_bucket"].value
    mine = {le: count for (_, scheduler, le), count in bucket.items() if scheduler == "random-3"}
    assert {arm for arm, *_ in bucket} == {"ParSync"}
    assert (mine["1024"], mine["2048"], mine["4096"], mine["8192"], mine["+Inf"]) == (3, 4, 4, 5, 6)
    in_order = [mine[le] for le in ports.DELAY_LABELS]
    assert in_order == sorted(in_order)
    assert bucket["ParSync", "random-4", "+Inf"] == 1
    assert ("ParSync", "random-4", "1024") not in bucket
    counts = {("ParSync", "random-3"): 6, ("ParSync", "random-4"): 1}
    assert Fake.made[f"{name}_count"].value == counts
    assert Fake.made[f"{name}_sum"].value[
        "ParSync", "random-3"
    ] == 500 + 1023 + 1024 + 5000 + 700 + (1 << 40)


class Cause(Exception):
    pass


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ActorDiedError(), ports.ActorDied, "process is gone"),
        (
            ActorDiedError(
                RayTaskError("f", "Traceback:\n at 1\nAgoraError: disk full\n", Cause())
            ),
            ports.ActorDied,
            "AgoraError: disk full",
        ),
        (
            ActorUnavailableError("RPC error: reset by peer rpc_code: 14", b"7" * 16),
            Unavailable,
            "process is away",
        ),
        (GetTimeoutError("Get timed out: some object(s) not ready."), Unavailable, "no answer"),
    ],
    ids=["dead", "not made", "restarting", "slow"],
)
def test_what_happened_to_an_actor_is_a_few_words(
    error: Exception, kind: type, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without ids and addresses: the caller adds the actor's name."""

    def get(ref: object, timeout: float) -> None:
        raise error

    monkeypatch.setattr("ray.get", get)
    with pytest.raises(kind) as caught:
        ports.answer(None)
    assert type(caught.value) is kind and str(caught.value).startswith(said)
    assert len(str(caught.value)) < 40


def test_calls_do_not_grow_with_the_commits(gauges: ports.SchedulerGauges) -> None:
    line = line_of(3, 2000)
    many = replace(line, delays_below=tuple(10**6 * count for count in line.delays_below))
    calls = []
    for shown in (line, many):
        before = sum(fake.calls for fake in Fake.made.values())
        gauges.show(snapshot_of(shown))
        calls.append(sum(fake.calls for fake in Fake.made.values()) - before)
    assert calls[0] == calls[1] <= len(DELAY_BOUNDS_US) + 4


@pytest.mark.parametrize(
    ("cause", "raises"),
    [
        (ProtocolBroken("lottery", "agent 'a-0'", "handling Ask", "raised"), ProtocolBroken),
        (ValueError("a bug"), ActorFailed),
    ],
)
def test_a_step_raises_what_names_its_culprit_as_it_is(
    monkeypatch: pytest.MonkeyPatch, cause: Exception, raises: type[Exception]
) -> None:
    def get(ref: object, timeout: float) -> None:
        raise RayTaskError("step", "Traceback", cause)

    class Call:
        @staticmethod
        def remote(request: bytes) -> None:
            """A call."""

    class Handle:
        step = Call()

    port = ports.CellPort(Handle())
    monkeypatch.setattr(port.steps, "_connect", lambda: None)
    monkeypatch.setattr(ports.ray, "get", get)
    with pytest.raises(raises) as failed:
        port.step(b"")
    assert (failed.value is cause) == (raises is ProtocolBroken)
