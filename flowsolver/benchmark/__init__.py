"""The benchmark behind `python -m flowsolver bench`: peers and our algorithms on the same graphs in
one run."""
