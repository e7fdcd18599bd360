"""A scheduler host as an actor."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from parsync.core.codec import decode, encode
from parsync.core.participant import Agent, Participant
from parsync.runtime.calibration import MeasuredTimes
from parsync.runtime.live.actor import JOIN_S, Actor, once, run_inputs
from parsync.runtime.live.calls import CallListener, Endpoint, listen
from parsync.runtime.live.loop import WAKE_US, ActorRuntime, HostLoop, Ticks
from parsync.runtime.live.meters import MeteredDecider, StepWaitRecorder
from parsync.runtime.live.plan import (
    ActorStatus,
    Finished,
    HostPlan,
    RunPlan,
)
from parsync.runtime.live.ray_glue.actors import node_ip
from parsync.runtime.live.steps import Steps
from parsync.runtime.live.submissions import SubmissionReceiver
from schedulers.decision_clock import Measured
from schedulers.interface import ContractBroken
from shared_state.errors import AgoraError


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
        self._waits = StepWaitRecorder(assembly.workload.tasks.submit_us)
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
