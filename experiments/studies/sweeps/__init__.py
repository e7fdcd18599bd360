"""`agora sweep`: the configuration of a run, varied. The runs are done by campaign/."""
