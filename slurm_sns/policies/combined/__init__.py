"""Spread-n-Share's alternatives inside Max-Jobs' portfolio."""
