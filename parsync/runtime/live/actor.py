"""What the actors of a run have in common.

Actors are plain classes, which Ray makes actors of (ray_glue/actors.py). They find each other by
name. They are built from the run's RunInputs, whose handle the coordinator keeps, so that killed
actors can be built again.
"""

from __future__ import annotations

import atexit
import gc
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import numpy as np

from parsync.runtime.live.calls import ActorFailed, Unavailable, Waker
from parsync.runtime.live.logs import HandledLog, Recorder, epoch_log, handled_log
from parsync.runtime.live.loop import ActorRuntime, LiveClock, LoopThread, last_step, run_loop
from parsync.runtime.live.meters import LoadMeter
from parsync.runtime.live.plan import (
    CELL,
    COORDINATOR_NAME,
    ActorStatus,
    Finished,
    RunInputs,
    RunPlan,
    actor_title,
)
from parsync.runtime.live.ray_glue.actors import CellPort, Reporter, member, shared_by
from parsync.runtime.live.steps import ActorLost, BackgroundSteps, Replaced, StepClient, Steps
from schedulers.interface import ContractBroken
from shared_state.errors import AgoraError

STATUS_US = 2_000_000  # between two lines in an actor's log
REPORT_US = 500_000
# when there is nothing left to do, everyone waits for the reports that say so
DRAIN_REPORT_US = 100_000
JOIN_S = 15.0


class StatusLine:
    """The line that shows people which actor it is, and what it is doing.

    Ray asks an actor for its `repr` once, when it is made, and always shows that: it says who the
    actor is. What it is doing is the answer of its method `status`, and the last line of its log,
    which the dashboard's Actors page shows.
    """

    def __init__(self, name: str, arm: str) -> None:
        self._title = actor_title(name, arm)
        self._next_us = 0

    def __str__(self) -> str:
        return self._title

    def status(self, now_us: int, finished: bool, doing: str) -> str:
        """The status in one line.

        Args:
            now_us: Run time, negative before the run begins.
        """
        at = f"{now_us / 1e6:.1f} s into the run" if now_us >= 0 else "before the run"
        return f"{self._title}, {'finished' if finished else at}: {doing}"

    def log(self, now_us: int, status: str) -> None:
        """Print the status, unless the last line is fresh."""
        if now_us >= self._next_us:
            self._next_us = now_us + STATUS_US
            print(status, flush=True)


def leave_out_of_collections() -> None:
    """Leave every object that exists now out of future garbage collections.

    Called once a process is built. A full collection looks at all objects, most of which belong to
    imported modules and stay as long as the process: it would hold up the loop for tens of
    milliseconds.
    """
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # at its end a process frees them all


def run_inputs(plan: RunPlan) -> RunInputs:
    """What an actor of the run is built from; it ends for good if the run is over."""
    inputs: RunInputs = shared_by(member(plan.namespace, COORDINATOR_NAME))
    return inputs


def error_line(error: BaseException) -> str:
    """The message of an error, in one line. A bug is named by its type, too."""
    return str(error) if isinstance(error, AgoraError) else f"{type(error).__name__}: {error}"


Asked = ParamSpec("Asked")
AnActor = TypeVar("AnActor")


def once(
    finish: Callable[Concatenate[AnActor, Asked], Finished],
) -> Callable[Concatenate[AnActor, Asked], Finished]:
    """Make an actor's `finish` idempotent: a second call, after an answer that was lost, returns
    the same."""

    @wraps(finish)
    def finish_once(actor: Any, *args: Asked.args, **kwargs: Asked.kwargs) -> Finished:
        if "_handed_over" not in vars(actor):
            actor._handed_over = finish(actor, *args, **kwargs)
        handed_over: Finished = actor._handed_over
        return handed_over

    return cast("Callable[Concatenate[AnActor, Asked], Finished]", finish_once)


class Actor(ABC):
    """The base class of the actors around the cell: scheduler hosts, worker pool, workload source.

    An actor has a name, a clock whose time 0 the cell knows, a log, a thread that runs its loop,
    measurements, and reports to the coordinator. Ray's thread takes calls meanwhile.

    Args:
        name: Unique in the run.
        host: Its id in steps and measurements: of a scheduler host its number, else the address of
            its participant.
        plan: Of the run.
        inputs: What it is built from.
        agent_names: Of the agents that it hosts, by address.
        keeps_records: Whether its measurements are also logged, because it is restarted after a
            crash.
    """

    _runtime: ActorRuntime

    def __init__(
        self,
        name: str,
        host: int,
        plan: RunPlan,
        inputs: RunInputs,
        agent_names: Mapping[int, str] = MappingProxyType({}),
        keeps_records: bool = False,
    ) -> None:
        self.name = name
        self._status_line = StatusLine(name, plan.arm)
        self._finished = False
        self.epoch = time.time_ns() // 1000  # greater after each restart
        self._clock = LiveClock()
        assembly, directory = inputs.assembly, Path(plan.journal_dir)
        log = handled_log(directory, name, self.epoch)
        self._log = HandledLog(assembly.codec, log, assembly.tables)
        self._cell = CellPort(member(plan.namespace, CELL))
        coordinator = member(plan.namespace, COORDINATOR_NAME)
        self._reporter = Reporter(coordinator, name, plan.arm, agent_names)
        records = epoch_log(directory, name, self.epoch) if keeps_records else None
        self._recorder = Recorder(plan, name, inputs.make_metrics(), records)
        self._load = LoadMeter(host, self._recorder)
        self._steps = StepClient(assembly.codec, host, self.epoch, self._cell.step)
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

    def _close(self, error: str | None) -> Finished:
        """Close what the actor writes, and return what every actor hands over.

        Args:
            error: Why its loop ended early; None if it did not.
        """
        self._recorder.close()
        self._log.close()
        self._finished = True
        print(self.status(), flush=True)
        round_trip_us = np.array(self._steps.round_trip_us, np.int64)
        return Finished(self._recorder.metrics, round_trip_us, self._steps.repeats, 0, error)
