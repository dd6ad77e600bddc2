"""Rescheduling, tables 1 and 2: two weeks of bursts with restarts and without, and half the machines."""
