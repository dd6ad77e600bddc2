"""The files that Slurm, systemd and the plugins read, made from one configuration.

`texts.texts` is pure: configuration in, texts out, the same bytes each time. `files` compares and writes them.
"""
