"""What every model of a configuration shares: strictness, names, the largest time, and what is said
of input that does not fit."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from schedulers.entry_points import first_problem, near_match, wrong_value

LONGEST_S = 1e6  # of any time: far beyond use, far within int64 microseconds
LONGEST_NAME = 200


def _printable(name: str) -> str:
    """Names stand in files, tables, figures and on the terminal. (Of what str.isprintable refuses,
    emoji and some scripts need the joiners.)"""
    if not name.strip():
        raise ValueError("expected a name, got only spaces")
    for character in name:
        if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
            raise ValueError(
                f"expected a name without control characters, got U+{ord(character):04X}"
            )
    return name


Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME), AfterValidator(_printable)]


@dataclass(frozen=True, slots=True)
class NoEffect:
    """Marks a field that does not decide what an arm's run under one seed measures, so that a
    result that is kept does not depend on it: Annotated[int, NO_EFFECT]."""


NO_EFFECT = NoEffect()


def deciding(model: BaseModel) -> dict[str, Any]:
    """What decides a result: every field of a model but those that are marked NO_EFFECT."""
    fields = type(model).model_fields.items()
    marked = {name for name, field in fields if NO_EFFECT in field.metadata}
    return model.model_dump(mode="json", exclude=marked)


class RenamedOption(UserWarning):
    """An option is read by a name that it had before. Commands print it in one line."""


class Strict(BaseModel):
    """The base of a configuration's models: a number is not a bool, a text or infinite, and a list
    is nothing else."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def first_error(error: ValidationError, model: type[BaseModel] | None = None) -> str:
    """The first of pydantic's complaints (first_problem), as `field.path: what is wrong`.

    Args:
        error: What was complained about.
        model: The model that was validated, so that a misspelt field can be told from one that
            there is nothing like.
    """
    problem = first_problem(error)
    place = ".".join(str(part) or '""' for part in problem["loc"])
    message = wrong_value(problem)
    if problem["type"] == "extra_forbidden":
        *within, name = problem["loc"]
        known = _fields_at(model, within) if model is not None else ()
        message = f"unknown option{near_match(str(name), known)}"
    return f"{place}: {message}" if place else message


def _fields_at(model: type[BaseModel], place: Sequence[str | int]) -> set[str]:
    """The names of the fields that a value at a place in a model may have."""
    models = {model}
    for part in place:
        fields = [of.model_fields[part] for of in models if part in of.model_fields]
        if fields:  # else a position in a list, or the name of one model of several
            models = set().union(*(_models_in(one.annotation) for one in fields))
    return {name for of in models for name in of.model_fields}


def _models_in(annotation: Any) -> set[type[BaseModel]]:
    """The models that a field's type allows, in lists and unions too."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {annotation}
    return set().union(*(_models_in(part) for part in get_args(annotation)))
