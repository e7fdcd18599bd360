"""Where the nodes of flow graphs stand in a drawing, and where the labels of arcs.

As in Figs. 5 and 6 of the Firmament paper: tasks on the left, then the policy's aggregators, the
machines, and the sink on the right; unscheduled aggregators below.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from experiments.flow_graphs.changes import NodeKey, node_keys
from experiments.flow_graphs.recorder import RecordedRound
from schedulers.flow.snapshot import NodeKind

TASK_STEP, NODE_STEP = 34, 42  # between the centres of nodes one above the other
MANY_NODES, CLOSE_STEP = 24, 34  # columns of more nodes are closer
JOB_GAP = 12  # more, between the tasks of two jobs
COLUMN_STEP, LONG_COLUMNS = 180, 70  # between columns, and how much more if they are long
LEFT, TOP, RIGHT = 92, 40, 40
BELOW = 62  # between the graph and what stands below it
STAIR = 24  # between nodes of a row there
FEW_TASKS = 24  # so many have the same places in all rounds
CHARACTER = 8.2  # the width of one, in labels of nodes
LABEL_CHARACTER, LABEL_HEIGHT = 7.4, 14
# Along an arc, where its label may stand, the best first.
PLACES = (0.5, 0.4, 0.6, 0.32, 0.68, 0.25, 0.75, 0.18, 0.82)


@dataclass(frozen=True, slots=True)
class Box:
    """A node in the drawing: its centre and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        return self.x + self.width / 2

    @property
    def top(self) -> float:
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height / 2

    def meets(self, other: Box) -> bool:
        """Whether they overlap."""
        return (
            abs(self.x - other.x) < (self.width + other.width) / 2
            and abs(self.y - other.y) < (self.height + other.height) / 2
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """The places of nodes in the drawing of one round.

    Attributes:
        box: Of each node.
        jobs: The job, and the first and last y of its tasks, of each job with tasks in the round or
            the one before.
        width, height: Of the drawing; the same in all rounds.
    """

    box: Mapping[NodeKey, Box]
    jobs: Sequence[tuple[int, float, float]]
    width: float
    height: float


class _Nodes:
    """The nodes of some rounds, with what a layout looks at."""

    def __init__(self, rounds: Sequence[RecordedRound]) -> None:
        self.names: dict[NodeKey, str] = {}
        self.arcs: set[tuple[NodeKey, NodeKey]] = set()
        self.job_of: dict[NodeKey, int] = {}
        for one in rounds:
            keys = node_keys(one.graph)
            self.names |= zip(keys, one.graph.name, strict=True)
            pairs = zip(one.graph.tail.tolist(), one.graph.head.tolist(), strict=True)
            self.arcs |= {(keys[tail], keys[head]) for tail, head in pairs}
            self.job_of |= {keys[row]: facts.job for row, facts in one.tasks.items()}

    def of(self, *kinds: NodeKind) -> list[NodeKey]:
        """The nodes of these kinds, in order; tasks by their jobs."""
        keys = [key for key in self.names if key[0] in kinds]
        return sorted(keys, key=lambda key: (key[0], self.job_of.get(key, 0), key[1]))


def laid_out(rounds: Sequence[RecordedRound]) -> list[Layout]:
    """The layout of each of these rounds, with the nodes that have left since the one before.

    Machines and aggregators keep their places in all rounds, and so do tasks if they are few.
    """
    union = _Nodes(rounds)
    seen = [_Nodes(rounds[max(place - 1, 0) : place + 1]) for place in range(len(rounds))]
    with_gone = seen
    if len(union.of(NodeKind.TASK)) <= FEW_TASKS:
        with_gone = [union] * len(rounds)
    columns = _columns(union)
    tasks_high = max(_heights(one.of(NodeKind.TASK), one.job_of)[-1] for one in with_gone)
    nodes = len(max(columns, key=len))
    node_step = NODE_STEP if nodes <= MANY_NODES else CLOSE_STEP
    nodes_high = (nodes - 1) * node_step
    height = max(tasks_high, nodes_high, 3 * NODE_STEP)
    step_x = COLUMN_STEP + LONG_COLUMNS * min(1.0, height / 900)
    fixed: dict[NodeKey, Box] = {}
    for number, column in reversed(list(enumerate(columns, start=1))):
        step = float(node_step)
        if column[0][0] == NodeKind.AGGREGATOR:
            column = sorted(column, key=lambda key: (_mean_y(key, union.arcs, fixed, height), key))
            step = min(3 * NODE_STEP, height / max(len(column) - 1, 1))
        first = TOP + (height - step * (len(column) - 1)) / 2
        for place, key in enumerate(column):
            x = LEFT + number * step_x
            fixed[key] = _box(key, union.names[key], x, first + place * step)
    across = max(1, min(3, len(columns) - 1))
    row_step = NODE_STEP + (across - 1) * STAIR
    rows = max(-(-len(_below(one)) // across) for one in with_gone)
    width = LEFT + len(columns) * step_x + RIGHT
    bottom = TOP + height + BELOW + max(rows, 1) * row_step
    layouts = []
    for its, one in zip(seen, with_gone, strict=True):
        box = dict(fixed)
        tasks = one.of(NodeKind.TASK)
        ys = _heights(tasks, one.job_of)
        for key, y in zip(tasks, ys, strict=False):
            box[key] = _box(key, one.names[key], LEFT, TOP + (height - ys[-1]) / 2 + y)
        for place, key in enumerate(_below(one)):
            x = LEFT + step_x * (0.7 + place % across)
            # Those further to the left stand lower, so that their arcs pass below the others.
            y = TOP + height + BELOW + place // across * row_step
            y += (across - 1 - place % across) * STAIR
            box[key] = _box(key, one.names[key], x, y)
        layouts.append(
            Layout(box, list(_jobs(its.of(NodeKind.TASK), one.job_of, box)), width, bottom)
        )
    return layouts


def _columns(nodes: _Nodes) -> list[list[NodeKey]]:
    """The nodes of the columns to the right of the tasks."""
    between = nodes.of(NodeKind.AGGREGATOR)
    depth = _depths(between, nodes.arcs)
    columns = [[key for key in between if depth[key] == d] for d in sorted(set(depth.values()))]
    kinds = (NodeKind.ENTRANCE, NodeKind.MACHINE, NodeKind.SINK)
    columns += [nodes.of(kind) for kind in kinds]
    return [column for column in columns if column]


def _below(nodes: _Nodes) -> list[NodeKey]:
    """The nodes that stand below the graph, in the order of the tasks that wait there."""
    first: dict[NodeKey, NodeKey] = {}
    place = {key: number for number, key in enumerate(nodes.of(NodeKind.TASK))}
    for tail, head in nodes.arcs:
        if tail in place and (head not in first or place[tail] < place[first[head]]):
            first[head] = tail
    keys = nodes.of(NodeKind.PATIENCE, NodeKind.UNSCHEDULED)
    return sorted(keys, key=lambda key: (place[first[key]] if key in first else -1, key))


def _heights(tasks: Sequence[NodeKey], job_of: Mapping[NodeKey, int]) -> list[float]:
    """The heights of tasks below the first; then that of the last again."""
    ys, y = [], 0.0
    for place, key in enumerate(tasks):
        if place:
            y += TASK_STEP + (JOB_GAP if job_of[key] != job_of[tasks[place - 1]] else 0)
        ys.append(y)
    return [*ys, y]


def _depths(
    between: Sequence[NodeKey], arcs: Iterable[tuple[NodeKey, NodeKey]]
) -> dict[NodeKey, int]:
    """How many arcs there are at most from each aggregator to a node that is none, as a negative
    number, so that aggregators that lead to machines share a column."""
    heads = defaultdict(list)
    for tail, head in arcs:
        if tail[0] == head[0] == NodeKind.AGGREGATOR:
            heads[tail].append(head)
    depth: dict[NodeKey, int] = {}

    def settle(key: NodeKey) -> int:
        if key not in depth:
            depth[key] = min((settle(head) for head in heads[key]), default=0) - 1
        return depth[key]

    for key in between:
        settle(key)
    return depth


def _mean_y(
    key: NodeKey,
    arcs: Iterable[tuple[NodeKey, NodeKey]],
    box: Mapping[NodeKey, Box],
    height: float,
) -> float:
    """The mean height of the nodes to which a node leads."""
    ys = [box[head].y for tail, head in arcs if tail == key and head in box]
    return sum(ys) / len(ys) if ys else height / 2


def _box(key: NodeKey, name: str, x: float, y: float) -> Box:
    text = len(name) * CHARACTER
    match key[0]:
        case NodeKind.TASK:
            return Box(x, y, max(30, text + 14), 24)
        case NodeKind.MACHINE:
            return Box(x, y, max(64, text + 44), 30)
        case NodeKind.SINK:
            return Box(x, y, 36, 36)
        case _:
            return Box(x, y, max(40, text + 20), 28)


def _jobs(
    tasks: Sequence[NodeKey], job_of: Mapping[NodeKey, int], box: Mapping[NodeKey, Box]
) -> Iterable[tuple[int, float, float]]:
    by_job = defaultdict(list)
    for key in tasks:
        by_job[job_of[key]].append(box[key])
    for job, boxes in by_job.items():
        yield job, boxes[0].top, boxes[-1].bottom


@dataclass(frozen=True, slots=True)
class Curve:
    """A cubic Bezier curve between two nodes: its four points, x and y."""

    points: tuple[tuple[float, float], ...]

    @classmethod
    def between(cls, tail: Box, head: Box, is_below: bool, from_below: bool) -> Curve:
        """From the right of one node to the left of the other.

        Args:
            is_below, from_below: Whether the arc leads to what stands below the graph, where it
                ends at the top of it, or comes from there, and ends at the bottom.
        """
        begin = (tail.right, tail.y)
        if is_below:
            end = (head.x, head.top)
            drop = max(40.0, (end[1] - begin[1]) * 0.6)
            return cls((begin, (begin[0] + 46, begin[1]), (end[0], end[1] - drop), end))
        if from_below:
            end = (head.x, head.bottom)
            rise = 0.85 * (begin[1] - end[1])
            flat = begin[0] + 0.7 * (end[0] - begin[0])
            return cls((begin, (flat, begin[1]), (end[0], end[1] + rise), end))
        end = (head.left, head.y)
        pull = 0.34 * max(40.0, end[0] - begin[0])
        return cls((begin, (begin[0] + pull, begin[1]), (end[0] - pull, end[1]), end))

    def at(self, t: float) -> tuple[float, float]:
        """The point at t, from 0 to 1."""
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        xs = sum(w * x for w, (x, _) in zip(weights, self.points, strict=True))
        ys = sum(w * y for w, (_, y) in zip(weights, self.points, strict=True))
        return xs, ys

    @property
    def path(self) -> str:
        """As SVG has it."""
        (x0, y0), *others = self.points
        rest = " ".join(f"{x:.1f},{y:.1f}" for x, y in others)
        return f"M{x0:.1f},{y0:.1f} C{rest}"


class LabelPlacer:
    """Finds places for labels at which they cover neither nodes nor each other.

    Args:
        boxes: Of the nodes.
    """

    def __init__(self, boxes: Iterable[Box]) -> None:
        self._taken = list(boxes)

    def place(self, curve: Curve, text: str) -> Box | None:
        """A place for a label along a curve; None if there is none."""
        width = len(text) * LABEL_CHARACTER + 4
        for t in PLACES:
            box = Box(*curve.at(t), width, LABEL_HEIGHT)
            if not any(box.meets(other) for other in self._taken):
                self._taken.append(box)
                return box
        return None
