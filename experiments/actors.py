"""`python -m experiments.actors`: the command `agora actors`."""

from experiments.__main__ import run_module

if __name__ == "__main__":
    run_module("actors")
