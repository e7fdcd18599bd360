"""A parallel map over the workers of Ray."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from parsync.runtime.live.ray_glue.cluster import connect, connected, disconnect
from parsync.runtime.live.ray_glue.nodes import check_imports
from shared_state.errors import AgoraError

OBJECT_STORE_MB = 150
POLL_S = 0.1  # for a stop signal
RETRIES = 3  # of a call whose worker or node is lost
AHEAD = 2  # calls for each processor, so that none waits for its next one
LOOK_S = 5.0  # for nodes that have joined or left

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextlib.contextmanager
def attached(address: str | None, module: str) -> Iterator[None]:
    """Be connected to Ray inside the block.

    Args:
        address: Of a cluster; None for the Ray that this process is connected to, or an embedded
            one.
        module: What calls will import. Every node of a cluster is asked whether it can.

    Raises:
        AgoraError: The address does not lead to a cluster, or one of its nodes cannot take part.
    """
    before = connected()
    connect(address, OBJECT_STORE_MB, False)
    try:
        check_imports(module)
        yield
    finally:
        if not before:
            disconnect()


def ray_map(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    check: Callable[[], None],
    processes: int | None = None,
) -> Generator[tuple[int, Result], None, None]:
    """Call a function for every item in tasks of Ray; yield (index, result) as they are done.

    Every call reserves a processor. A call whose worker or node is lost is made again. Calls under
    way end with the iteration.

    Args:
        function: Of a module that the workers can import. Raises nothing.
        items: Begun in this order; str(item) names one.
        check: Called several times a second; what it raises ends the map.
        processes: How many calls at a time; None: as many as the cluster has processors.

    Raises:
        AgoraError: A worker was lost at each attempt at an item, or Ray itself is gone.
    """
    task = ray.remote(num_cpus=1, max_retries=RETRIES, scheduling_strategy="SPREAD")(function)
    waiting = deque(range(len(items)))
    running: dict[ray.ObjectRef, int] = {}
    most, looked_s = 0, float("-inf")
    try:
        while waiting or running:
            if time.monotonic() - looked_s > LOOK_S:
                most, looked_s = processes or AHEAD * _processors(), time.monotonic()
            while waiting and len(running) < most:
                index = waiting.popleft()
                running[task.remote(items[index])] = index
            done, _ = ray.wait(list(running), timeout=POLL_S)
            for reference in done:
                index = running.pop(reference)
                yield index, _result(reference, items[index])
            check()
    except RayTaskError:
        raise  # a bug of ours
    except RayError as error:
        raise AgoraError(f"Ray is gone: {' '.join(str(error).split())}") from error
    finally:
        if connected():
            for reference in running:
                with contextlib.suppress(RayError):
                    ray.cancel(reference, force=True)


def _result(reference: ray.ObjectRef, item: object) -> Any:
    try:
        return ray.get(reference)
    except RayTaskError:
        raise
    except RayError as error:
        raise AgoraError(
            f"{item}: its worker was lost {RETRIES + 1} times: {' '.join(str(error).split())}"
        ) from error


def _processors() -> int:
    """Those of the cluster. Raises AgoraError if it has none."""
    processors = int(ray.cluster_resources().get("CPU", 0))
    if not processors:
        raise AgoraError("no node of the cluster offers a processor (ray start --num-cpus=0?)")
    return processors
