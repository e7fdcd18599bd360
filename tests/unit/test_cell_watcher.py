"""Participants beside the master that watch the cell: they are notified of every start, end and
machine change at its instant, in virtual time and live, before and after a killed cell is back."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from parsync.core.addresses import CELL_SIDE, MASTER
from parsync.core.effects import Effect, Send
from parsync.core.event import Event, Priority
from parsync.core.events import MachinesChanged, Started
from parsync.core.participant import Participant
from parsync.core.queued_tasks import QueuedTasks
from parsync.metrics.record import Record
from parsync.protocols import registry
from parsync.protocols.base import BaseAgent, BaseCellSide
from parsync.protocols.spec import Environment, NoOptions, ProtocolCapability, ProtocolSpec
from parsync.runtime.assembly import Assembly
from parsync.runtime.live import replay as log_replay
from parsync.runtime.live.cell import CellRuntime
from parsync.runtime.virtual.run import VirtualRuntime
from parsync.spec.arm import ProtocolChoice, SeededArm, check_protocols
from schedulers.interface import ChangeKind
from shared_state.cell import Cell
from shared_state.errors import AgoraError
from shared_state.tasks import Int32, Int64
from tests.fixtures.changed import changed
from tests.fixtures.hand_driven_run import write_run
from tests.fixtures.live_runs import mixed_arm, small_workload
from tests.fixtures.overloaded_cell import failing_workload

KIND = "shares"


@dataclass(frozen=True, slots=True)
class Ask(Event):
    """Agent -> allocator: a machine for each task."""

    kind: ClassVar[str] = KIND
    number: ClassVar[int] = 1
    priority: ClassVar[Priority] = Priority.DECIDE
    agent: int
    tasks: int


@dataclass(frozen=True, slots=True)
class Granted(Event):
    """Allocator -> agent: the emptiest machines of those that are up."""

    kind: ClassVar[str] = KIND
    number: ClassVar[int] = 2
    priority: ClassVar[Priority] = Priority.COMMIT
    machine: Int32


class Allocator(BaseCellSide):
    """Keeps what every agent uses on every machine, and checks it against the cell whenever it is
    notified of a change. state: int64[agents, machines], bool[machines]; seen: the notifications of
    all allocators."""

    seen: ClassVar[dict[str, int]] = {}

    def __init__(self, environment: Environment, cell: Cell) -> None:
        super().__init__(environment, cell)
        machines = environment.cell.machines
        self.state = np.zeros((8, machines), np.int64), np.ones(machines, np.bool_)

    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        assert isinstance(event, Ask)
        self.check()
        used, up = self.state
        order = np.argsort(used.sum(axis=0) + 1_000 * ~up, kind="stable")
        return [Send(event.agent, Granted(np.resize(order[:20], event.tasks).astype(np.int32)))]

    def on_tasks_started(
        self, now_us: int, task: Int64, allocation: Int64, machine: Int32, owner: Int32
    ) -> list[Effect]:
        np.add.at(self.state[0], (owner, machine), self.environment.table.request[task, 0])
        return self.count("started")

    def on_tasks_ended(
        self,
        now_us: int,
        change: ChangeKind,
        task: Int64,
        allocation: Int64,
        machine: Int32,
        owner: Int32,
    ) -> list[Effect]:
        np.subtract.at(self.state[0], (owner, machine), self.environment.table.request[task, 0])
        return self.count(change.name.lower())

    def on_machines_changed(
        self, now_us: int, machine: Int32, up: NDArray[np.bool_]
    ) -> list[Effect]:
        self.state[1][machine] = up
        self.seen["machines"] = self.seen.get("machines", 0) + 1
        return []  # the tasks there end next

    def count(self, what: str) -> list[Effect]:
        self.seen[what] = self.seen.get(what, 0) + 1
        return []

    def check(self) -> None:
        """What it was notified of is what the cell holds."""
        used, up = self.state
        assert np.array_equal(used.sum(axis=0), self.cell.used[:, 0])
        assert np.array_equal(up, self.cell.up)
        running = self.cell.allocations()
        by_agent = np.zeros_like(used)
        np.add.at(by_agent, (running.owner, running.machine), running.request[:, 0])
        assert np.array_equal(by_agent, used)
        assert (used >= 0).all()


class Agent(BaseAgent):
    """Asks for machines, and claims them in the order of asking."""

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self.asked: list[QueuedTasks] = []

    def on_queued(self, now_us: int, tasks: QueuedTasks) -> list[Effect]:
        self.asked.append(tasks)
        return [Send(self.cell_side, Ask(self.index, len(tasks)))]

    def on_event(self, now_us: int, event: Event) -> list[Effect]:
        assert isinstance(event, Granted)
        return self.claim(now_us, self.asked.pop(0), event.machine)


def watches(options: Any) -> Set[ProtocolCapability]:
    return frozenset({ProtocolCapability.WATCHES_CELL})


SPEC = ProtocolSpec(
    KIND, NoOptions, Agent, cell_side=Allocator, events=(Ask, Granted), capabilities=watches
)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    built_in = {**registry.BUILT_IN, KIND: f"{__name__}:SPEC"}
    monkeypatch.setattr(registry, "_GROUP", replace(registry._GROUP, built_in=built_in))
    monkeypatch.setattr(Allocator, "seen", {})


def shares_arm() -> SeededArm:
    """Two agents with an allocator, and a flow scheduler, which evicts nothing."""
    arm = mixed_arm()
    protocol = ProtocolChoice(kind=KIND, options=NoOptions())
    return changed(
        arm,
        groups=(
            changed(arm.groups[0], kind=None, protocol=protocol),
            arm.groups[1],
        ),
    )


@pytest.mark.parametrize("message_us", [0, 700])
def test_in_virtual_time_a_change_is_known_at_its_instant(message_us: int) -> None:
    """Checked after every event of every other instant of the run."""
    assembly = Assembly.of(shares_arm(), failing_workload())
    agents = {index: assembly.agent(index) for index in range(assembly.arm.agents)}
    master = assembly.master()
    beside = assembly.cell_side(master.cell)
    allocator = beside[CELL_SIDE]
    assert isinstance(allocator, Allocator)
    participants: dict[int, Participant] = {**agents, **beside, MASTER: master}
    participants |= {
        -2: assembly.workers(),
        -3: assembly.coordinator(),
        -4: assembly.arrivals(),
    }
    records: list[Record] = []
    runtime = VirtualRuntime(participants, agents, records.append, assembly.codec, message_us)
    for at_us in range(0, 1_500_000, 10_000):
        runtime.run_until(at_us)
        allocator.check()
    assert Allocator.seen.keys() == {"started", "finished", "lost", "machines"}
    assert min(Allocator.seen.values()) > 1


def test_live_a_change_is_known_at_its_instant_and_replayed(tmp_path: Path) -> None:
    """The cell is killed once, and comes back from a checkpoint and its log."""
    handle = CellRuntime.handle

    def checked(self: CellRuntime, step: Any, at_us: int) -> Any:
        answer = handle(self, step, at_us)
        allocator = self.participants[CELL_SIDE]
        assert isinstance(allocator, Allocator)
        allocator.check()
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CellRuntime, "handle", checked)
        write_run(tmp_path, shares_arm())
        assert Allocator.seen["started"] > 5 and Allocator.seen["finished"] > 5
        replayed = log_replay.replay(tmp_path)
    assert replayed.divergence is None and replayed.gaps == ()
    assert replayed.counts is not None and replayed.counts.accepted > 100


def test_protocols_that_do_not_watch_are_not_notified(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = replace(SPEC, capabilities=lambda options: frozenset())
    monkeypatch.setattr(f"{__name__}.SPEC", silent)
    master = Assembly.of(shares_arm(), small_workload(machines=20)).master()
    lost = MachinesChanged(np.zeros(1, np.int32), np.zeros(1, np.bool_))
    effects = [*master.handle(0, Started(0)), *master.handle(1, lost)]
    assert not [effect for effect in effects if isinstance(effect, Send)]


def test_a_protocol_that_watches_without_a_participant_beside_the_master_is_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"{__name__}.SPEC", replace(SPEC, cell_side=None))
    with pytest.raises(AgoraError, match="protocol 'shares': watches_cell: needs a participant"):
        check_protocols(shares_arm())
