"""Who places what: the contract, the registry of kinds, the one placement cost, decision times, and
the greedy and flow schedulers."""
