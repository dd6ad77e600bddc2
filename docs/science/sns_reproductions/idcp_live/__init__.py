"""What restarts of suspended jobs would be worth at a site whose Slurm suspends them."""
