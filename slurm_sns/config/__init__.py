"""Reads sns.yaml: all of it (configuration), or where the scheduler's files are alone (paths)."""
