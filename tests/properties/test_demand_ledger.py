"""Whatever the order of messages and whoever is restarted: once all is synchronised, every agent
knows each task that was offered to anybody, once."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from parsync.protocols.optimistic import shared_demand
from tests.shared_demand_world import SharedDemandWorld

AGENTS, SETS, TASKS = 3, 6, 40

steps = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["report", "request", "ledger_handles", "agent_handles"]),
            st.integers(0, AGENTS - 1),
        ),
        st.tuples(
            st.just("offer"),
            st.integers(0, AGENTS - 1),
            st.lists(st.integers(0, TASKS - 1), min_size=1, max_size=8),
        ),
        st.tuples(
            st.just("restart_agent"),
            st.integers(0, AGENTS - 1),
            st.lists(st.integers(0, TASKS - 1), max_size=8),
        ),
        st.tuples(st.just("restart_cell")),
    ),
    max_size=60,
)
preferences = st.lists(st.integers(0, SETS - 1), min_size=TASKS, max_size=TASKS)


def run(world, script):
    """Let it happen. Each task belongs to one agent. Return who was offered what."""
    offered = [set() for _ in range(AGENTS)]
    for name, *rest in script:
        world.now_us += 10
        if name == "offer":
            agent, tasks = rest
            own = [task for task in tasks if task % AGENTS == agent]
            offered[agent].update(own)
            world.schedulers[agent].offer(own)
        elif name == "restart_agent":
            agent, again = rest
            unheard = offered[agent] - reported(world)
            world.restart_agent(agent)
            # what was not placed is offered again, reported before or not
            again = unheard | {task for task in again if task in offered[agent]}
            world.schedulers[agent].offer(sorted(again))
        else:
            getattr(world, name)(*rest)
    return offered


def reported(world):
    bits = world.ledger.state[1]
    return {task for task in range(TASKS) if bits[task >> 3] >> (task & 7) & 1}


@given(preferences, steps)
def test_every_agent_knows_every_task_once(preference, script):
    most, shared_demand.SETS_PER_REPLY = shared_demand.SETS_PER_REPLY, 2
    try:
        world = SharedDemandWorld(preference, SETS, AGENTS)
        offered = run(world, script)
        world.synchronise()
    finally:
        shared_demand.SETS_PER_REPLY = most
    tasks = set().union(*offered)
    expected = Counter(preference[task] for task in tasks)
    assert reported(world) == tasks
    assert Counter(dict(enumerate(world.ledger.state[2].tolist()))) == expected
    for scheduler in world.schedulers:
        assert +scheduler.tasks == expected
        assert not -scheduler.tasks


reports = st.lists(st.lists(st.integers(0, TASKS - 1), min_size=1), max_size=12)


@given(preferences, reports, st.data())
def test_sums_do_not_depend_on_the_order_of_reports(preference, reports, data):
    def sums(order):
        world = SharedDemandWorld(preference, SETS, 1)
        for task in order:
            world.schedulers[0].offer(task)
            world.report(0)
            world.ledger_handles(0)
        _, bits, tasks, _, _ = world.ledger.state
        return bits.tolist(), tasks.tolist()

    assert sums(reports) == sums(data.draw(st.permutations(reports)))
