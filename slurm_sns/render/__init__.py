"""The files that Slurm, systemd and the plugins read, made from one configuration.

`texts.texts` is pure: equal configurations give equal bytes. `files` compares the texts with a directory and writes
them.
"""
