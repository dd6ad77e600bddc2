"""Spread-n-Share: measured programs in place of assumed curves."""
