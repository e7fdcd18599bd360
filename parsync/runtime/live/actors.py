"""The actors around the cell: scheduler hosts, worker pool and workload source.

They are plain classes, which cluster.py turns into Ray actors. The two others are in cell_host.py
and coordinator_host.py. Actors find each other by name. They are built from the run's RunInputs,
whose handle the coordinator keeps (cluster.share), so that killed actors can be built again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from parsync.core.addresses import ARRIVALS, WORKERS
from parsync.core.codec import decode, encode
from parsync.core.participant import Agent, Participant
from parsync.runtime.calibration import MeasuredTimes
from parsync.runtime.live.actor import JOIN_S, Actor
from parsync.runtime.live.actor_runtime import ActorRuntime
from parsync.runtime.live.cluster import member, node_ip, shared_by
from parsync.runtime.live.direct_calls import CallListener, Endpoint, listen
from parsync.runtime.live.finished import DueEnds, Finished, once
from parsync.runtime.live.load_meter import LoadMeter, MeteredDecider
from parsync.runtime.live.loop import HostLoop, Ticks
from parsync.runtime.live.monitor import ActorStatus
from parsync.runtime.live.plan import (
    COORDINATOR_NAME,
    SOURCE,
    WORKER_POOL,
    HostPlan,
    RunInputs,
    RunPlan,
)
from parsync.runtime.live.ports import HostPort
from parsync.runtime.live.recorder import Recorder, epoch_log
from parsync.runtime.live.step_wait import StepWaitRecorder
from parsync.runtime.live.steps import StepClient, Steps
from parsync.runtime.live.submissions import SubmissionReceiver, SubmissionSender, SubmittingSteps
from parsync.runtime.live.timing import WAKE_US
from schedulers.decision_time import Measured
from schedulers.interface import ContractBroken
from shared_state.errors import AgoraError


class SchedulerHost(Actor):
    """Hosts several scheduler agents: one step to the cell per tick for all of them."""

    def __init__(self, plan: RunPlan, host: HostPlan) -> None:
        inputs: RunInputs = shared_by(member(plan.namespace, COORDINATOR_NAME))
        assembly = inputs.assembly
        names = {agent: assembly.arm.agent_name(agent) for agent in host.agents}
        super().__init__(host.name, plan, assembly, names)
        self._names = tuple(names.values())
        self._host = host
        log = epoch_log(Path(plan.journal_dir), host.name, self.epoch)
        self._recorder = Recorder(plan, host.name, inputs.make_metrics(), log)
        self._agents: dict[int, Agent] = {}
        self._refusal: AgoraError | None = None
        try:
            self._agents = {agent: assembly.agent(agent) for agent in host.agents}
        except AgoraError as error:  # raised here, it would reach the user with a traceback
            self._refusal = error
        participants: dict[int, Participant] = dict(self._agents)
        self._waits = StepWaitRecorder(assembly.workload.tasks.submit_us)
        self._load = LoadMeter(host.host, self._recorder)
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
        self._listener: CallListener | None = None
        self._push_us: list[int] = []
        self._steps = StepClient(assembly.codec, host.host, self.epoch, self._cell.step)
        self._ticks = Ticks(plan.tick_us, host.phase_us)
        self._spacing_us = plan.spacing_us
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
        return f"{self._status_line}: {', '.join(self._names)}"

    def endpoint(self) -> Endpoint | None:
        """Where the host takes pushes without Ray; None if it cannot."""
        if self._listener is None:
            self._listener = listen(node_ip(), self.deliver)
        return None if self._listener is None else self._listener.endpoint

    def deliver(self, request: bytes) -> bytes:
        """Take a push of submissions, as ports.HostPort sends it. Returns (this epoch, whether the
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
            self._ticks,
            WAKE_US,
            self._spacing_us,
            self._tick,
            self._load,
            self._waits.stepped,
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
        inputs: RunInputs = shared_by(member(plan.namespace, COORDINATOR_NAME))
        assembly = inputs.assembly
        super().__init__(WORKER_POOL, plan, assembly, {})
        self._recorder = Recorder(plan, self.name, inputs.make_metrics())
        self._load = LoadMeter(WORKERS, self._recorder)
        self._workers = assembly.workers()
        self._runtime = ActorRuntime(
            {WORKERS: self._workers},
            {},
            assembly.addresses,
            self._clock,
            self._recorder,
            log=self._log,
        )
        self._steps = StepClient(assembly.codec, WORKERS, self.epoch, self._cell.step)
        self._ticks = Ticks(plan.tick_us, plan.workers_phase_us)
        self._tick_us = plan.tick_us
        self._begin()

    @once
    def finish(self) -> Finished:
        """End the loop, and hand over what the run's figures need."""
        error = self._stop() or self._last_step()
        self._runtime.finish()
        self._recorder.close()
        self._end()
        end_us, allocation, _ = self._workers.due_ends()
        round_trip_us = np.array(self._steps.round_trip_us, np.int64)
        due_ends = DueEnds(allocation, end_us) if error is None else None
        return Finished(
            self._recorder.metrics,
            round_trip_us,
            self._steps.repeats,
            0,
            error,
            due_ends,
            times=MeasuredTimes(other_step_us=self._load.step_us),
        )

    def _start_loop(self, steps: Steps) -> Callable[[], int]:
        self._runtime.start()
        return HostLoop(
            self._runtime,
            steps,
            self._clock,
            self._ticks,
            self._tick_us,
            self._tick_us,
            self._tick,
            self._load,
        ).run_once

    def _doing(self) -> str:
        return f"{self._workers.pending_ends:,} tasks running"

    def _report(self, error: str | None = None) -> ActorStatus:
        return ActorStatus(
            self._clock.now_us(), self.epoch, 0, self._workers.pending_ends == 0, None, error
        )


class WorkloadSource(Actor):
    """Hosts the arrivals, and pushes submissions to the scheduler hosts once per tick."""

    def __init__(self, plan: RunPlan) -> None:
        inputs: RunInputs = shared_by(member(plan.namespace, COORDINATOR_NAME))
        assembly = inputs.assembly
        super().__init__(SOURCE, plan, assembly, {})
        self._plan = plan
        self._recorder = Recorder(plan, self.name, inputs.make_metrics())
        self._load = LoadMeter(ARRIVALS, self._recorder)
        self._arrivals = assembly.arrivals()
        self._runtime = ActorRuntime(
            {ARRIVALS: self._arrivals},
            {},
            assembly.addresses,
            self._clock,
            self._recorder,
            log=self._log,
        )
        self._steps = StepClient(assembly.codec, ARRIVALS, self.epoch, self._cell.step)
        self._senders = {
            host.host: SubmissionSender(
                HostPort(member(plan.namespace, host.name), self._clock),
                self._cell.never_placed,
            )
            for host in plan.hosts
        }
        self._begin()

    @once
    def finish(self) -> Finished:
        """End the loop, and hand over what the run's figures need."""
        error = self._stop()
        self._runtime.finish()
        self._recorder.close()
        self._end()
        resubmitted = sum(sender.resubmitted for sender in self._senders.values())
        round_trip_us = np.array(self._steps.round_trip_us, np.int64)
        return Finished(
            self._recorder.metrics,
            round_trip_us,
            self._steps.repeats,
            resubmitted,
            error,
            times=MeasuredTimes(other_step_us=self._load.step_us),
        )

    def _start_loop(self, steps: Steps) -> Callable[[], int]:
        self._runtime.start()
        tick_us = self._plan.tick_us
        return HostLoop(
            self._runtime,
            SubmittingSteps(steps, self._senders, self._plan.host_of),
            self._clock,
            Ticks(tick_us, self._plan.source_phase_us),
            tick_us,
            tick_us,
            self._poll_senders,
            self._load,
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
        self._load.unhandled(sum(sender.waiting for sender in self._senders.values()))
        self._tick(now_us)

    def _report(self, error: str | None = None) -> ActorStatus:
        senders = self._senders
        settled = self._arrivals.exhausted and all(sender.idle for sender in senders.values())
        waiting = sum(sender.waiting for sender in senders.values())
        epochs = {host: sender.epoch for host, sender in senders.items()}
        return ActorStatus(self._clock.now_us(), self.epoch, waiting, settled, None, error, epochs)
