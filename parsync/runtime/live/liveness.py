"""The status of a run: every actor's last report, silent actors, and whether all work is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from parsync.metrics.live import Snapshot

SILENT_US = 3_000_000


@dataclass(frozen=True, slots=True)
class ActorStatus:
    """What an actor reports to the coordinator a few times per second.

    Attributes:
        at_us: Run time.
        epoch: Of the actor.
        queued: Tasks that its agents have not placed; of the source: that no host has taken yet.
        settled: As far as the actor knows, it has nothing left to do.
        snapshot: Of its measurements; None if it has none for the live line.
        error: Why its loop ended early.
        host_epochs: The epochs of the hosts, as the source knows them.
        broken: Which of its schedulers broke its contract, and how.
    """

    at_us: int
    epoch: int
    queued: int
    settled: bool
    snapshot: Snapshot | None
    error: str | None = None
    host_epochs: Mapping[int, int] = field(default_factory=dict)
    broken: str | None = None


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The status of a run.

    Attributes:
        at_us: Run time.
        snapshot: Joined from the actors' last ones; None before the first.
        waiting: Tasks that are not placed yet, -1 while unknown.
        quiet: Every task was submitted, and placed or given up.
        silent: Actors that have not reported for SILENT_US.
        errors: The actors' errors, each with the actor's name.
        epochs: By actor: how many it has had so far.
        broken: Schedulers that broke their contract, and how.
    """

    at_us: int
    snapshot: Snapshot | None
    waiting: int
    quiet: bool
    silent: tuple[str, ...]
    errors: tuple[str, ...]
    epochs: Mapping[str, int]
    broken: tuple[str, ...] = ()


class StatusMonitor:
    """Gathers the actors' reports.

    Args:
        hosts: Names of the scheduler hosts, by id.
        source: The workload source's name.
        others: Names of the other actors that report.
    """

    def __init__(self, hosts: Mapping[int, str], source: str, others: tuple[str, ...]) -> None:
        self._hosts = dict(hosts)
        self._source = source
        self._names = (*hosts.values(), source, *others)
        self._reports: dict[str, ActorStatus] = {}
        self._settled_us: int | None = None
        self._epochs: dict[str, set[int]] = {name: set() for name in self._names}

    def report(self, name: str, report: ActorStatus) -> None:
        """Take an actor's report.

        Reports of an earlier epoch are ignored: its node was cut off and is back.
        """
        known = self._reports.get(name)
        if known is not None and report.epoch < known.epoch:
            return
        self._reports[name] = report
        self._epochs[name].add(report.epoch)
        if name == self._source:
            if not report.settled:
                self._settled_us = None
            elif self._settled_us is None:
                self._settled_us = report.at_us

    def run_status(self, now_us: int) -> RunStatus:
        """The status at now_us."""
        reports = self._reports
        source = reports.get(self._source)
        known = source is not None and all(name in reports for name in self._hosts.values())
        waiting = -1
        quiet = False
        if known:
            assert source is not None
            hosts = {host: reports[name] for host, name in self._hosts.items()}
            waiting = source.queued + sum(report.queued for report in hosts.values())
            settled_us = self._settled_us
            quiet = (
                settled_us is not None
                and waiting == 0
                and all(report.at_us > settled_us and report.settled for report in hosts.values())
                and all(
                    source.host_epochs.get(host) == report.epoch for host, report in hosts.items()
                )
            )
        snapshots = [report.snapshot for report in reports.values() if report.snapshot is not None]
        return RunStatus(
            now_us,
            Snapshot.join(snapshots) if snapshots else None,
            waiting,
            quiet,
            tuple(
                name
                for name in self._names
                if now_us - (reports[name].at_us if name in reports else 0) > SILENT_US
            ),
            tuple(f"{name}: {report.error}" for name, report in reports.items() if report.error),
            {name: len(epochs) for name, epochs in self._epochs.items()},
            tuple(report.broken for report in reports.values() if report.broken),
        )
