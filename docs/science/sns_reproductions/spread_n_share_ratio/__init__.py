"""Spread-n-Share: figure 19, run and wait times against the ratio of scaling jobs."""
