"""The live runtime: the same participants in Ray actors, in real time.

Start reading at run.py, which drives one run. Its processes are in hosts.py, the cell's in
cell_host.py; what they are given and hand over is in plan.py. Every process but the cell's runs a
loop (loop.py) and steps to the cell (steps.py; submissions.py for the source's way to the hosts;
calls.py carries the bytes); cell.py handles the steps. logs.py and checkpoint.py are what is on
disk, replay.py and recovered_measurements.py what reads it again. meters.py measures the runtime
itself, liveness.py sees whether the run goes on. Ray is in ray_glue/, and nowhere else.
"""
