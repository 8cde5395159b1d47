"""Private rows: the batch that a fit reads, where it waits, the private file of a learner."""
