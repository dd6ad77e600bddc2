"""Spread-n-Share: figures 3, 4, 6 and 12, what programs need of cache and memory bandwidth."""
