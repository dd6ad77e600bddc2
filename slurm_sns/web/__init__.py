"""The page of `sns web`: the cluster on one screen, read only. It asks the scheduler's socket, and Slurm nothing.

`viewers` says who looks, `kept_overview` what is known, `application` what is answered, `bounded_server` how slow and
many clients are kept from holding it up. The script and the styles in `static` are served as they are.
"""
