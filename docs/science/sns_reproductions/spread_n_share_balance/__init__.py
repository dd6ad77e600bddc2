"""Spread-n-Share: figures 17 and 18, how evenly the nodes' bandwidth is used."""
