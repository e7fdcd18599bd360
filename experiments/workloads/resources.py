"""The resources of generated cells, one or several dimensions: what machines have and tasks
request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field

from experiments.workloads.draws import draw, draw_below
from parsync.strict_model import Strict
from shared_state.cell import MAX_CAPACITY
from shared_state.random import Stream, stream_key
from shared_state.tasks import Int64

MAX_WEIGHT = 1_000_000


def _range(given: Any) -> Any:
    """An amount as the range that holds nothing else."""
    if isinstance(given, int) and not isinstance(given, bool):
        return (given, given)
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise ValueError("expected an amount, or [least, most]")
    if all(type(amount) is int for amount in given) and given[0] > given[1]:
        raise ValueError(f"expected [least, most], got [{given[0]}, {given[1]}]")
    return tuple(given)


Dimension = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,40}$")]
Amount = Annotated[int, Field(ge=0, le=MAX_CAPACITY)]
AmountRange = Annotated[tuple[Amount, Amount], BeforeValidator(_range)]
Weight = Annotated[int, Field(ge=1, le=MAX_WEIGHT)]


class MachineType(Strict):
    """A type of machine.

    Attributes:
        weight: Its share of the machines, relative to the other types'.
    """

    capacity: dict[Dimension, Amount] = Field(min_length=1, max_length=8)
    weight: Weight = 1


class TaskShape(Strict):
    """A kind of request.

    Attributes:
        request: For each dimension an amount, or [least, most] to draw from uniformly; 0: the
            tasks use machines that have none of it, too.
        weight: The share of such tasks, relative to the other shapes'.
    """

    request: dict[Dimension, AmountRange] = Field(min_length=1, max_length=8)
    weight: Weight = 1


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of a generated cell.

    Args:
        dimensions: names of the R dimensions.
        capacity: int64[T, R] of the machine types.
        machines: how many machines of each type, T numbers.
        least, most: int64[S, R] of the task shapes, inclusive.
        weights: int64[S], cumulative weights of the shapes.
    """

    dimensions: tuple[str, ...]
    capacity: Int64
    machines: tuple[int, ...]
    least: Int64
    most: Int64
    weights: Int64

    @staticmethod
    def of(machines: int, types: Sequence[MachineType], shapes: Sequence[TaskShape]) -> Resources:
        """The resources of a cell of so many machines.

        Raises:
            ValueError: types and shapes differ in their dimensions, a type has nothing, or a shape
                may ask for nothing or be larger than every machine.
        """
        dimensions = tuple(types[0].capacity)
        for number, of_type in enumerate(types):
            _check_dimensions(f"machine_types.{number}", of_type.capacity, dimensions)
            if not any(of_type.capacity.values()):
                raise ValueError(f"machine_types.{number}: expected some of a resource, got none")
        for number, shape in enumerate(shapes):
            _check_dimensions(f"task_shapes.{number}", shape.request, dimensions)
            if not any(least for least, _ in shape.request.values()):
                raise ValueError(
                    f"task_shapes.{number}: some tasks would ask for nothing; "
                    "expected at least 1 of some resource"
                )
        counts = _shares(machines, [of_type.weight for of_type in types])
        capacity = np.array([[t.capacity[d] for d in dimensions] for t in types], np.int64)
        ranges = np.array([[s.request[d] for d in dimensions] for s in shapes], np.int64)
        present = capacity[np.array(counts) > 0]
        for number, most in enumerate(ranges[:, :, 1]):
            if not (most <= present).all(axis=1).any():
                raise ValueError(f"task_shapes.{number}: larger than every machine")
        weights = np.cumsum([shape.weight for shape in shapes], dtype=np.int64)
        least, most = ranges[:, :, 0], ranges[:, :, 1]
        return Resources(dimensions, capacity, counts, least, most, weights)

    def totals(self) -> dict[str, int]:
        """The capacity of the cell, by dimension."""
        return {
            name: sum(count * int(of_type[place]) for count, of_type in self._types())
            for place, name in enumerate(self.dimensions)
        }

    def tasks_at_once(self) -> tuple[str, Fraction]:
        """The tightest dimension, and how many mean requests the cell holds of it at once."""
        totals = self.totals()
        parts = np.diff(self.weights, prepend=0).tolist()
        held = {}
        for place, name in enumerate(self.dimensions):
            both_ends = (self.least[:, place] + self.most[:, place]).tolist()
            asked = sum(part * ends for part, ends in zip(parts, both_ends, strict=True))
            if asked == 0:  # no task wants any
                continue
            held[name] = Fraction(totals[name] * 2 * sum(parts), asked)
        tightest = min(held, key=lambda name: held[name])
        return tightest, held[tightest]

    def machine_capacity(self, seed: int) -> Int64:
        """The capacity of the machines in topology order, int64[M, R]."""
        of_machine = np.repeat(np.arange(len(self.machines)), self.machines)
        if len(self.machines) > 1:
            stream = Stream(stream_key(seed, "workload/machine_type"))
            order = np.argsort(stream.integers(len(of_machine), 1 << 62), kind="stable")
            of_machine = of_machine[order]
        return np.ascontiguousarray(self.capacity[of_machine])

    def requests(self, n: int, seed: int) -> Int64:
        """The requests of n tasks, int64[n, R]; a read-only broadcast that takes no memory if all
        are alike."""
        if len(self.weights) == 1 and np.array_equal(self.least, self.most):
            return np.broadcast_to(self.least, (n, len(self.dimensions)))
        shape = np.zeros(n, np.int64)
        if len(self.weights) > 1:
            shape = draw(Stream(stream_key(seed, "workload/task_shape")), self.weights, n)
        request = self.least[shape]
        for place in range(len(self.dimensions)):
            spread = self.most[:, place] - self.least[:, place]
            if spread.any():
                stream = Stream(stream_key(seed, "workload/request", place))
                request[:, place] += draw_below(stream, spread[shape] + 1)
        return request

    def check_gang(self, tasks: int) -> None:
        """Raise ValueError if no gang of so many tasks fits the cell."""
        for place, (name, total) in enumerate(self.totals().items()):
            if tasks * int(self.least[:, place].min()) > total:
                raise ValueError(
                    f"batch_tasks: a gang of {tasks:,} tasks does not fit the cell, "
                    f"of {total:,} {name} in all"
                )

    def facts(self) -> dict[str, int | float | str]:
        """What the report says: which dimension the load is of, where there are several."""
        return {"load_percent_of": self.tasks_at_once()[0]} if len(self.dimensions) > 1 else {}

    def _types(self) -> list[tuple[int, Int64]]:
        return list(zip(self.machines, self.capacity, strict=True))


def _check_dimensions(place: str, amounts: Mapping[str, object], dimensions: Sequence[str]) -> None:
    """Raise ValueError unless there is an amount of each dimension and of no other."""
    if set(amounts) != set(dimensions):
        expected, got = ", ".join(dimensions), ", ".join(amounts)
        raise ValueError(f"{place}: expected amounts of {expected}, got {got}")


def _shares(whole: int, weights: Sequence[int]) -> tuple[int, ...]:
    """The whole divided in proportion to the weights; what is left over goes to the largest
    remainders, the first of equal ones."""
    total = sum(weights)
    shares = [whole * weight // total for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda i: -(whole * weights[i] % total))
    for i in by_remainder[: whole - sum(shares)]:
        shares[i] += 1
    return tuple(shares)
