"""Max-Jobs, figures 1, 2, 5 and 6: sizes of jobs, and bursts over buckets of 1000 jobs."""
