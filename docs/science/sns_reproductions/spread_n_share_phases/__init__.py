"""Spread-n-Share: section 6.2, why jobs break their alpha."""
