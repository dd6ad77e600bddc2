"""DFRS, section V: the compute time of each decision of DYNMCB8 on the unscaled traces."""
