"""The live scheduler: what is seen becomes a snapshot, the plan becomes changes. Slurm itself is behind the ports."""
