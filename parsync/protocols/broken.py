"""The error of a protocol whose own code broke its contract: one line that says whose participant,
what it was handling, what it did and where."""

from __future__ import annotations

import inspect
import traceback
from pathlib import Path

from schedulers.interface import ContractBroken


class ProtocolBroken(ContractBroken):
    """A participant of a protocol broke its contract. Its arm ends; the measurements up to then are
    kept.

    Args:
        protocol: Its kind.
        participant: Its name, e.g. "agent lottery-3".
        when: What it was doing, e.g. "handling Drawn".
        rule: What it did.
    """

    def __init__(self, protocol: str, participant: str, when: str, rule: str) -> None:
        super().__init__(participant, protocol, 0, rule)
        self.args = (protocol, participant, when, rule)  # all of them, so that it can be pickled
        self.when = when

    def __str__(self) -> str:
        return f"protocol '{self.kind}', {self.scheduler}, {self.when}: {self.rule}"


def raised(error: BaseException, owner: object = None) -> str:
    """`raised KeyError: 7 (lottery.py, line 31)`, for a message.

    Args:
        error: What was raised.
        owner: The object whose code is looked for in the traceback. The line is the innermost one
            in its class's file, or the innermost of all.
    """
    try:
        message = " ".join(str(error).split())
    except Exception:
        message = "(its message cannot be shown)"
    said = f"raised {type(error).__name__}" + (f": {message[:200]}" if message else "")
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return said
    try:
        home = inspect.getfile(owner if callable(owner) else type(owner))
    except (TypeError, OSError):
        home = ""
    place = next((frame for frame in reversed(frames) if frame.filename == home), frames[-1])
    return f"{said} ({Path(place.filename).name}, line {place.lineno})"
