"""Readers of traces and node lists, and the traces as values and as arrays."""
