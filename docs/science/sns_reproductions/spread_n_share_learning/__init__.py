"""Spread-n-Share: sections 4.1, 4.2 and 5.1, profiles learnt from running jobs."""
