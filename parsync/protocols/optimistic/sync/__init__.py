"""Who sees what, when: sync policies, strategies, staleness. Sans I/O."""
