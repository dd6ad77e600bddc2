"""Restarts of jobs that Slurm has suspended for more urgent ones, beside the policy's plan."""
