"""What is seen: Slurm's jobs, nodes and limits at one moment."""
