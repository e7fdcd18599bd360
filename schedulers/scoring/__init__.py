"""Scoring schedulers: each task in turn goes to the best-scored of the machines that pass the
filters, as in Kubernetes, SwarmKit, Nomad and Borg. kinds.py is the table of the kinds, and
scheduler.py is what they share."""
