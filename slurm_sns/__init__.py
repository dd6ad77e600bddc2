"""slurm_sns: job placement for Slurm, planned outside slurmctld and written back through pyslurm."""

__version__ = "0.1.0"
