"""The workload's form lives with the protocol that runs it; readers and generators build it from here."""

from parsync.core.workload import InitialPlacement, MachineEvents, Phase, Workload

__all__ = ["InitialPlacement", "MachineEvents", "Phase", "Workload"]
