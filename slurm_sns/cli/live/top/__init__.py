"""`sns top`: the cluster on a terminal, from one kind of answer of the scheduler, the overview."""
