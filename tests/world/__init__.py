"""A simulated Slurm with the people and the faults around it, all drawn from a seed, and a check of our promises."""
