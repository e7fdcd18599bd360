"""What the live runtime measures of itself: whether each process was able to keep time, and how
long tasks waited for the runtime and not for a decision.

LoadMeter makes one row of the table `actors` per second: the processor time that an actor had, how
late it was, how long steps and messages waited. From these rows a run learns whether it was
disturbed (parsync/metrics/kinds/validity.py). StepWait has the sums over tasks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from parsync.core._native import StepWaits
from parsync.core.effects import Effect
from parsync.core.event import Event
from parsync.core.participant import Decider
from parsync.metrics.record import Record
from parsync.runtime.effect_interpreter import RecordListener
from shared_state.tasks import Int32, Int64

SECOND_US = 1_000_000
LATE_US = 2_000  # a tick that is later counts as late


class LoadMeter:
    """Measures one actor. All calls come from the thread that runs its participants.

    Args:
        actor: The actor's id: of a scheduler host its number, else the address of its participant.
        on_record: Takes a row of the table `actors` per second.
        processor_ns: The processor time of the process so far.

    Attributes:
        lag_us: What slept() has taken note of, over the whole run.
        step_us: What step() has.
    """

    def __init__(
        self,
        actor: int,
        on_record: RecordListener,
        processor_ns: Callable[[], int] = time.process_time_ns,
    ) -> None:
        self._actor = actor
        self._on_record = on_record
        self._processor_ns = processor_ns
        self.lag_us: list[int] = []
        self.step_us: list[int] = []
        self._begun_us: int | None = None
        self._begun_ns = 0
        self._begin(None)

    def _begin(self, now_us: int | None) -> None:
        """Begin the next second."""
        self._begun_us = now_us
        self._begun_ns = self._processor_ns()
        self._tick_late_us: list[int] = []
        self._decision_late_us: list[int] = []
        self._lags, self._steps = len(self.lag_us), len(self.step_us)  # before this second
        self._decision_us = self._wall_ns = self._thread_ns = 0
        self._unhandled: int | None = None

    def tick(self, late_us: int) -> None:
        """Take note of a tick that began late_us after its time."""
        self._tick_late_us.append(max(0, late_us))

    def decision(self, late_us: int, decision_us: int) -> None:
        """Take note of a decision of decision_us that was delivered late_us after its time."""
        self._decision_late_us.append(max(0, late_us))
        self._decision_us += decision_us

    def computed(self, wall_ns: int, thread_ns: int) -> None:
        """Take note of the wall and thread CPU time of a decision whose time is measured."""
        self._wall_ns += wall_ns
        self._thread_ns += thread_ns

    def slept(self, lag_us: int) -> None:
        """Take note of a sleep that ended lag_us later than the loop had asked for."""
        self.lag_us.append(max(0, lag_us))

    def step(self, took_us: int) -> None:
        """Take note of a step: its round trip, or in the cell the time that handling it took."""
        self.step_us.append(took_us)

    def unhandled(self, messages: int) -> None:
        """Take note of how many messages wait now. A second's row has the least number."""
        if self._unhandled is None or messages < self._unhandled:
            self._unhandled = messages

    def sample(self, now_us: int) -> None:
        """Record the row of a second that is over. Called at least a few times per second."""
        if self._begun_us is None:
            if now_us >= 0:
                self._begin(now_us)
            return
        length_us = now_us - self._begun_us
        if length_us < SECOND_US:
            return
        lag_us, step_us = self.lag_us[self._lags :], self.step_us[self._steps :]
        columns = {
            "at_us": self._begun_us,
            "actor": self._actor,
            "length_us": length_us,
            "cpu_us": (self._processor_ns() - self._begun_ns) // 1000,
            "ticks": len(self._tick_late_us),
            "late_ticks": sum(late_us > LATE_US for late_us in self._tick_late_us),
            "decisions": len(self._decision_late_us),
            "decision_us": self._decision_us,
            "late_p95_us": p95(self._tick_late_us + self._decision_late_us),
            "lag_p95_us": p95(lag_us),
            "steps": len(step_us),
            "step_mean_us": sum(step_us) // max(1, len(step_us)),
            "step_p95_us": p95(step_us),
            "unhandled": self._unhandled or 0,
            "measured_wall_us": self._wall_ns // 1000,
            "measured_cpu_us": self._thread_ns // 1000,
        }
        self._on_record(
            Record("actors", {name: np.array([value]) for name, value in columns.items()})
        )
        self._begin(now_us)


def p95(values_us: Sequence[int]) -> int:
    """The 95th percentile of some times: the smallest that at most one in twenty exceeds; 0 of
    none."""
    if not values_us:
        return 0
    return sorted(values_us)[-(len(values_us) // 20) - 1]


class MeteredDecider:
    """A decider that knows how long its thread was on a processor while it computed a decision.

    Args:
        decider: Computes the decisions.
        load: The actor's meter. It is told of decisions whose times are measured.
        measured: Whether these are.
    """

    def __init__(self, decider: Decider, load: LoadMeter, measured: bool) -> None:
        self._decider = decider
        self._load = load
        self._measured = measured
        self._waited_us = 0

    def decide(self, decision: int, now_us: int) -> None:
        """As Decider.decide."""
        wall_ns, thread_ns = time.perf_counter_ns(), time.thread_time_ns()
        self._decider.decide(decision, now_us)
        wall_ns = time.perf_counter_ns() - wall_ns
        thread_ns = time.thread_time_ns() - thread_ns
        self._waited_us = max(0, wall_ns - thread_ns) // 1000
        if self._measured:
            self._load.computed(wall_ns, thread_ns)

    def over_us(self, due_us: int, computed_us: int) -> int:
        """When the decision computed last was over; its delivery is late from then on.

        A decision whose time is measured is over when it is computed. Any other is over when it is
        due, or when computing it would have ended if its thread had not waited for a processor: a
        plan that needs more than its decision's time makes no process late.

        Args:
            due_us: The end of the decision's time.
            computed_us: When computing it ended.
        """
        return computed_us if self._measured else max(due_us, computed_us - self._waited_us)

    def handle(self, now_us: int, event: Event) -> list[Effect]:
        """As Participant.handle."""
        return self._decider.handle(now_us, event)

    def finish(self, now_us: int) -> list[Record]:
        """As Participant.finish."""
        return self._decider.finish(now_us)

    def decision_us(self, elapsed_ns: int) -> int:
        """As Decider.decision_us."""
        return self._decider.decision_us(elapsed_ns)


@dataclass(frozen=True, slots=True)
class StepWait:
    """The time that tasks wait for the live runtime and not for a decision, summed over tasks.

    A submission waits until it reaches its agent; claims wait until a step carries them to the
    cell.

    Attributes:
        tasks: That reached their agent.
        submission_us: From their submission until then.
        claim_us: From the end of a decision until the step that carried its claims; every attempt
            counts.
    """

    tasks: int = 0
    submission_us: int = 0
    claim_us: int = 0

    def __add__(self, other: StepWait) -> StepWait:
        return StepWait(
            self.tasks + other.tasks,
            self.submission_us + other.submission_us,
            self.claim_us + other.claim_us,
        )

    @property
    def mean_us(self) -> float | None:
        """The mean wait of a task; None if there were no tasks."""
        return (self.submission_us + self.claim_us) / self.tasks if self.tasks else None


NO_WAIT = StepWait()
StepWaitsByProtocol = dict[str, StepWait]


class StepWaitRecorder(StepWaits):
    """Adds up the waits of one host's tasks, by protocol.

    Both parts of a task's wait lie between its submission and its commit, so their sum is less than
    its delay. `handled` takes note of an event that an agent handled; `stepped` of a step, which
    carries all claims made so far.

    Args:
        submit_us: int64[tasks], by task id.
        protocol_of: int32[tasks], the place in `protocols` of the one that each is scheduled under.
        protocols: Their names.
    """

    def __init__(self, submit_us: Int64, protocol_of: Int32, protocols: Sequence[str]) -> None:
        super().__init__(submit_us, protocol_of, len(protocols))
        self._protocols = tuple(protocols)

    @property
    def waited(self) -> StepWaitsByProtocol:
        """The sums so far."""
        sums = zip(self.tasks, self.submission_us, self.claim_us, strict=True)
        return {
            protocol: StepWait(*of_protocol)
            for protocol, of_protocol in zip(self._protocols, sums, strict=True)
        }


def joined_waits(hosts: Iterable[StepWaitsByProtocol]) -> StepWaitsByProtocol:
    """The sums over hosts."""
    found: StepWaitsByProtocol = {}
    for host in hosts:
        for protocol, waited in host.items():
            found[protocol] = found.get(protocol, NO_WAIT) + waited
    return found
