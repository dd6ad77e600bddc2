"""Spread-n-Share: figure 1, five runs of MG, HC and TS on two nodes in place of three."""
