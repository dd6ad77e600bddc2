"""DFRS, table II: what preemptions and migrations cost on scaled traces with a load of at least 0.7."""
