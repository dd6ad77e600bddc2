"""Rescheduling, figure 5 and section 3.2: run times by activity, and estimates from recent runs."""
