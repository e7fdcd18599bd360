"""The error of a protocol whose own code broke its contract: one line that says whose participant,
what it was handling, what it did and where."""

from __future__ import annotations

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
