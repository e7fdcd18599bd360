"""Ray as the loops see it: calls that answer, calls that do not wait, exported metrics."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import ray
from ray.exceptions import (
    ActorDiedError,
    GetTimeoutError,
    RayActorError,
    RayError,
    RayTaskError,
)
from ray.util.metrics import Counter, Gauge

from parsync.core.codec import decode, encode
from parsync.metrics.live import DELAY_BOUNDS_US, SchedulerLine, Snapshot
from parsync.runtime.live.background_calls import BackgroundCalls
from parsync.runtime.live.calls import CallFailed, DirectCaller, Endpoint
from parsync.runtime.live.clock import Clock
from parsync.runtime.live.liveness import ActorStatus
from parsync.runtime.live.steps import ActorFailed, Unavailable
from parsync.runtime.live.submissions import Acknowledgement
from schedulers.interface import ContractBroken
from shared_state.errors import AgoraError

CALL_TIMEOUT_S = 10.0
DELAY_LABELS = (*map(str, DELAY_BOUNDS_US), "+Inf")


class ActorDied(Unavailable):
    """The actor does not come back."""


def answer(ref: Any, timeout_s: float = CALL_TIMEOUT_S) -> Any:
    """The value of a call.

    Messages of errors are short and do not name the actor, which the caller knows: Ray's have
    paragraphs, with ids, addresses and its guesses.

    Raises:
        Unavailable: The actor is away or slow; the call may or may not have been carried out.
        ActorDied: The actor does not come back.
        ActorFailed: The actor refused the call.
    """
    try:
        return ray.get(ref, timeout=timeout_s)
    except GetTimeoutError as error:
        raise Unavailable(f"no answer within {timeout_s:g} s") from error
    except ActorDiedError as error:
        # its constructor failed: the last line of the traceback has the reason
        why = str(error).strip().splitlines()[-1] if error.actor_init_failed else "process is gone"
        raise ActorDied(why) from error
    except RayActorError as error:
        raise Unavailable("process is away") from error
    except RayTaskError as error:
        cause = error.cause
        message = (
            str(cause) if isinstance(cause, AgoraError) else f"{type(cause).__name__}: {cause}"
        )
        raise ActorFailed(message) from error
    except RayError as error:  # the object store, or this machine's node, is gone
        raise Unavailable(str(error).strip().splitlines()[0]) from error


class Link:
    """Calls of one method of an actor, which takes bytes and returns bytes.

    They take a connection of their own to it. Where there is none, because the nodes of a cluster
    let only Ray through, they are calls of Ray. One call is under way at a time, in whichever
    thread. begin() and reply() make it a Connection (background_calls.py); call() opens it.

    Args:
        handle: The actor. Its method `endpoint` tells where it listens.
        by_ray: Carries a request out by a call of Ray.
    """

    def __init__(self, handle: Any, by_ray: Callable[[bytes], bytes]) -> None:
        self._handle = handle
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
        """As Connection.begin."""
        if self._direct is None:
            return None
        try:
            self._direct.begin(request)
        except OSError:
            self._close()
            return None
        return self._direct.descriptor

    def reply(self) -> bytes | None:
        """As Connection.reply."""
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
        endpoint: Endpoint | None = answer(self._handle.endpoint.remote())
        if endpoint is None:
            return None
        try:
            return DirectCaller(endpoint, CALL_TIMEOUT_S)
        except OSError:
            return None


class CellPort:
    """The cell actor.

    Attributes:
        steps: The connection for steps.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self.steps = Link(handle, self._step_by_ray)

    def step(self, request: bytes) -> bytes:
        """The cell's reply. One step is under way at a time.

        Raises:
            ContractBroken: As the cell raised it, which names whose fault it is. It is not that of
                the actor that steps.
            Unavailable, ActorFailed: As answer().
        """
        return self.steps.call(request)

    def _step_by_ray(self, request: bytes) -> bytes:
        try:
            reply: bytes = answer(self._handle.step.remote(request))
        except ActorFailed as failed:
            cause = getattr(failed.__cause__, "cause", None)
            if isinstance(cause, ContractBroken):
                raise cause from failed
            raise
        return reply

    def origin_ns(self) -> int | None:
        """When the run's time begins; None while that is not decided."""
        origin: int | None = answer(self._handle.origin_ns.remote())
        return origin

    def never_placed(self) -> np.ndarray:
        """The tasks that hold no place and never held one, bool[tasks]."""
        tasks, bits = answer(self._handle.never_placed.remote())
        return np.unpackbits(np.frombuffer(bits, np.uint8), count=tasks).view(np.bool_)


class HostPort:
    """A scheduler host, as the sender calls it.

    Args:
        handle: The actor.
        clock: Of the sender. The host learns when a push was sent.
    """

    def __init__(self, handle: Any, clock: Clock) -> None:
        self._handle = handle
        self._clock = clock
        pushes = Link(handle, self._push_by_ray)
        self._calls = BackgroundCalls(pushes, pushes.call)

    def begin(self, epoch: int, number: int, payload: bytes) -> None:
        """As HostClient.begin."""
        self._calls.begin(encode((epoch, number, self._clock.now_us(), payload)))

    def poll(self, call: Any) -> Acknowledgement | None:
        """As HostClient.poll, of the push begun last."""
        reply = self._calls.reply()
        return None if reply is None else Acknowledgement(*decode(reply))

    def _push_by_ray(self, request: bytes) -> bytes:
        reply: bytes = answer(self._handle.deliver.remote(request))
        return reply


class Reporter:
    """Sends an actor's reports to the coordinator; a coordinator that is gone is not waited for."""

    def __init__(self, handle: Any, name: str, arm: str, agent_names: dict[int, str]) -> None:
        self._handle = handle
        self._name = name
        self._gauges = SchedulerGauges(arm, agent_names) if agent_names else None

    def __call__(self, report: ActorStatus) -> None:
        with contextlib.suppress(RayActorError):
            self._handle.report.remote(self._name, report)
        if self._gauges is not None and report.snapshot is not None:
            self._gauges.show(report.snapshot)


class SchedulerGauges:
    """What Ray exports of each scheduler of an arm, from its snapshots: a handful of observations
    per second.

    Scheduling delays are a histogram in Prometheus' form: agora_scheduling_delay_us_bucket counts,
    per `le`, the delays up to it (to the microsecond below it), _sum and _count all of them. Ray's
    own Histogram takes one value per call; these counters take a half second's commits in 20 calls
    per scheduler, 3 us each. histogram_quantile(0.99, sum by (arm, scheduler, le)
    (rate(ray_agora_scheduling_delay_us_bucket_total[1m]))) reads them.
    """

    def __init__(self, arm: str, agent_names: dict[int, str]) -> None:
        self._names = agent_names
        self._arm = arm
        tags = ("arm", "scheduler")
        self._commits = Counter("agora_commits", "Tasks committed for the first time", tags)
        self._queue = Gauge("agora_queue", "Tasks submitted and not committed", tags)
        self._conflict_rate = Gauge(
            "agora_conflict_rate", "Rejected as conflicts / claims, last second", tags
        )
        self._delay_p50 = Gauge(
            "agora_delay_p50_us", "Median scheduling delay of the last second's commits", tags
        )
        self._delay_p99 = Gauge("agora_delay_p99_us", "99th percentile of the same", tags)
        name = "agora_scheduling_delay_us"
        self._delays_below = Counter(
            f"{name}_bucket", "First commits with a delay up to le", (*tags, "le")
        )
        self._delay_sum = Counter(f"{name}_sum", "Sum of the delays of first commits", tags)
        self._delay_count = Counter(f"{name}_count", "First commits", tags)

    def show(self, snapshot: Snapshot) -> None:
        for line in snapshot.schedulers:
            tags = {"arm": self._arm, "scheduler": self._names[line.agent]}
            commits = line.commits_per_s * snapshot.window_us / 1e6
            if commits > 0:
                self._commits.inc(commits, tags)
            self._queue.set(line.queue, tags)
            for gauge, value in (
                (self._conflict_rate, line.conflict_rate),
                (self._delay_p50, line.delay_p50_us),
                (self._delay_p99, line.delay_p99_us),
            ):
                if value is not None:
                    gauge.set(value, tags)
            self._add_delays(line, tags)

    def _add_delays(self, line: SchedulerLine, tags: dict[str, str]) -> None:
        for bound, below in zip(DELAY_LABELS, line.delays_below, strict=True):
            if below:
                self._delays_below.inc(below, {**tags, "le": bound})
        for counter, value in (
            (self._delay_sum, line.delay_sum_us),
            (self._delay_count, line.delays_below[-1]),
        ):
            if value:
                counter.inc(value, tags)
