"""Max-Jobs, cycles: how far they look, and for how many jobs they withhold capacity."""
