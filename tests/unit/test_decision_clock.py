"""Decision clocks: durations, and how many tasks a round cut at the next sync holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from parsync.spec.decision_times import ModelledTime
from schedulers.decision_clock import (
    PRICE_MACHINE_NS,
    Counted,
    Measured,
    Modelled,
    ModelledByClass,
)


def test_modelled_is_linear_in_tasks_and_partitions_and_rounds_up():
    clock = Modelled(job_us=10, task_ns=250_000, partition_ns=1_500)
    assert (
        clock.duration_us(tasks=100, partitions_scanned=2000, operations=7, elapsed_ns=9)
        == 10 + 25_000 + 3_000
    )
    assert clock.duration_us(1, 1, 0, 0) == 10 + 252
    assert clock.duration_us(0, 0, 0, 0) == 10


@given(
    st.integers(0, 500),
    st.integers(1, 10**6),
    st.integers(0, 10**5),
    st.integers(0, 10**6),
    st.integers(1, 80),
)
def test_a_cut_round_holds_the_tasks_whose_decision_begins_before_the_sync(
    job_us, task_ns, partition_ns, window_us, partitions
):
    clock = Modelled(job_us, task_ns, partition_ns)
    held = clock.tasks_within(window_us, partitions)

    def begins_us(nth):
        return clock.job_us + (task_ns + partition_ns * partitions) * nth / 1000

    assert held >= 1
    assert held == 1 or begins_us(held - 1) < window_us
    assert begins_us(held) >= window_us


def test_modelled_decisions_take_time_for_each_machine_that_is_priced_anew():
    clock = Modelled(10, 250_000, 0, price_machine_ns=60)
    assert clock.duration_us(2, 0, 0, 0, 2_000) == 10 + 500 + 120
    for price_machine_ns in (PRICE_MACHINE_NS, 0):
        given = {} if price_machine_ns else {"price_machine_ns": 0}
        made = ModelledTime(task_us=1, **given).make(8)
        assert made == Modelled(0, 1000, 0, price_machine_ns=price_machine_ns)
    for wrong in (-1, 1.5, 1_000_001):
        with pytest.raises(ValidationError, match="price_machine_ns"):
            ModelledTime(task_us=1, price_machine_ns=wrong)
    for other in (Counted(15), Measured()):
        assert other.duration_us(3, 3, 1000, 10, 2_000) == other.duration_us(3, 3, 1000, 10)


def test_free_decisions_are_not_cut():
    assert Modelled(5, 0, 0).tasks_within(100, 20) is None


def test_a_round_takes_the_times_of_the_classes_that_it_is_about():
    fast, slow = Modelled(10, 1_000, 500), Modelled(1_000, 7_000, 2_000)
    clock = ModelledByClass(fast, slow)
    assert clock.by_class_us(5, 0, 40, 3) == fast.duration_us(5, 40, 0, 0, 3)
    assert clock.by_class_us(0, 5, 40, 3) == slow.duration_us(5, 40, 0, 0, 3)
    of_batch, of_service = fast.duration_us(3, 30, 0, 0, 3), slow.duration_us(1, 10, 0, 0)
    assert clock.by_class_us(3, 1, 40, 3) == of_batch + of_service
    assert clock.by_class_us(0, 0, 0, 0) == fast.job_us
    assert clock.tasks_within(10**9, 1) is None


def test_counted_and_measured():
    assert Counted(15).duration_us(3, 3, 1001, 10**9) == 16
    assert Measured().duration_us(3, 3, 1001, 1_000_001) == 1001
    assert Counted(1).tasks_within(10, 1) is None and Measured().tasks_within(10, 1) is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: Modelled(-1, 0, 0),
        lambda: Modelled(0, -1, 0),
        lambda: Modelled(0, 0, -1),
        lambda: Modelled(0, 0, 0, price_machine_ns=-1),
        lambda: Counted(0),
    ],
)
def test_impossible_times_are_refused(make):
    with pytest.raises(ValueError, match="expected"):
        make()
