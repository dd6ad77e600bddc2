"""Spread-n-Share: figure 13, how much faster the programs are on 2, 4 and 8 nodes."""
