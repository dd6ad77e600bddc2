"""Simulated profiling: programs whose profiles are sampled, with errors, while their jobs run."""
