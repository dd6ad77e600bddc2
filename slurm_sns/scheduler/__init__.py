"""The live scheduler: it observes Slurm, plans on a snapshot and sends the changes. It reaches Slurm through ports."""
