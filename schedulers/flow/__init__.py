"""The flow scheduler (Firmament, OSDI 2016): placement as a min-cost-flow problem that is
re-optimised from round to round.

policies/        what the graph looks like and costs, one vectorised method per arc class
solver_graph.py  the tasks a scheduler answers for, and the solver's graph, columnar
graph.py         task and cell changes -> merged bulk changes of the solver's graph
aggregators.py   the policy's aggregators and the arcs out of them
waiting.py       where tasks wait: groups with their prices and bounds, patience
machine_arcs.py  from machines to the sink; how slot prices become costs
extraction.py    the flow -> placements (section 6.3, Listing 1), what fits, whole gangs
scheduler.py     one round: changes, prices, solve, extract, claims; its counted work; the kinds
"""
