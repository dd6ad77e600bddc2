"""Metrics of a simulation and its result files."""
