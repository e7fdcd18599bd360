import numpy as np
from numpy.typing import NDArray

from shared_state.tasks import Int64

STRATEGY_NAMES: list[str]
SYNC_MODE_NAMES: list[str]
SLOT_WEIGHTING_NAMES: list[str]
PARTITION_QUALITY_NAMES: list[str]
LOSER_POLICY_NAMES: list[str]
ENDING_NAMES: list[str]
DELAY_BUCKETS: int
SCORE_BUCKETS: int

class GroupSettings:
    schedulers: int
    strategy: int
    batch_tasks: int
    decision_ns: int
    tau_ns: int
    average_permille: int

class PhaseSettings:
    duration_ns: int
    rate_per_ks: list[int]

class SlotSettings:
    slots: int
    partitions: int
    score_variance: float
    weighting: int
    task_ns: int
    groups: list[GroupSettings]
    phases: list[PhaseSettings]
    sync: int
    gap_ns: int
    quality: int
    cut_at_sync: bool
    freed_at_once: bool
    commit_pipelining: bool
    losers: int
    requeue_ns: int
    scan_permille: int
    latency_ns: int
    service_ns: int
    seed: int
    horizon_ns: int
    bin_ns: int
    gap_slices: int
    growing_bins: int
    finish_by_ns: int

class SlotSimulator:
    def __init__(self, settings: SlotSettings) -> None: ...
    def run(self, steps: int) -> int: ...
    def columns(self) -> dict[str, Int64]: ...
    def delay_histograms(self) -> NDArray[np.uint32]: ...
    def conflict_delay_histograms(self) -> NDArray[np.uint32]: ...
    def score_histograms(self) -> NDArray[np.uint32]: ...
    @property
    def ending(self) -> int: ...
    @property
    def decisions(self) -> int: ...
    @property
    def events(self) -> int: ...
    @property
    def last_commit_ns(self) -> int: ...
    @property
    def lowest_score(self) -> float: ...
    @property
    def score_step(self) -> float: ...

def check(settings: SlotSettings) -> tuple[str, str]: ...
def sync_event(settings: SlotSettings, event: int, scheduler: int) -> tuple[int, int, int]: ...
