"""The actors of a run as Ray has them: making and finding them, calls that answer, calls that do
not wait, and the metrics that Ray exports."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import ray
from ray.exceptions import ActorDiedError, GetTimeoutError, RayActorError, RayError, RayTaskError
from ray.util.metrics import Counter, Gauge
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from parsync.core.codec import decode, encode
from parsync.metrics.live_line import DELAY_BOUNDS_US, SchedulerLine, Snapshot
from parsync.runtime.live.calls import (
    CALL_TIMEOUT_S,
    ActorFailed,
    BackgroundCalls,
    Endpoint,
    Link,
    Unavailable,
)
from parsync.runtime.live.loop import Clock
from parsync.runtime.live.plan import ActorStatus, actor_title
from parsync.runtime.live.ray_glue.cluster import connect, disconnect
from parsync.runtime.live.ray_glue.nodes import nodes_with_room
from parsync.runtime.live.submissions import Acknowledgement
from schedulers.interface import ContractBroken
from shared_state.errors import AgoraError

STATUS_S = 5.0
_OBJECT_STORE_MB = 0  # of a Ray that runs already
DELAY_LABELS = (*map(str, DELAY_BOUNDS_US), "+Inf")
NAMESPACE = "agora-"  # what the names of all runs' namespaces begin with


class RunActors:
    """The actors of one run, by name, in a namespace of their own.

    Every actor has a node: the caller's, where the run's directory is, or one of the cluster's
    nodes in turn. Ray replaces a node that is gone. An actor asks for a byte of memory, because Ray
    places actors that ask for nothing on random nodes, whatever their strategy.
    """

    def __init__(self, namespace: str, arm: str) -> None:
        self.namespace = namespace
        self._arm = arm
        self._handles: dict[str, Any] = {}
        self._home = ray.get_runtime_context().get_node_id()
        self._in_turn = itertools.cycle(nodes_with_room(self._home))

    def create(self, name: str, cls: type, restarts: bool, spread: bool, *args: Any) -> Any:
        """Create an actor of a plain class.

        Args:
            restarts: Whether it is built again from the same arguments after a crash; calls are
                never repeated by Ray.
            spread: Whether it goes to the next of the cluster's nodes, else on the caller's.
        """
        node = next(self._in_turn) if spread else self._home
        options: dict[str, Any] = {
            "name": name,
            "namespace": self.namespace,
            "num_cpus": 0,
            "memory": 1,
            "max_restarts": -1 if restarts else 0,
            "max_task_retries": 0,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=True),
        }
        titled = _titled(cls, f"agora:{actor_title(name, self._arm)}")
        handle = ray.remote(**options)(titled).remote(*args)
        self._handles[name] = handle
        return handle

    def end(self, name: str) -> None:
        """As kill()."""
        kill(self._handles[name])

    def dismiss(self) -> None:
        """Kill every actor for good."""
        for name in self._handles:
            self.end(name)


def _titled(cls: type, title: str) -> type:
    """The class by another name. Ray calls an actor's process by the name of its class: so `ps` and
    the dashboard tell processes of one class, and of several arms, apart."""
    return type(title, (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__})


def kill(actor: Any) -> None:
    """Kill an actor for good."""
    with contextlib.suppress(RayError):
        ray.kill(actor, no_restart=True)


def node_ip() -> str:
    """The address of this process's node, as the cluster's nodes reach it."""
    ip: str = ray.util.get_node_ip_address()
    return ip


def member(namespace: str, name: str) -> Any:
    """An actor of a run that was created before the caller."""
    return ray.get_actor(name, namespace=namespace)


def share(value: Any) -> Any:
    """Put a value into the object store once: a handle for shared(). Whoever shares keeps the
    handle for as long as actors may be built from it."""
    return [ray.put(value)]


def shared(handle: Any) -> Any:
    """The value, its arrays read-only and without a copy."""
    return ray.get(handle[0])


def shared_by(keeper: Any) -> Any:
    """The value whose handle the actor `keeper` keeps.

    If the keeper has none any more, the calling actor ends for good: after an exception Ray would
    restart it again and again. The handle is not an argument of actors, because Ray warns of every
    restartable actor that has one.
    """
    handle = ray.get(keeper.kept.remote())
    if handle is None:
        ray.actor.exit_actor()
    return shared(handle)


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


def endpoint_of(handle: Any) -> Endpoint | None:
    """Where an actor takes calls without Ray; None if it cannot. Errors as answer()."""
    endpoint: Endpoint | None = answer(handle.endpoint.remote())
    return endpoint


class CellPort:
    """The cell actor.

    Attributes:
        steps: The connection for steps.
    """

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        self.steps = Link(lambda: endpoint_of(handle), self._step_by_ray)

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
        pushes = Link(lambda: endpoint_of(handle), self._push_by_ray)
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

    def __init__(self, handle: Any, name: str, arm: str, agent_names: Mapping[int, str]) -> None:
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

    def __init__(self, arm: str, agent_names: Mapping[int, str]) -> None:
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


def statuses(address: str) -> list[str]:
    """What each actor of each live run on a running Ray is doing, a line each. Raises AgoraError
    as connect()."""
    connect(address, _OBJECT_STORE_MB, False)
    try:
        found = [
            (entry["namespace"], entry["name"])
            for entry in ray.util.list_named_actors(all_namespaces=True)
            if entry["namespace"].startswith(NAMESPACE)
        ]
        return [_status(namespace, name) for namespace, name in sorted(found)]
    finally:
        disconnect()


def _status(namespace: str, name: str) -> str:
    try:
        actor = ray.get_actor(name, namespace=namespace)
        status: str = answer(actor.status.remote(), STATUS_S)
    except (Unavailable, ActorFailed, ValueError) as error:  # ValueError: gone since
        return f"{name}: {error}"
    return status
