"""Workload models: seeded generators of traces that stand in for ones that are not at hand."""
