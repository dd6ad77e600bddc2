"""Which jobs of a site's log slurm_sns would manage: each submission judged as the submit filter judges it live."""
