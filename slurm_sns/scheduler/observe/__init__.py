"""From an observation of Slurm to each job's status, our records and the corrections to send. Pure."""
