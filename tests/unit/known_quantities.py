"""The quantities of the metrics, of the values that workloads bring, and of regret, by key."""

from __future__ import annotations

from experiments.config.workload_config import SLOT_SCORE
from experiments.workloads.input_data import INPUT_IN_RACK, INPUT_ON_MACHINE
from parsync.metrics import registry
from parsync.metrics.kinds.conflicts import ConflictCauses
from parsync.metrics.kinds.regret import RegretMeans
from parsync.metrics.quantity import quantities_of

QUANTITIES = {
    quantity.key: quantity
    for quantity in (
        *(quantity for metric in registry.metrics() for quantity in metric.quantities()),
        SLOT_SCORE,
        INPUT_ON_MACHINE,
        INPUT_IN_RACK,
        *quantities_of(ConflictCauses),
        *quantities_of(RegretMeans),
    )
}
