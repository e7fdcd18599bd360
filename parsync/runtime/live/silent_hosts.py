"""Scheduler hosts that do not report, because a call of one of their schedulers does not return.

The loop of a host makes the calls and sends the reports; another thread of the process answers
calls. So a host that has not reported for longer than the limit is asked what it is doing. If it
does not answer either, C code holds Python's lock. In both cases the process is killed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

from parsync.runtime.live.liveness import SILENT_US
from parsync.runtime.live.ray_glue.actors import answer
from parsync.runtime.live.steps import Unavailable

GRACE_S = 60.0  # for a host that was killed to come back and answer
ANSWER_S = 5.0


class SilentHosts:
    """Finds hosts whose scheduler's call takes too long, and kills them.

    Args:
        hosts: The actors, by name.
        schedulers: The names of each host's schedulers.
        limit_s: Of a scheduler's call.
        clock_s: A monotonic clock.
    """

    def __init__(
        self,
        hosts: Mapping[str, Any],
        schedulers: Mapping[str, Sequence[str]],
        limit_s: float,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hosts = dict(hosts)
        self._schedulers = dict(schedulers)
        self._limit_s = limit_s
        self._clock_s = clock_s
        self._silent_since_s: dict[str, float] = {}
        self._ended: list[Any] = []
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
                    self._end(self._hosts[name])
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

    def was_ended(self, actor: Any) -> bool:
        """Whether overdue() ended it: it hands over nothing."""
        return any(ended is actor for ended in self._ended)

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

    def _end(self, actor: Any) -> None:
        self._ended.append(actor)
        with contextlib.suppress(RayError):
            ray.kill(actor, no_restart=True)
