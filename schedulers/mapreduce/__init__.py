"""The MapReduce scheduler, which uses idle resources to finish jobs sooner (Omega section 6)."""
