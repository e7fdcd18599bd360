"""The live runtime: the same cores in Ray actors, in real time. Only ports.py, cluster.py and
dashboard.py know Ray."""
