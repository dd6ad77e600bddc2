"""The edge to Slurm: the only package that imports pyslurm. `translate` is pure; the rest sends RPCs."""
