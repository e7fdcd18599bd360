"""The worker pool and the workload source as actors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from parsync.core.addresses import ARRIVALS, WORKERS
from parsync.runtime.calibration import MeasuredTimes
from parsync.runtime.live.actor import Actor, once, run_inputs
from parsync.runtime.live.loop import ActorRuntime, HostLoop, Ticks
from parsync.runtime.live.plan import (
    SOURCE,
    WORKER_POOL,
    ActorStatus,
    DueEnds,
    Finished,
    RunPlan,
)
from parsync.runtime.live.ray_glue.actors import HostPort, member
from parsync.runtime.live.steps import Steps
from parsync.runtime.live.submissions import SubmissionSender, SubmittingSteps


class WorkerHost(Actor):
    """Hosts the worker pool. Its timers are looked at once per tick."""

    def __init__(self, plan: RunPlan) -> None:
        inputs = run_inputs(plan)
        assembly = inputs.assembly
        super().__init__(WORKER_POOL, WORKERS, plan, inputs)
        self._workers = assembly.workers()
        self._runtime = ActorRuntime(
            {WORKERS: self._workers},
            {},
            assembly.addresses,
            self._clock,
            self._recorder,
            log=self._log,
        )
        self._ticks = Ticks(plan.tick_us, plan.workers_phase_us)
        self._tick_us = plan.tick_us
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
        inputs = run_inputs(plan)
        assembly = inputs.assembly
        super().__init__(SOURCE, ARRIVALS, plan, inputs)
        self._plan = plan
        self._arrivals = assembly.arrivals()
        self._runtime = ActorRuntime(
            {ARRIVALS: self._arrivals},
            {},
            assembly.addresses,
            self._clock,
            self._recorder,
            log=self._log,
        )
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
        resubmitted = sum(sender.resubmitted for sender in self._senders.values())
        times = MeasuredTimes(other_step_us=self._load.step_us)
        return replace(self._close(error), recovered=resubmitted, times=times)

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
