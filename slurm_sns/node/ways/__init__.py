"""Which cache ways each group of a node gets: a layout that moves as few running jobs as possible."""
