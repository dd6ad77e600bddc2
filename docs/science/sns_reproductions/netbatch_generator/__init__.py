"""Max-Jobs, generator: whether the generated pools may stand in for the paper's; the original load, equal queueing."""
