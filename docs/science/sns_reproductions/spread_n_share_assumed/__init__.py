"""Spread-n-Share: how much the results depend on assumed numbers."""
