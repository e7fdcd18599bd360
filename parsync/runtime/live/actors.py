"""The actors around the cell: scheduler hosts, worker pool, workload source. Plain classes around
the loops, turned into Ray actors by cluster.py.

cell_host.py and coordinator_host.py have the two others. The coordinator keeps the handle of the
run's RunInputs (see cluster.share), from which actors are built, killed ones again. Actors find
each other by name.
"""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from parsync.core.addresses import ARRIVALS, WORKERS
from parsync.core.agent import Agent
from parsync.core.codec import Codec
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.participant import Participant
from parsync.runtime.live.actor_runtime import ActorRuntime
from parsync.runtime.live.clock import LiveClock
from parsync.runtime.live.cluster import member, shared_by
from parsync.runtime.live.finished import DueEnds, Finished, once
from parsync.runtime.live.handled_log import HandledLog, handled_log
from parsync.runtime.live.loop import HostLoop, LoopThread, Ticks, last_step, run_loop
from parsync.runtime.live.monitor import ActorStatus
from parsync.runtime.live.plan import (
    CELL,
    COORDINATOR_NAME,
    SOURCE,
    WORKER_POOL,
    HostPlan,
    RunInputs,
    RunPlan,
)
from parsync.runtime.live.ports import CellPort, RayHostClient, Reporter
from parsync.runtime.live.recorder import Recorder, epoch_log
from parsync.runtime.live.status import StatusLine
from parsync.runtime.live.step_wait import StepWaitRecorder
from parsync.runtime.live.steps import ActorFailed, ActorLost, Replaced, StepClient, Unavailable
from parsync.runtime.live.submissions import SubmissionReceiver, SubmissionSender, SubmittingSteps
from schedulers.interface import ContractBroken
from shared_state.errors import AgoraError

REPORT_US = 500_000
# when there is nothing left to do, everyone waits for the reports that say so
DRAIN_REPORT_US = 100_000
WAKE_US = 1_000
JOIN_S = 15.0


def error_line(error: BaseException) -> str:
    """One line; a bug is named by its type, too."""
    return str(error) if isinstance(error, AgoraError) else f"{type(error).__name__}: {error}"


class Actor(ABC):
    """What all actors have in common: a name, a clock that the cell sets, a log, a loop in a thread
    and reports once in a while.

    An actor's own thread runs the loop; Ray's thread takes messages and questions.
    """

    def __init__(self, name: str, plan: RunPlan, codec: Codec, agent_names: dict[int, str]) -> None:
        self.name = name
        self._status_line = StatusLine(name, plan.arm)
        self._finished = False
        self.epoch = time.time_ns() // 1000  # grows from one to the next
        self._clock = LiveClock()
        self._log = HandledLog(codec, handled_log(Path(plan.journal_dir), name, self.epoch))
        self._cell = CellPort(member(plan.namespace, CELL))
        coordinator = member(plan.namespace, COORDINATOR_NAME)
        self._reporter = Reporter(coordinator, name, plan.arm, agent_names)
        self._end_us = plan.end_us
        self._last_report_us = LiveClock.BEFORE_US
        self._thread: LoopThread | None = None
        self._loop_ended = True  # once it was asked to

    def __repr__(self) -> str:
        return str(self._status_line)

    def status(self) -> str:
        """What it is doing, in one line."""
        return self._status_line.status(self._clock.now_us(), self._finished, self._doing())

    def ready(self) -> int:
        """The process id, once the actor is built."""
        return os.getpid()

    def _begin(self) -> None:
        self._thread = LoopThread(self.name, self._live)

    def _live(self, stopping: threading.Event, wake: threading.Event) -> None:
        try:
            self._await_origin(stopping)
            run_loop(self._start_loop(), stopping, wake)
        except Replaced:  # on a node that was cut off and is back: the run goes on without it
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

    @abstractmethod
    def _start_loop(self) -> Callable[[], int]:
        """Begin; what the loop is to call again and again."""

    @abstractmethod
    def _doing(self) -> str:
        """For people; may be asked in any thread."""

    @abstractmethod
    def _report(self, error: str | None = None) -> ActorStatus:
        """What the coordinator is told now and then."""

    def _tick(self, now_us: int) -> None:
        self._log.flush()
        if now_us - self._last_report_us >= (
            REPORT_US if now_us < self._end_us else DRAIN_REPORT_US
        ):
            self._last_report_us = now_us
            self._reporter(self._report())
            self._status_line.log(now_us, self.status())

    def _end(self) -> None:
        """Everything is handed over."""
        self._log.close()
        self._finished = True
        print(self.status(), flush=True)

    def _stop(self) -> str | None:
        """End the loop; why it had ended early, if it had."""
        if self._thread is None:
            return None
        self._loop_ended = self._thread.stop(JOIN_S)
        error = self._thread.error
        return None if error is None else error_line(error)


class Stepper(Actor):
    """An actor that steps at every tick."""

    _runtime: ActorRuntime
    _steps: StepClient

    def _last_step(self) -> str | None:
        """Collect what the cell still has for this host; what went wrong, if anything."""
        try:
            last_step(self._runtime, self._steps)
        except (ActorFailed, ActorLost) as error:
            return str(error)
        return None


class SchedulerHost(Stepper):
    """Hosts several scheduler agents: one step to the cell per tick for all of them."""

    def __init__(self, plan: RunPlan, host: HostPlan) -> None:
        inputs: RunInputs = shared_by(member(plan.namespace, COORDINATOR_NAME))
        assembly = inputs.assembly
        names = {agent: assembly.arm.agent_name(agent) for agent in host.agents}
        super().__init__(host.name, plan, assembly.codec, names)
        self._names = tuple(names.values())
        self._host = host
        log = epoch_log(Path(plan.journal_dir), host.name, self.epoch)
        self._recorder = Recorder(plan, host.name, inputs.make_metrics(), log)
        self._agents: dict[int, Agent] = {}
        self._refusal: AgoraError | None = None
        try:
            self._agents = {agent: assembly.agent(agent) for agent in host.agents}
        except AgoraError as error:  # raised here, Ray would tell it with a traceback
            self._refusal = error
        participants: dict[int, Participant] = dict(self._agents)
        self._waits = StepWaitRecorder(assembly.workload.tasks.submit_us)
        self._runtime = ActorRuntime(
            participants,
            self._agents,
            assembly.addresses,
            self._clock,
            self._recorder,
            self._handled,
        )
        self._receiver = SubmissionReceiver(self.epoch)
        self._steps = StepClient(assembly.codec, host.host, self.epoch, self._cell.step)
        self._ticks = Ticks(plan.tick_us, host.phase_us)
        self._spacing_us = plan.spacing_us
        if self._refusal is None:
            self._begin()

    def ready(self) -> int:
        """As Actor.ready. Raises the AgoraError for which a scheduler could not be made."""
        if self._refusal is not None:
            raise self._refusal
        return super().ready()

    def __repr__(self) -> str:
        return f"{self._status_line}: {', '.join(self._names)}"

    def deliver(self, epoch: int, number: int, payload: bytes) -> tuple[int, bool]:
        """A push of submissions: (this epoch, whether it was meant for it)."""
        answer, messages = self._receiver.take(epoch, number, payload)
        for agent, event in messages:
            self._runtime.deliver(agent, event)
        if messages and self._thread is not None:
            self._thread.wake.set()
        return answer.epoch, answer.taken

    def overdue(self, limit_s: float) -> str | None:
        """Which scheduler's call is under way, told as one that takes longer than limit_s; None if
        none is. The asker knows that the loop makes no progress."""
        for agent in self._agents.values():
            error = agent.overdue(limit_s)
            if error is not None:
                return str(error)
        return None

    @once
    def finish(self) -> Finished:
        """End the loop and hand over."""
        error = self._stop()
        notes: tuple[str, ...] = ()
        if not self._loop_ended:  # it has the step to itself
            call = self.overdue(JOIN_S) or f"{self.name}: its loop has not ended"
            notes = (f"{call}: the run ended meanwhile",)
        elif error is None:
            error = self._last_step()
        self._runtime.finish()
        self._reporter(self._report(error))
        self._recorder.close()
        self._end()
        round_trip_us = np.array(self._steps.round_trip_us, np.int64)
        return Finished(
            self._recorder.metrics,
            round_trip_us,
            self._steps.repeats,
            0,
            error,
            notes=notes,
            waited=self._waits.waited,
            broken=self._thread is not None and isinstance(self._thread.error, ContractBroken),
        )

    def _start_loop(self) -> Callable[[], int]:
        self._runtime.start()
        steps, spacing_us = self._steps, self._spacing_us
        return HostLoop(
            self._runtime,
            steps,
            self._clock,
            self._ticks,
            WAKE_US,
            spacing_us,
            self._tick,
            self._waits.stepped,
        ).run_once

    def _handled(self, address: int, at_us: int, event: Event, effects: list[Effect]) -> None:
        self._log.handled(address, at_us, event, effects)
        self._waits.handled(at_us, event, effects)

    def _tick(self, now_us: int) -> None:
        self._recorder.flush()
        super()._tick(now_us)

    def _doing(self) -> str:
        agents = self._agents.values()
        if not self._finished:
            return "; ".join(agent.doing for agent in agents)
        count, own = self._recorder.metrics.count, list(self._agents)
        committed, claims = (int(count[name][own].sum()) for name in ("committed", "claims"))
        queued = sum(agent.queued for agent in agents)
        return f"{committed:,} tasks committed with {claims:,} claims, {queued:,} left queued"

    def _report(self, error: str | None = None) -> ActorStatus:
        now_us = self._clock.now_us()
        queued = sum(agent.queued for agent in self._agents.values())
        snapshot = self._recorder.snapshot(now_us, self._host.agents)
        return ActorStatus(now_us, self.epoch, queued, queued == 0, snapshot, error)


class WorkerHost(Stepper):
    """Hosts the worker pool; its timers are looked at once per tick."""

    def __init__(self, plan: RunPlan) -> None:
        inputs: RunInputs = shared_by(member(plan.namespace, COORDINATOR_NAME))
        assembly = inputs.assembly
        super().__init__(WORKER_POOL, plan, assembly.codec, {})
        self._recorder = Recorder(plan, self.name, inputs.make_metrics())
        self._workers = assembly.workers()
        self._runtime = ActorRuntime(
            {WORKERS: self._workers},
            {},
            assembly.addresses,
            self._clock,
            self._recorder,
            self._log.handled,
        )
        self._steps = StepClient(assembly.codec, WORKERS, self.epoch, self._cell.step)
        self._ticks = Ticks(plan.tick_us, plan.workers_phase_us)
        self._tick_us = plan.tick_us
        self._begin()

    @once
    def finish(self) -> Finished:
        """End the loop and hand over."""
        error = self._stop() or self._last_step()
        self._recorder.close()
        self._end()
        end_us, allocation, _ = self._workers.due_ends()
        round_trip_us = np.array(self._steps.round_trip_us, np.int64)
        due_ends = DueEnds(allocation, end_us) if error is None else None
        return Finished(
            self._recorder.metrics, round_trip_us, self._steps.repeats, 0, error, due_ends
        )

    def _start_loop(self) -> Callable[[], int]:
        self._runtime.start()
        return HostLoop(
            self._runtime,
            self._steps,
            self._clock,
            self._ticks,
            self._tick_us,
            self._tick_us,
            self._tick,
        ).run_once

    def _doing(self) -> str:
        return f"{self._workers.pending_ends:,} tasks running"

    def _report(self, error: str | None = None) -> ActorStatus:
        return ActorStatus(
            self._clock.now_us(), self.epoch, 0, self._workers.pending_ends == 0, None, error
        )


class WorkloadSource(Actor):
    """Hosts the arrivals: pushes submissions to the scheduler hosts once per tick."""

    def __init__(self, plan: RunPlan) -> None:
        inputs: RunInputs = shared_by(member(plan.namespace, COORDINATOR_NAME))
        assembly = inputs.assembly
        super().__init__(SOURCE, plan, assembly.codec, {})
        self._plan = plan
        self._recorder = Recorder(plan, self.name, inputs.make_metrics())
        self._arrivals = assembly.arrivals()
        self._runtime = ActorRuntime(
            {ARRIVALS: self._arrivals},
            {},
            assembly.addresses,
            self._clock,
            self._recorder,
            self._log.handled,
        )
        self._steps = StepClient(assembly.codec, ARRIVALS, self.epoch, self._cell.step)
        self._senders = {
            host.host: SubmissionSender(
                RayHostClient(member(plan.namespace, host.name)), self._cell.never_placed
            )
            for host in plan.hosts
        }
        self._begin()

    @once
    def finish(self) -> Finished:
        """End the loop and hand over."""
        error = self._stop()
        self._runtime.finish()
        self._recorder.close()
        self._end()
        resubmitted = sum(sender.resubmitted for sender in self._senders.values())
        round_trip_us = np.array(self._steps.round_trip_us, np.int64)
        return Finished(
            self._recorder.metrics, round_trip_us, self._steps.repeats, resubmitted, error
        )

    def _start_loop(self) -> Callable[[], int]:
        self._runtime.start()
        tick_us = self._plan.tick_us
        return HostLoop(
            self._runtime,
            SubmittingSteps(self._steps, self._senders, self._plan.host_of),
            self._clock,
            Ticks(tick_us, self._plan.source_phase_us),
            tick_us,
            tick_us,
            self._poll_senders,
        ).run_once

    def _doing(self) -> str:
        waiting = sum(sender.waiting for sender in self._senders.values())
        resubmitted = sum(sender.resubmitted for sender in self._senders.values())
        again = f", {resubmitted:,} again to restarted hosts" if resubmitted else ""
        submitted = f"{self._arrivals.submitted:,} tasks submitted{again}"
        return f"{submitted}, {waiting:,} not taken by their host yet"

    def _poll_senders(self, now_us: int) -> None:
        for sender in self._senders.values():
            sender.poll(now_us)
        self._tick(now_us)

    def _report(self, error: str | None = None) -> ActorStatus:
        senders = self._senders
        settled = self._arrivals.exhausted and all(sender.idle for sender in senders.values())
        waiting = sum(sender.waiting for sender in senders.values())
        epochs = {host: sender.epoch for host, sender in senders.items()}
        return ActorStatus(self._clock.now_us(), self.epoch, waiting, settled, None, error, epochs)
