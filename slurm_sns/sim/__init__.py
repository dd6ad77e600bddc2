"""Trace-driven simulation: readers, the event engine, metrics and result files."""
