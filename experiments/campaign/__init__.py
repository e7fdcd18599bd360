"""Many runs: each is a task, kept as soon as it is done, on processes or a cluster."""
