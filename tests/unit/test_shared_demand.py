"""Schedulers that share demand: what passes between them, what their prices make of it, and what is
refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.workloads.synthetic import generate
from parsync.core.addresses import CELL_SIDE
from parsync.protocols import registry as protocols
from parsync.protocols.optimistic.events import DemandReply
from parsync.protocols.optimistic.shared_demand import SETS_PER_REPLY, DemandExchange
from parsync.runtime.assembly import Assembly
from parsync.runtime.virtual.run import run_virtual
from parsync.spec.arm import check_protocols
from schedulers import registry as schedulers
from schedulers.checked import CheckedScheduler
from schedulers.conformance import NonConformance
from schedulers.interface import Capability, ContractBroken, SchedulerEnvironment
from schedulers.prices import registry
from schedulers.prices.conformance import check_estimator
from schedulers.prices.interface import DemandCounts
from schedulers.prices.kinds import MembershipPrices
from schedulers.prices.periodic import KEEP_ALL, kept_on_average
from schedulers.prices.registry import SlotPriceSpec
from shared_state._native import pack_columns
from shared_state.errors import AgoraError
from tests.fixtures.overloaded_cell import OPTIONS, arm, group
from tests.price_world import PriceWorld, catalog_of, cell_of
from tests.shared_demand_world import CODEC, SharedDemandWorld, agent_of

SHARING = [kind for kind in registry.kinds() if registry.get(kind).shares_demand]
SHARED = {"prices": "implied", "share_demand": True}


def counts_of(*rows):
    preference, tasks, squares = zip(*rows, strict=True)
    return DemandCounts(np.array(preference, np.int32), np.array(tasks), np.array(squares))


# --- messages ---


def test_a_report_counts_each_task_once_and_replies_say_what_changed():
    world = SharedDemandWorld([1, 1, 2, 2, 2], 3, 2)
    world.schedulers[0].offer([0, 1, 2])
    world.report(0)
    world.ledger_handles(0)
    world.schedulers[0].offer([0, 3])  # 0 once more
    world.report(0)
    world.report(0)  # there is nothing to report
    assert len(world.to_ledger[0]) == 1
    world.request(1)
    world.ledger_handles(1)
    world.ledger_handles(0)
    world.agent_handles(1)
    assert world.schedulers[1].tasks == {1: 2, 2: 1}
    assert world.schedulers[1].squares == {1: 4, 2: 1}
    world.request(1)
    world.request(1)  # the answer is still to come
    assert len(world.to_ledger[1]) == 1
    world.ledger_handles(1)
    world.agent_handles(1)
    (reply,) = world.replies[1:]
    assert reply.preference.tolist() == [2] and reply.tasks.tolist() == [2]
    assert world.schedulers[1].tasks == {1: 2, 2: 2}


def test_what_an_agent_reported_itself_is_not_new_to_it():
    world = SharedDemandWorld([1, 1, 1, 1], 2, 2)
    world.schedulers[0].offer([0])
    world.schedulers[1].offer([1])
    for agent in (0, 1):
        world.report(agent)
        world.ledger_handles(agent)
    world.request(0)
    world.schedulers[0].offer([2])  # after the request, so no answer to it has this
    world.report(0)
    for _ in range(2):
        world.ledger_handles(0)
    world.agent_handles(0)
    assert world.schedulers[0].tasks == {1: 3}
    world.synchronise()
    assert [scheduler.tasks for scheduler in world.schedulers] == [{1: 3}, {1: 3}]


def test_more_sets_than_fit_a_reply_arrive_whole_and_the_longest_unknown_first():
    sets = 4 * SETS_PER_REPLY + 7
    assert sets > 20_000
    world = SharedDemandWorld(np.arange(1, sets + 1), sets, 2)
    world.schedulers[0].offer(range(0, sets, 2))
    world.report(0)
    world.ledger_handles(0)
    world.schedulers[0].offer(range(1, sets, 2))
    world.report(0)
    world.ledger_handles(0)
    while not world.replies or world.replies[-1].waiting:
        world.request(1)
        world.ledger_handles(1)
        world.agent_handles(1)
    assert [reply.waiting for reply in world.replies] == [
        sets - SETS_PER_REPLY,
        sets - 2 * SETS_PER_REPLY,
        sets - 3 * SETS_PER_REPLY,
        7,
        0,
    ]
    assert world.replies[0].preference.tolist() == list(range(1, 2 * SETS_PER_REPLY, 2))
    assert world.schedulers[1].tasks == dict.fromkeys(range(1, sets + 1), 1)
    sizes = [len(CODEC.encode(reply)) for reply in world.replies]
    assert max(sizes) <= 100_000
    (record,) = world.exchanges[1].flush()
    columns = record.columns
    assert columns["sets"].tolist() == [*[SETS_PER_REPLY] * 4, 7]
    assert columns["waiting"].tolist() == [reply.waiting for reply in world.replies]
    assert columns["tasks"].sum() == sets and columns["agent"].tolist() == [1] * 5
    first = world.replies[0]
    assert columns["bytes"][0] == len(pack_columns(first.preference, first.tasks, first.squares))


def test_a_restarted_agent_learns_what_it_missed_once_and_as_old():
    world = SharedDemandWorld([1] * 6, 2, 2)
    world.now_us = 500
    world.schedulers[0].offer([0, 1])
    world.schedulers[1].offer([2, 3])
    world.synchronise()
    world.now_us = 9_000
    world.restart_agent(0)
    world.schedulers[0].offer([1, 4])  # 1 was reported before the restart
    world.report(0)
    world.now_us = 9_500
    world.synchronise()
    assert world.schedulers[0].tasks == {1: 5}
    assert world.schedulers[0].over_us == [9_000, 0]  # the second takes back what counted twice
    world.schedulers[1].offer([5])
    world.synchronise()
    assert world.schedulers[0].tasks == {1: 6} and world.schedulers[0].over_us[-1] == 0


# --- prices ---


class PriceAgent:
    """The estimator of a PriceWorld as an exchange sees the scheduler that has it."""

    def __init__(self, world):
        self.estimator = world.estimator
        self.estimator.share_demand()

    def take_new_demand(self):
        return self.estimator.take_new()

    def learn_demand(self, counts, over_us):
        self.estimator.learn_demand(counts, over_us)


@pytest.mark.parametrize("kind", SHARING)
def test_eight_that_share_demand_have_the_prices_of_one_that_is_offered_all(kind):
    draws = np.random.default_rng(4)
    # sets of 2 or 4 machines, so that thirds of tasks are not rounded
    sets = [
        (90, {int(m): 20 for m in draws.choice(12, size, replace=False)})
        for size in draws.choice([2, 4], 9)
    ]
    preference = draws.integers(0, 10, 400).astype(np.int32)
    worlds = [PriceWorld(kind, [3] * 12, sets) for _ in range(9)]
    one, agents = worlds[0], worlds[1:]
    shared = SharedDemandWorld(
        preference, 10, 8, [PriceAgent(world) for world in agents], catalog_of(sets), [3] * 12
    )
    for part, at_s in ((slice(0, 200), 2.0), (slice(200, 400), 5.0)):
        ids = np.arange(400)[part]
        for first in range(0, len(ids), 5):
            task = ids[first : first + 5]
            agent = first // 5 % 8
            for world in (one, agents[agent]):
                world.offer_again(task, preference[task], np.ones((len(task), 1), np.int64))
            shared.report(agent)
            shared.ledger_handles(agent)
        shared.synchronise()
        for world in worlds:
            world.occupy([0, 1, 1, 2], np.ones((4, 1)))
        prices = [world.price(at_s) for world in worlds]
        if kind == "fluid":  # samples differ, but what they are drawn from does not
            drawn = [np.bincount(world.estimator.demand.recent_sets) for world in worlds]
            assert all(np.array_equal(drawn[0], other) for other in drawn[1:])
        else:
            assert all(price == prices[0] for price in prices[1:])
            assert max(map(max, prices[0])) > 0


def test_shared_demand_is_counted_work():
    world = PriceWorld("demand", [3] * 4, [(90, {0: 20, 1: 20})] * 500)
    world.offer([1])
    world.prices(1.0)
    world.estimator.learn_demand(counts_of(*((preference, 5, 5) for preference in range(501))), 0)
    world.prices(2.0)
    with_counts = world.estimator.operations
    world.prices(3.0)
    assert with_counts > world.estimator.operations > 0


def test_history_counts_as_if_it_had_come_evenly():
    """Demand at a constant rate: an estimator that learns of it afterwards knows as much as one
    that was there, and new demand counts as much against it."""
    sets = [(90, {0: 20}), (90, {1: 20})]
    there, late = (
        PriceWorld("demand", [50] * 2, sets, forget_s=10.0, pool=False) for _ in range(2)
    )
    for second in range(100):
        there.offer([1] * 10)
        there.prices(float(second))
    late.offer([0])
    late.estimator.learn_demand(counts_of((1, 1000, 1000)), 100_000_000)
    for world in (there, late):
        world.offer([2] * 50)
        world.occupy([0] * 20, np.ones((20, 1)))
    first, second = there.price(100.0), late.price(100.0)
    for machine in (0, 1):
        assert second[machine][0] == pytest.approx(first[machine][0], abs=2)
    assert first[0][0] > first[1][0] > 0


def test_what_is_kept_on_average():
    assert kept_on_average(0, 10) == kept_on_average(-1, 10) == KEEP_ALL
    assert kept_on_average(1, 10**9) == pytest.approx(KEEP_ALL, rel=1e-6)
    assert kept_on_average(10, 10) == pytest.approx(KEEP_ALL * (1 - np.exp(-1)), rel=1e-6)
    assert kept_on_average(10**6, 10) == KEEP_ALL // 10**5


@pytest.mark.parametrize("kind", SHARING)
def test_taken_back_demand_is_gone_and_never_below_none(kind):
    sets = [(90, {0: 20, 1: 20}), (90, {1: 20})]
    once, twice = (PriceWorld(kind, [3] * 2, sets) for _ in range(2))
    for world in (once, twice):
        world.offer([1, 2, 2])
    twice.estimator.learn_demand(counts_of((1, 4, 16), (2, 1, 1)), 0)
    twice.estimator.learn_demand(counts_of((1, -4, -16), (2, -1, -1)), 0)
    assert kind == "fluid" or once.price(1.0) == twice.price(1.0)
    twice.estimator.learn_demand(counts_of((1, -99, -99), (2, -99, -99)), 0)
    assert np.array(twice.price(2.0)).min() >= 0


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (counts_of((9, 1, 1)), r"^preference\[0\]: there is no set 9"),
        (counts_of((1, 1, 1), (-1, 1, 1)), r"^preference\[1\]: there is no set -1"),
        (counts_of((1, 2**30 + 1, 1)), r"^tasks\[0\]: out of range, got 1073741825"),
        (counts_of((1, 1, -(2**60) - 1)), r"^squares\[0\]: out of range"),
        (counts_of((1, 1, 1))._replace(tasks=np.ones(2, np.int64)), "tasks"),
    ],
)
def test_counts_that_cannot_be_are_refused_whole(counts, message):
    world = PriceWorld("demand", [3] * 2, [(90, {0: 20})])
    world.offer([1])
    with pytest.raises(ValueError, match=message):
        world.estimator.learn_demand(counts, 0)
    other = PriceWorld("demand", [3] * 2, [(90, {0: 20})])
    other.offer([1])
    assert world.price(1.0) == other.price(1.0)


# --- options, and what schedulers and protocols must have ---


@pytest.mark.parametrize("kind", ["random", "preferred_first", "flow", "load_spreading"])
@pytest.mark.parametrize("patience", [{}, {"patience_s": 0.1}])
def test_the_option_gives_the_capability_and_a_scheduler_that_shares(kind, patience):
    spec = schedulers.get(kind)
    for shares in (True, False):
        options = spec.parse_options({**SHARED, **patience, "share_demand": shares})
        made = spec.with_options(options)
        assert (Capability.SHARES_DEMAND in made.capabilities) is shares
        assert (spec.build(options, environment_of_two()).shared_demand is not None) is shares


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share_demand": True}, "share_demand: has no effect without prices"),
        (
            {"prices": "occupancy", "share_demand": True},
            "share_demand: prices 'occupancy' do not rest on demand",
        ),
        (
            {"prices": "implied", "share_demand": "yes"},
            "option 'share_demand': Input should be a valid boolean",
        ),
        (
            {"prices": "potentials", "share_demand": True},
            "share_demand: prices 'potentials' do not rest on demand",
        ),
    ],
)
def test_wrong_options_are_refused_in_one_line(options, message):
    with pytest.raises(AgoraError, match=message) as refused:
        schedulers.get("flow").parse_options(options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"uses_cell_side": lambda members: members[9]},
            r"^protocol 'optimistic': uses_cell_side raised IndexError: tuple index",
        ),
        (
            {"uses_cell_side": lambda members: 1},
            r"^protocol 'optimistic': uses_cell_side: expected a bool, got a int",
        ),
        (
            {"capabilities": frozenset({"runs_schedulers", "watches_cell"})},
            "watches_cell: needs a participant beside the master",
        ),
        (
            {"capabilities": frozenset({"runs_schedulers"})},
            r"^group 'random': share_demand: protocol 'optimistic' ",
        ),
    ],
)
def test_a_protocol_that_cannot_pass_demand_on_is_refused(monkeypatch, changes, message):
    shares = message.startswith("^group")
    spec = arm("diff_block", group(options=SHARED if shares else {})).seeded(
        1, 1_000, 50_000, live=False
    )
    check_protocols(spec)
    odd = replace(protocols.get("optimistic"), **changes)
    monkeypatch.setattr(protocols, "get", lambda kind: odd)
    with pytest.raises(AgoraError, match=message):
        check_protocols(spec)


def environment_of_two():
    catalog = catalog_of([(90, {0: 20})])
    return SchedulerEnvironment("one", cell_of([2, 2]), np.array([0, 2]), catalog)


def test_a_kind_that_says_it_shares_must(monkeypatch):
    options = registry.get("implied").options
    odd = SlotPriceSpec("odd", options, lambda options, environment: object(), False, True)
    monkeypatch.setattr(registry, "get", lambda kind: odd)
    parsed = schedulers.get("random").parse_options({"prices": "odd", "share_demand": True})
    with pytest.raises(AgoraError, match=r"^slot prices 'odd': shares_demand: expected take_new"):
        parsed.estimator(environment_of_two())


class BadDemand:
    def __init__(self, task=None):
        self.task = task

    def share_demand(self): ...

    def take_new(self):
        return self.task

    def learn_demand(self, counts, over_us):
        raise ValueError("no such set")


def checked_sharer(demand):
    """A scheduler whose shared demand is this."""
    world = SharedDemandWorld([1, 1], 1, 1)
    spec = replace(schedulers.get("random"), capabilities=frozenset({Capability.SHARES_DEMAND}))
    sharer = SimpleNamespace(shared_demand=demand)
    return CheckedScheduler(sharer, spec, environment_of_two(), world.environment.table)


@pytest.mark.parametrize(
    "task", [None, [0], np.zeros(1), np.array([2]), np.array([-1]), np.zeros((1, 1), np.int64)]
)
def test_schedulers_that_report_what_is_no_task_break_their_contract(task):
    with pytest.raises(ContractBroken, match=r"take_new\(\): expected the ids of tasks"):
        checked_sharer(BadDemand(task)).take_new_demand()


def test_what_goes_wrong_in_shared_demand_is_the_schedulers_fault():
    with pytest.raises(ContractBroken, match=r"learn_demand\(\) raised ValueError: no such set"):
        checked_sharer(BadDemand()).learn_demand(counts_of((1, 1, 1)), 0)
    with pytest.raises(ContractBroken, match="shares_demand: expected shared_demand"):
        checked_sharer(None)


# --- whole runs ---


def run(count, options, seed=7):
    """(digest, records by table) of a run in virtual time."""
    records = {}

    def keep(record):
        records.setdefault(record.table, []).append(record.columns)

    config = arm("diff_block", group(count=count, options=options))
    spec = config.seeded(seed, 1_000, 100_000, live=False)
    outcome = run_virtual(spec, generate(OPTIONS, 3), 5_000_000, keep, lambda _: None)
    assert outcome.drained
    tables = {
        table: {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        for table, parts in records.items()
    }
    return outcome.digest, tables


def test_runs_with_shared_demand_repeat_and_every_update_is_recorded():
    digest, tables = run(4, SHARED)
    assert run(4, SHARED)[0] == digest
    updates = tables["demand_updates"]
    assert set(updates["agent"].tolist()) == {0, 1, 2, 3}
    assert (updates["bytes"] > 0).all() and (updates["bytes"] <= 100_000).all()
    tasks = tables["submissions"]["tasks"].sum()
    assert 0 < updates["tasks"].sum() <= 3 * tasks
    own = run(4, {"prices": "implied"})
    assert own[0] != digest and "demand_updates" not in own[1]


def test_one_that_shares_with_nobody_places_tasks_as_if_it_shared_not():
    alone, own = run(1, SHARED)[1], run(1, {"prices": "implied"})[1]
    for name, column in own["tasks"].items():
        assert np.array_equal(alone["tasks"][name], column)
    assert not alone["demand_updates"]["tasks"].any()


def test_without_sharing_there_is_no_ledger():
    for options, has_ledger in (({}, False), ({"prices": "implied"}, False), (SHARED, True)):
        spec = arm("diff_block", group(options=options)).seeded(1, 1_000, 100_000, live=False)
        assembly = Assembly.of(spec, generate(OPTIONS, 3))
        assert (CELL_SIDE in assembly.addresses) is has_ledger
        assert (CELL_SIDE in assembly.cell_side(assembly.master().cell)) is has_ledger


class ForgetsToReport(MembershipPrices):
    def take_new(self):
        return super().take_new()[1:]


def test_the_check_of_a_kind_finds_tasks_that_are_not_reported():
    spec = registry.get("membership")
    check_estimator(spec)
    with pytest.raises(NonConformance, match=r"take_new\(\) returns the tasks that were offered"):
        check_estimator(replace(spec, build=ForgetsToReport))


def test_an_agent_asks_once_per_gap_but_for_the_rest_of_an_answer_at_once():
    world = SharedDemandWorld([1, 2, 3], 3, 1)
    exchange = DemandExchange(agent_of(world.environment, 0), world.schedulers[0], 200)
    world.exchanges[0] = exchange
    assert [len(exchange.request(0)), len(exchange.request(100))] == [1, 0]
    nothing = np.zeros(0, np.int64)
    exchange.on_reply(110, DemandReply(0, 0, nothing.astype(np.int32), nothing, nothing))
    assert [len(exchange.request(at_us)) for at_us in (120, 199, 200)] == [0, 0, 1]
    one = np.ones(1, np.int64)
    exchange.on_reply(250, DemandReply(1, 2, one.astype(np.int32), one, one))
    assert [len(exchange.request(at_us)) for at_us in (250, 450)] == [1, 0]
    exchange.on_reply(460, DemandReply(3, 0, 2 * one.astype(np.int32), one, one))
    assert len(exchange.request(460)) == 1, "a gap after the last request"
