"""What a sweep found out: sweep.json, from which its page is made, and points.parquet, a row for
each run with its parameters and every figure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import model_validator

from experiments.analysis.model_files import writing
from experiments.analysis.statistics import (
    Difference,
    Interval,
    Value,
    median_interval,
    paired_difference,
)
from experiments.analysis.summary_model import FORMAT, Version
from experiments.config.decision_basis import DecisionBasis, basis_text, by_basis
from experiments.config.price_settings import prices_of_arm
from experiments.files import whole_file
from experiments.report.data_dictionary import UNITS
from experiments.studies.sweeps.looks import KnownDifference, Target, look
from experiments.studies.sweeps.sweep_file import (
    Combination,
    PlainValue,
    Sweep,
    parameter_labels,
    plain_value,
)
from parsync.metrics.quantity import Count, Figures, Quantity
from parsync.metrics.summary import ScopeFigures

SWEEP = "sweep.json"


class SweptParameter(Figures):
    """A parameter.

    Attributes:
        path: Where it stands in the configuration.
        label: The shortest end of the path that no other parameter has.
        values: What it is set to, each once, in order.
        axis: Parameters whose values go together have the same one.
    """

    path: str
    label: str
    values: list[PlainValue]
    axis: Count


class ArmComparison(Figures):
    """An arm compared with a baseline.

    Attributes:
        baseline: The arm that it is compared with.
        differences: To the baseline, paired by seed, by quantity.
        known: The difference that `until` asks for, at the last look.
    """

    baseline: str
    differences: dict[str, Difference]
    known: KnownDifference | None


class ArmResult(Figures):
    """An arm at a combination.

    Attributes:
        basis: What its delays rest on.
        prices: Its slot prices, in words; "" if it has none.
        figures: Medians over the seeds, by quantity.
        comparisons: With each baseline that it may be compared with, in the sweep's order. Of two
            baselines the second is compared with the first.
    """

    name: str
    basis: DecisionBasis
    prices: str
    figures: dict[str, Interval]
    comparisons: list[ArmComparison]


class CombinationResult(Figures):
    """One choice of a value for each parameter.

    Attributes:
        values: In the order of the parameters.
        seeds: Those that all its arms have run.
    """

    values: list[PlainValue]
    seeds: list[int]
    arms: list[ArmResult]


class SweepSummary(Figures):
    """A sweep.

    Attributes:
        version: The version of Agora that ran it.
        partial: Why it did not get to its end, "" if it did.
        metrics: The quantities that it is about, by their keys, at least one.
        until: What `until` asks for, "" if nothing.
        seeds_vary: What a seed draws of the workloads, in sentences; "" if that is not known.
        runs: How many runs there were. Combinations that are alike share a run, so points.parquet
            may have more rows.
    """

    format: Version = FORMAT
    name: str
    version: str
    partial: str
    metrics: list[str]
    until: str
    seeds_vary: str
    runs: Count
    arms: list[str]
    parameters: list[SweptParameter]
    quantities: list[Quantity]
    combinations: list[CombinationResult]

    @model_validator(mode="after")
    def _check(self) -> Self:
        for number, one in enumerate(self.combinations):
            if len(one.values) != len(self.parameters):
                raise ValueError(f"combinations[{number}].values: expected one per parameter")
        return self

    def quantity(self, key: str) -> Quantity:
        """The quantity of a key that the sweep has."""
        return next(one for one in self.quantities if one.key == key)

    def sets(self) -> list[list[str]]:
        """The arms in sets of which any two may be compared at every combination."""
        signatures: dict[tuple[int, ...], list[str]] = {}
        partitions = [
            by_basis([(arm.name, arm.basis) for arm in one.arms]) for one in self.combinations
        ]
        for name in self.arms:
            signature = tuple(
                next(place for place, names in enumerate(partition) if name in names)
                for partition in partitions
            )
            signatures.setdefault(signature, []).append(name)
        return list(signatures.values())


Runs = Mapping[tuple[int, str], Mapping[int, ScopeFigures]]  # by combination and arm: by seed


def summarise_sweep(
    sweep: Sweep,
    bases: Mapping[tuple[int, str], DecisionBasis],
    quantities: Sequence[Quantity],
    runs: Runs,
    distinct_runs: int,
    version: str,
    partial: str,
) -> SweepSummary:
    """The summary of the runs that are done.

    Args:
        bases: Of each arm at each combination.
        quantities: That any arm has.
        runs: The figures of each run.
        distinct_runs: How many runs there were; combinations that are alike share a run.
        version: Of Agora.
        partial: Why not all are done, "" if they are.
    """
    return SweepSummary(
        name=sweep.section.name,
        version=version,
        partial=partial,
        metrics=list(sweep.section.metric),
        until=sweep.section.until or "",
        seeds_vary=" ".join(
            dict.fromkeys(one.config.workload.seeds_vary() for one in sweep.combinations)
        ),
        runs=distinct_runs,
        arms=[arm.name for arm in sweep.combinations[0].config.arms],
        parameters=swept_parameters(sweep),
        quantities=list(quantities),
        combinations=[
            _combination(sweep, one, bases, quantities, runs) for one in sweep.combinations
        ],
    )


def swept_parameters(sweep: Sweep) -> list[SweptParameter]:
    """The parameters of a sweep, with labels as short as they can be."""
    labels = parameter_labels([one.path for one in sweep.parameters])
    return [
        SweptParameter(
            path=str(one),
            label=label,
            values=[plain_value(value) for value in one.values],
            axis=axis,
        )
        for one, label, axis in zip(sweep.parameters, labels, sweep.axes, strict=True)
    ]


def compared_arms(
    combination: Combination,
    bases: Mapping[tuple[int, str], DecisionBasis],
    baselines: Sequence[str],
) -> list[tuple[str, str]]:
    """The pairs (arm, baseline) that are compared in a combination: each arm with the baselines
    among those that it may be compared with, or with the first of them if none is a baseline.
    A baseline is compared with those before it."""
    names = [arm.name for arm in combination.config.arms]
    sets = by_basis([(name, bases[combination.number, name]) for name in names])
    pairs = []
    for members in sets:
        its = [name for name in baselines if name in members] or members[:1]
        for name in members:
            before = its[: its.index(name)] if name in its else its
            pairs += [(name, baseline) for baseline in before]
    return pairs


def looked_at(
    sweep: Sweep,
    combination: Combination,
    bases: Mapping[tuple[int, str], DecisionBasis],
    quantity: Quantity,
    target: Target,
    runs: Runs,
) -> dict[tuple[str, str], KnownDifference]:
    """What is known of the differences that `until` asks for, by arm and baseline."""
    compared = compared_arms(combination, bases, sweep.section.baseline)
    seeds = common_seeds(combination, runs)

    def values(name: str) -> list[Value]:
        its = runs.get((combination.number, name), {})
        # the difference to a lower bound may be anything
        return [
            None if its[seed].is_bound(quantity.key) else its[seed].value(quantity.key)
            for seed in seeds
        ]

    return {
        (name, baseline): look(values(name), values(baseline), quantity.unit, target, len(compared))
        for name, baseline in compared
    }


def common_seeds(combination: Combination, runs: Runs) -> list[int]:
    """The seeds that all arms of a combination have run."""
    seeds = [set(runs.get((combination.number, arm.name), {})) for arm in combination.config.arms]
    return sorted(set.intersection(*seeds))


def _combination(
    sweep: Sweep,
    combination: Combination,
    bases: Mapping[tuple[int, str], DecisionBasis],
    quantities: Sequence[Quantity],
    runs: Runs,
) -> CombinationResult:
    seeds = common_seeds(combination, runs)
    compared = compared_arms(combination, bases, sweep.section.baseline)
    known: Mapping[tuple[str, str], KnownDifference] = {}
    target = sweep.target
    if target is not None:
        metric = sweep.first_metric(quantities)
        known = looked_at(sweep, combination, bases, metric, target, runs)
    arms = []
    for arm in combination.config.arms:
        its = _rows(combination, arm.name, seeds, runs)
        arms.append(
            ArmResult(
                name=arm.name,
                basis=bases[combination.number, arm.name],
                prices=prices_of_arm(arm),
                figures={one.key: _median(its, one) for one in quantities},
                comparisons=[
                    ArmComparison(
                        baseline=baseline,
                        differences=_differences(
                            its, _rows(combination, baseline, seeds, runs), quantities
                        ),
                        known=known.get((name, baseline)),
                    )
                    for name, baseline in compared
                    if name == arm.name
                ],
            )
        )
    return CombinationResult(
        values=[plain_value(value) for value in combination.values], seeds=seeds, arms=arms
    )


def _rows(
    combination: Combination, name: str, seeds: Sequence[int], runs: Runs
) -> list[ScopeFigures]:
    its = runs.get((combination.number, name), {})
    return [its[seed] for seed in seeds]


def _differences(
    its: Sequence[ScopeFigures], others: Sequence[ScopeFigures], quantities: Sequence[Quantity]
) -> dict[str, Difference]:
    """What an arm has more than its baseline, seed by seed, by quantity."""
    return {
        one.key: paired_difference(
            [row.value(one.key) for row in its],
            [row.value(one.key) for row in others],
            at_least=any(row.is_bound(one.key) for row in its),
            at_most=any(row.is_bound(one.key) for row in others),
        )
        for one in quantities
    }


def _median(rows: Sequence[ScopeFigures], quantity: Quantity) -> Interval:
    bound = any(row.is_bound(quantity.key) for row in rows)
    return median_interval([row.value(quantity.key) for row in rows], at_least=bound)


POINTS = "points.parquet"


@dataclass(frozen=True, slots=True)
class Row:
    """A run.

    Attributes:
        combination: Its number.
        values: Of the parameters, plain.
        digest, workload: The digests of its event log and of its workload.
    """

    combination: int
    values: Sequence[PlainValue]
    arm: str
    basis: DecisionBasis
    seed: int
    digest: str
    workload: str
    figures: ScopeFigures


@dataclass(frozen=True, slots=True)
class Column:
    """A column of points.parquet."""

    name: str
    unit: str
    meaning: str


def columns(parameters: Sequence[SweptParameter], quantities: Sequence[Quantity]) -> list[Column]:
    """The data dictionary of points.parquet: its columns in their order."""
    return [
        Column("combination", "number", "The combination of values, from 0."),
        *(
            Column(one.path, "as configured", "A parameter of the sweep; tables as TOML.")
            for one in parameters
        ),
        Column("arm", "text", "The name of the arm."),
        Column("clock_class", "text", "What the arm's decision times rest on."),
        Column("seed", "number", "The seed of the workload and of the arm."),
        Column("digest", "text", "The digest of the run's event log."),
        Column("workload_digest", "text", "The digest of the run's workload."),
        Column(
            "lower_bounds",
            "text",
            "The figures of this row that are lower bounds, as they leave out unplaced tasks; "
            "separated by commas.",
        ),
        *(
            Column(one.key, UNITS[one.unit.value], f"{one.label}. {one.description}")
            for one in quantities
        ),
    ]


def write_points(
    path: Path,
    parameters: Sequence[SweptParameter],
    quantities: Sequence[Quantity],
    rows: Sequence[Row],
) -> None:
    """Write the table. Every field has the metadata `unit` and `meaning`. Raises AgoraError if the
    file cannot be written."""
    arrays: list[Any] = [pa.array([row.combination for row in rows], pa.int64())]
    for place, parameter in enumerate(parameters):
        values = [row.values[place] for row in rows]
        arrays.append(_parameter_array(values, parameter.values))
    arrays += [
        pa.array([row.arm for row in rows], pa.string()),
        pa.array([basis_text(row.basis) for row in rows], pa.string()),
        pa.array([row.seed for row in rows], pa.uint64()),
        pa.array([row.digest for row in rows], pa.string()),
        pa.array([row.workload for row in rows], pa.string()),
        pa.array([",".join(sorted(row.figures.at_least)) for row in rows], pa.string()),
    ]
    arrays += [
        pa.array([_number(row.figures.value(one.key)) for row in rows], pa.float64())
        for one in quantities
    ]
    described = columns(parameters, quantities)
    meanings = {one.name: {"unit": one.unit, "meaning": one.meaning} for one in described}
    fields = [
        pa.field(column.name, array.type, True, meanings[column.name])
        for column, array in zip(described, arrays, strict=True)
    ]
    metadata = {
        "rows": "a run of one arm at one combination under one seed",
        "columns": json.dumps(meanings, ensure_ascii=False),
    }
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields, metadata))
    with writing(path), whole_file(path) as unfinished:
        pq.write_table(table, unfinished)


def _parameter_array(values: Sequence[Any], every: Sequence[Any]) -> Any:
    """A column of the narrowest type that all values of the parameter have."""
    if all(isinstance(value, bool) for value in every):
        return pa.array(values, pa.bool_())
    if any(isinstance(value, bool | str) for value in every):
        return pa.array([str(value) for value in values], pa.string())
    if all(isinstance(value, int) for value in every):
        return pa.array(values, pa.int64())
    return pa.array([float(value) for value in values], pa.float64())


def _number(value: float | int | None) -> float | None:
    return None if value is None else float(value)
