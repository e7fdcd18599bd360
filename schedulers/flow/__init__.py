"""The flow scheduler (Firmament, OSDI 2016): placement as a min-cost-flow problem that is
re-optimised from round to round.

policies/      what the graph looks like and costs, one vectorised method per arc class
task_table.py  the tasks a scheduler answers for, columnar
graph.py       task and cell changes -> merged bulk changes of the solver's graph, held by
               solver_graph.py, with job_aggregators.py for what stays waiting
extraction.py  the flow -> placements (section 6.3, Listing 1), what fits, whole gangs
scheduler.py   one round: changes, prices, solve, extract, claims
"""
