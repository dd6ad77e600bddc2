"""What is sent: the plan as orders, one update RPC each, and what Slurm answered."""
