"""The actors of a run around the cell: scheduler hosts, worker pool, workload source, coordinator.

Actors are plain classes, which Ray makes actors of (ray_glue/actors.py). They find each other by
name. They are built from the run's RunInputs, whose handle the coordinator keeps, so that killed
actors can be built again. The cell's own is in cell_host.py.
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

from parsync.core.addresses import ARRIVALS, COORDINATOR, WORKERS
from parsync.core.codec import decode, encode
from parsync.core.participant import Agent, Participant
from parsync.runtime.calibration import MeasuredTimes
from parsync.runtime.effect_interpreter import ignore
from parsync.runtime.live.calls import (
    ActorFailed,
    CallListener,
    Endpoint,
    Unavailable,
    Waker,
    listen,
)
from parsync.runtime.live.liveness import RunStatus, StatusMonitor
from parsync.runtime.live.logs import HandledLog, Recorder, epoch_log, handled_log
from parsync.runtime.live.loop import (
    WAKE_US,
    ActorRuntime,
    HostLoop,
    LiveClock,
    LoopThread,
    Ticks,
    last_step,
    run_loop,
)
from parsync.runtime.live.meters import LoadMeter, MeteredDecider, StepWaitRecorder
from parsync.runtime.live.plan import (
    CELL,
    COORDINATOR_NAME,
    SOURCE,
    WORKER_POOL,
    ActorStatus,
    DueEnds,
    Finished,
    HostPlan,
    RunInputs,
    RunPlan,
    actor_title,
)
from parsync.runtime.live.ray_glue.actors import (
    CellPort,
    HostPort,
    Reporter,
    member,
    node_ip,
    share,
    shared,
    shared_by,
)
from parsync.runtime.live.steps import ActorLost, BackgroundSteps, Replaced, StepClient, Steps
from parsync.runtime.live.submissions import SubmissionReceiver, SubmissionSender, SubmittingSteps
from schedulers.decision_clock import Measured
from schedulers.interface import ContractBroken
from shared_state.errors import AgoraError

STATUS_US = 2_000_000  # between two lines in an actor's log
REPORT_US = 500_000
# when there is nothing left to do, everyone waits for the reports that say so
DRAIN_REPORT_US = 100_000
JOIN_S = 15.0


class Process(ABC):
    """What every actor of a run tells people and the driver.

    Ray asks an actor for its `repr` once, when it is made, and always shows that: it says who the
    actor is. What it is doing is the answer of its method `status`, and the last line of its log,
    which the dashboard's Actors page shows.
    """

    def __init__(self, name: str, arm: str) -> None:
        self.name = name
        self._title = actor_title(name, arm)
        self._next_status_us = 0
        self._clock = LiveClock()
        self._finished = False
        self._listener: CallListener | None = None

    def __repr__(self) -> str:
        return self._title

    def ready(self) -> int:
        """The process id, once the actor is built."""
        return os.getpid()

    def status(self) -> str:
        """What the actor is doing, in one line."""
        now_us = self._clock.now_us()
        at = f"{now_us / 1e6:.1f} s into the run" if now_us >= 0 else "before the run"
        return f"{self._title}, {'finished' if self._finished else at}: {self._doing()}"

    @abstractmethod
    def _doing(self) -> str:
        """What the actor is doing, for people. May be called in any thread."""

    def _log_status(self, now_us: int) -> None:
        """Print the status, unless the last line is fresh."""
        if now_us >= self._next_status_us:
            self._next_status_us = now_us + STATUS_US
            print(self.status(), flush=True)

    def _endpoint(self, handle: Callable[[bytes], bytes]) -> Endpoint | None:
        """Where the actor takes calls without Ray, which `handle` answers; None if it cannot."""
        if self._listener is None:
            self._listener = listen(node_ip(), handle)
        return None if self._listener is None else self._listener.endpoint


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


class Actor(Process):
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
        super().__init__(name, plan.arm)
        self.epoch = time.time_ns() // 1000  # greater after each restart
        self._plan = plan
        self._assembly = assembly = inputs.assembly
        directory = Path(plan.journal_dir)
        log = handled_log(directory, name, self.epoch)
        self._log = HandledLog(assembly.codec, log, assembly.tables)
        self._cell = CellPort(member(plan.namespace, CELL))
        coordinator = member(plan.namespace, COORDINATOR_NAME)
        self._reporter = Reporter(coordinator, name, plan.arm, agent_names)
        records = epoch_log(directory, name, self.epoch) if keeps_records else None
        self._recorder = Recorder(plan, name, inputs.make_metrics(), records)
        self._load = LoadMeter(host, self._recorder)
        self._steps = StepClient(assembly.codec, host, self.epoch, self._cell.step)
        self._last_report_us = LiveClock.BEFORE_US
        self._thread: LoopThread | None = None
        self._background: BackgroundSteps | None = None
        self._loop_ended = True  # once it was asked to

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

    def _ticking_loop(
        self,
        steps: Steps,
        tick_us: int,
        phase_us: int,
        on_tick: Callable[[int], None],
        spacing_us: int | None = None,
        talk_us: int = 0,
    ) -> Callable[[], int]:
        """As _start_loop, of an actor whose timers wait for its ticks, and its steps, too, without
        spacing_us."""
        self._runtime.start()
        return HostLoop(
            self._runtime,
            steps,
            self._clock,
            Ticks(tick_us, phase_us),
            tick_us,
            tick_us if spacing_us is None else spacing_us,
            on_tick,
            self._load,
            talk_us=talk_us,
        ).run_once

    def _runtime_of(self, address: int, participant: Participant) -> ActorRuntime:
        """The runtime of an actor with one participant, which takes no decisions."""
        addresses, clock, recorder = self._assembly.addresses, self._clock, self._recorder
        return ActorRuntime({address: participant}, {}, addresses, clock, recorder, log=self._log)

    @abstractmethod
    def _report(self, error: str | None = None) -> ActorStatus:
        """The report to the coordinator."""

    def _tick(self, now_us: int) -> None:
        self._log.flush()
        if now_us - self._last_report_us >= (
            REPORT_US if now_us < self._plan.end_us else DRAIN_REPORT_US
        ):
            self._last_report_us = now_us
            self._reporter(self._report())
            self._log_status(now_us)

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


class SchedulerHost(Actor):
    """Hosts several scheduler agents: one step to the cell per tick for all of them."""

    def __init__(self, plan: RunPlan, host: HostPlan) -> None:
        inputs = run_inputs(plan)
        assembly = inputs.assembly
        names = {agent: assembly.arm.agent_name(agent) for agent in host.agents}
        super().__init__(host.name, host.host, plan, inputs, names, keeps_records=True)
        self._names = tuple(names.values())
        self._host = host
        self._agents: dict[int, Agent] = {}
        self._refusal: AgoraError | None = None
        try:
            self._agents = {agent: assembly.agent(agent) for agent in host.agents}
        except AgoraError as error:  # raised here, it would reach the user with a traceback
            self._refusal = error
        participants: dict[int, Participant] = dict(self._agents)
        self._waits = StepWaitRecorder(
            assembly.workload.tasks.submit_us, assembly.protocol_of_tasks(), assembly.protocols
        )
        measured = {
            agent
            for agent in self._agents
            if assembly.arm.clock(assembly.arm.group_of(agent)) == Measured()
        }
        metered = {
            agent: MeteredDecider(decider, self._load, agent in measured)
            for agent, decider in self._agents.items()
        }
        self._runtime = ActorRuntime(
            participants,
            metered,
            assembly.addresses,
            self._clock,
            self._recorder,
            parts=assembly.parts,
            on_decision=self._load.decision,
            metered=metered,
            log=self._log,
            waits=self._waits,
        )
        self._receiver = SubmissionReceiver(self.epoch)
        self._deliveries = threading.Lock()  # a push may be repeated while it is under way
        self._push_us: list[int] = []
        if self._refusal is None:
            self._begin()

    def ready(self) -> int:
        """The process id, once the actor is built.

        Raises:
            AgoraError: A scheduler cannot be created.
        """
        if self._refusal is not None:
            raise self._refusal
        return super().ready()

    def __repr__(self) -> str:
        return f"{super().__repr__()}: {', '.join(self._names)}"

    def endpoint(self) -> Endpoint | None:
        """Where the host takes pushes without Ray; None if it cannot."""
        return self._endpoint(self.deliver)

    def deliver(self, request: bytes) -> bytes:
        """Take a push of submissions, as HostPort sends it. Returns (this epoch, whether the
        push was meant for it), encoded."""
        epoch, number, sent_us, payload = decode(request)
        with self._deliveries:
            answer, messages = self._receiver.take(epoch, number, payload)
            if messages:
                self._push_us.append(max(0, self._clock.now_us() - sent_us))
            for agent, event in messages:
                self._runtime.deliver(agent, event)
        if messages and self._thread is not None:
            self._thread.wake.set()
        return encode((answer.epoch, answer.taken))

    def overdue(self, limit_s: float) -> str | None:
        """The error of a scheduler's call that takes longer than limit_s; None if no call is under
        way. The caller knows that the loop makes no progress."""
        for agent in self._agents.values():
            error = agent.overdue(limit_s)
            if error is not None:
                return str(error)
        return None

    @once
    def finish(self) -> Finished:
        """End the loop, and hand over what the run's figures need."""
        error = self._stop()
        notes: tuple[str, ...] = ()
        if not self._loop_ended:  # it has the step to itself
            call = self.overdue(JOIN_S) or f"{self.name}: its loop has not ended"
            notes = (f"{call}: the run ended meanwhile",)
        elif error is None:
            error = self._last_step()
        self._runtime.finish()
        self._reporter(self._report(error))
        return replace(
            self._close(error),
            notes=notes,
            waited=self._waits.waited,
            broken=self._thread is not None and isinstance(self._thread.error, ContractBroken),
            times=MeasuredTimes(
                step_us=self._load.step_us, push_us=self._push_us, lag_us=self._load.lag_us
            ),
        )

    def _start_loop(self, steps: Steps) -> Callable[[], int]:
        self._runtime.start(self.epoch)
        return HostLoop(
            self._runtime,
            steps,
            self._clock,
            Ticks(self._plan.tick_us, self._host.phase_us),
            WAKE_US,
            self._plan.spacing_us,
            self._tick,
            self._load,
            self._waits.stepped,
            self._plan.talk_us,
        ).run_once

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


class WorkerHost(Actor):
    """Hosts the worker pool. Its timers are looked at once per tick."""

    def __init__(self, plan: RunPlan) -> None:
        super().__init__(WORKER_POOL, WORKERS, plan, run_inputs(plan))
        self._workers = self._assembly.workers()
        self._runtime = self._runtime_of(WORKERS, self._workers)
        self._begin()

    @once
    def finish(self) -> Finished:
        """End the loop, and hand over what the run's figures need."""
        error = self._stop() or self._last_step()
        self._runtime.finish()
        end_us, allocation, _ = self._workers.due_ends()
        return replace(
            self._close(error),
            due_ends=DueEnds(allocation, end_us) if error is None else None,
            times=MeasuredTimes(other_step_us=self._load.step_us),
        )

    def _start_loop(self, steps: Steps) -> Callable[[], int]:
        plan = self._plan
        return self._ticking_loop(
            steps,
            plan.tick_us,
            plan.workers_phase_us,
            self._tick,
            plan.workers_spacing_us,
            plan.talk_us,
        )

    def _doing(self) -> str:
        return f"{self._workers.pending_ends:,} tasks running"

    def _report(self, error: str | None = None) -> ActorStatus:
        return ActorStatus(
            self._clock.now_us(), self.epoch, 0, self._workers.pending_ends == 0, None, error
        )


class WorkloadSource(Actor):
    """Hosts the arrivals, and pushes submissions to the scheduler hosts once per tick."""

    def __init__(self, plan: RunPlan) -> None:
        super().__init__(SOURCE, ARRIVALS, plan, run_inputs(plan))
        self._arrivals = self._assembly.arrivals()
        self._runtime = self._runtime_of(ARRIVALS, self._arrivals)
        self._senders = {
            host.host: SubmissionSender(
                HostPort(member(plan.namespace, host.name), self._clock), self._cell.never_placed
            )
            for host in plan.hosts
        }
        self._begin()

    @once
    def finish(self) -> Finished:
        """End the loop, and hand over what the run's figures need."""
        error = self._stop()
        self._runtime.finish()
        resubmitted = sum(sender.resubmitted for sender in self._senders.values())
        times = MeasuredTimes(other_step_us=self._load.step_us)
        return replace(self._close(error), recovered=resubmitted, times=times)

    def _start_loop(self, steps: Steps) -> Callable[[], int]:
        plan = self._plan
        submitting = SubmittingSteps(steps, self._senders, plan.host_of)
        return self._ticking_loop(
            submitting, plan.tick_us, plan.source_phase_us, self._poll_senders
        )

    def _doing(self) -> str:
        waiting = sum(sender.waiting for sender in self._senders.values())
        resubmitted = sum(sender.resubmitted for sender in self._senders.values())
        again = f", {resubmitted:,} again to restarted hosts" if resubmitted else ""
        submitted = f"{self._arrivals.submitted:,} tasks submitted{again}"
        return f"{submitted}, {waiting:,} not taken by their host yet"

    def _poll_senders(self, now_us: int) -> None:
        for sender in self._senders.values():
            sender.poll(now_us)
        self._load.unhandled(sum(sender.waiting for sender in self._senders.values()))
        self._tick(now_us)

    def _report(self, error: str | None = None) -> ActorStatus:
        senders = self._senders
        settled = self._arrivals.exhausted and all(sender.idle for sender in senders.values())
        waiting = sum(sender.waiting for sender in senders.values())
        epochs = {host: sender.epoch for host, sender in senders.items()}
        return ActorStatus(self._clock.now_us(), self.epoch, waiting, settled, None, error, epochs)


class CoordinatorHost(Process):
    """Hosts the coordinator, which follows the load phases, and the status of the run.

    It also keeps what other actors are built from (kept()).
    """

    _cell: CellPort  # there is none before attach()

    def __init__(self, plan: RunPlan, inputs: RunInputs) -> None:
        self._handle = share(inputs)
        inputs = shared(self._handle)  # and nothing holds on to the argument, which is a copy
        super().__init__(COORDINATOR_NAME, plan.arm)
        self._phases = len(inputs.assembly.workload.phases)
        self.epoch = time.time_ns() // 1000
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
            ignore,
            log=self._log,
        )
        self._load = LoadMeter(COORDINATOR, ignore)  # it is in nobody's way
        self._plan = plan
        self._codec = inputs.assembly.codec
        self._thread: LoopThread | None = None

    def _doing(self) -> str:
        return f"load phase {self._coordinator.phase + 1} of {self._phases}"

    def kept(self) -> Any:
        """The handle of the run's RunInputs; None once the run is over.

        An actor that is killed after that must not be built again: it would write into the files of
        a finished run.
        """
        return None if self._finished else self._handle

    def end(self) -> None:
        """Take note that the run is over. The actors may stay, to be asked for their status."""
        self._finished = True

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
