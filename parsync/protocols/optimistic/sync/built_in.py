"""The built-in sync policies by name. They are native: parsync/protocols/native/sync_policies.hpp
says what each does.

How stale views are on average under each: parsync/model/equations.py.
"""

from __future__ import annotations

from parsync.protocols._native import BlockSync, EveryAttemptSync, SinglePartitionSync, StateSync
from parsync.protocols.optimistic.sync.policy import (
    SyncContext,
    check_gap,
    check_partitions,
    seconds,
)
from parsync.protocols.optimistic.sync.registry import SyncPolicySpec
from schedulers.entry_points import NoOptions
from shared_state.errors import AgoraError


def _state_aligned(options: NoOptions, context: SyncContext) -> StateSync:
    check_gap(context)
    return StateSync(context, staggered=False)


def _state_staggered(options: NoOptions, context: SyncContext) -> StateSync:
    check_gap(context)
    return StateSync(context, staggered=True)


def _diff_block(options: NoOptions, context: SyncContext) -> BlockSync:
    check_gap(context)
    check_partitions("diff_block", context)
    return BlockSync(context, same_block=False)


def _same_block(options: NoOptions, context: SyncContext) -> BlockSync:
    check_gap(context)
    check_partitions("same_block", context)
    return BlockSync(context, same_block=True)


def _diff_single(options: NoOptions, context: SyncContext) -> SinglePartitionSync:
    check_gap(context)
    check_partitions("diff_single", context)
    return SinglePartitionSync(context)


def _every_attempt(options: NoOptions, context: SyncContext) -> EveryAttemptSync:
    if context.gap_us < 1:
        raise AgoraError(
            f"retry_s: expected at least {seconds(1)} with every_attempt, got "
            f"{seconds(context.gap_us)}"
        )
    return EveryAttemptSync(context)


DIFF_BLOCK = SyncPolicySpec("diff_block", _diff_block)
DIFF_SINGLE = SyncPolicySpec("diff_single", _diff_single)
EVERY_ATTEMPT = SyncPolicySpec("every_attempt", _every_attempt, periodic=False)
SAME_BLOCK = SyncPolicySpec("same_block", _same_block)
STATE_ALIGNED = SyncPolicySpec("state_aligned", _state_aligned)
STATE_STAGGERED = SyncPolicySpec("state_staggered", _state_staggered)
