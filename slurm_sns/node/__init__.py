"""What runs on a compute node: shares of caches and memory bandwidth, CPU shares, counters."""
