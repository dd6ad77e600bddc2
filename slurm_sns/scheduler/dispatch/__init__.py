"""What is sent: the plan as orders, by update RPCs, and what Slurm answered."""
