"""From what Slurm shows to what each job is to us: states, records, corrections. Pure."""
