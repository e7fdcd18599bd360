"""The rule by which a live run is disturbed, and the measurements that it rests on."""

from __future__ import annotations

import numpy as np
import pytest

from parsync.core.addresses import ARRIVALS, MASTER, WORKERS
from parsync.metrics.kinds.validity import Cause, Validity, validity
from parsync.metrics.record import Record, Table
from parsync.metrics.tables import ACTORS, TABLES
from parsync.runtime.live.meters import LoadMeter, p95

SECONDS = 60
NAMES = {0: "schedulers-0", 1: "schedulers-1"}


def rows(seconds: int = SECONDS, actors: tuple[int, ...] = (0, 1, MASTER, WORKERS)) -> Table:
    """A quiet run: decisions of 5 ms, half a millisecond late."""
    quiet = {"length_us": 1_000_000, "cpu_us": 200_000, "ticks": 40, "decisions": 20}
    quiet |= {"decision_us": 100_000, "late_p95_us": 500, "lag_p95_us": 300, "steps": 40}
    n = seconds * len(actors)
    table = {
        name: np.full(n, quiet.get(name, 0), dtype) for name, dtype in TABLES["actors"].items()
    }
    table["at_us"] = np.repeat(np.arange(seconds) * 1_000_000 + 7, len(actors))
    table["actor"] = np.tile(np.array(actors, np.int32), seconds)
    for name in ("decisions", "decision_us"):
        table[name][table["actor"] < 0] = 0
    return table


def change(table: Table, actor: int, seconds: list[int], **values: int) -> None:
    of = (table["actor"] == actor) & np.isin(table["at_us"] // 1_000_000, seconds)
    for name, value in values.items():
        table[name][of] = value


def test_a_quiet_run_is_valid() -> None:
    found = validity(rows(), NAMES)
    assert not found.is_disturbed and found.disturbed == [] and found.text == ""
    assert found.seconds == SECONDS
    assert [load.actor for load in found.actors] == [*NAMES.values(), "cell", "workers"]
    assert found.actors[0].cpu_permille == 200


def test_nothing_is_known_of_a_run_without_measurements() -> None:
    found = validity({}, NAMES)
    assert found.seconds == 0 and not found.is_disturbed


@pytest.mark.parametrize(("late_seconds", "disturbed"), [([5], False), ([5, 9], True)])
def test_two_late_seconds_of_a_minute_disturb_it_and_one_does_not(
    late_seconds: list[int], disturbed: bool
) -> None:
    table = rows()
    change(table, 1, late_seconds, late_p95_us=9_000)
    found = validity(table, NAMES)
    assert found.disturbed == late_seconds
    assert found.is_disturbed == disturbed
    (one,) = found.disturbances
    assert (one.actor, one.cause, one.worst, one.limit) == (
        "schedulers-1",
        Cause.LATENESS,
        9_000,
        2_000,
    )
    assert "schedulers-1 was up to 9 ms late" in found.text


def test_two_seconds_of_two_hundred_do_not_disturb_a_run() -> None:
    table = rows(200)
    change(table, 0, [5, 6], late_p95_us=9_000)
    assert not validity(table, NAMES).is_disturbed
    change(table, 0, [7, 50, 60], late_p95_us=9_000)
    found = validity(table, NAMES)
    assert found.is_disturbed and "seconds 5-7, 50, 60" in found.text


@pytest.mark.parametrize(
    ("decision_us", "late_us", "exceeds"),
    [(5_000, 2_000, False), (5_000, 2_001, True), (80_000, 8_000, False), (80_000, 8_001, True)],
)
def test_a_decision_may_be_late_by_two_milliseconds_or_a_tenth_of_it(
    decision_us: int, late_us: int, exceeds: bool
) -> None:
    table = rows()
    change(table, 0, [3, 4], decision_us=20 * decision_us, late_p95_us=late_us)
    assert validity(table, NAMES).is_disturbed == exceeds


def test_an_actor_without_decisions_is_held_to_those_of_the_run() -> None:
    table = rows()
    for host in NAMES:
        change(table, host, list(range(SECONDS)), decision_us=20 * 60_000)
    change(table, WORKERS, [3, 4], late_p95_us=5_000)
    assert not validity(table, NAMES).is_disturbed
    change(table, WORKERS, [3, 4], late_p95_us=7_000)
    assert validity(table, NAMES).is_disturbed


def test_messages_disturb_if_they_grow_and_not_if_they_come_and_go() -> None:
    table = rows()
    for second in range(SECONDS):
        change(table, MASTER, [second], unhandled=second % 2)
    assert validity(table, NAMES).disturbed == []
    for second in range(10, 20):
        change(table, MASTER, [second], unhandled=100 * second)
    found = validity(table, NAMES)
    assert found.is_disturbed and found.disturbances[0].cause is Cause.UNHANDLED
    assert set(range(11, 20)) <= set(found.disturbed)


def test_measured_decisions_may_wait_a_tenth_for_a_processor() -> None:
    table = rows()
    change(table, 0, [3, 4], measured_cpu_us=100_000, measured_wall_us=110_000)
    assert not validity(table, NAMES).is_disturbed
    change(table, 0, [3, 4], measured_wall_us=110_001)
    found = validity(table, NAMES)
    assert found.is_disturbed and found.disturbances[0].cause is Cause.WAITING


def test_what_is_read_back_is_what_was_written() -> None:
    table = rows()
    change(table, 0, [3, 4], late_p95_us=9_000)
    found = validity(table, NAMES)
    assert Validity.model_validate_json(found.model_dump_json()) == found


def test_the_actors_of_the_table_have_the_addresses_of_their_participants() -> None:
    assert set(ACTORS) == {MASTER, WORKERS, ARRIVALS}


def test_a_meter_records_one_row_per_second() -> None:
    records: list[Record] = []
    cpu_ns = iter([0, 0, 300_000_000, 350_000_000])
    meter = LoadMeter(3, records.append, lambda: next(cpu_ns))
    meter.sample(-5)
    meter.sample(0)
    for late_us in (100, 3_000, -2):
        meter.tick(late_us)
    meter.decision(40, 5_000)
    meter.step(700)
    meter.step(900)
    meter.slept(60)
    meter.unhandled(4)
    meter.unhandled(2)
    meter.computed(2_000_000, 1_500_000)
    meter.sample(999_999)
    assert records == []
    meter.sample(1_002_000)
    (record,) = records
    row = {name: int(column[0]) for name, column in record.columns.items()}
    assert record.table == "actors" and set(row) == set(TABLES["actors"])
    assert row == {
        "at_us": 0,
        "actor": 3,
        "length_us": 1_002_000,
        "cpu_us": 300_000,
        "ticks": 3,
        "late_ticks": 1,
        "decisions": 1,
        "decision_us": 5_000,
        "late_p95_us": 3_000,
        "lag_p95_us": 60,
        "steps": 2,
        "step_mean_us": 800,
        "step_p95_us": 900,
        "unhandled": 2,
        "measured_wall_us": 2_000,
        "measured_cpu_us": 1_500,
    }
    meter.sample(2_001_000)
    assert len(records) == 1, "a second that is not over"


def test_the_95th_percentile_is_what_one_in_twenty_exceeds() -> None:
    assert p95([]) == 0
    assert p95([7]) == 7
    assert p95(list(range(19))) == 18
    assert p95(list(range(20))) == 18
    assert p95(list(range(100))) == 94
