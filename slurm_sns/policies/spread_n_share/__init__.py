"""Spread-n-Share: scale factors, shared caches and memory bandwidth (Tang et al., SC'19)."""
