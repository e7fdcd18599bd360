"""The MapReduce scheduler, which uses idle resources to finish jobs sooner (Omega section 6): what
is known of jobs in jobs.py, the scheduler and its policies in scheduler.py."""
