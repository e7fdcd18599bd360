"""The benchmark of `python -m flowsolver bench`: other solvers and ours on the same graphs in one
run.
"""
