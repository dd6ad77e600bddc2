"""Workload models: seeded generators of traces that replace unavailable ones."""
