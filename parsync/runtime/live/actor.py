"""What the actors around the cell have in common (actors.py)."""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from parsync.runtime.assembly import Assembly
from parsync.runtime.live.actor_runtime import ActorRuntime
from parsync.runtime.live.background_steps import BackgroundSteps
from parsync.runtime.live.clock import LiveClock
from parsync.runtime.live.garbage import leave_out_of_collections
from parsync.runtime.live.handled_log import HandledLog, handled_log
from parsync.runtime.live.liveness import ActorStatus
from parsync.runtime.live.loop import LoopThread, last_step, run_loop
from parsync.runtime.live.meters import LoadMeter
from parsync.runtime.live.plan import (
    CELL,
    COORDINATOR_NAME,
    RunPlan,
)
from parsync.runtime.live.ray_glue.actors import CellPort, Reporter
from parsync.runtime.live.ray_glue.cluster import member
from parsync.runtime.live.status import StatusLine
from parsync.runtime.live.steps import (
    ActorFailed,
    ActorLost,
    Replaced,
    StepClient,
    Steps,
    Unavailable,
)
from parsync.runtime.live.waker import Waker
from schedulers.interface import ContractBroken
from shared_state.errors import AgoraError

REPORT_US = 500_000
# when there is nothing left to do, everyone waits for the reports that say so
DRAIN_REPORT_US = 100_000
JOIN_S = 15.0


def error_line(error: BaseException) -> str:
    """The message of an error, in one line. A bug is named by its type, too."""
    return str(error) if isinstance(error, AgoraError) else f"{type(error).__name__}: {error}"


class Actor(ABC):
    """The base class of actors with participants.

    An actor has a name, a clock whose time 0 the cell knows, a log, a thread that runs its loop,
    and reports to the coordinator. Ray's thread takes calls meanwhile.

    Args:
        name: Unique in the run.
        plan: Of the run.
        assembly: Of the arm.
        agent_names: Of the agents that it hosts, by address.
    """

    _runtime: ActorRuntime
    _steps: StepClient
    _load: LoadMeter

    def __init__(
        self, name: str, plan: RunPlan, assembly: Assembly, agent_names: dict[int, str]
    ) -> None:
        self.name = name
        self._status_line = StatusLine(name, plan.arm)
        self._finished = False
        self.epoch = time.time_ns() // 1000  # greater after each restart
        self._clock = LiveClock()
        log = handled_log(Path(plan.journal_dir), name, self.epoch)
        self._log = HandledLog(assembly.codec, log, assembly.tables)
        self._cell = CellPort(member(plan.namespace, CELL))
        coordinator = member(plan.namespace, COORDINATOR_NAME)
        self._reporter = Reporter(coordinator, name, plan.arm, agent_names)
        self._end_us = plan.end_us
        self._last_report_us = LiveClock.BEFORE_US
        self._thread: LoopThread | None = None
        self._background: BackgroundSteps | None = None
        self._loop_ended = True  # once it was asked to

    def __repr__(self) -> str:
        return str(self._status_line)

    def status(self) -> str:
        """What the actor is doing, in one line."""
        return self._status_line.status(self._clock.now_us(), self._finished, self._doing())

    def ready(self) -> int:
        """The process id, once the actor is built."""
        return os.getpid()

    def _begin(self) -> None:
        leave_out_of_collections()
        self._thread = LoopThread(self.name, self._live)

    def _live(self, stopping: threading.Event, wake: Waker) -> None:
        try:
            self._await_origin(stopping)
            self._background = BackgroundSteps(self._step_client(), self._cell.steps, wake)
            run_loop(self._start_loop(self._background), stopping, wake, self._load)
        except Replaced:  # its node was cut off and is back: another process has its place
            raise
        except ContractBroken as error:
            self._reporter(replace(self._report(), broken=str(error)))
        except Exception as error:
            self._reporter(self._report(error=error_line(error)))
            raise

    def _await_origin(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            try:
                origin_ns = self._cell.origin_ns()
            except Unavailable:
                origin_ns = None
            if origin_ns is not None:
                self._clock.begin(origin_ns)
                stopping.wait(max(0.0, -self._clock.now_us() / 1e6))
                return
            stopping.wait(0.05)

    def _step_client(self) -> StepClient:
        """What carries the actor's steps to the cell, and waits for their answers."""
        return self._steps

    @abstractmethod
    def _start_loop(self, steps: Steps) -> Callable[[], int]:
        """Start the participants. Returns what the loop calls again and again."""

    @abstractmethod
    def _doing(self) -> str:
        """What the actor is doing, for people. May be called in any thread."""

    @abstractmethod
    def _report(self, error: str | None = None) -> ActorStatus:
        """The report to the coordinator."""

    def _tick(self, now_us: int) -> None:
        self._log.flush()
        if now_us - self._last_report_us >= (
            REPORT_US if now_us < self._end_us else DRAIN_REPORT_US
        ):
            self._last_report_us = now_us
            self._reporter(self._report())
            self._status_line.log(now_us, self.status())

    def _end(self) -> None:
        """Close the log: the run is over."""
        self._log.close()
        self._finished = True
        print(self.status(), flush=True)

    def _stop(self) -> str | None:
        """End the loop. Returns why it had ended early; None if it had not."""
        if self._thread is None:
            return None
        self._loop_ended = self._thread.stop(JOIN_S)
        error = self._thread.error
        return None if error is None else error_line(error)

    def _last_step(self) -> str | None:
        """Step once more, for what the cell still has. Returns what went wrong; None if nothing
        did."""
        if self._background is None:  # the run had not begun
            return None
        try:
            last_step(self._runtime, self._background)
        except (ActorFailed, ActorLost, ContractBroken) as error:
            return str(error)
        return None
