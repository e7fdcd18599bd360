"""The cell as an actor."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np

from parsync.core.addresses import MASTER
from parsync.runtime.live.calls import CallListener, Endpoint, listen
from parsync.runtime.live.cell import CellRuntime, CellService, hosts_of
from parsync.runtime.live.checkpoint import Checkpoints
from parsync.runtime.live.hosts import (
    REPORT_US,
    StatusLine,
    leave_out_of_collections,
    once,
    run_inputs,
)
from parsync.runtime.live.logs import CELL_LOG, Recorder, records_log
from parsync.runtime.live.loop import LiveClock
from parsync.runtime.live.meters import LoadMeter
from parsync.runtime.live.plan import (
    CELL,
    COORDINATOR_NAME,
    ActorStatus,
    DueEnds,
    Finished,
    RunPlan,
)
from parsync.runtime.live.ray_glue.actors import Reporter, member, node_ip
from shared_state.errors import AgoraError


class CellHost:
    """Hosts the participants beside the cell.

    Steps come over connections of their own, one thread for each, and by calls of Ray. They are
    carried out one at a time.

    A killed cell comes back with everything that it had acknowledged, from its newest checkpoint
    and its log.
    """

    def __init__(self, plan: RunPlan) -> None:
        inputs = run_inputs(plan)
        assembly = inputs.assembly
        self._clock = LiveClock()
        self._lock = threading.Lock()
        self._listener: CallListener | None = None
        journal = Path(plan.journal_dir) / CELL_LOG
        records = records_log(journal.parent, CELL)
        self._checkpoints = Checkpoints(journal, records, plan.checkpoint_bytes, plan.fsync)
        self._recorder = Recorder(
            plan, CELL, inputs.make_metrics(), records, self._checkpoints.records_end
        )
        self._load = LoadMeter(MASTER, self._recorder)
        self._reporter = Reporter(member(plan.namespace, COORDINATOR_NAME), CELL, plan.arm, {})
        self._status_line = StatusLine(CELL, plan.arm)
        self._finished = False
        self._last_report_us = LiveClock.BEFORE_US
        agents_of = {host.host: host.agents for host in plan.hosts}
        self._hosts = tuple((host.host, host.name, host.agents) for host in plan.hosts)
        tasks = len(assembly.workload.tasks)
        runtime = CellRuntime(
            assembly.codec,
            assembly.master(),
            hosts_of(agents_of),
            tasks,
            self._recorder,
            assembly.cell_side,
            assembly.tables,
            assembly.parts,
        )
        self._service = CellService(
            runtime, journal, plan.fsync, self._checkpoints, self._recorder.mark
        )
        if self._service.origin_ns is not None:
            self._clock.begin(self._service.origin_ns)
            self._service.begin_epoch(self._clock.now_us())
        leave_out_of_collections()

    def __repr__(self) -> str:
        return str(self._status_line)

    def status(self) -> str:
        """What the actor is doing, in one line."""
        service = self._service
        master, steps = service.runtime.master, service.runtime.steps
        doing = f"{master.running:,} tasks running, {steps:,} steps handled"
        if service.recovered_steps:
            doing += f" ({service.recovered_steps:,} before it was restarted)"
        return self._status_line.status(self._clock.now_us(), self._finished, doing)

    def ready(self) -> int:
        """The process id, once the actor is built."""
        return os.getpid()

    def start(self, origin_ns: int) -> int:
        """Start the participants and the clock, unless that was done: a call may be repeated.

        Args:
            origin_ns: The wall-clock time of the run's time 0.

        Returns:
            That time, as it was first.
        """
        with self._lock:
            if self._service.origin_ns is None:
                self._clock.begin(origin_ns)
                self._service.start(origin_ns, self._hosts)
            assert self._service.origin_ns is not None
            return self._service.origin_ns

    def origin_ns(self) -> int | None:
        """The wall-clock time of the run's time 0; None before start()."""
        return self._service.origin_ns

    def endpoint(self) -> Endpoint | None:
        """Where the cell takes steps without Ray; None if it cannot."""
        if self._listener is None:
            self._listener = listen(node_ip(), self.step)
        return None if self._listener is None else self._listener.endpoint

    def step(self, request: bytes) -> bytes:
        """Carry out a host's step, exactly once."""
        with self._lock:
            return self._step(request)

    def _step(self, request: bytes) -> bytes:
        if self._finished:
            raise AgoraError("the run is over")
        now_us = self._clock.now_us()
        reply = self._service.step(request, now_us)
        over_us = self._clock.now_us()
        self._load.step(over_us - now_us)
        self._load.unhandled(self._service.runtime.waiting)
        self._load.sample(over_us)
        if now_us - self._last_report_us >= REPORT_US:
            self._last_report_us = now_us
            epoch = self._service.runtime.epoch
            self._reporter(ActorStatus(now_us, epoch, 0, True, self._recorder.snapshot(now_us, ())))
            self._status_line.log(now_us, self.status())
        return reply

    def never_placed(self) -> tuple[int, bytes]:
        """The tasks that hold no place and never held one, as (number of tasks, packed bits)."""
        with self._lock:
            mask = self._service.runtime.never_placed()
        return len(mask), np.packbits(mask).tobytes()

    @once
    def finish(self, due_ends: DueEnds | None) -> Finished:
        """Hand over what the figures need; no step may follow.

        Args:
            due_ends: What the worker pool's actor handed over.
        """
        with self._lock:
            return self._finish(due_ends)

    def _finish(self, due_ends: DueEnds | None) -> Finished:
        if self._listener is not None:
            self._listener.close()
        if due_ends is not None:
            self._service.runtime.master.record_due_ends(due_ends.allocation, due_ends.end_us)
        for record in self._service.runtime.master.finish(self._clock.now_us()):
            self._recorder(record)
        self._service.close()
        self._recorder.close()
        self._finished = True
        print(self.status(), flush=True)
        return Finished(
            self._recorder.metrics,
            np.zeros(0, np.int64),
            0,
            self._service.recovered_steps,
            None,
            replayed=self._service.replayed_steps,
            notes=tuple(self._checkpoints.problems),
        )
