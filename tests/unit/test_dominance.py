"""The geometry of frontiers, against closed forms and against the definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.studies.frontiers.build import Box, Place, dominated_area, non_dominated

SHARES = Box(fastest_us=100, slowest_us=10_000_000, best=1, worst=0)

grid = st.integers(0, 12).map(lambda twelfths: twelfths / 10)  # some outside, many equal
places = st.lists(st.tuples(grid, grid), max_size=12)


def dominates(one: Place, other: Place) -> bool:
    return one != other and one[0] <= other[0] and one[1] <= other[1]


@given(places)
def test_a_place_is_kept_if_and_only_if_no_other_dominates_it(points: list[Place]) -> None:
    expected = [not any(dominates(other, point) for other in points) for point in points]
    assert non_dominated(points) == expected


@given(places)
def test_the_area_is_that_of_the_cells_of_a_grid_that_are_dominated(points: list[Place]) -> None:
    middles = (np.arange(10) + 0.5) / 10
    covered = sum(
        any(delay <= x and quality <= y for delay, quality in points)
        for x in middles
        for y in middles
    )
    assert dominated_area(points) == pytest.approx(covered / 100, abs=1e-12)


@given(places, places)
def test_more_points_never_dominate_less_and_dominated_ones_add_nothing(
    points: list[Place], more: list[Place]
) -> None:
    area = dominated_area(points)
    assert dominated_area([*points, *more]) >= area - 1e-12
    kept = [point for point, is_kept in zip(points, non_dominated(points), strict=True) if is_kept]
    assert dominated_area(kept) == pytest.approx(area, abs=1e-12)
    assert dominated_area(points[::-1]) == pytest.approx(area, abs=1e-12)


def test_one_point_dominates_a_rectangle() -> None:
    # 10 ms are two of the box's five decades, so three are left
    place = SHARES.place(10_000, 0.75)
    assert place == pytest.approx((0.4, 0.25))
    assert dominated_area([place]) == pytest.approx(0.6 * 0.75)


def test_a_line_in_the_logarithm_of_the_delay_dominates_half_the_box_in_the_limit() -> None:
    n = 1000
    line = [SHARES.place(100 * 10 ** (5 * k / n), k / n) for k in range(n + 1)]
    assert dominated_area(line) == pytest.approx(0.5, abs=1 / n)
    assert all(non_dominated(line))


def test_delays_shorter_than_the_box_count_as_its_shortest() -> None:
    assert SHARES.place(0, 0.5) == SHARES.place(100, 0.5) == (0, 0.5)


@pytest.mark.parametrize("outside", [(20_000_000.0, 0.9), (1_000.0, 0.0), (1_000.0, -0.1)])
def test_points_outside_the_box_dominate_nothing(outside: Place) -> None:
    assert dominated_area([SHARES.place(*outside)]) == 0
    assert dominated_area([SHARES.place(*outside), SHARES.place(1_000, 0.5)]) == (
        pytest.approx(0.8 * 0.5)
    )


def test_a_cost_is_better_where_it_is_lower() -> None:
    costs = Box(fastest_us=100, slowest_us=10_000_000, best=0, worst=1000)
    assert costs.place(100, 250) == (0, 0.25)
    assert costs.place(100, 2000)[1] > 1


def test_the_area_does_not_depend_on_the_unit_of_the_delay() -> None:
    scaled = Box(fastest_us=0.1, slowest_us=10_000, best=1, worst=0)
    for delay in (1.0, 345.0, 1e6):
        assert math.isclose(
            dominated_area([SHARES.place(delay * 1000, 0.6)]),
            dominated_area([scaled.place(delay, 0.6)]),
        )


@pytest.mark.parametrize("wrong", [(0, 1, 0, 1), (2, 1, 0, 1), (1, 1, 0, 1), (1, 2, 0.5, 0.5)])
def test_a_box_without_area_is_refused(wrong: tuple[float, float, float, float]) -> None:
    with pytest.raises(ValueError, match="box"):
        Box(*wrong)
