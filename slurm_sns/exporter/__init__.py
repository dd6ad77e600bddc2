"""What `sns exporter` runs: the scheduler's metrics for Prometheus, in a process of their own.

Only this package imports prometheus_client, which is under the Apache License 2.0. That licence may not be combined
with the GPL 2.0 alone, under which pyslurm calls itself: so nothing here loads pyslurm, and no process that loads
pyslurm loads this package (contracts of import-linter). And what fails here costs the scheduler no cycle.
"""
