"""The tables of docs/options.md, from the models that check a configuration.

`python -m tests.option_reference` writes the page; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, PlainSerializer
from pydantic.fields import FieldInfo

import experiments.workloads.registry as workloads
from experiments.config.run_config import LiveConfig
from experiments.workloads.service_batch import BatchJobs, ServiceJobs
from parsync.protocols.locking import LockingOptions
from parsync.protocols.offers.options import OffersOptions, OffersSharedOptions
from parsync.protocols.optimistic.options import OptimisticOptions
from parsync.protocols.probing.options import ProbingOptions, ProbingSharedOptions
from parsync.spec.decision_times import ModelledTime
from schedulers.flow.options import FlowOptions
from schedulers.flow.policies import registry as flow_policies
from schedulers.scoring.kinds import KubernetesOptions, NomadOptions, StrandedOptions

PAGE = Path(__file__).parents[1] / "docs" / "options.md"
_INTRODUCTION = """# Options

<!-- figures: settings -->

The options of protocols, decision times, live runs, flow schedulers with their policies, scoring
schedulers, and workloads, with their defaults. [Runs](run.md) shows where they stand in a file, and
the `config.toml` of a run has all that are set in it.

Defaults of flow schedulers are those of the kind `flow`; [Firmament and
Quincy](firmament.md#the-settings) has those of the others. Further options of schedulers are on the
pages of their subject: waiting for preferred machines ([runs](run.md#configure-a-mix)), [slot
prices](prices.md), [MapReduce](mapreduce.md). [Quotas](quotas.md) are options of an arm.

`python -m tests.option_reference` makes this page from the code.
"""


def page() -> str:
    """The whole page."""
    lines = [_INTRODUCTION]
    for title, model in _models():
        lines += [f"## {title}\n", "| option | default | meaning |", "|---|---|---|"]
        for name, field in model.model_fields.items():
            if meaning := _meaning(model, name):
                lines.append(_row(name, field, meaning))
        lines.append("")
    return "\n".join(lines)


def _models() -> Iterator[tuple[str, type[BaseModel]]]:
    yield "Protocol `optimistic`", OptimisticOptions
    yield "Protocol `locking`", LockingOptions
    yield "Protocol `probing`", ProbingOptions
    yield "Protocol `probing`, as a whole: `[arms.protocols.probing]`", ProbingSharedOptions
    yield "Protocol `offers`", OffersOptions
    yield "Protocol `offers`, as a whole: `[arms.protocols.offers]`", OffersSharedOptions
    yield 'Decision times: `clock = "modelled"`', ModelledTime
    yield "Live runs: `[live]`", LiveConfig
    yield "Schedulers `flow`, `firmament`, `quincy`, `flow_load_spreading`", FlowOptions
    for kind in flow_policies.BUILT_IN:
        if flow_policies.get(kind).options.model_fields:
            yield f'Flow schedulers: `policy = "{kind}"`', flow_policies.get(kind).options
    yield "Scheduler `kubernetes`", KubernetesOptions
    yield "Scheduler `nomad`", NomadOptions
    yield "Scheduler `stranded`", StrandedOptions
    yield "Workload `synthetic`", workloads.get("synthetic").options
    yield "Workload `service_batch`", workloads.get("service_batch").options
    yield "Workload `service_batch`: `[workload.batch]`", BatchJobs
    yield "Workload `service_batch`: `[workload.service]`", ServiceJobs
    yield "Workload `google2011`", workloads.get("google2011").options


def _meaning(model: type[BaseModel], name: str) -> str:
    """The description of a field, or that of the class whose default it replaces."""
    classes = [one for one in model.__mro__ if issubclass(one, BaseModel)]
    fields = [one.model_fields[name] for one in classes if name in one.model_fields]
    return next((field.description for field in fields if field.description), "")


def _row(name: str, field: FieldInfo, meaning: str) -> str:
    text = meaning.replace("|", "\\|")
    return f"| `{name}` | {_default(field)} | {text} |"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return "unset"
    for note in field.metadata:
        if isinstance(note, PlainSerializer):
            value = cast(Any, note.func)(value)
    if isinstance(value, Enum):
        value = value.name.lower()
    if isinstance(value, tuple):
        value = list(value)
    if isinstance(value, dict):
        pairs = (f"{key} = {_in_toml(amount)}" for key, amount in value.items())
        value = f"{{{', '.join(pairs)}}}"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _in_toml(value: object) -> object:
    return f'"{value}"' if isinstance(value, str) else value


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
