"""How many extra slots a setting needs to keep up with its arrivals: S_extra of ParSync section
4.3, Figs. 2 and 3.

A setting keeps up if its simulation finishes in 110 % of the time in which tasks arrive. More slots
do not always help. If schedulers see the slots of their own tasks as soon as they end
(freed_at_once) and there are none to spare, each one recycles its own slots, which nobody else
knows to be free: 0 extra slots may suffice where 2,000 do not. A bisection over all counts might
return such an isolated count, an island. The search here scans upward over a grid whose steps
double, takes as bracket the last count that does not keep up and the next, and goes on until a
stated number of counts in a row keep up; then it bisects within the bracket. What it returns is the
least count from which on every probed count keeps up. Islands below it are reported, too. Islands
narrower than the grid may be missed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from parsync.model.slot_settings import SlotSettings
from parsync.model.slot_simulator import ConflictsAndScores, Ending, FinishRule, simulate
from shared_state.errors import AgoraError


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraSlotsSearch:
    """What keeping up means, and how closely to look.

    Args:
        limit_factor: A run must finish before this times the time in which tasks arrive.
        rule: When a run has finished.
        largest: The largest count of the scan.
        first_step: The scan's first count above 0; the following ones double it.
        resolution: The largest width of the answer's bracket.
        confirmations: Counts in a row that must keep up to end the scan.
        growing_bins: Runs end early if their backlog has grown over this many bins and can no
            longer be committed in time (SlotSettings); 0: never.
    """

    limit_factor: float = 1.1
    rule: FinishRule = FinishRule.LAST_COMMIT
    largest: int = 256_000
    first_step: int = 1_000
    resolution: int = 500
    confirmations: int = 3
    growing_bins: int = 10

    def __post_init__(self) -> None:
        if not (math.isfinite(self.limit_factor) and self.limit_factor > 1):
            raise AgoraError(f"limit_factor: expected more than 1, got {self.limit_factor!r}")
        for name in ("largest", "first_step", "resolution", "confirmations"):
            if getattr(self, name) < 1:
                raise AgoraError(f"{name}: expected 1 or more, got {getattr(self, name)}")

    def grid(self) -> tuple[int, ...]:
        """The counts of the scan, ascending: 0, first_step, twice that, ..., largest."""
        counts, step = [0], self.first_step
        while step < self.largest:
            counts.append(step)
            step *= 2
        return (*counts, self.largest)


@dataclass(frozen=True, slots=True)
class Probe:
    """One simulation of a search.

    Attributes:
        last_commit_s: When the last task was committed; inf if so few slots cannot run all tasks in
            time, and nothing was simulated.
        found: What the whole run found; None if nothing was simulated.
    """

    extra_slots: int
    keeps_up: bool
    ending: Ending
    last_commit_s: float
    found: ConflictsAndScores | None


@dataclass(frozen=True, slots=True)
class ExtraSlots:
    """The answer of one search.

    Args:
        least: The least probed count from which on every probed count keeps up; None if there is
            none.
        too_few: The largest probed count below it, which does not keep up; None if `least` is 0.
        islands: Smaller counts that keep up although larger ones do not, ascending.
        probes: All simulations, ascending by count.
        reason: Why there is no answer; empty if there is one.
    """

    least: int | None
    too_few: int | None
    islands: tuple[int, ...]
    probes: tuple[Probe, ...]
    reason: str = ""

    @property
    def found(self) -> ConflictsAndScores | None:
        """What the run with the least count found; None if there is no answer."""
        return next((one.found for one in self.probes if one.extra_slots == self.least), None)

    @property
    def bracket(self) -> tuple[int, int] | None:
        """The counts between which the answer lies, to begin a similar search with."""
        if self.least is None or self.too_few is None:
            return None
        return self.too_few, self.least


def find_extra_slots(
    settings: SlotSettings,
    search: ExtraSlotsSearch,
    bracket: tuple[int, int] | None = None,
) -> ExtraSlots:
    """Find how many extra slots the settings need; those they have do not count.

    Args:
        bracket: Counts expected around the answer, such as that of another seed. If the first does
            not keep up and the second does, they replace the scan.

    Raises:
        AgoraError: A parameter is wrong, or the bracket does not ascend.
    """
    if bracket is not None and not 0 <= bracket[0] < bracket[1]:
        raise AgoraError(f"bracket: expected two ascending counts, got {bracket}")
    missing = _cannot_keep_up(settings, search)
    if missing:
        return ExtraSlots(None, None, (), (), missing)
    probes = _Probes(settings, search)
    if bracket is None or probes.keeps_up(bracket[0]) or not probes.keeps_up(bracket[1]):
        bracket = _scan(probes, search)
    while bracket is not None and bracket[1] - bracket[0] > search.resolution:
        _refine(probes, search, *bracket)
        # a later one if a count above, probed before the scan, does not keep up
        bracket = probes.answer().bracket
    return probes.answer()


def widened(bracket: tuple[int, int], search: ExtraSlotsSearch) -> tuple[int, int]:
    """A bracket to begin with under another seed: as much more on both sides, and at least twice
    the resolution."""
    low, high = bracket
    margin = max(high - low, 2 * search.resolution)
    return max(0, low - margin), high + margin


class _Probes:
    """The simulations of a search, each made once."""

    def __init__(self, settings: SlotSettings, search: ExtraSlotsSearch) -> None:
        self._search = search
        self._limit_s = search.limit_factor * settings.submission_s
        last_commit_s = self._limit_s - _run_s(settings, search)
        self._settings = replace(
            settings,
            horizon_s=max(self._limit_s, settings.submission_s),
            growing_bins=search.growing_bins,
            finish_by_s=last_commit_s,
        )
        self._tasks = sum(
            phase.duration_s * rate for phase in settings.phases for rate in phase.rate_per_s
        )
        self._tasks_of_slot = math.floor(self._limit_s / settings.task_s) + 1
        self._made: dict[int, Probe] = {}

    def keeps_up(self, extra_slots: int) -> bool:
        if extra_slots not in self._made:
            self._made[extra_slots] = self._probe(extra_slots)
        return self._made[extra_slots].keeps_up

    def _probe(self, extra_slots: int) -> Probe:
        slots = self._settings.slots + extra_slots
        if self._tasks > slots * self._tasks_of_slot:  # the simulator would refuse to begin
            return Probe(extra_slots, False, Ending.HORIZON, math.inf, None)
        found = simulate(replace(self._settings, extra_slots=extra_slots))
        keeps_up = found.finishes_by(self._limit_s, self._search.rule)
        whole = found.conflicts_and_scores()
        return Probe(extra_slots, keeps_up, found.ending, found.last_commit_s, whole)

    def answer(self) -> ExtraSlots:
        probes = tuple(self._made[count] for count in sorted(self._made))
        too_few = max((probe.extra_slots for probe in probes if not probe.keeps_up), default=None)
        enough = [probe.extra_slots for probe in probes if probe.keeps_up]
        above = [count for count in enough if too_few is None or count > too_few]
        islands = tuple(count for count in enough if count not in above)
        if not above:
            reason = f"{probes[-1].extra_slots} extra slots, the most that were tried, are too few"
            return ExtraSlots(None, too_few, islands, probes, reason)
        return ExtraSlots(above[0], too_few, islands, probes)


def _scan(probes: _Probes, search: ExtraSlotsSearch) -> tuple[int, int] | None:
    """The bracket of the answer; None if it is 0 or there is none."""
    too_few: int | None = None
    enough: list[int] = []
    for count in search.grid():
        if probes.keeps_up(count):
            enough.append(count)
            if len(enough) == search.confirmations:
                break
        else:
            too_few, enough = count, []
    return (too_few, enough[0]) if too_few is not None and enough else None


def _refine(probes: _Probes, search: ExtraSlotsSearch, too_few: int, enough: int) -> None:
    while enough - too_few > search.resolution:
        middle = (too_few + enough) // 2
        if probes.keeps_up(middle):
            enough = middle
        else:
            too_few = middle


def _run_s(settings: SlotSettings, search: ExtraSlotsSearch) -> float:
    return settings.task_s if search.rule is FinishRule.LAST_TASK_END else 0.0


def _cannot_keep_up(settings: SlotSettings, search: ExtraSlotsSearch) -> str:
    """Why no number of slots suffices; empty if that is not known beforehand."""
    commit_s = search.limit_factor * settings.submission_s - _run_s(settings, search)
    if commit_s <= 0:
        return f"the limit leaves {commit_s:g} s to commit all tasks"
    for index, group in enumerate(settings.groups):
        tasks = sum(phase.duration_s * phase.rate_per_s[index] for phase in settings.phases)
        decided = group.schedulers * commit_s / group.decision_s
        if tasks > decided:
            return (
                f"group {index}: {group.schedulers} schedulers decide at most {decided:.0f} tasks "
                f"within the limit, but {tasks:.0f} arrive"
            )
    return ""
