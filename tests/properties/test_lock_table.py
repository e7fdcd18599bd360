"""Whatever agents ask for, give back, and whoever is restarted: a partition has one holder at most,
and nobody waits while the first in the queue could be served."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from parsync.protocols.locking import LockRequest, LocksGranted, LocksReleased, LockTable

AGENTS, PARTITIONS = 4, 5

moves = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, AGENTS - 1), st.integers(1, PARTITIONS)),
        st.tuples(st.sampled_from(["release", "restart"]), st.integers(0, AGENTS - 1)),
        st.tuples(st.just("restart_cell")),
    ),
    max_size=60,
)


def new_table() -> LockTable:
    environment: Any = SimpleNamespace(
        partitioning=SimpleNamespace(count=PARTITIONS),
        members=(
            SimpleNamespace(first_agent=0, count=1),
            SimpleNamespace(first_agent=1, count=AGENTS - 1),
        ),
    )
    cell: Any = None
    return LockTable(environment, cell)


class World:
    """The agents' side: what each was granted, and who waits in which order."""

    def __init__(self) -> None:
        self.table = new_table()
        self.epoch = [0] * AGENTS
        self.held: dict[int, set[int]] = {agent: set() for agent in range(AGENTS)}
        self.waiting: list[tuple[int, int]] = []

    def ask(self, agent: int, count: int) -> None:
        if not self.held[agent] and all(agent != other for other, _ in self.waiting):
            self.waiting.append((agent, count))
            self.deliver(LockRequest(agent, self.epoch[agent], count))

    def release(self, agent: int) -> None:
        if self.held[agent]:
            self.held[agent] = set()
            self.deliver(LocksReleased(agent, self.epoch[agent]))

    def restart(self, agent: int) -> None:
        """A late message of the old agent changes nothing once the new one has spoken."""
        old = self.epoch[agent]
        self.epoch[agent] += 1
        self.held[agent] = set()
        self.waiting = [one for one in self.waiting if one[0] != agent]
        self.deliver(LocksReleased(agent, self.epoch[agent]))
        self.deliver(LockRequest(agent, old, 1))

    def restart_cell(self) -> None:
        state = self.table.checkpoint()
        self.table = new_table()
        self.table.restore(state)

    def deliver(self, event: LockRequest | LocksReleased) -> None:
        for effect in self.table.on_event(0, event):
            agent, granted = effect.to, effect.event
            assert isinstance(granted, LocksGranted)
            first, count = self.waiting.pop(0)
            assert agent == first, "first come, first served"
            assert granted.epoch == self.epoch[agent]
            partitions = granted.partition.tolist()
            assert partitions == sorted(set(partitions)) and len(partitions) == count
            others = set().union(*self.held.values())
            assert not others & set(partitions), "two holders of one partition"
            self.held[agent] = set(partitions)
        free = PARTITIONS - sum(map(len, self.held.values()))
        assert not self.waiting or self.waiting[0][1] > free, "the first waits for nothing"
        for agent, held in self.held.items():
            assert set((self.table.holder == agent).nonzero()[0].tolist()) == held


@given(moves)
def test_no_partition_has_two_holders_and_the_first_in_the_queue_is_served(script: Any) -> None:
    world = World()
    for name, *rest in script:
        getattr(world, name)(*rest)
    for _ in range(AGENTS):  # all that wait are served in the end
        for agent in range(AGENTS):
            world.release(agent)
    assert not world.waiting


@given(st.lists(st.integers(1, PARTITIONS), min_size=1, max_size=20))
def test_partitions_are_granted_in_the_order_of_their_last_release(counts: list[int]) -> None:
    """One agent after the other: each gets those that were released longest ago."""
    table = new_table()
    order = list(range(PARTITIONS))
    for turn, count in enumerate(counts):
        [effect] = table.on_event(0, LockRequest(turn % AGENTS, 0, count))
        assert effect.event.partition.tolist() == sorted(order[:count])
        table.on_event(0, LocksReleased(turn % AGENTS, 0))
        order = order[count:] + sorted(order[:count])
