"""Rescheduling, figures 6 and 7: the jobs that take longest to complete, with restarts and without."""
