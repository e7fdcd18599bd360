"""`python -m experiments.frontier`: the command `agora frontier`."""

from experiments.__main__ import run_module

if __name__ == "__main__":
    run_module("frontier")
