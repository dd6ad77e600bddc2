"""Partitions whose jobs share cores, live: parts of the CPU, time limits in virtual time, pauses."""
