"""`python -m experiments.sweep`: the command `agora sweep`."""

from experiments.__main__ import run_module

if __name__ == "__main__":
    run_module("sweep")
