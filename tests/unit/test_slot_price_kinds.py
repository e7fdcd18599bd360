"""Every registered kind of slot prices keeps its contract, the check finds kinds that do not, and
other packages can bring kinds of their own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from schedulers.conformance import NonConformance
from schedulers.entry_points import NoOptions
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


class Fair:
    """Counts tasks; the price of every machine is that count. `spoilt` breaks one promise."""

    def __init__(self, environment):
        self.shape = environment.cell.capacity.shape
        self.catalog = environment.catalog
        self.seen, self.count, self.requests = set(), 0, []
        self.operations = self.last_us = 0
        self.last = None

    def offered(self, task, preference, request):
        self.seen.update(task.tolist())
        self.count += len(task)
        self.requests.append(request)

    def column(self, number):
        return np.full((self.shape[0], 1), number, np.int64)

    def made(self):
        return self.column(len(self.seen))

    def update(self, view, now_us):
        price = self.made()
        if self.last is None or not np.array_equal(price, self.last.price):
            machines, dimensions = (np.ones(n, np.int64) for n in self.shape)
            self.last = SlotPrices(price, machines, dimensions)
        return self.last


def spec_of(estimator):
    return SlotPriceSpec("tested", NoOptions, lambda options, environment: estimator(environment))


def making(made):
    """An estimator that makes other prices: made(estimator)."""
    return type("Making", (Fair,), {"made": made})


def updating(before):
    """An estimator that does something first: before(estimator, view, now_us)."""

    def update(self, view, now_us):
        found = before(self, view, now_us)
        return Fair.update(self, view, now_us) if found is None else found

    return type("Updating", (Fair,), {"update": update})


def new_objects(self, view, now_us):
    self.last = None


def new_objects_at_new_times(self, view, now_us):
    if now_us > self.last_us:
        self.last, self.last_us = None, now_us


def claims_room(self, view, now_us):
    room = np.flatnonzero((view.free > 0).all(axis=1))[:1].astype(np.int32)
    view.claim(room, np.ones((len(room), self.shape[1]), np.int64))


def working(operations):
    return updating(lambda self, view, now_us: setattr(self, "operations", operations()))


NUMBERS = itertools.count()
PRICE = r"price: expected int64\[24, 1\], got"


def test_the_check_passes_who_keeps_the_contract():
    check_estimator(spec_of(Fair))


@pytest.mark.parametrize(
    ("estimator", "promise"),
    [
        (making(lambda self: self.column(self.count)), "a task that is offered again counts once"),
        (
            making(lambda self: self.column(sum(int(a.sum()) for a in self.requests[:1]))),
            r"arrays given to offered\(\) may change",
        ),
        (
            making(lambda self: self.column(int(self.catalog.elsewhere_cost.sum()))),
            "prices do not depend on the sets of tasks to come",
        ),
        (updating(new_objects), "at the same time returns the same object"),
        (updating(new_objects_at_new_times), "returns the object that it returned before unless"),
        (making(lambda self: Fair.made(self) - 40), "price: expected 0 or more, got -10"),
        (
            making(lambda self: self.column(5) - np.array([0, 2])),
            "expected columns that never fall, got 5 and then 3 for machine 0",
        ),
        (making(lambda self: Fair.made(self).astype(np.int32)), rf"{PRICE} int32\[24, 1\]"),
        (making(lambda self: Fair.made(self)[1:]), rf"{PRICE} int64\[23, 1\]"),
        (making(lambda self: Fair.made(self)[:, :0]), rf"{PRICE} int64\[24, 0\]"),
        (updating(lambda self, *_: [0] * 24), "expected SlotPrices, got a list"),
        (updating(claims_room), "leaves the view as it found it"),
        (
            making(lambda self: self.column(next(NUMBERS))),
            "a task that is offered again|same time",
        ),
        (working(lambda: next(NUMBERS)), "counted work is a function"),
        (working(lambda: -1), "operations: expected an integer of at least 0, got -1"),
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
