"""Max-Jobs, cycles: how far they look, and for how many jobs they withhold capacity, at full size and equal queueing."""
