"""What Ray exports of each scheduler, with fakes in place of its metrics."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest
from ray.exceptions import ActorDiedError, ActorUnavailableError, GetTimeoutError, RayTaskError

from parsync.metrics.live import DELAY_BOUNDS_US, SchedulerLine, Snapshot
from parsync.protocols.spec import ProtocolBroken
from parsync.runtime.live.calls import ActorFailed, Unavailable
from parsync.runtime.live.ray_glue import actors as ports


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
