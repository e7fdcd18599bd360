"""`python -m experiments.parsync_vs_flow`: the command `agora run`."""

from experiments.__main__ import run_module

if __name__ == "__main__":
    run_module("run")
