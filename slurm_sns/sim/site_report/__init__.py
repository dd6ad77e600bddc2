"""What slurm_sns would gain at a site, from its accounting: weeks of it are replayed, compared and judged."""
