"""The slot simulator: many schedulers on the slots of one cell (ParSync sections 4.3 and 5.2).

It stands between the equations of the conflict model and the platform: tasks are alike, a slot has
no other property than its score, and there are no messages but commits. In return a run of the
paper's scale takes seconds. The event model is described in native/slot_simulator.hpp.
"""

from __future__ import annotations

from parsync.model import _native
from parsync.model.slot_results import Ending, SlotResults
from parsync.model.slot_settings import SlotSettings

_OF_CELL = ("end_ns", "busy_ns", "busy", "idle", "in_use_score_ms", "best_score_ms")
_STEPS = 200_000  # between two looks at Ctrl-C: less than 0.1 s


def simulate(settings: SlotSettings) -> SlotResults:
    """Run a slot simulation to its end. Other threads run meanwhile, and Ctrl-C interrupts it.

    Raises:
        AgoraError: A parameter is wrong, or rates cannot be met; the message names it.
    """
    simulator = _native.SlotSimulator(settings.to_native())
    while simulator.run(_STEPS) == Ending.RUNNING:
        pass
    return _results(simulator, settings)


def _results(simulator: _native.SlotSimulator, settings: SlotSettings) -> SlotResults:
    columns = simulator.columns()
    bins, groups = len(columns["end_ns"]), len(settings.groups)
    cell = {name: columns.pop(name) for name in _OF_CELL}
    shaped = {
        name: column.reshape(
            (bins, groups, settings.gap_slices) if name.startswith("slice_") else (bins, groups)
        )
        for name, column in columns.items()
    }
    by_group = (bins, groups, -1)
    return SlotResults(
        ending=Ending(simulator.ending),
        decisions=simulator.decisions,
        events=simulator.events,
        last_commit_s=simulator.last_commit_ns / 1e9,
        task_s=settings.task_s,
        slots=settings.slots + settings.extra_slots,
        delay=simulator.delay_histograms().reshape(by_group),
        conflict_delay=simulator.conflict_delay_histograms().reshape(by_group),
        score=simulator.score_histograms().reshape(by_group),
        lowest_score=simulator.lowest_score,
        score_step=simulator.score_step,
        **cell,
        **shaped,
    )
