"""The live runtime: the same cores in Ray actors, in real time. Only actors.py, ports.py and
cluster.py know Ray."""
