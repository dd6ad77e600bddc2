"""Rescheduling, figures 2 and 3: suspension and utilisation over a year, without restarts."""
