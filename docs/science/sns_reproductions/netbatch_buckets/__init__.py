"""Max-Jobs, figures 7 and 11: which heuristic matches the most jobs of a bucket on an empty pool."""
