"""Which algorithm solves, with which settings: what stands wherever an algorithm is named.

The settings switch a technique of a paper off, so that its effect can be measured. Every one is on
by default, and an algorithm with its defaults is what its name alone means.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, TypeAlias

import numpy as np

from flowsolver import _flowsolver as native

MOST_ALPHA = 1 << 31


@dataclass(frozen=True)
class AlgorithmChoice:
    """An algorithm and its settings.

    Args:
        name: one of `algorithms`.
        from_scratch: Any algorithm: each resolve of an `IncrementalSolver` is solved without the
            flow and the prices of earlier ones. Firmament races relaxation from scratch against
            incremental cost scaling (OSDI 2016, section 6.1).
        alpha: Cost scaling: what eps is divided by from phase to phase, 2 to 2**31. Phases use the
            power of two at or below each eps. None: the solver's own, 16 over a whole graph and 8
            around changes. Firmament's authors tuned it from 2 to 9 (footnote 3).
        arc_prioritisation: Relaxation: searches follow arcs towards demand first (section 5.3.1).
            Off: breadth first.
        task_removal: Cost scaling: the flow of a removed task is drained along its path to the
            sink, so that no deficit is left at its machine (section 5.3.2). Off: the deficit is
            discharged like any other.
        price_refine: Cost scaling: prices are refined at the start and after each phase, so that
            phases that would change nothing are not run (section 6.2). Off: every phase is run,
            down to the last eps.

    Raises:
        TypeError: for a setting of another type.
        ValueError: for an unknown algorithm, for a setting other than the default that the
            algorithm does not have, and for an alpha out of range.
    """

    name: str
    _: KW_ONLY
    from_scratch: bool = False
    alpha: int | None = None
    arc_prioritisation: bool = True
    task_removal: bool = True
    price_refine: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"algorithm: expected a name, got {type(self.name).__name__}")
        known = dict(native.algorithms())
        if self.name not in known:
            raise ValueError(f'no algorithm "{self.name}"; known: {", ".join(known)}')
        has = native.algorithm_settings(self.name)
        for field in fields(self)[1:]:
            value = getattr(self, field.name)
            if value is field.default:
                continue
            if field.name == "alpha":
                if isinstance(value, bool) or not isinstance(value, int | np.integer):
                    raise TypeError(f"alpha: expected an integer, got {type(value).__name__}")
            elif not isinstance(value, bool):
                raise TypeError(f"{field.name}: expected true or false, got {value!r}")
            _need_setting(self.name, field.name, has)
        if self.alpha is not None and not 2 <= self.alpha <= MOST_ALPHA:
            raise ValueError(f"{self.name}: alpha = {self.alpha}, must be 2 to {MOST_ALPHA}")

    @staticmethod
    def parse(text: str) -> AlgorithmChoice:
        """The choice that `str` writes: "cost_scaling:alpha=9:price_refine=off".

        Raises:
            ValueError: as the class, and for what is not of this form.
        """
        name, *settings = text.split(":")
        values: dict[str, Any] = {}
        for setting in settings:
            key, _, value = setting.partition("=")
            if key in values:
                raise ValueError(f'"{text}": {key} is given twice')
            if value in _SWITCH:
                values[key] = _SWITCH[value]
            elif value.isdecimal():
                values[key] = int(value)
            else:
                raise ValueError(f'"{text}": {setting} is not NAME=on, NAME=off or NAME=NUMBER')
        return _from_table({"name": name} | values)

    def __str__(self) -> str:
        return ":".join(
            [self.name]
            + [
                f"{field.name}={_written(getattr(self, field.name))}"
                for field in fields(self)[1:]
                if getattr(self, field.name) != field.default
            ]
        )


Choice: TypeAlias = str | AlgorithmChoice
Choices: TypeAlias = Choice | Sequence[Choice]

_SWITCH = {"on": True, "off": False}


def algorithm_choices(algorithm: object) -> tuple[AlgorithmChoice, ...]:
    """The algorithm, or those of a race, with their settings.

    Args:
        algorithm: a name, an `AlgorithmChoice` or a table (of a TOML file: the choice's fields by
            name); or several, which race.

    Raises:
        TypeError: for anything else, and as `AlgorithmChoice`.
        ValueError: for no algorithm, for one that is named twice, for a setting that the algorithm
            does not have, and as `AlgorithmChoice`.
    """
    if isinstance(algorithm, str | AlgorithmChoice | Mapping) or not isinstance(
        algorithm, Iterable
    ):
        algorithm = [algorithm]
    choices = tuple(_choice(each) for each in algorithm)
    if not choices:
        raise ValueError("no algorithm given")
    names = [choice.name for choice in choices]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f'algorithm "{name}" given twice')
    return choices


def parse_algorithms(text: str) -> tuple[AlgorithmChoice, ...]:
    """As `algorithm_choices`, from text: choices as `AlgorithmChoice.parse` reads them, with a plus
    between those of a race.

    Raises:
        ValueError: as `algorithm_choices`.
    """
    return algorithm_choices([AlgorithmChoice.parse(each.strip()) for each in text.split("+")])


NativeChoice: TypeAlias = tuple[str, bool, int, bool, bool, bool]


def as_native(algorithm: object) -> list[NativeChoice]:
    """As `algorithm_choices`, in the form that the native calls take."""
    return [
        (
            each.name,
            each.from_scratch,
            0 if each.alpha is None else int(each.alpha),
            each.arc_prioritisation,
            each.task_removal,
            each.price_refine,
        )
        for each in algorithm_choices(algorithm)
    ]


def _choice(value: object) -> AlgorithmChoice:
    if isinstance(value, AlgorithmChoice):
        return value
    if isinstance(value, Mapping):
        return _from_table(value)
    if not isinstance(value, str):
        raise TypeError(f"algorithm: expected a name or several, got {type(value).__name__}")
    return AlgorithmChoice(value)


def _from_table(table: Mapping[str, Any]) -> AlgorithmChoice:
    """As the class; a setting that the algorithm does not have is refused also if it is given its
    default."""
    known = [field.name for field in fields(AlgorithmChoice)]
    for key in table:
        if key not in known:
            raise ValueError(f'no setting "{key}" of an algorithm; known: {", ".join(known)}')
    if "name" not in table:
        raise ValueError("algorithm: a table needs the name of an algorithm")
    choice = AlgorithmChoice(**table)
    has = native.algorithm_settings(choice.name)
    for key in table:
        if key != "name":
            _need_setting(choice.name, key, has)
    return choice


def _need_setting(name: str, setting: str, has: Sequence[str]) -> None:
    if setting == "from_scratch" or setting in has:
        return
    its = ", ".join(["from_scratch", *has])
    raise ValueError(f'{name} has no setting "{setting}"; it has: {its}')


def _written(value: object) -> str:
    return str(value) if not isinstance(value, bool) else "on" if value else "off"
