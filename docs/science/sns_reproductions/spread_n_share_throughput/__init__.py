"""Spread-n-Share: figures 14 to 16, throughput and run times of random sequences."""
