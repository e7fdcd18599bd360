"""The coordinator as an actor: it follows the load phases and gathers the actors' reports."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from parsync.core.addresses import COORDINATOR
from parsync.runtime.live.actor import JOIN_S, StatusLine, error_line
from parsync.runtime.live.calls import Waker
from parsync.runtime.live.liveness import RunStatus, StatusMonitor
from parsync.runtime.live.logs import HandledLog, handled_log
from parsync.runtime.live.loop import (
    ActorRuntime,
    HostLoop,
    LiveClock,
    LoopThread,
    Ticks,
    ignore_record,
    run_loop,
)
from parsync.runtime.live.meters import LoadMeter
from parsync.runtime.live.plan import (
    CELL,
    COORDINATOR_NAME,
    SOURCE,
    WORKER_POOL,
    ActorStatus,
    RunInputs,
    RunPlan,
)
from parsync.runtime.live.ray_glue.actors import CellPort, member, share, shared
from parsync.runtime.live.steps import BackgroundSteps, StepClient, Steps
from schedulers.interface import ContractBroken


class CoordinatorHost:
    """Hosts the coordinator, which follows the load phases, and the status of the run.

    It also keeps what other actors are built from (kept()).
    """

    _cell: CellPort  # there is none before attach()

    def __init__(self, plan: RunPlan, inputs: RunInputs) -> None:
        self._handle = share(inputs)
        inputs = shared(self._handle)  # and nothing holds on to the argument, which is a copy
        self._status_line = StatusLine(COORDINATOR_NAME, plan.arm)
        self._over = False
        self._phases = len(inputs.assembly.workload.phases)
        self.epoch = time.time_ns() // 1000
        self._clock = LiveClock()
        self._coordinator = inputs.assembly.coordinator()
        self._monitor = StatusMonitor(
            {host.host: host.name for host in plan.hosts}, SOURCE, (CELL, WORKER_POOL)
        )
        self._log = HandledLog(
            inputs.assembly.codec,
            handled_log(Path(plan.journal_dir), COORDINATOR_NAME, self.epoch),
            inputs.assembly.tables,
        )
        self._runtime = ActorRuntime(
            {COORDINATOR: self._coordinator},
            {},
            inputs.assembly.addresses,
            self._clock,
            ignore_record,
            log=self._log,
        )
        self._load = LoadMeter(COORDINATOR, ignore_record)  # it is in nobody's way
        self._plan = plan
        self._codec = inputs.assembly.codec
        self._thread: LoopThread | None = None

    def __repr__(self) -> str:
        return str(self._status_line)

    def status(self) -> str:
        """What the actor is doing, in one line."""
        doing = f"load phase {self._coordinator.phase + 1} of {self._phases}"
        return self._status_line.status(self._clock.now_us(), self._over, doing)

    def ready(self) -> int:
        """The process id, once the actor is built."""
        return os.getpid()

    def kept(self) -> Any:
        """The handle of the run's RunInputs; None once the run is over.

        An actor that is killed after that must not be built again: it would write into the files of
        a finished run.
        """
        return None if self._over else self._handle

    def end(self) -> None:
        """Take note that the run is over. The actors may stay, to be asked for their status."""
        self._over = True

    def attach(self, origin_ns: int) -> None:
        """Start to follow the run.

        Args:
            origin_ns: The wall-clock time of the run's time 0.
        """
        self._cell = CellPort(member(self._plan.namespace, CELL))
        self._clock.begin(origin_ns)
        self._runtime.start()
        self._thread = LoopThread(COORDINATOR_NAME, self._live)

    def report(self, name: str, report: ActorStatus) -> None:
        """Take an actor's report."""
        self._monitor.report(name, report)

    def run_status(self) -> RunStatus:
        """The status of the run. An error of the coordinator's own loop is among the errors."""
        status = self._monitor.run_status(self._clock.now_us())
        error = self._error()
        if error is None:
            return status
        if self._thread is not None and isinstance(self._thread.error, ContractBroken):
            return replace(status, broken=(*status.broken, error))  # a step said whose it is
        return replace(status, errors=(*status.errors, error))

    def finish(self) -> str | None:
        """End the loop. Returns why it had ended early; None if it had not. The status of the run
        can still be asked for."""
        if self._thread is not None:
            self._thread.stop(JOIN_S)
        self._log.close()
        return self._error()

    def _error(self) -> str | None:
        error = None if self._thread is None else self._thread.error
        if isinstance(error, ContractBroken):  # it names whose it is
            return str(error)
        return None if error is None else f"{COORDINATOR_NAME}: {error_line(error)}"

    def _live(self, stopping: threading.Event, wake: Waker) -> None:
        steps = BackgroundSteps(self._step_client(), self._cell.steps, wake)
        run_loop(self._start_loop(steps), stopping, wake, self._load)

    def _step_client(self) -> StepClient:
        """As Actor._step_client."""
        return StepClient(self._codec, COORDINATOR, self.epoch, self._cell.step)

    def _start_loop(self, steps: Steps) -> Callable[[], int]:
        """As Actor._start_loop."""
        tick_us = self._plan.coordinator_tick_us
        return HostLoop(
            self._runtime,
            steps,
            self._clock,
            Ticks(tick_us, 0),
            tick_us,
            tick_us,
            self._flush,
            self._load,
        ).run_once

    def _flush(self, now_us: int) -> None:
        self._log.flush()
