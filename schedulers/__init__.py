"""Who places what.

interface.py      the contract: what a scheduler is given, what it answers, what kinds can do
registry.py       every kind by name
objective.py      the one placement cost, and the optimum
decision_clock.py how long decisions take
checked.py        a scheduler as its agent calls it, with every plan checked
conformance.py    check_conformance(SPEC): does a kind keep the contract?
unplaceable.py    tasks that can never be placed; running_tasks.py: those that may make room
entry_points.py   kinds of any registry by name, and what is wrong with a SPEC, in words
greedy/ flow/ mapreduce/   the schedulers; prices/: what a free slot is worth to others
"""
