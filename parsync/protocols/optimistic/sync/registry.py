"""Every sync policy by name: ours, and those of packages with an entry point in the group
`agora.sync_policies`.

A new policy is one file with a SPEC and one line: in BUILT_IN below, or in another package's
metadata,

    [project.entry-points."agora.sync_policies"]
    my_policy = "my_package.my_module:SPEC"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from parsync.protocols.optimistic.sync.policy import SyncContext, SyncPolicy
from schedulers.entry_points import (
    EntryPointGroup,
    NoOptions,
    cause,
    is_model,
    parse_options,
    wrong_field,
)
from shared_state.errors import AgoraError

ENTRY_POINTS = "agora.sync_policies"

_HERE = "parsync.protocols.optimistic.sync"
BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "diff_block": f"{_HERE}.built_in:DIFF_BLOCK",
        "diff_single": f"{_HERE}.built_in:DIFF_SINGLE",
        "every_attempt": f"{_HERE}.built_in:EVERY_ATTEMPT",
        "same_block": f"{_HERE}.built_in:SAME_BLOCK",
        "state_aligned": f"{_HERE}.built_in:STATE_ALIGNED",
        "state_staggered": f"{_HERE}.built_in:STATE_STAGGERED",
    }
)


@dataclass(frozen=True, slots=True)
class SyncPolicySpec:
    """A sync policy.

    Args:
        kind: Its name in configurations.
        make: Creates the policy of one agent from validated options. It raises AgoraError naming
            `gap_s` (`retry_s`) or `partitions` where they do not suit the policy.
        options: A pydantic model that forbids unknown fields.
        periodic: Whether a group that uses it has a synchronisation gap, gap_s. If not, it has
            retry_s in its place, which the context gives as gap_us.
    """

    kind: str
    make: Callable[[Any, SyncContext], SyncPolicy]
    options: type[BaseModel] = NoOptions
    periodic: bool = True

    def parse_options(self, options: Mapping[str, Any]) -> BaseModel:
        """The options, validated. AgoraError naming the first that is unknown or wrong."""
        return parse_options("sync policy", self.kind, self.options, options)


def kinds() -> tuple[str, ...]:
    """The names of all sync policies, ascending."""
    return _GROUP.kinds()


def get(kind: str) -> SyncPolicySpec:
    """The spec of a policy. AgoraError if there is none, or if its entry point does not lead to a
    SyncPolicySpec of that name."""
    return _GROUP.get(kind)


def make_sync_policy(kind: str, options: Mapping[str, Any], context: SyncContext) -> SyncPolicy:
    """The policy that a configuration names, for one agent. AgoraError for an unknown policy or
    option, where gap or partitions do not suit it, and if the policy cannot be made."""
    spec = get(kind)
    parsed = spec.parse_options(options)
    try:
        return spec.make(parsed, context)
    except AgoraError:
        raise
    except Exception as error:  # of a policy that is somebody else's
        raise AgoraError(f"sync policy {kind!r}: cannot make it: {cause(error)}") from error


def _wrong(spec: SyncPolicySpec) -> str:
    return wrong_field(
        spec,
        (
            ("make", callable(spec.make), "a callable"),
            ("options", is_model(spec.options), "a BaseModel"),
            ("periodic", isinstance(spec.periodic, bool), "a bool"),
        ),
    )


_GROUP = EntryPointGroup("sync policy", ENTRY_POINTS, BUILT_IN, SyncPolicySpec, _wrong)
