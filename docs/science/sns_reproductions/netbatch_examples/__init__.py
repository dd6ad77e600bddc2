"""Max-Jobs, figures 3, 4, 8, 9 and 10 as grids: machines of 4 cores and 32 GB, memory in 4 GB blocks."""
