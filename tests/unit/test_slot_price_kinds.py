"""Every registered kind of slot prices keeps its contract, the check finds kinds that do not, and
other packages can bring kinds of their own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pydantic import BaseModel, ConfigDict

from schedulers.conformance import NonConformance
from schedulers.interface import SchedulerEnvironment
from schedulers.prices import registry
from schedulers.prices.conformance import check_estimator
from schedulers.prices.interface import SlotPrices
from schedulers.prices.registry import PriceOptions, SlotPriceSpec
from shared_state.errors import AgoraError
from tests.fixtures.installed import install
from tests.price_world import PriceWorld, catalog_of, cell_of


@pytest.mark.parametrize("kind", registry.kinds())
@pytest.mark.parametrize("seed", range(3))
def test_registered_kinds_conform(kind, seed):
    check_estimator(registry.get(kind), seed=seed)
    check_estimator(registry.get(kind), {"update_s": 1.0}, seed=seed)


# The guide's example: what a third party writes, whole.
OWN_PRICES = '''
"""The price of a machine's next slot: the saving of the task offered last that lists it."""

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from schedulers.prices.interface import SlotPrices
from schedulers.prices.registry import SlotPriceSpec


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")
    divisor: int = Field(1, ge=1)


class LastSaving:
    def __init__(self, options, environment):
        self.divisor = options.divisor
        self.catalog = environment.catalog
        machines, dimensions = environment.cell.capacity.shape
        self.saving = np.zeros(machines, np.int64)
        self.dimensions = dimensions
        self.operations = 0
        self.prices = None

    def offered(self, task, preference, request):
        before = self.saving.copy()
        for k in preference:
            begin, end = self.catalog.machine_offsets[k : k + 2]
            listed = self.catalog.machine[begin:end]
            saving = self.catalog.elsewhere_cost[k] - self.catalog.machine_cost[begin:end]
            self.saving[listed] = np.maximum(self.saving[listed], saving // self.divisor)
        if not np.array_equal(before, self.saving):
            self.prices = None

    def update(self, view, now_us):
        self.operations = 0
        if self.prices is None:
            self.operations = len(self.saving)
            self.prices = SlotPrices(
                price=self.saving[:, None].copy(),  # one level: whatever is busy
                slots=np.zeros_like(self.saving),
                unit=np.zeros(self.dimensions, np.int64),
            )
        return self.prices


SPEC = SlotPriceSpec("last_saving", Options, LastSaving)
'''
GROUP = registry.ENTRY_POINTS


def environment_of(capacity, sets):
    return SchedulerEnvironment(
        "tested", cell_of(capacity), np.array([0, len(capacity)]), catalog_of(sets)
    )


def test_a_third_party_kind_is_found_and_conforms(tmp_path, monkeypatch):
    install(
        tmp_path,
        "last_saving",
        "third_party_prices:SPEC",
        {"third_party_prices.py": OWN_PRICES},
        group=GROUP,
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert "last_saving" in registry.kinds()
    spec = registry.get("last_saving")
    check_estimator(spec)
    check_estimator(spec, {"divisor": 3})
    with pytest.raises(AgoraError, match="'last_saving', option 'divisor'"):
        spec.parse_options({"divisor": 0})
    world = PriceWorld("last_saving", [2, 2], [(90, {0: 20})], divisor=2)
    world.offer([1])
    assert world.price() == [[35], [0]]
    options = PriceOptions(prices="last_saving", price_options={"divisor": 2})
    estimator = options.estimator(environment_of([2], [(90, {0: 20})]))
    assert estimator is not None and estimator.kind == "last_saving"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("SPEC = 3\n", "odd:SPEC is not a SlotPriceSpec of that kind"),
        ("import nowhere_at_all\n", "cannot load odd:SPEC: No module named 'nowhere_at_all'"),
        (
            "from schedulers.prices.registry import SlotPriceSpec\n"
            "SPEC = SlotPriceSpec('odd', dict, print)\n",
            "field options: expected a BaseModel, got a type",
        ),
        (
            "from pydantic import BaseModel\n"
            "from schedulers.prices.registry import SlotPriceSpec\n"
            "SPEC = SlotPriceSpec('odd', BaseModel, None)\n",
            "field build: expected a callable, got a NoneType",
        ),
    ],
)
def test_broken_entry_points_are_refused(tmp_path, monkeypatch, source, message):
    monkeypatch.delitem(__import__("sys").modules, "odd", raising=False)
    install(tmp_path, "odd", "odd:SPEC", {"odd.py": source}, group=GROUP)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AgoraError, match=message):
        registry.get("odd")


def test_an_unknown_kind_is_named_and_the_known_ones_listed():
    with pytest.raises(
        AgoraError,
        match=r"slot prices 'implid' \(did you mean 'implied'\?\); known: demand, fluid, implied, ",
    ):
        registry.get("implid")


class Nothing(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Fair:
    """Counts tasks; the price of every machine is that count. Subclasses break one promise."""

    def __init__(self, environment):
        self.shape = environment.cell.capacity.shape
        self.catalog = environment.catalog
        self.seen = set()
        self.operations = 0
        self.last = None

    def offered(self, task, preference, request):
        self.seen.update(task.tolist())

    def made(self):
        return np.full((self.shape[0], 1), len(self.seen), np.int64)

    def update(self, view, now_us):
        price = self.made()
        if self.last is None or not np.array_equal(price, self.last.price):
            self.last = SlotPrices(
                price, np.ones(self.shape[0], np.int64), np.ones(self.shape[1], np.int64)
            )
        return self.last


class CountsRetries(Fair):
    count = 0

    def offered(self, task, preference, request):
        self.count += len(task)

    def made(self):
        return np.full((self.shape[0], 1), self.count, np.int64)


class KeepsArrays(Fair):
    arrays: tuple = ()

    def offered(self, task, preference, request):
        self.arrays = (*self.arrays, request)

    def made(self):
        return np.full((self.shape[0], 1), sum(int(a.sum()) for a in self.arrays[:1]), np.int64)


class ReadsTheFuture(Fair):
    def made(self):
        return np.full((self.shape[0], 1), int(self.catalog.elsewhere_cost.sum()), np.int64)


class NewObjects(Fair):
    def update(self, view, now_us):
        self.last = None
        return super().update(view, now_us)


class NewObjectsAtNewTimes(Fair):
    now_us = 0

    def update(self, view, now_us):
        if now_us > self.now_us:
            self.last, self.now_us = None, now_us
        return super().update(view, now_us)


class Negative(Fair):
    def made(self):
        return super().made() - 40


class Falling(Fair):
    def made(self):
        return np.tile(np.array([5, 3], np.int64), (self.shape[0], 1))


class Narrow(Fair):
    def made(self):
        return super().made().astype(np.int32)


class TooFew(Fair):
    def made(self):
        return super().made()[1:]


class NoLevels(Fair):
    def made(self):
        return np.zeros((self.shape[0], 0), np.int64)


class Lists(Fair):
    def update(self, view, now_us):
        return [0] * self.shape[0]


class ClaimsRoom(Fair):
    def update(self, view, now_us):
        room = np.flatnonzero((view.free > 0).all(axis=1))[:1].astype(np.int32)
        view.claim(room, np.ones((len(room), self.shape[1]), np.int64))
        return super().update(view, now_us)


NUMBERS = itertools.count()


class Moody(Fair):
    def made(self):
        return np.full((self.shape[0], 1), next(NUMBERS), np.int64)


class MoodyWork(Fair):
    def update(self, view, now_us):
        self.operations = next(NUMBERS)
        return super().update(view, now_us)


class NegativeWork(Fair):
    def update(self, view, now_us):
        self.operations = -1
        return super().update(view, now_us)


def spec_of(estimator):
    return SlotPriceSpec("tested", Nothing, lambda options, environment: estimator(environment))


def test_the_check_passes_who_keeps_the_contract():
    check_estimator(spec_of(Fair))


@pytest.mark.parametrize(
    ("estimator", "promise"),
    [
        (CountsRetries, "a task that is offered again counts once"),
        (KeepsArrays, r"arrays given to offered\(\) may change"),
        (ReadsTheFuture, "prices do not depend on the sets of tasks to come"),
        (NewObjects, "at the same time returns the same object"),
        (NewObjectsAtNewTimes, "returns the object that it returned before unless"),
        (Negative, "price: expected 0 or more, got -10"),
        (Falling, "expected columns that never fall, got 5 and then 3 for machine 0"),
        (Narrow, r"price: expected int64\[24, 1\], got int32\[24, 1\]"),
        (TooFew, r"price: expected int64\[24, 1\], got int64\[23, 1\]"),
        (NoLevels, r"price: expected int64\[24, 1\], got int64\[24, 0\]"),
        (Lists, "expected SlotPrices, got a list"),
        (ClaimsRoom, "leaves the view as it found it"),
        (Moody, "a task that is offered again|same time"),
        (MoodyWork, "counted work is a function"),
        (NegativeWork, "operations: expected an integer of at least 0, got -1"),
    ],
)
def test_broken_estimators_are_found_out(estimator, promise):
    with pytest.raises(NonConformance, match=rf"{promise}.* \([12] dimensions?, round \d+\)"):
        check_estimator(spec_of(estimator))


def test_a_run_refuses_broken_prices_and_names_the_kind(tmp_path, monkeypatch):
    broken = OWN_PRICES.replace("self.saving[:, None].copy()", "-1 - self.saving[:, None]")
    install(
        tmp_path, "last_saving", "broken_prices:SPEC", {"broken_prices.py": broken}, group=GROUP
    )
    monkeypatch.syspath_prepend(tmp_path)
    world = PriceWorld("last_saving", [2], [(90, {0: 20})])
    estimator = PriceOptions(prices="last_saving").estimator(environment_of([2], [(90, {0: 20})]))
    with pytest.raises(AgoraError, match=r"^slot prices 'last_saving': price: expected 0"):
        estimator.update(world.view, 0)
