"""`python -m experiments.compare`: the command `agora compare`."""

from experiments.__main__ import run_module

if __name__ == "__main__":
    run_module("compare")
