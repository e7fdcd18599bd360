"""Every loop of the solver that could run forever checks for cancellation or states its bound.

The test reads the sources. A loop that counts up or down to an end is bounded, unless its body
moves that end. A `for` along a tree is bounded as well. Every other loop (`while`, `do`, a `for`
that does not count) must call a cancellation check, or use the status of one, in its condition or
body. Otherwise a comment on its line or on the line before must say why it ends
(`// bounded: why`) or where the check is (`// checks: where`).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

NATIVE = Path(__file__).parents[2] / "flowsolver" / "native"
SOURCES = sorted(p for p in NATIVE.rglob("*") if p.suffix in (".cpp", ".hpp"))

NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
LOOP = re.compile(r"\b(?:(while|for)\s*\(|(do)\s*\{)")
# A call that checks for cancellation, or the status that it returns.
CHECK = re.compile(
    r"\b(?:step|step_until_cancelled|check|count|should_continue|may_continue|cancelled"
    r"|for_each_block|for_each_until_cancelled)\(|\bchecker_?\b|\bStatus::k\w+|\bstatus\b"
)
NOTE = re.compile(r"//.*\b(?:bounded|checks): \w")
ONE_STEP = re.compile(r"\s*(?:(?:\+\+|--)[\w.\[\]]+|[\w.]+ [+-]= \w+)\s*")
# Up the parents of a tree, or along its thread.
WALK = re.compile(r"\s*(\w+) = (?:[\w.]*nodes_\[\1\]\.parent|[\w.]*parent\(\1\)|thread_\[\1\])\s*")
GROWS = r"(?:push_back|emplace_back|push)\("


class Loop(NamedTuple):
    line: int  # from 1
    header: str  # of `do`: empty
    body: str
    is_for: bool


def without_comments(text: str) -> str:
    """Blank out comments and strings; lines and columns stay the same."""
    return NO_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def end_of(code: str, begin: int) -> int:
    """The position after the bracket that closes the one at `begin`."""
    depth = 0
    for k in range(begin, len(code)):
        depth += (code[k] in "([{") - (code[k] in ")]}")
        if depth == 0:
            return k + 1
    raise ValueError(f"bracket at {begin} is not closed")


def loops(text: str) -> Iterator[Loop]:
    code = without_comments(text)
    for found in LOOP.finditer(code):
        line = code.count("\n", 0, found.start()) + 1
        opens = found.end() - 1
        closes = end_of(code, opens)
        if found[2]:
            yield Loop(line, "", code[opens:closes], False)
            continue
        begin = closes + len(code[closes:]) - len(code[closes:].lstrip())
        if code[begin] == ";" and code[: found.start()].rstrip().endswith("}"):
            continue  # the end of `do`
        end = end_of(code, begin) if code[begin] == "{" else code.index(";", begin) + 1
        yield Loop(line, code[opens + 1 : closes - 1], code[begin:end], found[1] == "for")


def counts(loop: Loop) -> bool:
    """Whether the loop counts to a fixed end or walks along a tree."""
    if not loop.is_for:
        return bool(loop.header and ONE_STEP.fullmatch(loop.body.strip("{};\n ")))
    if ";" not in loop.header:
        return True  # over a range
    _, condition, step = loop.header.split(";", 2)
    if re.search(r"\w+-- > 0", condition):
        return True
    grown = re.search(r"< (\w+)\.size\(\)", condition)
    if grown and re.search(rf"\b{grown[1]}\.{GROWS}", loop.body):
        return False
    return bool(WALK.fullmatch(step) or (condition.strip() and ONE_STEP.fullmatch(step)))


def unbounded(text: str) -> list[int]:
    """The lines of loops that neither check, nor count, nor state their bound."""
    lines = text.splitlines()
    return [
        loop.line
        for loop in loops(text)
        if not counts(loop)
        and not CHECK.search(loop.header + loop.body)
        and not any(NOTE.search(line) for line in lines[max(0, loop.line - 2) : loop.line])
    ]


def test_sources_are_found():
    assert sum(1 for path in SOURCES for _ in loops(path.read_text())) > 500


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(NATIVE)))
def test_loops_check_for_cancellation_or_state_their_bound(path):
    lines = path.read_text().splitlines()
    assert [f"{k}: {lines[k - 1].strip()}" for k in unbounded(path.read_text())] == []


@pytest.mark.parametrize(
    "loop",
    [
        "while (true) {\n  raise(v, least(v));\n}",
        "for (;;) raise(v, 1);",
        "for (NodeId v = target; v != source;) v = parent(v);",
        "for (; v != target; v = graph.edges[current[v]].to) push(v);",
        "do {\n  v = parent(v);\n} while (v != source);",
        "while (go(v)) {  // checks out, but is it bounded?\n  v = next(v);\n}",
        "for (std::size_t k = 0; k < queue.size(); ++k) {\n  queue.push_back(next(queue[k]));\n}",
        'while (more()) say("checker_.step(stats_)");',
    ],
)
def test_a_loop_that_may_not_end_is_found(loop):
    assert unbounded(f"void f() {{\n{loop}\n}}\n") == [2]


@pytest.mark.parametrize(
    "loop",
    [
        "while (true) {\n  if (checker_.step(stats_) != Status::kOptimal) return;\n}",
        "while (status == Status::kOptimal) status = serve(v);",
        "while (v != source) {  // bounded: by the length of a path\n  v = parent(v);\n}",
        "for (;;) {  // checks: in `update`\n  update(v);\n}",
        "for (std::size_t k = 0; k < n; ++k) {\n  while (k > n) ++k;\n}",
        "for (NodeId v : nodes) raise(v, 1);",
        "for (std::size_t k = n; k-- > 0;) settle(k);",
        "for (; k != junction; k = nodes_[k].parent) push(k);",
    ],
)
def test_a_loop_that_ends_or_checks_is_accepted(loop):
    assert unbounded(f"void f() {{\n{loop}\n}}\n") == []
