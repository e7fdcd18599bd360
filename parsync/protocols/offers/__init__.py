"""The protocol of offers: an allocator offers free room to schedulers, which accept or decline it
(Mesos, NSDI 2011)."""
