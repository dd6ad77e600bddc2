"""Commands for traces: simulate, reproduce, workload."""
