"""What every model of a configuration shares: strictness, names and the largest time."""

from __future__ import annotations

import unicodedata
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

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


class Strict(BaseModel):
    """The base of a configuration's models: a number is not a bool, a text or infinite, and a list
    is nothing else."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
