"""The flow scheduler (Firmament, OSDI 2016): placement as a min-cost-flow problem that is
re-optimised from round to round.

kinds.py         each kind's options and its line for the registry
policies/        what the graph looks like and costs, one vectorised method per arc class
task_table.py    the tasks a scheduler answers for, columnar
graph.py         task and cell changes -> merged bulk changes of the solver's graph, which
                 solver_graph.py holds; aggregators.py and machine_arcs.py are its nodes between
                 tasks and sink
slot_pricing.py  how slot prices become costs
extraction.py    the flow -> placements (section 6.3, Listing 1), what fits, whole gangs
scheduler.py     one round: changes, prices, solve, extract, claims; and its counted work
"""
