"""Whether a run goes on: who is alive, and what the silence of an actor means.

Every actor reports to the coordinator a few times per second (StatusMonitor). An actor that has not
reported for SILENT_US is silent, and the driver looks for the reason (SilentActors):

- A host whose scheduler's call does not return. The loop of a host makes the calls and sends the
  reports; another thread of the process answers calls. So a host that has not reported for longer
  than the limit is asked what it is doing. If it does not answer either, C code holds Python's
  lock. In both cases the process is killed.
- The worker pool or the workload source is gone. Hosts and cell are restarted, these are not.

Without two processes of Ray's a run cannot go on: this machine's node and the head node. If one of
them is gone, Ray ends this process sooner or later without a message. A run checks them itself
(RayLiveness), so that it can end before that and write its measurements.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parsync.metrics.live_line import Snapshot
from parsync.runtime.live.calls import Unavailable
from parsync.runtime.live.plan import ActorStatus
from parsync.runtime.live.ray_glue.actors import answer, kill

SILENT_US = 3_000_000
ANSWER_S = 5.0  # of an actor that is silent
GRACE_S = 60.0  # for a host that was killed to come back and answer
LOOK_S = 1.0  # between two looks for Ray's processes
CONNECT_S = 0.5
HEAD_S = 10.0  # Ray gives up on its head node after 60 s

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The status of a run.

    Attributes:
        at_us: Run time.
        snapshot: Joined from the actors' last ones; None before the first.
        waiting: Tasks that are not placed yet, -1 while unknown.
        quiet: Every task was submitted, and placed or given up.
        silent: Actors that have not reported for SILENT_US.
        errors: The actors' errors, each with the actor's name.
        epochs: By actor: how many it has had so far.
        broken: Schedulers that broke their contract, and how.
    """

    at_us: int
    snapshot: Snapshot | None
    waiting: int
    quiet: bool
    silent: tuple[str, ...]
    errors: tuple[str, ...]
    epochs: Mapping[str, int]
    broken: tuple[str, ...] = ()


class StatusMonitor:
    """Gathers the actors' reports.

    Args:
        hosts: Names of the scheduler hosts, by id.
        source: The workload source's name.
        others: Names of the other actors that report.
    """

    def __init__(self, hosts: Mapping[int, str], source: str, others: tuple[str, ...]) -> None:
        self._hosts = dict(hosts)
        self._source = source
        self._names = (*hosts.values(), source, *others)
        self._reports: dict[str, ActorStatus] = {}
        self._settled_us: int | None = None
        self._epochs: dict[str, set[int]] = {name: set() for name in self._names}

    def report(self, name: str, report: ActorStatus) -> None:
        """Take an actor's report.

        Reports of an earlier epoch are ignored: its node was cut off and is back.
        """
        known = self._reports.get(name)
        if known is not None and report.epoch < known.epoch:
            return
        self._reports[name] = report
        self._epochs[name].add(report.epoch)
        if name == self._source:
            if not report.settled:
                self._settled_us = None
            elif self._settled_us is None:
                self._settled_us = report.at_us

    def run_status(self, now_us: int) -> RunStatus:
        """The status at now_us."""
        reports = self._reports
        source = reports.get(self._source)
        known = source is not None and all(name in reports for name in self._hosts.values())
        waiting = -1
        quiet = False
        if known:
            assert source is not None
            hosts = {host: reports[name] for host, name in self._hosts.items()}
            waiting = source.queued + sum(report.queued for report in hosts.values())
            settled_us = self._settled_us
            quiet = (
                settled_us is not None
                and waiting == 0
                and all(report.at_us > settled_us and report.settled for report in hosts.values())
                and all(
                    source.host_epochs.get(host) == report.epoch for host, report in hosts.items()
                )
            )
        snapshots = [report.snapshot for report in reports.values() if report.snapshot is not None]
        return RunStatus(
            now_us,
            Snapshot.join(snapshots) if snapshots else None,
            waiting,
            quiet,
            tuple(
                name
                for name in self._names
                if now_us - (reports[name].at_us if name in reports else 0) > SILENT_US
            ),
            tuple(f"{name}: {report.error}" for name, report in reports.items() if report.error),
            {name: len(epochs) for name, epochs in self._epochs.items()},
            tuple(report.broken for report in reports.values() if report.broken),
        )


class SilentActors:
    """Finds out why actors are silent. Kills hosts whose scheduler's call takes too long.

    Args:
        hosts: The scheduler hosts, by name.
        schedulers: The names of each host's schedulers.
        needed: The other actors without which the run cannot go on, by name. A cell that is away
            keeps their loops waiting, not them.
        limit_s: Of a scheduler's call.
        clock_s: A monotonic clock.
    """

    def __init__(
        self,
        hosts: Mapping[str, Any],
        schedulers: Mapping[str, Sequence[str]],
        needed: Mapping[str, Any],
        limit_s: float,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hosts = dict(hosts)
        self._schedulers = dict(schedulers)
        self._needed = dict(needed)
        self._limit_s = limit_s
        self._clock_s = clock_s
        self._silent_since_s: dict[str, float] = {}
        self._ended: set[str] = set()
        # which call, in which round, holds each host up at the run's end; None until that
        self._calls: dict[str, str | None] | None = None

    def overdue(self, silent: Sequence[str]) -> tuple[str, ...]:
        """Kill those of the silent actors whose schedulers' calls take too long. Returns a line for
        each call."""
        now_s = self._clock_s()
        self._silent_since_s = {
            name: self._silent_since_s.get(name, now_s - SILENT_US / 1e6)
            for name in silent
            if name in self._hosts
        }
        calls = []
        for name, since_s in self._silent_since_s.items():
            if now_s - since_s >= self._limit_s:
                call = self._call_under_way(name, now_s - since_s)
                if call is not None:
                    calls.append(call)
                    self._ended.add(name)
                    kill(self._hosts[name])
        return tuple(calls)

    def held_up(self) -> bool:
        """Whether a call of a scheduler that was under way when this was asked first still is."""
        asked = self._hosts if self._calls is None else self._calls
        now = {}
        for name in asked:
            with contextlib.suppress(Unavailable):
                now[name] = answer(self._hosts[name].overdue.remote(0.0), ANSWER_S)
        before = now if self._calls is None else self._calls
        self._calls = {
            name: call for name, call in now.items() if call is not None and call == before[name]
        }
        return bool(self._calls)

    def was_ended(self, name: str) -> bool:
        """Whether overdue() ended this host: it hands over nothing."""
        return name in self._ended

    def lost(self, silent: Sequence[str]) -> str | None:
        """The first of the silent actors that are needed and do not answer; None if all do."""
        for name, actor in self._needed.items():
            if name in silent:
                try:
                    answer(actor.ready.remote())
                except Unavailable:
                    return name
        return None

    def _call_under_way(self, name: str, silent_s: float) -> str | None:
        try:
            call: str | None = answer(self._hosts[name].overdue.remote(self._limit_s), ANSWER_S)
        except Unavailable:
            if silent_s < self._limit_s + GRACE_S:
                return None
            schedulers = ", ".join(self._schedulers[name])
            return (
                f"{name}: a call of one of its schedulers ({schedulers}) has "
                f"not returned after {silent_s:.0f} s, and lets no other code of its process run"
            )
        return call


class RayLiveness:
    """Whether the two Ray processes still run that this process needs.

    Args:
        home: Where this machine's node listens.
        head: Where the head node listens.
        now_s: A clock.
    """

    def __init__(
        self, home: Address, head: Address, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._home = home
        self._head = head
        self._now_s = now_s
        self._looked_s = self._head_seen_s = now_s()

    def home_is_gone(self) -> bool:
        """Whether this machine's node has ended. Nothing may be asked of Ray then."""
        try:
            socket.create_connection(self._home, timeout=CONNECT_S).close()
        except ConnectionRefusedError:
            return True
        except OSError:  # nothing that proves it
            pass
        return False

    def head_answers(self) -> bool:
        """Whether the head node takes a connection now."""
        try:
            socket.create_connection(self._head, timeout=CONNECT_S).close()
        except OSError:
            return False
        self._head_seen_s = self._now_s()
        return True

    def head_is_gone(self) -> bool:
        """Whether the head node has not answered for HEAD_S. Actors can still be called then."""
        return not self.head_answers() and self._now_s() - self._head_seen_s >= HEAD_S

    def due(self) -> bool:
        """Whether it is time to look again: True once per LOOK_S."""
        if self._now_s() - self._looked_s < LOOK_S:
            return False
        self._looked_s = self._now_s()
        return True
